/* Reading finds the digits eight at a time and needs no more than one multiplication or division
 * for most numbers; printing tries a few decimals before it asks for the shortest form. What is
 * left, numbers of 16 digits and more, goes through the library's exact functions (double.cc),
 * which take three to five times as long. */
#include "document/json_number.h"

#include "document/double.h"
#include "document/scan.h"

#include <math.h>

enum {
    DIGITS_EXACT = 19,          /* any number of so many digits fits into 64 bits */
    EXPONENT_CLAMP = INT32_MAX, /* more than the digits of any text can make up for */
};

/* --- Reading --------------------------------------------------------------------------------- */

/* A number while it is read. */
struct number_text {
    const uint8_t *begin, *end; /* the end of the whole text */
    uint64_t digits;            /* as one integer; right for up to DIGITS_EXACT of them */
    int64_t count;              /* of digits, those of a fraction with its leading zeros */
    int64_t exponent;           /* the power of ten to multiply by */
    struct json_fault *fault;
};

static inline struct json_number real(double number)
{
    return (struct json_number){.type = DOCUMENT_DOUBLE, .real = number};
}

static inline struct json_number integer(int64_t number)
{
    bool small = number == (int32_t)number;

    return (struct json_number){.type = small ? DOCUMENT_INT32 : DOCUMENT_INT64, .integer = number};
}

static const uint8_t *fail(struct number_text *text, const uint8_t *at, const char *what)
{
    *text->fault = (struct json_fault){at, what};
    return NULL;
}

static inline bool is_digit(const uint8_t *in, const uint8_t *end)
{
    return LIKELY(in < end) && (uint8_t)(*in - '0') < 10;
}

/* All exact as doubles, so that one multiplication or division by them rounds once. */
static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Digits as far as they go, added behind those already in *digits, eight at a time: how many of
 * eight bytes are digits is found without a branch per digit, since their number is hard to
 * foresee. The sum is right for up to DIGITS_EXACT of them. */
static inline const uint8_t *read_digits(const uint8_t *in, const uint8_t *end, uint64_t *digits)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

    while (LIKELY(end - in >= 8)) {
        uint64_t word = scan_load(in) ^ SCAN_ONES * '0';
        uint64_t others = ((word + SCAN_ONES * (0x7F - 9)) | word) & SCAN_HIGHS;
        unsigned count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;

        if (count == 0)
            return in;
        word <<= 64 - 8 * count; /* leading zeros, the first byte being the highest digit */
        word = word * 10 + (word >> 8);
        word = (word & 0x00FF00FF00FF00FF) * 100 + ((word & 0x00FF00FF00FF00FF) >> 16);
        word = (word & 0x0000FFFF0000FFFF) * 10000 + ((word & 0x0000FFFF0000FFFF) >> 32);
        *digits = *digits * powers[count] + (uint32_t)word;
        in += count;
        if (count < 8)
            return in;
    }
    for (; is_digit(in, end); in++)
        *digits = *digits * 10 + (uint64_t)(*in - '0');
    return in;
}

/* Whether a number outside the range of doubles is a large one: its first digit that is not zero
 * stands before the point, once the exponent has moved it. The text is well-formed. */
static bool is_large(const uint8_t *begin, const uint8_t *end, int64_t exponent)
{
    int64_t count = 0; /* from the first digit that is not zero to the last */

    for (const uint8_t *at = begin; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at != '-' && *at != '.')
            count += count > 0 || *at != '0';
    }
    return count + exponent > 0;
}

/* The long way, for numbers of many digits or large exponents. What is too small is zero. */
static const uint8_t *read_exactly(struct number_text *text, const uint8_t *in,
                                   struct json_number *ret_number)
{
    double number;

    if (!double_from_text((const char *)text->begin, (size_t)(in - text->begin), &number)) {
        if (is_large(text->begin, in, text->exponent))
            return fail(text, text->begin, "number that no double can hold");
        number = *text->begin == '-' ? -0.0 : 0.0;
    }
    *ret_number = real(number);
    return in;
}

static const uint8_t *read_fraction(struct number_text *text, const uint8_t *in)
{
    const uint8_t *begin = in;

    in = read_digits(in, text->end, &text->digits);
    if (UNLIKELY(in == begin))
        return fail(text, in, "expected a digit after the decimal point");
    text->count += in - begin;
    text->exponent -= in - begin;
    return in;
}

static const uint8_t *read_exponent(struct number_text *text, const uint8_t *in)
{
    bool negative = false;
    int64_t exponent = 0;

    if (in < text->end && (*in == '+' || *in == '-'))
        negative = *in++ == '-';
    if (UNLIKELY(!is_digit(in, text->end)))
        return fail(text, in, "expected a digit in the exponent");
    for (; is_digit(in, text->end); in++)
        exponent = MIN(exponent * 10 + (*in - '0'), (int64_t)EXPONENT_CLAMP);
    text->exponent += negative ? -exponent : exponent;
    return in;
}

/* A number with fraction or exponent, whose whole part has been read up to `in`. Up to 2^53 the
 * digits are a double, and so are the powers: one operation on the two rounds correctly. */
static const uint8_t *read_real(struct number_text *text, const uint8_t *in,
                                struct json_number *ret_number)
{
    const int64_t exponent_max = ARRAY_LEN(powers_of_ten) - 1;
    double number;

    if (*in == '.')
        in = read_fraction(text, in + 1);
    if (in && in < text->end && (*in == 'e' || *in == 'E'))
        in = read_exponent(text, in + 1);
    if (UNLIKELY(!in))
        return NULL;
    if (text->count > DIGITS_EXACT || text->digits > (uint64_t)1 << 53 ||
        (text->digits && (text->exponent > exponent_max || text->exponent < -exponent_max)))
        return read_exactly(text, in, ret_number);
    number = (double)text->digits;
    if (text->digits && text->exponent < 0)
        number /= powers_of_ten[-text->exponent];
    else if (text->digits)
        number *= powers_of_ten[text->exponent];
    *ret_number = real(*text->begin == '-' ? -number : number);
    return in;
}

/* Short whole numbers, which are most, never touch a struct number_text. */
const uint8_t *json_number_read(const uint8_t *in, const uint8_t *end,
                                struct json_number *ret_number, struct json_fault *ret_fault)
{
    const uint8_t *begin = in, *first = in + (*in == '-');
    bool negative = *in == '-', large;
    uint64_t digits = 0;
    struct number_text text;

    in = read_digits(first, end, &digits);
    large = in - first > DIGITS_EXACT || digits > (uint64_t)INT64_MAX + negative;
    if (LIKELY(in > first && *first != '0' && !large) &&
        (in == end || (*in != '.' && *in != 'e' && *in != 'E'))) {
        *ret_number = integer((int64_t)(negative ? -digits : digits));
        return in;
    }
    text = (struct number_text){begin, end, digits, in - first, 0, ret_fault};
    if (in == first)
        return fail(&text, in, "expected a digit");
    if (*first == '0' && text.count > 1)
        return fail(&text, first, "number with a leading zero");
    if (in < end && (*in == '.' || *in == 'e' || *in == 'E'))
        return read_real(&text, in, ret_number);
    if (large)
        return read_exactly(&text, in, ret_number);
    *ret_number = negative ? real(-0.0) : integer(0);
    return in;
}

/* --- Printing -------------------------------------------------------------------------------- */

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899";

enum { TEN_THOUSAND = 10000, HUNDRED_MILLION = 100000000 };

static inline uint8_t *put_four(uint8_t *out, uint32_t number)
{
    memcpy(out, two_digits + number / 100 * 2, 2);
    memcpy(out + 2, two_digits + number % 100 * 2, 2);
    return out + 4;
}

/* Digits from the front, by halves: the first part is short, the rest of known length. */
static uint8_t *put_digits(uint8_t *out, uint64_t number)
{
    if (number < 10) {
        *out = (uint8_t)('0' + number);
        return out + 1;
    }
    if (number < 100) {
        memcpy(out, two_digits + number * 2, 2);
        return out + 2;
    }
    if (number < TEN_THOUSAND) {
        out = put_digits(out, number / 100);
        memcpy(out, two_digits + number % 100 * 2, 2);
        return out + 2;
    }
    if (number < HUNDRED_MILLION) {
        out = put_digits(out, number / TEN_THOUSAND);
        return put_four(out, (uint32_t)(number % TEN_THOUSAND));
    }
    out = put_digits(out, number / HUNDRED_MILLION);
    number %= HUNDRED_MILLION;
    out = put_four(out, (uint32_t)(number / TEN_THOUSAND));
    return put_four(out, (uint32_t)(number % TEN_THOUSAND));
}

uint8_t *json_number_write_unsigned(uint8_t *out, uint64_t number)
{
    return put_digits(out, number);
}

uint8_t *json_number_write_integer(uint8_t *out, int64_t number)
{
    if (number < 0)
        *out++ = '-';
    return put_digits(out, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

/* A whole number below 1e21. */
static uint8_t *put_whole(uint8_t *out, double number)
{
    unsigned __int128 whole;

    if (LIKELY(number < 1e19))
        return put_digits(out, (uint64_t)number);
    whole = (unsigned __int128)number;
    out = put_digits(out, (uint64_t)(whole / HUNDRED_MILLION));
    whole %= HUNDRED_MILLION;
    out = put_four(out, (uint32_t)(whole / TEN_THOUSAND));
    return put_four(out, (uint32_t)(whole % TEN_THOUSAND));
}

/* Most fractions in documents have few decimals. If number is n / 10^decimals for a whole n below
 * 10^15, that division rounds to just this double, and no other decimal of so few digits does: so
 * n is its shortest form. NULL if it is not so. */
static uint8_t *put_decimals(uint8_t *out, double number, double power, unsigned decimals)
{
    double scaled = nearbyint(number * power);
    uint8_t *last;
    uint64_t whole, rest;

    if (scaled >= 1e15 || scaled / power != number)
        return NULL;
    whole = (uint64_t)scaled / (uint64_t)power;
    rest = (uint64_t)scaled % (uint64_t)power;
    out = put_digits(out, whole);
    *out++ = '.';
    last = out + decimals;
    for (uint8_t *at = last; at > out; at -= 2) {
        memcpy(at - 2, two_digits + rest % 100 * 2, 2);
        rest /= 100;
    }
    while (last[-1] == '0')
        last--;
    return last;
}

/* The shortest form, with an exponent in as few digits as it has. */
static uint8_t *put_shortest(uint8_t *out, double number)
{
    char text[DOUBLE_TEXT_MAX];
    size_t len = double_to_text(number, text);

    if (len >= 4 && text[len - 4] == 'e' && text[len - 2] == '0') {
        text[len - 2] = text[len - 1];
        len--;
    }
    memcpy(out, text, len);
    return out + len;
}

/* Whole numbers up to 1e21 as their digits, as JavaScript shows them. */
uint8_t *json_number_write_double(uint8_t *out, double number)
{
    uint8_t *after = NULL;

    if (signbit(number))
        *out++ = '-';
    number = fabs(number);
    if (number < 1e21 && number == trunc(number))
        return put_whole(out, number);
    if (number >= 1e-6)
        after = put_decimals(out, number, 1e4, 4);
    if (!after && number >= 1e-6)
        after = put_decimals(out, number, 1e10, 10);
    return after ? after : put_shortest(out, number);
}
