/* What the server hands to every front: the rooms below, already open. */
#pragma once

#include "advise/keeper.h"
#include "advise/traffic.h"
#include "balance/balancer.h"
#include "base/log.h"
#include "catalogue/caretaker.h"
#include "catalogue/catalogue.h"
#include "front/browser.h"
#include "heat/heat.h"
#include "item/items.h"
#include "item/metering.h"
#include "migration/migrator.h"
#include "net/workers.h"
#include "observe/observer.h"
#include "script/script.h"

struct front_faults;
struct pauses;
struct front_queries;

/* The database that tables of the Table API are in, of each account. */
#define FRONT_TABLE_DATABASE "TablesDB"

/* All borrowed; they outlive the front. */
struct front_services {
    struct front_faults *faults;     /* what of faults was logged; NULL: all is */
    const struct front_hosts *hosts; /* served where no secret is asked for; NULL: any is */
    struct catalogue *catalogue;
    struct meters *meters;
    struct item_gates *gates;
    struct caretaker *caretaker;
    struct migrator *migrator; /* NULL: partitions stay as they are */
    struct heat *heat;         /* NULL: none is kept */
    struct balancer *balancer; /* NULL: likewise */
    const struct clock *clock;
    struct net_workers *workers;
    struct net_owners *owners; /* the accounts, as those whose work and memory is shared out */
    struct log *log;
    struct observer *observer;     /* is told of every request; NULL: nobody is */
    struct pauses *pauses;         /* maintain/pauses.h; NULL: nothing is ever paused */
    struct script_pool *scripts;   /* NULL: scripts are not run */
    struct traffic *traffic;       /* NULL: nothing is recorded for advice */
    struct keeper *keeper;         /* of that record; NULL: none is written down */
    struct front_queries *queries; /* kit/queries.h; NULL: no front runs any */
    uint32_t burst_seconds;        /* for load_meters_apply */
    size_t query_threads;          /* that may share the work of one query */
};

/* The items of a container as a client's request gets at them: what the operator has paused of them
 * is refused. Borrowed while the container is held. */
struct item_space front_space(const struct front_services *services, struct container *container);
