/* Literals: numbers as scripts write them, and values that are made by a name: dates, uuids. */
#pragma once

#include "front/gremlin/value/value.h"

/* The number of a text without its sign: 1 is an int, a long where it does not fit, and a big
 * integer beyond; b s i l n and f d m (either case; g as n) say the type; 0x and a leading 0 as in
 * Java; a point or an exponent makes a double. False with a piece of a message: it is no number, or
 * none that its type can hold. */
NODISCARD bool gremlin_literal_number(struct gremlin_heap *heap, struct slice text, bool negative,
                                      struct gremlin_value *ret_value, const char **ret_fault);

/* ISO 8601 to a date; with offsets kept, to a date with an offset. False: it is none. */
NODISCARD bool gremlin_literal_date(struct gremlin_heap *heap, struct slice text, bool offsets,
                                    struct gremlin_value *ret_value);
