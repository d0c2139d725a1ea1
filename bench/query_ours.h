/* Query, our side: a node filled with the items of space.h, and queries run over it from their text
 * to the JSON of their rows, page by page, as the REST front does it. */
#pragma once

#include "query_cases.h"
#include "space.h"

#include "query/run.h"

/* What runs of queries gave and cost. */
struct query_ours_result {
    uint64_t rows, bytes; /* bytes of JSON */
    uint64_t pages;
    int64_t charge_cru;
    char first[256]; /* the first row, cut; ended by NUL */
};

/* Creates items 0 to count - 1, a thousand at once, on all cores. */
void query_ours_fill(struct bench_space *space, uint64_t count);

/* One query, its parts by the executor if there is one; adds to the result. */
void query_ours_run(struct bench_space *space, const struct query_executor *executor,
                    const struct query_case *query, const struct query_values *values,
                    struct query_ours_result *result);

/* The JSON of one item, by a point read. */
void query_ours_read(struct bench_space *space, const struct query_values *values,
                     struct query_ours_result *result);

/* Says how the query is run. */
void query_ours_explain(struct bench_space *space, const struct query_case *query,
                        const struct query_values *values);
