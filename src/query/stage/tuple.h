/* Tuple: the values of several slots as one array, in which undefined and numbers that are not
 * finite keep their places; so rows stand in spools and pass from a plan to its stages. */
#pragma once

#include "query/expression/expression.h"

/* An expression that gives the tuple of these slots. */
const struct query_expression *query_tuple(struct query_build *build, const uint32_t *slots,
                                           size_t count);

/* An expression that gives the tuple of these values. */
const struct query_expression *query_tuple_of(struct query_build *build,
                                              const struct query_expression *const *values,
                                              size_t count);

/* Appends the tuple of the slots of a row; their values are whole (query_slot.hidden is NULL). */
void query_tuple_write(const struct query_context *context, const uint32_t *slots, size_t count,
                       struct buf *buf);

/* Puts the values of a tuple into its slots; they stay where they are. */
void query_tuple_bind(struct query_context *context, const uint32_t *slots, size_t count,
                      struct slice tuple);
