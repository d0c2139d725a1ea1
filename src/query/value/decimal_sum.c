/* A whole number in limbs of nine digits, of which those are kept that lie between the smallest and
 * the largest addend: two or three for sums of money, 1,371 at most. Limbs have a sign each and
 * room for 2^33 additions before a carry must be passed on. Parts that do not overlap, as sums of
 * doubles have them (sum.c), were weighed: in decimals they are not unique, so a sum on the edge
 * between two results could be rounded either way. Rounding itself is the library's. */
#include "query/value/decimal_sum.h"

#include "base/memory.h"
#include "document/bson.h"

enum {
    LIMB_DIGITS = 9,
    LIMB = 1000000000,
    EXPONENT_FIRST = -6183, /* of limb 0: a multiple of nine not above the least of a decimal */
    LIMBS_MAX = 1400,
    DIGITS_READ = 100, /* of the result, before it is rounded; what follows counts as one digit */
};

static const uint64_t ADDITIONS_MAX = (uint64_t)1 << 32;

void query_decimal_sum_done(struct query_decimal_sum *sum)
{
    memory_free(sum->limbs);
    *sum = (struct query_decimal_sum){0};
}

/* Limbs from first to end are there. */
static void limbs_reach(struct query_decimal_sum *sum, uint32_t first, uint32_t end)
{
    uint32_t begin = sum->count ? MIN(first, sum->first) : first;
    uint32_t stop = sum->count ? MAX(end, sum->first + sum->count) : end;
    int64_t *limbs;

    assert(stop <= LIMBS_MAX);
    if (begin == sum->first && stop == sum->first + sum->count)
        return;
    limbs = memory_alloc_zero(memory_array_size(stop - begin, sizeof *limbs));
    if (sum->count)
        memcpy(limbs + (sum->first - begin), sum->limbs, sum->count * sizeof *limbs);
    memory_free(sum->limbs);
    sum->limbs = limbs;
    sum->first = begin;
    sum->count = stop - begin;
}

/* No limb is above nine digits then; their signs stay as they come. */
static void carries_pass(struct query_decimal_sum *sum)
{
    int64_t carry = 0;

    for (uint32_t i = 0; i < sum->count; i++) {
        carry += sum->limbs[i];
        sum->limbs[i] = carry % LIMB;
        carry /= LIMB;
    }
    for (; carry; carry /= LIMB) {
        limbs_reach(sum, sum->first, sum->first + sum->count + 1);
        sum->limbs[sum->count - 1] = carry % LIMB;
    }
    sum->additions = 0;
}

static void additions_count(struct query_decimal_sum *sum, uint64_t count)
{
    sum->additions += count;
    if (sum->additions >= ADDITIONS_MAX)
        carries_pass(sum);
}

void query_decimal_sum_add(struct query_decimal_sum *sum, bool negative,
                           unsigned __int128 coefficient, int32_t exponent)
{
    uint32_t at = (uint32_t)(exponent - EXPONENT_FIRST) / LIMB_DIGITS, end = at + 1;
    int64_t unit = 1, room = LIMB; /* the digits of a limb are divided at the exponent */
    unsigned __int128 rest;

    for (int32_t i = (exponent - EXPONENT_FIRST) % LIMB_DIGITS; i > 0; i--) {
        unit *= 10;
        room /= 10;
    }
    for (rest = coefficient / (uint64_t)room; rest; rest /= LIMB)
        end++;
    limbs_reach(sum, at, end);
    sum->exponent = sum->begun ? MIN(sum->exponent, exponent) : exponent;
    sum->begun = true;
    for (uint32_t i = at - sum->first; coefficient; i++) {
        int64_t digits = (int64_t)(coefficient % (uint64_t)room) * unit;

        sum->limbs[i] += negative ? -digits : digits;
        coefficient /= (uint64_t)room;
        room = LIMB;
        unit = 1;
    }
    additions_count(sum, 1);
}

void query_decimal_sum_merge(struct query_decimal_sum *sum, const struct query_decimal_sum *other)
{
    if (!other->begun)
        return;
    limbs_reach(sum, other->first, other->first + other->count);
    for (uint32_t i = 0; i < other->count; i++)
        sum->limbs[other->first - sum->first + i] += other->limbs[i];
    sum->exponent = sum->begun ? MIN(sum->exponent, other->exponent) : other->exponent;
    sum->begun = true;
    additions_count(sum, other->additions + 1);
}

/* --- The value ------------------------------------------------------------------------------- */

/* Makes all limbs digits of one sign: which one, is said. */
static bool limbs_settle(struct query_decimal_sum *sum)
{
    bool negative = false;
    int64_t carry = 0;

    carries_pass(sum);
    for (uint32_t i = sum->count; i-- > 0 && !negative;) {
        negative = sum->limbs[i] < 0;
        if (sum->limbs[i])
            break; /* the highest one outweighs all others */
    }
    for (uint32_t i = 0; i < sum->count; i++) {
        carry += negative ? -sum->limbs[i] : sum->limbs[i];
        sum->limbs[i] = carry < 0 ? carry + LIMB : carry;
        carry = carry < 0 ? -1 : 0;
    }
    assert(carry == 0);
    return negative;
}

/* The first digits, from the highest that is not 0 down to the exponent. ret_left: how many were
 * left out. */
static size_t digits_read(const struct query_decimal_sum *sum, char digits[DIGITS_READ + 1],
                          int32_t *ret_left)
{
    int32_t skipped = sum->exponent - (EXPONENT_FIRST + (int32_t)sum->first * LIMB_DIGITS);
    size_t count = 0;
    bool more = false;

    *ret_left = 0;
    for (uint32_t i = sum->count; i-- > 0;) {
        int64_t power = LIMB / 10;

        for (int32_t nth = LIMB_DIGITS; nth-- > 0 && (i || nth >= skipped); power /= 10) {
            char digit = (char)('0' + sum->limbs[i] / power % 10);

            if (count == DIGITS_READ) {
                more |= digit != '0';
                (*ret_left)++;
            } else if (count || digit != '0') {
                digits[count++] = digit;
            }
        }
    }
    if (more) {
        digits[count++] = '1';
        (*ret_left)--;
    }
    return count;
}

struct document_decimal query_decimal_sum_value(const struct query_decimal_sum *sum)
{
    struct query_decimal_sum copy = {0};
    struct document_decimal value = {0};
    char text[DIGITS_READ + 32];
    char digits[DIGITS_READ + 1];
    int32_t left;
    size_t count;
    int length;
    bool negative, read;

    if (!sum->begun)
        return decimal_from_int64(0);
    query_decimal_sum_merge(&copy, sum);
    negative = limbs_settle(&copy);
    count = digits_read(&copy, digits, &left);
    query_decimal_sum_done(&copy);
    length = snprintf(text, sizeof text, "%s%.*sE%d", negative ? "-" : "", count ? (int)count : 1,
                      count ? digits : "0", sum->exponent + left);
    read = decimal_from_text(slice_of(text, (size_t)length), &value, NULL);
    assert(read);
    return value;
}

/* --- As BSON ----------------------------------------------------------------------------------
 *
 *     e    the least exponent
 *     f    which limb is the first
 *     l    the limbs, int64 */

void query_decimal_sum_save(const struct query_decimal_sum *sum, struct slice key, struct buf *buf)
{
    struct query_decimal_sum copy = {0};
    size_t begin = document_append_object_begin(buf, key), list;

    query_decimal_sum_merge(&copy, sum);
    carries_pass(&copy);
    document_append_int64(buf, SLICE("e"), copy.exponent);
    document_append_int64(buf, SLICE("f"), copy.first);
    list = document_append_array_begin(buf, SLICE("l"));
    for (uint32_t i = 0; i < copy.count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        document_append_int64(buf, document_index_key(i, text), copy.limbs[i]);
    }
    document_end(buf, list);
    document_end(buf, begin);
    query_decimal_sum_done(&copy);
}

bool query_decimal_sum_load(struct query_decimal_sum *sum, const struct document_value *value)
{
    struct document_value exponent, first, limbs;
    struct document_iter iter;
    size_t count;

    *sum = (struct query_decimal_sum){0};
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("e"), &exponent) ||
        !document_find(value->document, SLICE("f"), &first) ||
        !document_find(value->document, SLICE("l"), &limbs) || exponent.type != DOCUMENT_INT64 ||
        first.type != DOCUMENT_INT64 || limbs.type != DOCUMENT_ARRAY)
        return false;
    count = document_count(limbs.document);
    if (exponent.int64 < -DECIMAL_EXPONENT_BIAS || exponent.int64 > DECIMAL_EXPONENT_MAX ||
        first.int64 != (exponent.int64 - EXPONENT_FIRST) / LIMB_DIGITS || count == 0 ||
        (size_t)first.int64 + count > LIMBS_MAX - 4)
        return false;
    limbs_reach(sum, (uint32_t)first.int64, (uint32_t)first.int64 + (uint32_t)count);
    sum->begun = true;
    sum->exponent = (int32_t)exponent.int64;
    document_iter_init(&iter, limbs.document);
    for (uint32_t i = 0; document_iter_next(&iter) && i < count; i++) {
        if (iter.value.type != DOCUMENT_INT64 || iter.value.int64 <= -LIMB ||
            iter.value.int64 >= LIMB)
            return false;
        sum->limbs[i] = iter.value.int64;
    }
    sum->additions = 1;
    return true;
}
