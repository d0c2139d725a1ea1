/* What the doors of a server share, for the sources of this room. */
#pragma once

#include "base/thread.h"
#include "peer/doors.h"

#include <stdatomic.h>

enum { PEER_SHARES = 64 };

enum peer_owning { PEER_NOBODYS, PEER_OURS, PEER_THEIRS };

struct peer_askers;

struct peer_door {
    struct peer_doors *doors;
    enum peer_front front;
    struct peer_front_local local; /* read behind `owning` is PEER_OURS */
    struct peer_requests requests; /* http NULL: connections are passed on as a whole */
    struct peer_askers *askers;    /* with it */
};

struct peer_doors {
    struct log *log;
    struct net_tls_context *tls;
    struct memory_meter *memory;
    struct peer_leases *leases;              /* NULL: none */
    struct memory_meter shares[PEER_SHARES]; /* parts of it, for what clients' requests hold */
    int64_t wait_ms, drain_ms;
    struct peer_door doors[PEER_FRONTS];

    atomic_bool leaving;
    atomic_int owning;
    atomic_uint_fast64_t incarnation; /* of the owner; changes with it */
    struct mutex lock;                /* of what follows */
    struct net_address address;

    _Atomic uint64_t passed_on, taken, refused, given_up, cut, open;
    _Atomic uint64_t requests, requests_repeated, requests_lost, requests_refused, requests_waiting,
        requests_taken;
};

/* Where the owner is, and which start of it. */
struct net_address peer_doors_address(struct peer_doors *doors, uint64_t *ret_incarnation);

/* asking.c: requests at a door on their way to the owner, an asker for each loop. Freed behind the
 * loops. */
struct peer_askers *peer_askers_new(struct peer_door *door, size_t loops);
void peer_askers_free(struct peer_askers *askers); /* NULL is fine */

/* serving.c: the other end, with a door as its context. */
extern const struct net_protocol peer_serving_protocol;
