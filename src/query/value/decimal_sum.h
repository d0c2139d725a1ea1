/* Decimal sum: Decimal128s added exactly and rounded once, at the end, whatever order they come in
 * and however they were spread over partitions. The result has as many digits behind the point as
 * the addend with the most of them, as far as 34 digits reach. */
#pragma once

#include "base/buf.h"
#include "document/decimal_math.h"

/* All zero: nothing added yet. */
struct query_decimal_sum {
    bool begun;
    int32_t exponent;   /* the least of all addends */
    uint32_t first;     /* which limb limbs[0] is */
    uint32_t count;     /* limbs that are there */
    uint64_t additions; /* since carries were last taken care of */
    int64_t *limbs;     /* owned; each worth 10^9 of the one before */
};

void query_decimal_sum_done(struct query_decimal_sum *sum);

/* Adds coefficient * 10^exponent, within the range of Decimal128. */
void query_decimal_sum_add(struct query_decimal_sum *sum, bool negative,
                           unsigned __int128 coefficient, int32_t exponent);
void query_decimal_sum_merge(struct query_decimal_sum *sum, const struct query_decimal_sum *other);
struct document_decimal query_decimal_sum_value(const struct query_decimal_sum *sum);

/* As an element of a BSON document, and back; false: it is none. */
void query_decimal_sum_save(const struct query_decimal_sum *sum, struct slice key, struct buf *buf);
NODISCARD bool query_decimal_sum_load(struct query_decimal_sum *sum,
                                      const struct document_value *value);
