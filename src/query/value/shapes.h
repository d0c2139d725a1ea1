/* Shapes that a query looks at, kept while it does: the figure that a filter names is the same for
 * every row, and is read and indexed once. */
#pragma once

#include "query/value/context.h"
#include "search/shape.h"

/* Units for reading a figure of so many bytes. */
#define QUERY_FIGURE_WORK(bytes) ((bytes) >> 4)

struct query_shape_cache; /* owned by a context */

void query_shape_cache_free(struct query_shape_cache *cache); /* NULL is fine */

/* The shape of a value. *ret_shape NULL: it is none, and *ret_reason says why. Both are borrowed
 * from the context until two others were asked for. Fails only at the limits of the context; where
 * it is to be brief also for what takes long to make, with ERROR_COLD. */
NODISCARD bool query_shape_get(struct query_context *context, const struct document_value *value,
                               const struct search_rules *rules, struct search_shape **ret_shape,
                               const struct search_reason **ret_reason, struct error *err);
