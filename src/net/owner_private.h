/* An owner as workers see it: its work that waits, and how much of them it has. */
#pragma once

#include "base/thread.h"
#include "net/owner.h"
#include "net/workers.h"

enum { NET_LANES = 8 };

/* Work of an owner about some of its containers. They take turns, so that one does not keep the
 * others waiting. */
struct net_lane {
    struct net_work *first, *last;
    size_t running;
};

/* A thread that has stopped in the middle of its work, until it is its turn again. */
struct net_waiter {
    struct net_waiter *next;
    struct condition changed;
};

struct net_owner {
    uint64_t number;
    const struct net_owners *among;       /* NULL: of no table, and so alone */
    struct net_owner *_Atomic next_found; /* in the table of owners */
    struct memory_meter memory;
    bool guest;            /* of an account that is still to be made */
    atomic_size_t pending; /* work of it that has not begun */

    /* Under the lock of the workers. */
    struct net_owner *next; /* of those with work that waits */
    bool house;             /* the server itself: nothing holds it back */
    struct net_lane lanes[NET_LANES];
    unsigned lane_next;
    size_t queued;    /* waits for a thread in a lane */
    size_t running;   /* has a thread */
    size_t active;    /* and does not wait for its turn in the middle */
    size_t computing; /* and uses a processor all the time */
    struct net_waiter *waiter_first, *waiter_last;
    bool favours_new;   /* work that has not begun comes before a waiter */
    uint64_t load_ns;   /* processor time of late: halved after every HALVING_MS */
    int64_t load_at_ms; /* when that was looked at */
};
