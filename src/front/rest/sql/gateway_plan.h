/* Gateway plan: how a client that merges the results of partitions itself is to run a query.
 *
 * The client asks for a plan, runs its rewritten query on every partition that its ranges touch and
 * merges what comes back: sorts, sums up aggregates, drops duplicates, skips and takes. What the
 * rewritten queries return is written down with the functions of gateway_rewrite.c that make them.
 *
 * The rewritten text of an ORDER BY holds a placeholder, SQL_ORDER_FILTER, which the client
 * replaces by `true` or by a condition that takes it back to where it stopped. It is no part of the
 * language: a text in which it was not replaced is a syntax error. */
#pragma once

#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"
#include "partition/map.h"

#define SQL_ORDER_FILTER "{documentdb-formattableorderbyquery-filter}"

enum sql_distinct { SQL_DISTINCT_NONE, SQL_DISTINCT_ORDERED, SQL_DISTINCT_UNORDERED };

/* What the client has to do. Slices are in the arena of the plan. */
struct sql_gateway_plan {
    enum sql_distinct distinct;
    bool has_top, has_window; /* window: offset and limit */
    uint32_t top, offset, limit;
    const struct sql_query *query; /* the one planned */
    bool orders;                   /* merge by the ORDER BY of the query */
    bool groups;                   /* merge by the GROUP BY of the query */
    bool aggregates;               /* there are aggregates to finish */
    bool counts_distinct;          /* SELECT COUNT(1) FROM (SELECT DISTINCT ...) */
    struct slice distinct_alias;   /* of that count; empty: SELECT VALUE */
    struct slice rewritten;        /* empty: the text as it is */
};

/* Plans a resolved and bound query and appends the JSON of the answer (queryInfo and queryRanges).
 * features is the header x-ms-cosmos-supported-query-features. ERROR_BAD_QUERY: it needs a feature
 * the client does not have, or composes aggregates with other expressions.
 * ERROR_QUERY_NOT_SUPPORTED: no client could merge it; the server has to run it as a whole. */
struct sql_gateway_place { /* where the items are */
    const struct partition_definition *definition;
    const struct partition_map *map; /* NULL: no key is spread over several ranges */
};
NODISCARD bool sql_gateway_plan(const struct sql_query *query,
                                const struct sql_gateway_place *place, struct slice features,
                                struct arena *arena, struct buf *json, struct sql_error *ret_error,
                                struct error *err);

/* The same without ranges and features, for whoever wants to look at the plan itself. pinned: the
 * filter allows one logical partition only. */
NODISCARD bool sql_gateway_rewrite(const struct sql_query *query, bool pinned, struct arena *arena,
                                   struct sql_gateway_plan *ret_plan,
                                   const struct sql_report *report);

/* The name of an aggregate in plans: "Count"; NULL if expr is none. */
const char *sql_gateway_aggregate(const struct sql_expr *expr);
