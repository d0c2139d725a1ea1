/* Fan-out: the parts of one query run by the server's workers. Whoever asks takes part: it runs
 * what no worker has taken yet and then waits for those at work, so that a query is never stuck
 * behind others in the queue, however few workers there are. */
#pragma once

#include "front/front.h"
#include "query/run.h"

/* Whose threads help, at whose expense. */
struct front_helpers {
    struct net_workers *workers;
    struct net_owner *owner; /* NULL: the server's */
    uint64_t part;           /* as in struct net_work */
    size_t width;
};

/* An executor for query_request; width 0 or 1: none is needed, and its width says so. All is
 * borrowed. */
struct query_executor front_fan_out(const struct front_helpers *helpers);

/* Where the calling thread lets others have the processor; of query_request. */
struct query_breath front_breath(struct net_workers *workers);
