/* Ranges: the values a condition allows at a path, as bytes of index entries. A set of them is
 * ascending and the ranges are apart from each other; all is in the arena. */
#pragma once

#include "base/arena.h"
#include "document/order.h"
#include "item/cursor.h"

struct query_ranges {
    struct cursor_range *list;
    size_t count;
};

/* The bytes of every value, and of every value of a rank, which is the first byte of a key. Here
 * and below, order is that of the entries: which bytes values have. */
struct query_ranges query_ranges_all(struct arena *arena);
struct query_ranges query_ranges_of_type(enum document_order order, enum document_type type,
                                         struct arena *arena);

/* Values of the type that this one has. */
struct query_ranges query_ranges_of_type_as(enum document_order order,
                                            const struct document_value *value,
                                            struct arena *arena);

/* The bytes of one value. *ret_exact false: others share them, for keys are cut. */
struct query_ranges query_ranges_point(enum document_order order,
                                       const struct document_value *value, bool *ret_exact,
                                       struct arena *arena);

/* Texts that begin with prefix. */
struct query_ranges query_ranges_prefix(enum document_order order, struct slice prefix,
                                        bool *ret_exact, struct arena *arena);

/* Values of the same type at, below or above value; at_too: the value itself belongs to them. */
struct query_ranges query_ranges_below(enum document_order order,
                                       const struct document_value *value, bool at_too,
                                       bool *ret_exact, struct arena *arena);
struct query_ranges query_ranges_above(enum document_order order,
                                       const struct document_value *value, bool at_too,
                                       bool *ret_exact, struct arena *arena);

/* Of many ranges in any order. */
struct query_ranges query_ranges_union(const struct cursor_range *list, size_t count,
                                       struct arena *arena);
struct query_ranges query_ranges_intersect(struct query_ranges a, struct query_ranges b,
                                           struct arena *arena);

/* Of values whose bytes are stored inverted: the same values, in the other order. */
struct query_ranges query_ranges_invert(struct query_ranges ranges, struct arena *arena);

/* Each range with bytes before it. */
struct query_ranges query_ranges_behind(struct slice before, struct query_ranges ranges,
                                        struct arena *arena);
