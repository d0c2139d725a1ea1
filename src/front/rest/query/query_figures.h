/* Figures of a query: the headers that tell how it was run and which indexes it used. */
#pragma once

#include "front/rest/call.h"
#include "query/run.h"

/* Does the request ask which indexes were used? */
bool rest_query_wants_indexes(const struct rest_call *call);

/* Or how the query was run? */
bool rest_query_wants_explain(const struct rest_call *call);

/* Puts "_explain" into the envelope, which is whole already, if the request asks for it. */
void rest_query_explain(struct rest_call *call, const struct query_page *page);

/* Adds the headers the request asks for: x-ms-documentdb-query-metrics and
 * x-ms-cosmos-index-utilization. compile_ns: what came before the plan was run. */
void rest_query_figures(struct rest_call *call, const struct query_page *page, uint64_t compile_ns);
