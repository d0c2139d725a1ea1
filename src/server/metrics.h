/* Metrics: what the server counts, as Prometheus reads it. */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "catalogue/catalogue.h"
#include "front/gremlin/command/gremlin.h"
#include "front/kit/queries.h"
#include "front/mongo/command/mongo.h"
#include "heat/heat.h"
#include "item/meters.h"
#include "migration/migrator.h"
#include "net/http.h"
#include "net/listener.h"
#include "net/workers.h"
#include "observe/observer.h"
#include "peer/doors.h"
#include "script/script.h"
#include "server/member.h"

#include <stdatomic.h>

/* A front that listens. */
struct metrics_front {
    const char *name;
    /* NULL: does not listen. Set when it already does, so requests may look before. */
    _Atomic(const struct net_listener *) listener;
    const struct net_http *http; /* NULL: it speaks another protocol, and counts by itself */
    const struct net_http *door; /* where requests are read that came before this server owned */
};
enum {
    METRICS_REST,
    METRICS_TABLE,
    METRICS_MONGO,
    METRICS_MONGO_SET,
    METRICS_GREMLIN,
    METRICS_FRONTS
};

/* Where the figures are; all borrowed. */
struct metrics_sources {
    struct metrics_front fronts[METRICS_FRONTS];
    const struct mongo *mongo;     /* NULL: there is none */
    const struct gremlin *gremlin; /* likewise */
    struct net_workers *workers;
    struct catalogue *catalogue;
    const struct front_queries *queries;
    struct script_pool *scripts;
    struct heat *heat; /* NULL: none is kept */
    const struct log *log;
    const struct memory_meter *memory; /* of requests and answers */
    int64_t started_ms;                /* wall clock */
    struct observer *observer;         /* NULL: nobody counts requests of containers */
    struct meters *meters;             /* NULL: likewise */
    struct migrator *migrator;         /* NULL: there is none */
    struct member *member;             /* NULL: it works alone */
    const struct peer_doors *doors;    /* likewise */
    struct rest_views *views;          /* NULL: nobody keeps views */
    size_t partitions_max;             /* physical partitions with figures of their own */
};

enum { METRICS_BYTES_MAX = 64 * 1024 * 1024 };

/* The text exposition format, version 0.0.4. A node that cannot be asked is left out, and counts
 * as down. Blocks as long as a node does. */
void metrics_print(const struct metrics_sources *sources, struct buf *out);
