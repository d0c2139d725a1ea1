/* A number is cut into digits and suffix first; the suffix, a point or an exponent say what it is.
 */
#include "front/gremlin/language/literal.h"

#include "document/double.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/text.h"

#include <math.h>

struct number {
    uint8_t digits[512]; /* with a sign in front, without underscores */
    size_t len;          /* of the sign and digits */
    int radix;
    bool real;    /* has a point or an exponent */
    uint8_t type; /* the suffix in lower case; 0: none */
};

static bool number_split(struct slice text, bool negative, struct number *number);
static bool whole_read(struct gremlin_heap *heap, const struct number *number,
                       struct gremlin_value *ret_value, const char **ret_fault);
static bool real_read(struct gremlin_heap *heap, const struct number *number,
                      struct gremlin_value *ret_value, const char **ret_fault);

bool gremlin_literal_number(struct gremlin_heap *heap, struct slice text, bool negative,
                            struct gremlin_value *ret_value, const char **ret_fault)
{
    struct number number;

    if (slice_equal(text, SLICE("NaN"))) {
        *ret_value = gremlin_double(NAN);
        return true;
    }
    if (slice_equal(text, SLICE("Infinity"))) {
        *ret_value = gremlin_double(negative ? -INFINITY : INFINITY);
        return true;
    }
    *ret_fault = "is no number";
    if (!number_split(text, negative, &number))
        return false;
    if (number.real || number.type == 'f' || number.type == 'd' || number.type == 'm')
        return real_read(heap, &number, ret_value, ret_fault);
    return whole_read(heap, &number, ret_value, ret_fault);
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Copies digits, leaving underscores between them out. False: there is none. */
static bool digits_copy(struct slice *text, bool (*fits)(uint8_t), struct number *number)
{
    size_t before = number->len;

    while (text->len && (fits(text->data[0]) || (text->data[0] == '_' && number->len > before))) {
        if (text->data[0] != '_') {
            if (number->len == sizeof number->digits)
                return false;
            number->digits[number->len++] = text->data[0];
        }
        *text = slice_skip(*text, 1);
    }
    return number->len > before;
}

static bool is_octal(const struct number *number)
{
    for (size_t i = 1; i < number->len; i++)
        if (number->digits[i] > '7')
            return false;
    return number->len > 2 && number->digits[1] == '0';
}

static bool exponent_copy(struct slice *text, struct number *number)
{
    if (number->len + 2 > sizeof number->digits)
        return false;
    number->digits[number->len++] = 'e';
    *text = slice_skip(*text, 1);
    if (text->len && (text->data[0] == '+' || text->data[0] == '-')) {
        number->digits[number->len++] = text->data[0];
        *text = slice_skip(*text, 1);
    }
    return digits_copy(text, is_digit, number);
}

static bool decimal_split(struct slice *text, struct number *number)
{
    bool digits = digits_copy(text, is_digit, number);

    if (text->len && text->data[0] == '.') {
        if (!digits)
            number->digits[number->len++] = '0';
        if (number->len == sizeof number->digits)
            return false;
        number->digits[number->len++] = '.';
        *text = slice_skip(*text, 1);
        if (!digits_copy(text, is_digit, number))
            return false;
        number->real = true;
    } else if (!digits) {
        return false;
    }
    if (text->len && (text->data[0] == 'e' || text->data[0] == 'E')) {
        number->real = true;
        if (!exponent_copy(text, number))
            return false;
    }
    return true;
}

static bool number_split(struct slice text, bool negative, struct number *number)
{
    *number = (struct number){.radix = 10};
    number->digits[number->len++] = negative ? '-' : '+';
    if (text.len > 2 && text.data[0] == '0' && (text.data[1] == 'x' || text.data[1] == 'X')) {
        number->radix = 16;
        text = slice_skip(text, 2);
        if (!digits_copy(&text, is_hex, number))
            return false;
    } else if (!decimal_split(&text, number)) {
        return false;
    }
    if (text.len > 1)
        return false;
    if (text.len) {
        number->type = text.data[0] | 0x20;
        if (!strchr("bsilngfdm", number->type) || !number->type)
            return false;
        if (number->type == 'g')
            number->type = 'n';
    }
    if (number->real && strchr("bsiln", number->type) && number->type)
        return false;
    if (number->radix == 16 && number->type && !strchr("siln", number->type))
        return false;
    if (number->radix == 10 && !number->real && !strchr("fdm", number->type ? number->type : 'i') &&
        is_octal(number))
        number->radix = 8;
    return true;
}

/* The magnitude in 64 bits. False: it is larger. */
static bool magnitude_read(const struct number *number, uint64_t *ret_magnitude)
{
    uint64_t magnitude = 0;

    for (size_t i = 1; i < number->len; i++) {
        uint8_t c = number->digits[i];
        uint64_t digit = is_digit(c) ? (uint64_t)(c - '0') : (uint64_t)((c | 0x20) - 'a' + 10);

        if (__builtin_mul_overflow(magnitude, (uint64_t)number->radix, &magnitude) ||
            __builtin_add_overflow(magnitude, digit, &magnitude))
            return false;
    }
    *ret_magnitude = magnitude;
    return true;
}

static struct slice digits_of(const struct number *number)
{
    struct slice all = slice_of(number->digits, number->len);

    return all.data[0] == '+' ? slice_skip(all, 1) : all;
}

static bool whole_read(struct gremlin_heap *heap, const struct number *number,
                       struct gremlin_value *ret_value, const char **ret_fault)
{
    static const struct {
        uint8_t suffix;
        enum gremlin_type type;
        int64_t min, max;
    } ranges[] = {{'b', GREMLIN_BYTE, INT8_MIN, INT8_MAX},
                  {'s', GREMLIN_SHORT, INT16_MIN, INT16_MAX},
                  {'i', GREMLIN_INT, INT32_MIN, INT32_MAX},
                  {'l', GREMLIN_LONG, INT64_MIN, INT64_MAX}};
    bool negative = number->digits[0] == '-', fits;
    uint64_t magnitude;
    int64_t value = 0;

    fits =
        magnitude_read(number, &magnitude) && magnitude <= (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (fits)
        value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (!number->type && fits) {
        *ret_value = gremlin_whole(value);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (number->type == ranges[i].suffix) {
            *ret_fault = "does not fit its type";
            if (!fits || value < ranges[i].min || value > ranges[i].max)
                return false;
            *ret_value = gremlin_integer(ranges[i].type, value);
            return true;
        }
    if (number->radix != 10 && !fits) {
        *ret_fault = "is larger than hexadecimal or octal numbers may be";
        return false;
    }
    if (number->radix != 10) {
        char text[24];
        int len = snprintf(text, sizeof text, "%lld", (long long)value);

        return gremlin_big_integer(heap, slice_of(text, (size_t)len), ret_value);
    }
    *ret_fault = "has too many digits";
    return gremlin_big_integer(heap, digits_of(number), ret_value);
}

static bool real_read(struct gremlin_heap *heap, const struct number *number,
                      struct gremlin_value *ret_value, const char **ret_fault)
{
    struct slice digits = digits_of(number);
    double real;

    if (number->type == 'm') {
        *ret_fault = "has too many digits";
        return gremlin_big_decimal(heap, digits, ret_value);
    }
    *ret_fault = "does not fit its type";
    if (!double_from_text((const char *)digits.data, digits.len, &real))
        return false;
    *ret_value = number->type == 'f' ? gremlin_float((float)real) : gremlin_double(real);
    return true;
}

bool gremlin_literal_date(struct gremlin_heap *heap, struct slice text, bool offsets,
                          struct gremlin_value *ret_value)
{
    int64_t seconds, ms;
    int32_t nanoseconds, offset;

    if (!gremlin_date_time_parse(text, &seconds, &nanoseconds, &offset))
        return false;
    if (offsets) {
        *ret_value = gremlin_date_time_new(heap, seconds, nanoseconds, offset);
        return true;
    }
    if (__builtin_mul_overflow(seconds, 1000, &ms) ||
        __builtin_add_overflow(ms, nanoseconds / 1000000, &ms))
        return false;
    *ret_value = gremlin_date(ms);
    return true;
}
