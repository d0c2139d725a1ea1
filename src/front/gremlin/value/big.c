/* A big number is decimal text; to compute, it becomes a coefficient and a scale (places behind the
 * point): value = coefficient * 10^-scale. Coefficients are OpenSSL's BIGNUM, which is linked
 * anyway: nothing of the arithmetic is ours. Every finite number of Gremlin has such a form,
 * doubles included (a double is m * 2^e; with e below 0 that is m * 5^-e * 10^e).
 *
 * Scales can be a thousand million, so two numbers are never brought to one scale before their
 * magnitudes are known to be close. */
#include "front/gremlin/value/big_private.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void *must(void *pointer)
{
    if (!pointer)
        memory_exhausted(0);
    return pointer;
}

static void must_hold(int fine)
{
    if (!fine)
        memory_exhausted(0);
}

void gremlin_big_init(struct gremlin_big *big)
{
    big->coefficient = must(BN_new());
    big->scale = 0;
}

void gremlin_big_done(struct gremlin_big *big)
{
    BN_free(big->coefficient);
    big->coefficient = NULL;
}

/* --- Text ------------------------------------------------------------------------------------- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool exponent_parse(struct slice text, int64_t *ret_exponent)
{
    bool negative = false;
    int64_t exponent = 0;
    size_t at = 0;

    if (text.len && (text.data[0] == '-' || text.data[0] == '+')) {
        negative = text.data[0] == '-';
        at = 1;
    }
    if (at == text.len || text.len - at > 10)
        return false;
    for (; at < text.len; at++) {
        if (!is_digit(text.data[at]))
            return false;
        exponent = exponent * 10 + (text.data[at] - '0');
    }
    *ret_exponent = negative ? -exponent : exponent;
    return true;
}

bool gremlin_big_parse(struct slice text, bool decimal, struct gremlin_big *big)
{
    char digits[GREMLIN_DIGITS_MAX + 2];
    int64_t exponent = 0, places = 0;
    bool point = false, any = false;
    BIGNUM *coefficient;
    size_t count = 0, at = 0;

    if (text.len && (text.data[0] == '-' || text.data[0] == '+')) {
        if (text.data[0] == '-')
            digits[count++] = '-';
        at = 1;
    }
    for (; at < text.len; at++) {
        uint8_t c = text.data[at];

        if (c == '.' && decimal && !point) {
            point = true;
        } else if (is_digit(c)) {
            if (count >= sizeof digits - 1)
                return false;
            any = true;
            places += point;
            digits[count++] = (char)c;
        } else if ((c == 'e' || c == 'E') && decimal && any) {
            if (!exponent_parse(slice_skip(text, at + 1), &exponent))
                return false;
            break;
        } else {
            return false;
        }
    }
    places -= exponent;
    if (!any || places > GREMLIN_SCALE_MAX || places < -(int64_t)GREMLIN_SCALE_MAX)
        return false;
    digits[count] = '\0';
    coefficient = big->coefficient;
    must_hold(BN_dec2bn(&coefficient, digits) != 0);
    big->scale = places;
    return true;
}

/* As Java's BigDecimal.toString: plain while the scale is not negative and the exponent not below
 * -6, in scientific notation otherwise. */
static void decimal_write(const char *digits, int64_t scale, struct buf *buf)
{
    size_t count;
    int64_t adjusted;

    if (*digits == '-') {
        buf_append_byte(buf, '-');
        digits++;
    }
    count = strlen(digits);
    adjusted = (int64_t)count - 1 - scale;
    if (scale == 0) {
        buf_append(buf, digits, count);
    } else if (scale > 0 && adjusted >= -6) {
        if ((int64_t)count > scale) {
            buf_append(buf, digits, count - (size_t)scale);
        } else {
            BUF_APPEND(buf, "0");
        }
        BUF_APPEND(buf, ".");
        for (int64_t i = (int64_t)count; i < scale; i++)
            BUF_APPEND(buf, "0");
        buf_append(buf, digits + ((int64_t)count > scale ? count - (size_t)scale : 0),
                   (int64_t)count > scale ? (size_t)scale : count);
    } else {
        buf_append(buf, digits, 1);
        if (count > 1) {
            BUF_APPEND(buf, ".");
            buf_append(buf, digits + 1, count - 1);
        }
        if (adjusted)
            buf_printf(buf, "E%+lld", (long long)adjusted);
    }
}

static bool is_too_long(const BIGNUM *number)
{
    return (uint64_t)BN_num_bits(number) * 302 / 1000 > GREMLIN_DIGITS_MAX;
}

bool gremlin_big_value(struct gremlin_heap *heap, enum gremlin_type type,
                       const struct gremlin_big *big, struct gremlin_value *ret_value)
{
    CLEANUP(buf_done) struct buf buf;
    char *digits;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (is_too_long(big->coefficient) || big->scale > GREMLIN_SCALE_MAX ||
        big->scale < -(int64_t)GREMLIN_SCALE_MAX)
        return false;
    assert(type == GREMLIN_BIG_DECIMAL || big->scale == 0);
    digits = must(BN_bn2dec(big->coefficient));
    decimal_write(digits, big->scale, &buf);
    OPENSSL_free(digits);
    *ret_value = gremlin_bytes_new(heap, type, buf_slice(&buf));
    return true;
}

static bool big_of_text(struct gremlin_heap *heap, enum gremlin_type type, struct slice text,
                        struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;

    gremlin_big_init(&big);
    return gremlin_big_parse(text, type == GREMLIN_BIG_DECIMAL, &big) &&
           gremlin_big_value(heap, type, &big, ret_value);
}

bool gremlin_big_integer(struct gremlin_heap *heap, struct slice text,
                         struct gremlin_value *ret_value)
{
    return big_of_text(heap, GREMLIN_BIG_INTEGER, text, ret_value);
}

bool gremlin_big_decimal(struct gremlin_heap *heap, struct slice text,
                         struct gremlin_value *ret_value)
{
    return big_of_text(heap, GREMLIN_BIG_DECIMAL, text, ret_value);
}

/* --- Other numbers ---------------------------------------------------------------------------- */

static void set_uint64(BIGNUM *number, uint64_t value)
{
    must_hold(BN_set_word(number, value));
}

static void set_double(struct gremlin_big *big, double number)
{
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(fabs(frexp(number, &exponent)), 53);

    exponent -= 53;
    set_uint64(big->coefficient, mantissa);
    while (mantissa && exponent < 0 && !(mantissa & 1)) {
        mantissa >>= 1;
        exponent++;
    }
    set_uint64(big->coefficient, mantissa);
    if (exponent > 0) {
        must_hold(BN_lshift(big->coefficient, big->coefficient, exponent));
    } else if (mantissa) {
        for (int i = 0; i < -exponent; i++)
            must_hold(BN_mul_word(big->coefficient, 5));
        big->scale = -exponent;
    }
    BN_set_negative(big->coefficient, signbit(number) != 0);
}

void gremlin_big_set(struct gremlin_big *big, struct gremlin_value number)
{
    bool fine = true;

    big->scale = 0;
    if (gremlin_is_whole(number)) {
        bool negative = number.integer < 0;

        set_uint64(big->coefficient,
                   negative ? -(uint64_t)number.integer : (uint64_t)number.integer);
        BN_set_negative(big->coefficient, negative);
    } else if (number.type == GREMLIN_FLOAT || number.type == GREMLIN_DOUBLE) {
        assert(isfinite(number.real));
        set_double(big, number.real);
    } else {
        fine = gremlin_big_parse(gremlin_bytes(number), number.type == GREMLIN_BIG_DECIMAL, big);
    }
    assert(fine);
}

/* How many decimal digits it has, or one more. */
static int64_t digits_about(const BIGNUM *number)
{
    return (int64_t)BN_num_bits(number) * 30103 / 100000 + 1;
}

void gremlin_big_multiply_ten(BIGNUM *number, int64_t power)
{
    BN_CTX *context = must(BN_CTX_new());
    BIGNUM *ten = must(BN_new()), *exponent = must(BN_new());

    set_uint64(ten, 10);
    set_uint64(exponent, (uint64_t)power);
    must_hold(BN_exp(ten, ten, exponent, context));
    must_hold(BN_mul(number, number, ten, context));
    BN_free(ten);
    BN_free(exponent);
    BN_CTX_free(context);
}

static int sign_of(const BIGNUM *number)
{
    if (BN_is_zero(number))
        return 0;
    return BN_is_negative(number) ? -1 : 1;
}

int gremlin_big_compare(struct gremlin_value a, struct gremlin_value b)
{
    CLEANUP(gremlin_big_done) struct gremlin_big x;
    CLEANUP(gremlin_big_done) struct gremlin_big y;
    int64_t x_size, y_size;
    int sign;

    gremlin_big_init(&x);
    gremlin_big_init(&y);
    gremlin_big_set(&x, a);
    gremlin_big_set(&y, b);
    sign = sign_of(x.coefficient);
    if (sign != sign_of(y.coefficient) || !sign)
        return sign - sign_of(y.coefficient);
    x_size = digits_about(x.coefficient) - x.scale;
    y_size = digits_about(y.coefficient) - y.scale;
    if (x_size > y_size + 1)
        return sign;
    if (y_size > x_size + 1)
        return -sign;
    if (x.scale < y.scale)
        gremlin_big_multiply_ten(x.coefficient, y.scale - x.scale);
    else if (y.scale < x.scale)
        gremlin_big_multiply_ten(y.coefficient, x.scale - y.scale);
    return BN_cmp(x.coefficient, y.coefficient);
}

/* Without zeroes at the end, so that equal numbers look the same. */
void gremlin_big_normalize(struct gremlin_big *big)
{
    BIGNUM *copy = must(BN_new());

    while (!BN_is_zero(big->coefficient)) {
        must_hold(BN_copy(copy, big->coefficient) != NULL);
        if (BN_div_word(copy, 10) != 0)
            break;
        BN_swap(copy, big->coefficient);
        big->scale--;
    }
    if (BN_is_zero(big->coefficient))
        big->scale = 0;
    BN_free(copy);
}

/* The text says the same as the number; a double of it is what strtod makes of it. */
double gremlin_big_double(struct gremlin_value number)
{
    char *text = slice_to_text(gremlin_bytes(number));
    double real = strtod(text, NULL);

    memory_free(text);
    return real;
}

bool gremlin_big_long(const struct gremlin_big *big, int64_t *ret_number)
{
    CLEANUP(gremlin_big_done) struct gremlin_big cut;
    uint64_t magnitude;
    bool negative;

    gremlin_big_init(&cut);
    if (!gremlin_big_cut(big, &cut) || BN_num_bits(cut.coefficient) > 64)
        return false;
    magnitude = BN_get_word(cut.coefficient);
    negative = BN_is_negative(cut.coefficient);
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_number = negative ? (int64_t)-magnitude : (int64_t)magnitude;
    return true;
}

bool gremlin_big_cut(const struct gremlin_big *big, struct gremlin_big *whole)
{
    must_hold(BN_copy(whole->coefficient, big->coefficient) != NULL);
    whole->scale = 0;
    if (BN_is_zero(big->coefficient) || big->scale == 0)
        return true;
    if (big->scale < 0) {
        if (digits_about(big->coefficient) - big->scale > GREMLIN_DIGITS_MAX)
            return false;
        gremlin_big_multiply_ten(whole->coefficient, -big->scale);
        return true;
    }
    if (big->scale > digits_about(big->coefficient)) {
        BN_zero(whole->coefficient);
        return true;
    }
    {
        BN_CTX *context = must(BN_CTX_new());
        BIGNUM *power = must(BN_new());

        set_uint64(power, 1);
        gremlin_big_multiply_ten(power, big->scale);
        must_hold(BN_div(whole->coefficient, NULL, whole->coefficient, power, context));
        BN_free(power);
        BN_CTX_free(context);
    }
    return true;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

/* Two's complement: of a negative number the magnitude is what the inverted bytes say, plus one. */
static bool bytes_read(struct slice bytes, BIGNUM *number)
{
    enum { BYTES_MAX = GREMLIN_DIGITS_MAX * 415 / 1000 + 2 };
    uint8_t inverted[BYTES_MAX];
    bool negative = bytes.len && bytes.data[0] & 0x80;

    if (!bytes.len || bytes.len > BYTES_MAX)
        return false;
    for (size_t i = 0; i < bytes.len; i++)
        inverted[i] = negative ? (uint8_t)~bytes.data[i] : bytes.data[i];
    must_hold(BN_bin2bn(inverted, (int)bytes.len, number) != NULL);
    if (negative) {
        must_hold(BN_add_word(number, 1));
        BN_set_negative(number, 1);
    }
    return true;
}

static void bytes_write(const BIGNUM *number, struct buf *buf)
{
    BIGNUM *magnitude = must(BN_dup(number));
    bool negative = BN_is_negative(number);
    size_t len;

    BN_set_negative(magnitude, 0);
    if (negative)
        must_hold(BN_sub_word(magnitude, 1));
    len = (size_t)BN_num_bits(magnitude) / 8 + 1;
    buf_append_be32(buf, (uint32_t)len);
    if (buf_reserve(buf, len)) {
        uint8_t *data = buf->data + buf->len;

        must_hold(BN_bn2binpad(magnitude, data, (int)len) == (int)len);
        for (size_t i = 0; negative && i < len; i++)
            data[i] = (uint8_t)~data[i];
        buf->len += len;
    }
    BN_free(magnitude);
}

bool gremlin_big_from_bytes(struct gremlin_heap *heap, struct slice bytes,
                            struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;

    gremlin_big_init(&big);
    return bytes_read(bytes, big.coefficient) &&
           gremlin_big_value(heap, GREMLIN_BIG_INTEGER, &big, ret_value);
}

bool gremlin_big_from_scaled(struct gremlin_heap *heap, struct slice bytes, int32_t scale,
                             struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;

    gremlin_big_init(&big);
    big.scale = scale;
    return bytes_read(bytes, big.coefficient) &&
           gremlin_big_value(heap, GREMLIN_BIG_DECIMAL, &big, ret_value);
}

void gremlin_big_write_bytes(struct gremlin_value number, struct buf *buf)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;

    gremlin_big_init(&big);
    gremlin_big_set(&big, number);
    bytes_write(big.coefficient, buf);
}

void gremlin_big_write_scaled(struct gremlin_value number, struct buf *buf)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;

    gremlin_big_init(&big);
    gremlin_big_set(&big, number);
    buf_append_be32(buf, (uint32_t)(int32_t)big.scale);
    bytes_write(big.coefficient, buf);
}
