/* Big numbers as they are computed with: coefficient * 10^-scale. */
#pragma once

#include "front/gremlin/value/big.h"

#include <openssl/bn.h>

struct gremlin_big {
    BIGNUM *coefficient; /* owned */
    int64_t scale;
};

void gremlin_big_init(struct gremlin_big *big); /* zero */
void gremlin_big_done(struct gremlin_big *big);
CLEANUP_VALUE_FN(struct gremlin_big, gremlin_big_done)

NODISCARD bool gremlin_big_parse(struct slice text, bool decimal, struct gremlin_big *big);
/* Any finite number. */
void gremlin_big_set(struct gremlin_big *big, struct gremlin_value number);
/* False: it has too many digits. */
NODISCARD bool gremlin_big_value(struct gremlin_heap *heap, enum gremlin_type type,
                                 const struct gremlin_big *big, struct gremlin_value *ret_value);

/* Times 10^power, power at least 0 and known to be small. */
void gremlin_big_multiply_ten(BIGNUM *number, int64_t power);
void gremlin_big_normalize(struct gremlin_big *big);
/* The whole part; false: too many digits. */
NODISCARD bool gremlin_big_cut(const struct gremlin_big *big, struct gremlin_big *whole);
NODISCARD bool gremlin_big_long(const struct gremlin_big *big, int64_t *ret_number);
double gremlin_big_double(struct gremlin_value number);
