/* Set: values, each once, found by hash; kept in the order they came in. Behind DISTINCT, MAKESET,
 * IN, the set functions and groups.
 *
 * Values are kept as they are handed in: whoever adds a value sees to it that its bytes live as
 * long as the set. */
#pragma once

#include "document/order.h"
#include "query/value/context.h"

struct query_set {
    enum document_order order; /* which values are equal */
    struct arena *arena;       /* borrowed: where the tables are */
    size_t count, capacity;
    struct document_value *values; /* count of them */
    uint64_t *hashes;              /* of the values */
    uint32_t *places;              /* by hash: 1 + index of a value, 0: free */
    size_t place_count;            /* a power of two; 0: not made yet */
};

/* An empty set, for about as many values; room is made as they come. */
void query_set_init(struct query_set *set, enum document_order order, struct arena *arena,
                    size_t expected);

/* The index of an equal value, or SIZE_MAX. */
size_t query_set_find(const struct query_set *set, const struct document_value *value);

/* Adds the value unless it is there; says where it is and whether it is new. */
size_t query_set_add(struct query_set *set, const struct document_value *value, bool *ret_new);
