/* The binary integer encoding of IEEE 754-2008, in two 64-bit words. High word, from the top:
 *
 *     sign 1 | exponent 14 | coefficient 49          and 64 bits of coefficient below
 *     sign 1 | 11 | exponent 14 | coefficient 47     coefficients over 2^113: never valid, zero
 *     sign 1 | 11110 ...                             infinity
 *     sign 1 | 11111 ...                             not a number */
#include "document/decimal.h"

static unsigned __int128 coefficient_max(void)
{
    return (unsigned __int128)100000000000000000u * 100000000000000000u - 1;
}

struct decimal decimal_unpack(struct document_decimal packed)
{
    struct decimal decimal = {.negative = packed.high >> 63};
    uint64_t combination = packed.high >> 58 & 0x1F;

    if (combination >= 0x1E) {
        decimal.kind = combination == 0x1E ? DECIMAL_INFINITE : DECIMAL_NAN;
        return decimal;
    }
    if (combination >> 3 == 3) {
        decimal.exponent = (int32_t)(packed.high >> 47 & 0x3FFF) - DECIMAL_EXPONENT_BIAS;
        return decimal;
    }
    decimal.exponent = (int32_t)(packed.high >> 49 & 0x3FFF) - DECIMAL_EXPONENT_BIAS;
    decimal.coefficient =
        (unsigned __int128)(packed.high & (((uint64_t)1 << 49) - 1)) << 64 | packed.low;
    if (decimal.coefficient > coefficient_max())
        decimal.coefficient = 0;
    return decimal;
}

struct document_decimal decimal_pack(const struct decimal *decimal)
{
    uint64_t sign = (uint64_t)decimal->negative << 63;

    if (decimal->kind == DECIMAL_INFINITE)
        return (struct document_decimal){0, sign | (uint64_t)0x1E << 58};
    if (decimal->kind == DECIMAL_NAN)
        return (struct document_decimal){0, (uint64_t)0x1F << 58};
    assert(decimal->coefficient <= coefficient_max());
    assert(decimal->exponent >= -DECIMAL_EXPONENT_BIAS &&
           decimal->exponent <= DECIMAL_EXPONENT_MAX);
    return (struct document_decimal){
        .low = (uint64_t)decimal->coefficient,
        .high = sign | (uint64_t)(decimal->exponent + DECIMAL_EXPONENT_BIAS) << 49 |
                (uint64_t)(decimal->coefficient >> 64),
    };
}

size_t decimal_digits(unsigned __int128 coefficient, char digits[DECIMAL_DIGITS_MAX + 6])
{
    char backwards[DECIMAL_DIGITS_MAX + 6];
    size_t count = 0;

    do {
        backwards[count++] = (char)('0' + (int)(coefficient % 10));
        coefficient /= 10;
    } while (coefficient);
    for (size_t i = 0; i < count; i++)
        digits[i] = backwards[count - 1 - i];
    return count;
}

static size_t put_text(char *to, const char *text)
{
    size_t length = strlen(text);

    memcpy(to, text, length);
    return length;
}

/* Digits with a point among them, or zeros before them. */
static size_t put_plain(char *to, const char *digits, size_t count, int32_t exponent)
{
    char *begin = to;
    int32_t whole = (int32_t)count + exponent; /* digits before the point */

    if (whole <= 0) {
        to += put_text(to, "0.");
        for (; whole < 0; whole++)
            *to++ = '0';
        memcpy(to, digits, count);
        return (size_t)(to + count - begin);
    }
    memcpy(to, digits, (size_t)whole);
    to += whole;
    if (exponent < 0) {
        *to++ = '.';
        memcpy(to, digits + whole, (size_t)-exponent);
        to += -exponent;
    }
    return (size_t)(to - begin);
}

size_t decimal_to_text(struct document_decimal packed, char text[DECIMAL_TEXT_MAX])
{
    struct decimal decimal = decimal_unpack(packed);
    char digits[DECIMAL_DIGITS_MAX + 6], *to = text;
    size_t count;
    int32_t scientific;

    if (decimal.kind == DECIMAL_NAN)
        return put_text(text, "NaN");
    if (decimal.negative)
        *to++ = '-';
    if (decimal.kind == DECIMAL_INFINITE)
        return (size_t)(to - text) + put_text(to, "Infinity");
    count = decimal_digits(decimal.coefficient, digits);
    scientific = decimal.exponent + (int32_t)count - 1;
    if (decimal.exponent <= 0 && scientific >= -6)
        return (size_t)(to - text) + put_plain(to, digits, count, decimal.exponent);
    *to++ = digits[0];
    if (count > 1) {
        *to++ = '.';
        memcpy(to, digits + 1, count - 1);
        to += count - 1;
    }
    to += snprintf(to, 8, "E%+d", scientific);
    return (size_t)(to - text);
}
