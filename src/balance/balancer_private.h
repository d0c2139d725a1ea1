/* The balancer from within: balancer.c decides and has the thread, balancer_world.c looks. */
#pragma once

#include "balance/balancer.h"
#include "base/bell.h"
#include "base/memory.h"
#include "catalogue/node.h"

struct balancer {
    struct balancer_options options;
    const struct clock *clock;
    struct sleeper sleeper;
    struct mutex round_lock; /* one look at a time */
    bool waiting;            /* under it: nodes are to change, whatever is committed */
    int64_t quiet_until_ms;  /* under it: nothing was to be done, and looking is not cheap */

    struct mutex lock; /* under it: the rest */
    struct balancer_status status;
    struct thread thread;
};
