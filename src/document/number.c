/* The double nearest to a decimal comes from the library, correctly rounded; whether it lies above
 * or below is then found with integers of up to 1024 bits: c * 10^e against m * 2^k, with the
 * powers multiplied out to whichever side they are positive on. */
#include "document/number.h"

#include "document/double.h"

#include <math.h>

enum { LIMBS = 64 }; /* of 32 bits; c * 5^308 and its like need fewer than 40 */

/* A non-negative integer, least limb first. */
struct big {
    size_t count;
    uint32_t limbs[LIMBS];
};

static void big_set(struct big *big, unsigned __int128 value)
{
    for (big->count = 0; value; value >>= 32)
        big->limbs[big->count++] = (uint32_t)value;
}

static void big_multiply(struct big *big, uint32_t factor)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < big->count; i++) {
        carry += (uint64_t)big->limbs[i] * factor;
        big->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        assert(big->count < LIMBS);
        big->limbs[big->count++] = (uint32_t)carry;
    }
}

static void big_multiply_five(struct big *big, int32_t power)
{
    const uint32_t five_to_13 = 1220703125;

    for (; power >= 13; power -= 13)
        big_multiply(big, five_to_13);
    for (; power > 0; power--)
        big_multiply(big, 5);
}

static void big_shift(struct big *big, int32_t bits)
{
    size_t limbs = (size_t)bits / 32;

    big_multiply(big, (uint32_t)1 << bits % 32);
    if (limbs == 0 || big->count == 0)
        return;
    assert(big->count + limbs <= LIMBS);
    memmove(big->limbs + limbs, big->limbs, big->count * sizeof big->limbs[0]);
    memset(big->limbs, 0, limbs * sizeof big->limbs[0]);
    big->count += limbs;
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->count != b->count)
        return a->count > b->count ? 1 : -1;
    for (size_t i = a->count; i-- > 0;) {
        if (a->limbs[i] != b->limbs[i])
            return a->limbs[i] > b->limbs[i] ? 1 : -1;
    }
    return 0;
}

/* The coefficient without trailing zeros, the exponent raised to match. */
static void strip_zeros(struct decimal *decimal)
{
    while (decimal->coefficient && decimal->coefficient % 10 == 0) {
        decimal->coefficient /= 10;
        decimal->exponent++;
    }
}

/* |decimal| against a positive, finite double that is near it. */
static int compare_magnitudes(const struct decimal *decimal, double number)
{
    struct big left, right;
    int exponent, shift;
    double mantissa = frexp(number, &exponent); /* number = mantissa * 2^exponent */

    big_set(&left, decimal->coefficient);
    big_set(&right, (uint64_t)ldexp(mantissa, 53));
    exponent -= 53;
    if (decimal->exponent >= 0)
        big_multiply_five(&left, decimal->exponent);
    else
        big_multiply_five(&right, -decimal->exponent);
    shift = decimal->exponent - exponent;
    if (shift >= 0)
        big_shift(&left, shift);
    else
        big_shift(&right, -shift);
    return big_compare(&left, &right);
}

/* The nearest double to |decimal|: infinite if it is too large, 0 if too small. */
static double nearest_magnitude(const struct decimal *decimal)
{
    char text[DECIMAL_DIGITS_MAX + 16];
    size_t count = decimal_digits(decimal->coefficient, text);
    int written = snprintf(text + count, sizeof text - count, "e%d", decimal->exponent);
    double number;

    if (double_from_text(text, count + (size_t)written, &number))
        return number;
    return (int32_t)count + decimal->exponent > 0 ? INFINITY : 0;
}

static uint64_t order_of_double(double number)
{
    uint64_t bits;

    if (isnan(number))
        return 0;
    memcpy(&bits, &number, sizeof bits);
    return bits >> 63 ? -bits : bits | (uint64_t)1 << 63;
}

static double double_of_order(uint64_t order)
{
    uint64_t bits = order >> 63 ? order & ~((uint64_t)1 << 63) : -order;
    double number;

    if (order == 0)
        return (double)NAN;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static void place_double(double number, struct number_place *place)
{
    place->exact = true;
    place->floor = order_of_double(number);
}

/* Notes the digits of a number that is not a double. */
static void place_digits(struct decimal decimal, struct number_place *place)
{
    strip_zeros(&decimal);
    place->exact = false;
    place->negative = decimal.negative;
    place->digit_count = (uint8_t)decimal_digits(decimal.coefficient, place->digits);
    place->point = place->digit_count + decimal.exponent;
}

static void place_int64(int64_t number, struct number_place *place)
{
    double nearest = (double)number;
    __int128 back = (__int128)nearest;

    place_double(nearest, place);
    if (LIKELY(back == number))
        return;
    place->floor -= back > number; /* the next double below is the next integer below */
    place_digits((struct decimal){.negative = number < 0,
                                  .coefficient = number < 0 ? -(uint64_t)number : (uint64_t)number},
                 place);
}

static void place_decimal(struct document_decimal packed, struct number_place *place)
{
    struct decimal decimal = decimal_unpack(packed);
    double nearest;
    int side; /* of |decimal| against |nearest| */

    if (decimal.kind != DECIMAL_FINITE) {
        nearest = decimal.kind == DECIMAL_NAN ? NAN : INFINITY;
        place_double(decimal.negative ? -nearest : nearest, place);
        return;
    }
    if (decimal.coefficient == 0) {
        place_double(0, place);
        return;
    }
    strip_zeros(&decimal);
    nearest = nearest_magnitude(&decimal);
    if (nearest == 0)
        side = 1;
    else if (isinf(nearest))
        side = -1;
    else
        side = compare_magnitudes(&decimal, nearest);
    place_double(decimal.negative ? -nearest : nearest, place);
    if (side == 0)
        return;
    place->floor -= decimal.negative ? side > 0 : side < 0;
    place_digits(decimal, place);
}

void number_place(const struct document_value *value, struct number_place *ret_place)
{
    switch (value->type) {
    case DOCUMENT_INT32:
        place_double(value->int32, ret_place);
        break;
    case DOCUMENT_INT64:
        place_int64(value->int64, ret_place);
        break;
    case DOCUMENT_DOUBLE:
        place_double(value->number, ret_place);
        break;
    case DOCUMENT_DECIMAL128:
        place_decimal(value->decimal, ret_place);
        break;
    default:
        assert(!"only numbers have a place among numbers");
    }
}

static int compare_digits(const struct number_place *a, const struct number_place *b)
{
    int order;

    if (a->point != b->point)
        order = a->point > b->point ? 1 : -1;
    else
        order =
            slice_compare(slice_of(a->digits, a->digit_count), slice_of(b->digits, b->digit_count));
    return a->negative ? -order : order;
}

int number_compare(const struct document_value *a, const struct document_value *b)
{
    struct number_place left, right;

    if (a->type == DOCUMENT_INT32 && b->type == DOCUMENT_INT32)
        return (a->int32 > b->int32) - (a->int32 < b->int32);
    if (a->type == DOCUMENT_INT64 && b->type == DOCUMENT_INT64)
        return (a->int64 > b->int64) - (a->int64 < b->int64);
    number_place(a, &left);
    number_place(b, &right);
    if (left.floor != right.floor)
        return left.floor > right.floor ? 1 : -1;
    if (left.exact || right.exact)
        return right.exact - left.exact; /* what is not the double is above it */
    return compare_digits(&left, &right);
}

static struct document_value integer_value(int64_t number)
{
    if (number == (int32_t)number)
        return document_int32((int32_t)number);
    return document_int64(number);
}

/* A double that is a whole number of an int64's range. */
static bool double_is_int64(double number)
{
    const double two_to_63 = 9223372036854775808.0;

    return number >= -two_to_63 && number < two_to_63 && number == trunc(number);
}

struct document_value number_at_place(const struct number_place *place)
{
    struct decimal decimal = {.negative = place->negative};
    double number = double_of_order(place->floor);
    struct document_value value;
    int64_t whole;

    if (place->exact)
        return double_is_int64(number) ? integer_value((int64_t)number) : document_double(number);
    for (size_t i = 0; i < place->digit_count; i++)
        decimal.coefficient = decimal.coefficient * 10 + (unsigned)(place->digits[i] - '0');
    decimal.exponent = place->point - place->digit_count;
    /* The largest exponents are reached only with zeros at the end of the coefficient. */
    for (; decimal.exponent > DECIMAL_EXPONENT_MAX; decimal.exponent--)
        decimal.coefficient *= 10;
    value = (struct document_value){.type = DOCUMENT_DECIMAL128, .decimal = decimal_pack(&decimal)};
    return document_to_int64(&value, &whole) ? integer_value(whole) : value;
}

static bool decimal_to_int64(struct document_decimal packed, int64_t *ret_number)
{
    struct decimal decimal = decimal_unpack(packed);
    unsigned __int128 magnitude;

    strip_zeros(&decimal);
    if (decimal.kind != DECIMAL_FINITE)
        return false;
    if (decimal.coefficient == 0) {
        *ret_number = 0;
        return true;
    }
    if (decimal.exponent < 0 || decimal.exponent > 18)
        return false;
    magnitude = decimal.coefficient;
    for (; decimal.exponent > 0 && magnitude <= INT64_MAX; decimal.exponent--)
        magnitude *= 10;
    if (decimal.exponent > 0 || magnitude > (uint64_t)INT64_MAX + decimal.negative)
        return false;
    *ret_number = (int64_t)(decimal.negative ? -(uint64_t)magnitude : (uint64_t)magnitude);
    return true;
}

bool document_to_int64(const struct document_value *value, int64_t *ret_number)
{
    switch (value->type) {
    case DOCUMENT_INT32:
        *ret_number = value->int32;
        return true;
    case DOCUMENT_INT64:
        *ret_number = value->int64;
        return true;
    case DOCUMENT_DOUBLE:
        if (!double_is_int64(value->number))
            return false;
        *ret_number = (int64_t)value->number;
        return true;
    case DOCUMENT_DECIMAL128:
        return decimal_to_int64(value->decimal, ret_number);
    default:
        return false;
    }
}

bool document_to_double(const struct document_value *value, double *ret_number)
{
    struct decimal decimal;

    switch (value->type) {
    case DOCUMENT_INT32:
        *ret_number = value->int32;
        return true;
    case DOCUMENT_INT64:
        *ret_number = (double)value->int64;
        return true;
    case DOCUMENT_DOUBLE:
        *ret_number = value->number;
        return true;
    case DOCUMENT_DECIMAL128:
        decimal = decimal_unpack(value->decimal);
        if (decimal.kind == DECIMAL_FINITE)
            *ret_number = decimal.coefficient ? nearest_magnitude(&decimal) : 0;
        else
            *ret_number = decimal.kind == DECIMAL_NAN ? NAN : INFINITY;
        if (decimal.negative)
            *ret_number = -*ret_number;
        return true;
    default:
        return false;
    }
}
