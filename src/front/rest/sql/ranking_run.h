/* Ranking run: a query with ORDER BY RANK, answered as a library would that merges.
 *
 * First the sums over all items, then the best rows by each score, then one sequence of them: a row
 * has the sum of weight / (60 + rank), ranks being counted among the rows of all components, equal
 * scores having one. Rows that come out equal stay in the order in which components gave them. So
 * clients that merge by the plan have the same rows in the same order.
 *
 * Each page ranks anew and goes on behind the rows that were given: its continuation is their
 * number. */
#pragma once

#include "front/rest/sql/compile.h"
#include "front/rest/sql/ranking.h"
#include "query/stage/rest.h"

struct sql_ranking_run {
    const struct sql_prepared *prepared; /* with a ranking */
    struct slice parameters;             /* as for sql_prepare */
    const struct sql_compile_options *options;
    struct query_scope all; /* whose items the sums are of */
    struct query_head head; /* runs one page of one of its queries */
};

/* A page. Of the request rows, scope, limits, continuation, explain and the rest count as in
 * query_run; charges of all queries are added up. ERROR_QUERY_LIMIT: rows to be merged take more
 * than limits.memory_max, or 64 MB where it is 0. Errors of query_run besides. */
NODISCARD bool sql_ranking_page(const struct sql_ranking_run *run,
                                const struct query_request *request, struct query_page *ret_page,
                                struct error *err);
