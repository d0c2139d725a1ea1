/* Queries: what the queries of all fronts share: unfinished results between two pages, room on disk
 * for what does not fit the memory, and limits. Any thread. */
#pragma once

#include "front/fan_out.h"
#include "front/kit/call.h"
#include "front/kit/plans.h"
#include "query/reference/copies.h"
#include "query/run/blocks.h"
#include "query/spool/cache.h"
#include "query/spool/spill.h"

struct front_queries; /* opaque, owned by the server */

/* What one query may use, and all together. */
struct front_query_limits {
    int64_t pause_ms;               /* a page ends then, and the client comes again for more */
    int64_t deadline_ms;            /* of what cannot be interrupted, such as a sort */
    size_t memory_bytes_max;        /* of what a query sorts, groups or makes distinct */
    size_t cache_bytes_max;         /* of results between two pages */
    const char *spill_directory;    /* where the rest goes; copied */
    uint64_t spill_bytes_max;       /* of one query; 0: nothing is spilled */
    uint64_t spill_total_bytes_max; /* of all; the same */
    size_t vectors_bytes_max;       /* of vectors that searches walk */
    size_t terms_bytes_max;         /* of entries of terms that they do */
    size_t members_bytes_max;       /* of items that intersections meet */
    size_t plans_bytes_max;         /* of compiled queries that are kept */
    size_t copies_bytes_max;        /* of reference containers that queries join */
};

struct front_queries *front_queries_new(const struct front_query_limits *limits);

/* After the calls of all fronts. NULL is fine. */
void front_queries_free(struct front_queries *queries);
CLEANUP_FN(struct front_queries *, front_queries_free)

/* Of one query, for what does not run by front_query_run. */
size_t front_queries_memory_max(const struct front_queries *queries);
int64_t front_queries_deadline_ms(const struct front_queries *queries); /* from its beginning */
struct query_spill *front_queries_spill(const struct front_queries *queries); /* borrowed */

/* May a loop try a query of this kind (a hash)? Those that turned out to be for workers are not
 * tried for a while: twice as long each time, but never for good, and half as long for each that a
 * loop has done: what was not in memory once, as all is in the beginning, will be later. */
bool front_queries_may_try(struct front_queries *queries, uint64_t kind);
void front_queries_was_cold(struct front_queries *queries, uint64_t kind);
void front_queries_was_short(struct front_queries *queries, uint64_t kind);

struct front_plans *front_queries_plans(const struct front_queries *queries);   /* borrowed */
struct query_copies *front_queries_copies(const struct front_queries *queries); /* borrowed */

/* What queries have spilled. */
void front_queries_metrics(const struct front_queries *queries,
                           struct query_spill_metrics *ret_metrics);

/* The vectors that are in memory, and their graphs. */
void front_queries_vectors(const struct front_queries *queries, size_t *ret_bytes,
                           struct query_graphs_state *ret_graphs);

/* What a page took, for those who are told of the request. */
void front_query_observe(struct observed *observed, const struct query_metrics *metrics);

/* Runs one page of a query for a call, with what the call and the server have for it: budgets,
 * times, memory, helpers, cache and spill store. What it selects, the rows of a page and who takes
 * them is the front's; a deadline in the request holds where it is earlier than the server's. As
 * query_run. On a loop the page is short (ERROR_COLD); the caller has seen to it that the plan and
 * the request are. */
NODISCARD bool front_query_run(const struct front_call *call, const struct query_plan *plan,
                               struct query_request *request, struct query_page *ret_page,
                               struct error *err);
