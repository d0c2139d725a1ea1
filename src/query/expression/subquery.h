/* Subquery: rows made from one row, within one item.
 *
 * A subquery walks arrays of the item (sources, joined as a cross product), keeps the combinations
 * its filter accepts, aggregates, orders, cuts and gives a value for each. It sees the variables of
 * the rows around it through their slots and has slots of its own. All is done in memory: an item
 * has a limit, and so has the context. */
#pragma once

#include "query/expression/expression.h"
#include "query/value/aggregate.h"

/* Rows, pulled one by one. Other folders and languages may implement it too. */
struct query_rows {
    /* Gives the next value, never undefined; *ret_more false at the end. */
    bool (*next)(struct query_rows *rows, struct query_context *context, bool *ret_more,
                 struct document_value *ret_value, struct error *err);
};

NODISCARD static inline bool query_rows_next(struct query_rows *rows, struct query_context *context,
                                             bool *ret_more, struct document_value *ret_value,
                                             struct error *err)
{
    return rows->next(rows, context, ret_more, ret_value, err);
}

enum query_source_kind {
    QUERY_SOURCE_EACH,  /* x IN array: each element; none for what is no array */
    QUERY_SOURCE_VALUE, /* value AS x: one row; none if it is undefined */
    QUERY_SOURCE_ROWS,  /* (subquery) AS x: each of its values */
};

struct query_source {
    enum query_source_kind kind;
    const struct query_expression *expression; /* of the first two */
    const struct query_subquery *rows;         /* of the third */
    uint32_t slot;                             /* what it binds */
};

struct query_aggregate_call {
    enum query_aggregate_kind kind;
    const struct query_expression *argument;
    uint32_t slot; /* where the result stands when select is evaluated */
};

struct query_group_key {
    const struct query_expression *expression;
    uint32_t slot;
};

struct query_order {
    const struct query_expression *expression;
    bool descending;
    /* The expression is the distance from its figure, on its surface, and the filter implies this
     * region: where the first rows alone are wanted, they are looked for around the figure, further
     * and further out. NULL: it is something else. */
    const struct query_region *near;
};

/* In the order of evaluation. A part that is not there is NULL or 0. */
struct query_subquery {
    const struct query_source *sources; /* none: one row */
    size_t source_count;
    const struct query_expression *filter;
    const struct query_group_key *keys; /* GROUP BY */
    size_t key_count;
    const struct query_aggregate_call *aggregates; /* some, without keys: all rows become one */
    size_t aggregate_count;
    const struct query_order *order; /* stable; the SQL order over all types */
    size_t order_count;
    const struct query_expression *select; /* one value; undefined: no row */
    bool distinct;
    uint64_t offset;
    uint64_t limit; /* UINT64_MAX: all */
};

/* Checks it and copies what it points to (not the expressions) into the plan. */
const struct query_subquery *query_subquery_new(struct query_build *build,
                                                const struct query_subquery *subquery);

/* Begins to run it for the present row; the rows live in the context's arena. NULL: the limit. */
struct query_rows *query_subquery_open(const struct query_subquery *subquery,
                                       struct query_context *context, struct error *err);
