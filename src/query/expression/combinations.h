/* What the two files of subqueries share: walking the combinations, and collecting what needs all
 * of them first. */
#pragma once

#include "query/expression/subquery.h"

/* Values in the arena, a growing array. */
struct query_values {
    struct document_value *values;
    size_t count;
};

/* Moves the variables of the sources to the next combination that the filter accepts. */
NODISCARD bool query_subquery_combine(struct query_rows *rows, struct query_context *context,
                                      bool *ret_more, struct error *err);

/* Goes through all combinations of rows, groups, aggregates and orders them, and gives the values
 * selected. Undefined ones are left out. */
NODISCARD bool query_subquery_collect(const struct query_subquery *query, struct query_rows *rows,
                                      struct query_context *context,
                                      struct query_values *ret_values, struct error *err);
