/* The balancer from within: balancer.c decides and has the thread, balancer_world.c looks. */
#pragma once

#include "balance/balancer.h"
#include "base/memory.h"
#include "base/thread.h"
#include "catalogue/node.h"

struct balancer {
    struct balancer_options options;
    const struct clock *clock;
    struct mutex round_lock; /* one look at a time */
    int64_t quiet_until_ms;  /* under it: nothing was to be done, and looking is not cheap */

    struct mutex lock; /* under it: the rest */
    struct condition wake;
    bool stopping, woken;
    struct balancer_status status;
    struct thread thread;
};
