/* Fan-out: the parts of one query run by the server's workers. Whoever asks takes part: it runs
 * what no worker has taken yet and then waits for those at work, so that a query is never stuck
 * behind others in the queue, however few workers there are. */
#pragma once

#include "front/front.h"
#include "query/run.h"

/* An executor for query_request; width 0 or 1: none is needed, and its width says so. All is
 * borrowed. */
struct query_executor front_fan_out(struct net_workers *workers, size_t width);
