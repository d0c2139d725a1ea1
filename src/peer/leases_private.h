/* Both ends of leases, for leases.c (the owner's) and leasing.c (the follower's). */
#pragma once

#include "base/thread.h"
#include "peer/frame.h"
#include "peer/leases.h"

#include <stdatomic.h>

/* Payload of PEER_FRAME_LEASE_ASK: for each partition u32 number, u64 spent, u64 wanted; of
 * PEER_FRAME_LEASE: u64 generation, u32 ms; then for each partition u32 number, u64 lent. */
enum {
    PEER_ASK_ROW = 20,
    PEER_LEASE_HEAD = 12,
    PEER_LEASE_ROW = 12,
    PEER_ROWS_MAX = 1024,
    PEER_LEASE_FRAME_MAX = PEER_ASK_ROW * PEER_ROWS_MAX + PEER_LEASE_HEAD,
};

enum { PEER_LENT_SLOTS = 2048, PEER_LENT_MS = 400 };

/* What was lent for a partition, and what became of it. */
struct peer_lent {
    uint32_t partition; /* 0: the slot is free */
    int64_t left_cru;
    int64_t spent_cru;  /* and not told yet */
    int64_t denied_cru; /* requests that found too little, since it was told */
    int64_t until_ms;
};

struct peer_leasing; /* leasing.c: the connection to the owner */
struct peer_given;   /* leases.c: the other end */

struct peer_leases {
    struct peer_leases_options options;

    struct mutex lock; /* of all that follows */
    struct condition changed;

    /* The owner's. */
    struct peer_given
        *given; /* connections, and those that are closed before their lease is over */
    uint64_t generation;
    uint32_t changing;     /* recalls that are not over */
    int64_t not_before_ms; /* leases of the owner before */

    /* The follower's. */
    uint64_t seen_incarnation;
    int64_t seen_ms;
    uint64_t lease[2]; /* owner and generation; 0: none was given, or it was returned */
    int64_t asked_ms;  /* when the ask that it answers was sent */
    uint64_t loaded[2];
    struct peer_leasing *leasing; /* NULL: not connected */
    bool used;                    /* reads came since the last ask */
    int64_t dial_ms;              /* not before */
    struct peer_lent lent[PEER_LENT_SLOTS];

    struct peer_leases_metrics metrics;
};

/* leasing.c: whether the lease it has is in force. Under the lock. */
bool peer_leases_in_force(const struct peer_leases *leases, int64_t now_ms);
