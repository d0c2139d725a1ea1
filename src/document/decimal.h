/* Decimal128 taken apart: sign, coefficient of at most 34 digits, power of ten. */
#pragma once

#include "document/value.h"

enum decimal_kind { DECIMAL_FINITE, DECIMAL_INFINITE, DECIMAL_NAN };

enum {
    DECIMAL_DIGITS_MAX = 34,
    DECIMAL_EXPONENT_BIAS = 6176,
    DECIMAL_EXPONENT_MAX = 6111,
    DECIMAL_TEXT_MAX = 48,
};

struct decimal {
    enum decimal_kind kind;
    bool negative;
    int32_t exponent;
    unsigned __int128 coefficient; /* value = coefficient * 10^exponent */
};

/* A coefficient outside the format's 34 digits is zero, as the standard says. */
struct decimal decimal_unpack(struct document_decimal packed);

/* The inverse; exponent and coefficient must be in range. */
struct document_decimal decimal_pack(const struct decimal *decimal);

/* The digits of the coefficient, most significant first; at least one. */
size_t decimal_digits(unsigned __int128 coefficient, char digits[DECIMAL_DIGITS_MAX + 6]);

/* The text form of the BSON Decimal128 specification: 1.10, 1E+3, -0, Infinity, NaN. */
size_t decimal_to_text(struct document_decimal packed, char text[DECIMAL_TEXT_MAX]);
