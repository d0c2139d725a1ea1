/* Debian's library comes in eight builds: this is the one that takes rounding mode and flags as
 * arguments (libbidgcc000), so that it has no state; its headers describe another unless told. */
#include "document/decimal_math.h"

#define DECIMAL_CALL_BY_REFERENCE 0
#define DECIMAL_GLOBAL_ROUNDING 0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <bid_conf.h>
#include <bid_functions.h>

enum {
    DOUBLE_DIGITS = 15,
    EXPONENT_DIGITS_MAX = 9,
    EXPONENT_MAX = 20000, /* in front of a number of DIGITS_KEPT digits: all beyond is the same */
    DIGITS_KEPT = 80,
    NUMBER_TEXT_MAX = DIGITS_KEPT + 16,
};

static const _IDEC_round half_even = BID_ROUNDING_TO_NEAREST;

static BID_UINT128 bid_of(struct document_decimal decimal)
{
    return (BID_UINT128){.w = {decimal.low, decimal.high}};
}

static struct document_decimal decimal_of(BID_UINT128 bid)
{
    return (struct document_decimal){.low = bid.w[0], .high = bid.w[1]};
}

/* --- Made of other things --------------------------------------------------------------------- */

static bool is_name(struct slice text)
{
    static const char *const names[] = {"inf", "infinity", "nan"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal_nocase(text, slice_of_text(names[i])))
            return true;
    return false;
}

static bool is_digit(struct slice text, size_t at)
{
    return at < text.len && text.data[at] >= '0' && text.data[at] <= '9';
}

/* What follows the digits: nothing, or an exponent. */
static bool exponent_read(struct slice text, int64_t *ret_exponent)
{
    bool negative;
    size_t at = 1, begin;

    *ret_exponent = 0;
    if (!text.len)
        return true;
    if ((text.data[0] | 0x20) != 'e')
        return false;
    negative = at < text.len && text.data[at] == '-';
    if (at < text.len && (negative || text.data[at] == '+'))
        at++;
    for (begin = at; is_digit(text, at) && at - begin < EXPONENT_DIGITS_MAX; at++)
        *ret_exponent = *ret_exponent * 10 + (text.data[at] - '0');
    if (negative)
        *ret_exponent = -*ret_exponent;
    return at == text.len && at > begin;
}

/* A number without sign as digits and power of ten, the digits as few as decide on its rounding:
 * the library takes anything, makes NaN of what it does not know, and forgets the last of 101. */
static bool number_shorten(struct slice text, char ret_number[NUMBER_TEXT_MAX])
{
    char digits[DIGITS_KEPT + 2];
    int64_t exponent, left_out = 0, fraction = 0;
    bool any = false, point = false, more = false;
    size_t at = 0, count = 0;

    for (;; at++) {
        if (!point && at < text.len && text.data[at] == '.') {
            point = true;
            continue;
        }
        if (!is_digit(text, at))
            break;
        any = true;
        fraction += point;
        if (count == DIGITS_KEPT) {
            left_out++;
            more |= text.data[at] != '0';
        } else if (count || text.data[at] != '0') {
            digits[count++] = (char)text.data[at];
        }
    }
    if (!any || !exponent_read(slice_skip(text, at), &exponent))
        return false;
    if (more) {
        digits[count++] = '1';
        left_out--;
    }
    exponent = exponent - fraction + left_out;
    exponent = MAX(MIN(exponent, (int64_t)EXPONENT_MAX), -(int64_t)EXPONENT_MAX);
    snprintf(ret_number, NUMBER_TEXT_MAX, "%.*sE%d", count ? (int)count : 1, count ? digits : "0",
             (int)exponent);
    return true;
}

bool decimal_from_text(struct slice text, struct document_decimal *ret_decimal, bool *ret_exact)
{
    bool negative = text.len && text.data[0] == '-';
    char number[NUMBER_TEXT_MAX] = "";
    _IDEC_flags flags = 0;

    if (text.len && (negative || text.data[0] == '+'))
        text = slice_skip(text, 1);
    if (is_name(text))
        snprintf(number, sizeof number, "%.*s", SLICE_ARG(text));
    else if (!number_shorten(text, number))
        return false;
    *ret_decimal = decimal_of(bid128_from_string(number, half_even, &flags));
    if (decimal_is_nan(*ret_decimal))
        *ret_decimal = decimal_pack(&(struct decimal){.kind = DECIMAL_NAN});
    else if (negative)
        *ret_decimal = decimal_negate(*ret_decimal);
    if (ret_exact) /* a zero is one, however small its exponent */
        *ret_exact = !(flags & BID_INEXACT_EXCEPTION) || number[0] == '0';
    return true;
}

struct document_decimal decimal_from_int64(int64_t number)
{
    return decimal_of(bid128_from_int64(number));
}

struct document_decimal decimal_from_double_whole(double number)
{
    _IDEC_flags flags = 0;

    return decimal_of(binary64_to_bid128(number, half_even, &flags));
}

/* Rounding may give one digit more, a 1 and zeros: then it is one place less. */
struct document_decimal decimal_from_double(double number)
{
    struct document_decimal whole = decimal_from_double_whole(number), rounded;
    struct decimal parts = decimal_unpack(whole), unit = {.coefficient = 1};
    char digits[DECIMAL_DIGITS_MAX + 6];
    _IDEC_flags flags = 0;

    if (parts.kind != DECIMAL_FINITE || parts.coefficient == 0)
        return whole;
    unit.exponent =
        parts.exponent + (int32_t)decimal_digits(parts.coefficient, digits) - DOUBLE_DIGITS;
    for (;; unit.exponent++) {
        rounded = decimal_of(
            bid128_quantize(bid_of(whole), bid_of(decimal_pack(&unit)), half_even, &flags));
        if (decimal_digits(decimal_unpack(rounded).coefficient, digits) <= DOUBLE_DIGITS)
            return rounded;
    }
}

struct document_decimal decimal_from_number(const struct document_value *number)
{
    switch (number->type) {
    case DOCUMENT_INT32:
        return decimal_from_int64(number->int32);
    case DOCUMENT_INT64:
        return decimal_from_int64(number->int64);
    case DOCUMENT_DOUBLE:
        return decimal_from_double(number->number);
    default:
        assert(number->type == DOCUMENT_DECIMAL128);
        return number->decimal;
    }
}

/* --- Of two ----------------------------------------------------------------------------------- */

#define ROUNDED_OF_TWO(name, function)                                                             \
    struct document_decimal name(struct document_decimal a, struct document_decimal b)             \
    {                                                                                              \
        _IDEC_flags flags = 0;                                                                     \
                                                                                                   \
        return decimal_of(function(bid_of(a), bid_of(b), half_even, &flags));                      \
    }

ROUNDED_OF_TWO(decimal_add, bid128_add)
ROUNDED_OF_TWO(decimal_subtract, bid128_sub)
ROUNDED_OF_TWO(decimal_multiply, bid128_mul)
ROUNDED_OF_TWO(decimal_divide, bid128_div)
ROUNDED_OF_TWO(decimal_power, bid128_pow)
ROUNDED_OF_TWO(decimal_atan2, bid128_atan2)

struct document_decimal decimal_modulo(struct document_decimal a, struct document_decimal b)
{
    _IDEC_flags flags = 0;

    return decimal_of(bid128_fmod(bid_of(a), bid_of(b), &flags));
}

/* --- Of one ----------------------------------------------------------------------------------- */

#define ROUNDED_OF_ONE(name, function)                                                             \
    struct document_decimal name(struct document_decimal a)                                        \
    {                                                                                              \
        _IDEC_flags flags = 0;                                                                     \
                                                                                                   \
        return decimal_of(function(bid_of(a), half_even, &flags));                                 \
    }

ROUNDED_OF_ONE(decimal_sqrt, bid128_sqrt)
ROUNDED_OF_ONE(decimal_exp, bid128_exp)
ROUNDED_OF_ONE(decimal_ln, bid128_log)
ROUNDED_OF_ONE(decimal_log10, bid128_log10)
ROUNDED_OF_ONE(decimal_sin, bid128_sin)
ROUNDED_OF_ONE(decimal_cos, bid128_cos)
ROUNDED_OF_ONE(decimal_tan, bid128_tan)
ROUNDED_OF_ONE(decimal_asin, bid128_asin)
ROUNDED_OF_ONE(decimal_acos, bid128_acos)
ROUNDED_OF_ONE(decimal_atan, bid128_atan)
ROUNDED_OF_ONE(decimal_sinh, bid128_sinh)
ROUNDED_OF_ONE(decimal_cosh, bid128_cosh)
ROUNDED_OF_ONE(decimal_tanh, bid128_tanh)
ROUNDED_OF_ONE(decimal_asinh, bid128_asinh)
ROUNDED_OF_ONE(decimal_acosh, bid128_acosh)
ROUNDED_OF_ONE(decimal_atanh, bid128_atanh)

struct document_decimal decimal_abs(struct document_decimal a)
{
    return decimal_of(bid128_abs(bid_of(a)));
}

struct document_decimal decimal_negate(struct document_decimal a)
{
    return decimal_of(bid128_negate(bid_of(a)));
}

struct document_decimal decimal_ceil(struct document_decimal a)
{
    _IDEC_flags flags = 0;

    return decimal_of(bid128_round_integral_positive(bid_of(a), &flags));
}

struct document_decimal decimal_floor(struct document_decimal a)
{
    _IDEC_flags flags = 0;

    return decimal_of(bid128_round_integral_negative(bid_of(a), &flags));
}

static struct document_decimal to_places(struct document_decimal a, int64_t places,
                                         _IDEC_round mode)
{
    struct decimal parts = decimal_unpack(a), unit = {.coefficient = 1};
    _IDEC_flags flags = 0;

    if (parts.kind != DECIMAL_FINITE || places >= -(int64_t)parts.exponent)
        return a;
    /* above the largest number all is rounded to zero */
    unit.exponent = (int32_t)-MAX(places, -(int64_t)DECIMAL_EXPONENT_MAX);
    return decimal_of(bid128_quantize(bid_of(a), bid_of(decimal_pack(&unit)), mode, &flags));
}

struct document_decimal decimal_round(struct document_decimal a, int64_t places)
{
    return to_places(a, places, half_even);
}

struct document_decimal decimal_trunc(struct document_decimal a, int64_t places)
{
    return to_places(a, places, BID_ROUNDING_TO_ZERO);
}
