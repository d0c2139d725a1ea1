/* Arithmetic of sum(), sack(), fold(seed, op), mean and min, max.
 *
 * The result has the wider type of the two: byte, short, int, long, big integer for whole numbers;
 * with a float or double involved float, double or big decimal. A whole result that does not fit
 * widens (sum, minus, mult, div of 3.8); long gives big integer. Division of whole numbers cuts. */
#pragma once

#include "front/gremlin/value/value.h"

enum gremlin_operation { GREMLIN_ADD, GREMLIN_SUBTRACT, GREMLIN_MULTIPLY, GREMLIN_DIVIDE };

/* a and b are numbers. The caller gets a reference. ERROR_GREMLIN_RUN: division by zero, or a
 * result of more digits than GREMLIN_DIGITS_MAX. */
NODISCARD bool gremlin_number_compute(struct gremlin_heap *heap, enum gremlin_operation operation,
                                      struct gremlin_value a, struct gremlin_value b,
                                      struct gremlin_value *ret_value, struct error *err);

/* The lesser or greater of two comparable values (any family), with a reference; null loses, NaN
 * loses. False: they do not compare; the message names their types. */
NODISCARD bool gremlin_value_min(struct gremlin_value a, struct gremlin_value b,
                                 struct gremlin_value *ret_value, struct error *err);
NODISCARD bool gremlin_value_max(struct gremlin_value a, struct gremlin_value b,
                                 struct gremlin_value *ret_value, struct error *err);

/* Operator.x of sack(), fold(seed, op) and withSideEffect(k, seed, op): sum to max as above, assign
 * (b), and, or (booleans), addAll (a collection or map grown by b; a is copied unless nobody else
 * holds it), sumLong. */
NODISCARD bool gremlin_operator_apply(struct gremlin_heap *heap, enum gremlin_enum_word operator,
                                      struct gremlin_value a, struct gremlin_value b,
                                      struct gremlin_value *ret_value, struct error *err);

/* The number as another type (asNumber): false if it does not fit. */
NODISCARD bool gremlin_number_cast(struct gremlin_heap *heap, enum gremlin_type type,
                                   struct gremlin_value number, struct gremlin_value *ret_value,
                                   struct error *err);
