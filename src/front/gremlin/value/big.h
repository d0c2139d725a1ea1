/* Big integers and decimals: kept as canonical decimal text, computed with by OpenSSL's BIGNUM. */
#pragma once

#include "front/gremlin/value/value.h"

enum {
    GREMLIN_DIGITS_MAX = 4096,      /* of a big number: reading and multiplying are quadratic */
    GREMLIN_SCALE_MAX = 1000000000, /* places of a big decimal, either way */
};

/* Text to a number: optional sign and digits; for decimals a point and an exponent too. False: it
 * is none, or too large. */
NODISCARD bool gremlin_big_integer(struct gremlin_heap *heap, struct slice text,
                                   struct gremlin_value *ret_value);
NODISCARD bool gremlin_big_decimal(struct gremlin_heap *heap, struct slice text,
                                   struct gremlin_value *ret_value);

/* Two's complement, big endian, as GraphBinary has integers; a decimal is that and a scale, the
 * places behind the point. */
NODISCARD bool gremlin_big_from_bytes(struct gremlin_heap *heap, struct slice bytes,
                                      struct gremlin_value *ret_value);
NODISCARD bool gremlin_big_from_scaled(struct gremlin_heap *heap, struct slice bytes, int32_t scale,
                                       struct gremlin_value *ret_value);
/* With the length before the bytes; a decimal with the scale before that. Any finite number. */
void gremlin_big_write_bytes(struct gremlin_value number, struct buf *buf);
void gremlin_big_write_scaled(struct gremlin_value number, struct buf *buf);

/* Any two finite numbers, exactly: below, at or above zero. */
int gremlin_big_compare(struct gremlin_value a, struct gremlin_value b);
