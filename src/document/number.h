/* Numbers of all four types on one line, exactly.
 *
 * Every number has a place: the largest double that is not above it, and, where the number is not
 * that double, its decimal digits. Numbers that share a double and are not equal to it are int64s
 * and decimals, all of which have at most 34 decimal digits; so comparing digits decides exactly,
 * and no arithmetic on fractions is needed. */
#pragma once

#include "document/decimal.h"

struct number_place {
    uint64_t floor; /* the double, as an integer of the same order; NaN is 0 */
    bool exact;     /* the number is the double; otherwise the digits count */
    bool negative;
    uint8_t digit_count; /* without trailing zeros */
    int32_t point;       /* the number is 0.d1d2d3... * 10^point */
    char digits[DECIMAL_DIGITS_MAX + 6];
};

/* value is a number. */
void number_place(const struct document_value *value, struct number_place *ret_place);

/* A number that has this place: in the first type that holds it of int32, int64, double and
 * decimal128. */
struct document_value number_at_place(const struct number_place *place);

int number_compare(const struct document_value *a, const struct document_value *b);
