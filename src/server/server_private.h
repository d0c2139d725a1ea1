/* The server's own structure, for the files of this folder that tell about it. */
#pragma once

#include "base/random.h"
#include "base/thread.h"
#include "front/fault.h"
#include "front/gremlin/command/gremlin.h"
#include "front/mongo/command/mongo.h"
#include "front/rest/views/views.h"
#include "front/table/table.h"
#include "maintain/pauses.h"
#include "net/http.h"
#include "net/listener.h"
#include "net/workers.h"
#include "server/certificate.h"
#include "server/certificate_names.h"
#include "server/keys.h"
#include "server/nodes.h"
#include "server/presence.h"
#include "server/probes.h"
#include "server/server.h"
#include "server/store.h"

struct server {
    const struct settings *settings; /* borrowed */
    struct log *log;                 /* borrowed */
    struct nodes *nodes;
    struct store *store;
    struct keys keys;
    struct mutex keys_lock; /* one writer of the file of keys at a time */
    struct certificate_source certificate_source;
    struct certificate *certificate;
    struct net_loops *loops;
    struct net_workers *workers;
    struct memory_meter memory; /* of all requests and answers */
    struct net_owners *owners;
    struct net_http *http;
    struct script_pool *scripts;
    struct front_queries *queries;
    struct observer *observer;
    struct pauses *pauses;
    struct rest_views *views; /* views are kept what their sources make of them */
    struct rest *rest_front;
    struct admin *admin_front;
    struct portal *portal;
    struct net_listener *rest; /* NULL: off */
    struct table *table_front;
    struct net_http *table_http;
    struct net_listener *table; /* NULL: off */
    struct mongo *mongo_front;
    struct net_listener *mongo[MONGO_FACES]; /* NULL: off */
    struct gremlin *gremlin_front;
    struct net_http *gremlin_http;
    struct net_listener *gremlin; /* NULL: off */
    struct front_faults faults;
    struct front_hosts hosts;
    struct slice host_names[CERTIFICATE_NAMES_MAX];
    struct probes probes;
    struct mutex snapshots_lock; /* one is made, dropped or gone back to at a time */
    atomic_bool restarts;        /* it stops to begin again */
    char boot[RANDOM_UUID_SIZE]; /* this one, of all that run one after the other here */
    struct presence *presence;   /* NULL: commands have to be told where the server is */
};

/* Who is told of requests, as the settings say. ERROR_CONFIGURATION. */
NODISCARD bool server_observer_make(struct server *server, struct error *err);

/* Leaves word of the server for commands of the same user. */
void server_announce(struct server *server);

/* What administration asks of the server. */
struct admin_hooks server_admin_hooks(struct server *server);
