/* Follower: what a server that does not own the nodes answers by itself.
 *
 * It reads the catalogue and items from PostgreSQL beside the owner, under leases (peer/leases.h).
 * A thread of its own opens the nodes to be read when the first lease is given, and loads the
 * catalogue for each generation of them; requests that come meanwhile are passed on. */
#pragma once

#include "front/front.h"
#include "front/kit/http.h"
#include "peer/leases.h"
#include "server/settings.h"

struct follower; /* opaque, owned by the server */

struct follower_options {
    const struct settings *settings; /* borrowed, as all of these */
    struct log *log;
    struct peer_leases *leases;
    struct peer_doors *doors;
    struct net_owners *owners;
    const struct front_hosts *hosts;
    struct front_door door;
    struct front_consistency consistency;
    struct definition_limits limits;
};

/* Whether the settings let it answer anything at all: where each read is to be audited, logged or
 * traced, the owner does that. */
bool follower_is_wanted(const struct settings *settings);

struct follower *follower_new(const struct follower_options *options);
/* Ends its threads: behind the listeners, before the loops. NULL is fine. */
void follower_stop(struct follower *follower);
/* Behind the loops and the HTTP server of the door. NULL is fine. */
void follower_free(struct follower *follower);

/* A request of REST at the door: true if it is answered, or will be. On its loop. */
bool follower_try(struct follower *follower, struct net_http_request *request);

/* There is a lease for which the catalogue is to be loaded. From any thread. */
void follower_wake(struct follower *follower);

struct follower_metrics {
    uint64_t answered;  /* reads, by itself */
    uint64_t passed_on; /* that it began and could not prove */
    uint64_t loads;     /* of the catalogue */
};
void follower_metrics(const struct follower *follower, struct follower_metrics *ret_metrics);
