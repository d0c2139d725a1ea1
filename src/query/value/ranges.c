/* Bounds are bytes of keys or what follows all keys with a beginning. No key begins another, so a
 * bound never splits the entries of one value. */
#include "query/value/ranges.h"

#include "index/policy.h"

#include <stdlib.h>

static struct query_ranges one(struct slice min, struct slice max, struct arena *arena)
{
    struct query_ranges ranges = {ARENA_ARRAY(arena, struct cursor_range, 1), 1};

    ranges.list[0] = (struct cursor_range){min, max};
    return ranges;
}

struct query_ranges query_ranges_all(struct arena *arena)
{
    return one(SLICE("\x01"), SLICE("\xFF"), arena);
}

static struct slice key_of(enum document_order order, const struct document_value *value,
                           bool *ret_cut, struct arena *arena)
{
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    *ret_cut = document_key_append_cut(order, value, INDEX_VALUE_MAX, &key);
    return arena_copy(arena, buf_slice(&key));
}

/* The first byte of the keys of a type. */
static struct slice rank_of(enum document_order order, const struct document_value *value,
                            struct arena *arena)
{
    bool cut;

    return slice_first(key_of(order, value, &cut, arena), 1);
}

struct query_ranges query_ranges_of_type_as(enum document_order order,
                                            const struct document_value *value, struct arena *arena)
{
    struct slice rank = rank_of(order, value, arena);

    return one(rank, cursor_prefix_end(arena, rank), arena);
}

struct query_ranges query_ranges_of_type(enum document_order order, enum document_type type,
                                         struct arena *arena)
{
    struct document_value value = {.type = type};

    assert(type != DOCUMENT_OBJECT && type != DOCUMENT_ARRAY);
    return query_ranges_of_type_as(order, &value, arena);
}

struct query_ranges query_ranges_point(enum document_order order,
                                       const struct document_value *value, bool *ret_exact,
                                       struct arena *arena)
{
    bool cut;
    struct slice key = key_of(order, value, &cut, arena);

    *ret_exact = !cut;
    return one(key, cursor_prefix_end(arena, key), arena);
}

struct query_ranges query_ranges_prefix(enum document_order order, struct slice prefix,
                                        bool *ret_exact, struct arena *arena)
{
    struct document_value value = document_string(prefix);
    bool cut;
    struct slice key = key_of(order, &value, &cut, arena);

    *ret_exact = !cut;
    if (!cut)
        key.len--; /* the end of the text */
    return one(key, cursor_prefix_end(arena, key), arena);
}

struct query_ranges query_ranges_below(enum document_order order,
                                       const struct document_value *value, bool at_too,
                                       bool *ret_exact, struct arena *arena)
{
    bool cut;
    struct slice key = key_of(order, value, &cut, arena);

    *ret_exact = !cut;
    return one(slice_first(key, 1), at_too || cut ? cursor_prefix_end(arena, key) : key, arena);
}

struct query_ranges query_ranges_above(enum document_order order,
                                       const struct document_value *value, bool at_too,
                                       bool *ret_exact, struct arena *arena)
{
    bool cut;
    struct slice key = key_of(order, value, &cut, arena);

    *ret_exact = !cut;
    return one(at_too || cut ? key : cursor_prefix_end(arena, key),
               cursor_prefix_end(arena, slice_first(key, 1)), arena);
}

/* --- Sets ------------------------------------------------------------------------------------ */

static int by_min(const void *a, const void *b)
{
    return slice_compare(((const struct cursor_range *)a)->min,
                         ((const struct cursor_range *)b)->min);
}

struct query_ranges query_ranges_union(const struct cursor_range *list, size_t count,
                                       struct arena *arena)
{
    struct query_ranges ranges = {ARENA_ARRAY(arena, struct cursor_range, count), 0};
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (slice_compare(list[i].min, list[i].max) < 0)
            ranges.list[ranges.count++] = list[i];
    }
    if (ranges.count > 1)
        qsort(ranges.list, ranges.count, sizeof *ranges.list, by_min);
    for (size_t i = 0; i < ranges.count; i++) {
        struct cursor_range *last = kept ? &ranges.list[kept - 1] : NULL;

        if (last && slice_compare(ranges.list[i].min, last->max) <= 0) {
            if (slice_compare(ranges.list[i].max, last->max) > 0)
                last->max = ranges.list[i].max;
        } else {
            ranges.list[kept++] = ranges.list[i];
        }
    }
    ranges.count = kept;
    return ranges;
}

static struct slice larger(struct slice a, struct slice b)
{
    return slice_compare(a, b) >= 0 ? a : b;
}

static struct slice smaller(struct slice a, struct slice b)
{
    return slice_compare(a, b) <= 0 ? a : b;
}

struct query_ranges query_ranges_intersect(struct query_ranges a, struct query_ranges b,
                                           struct arena *arena)
{
    struct query_ranges both = {ARENA_ARRAY(arena, struct cursor_range, a.count + b.count + 1), 0};

    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        struct cursor_range range = {larger(a.list[i].min, b.list[j].min),
                                     smaller(a.list[i].max, b.list[j].max)};

        if (slice_compare(range.min, range.max) < 0)
            both.list[both.count++] = range;
        if (slice_compare(a.list[i].max, b.list[j].max) < 0)
            i++;
        else
            j++;
    }
    return both;
}

static struct slice inverted(struct slice bytes, struct arena *arena)
{
    uint8_t *copy = arena_alloc(arena, bytes.len + 1);

    for (size_t i = 0; i < bytes.len; i++)
        copy[i] = (uint8_t)~bytes.data[i];
    return slice_of(copy, bytes.len);
}

/* What is at or above min begins with its bytes inverted at the most, and what is below max comes
 * behind everything that begins with max inverted. */
struct query_ranges query_ranges_invert(struct query_ranges ranges, struct arena *arena)
{
    struct query_ranges turned = {ARENA_ARRAY(arena, struct cursor_range, ranges.count + 1),
                                  ranges.count};

    for (size_t i = 0; i < ranges.count; i++) {
        struct slice min = cursor_prefix_end(arena, inverted(ranges.list[i].max, arena));
        struct slice max = cursor_prefix_end(arena, inverted(ranges.list[i].min, arena));

        turned.list[ranges.count - 1 - i] =
            (struct cursor_range){min, max.data ? max : SLICE("\xFF\xFF")};
    }
    return turned;
}

static struct slice joined(struct slice a, struct slice b, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, a.len + b.len + 1);

    if (a.len)
        memcpy(bytes, a.data, a.len);
    if (b.len)
        memcpy(bytes + a.len, b.data, b.len);
    return slice_of(bytes, a.len + b.len);
}

struct query_ranges query_ranges_behind(struct slice before, struct query_ranges ranges,
                                        struct arena *arena)
{
    struct query_ranges longer = {ARENA_ARRAY(arena, struct cursor_range, ranges.count + 1),
                                  ranges.count};

    for (size_t i = 0; i < ranges.count; i++)
        longer.list[i] = (struct cursor_range){joined(before, ranges.list[i].min, arena),
                                               joined(before, ranges.list[i].max, arena)};
    return longer;
}
