/* Comparing values, in the four ways Gremlin has.
 *
 * - Equality (eq, neq, within, has(k, v), is): numbers by value across types, NaN equals nothing,
 *   null only null, elements by their id, different families never.
 * - Comparability (lt, gte, between ...): within a family; otherwise it fails, which 3.8 calls
 *   false and 3.6 and 3.7 carry through and, or and not. Callers have the third answer and decide.
 * - Orderability (order()): total, by family: null, boolean, number, date, string, uuid, vertex,
 *   edge, vertex property, property, path, set, list, map, others; NaN is the last number.
 * - Equivalence (dedup, keys of maps and groups): as equality, but the type of a number counts and
 *   NaN is NaN.
 *
 * Numbers compare exactly, whatever their types; strings by UTF-16 unit. Values nested deeper than
 * GREMLIN_COMPARE_DEPTH are compared no further (equal below). */
#pragma once

#include "front/gremlin/value/value.h"

enum { GREMLIN_COMPARE_DEPTH = 256 };

bool gremlin_equal(struct gremlin_value a, struct gremlin_value b);
bool gremlin_equivalent(struct gremlin_value a, struct gremlin_value b);
/* The same for equivalent values. The seed (gremlin_heap_seed) is a secret of the heap, so that
 * hostile keys cannot be made to meet. */
uint64_t gremlin_hash(struct gremlin_value value, uint64_t seed);
/* Below, at or above zero. */
int gremlin_order(struct gremlin_value a, struct gremlin_value b);

/* False: they do not compare (different families, a NaN, null with anything but null). */
bool gremlin_comparable(struct gremlin_value a, struct gremlin_value b, int *ret_order);

/* Three answers; and, or, not as 3.7 has them. 3.8: what failed is false. */
enum gremlin_truth { GREMLIN_FALSE, GREMLIN_TRUE, GREMLIN_UNKNOWN };

enum gremlin_truth gremlin_truth_and(enum gremlin_truth a, enum gremlin_truth b);
enum gremlin_truth gremlin_truth_or(enum gremlin_truth a, enum gremlin_truth b);
enum gremlin_truth gremlin_truth_not(enum gremlin_truth a);
