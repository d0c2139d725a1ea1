/* Vectors that a query compares, kept while it does: the one that it asks for is the same for every
 * row, and is read once. */
#pragma once

#include "query/value/context.h"
#include "search/vector.h"

struct query_vector_cache; /* owned by a context */

void query_vector_cache_free(struct query_vector_cache *cache); /* NULL is fine */

/* A vector as it was read. */
struct query_vector {
    const float *elements; /* NULL: the value is none of that kind */
    uint32_t dimensions;
    double length;
};

/* The vector of a value, borrowed from the context until two others were asked for. Fails only at
 * the limits of the context. */
NODISCARD bool query_vector_get(struct query_context *context, const struct document_value *value,
                                const struct search_vectors *vectors,
                                struct query_vector *ret_vector, struct error *err);
