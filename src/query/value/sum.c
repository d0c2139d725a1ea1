/* Adding x to the expansion: each part and x become their rounded sum, which goes on as x, and the
 * exact error of it, which stays if it is not zero. */
#include "query/value/sum.h"

#include "base/memory.h"
#include "query/value/compare.h"

#include <math.h>

enum { PARTS_FIRST = 4 };

void query_sum_done(struct query_sum *sum)
{
    memory_free(sum->parts);
    if (sum->decimals)
        query_decimal_sum_done(sum->decimals);
    memory_free(sum->decimals);
    *sum = (struct query_sum){0};
}

static void special_add(struct query_sum *sum, double number)
{
    sum->special = sum->has_special ? sum->special + number : number;
    sum->has_special = true;
}

/* high + *ret_low is x + y exactly; |x| >= |y|. */
static double two_sum(double x, double y, double *ret_low)
{
    double high = x + y;

    *ret_low = y - (high - x);
    return high;
}

/* Makes the parts as few as can be, each with all of its 53 bits used: from the largest down, then
 * up again. Then there are at most 41, the range of a double having 2098 bits. */
static void parts_compress(struct query_sum *sum)
{
    size_t bottom = sum->part_count - 1, top = 0;
    double high = sum->parts[bottom], low;

    for (size_t i = bottom; i-- > 0;) {
        high = two_sum(high, sum->parts[i], &low);
        if (low != 0) {
            sum->parts[bottom--] = high;
            high = low;
        }
    }
    sum->parts[bottom] = high;
    for (size_t i = bottom + 1; i < sum->part_count; i++) {
        high = two_sum(sum->parts[i], high, &low);
        if (low != 0)
            sum->parts[top++] = low;
    }
    sum->parts[top++] = high;
    sum->part_count = (uint8_t)top;
}

static void parts_make_room(struct query_sum *sum)
{
    if (sum->part_count == QUERY_SUM_PARTS_MAX)
        parts_compress(sum);
    if (sum->part_count < sum->part_capacity)
        return;
    assert(sum->part_count < QUERY_SUM_PARTS_MAX);
    sum->part_capacity = sum->part_capacity ? (uint8_t)(sum->part_capacity * 2) : PARTS_FIRST;
    sum->parts = memory_realloc(sum->parts, sum->part_capacity * sizeof *sum->parts);
}

static void part_add(struct query_sum *sum, double x)
{
    uint8_t kept = 0;

    parts_make_room(sum);
    for (uint8_t i = 0; i < sum->part_count; i++) {
        double y = sum->parts[i], low;

        x = fabs(x) < fabs(y) ? two_sum(y, x, &low) : two_sum(x, y, &low);
        if (!isfinite(x)) {
            special_add(sum, x);
            sum->part_count = 0;
            return;
        }
        if (low != 0)
            sum->parts[kept++] = low;
    }
    sum->parts[kept++] = x;
    sum->part_count = kept;
}

static void double_add(struct query_sum *sum, double number)
{
    if (isfinite(number))
        part_add(sum, number);
    else
        special_add(sum, number);
}

static struct query_decimal_sum *decimals_of(struct query_sum *sum)
{
    if (!sum->decimals)
        sum->decimals = MEMORY_NEW(struct query_decimal_sum);
    return sum->decimals;
}

static void decimal_add_to(struct query_decimal_sum *sum, struct document_decimal packed)
{
    struct decimal decimal = decimal_unpack(packed);

    query_decimal_sum_add(sum, decimal.negative, decimal.coefficient, decimal.exponent);
}

static void decimal_keep(struct query_sum *sum, const struct document_value *number)
{
    struct query_decimal_sum *decimals = decimals_of(sum);
    double real = 0;

    if (decimal_unpack(number->decimal).kind == DECIMAL_FINITE) {
        decimal_add_to(decimals, number->decimal);
    } else {
        document_to_double(number, &real);
        special_add(sum, real);
    }
}

bool query_sum_add(struct query_sum *sum, const struct document_value *number, bool decimals)
{
    int64_t integer;
    double real;

    if (decimals && number->type == DOCUMENT_DECIMAL128) {
        decimal_keep(sum, number);
        return true;
    }

    if (query_stored_integer(number, &integer)) {
        sum->has_longs |= number->type == DOCUMENT_INT64;
        sum->integer += integer; /* 2^64 additions would have to come before it runs over */
        return true;
    }
    if (!document_to_double(number, &real))
        return false;
    sum->has_doubles = true;
    double_add(sum, real);
    return true;
}

void query_sum_merge(struct query_sum *sum, const struct query_sum *other)
{
    sum->integer += other->integer;
    sum->has_doubles |= other->has_doubles;
    sum->has_longs |= other->has_longs;
    if (other->has_special)
        special_add(sum, other->special);
    if (other->decimals)
        query_decimal_sum_merge(decimals_of(sum), other->decimals);
    for (uint8_t i = 0; i < other->part_count; i++)
        part_add(sum, other->parts[i]);
}

/* The parts rounded once: from the largest down until one leaves a rest; a rest of exactly half a
 * step is rounded by the sign of the part below it. */
static double parts_round(const struct query_sum *sum)
{
    size_t left = sum->part_count;
    double high, low = 0;

    if (left == 0)
        return 0;
    high = sum->parts[--left];
    while (left > 0) {
        high = two_sum(high, sum->parts[--left], &low);
        if (low != 0)
            break;
    }
    if (left > 0 &&
        ((low < 0 && sum->parts[left - 1] < 0) || (low > 0 && sum->parts[left - 1] > 0))) {
        double twice = low * 2, nearer = high + twice;

        if (twice == nearer - high)
            high = nearer;
    }
    return high;
}

/* The integer as parts of at most 48 bits, each exact in a double. */
static void integer_add_parts(struct query_sum *sum, __int128 integer)
{
    const int bits = 48;

    for (int shift = 0; integer != 0; shift += bits) {
        __int128 rest = integer / ((__int128)1 << bits);

        part_add(sum, ldexp((double)(int64_t)(integer - rest * ((__int128)1 << bits)), shift));
        integer = rest;
    }
}

/* A copy to work on, which has room for all parts. */
static struct query_sum parts_copy(const struct query_sum *sum, double parts[QUERY_SUM_PARTS_MAX])
{
    struct query_sum all = *sum;

    if (all.part_count)
        memcpy(parts, sum->parts, all.part_count * sizeof *parts);
    all.parts = parts;
    all.part_capacity = QUERY_SUM_PARTS_MAX;
    return all;
}

void query_sum_halves(const struct query_sum *sum, double *ret_high, double *ret_low)
{
    double parts[QUERY_SUM_PARTS_MAX];
    struct query_sum all = parts_copy(sum, parts);

    integer_add_parts(&all, all.integer);
    *ret_low = 0;
    *ret_high = all.has_special ? all.special : parts_round(&all);
    if (!isfinite(*ret_high))
        return;
    part_add(&all, -*ret_high);
    *ret_low = parts_round(&all);
}

/* The integer exactly; of doubles the two halves. */
static struct document_value decimal_value(const struct query_sum *sum)
{
    struct query_sum doubles = *sum;
    struct query_decimal_sum all = {0};
    struct document_decimal value;
    double high, low;

    if (sum->has_special)
        return document_decimal_value(decimal_from_double_whole(sum->special));
    query_decimal_sum_merge(&all, sum->decimals);
    if (sum->integer)
        query_decimal_sum_add(&all, sum->integer < 0,
                              sum->integer < 0 ? -(unsigned __int128)sum->integer
                                               : (unsigned __int128)sum->integer,
                              0);
    doubles.integer = 0;
    query_sum_halves(&doubles, &high, &low);
    if (!isfinite(high)) {
        query_decimal_sum_done(&all);
        return document_decimal_value(decimal_from_double_whole(high));
    }
    if (high != 0)
        decimal_add_to(&all, decimal_from_double_whole(high));
    if (low != 0)
        decimal_add_to(&all, decimal_from_double_whole(low));
    value = query_decimal_sum_value(&all);
    query_decimal_sum_done(&all);
    return document_decimal_value(value);
}

struct document_value query_sum_value(const struct query_sum *sum)
{
    double parts[QUERY_SUM_PARTS_MAX];
    struct query_sum all;

    if (sum->decimals)
        return decimal_value(sum);
    if (!sum->has_doubles && sum->integer >= INT64_MIN && sum->integer <= INT64_MAX)
        return query_integer((int64_t)sum->integer);
    all = parts_copy(sum, parts);
    integer_add_parts(&all, all.integer);
    return document_double(all.has_special ? all.special : parts_round(&all));
}

struct document_value query_sum_typed(const struct query_sum *sum)
{
    struct document_value value = query_sum_value(sum);

    return sum->has_longs && value.type == DOCUMENT_INT32 ? document_int64(value.int32) : value;
}

size_t query_sum_bytes(const struct query_sum *sum)
{
    size_t bytes = sum->part_capacity * sizeof(double);

    if (sum->decimals)
        bytes += sizeof *sum->decimals + sum->decimals->count * sizeof(int64_t);
    return bytes;
}

/* --- As BSON ----------------------------------------------------------------------------------
 *
 *     h, l     the integer's upper and lower 64 bits
 *     d        true: a double was among the numbers
 *     w        true: a long was; absent: none
 *     s        what was not finite; absent: nothing
 *     p        the parts
 *     m        the sum of decimals: see decimal_sum.c; absent: there was none */

/* Of decimals that were all not finite there is nothing to tell but that. */
static void decimals_save(const struct query_decimal_sum *decimals, struct buf *buf)
{
    if (decimals->begun)
        query_decimal_sum_save(decimals, SLICE("m"), buf);
    else
        document_append_bool(buf, SLICE("m"), true);
}

static bool decimals_load(struct query_sum *sum, struct slice document)
{
    struct document_value decimals;

    if (!document_find(document, SLICE("m"), &decimals))
        return true;
    return decimals.type == DOCUMENT_BOOL ? decimals_of(sum) != NULL
                                          : query_decimal_sum_load(decimals_of(sum), &decimals);
}

void query_sum_save(const struct query_sum *sum, struct slice key, struct buf *buf)
{
    size_t begin = document_append_object_begin(buf, key), parts;

    document_append_int64(buf, SLICE("h"), (int64_t)(sum->integer >> 64));
    document_append_int64(buf, SLICE("l"), (int64_t)(uint64_t)sum->integer);
    document_append_bool(buf, SLICE("d"), sum->has_doubles);
    if (sum->has_longs)
        document_append_bool(buf, SLICE("w"), true);
    if (sum->has_special)
        document_append_double(buf, SLICE("s"), sum->special);
    parts = document_append_array_begin(buf, SLICE("p"));
    for (uint8_t i = 0; i < sum->part_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        document_append_double(buf, document_index_key(i, text), sum->parts[i]);
    }
    document_end(buf, parts);
    if (sum->decimals)
        decimals_save(sum->decimals, buf);
    document_end(buf, begin);
}

bool query_sum_load(struct query_sum *sum, const struct document_value *value)
{
    struct document_value high, low, doubles, special, parts;
    struct document_iter iter;

    *sum = (struct query_sum){0};
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("h"), &high) ||
        !document_find(value->document, SLICE("l"), &low) ||
        !document_find(value->document, SLICE("d"), &doubles) ||
        !document_find(value->document, SLICE("p"), &parts) || high.type != DOCUMENT_INT64 ||
        low.type != DOCUMENT_INT64 || doubles.type != DOCUMENT_BOOL || parts.type != DOCUMENT_ARRAY)
        return false;
    if (high.int64 > INT64_MAX / 2 || high.int64 < INT64_MIN / 2)
        return false; /* no sum of ours, and one more could run over */
    sum->integer = (__int128)((unsigned __int128)(uint64_t)high.int64 << 64 | (uint64_t)low.int64);
    sum->has_doubles = doubles.boolean;
    sum->has_longs = document_find(value->document, SLICE("w"), &special);
    if (document_find(value->document, SLICE("s"), &special)) {
        if (special.type != DOCUMENT_DOUBLE)
            return false;
        special_add(sum, special.number);
    }
    if (!decimals_load(sum, value->document))
        return false;
    document_iter_init(&iter, parts.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_DOUBLE || !isfinite(iter.value.number))
            return false;
        part_add(sum, iter.value.number);
    }
    return true;
}
