/* Sums: aggregates over all items that full-text indexes tell without reading one: how many items
 * there are, how many words their texts have, in how many of them phrases are. Scores of full text
 * need them of the whole container, so every ranking begins with such a query. */
#pragma once

#include "query/run/run_private.h"

/* Fills the states of the plan's aggregates. *ret_known false: some of them cannot be told so, and
 * nothing was done. */
NODISCARD bool query_sums_take(struct query_run_state *run, struct query_aggregate *states,
                               bool *ret_known, struct error *err);
