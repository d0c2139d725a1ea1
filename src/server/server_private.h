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
#include "peer/doors.h"
#include "server/certificate.h"
#include "server/certificate_names.h"
#include "server/follower.h"
#include "server/keys.h"
#include "server/member.h"
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
    struct member *member;       /* NULL: it works alone; so are the next four */
    _Atomic(struct peer_doors *) doors;
    struct peer_leases *leases;                 /* NULL: this server works alone */
    _Atomic(struct follower *) follower;        /* NULL: it answers nothing by itself */
    struct net_listener *peers;                 /* where other servers pass connections on to */
    struct net_http *door_http[PEER_TABLE + 1]; /* reads requests that are passed on */
    pthread_t main_thread;
    atomic_int role;             /* enum member_role */
    bool owns;                   /* it has opened the nodes; of the main thread */
    char boot[RANDOM_UUID_SIZE]; /* this one, of all that run one after the other here */
    struct presence *presence;   /* NULL: commands have to be told where the server is */
};

/* Who is told of requests, as the settings say. ERROR_CONFIGURATION. */
NODISCARD bool server_observer_make(struct server *server, struct error *err);

/* Leaves word of the server for commands of the same user. */
void server_announce(struct server *server);

/* What administration asks of the server. */
struct admin_hooks server_admin_hooks(struct server *server);

/* --- peering.c: one of several servers ------------------------------------------------------- */

/* To the thread that runs the server: its role is another. */
#define SERVER_SIGNAL_TURNED SIGUSR1

/* Registers among the servers that share the root, and waits until it is known who owns it: this
 * one, or another that has made the authority of all. ERROR_CANCELLED: a signal to stop came. */
NODISCARD bool server_peering_join(struct server *server, bool *ret_owns, struct error *err);
/* The doors, for listeners; behind it others can be passed on to. */
NODISCARD bool server_peering_begin(struct server *server, struct error *err);
/* Listens for other servers, and follows the one that owns. */
NODISCARD bool server_peering_listen(struct server *server, struct error *err);
/* It is about to open the nodes as the one that owns them. */
void server_peering_lead(struct server *server);
/* The fronts are made: what comes goes in. */
void server_peering_own(struct server *server);
/* After SERVER_SIGNAL_TURNED. False: the server has to begin again. */
bool server_peering_turn(struct server *server);
/* Has another server taken over? */
bool server_peering_is_fenced(const struct server *server);
/* After the nodes are closed; whatever was not begun is skipped. */
void server_peering_leave(struct server *server);

/* Where clients may go, besides the server they ask. For front_services. */
size_t server_peering_locations(void *context, struct front_location list[FRONT_LOCATIONS_MAX]);

/* What nodes are opened with. */
struct engine_claim server_peering_claim(const struct server *server);
/* A note of the catalogue, which is not open. */
NODISCARD bool server_peering_note(struct server *server, struct slice key, struct arena *arena,
                                   struct engine_value *ret_value, struct error *err);

/* Of server.c. */
struct net_http_settings server_http_settings(struct server *server, enum peer_front front);
struct follower *server_follower_make(struct server *server);
NODISCARD bool server_promote(struct server *server, struct error *err);
NODISCARD bool server_certificate_load(struct server *server, struct net_tls_context **ret_tls,
                                       struct error *err);
/* The authority of all servers: read, or made by the one that owns. Buffers of X509_PEM_BYTES_MAX;
 * empty: there is none yet. */
NODISCARD bool server_authority(struct server *server, struct buf *ret_authority,
                                struct buf *ret_key, struct error *err);
