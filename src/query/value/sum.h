/* Sum: numbers added exactly and rounded once, at the end. Whatever order they come in, and however
 * they were spread over partitions, the result is the same.
 *
 * Integers are kept as a 128-bit integer. Doubles are kept as a few doubles that do not overlap and
 * whose exact sum is the sum of all (Shewchuk's expansions). Decimals are kept in digits
 * (decimal_sum.h), or as doubles where the language knows no others. Numbers that are not finite,
 * and sums that leave the range on the way, end in an infinity or NaN. */
#pragma once

#include "document/bson.h"
#include "query/value/decimal_sum.h"

enum { QUERY_SUM_PARTS_MAX = 64 };

/* All zero: nothing added yet. */
struct query_sum {
    __int128 integer;
    double special; /* the sum of what is not finite */
    bool has_special;
    bool has_doubles;
    bool has_longs;
    uint8_t part_count, part_capacity;
    double *parts; /* owned, by growing magnitude; most sums need two or three */
    struct query_decimal_sum *decimals; /* owned; NULL: there was none */
};

void query_sum_done(struct query_sum *sum);

/* Adds a number; false if it is none. decimals: a Decimal128 is kept as one. */
bool query_sum_add(struct query_sum *sum, const struct document_value *number, bool decimals);
void query_sum_merge(struct query_sum *sum, const struct query_sum *other);

/* An integer if only integers were added and it fits; a decimal if one was kept: then doubles count
 * with the 34 first digits of the nearest to their sum and of what that leaves; else a double. */
struct document_value query_sum_value(const struct query_sum *sum);

/* The same, but a long where a long was among integers, as MongoDB has it. */
struct document_value query_sum_typed(const struct query_sum *sum);

/* The nearest double to the sum, and that to what it leaves. Not of decimals. */
void query_sum_halves(const struct query_sum *sum, double *ret_high, double *ret_low);

/* Bytes it holds on the heap. */
size_t query_sum_bytes(const struct query_sum *sum);

/* As an element of a BSON document, and back; false: it is none. */
void query_sum_save(const struct query_sum *sum, struct slice key, struct buf *buf);
NODISCARD bool query_sum_load(struct query_sum *sum, const struct document_value *value);
