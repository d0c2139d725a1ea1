/* Queries of the REST API: how a fault is told, and what a query sees of its container. */
#pragma once

#include "front/rest/sql/compile.h"
#include "front/rest/target/items.h"

/* What a query is told that spans partitions without leave to. */
#define REST_CROSS_PARTITION_TEXT                                                                  \
    "Cross partition query is required but disabled. Please set "                                  \
    "x-ms-documentdb-query-enablecrosspartition to true, specify "                                 \
    "x-ms-documentdb-partitionkey, or revise your query to avoid this exception."

/* Makes what is wrong with a query the message of the answer, in the words of the service. */
void rest_query_fault(struct rest_call *call, const struct sql_error *fault);

/* Holds, until the call ends, what a text of a query so long may become when it is parsed.
 * ERROR_MEMORY_FULL. */
NODISCARD bool rest_query_text_hold(struct rest_call *call, size_t bytes, struct error *err);

/* What queries of the container are compiled with. */
struct sql_compile_options rest_query_options(const struct rest_items *items);

/* May a container have the computed properties of this definition, if it has any? ERROR_BAD_QUERY:
 * a name or a query that is not allowed; the message of the answer says why. */
NODISCARD bool rest_query_computed_check(struct rest_call *call, struct slice definition,
                                         struct error *err);
