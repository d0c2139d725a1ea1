/* Values that have bytes are kept as the only element of a BSON document in `bytes` (min and max),
 * as elements of one that is not closed yet (makelist), or in an arena of their own (makeset). */
#include "query/value/aggregate.h"

#include "query/value/compare.h"
#include "query/value/set.h"
#include "query/value/value.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Sums of squares lose most of their digits when the square of the sum is taken away: 113 bits
 * leave enough. */
#if LDBL_MANT_DIG >= 113
typedef long double wide;
#else
typedef __float128 wide;
#endif

struct query_aggregate_set {
    struct arena *arena;
    struct query_set values;
};

static const char *const names[] = {
    [QUERY_COUNT] = "COUNT",
    [QUERY_COUNT_IF] = "COUNTIF",
    [QUERY_SUM] = "SUM",
    [QUERY_AVG] = "AVG",
    [QUERY_MIN] = "MIN",
    [QUERY_MAX] = "MAX",
    [QUERY_STD_DEV_POP] = "$stdDevPop",
    [QUERY_STD_DEV_SAMP] = "$stdDevSamp",
    [QUERY_MAKE_LIST] = "MAKELIST",
    [QUERY_MAKE_SET] = "MAKESET",
    [QUERY_TAKE_FIRST] = "$first",
    [QUERY_TAKE_LAST] = "$last",
};

static bool is_sum(const struct query_aggregate *state)
{
    return state->kind == QUERY_SUM || state->kind == QUERY_AVG;
}

static bool is_deviation(const struct query_aggregate *state)
{
    return state->kind == QUERY_STD_DEV_POP || state->kind == QUERY_STD_DEV_SAMP;
}

static bool is_end(const struct query_aggregate *state)
{
    return state->kind == QUERY_TAKE_FIRST || state->kind == QUERY_TAKE_LAST;
}

bool query_aggregate_find(struct slice name, enum query_aggregate_kind *ret_kind)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i][0] != '$' && slice_equal_nocase(name, slice_of_text(names[i]))) {
            *ret_kind = (enum query_aggregate_kind)i;
            return true;
        }
    }
    return false;
}

void query_aggregate_init(struct query_aggregate *state, enum query_aggregate_kind kind,
                          enum document_order order, size_t bytes_max)
{
    *state = (struct query_aggregate){.kind = kind, .order = order, .bytes_max = bytes_max};
    buf_init(&state->bytes, bytes_max);
    buf_init(&state->places, SIZE_MAX); /* values are bounded, and each takes some bytes */
    switch (kind) {
    case QUERY_MIN:
    case QUERY_MAX:
    case QUERY_TAKE_FIRST:
    case QUERY_TAKE_LAST:
        state->value = document_undefined();
        break;
    case QUERY_MAKE_SET:
        state->set = MEMORY_NEW(struct query_aggregate_set);
        state->set->arena = arena_new();
        query_set_init(&state->set->values, order, state->set->arena, 0);
        break;
    default:
        break;
    }
}

void query_aggregate_done(struct query_aggregate *state)
{
    buf_done(&state->bytes);
    buf_done(&state->places);
    if (state->kind == QUERY_MAKE_SET && state->set) {
        arena_free(state->set->arena);
        memory_free(state->set);
        state->set = NULL;
    }
    if (is_sum(state))
        query_sum_done(&state->sum);
    if (is_deviation(state)) {
        query_sum_done(&state->deviation.sum);
        query_sum_done(&state->deviation.squares);
    }
}

static bool too_large(const struct query_aggregate *state, struct error *err)
{
    return error_set(err, ERROR_QUERY_LIMIT, "%s keeps more than the %zu bytes it may",
                     names[state->kind], state->bytes_max);
}

/* --- Adding ---------------------------------------------------------------------------------- */

static bool extreme_keep(struct query_aggregate *state, const struct document_value *value,
                         struct error *err)
{
    struct document_iter iter;
    size_t begin;

    if (query_value_bytes(value) == 0 && value->type != DOCUMENT_STRING) {
        state->value = *value;
        return true;
    }
    buf_clear(&state->bytes);
    begin = document_begin(&state->bytes);
    document_append(&state->bytes, SLICE(""), value);
    document_end(&state->bytes, begin);
    if (buf_overflowed(&state->bytes))
        return too_large(state, err);
    document_iter_init(&iter, buf_slice(&state->bytes));
    if (document_iter_next(&iter))
        state->value = iter.value;
    return true;
}

static bool extreme_add(struct query_aggregate *state, const struct document_value *value,
                        struct error *err)
{
    int order;

    if (state->order == DOCUMENT_ORDER_SQL &&
        (value->type == DOCUMENT_ARRAY || value->type == DOCUMENT_OBJECT)) {
        state->spoiled = true;
        return true;
    }
    if (state->value.type != DOCUMENT_UNDEFINED) {
        order = document_compare(state->order, value, &state->value);
        if (state->kind == QUERY_MIN ? order >= 0 : order <= 0)
            return true;
    }
    return extreme_keep(state, value, err);
}

static bool end_add(struct query_aggregate *state, const struct document_value *value,
                    struct error *err)
{
    if (state->value.type != DOCUMENT_UNDEFINED &&
        (state->kind == QUERY_TAKE_FIRST ? state->at >= state->kept_at
                                         : state->at < state->kept_at))
        return true;
    state->kept_at = state->at;
    return extreme_keep(state, value, err);
}

static uint64_t *places(const struct query_aggregate *state)
{
    return (uint64_t *)(void *)state->places.data;
}

static bool list_add(struct query_aggregate *state, const struct document_value *value,
                     struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];

    buf_append(&state->places, &state->at, sizeof state->at);
    if (state->bytes.len == 0)
        document_begin(&state->bytes);
    document_append(&state->bytes, document_index_key((uint32_t)state->count - 1, text), value);
    if (!buf_reserve(&state->bytes, 1)) /* for the end, which finishing must be able to write */
        return too_large(state, err);
    return !buf_overflowed(&state->bytes) || too_large(state, err);
}

static bool set_add(struct query_aggregate *state, const struct document_value *value,
                    struct error *err)
{
    struct query_aggregate_set *set = state->set;
    struct document_value copy;
    size_t found = query_set_find(&set->values, value);
    bool is_new;

    if (found != SIZE_MAX) {
        places(state)[found] = MIN(places(state)[found], state->at);
        return true;
    }
    buf_append(&state->places, &state->at, sizeof state->at);
    copy = query_value_copy(value, set->arena);
    query_set_add(&set->values, &copy, &is_new);
    return arena_used(set->arena) <= state->bytes_max || too_large(state, err);
}

/* The square is a double and what rounding took of it. */
static bool deviation_add(struct query_deviation *deviation, const struct document_value *value)
{
    struct document_value part;
    double number, square;

    if (!document_to_double(value, &number))
        return false;
    square = number * number;
    part = document_double(number);
    query_sum_add(&deviation->sum, &part, false);
    part = document_double(square);
    query_sum_add(&deviation->squares, &part, false);
    part = document_double(isfinite(square) ? fma(number, number, -square) : 0);
    query_sum_add(&deviation->squares, &part, false);
    return true;
}

bool query_aggregate_add(struct query_aggregate *state, const struct document_value *value,
                         struct error *err)
{
    if (value->type == DOCUMENT_UNDEFINED || state->spoiled)
        return true;
    if (state->kind == QUERY_COUNT_IF && !(value->type == DOCUMENT_BOOL && value->boolean))
        return true;
    if ((state->kind == QUERY_MAKE_LIST || state->kind == QUERY_MAKE_SET) &&
        !query_value_nests_within(value, QUERY_VALUE_DEPTH_MAX - 1))
        return error_set(err, ERROR_TOO_DEEP, "a value would be nested deeper than %d levels",
                         QUERY_VALUE_DEPTH_MAX);
    state->count++;
    switch (state->kind) {
    case QUERY_SUM:
    case QUERY_AVG:
        state->spoiled = !query_sum_add(&state->sum, value, state->order == DOCUMENT_ORDER_MONGO);
        return true;
    case QUERY_STD_DEV_POP:
    case QUERY_STD_DEV_SAMP:
        state->spoiled = !deviation_add(&state->deviation, value);
        return true;
    case QUERY_MIN:
    case QUERY_MAX:
        return extreme_add(state, value, err);
    case QUERY_TAKE_FIRST:
    case QUERY_TAKE_LAST:
        return end_add(state, value, err);
    case QUERY_MAKE_LIST:
        return list_add(state, value, err);
    case QUERY_MAKE_SET:
        return set_add(state, value, err);
    default:
        return true;
    }
}

bool query_aggregate_add_times(struct query_aggregate *state, const struct document_value *value,
                               uint64_t times, struct error *err)
{
    uint64_t before = state->count;

    if (times == 0)
        return true;
    if (!query_aggregate_add(state, value, err))
        return false;
    if (is_sum(state) || is_deviation(state) || state->kind == QUERY_MAKE_LIST) {
        while (--times)
            if (!query_aggregate_add(state, value, err))
                return false;
    } else if (state->count > before) { /* nothing else of the others knows how often */
        state->count += times - 1;
    }
    return true;
}

/* Adds all elements of an array, as another state has collected them at these places. */
static bool elements_add(struct query_aggregate *state, struct slice array, const uint64_t *at,
                         struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        state->at = *at++;
        if (!query_aggregate_add(state, &iter.value, err))
            return false;
    }
    return true;
}

/* The list as a closed array. The end is written behind what counts, so that more can follow. */
static struct slice list_array(const struct query_aggregate *state)
{
    struct buf bytes = state->bytes;

    if (bytes.len == 0)
        return slice_of("\x05\0\0\0", 5);
    document_end(&bytes, 0); /* room was made for this byte when the last element came */
    return buf_slice(&bytes);
}

bool query_aggregate_merge(struct query_aggregate *state, const struct query_aggregate *other,
                           struct error *err)
{
    assert(state->kind == other->kind);
    state->spoiled |= other->spoiled;
    switch (state->kind) {
    case QUERY_SUM:
    case QUERY_AVG:
        state->count += other->count;
        query_sum_merge(&state->sum, &other->sum);
        return true;
    case QUERY_STD_DEV_POP:
    case QUERY_STD_DEV_SAMP:
        state->count += other->count;
        query_sum_merge(&state->deviation.sum, &other->deviation.sum);
        query_sum_merge(&state->deviation.squares, &other->deviation.squares);
        return true;
    case QUERY_MIN:
    case QUERY_MAX:
        return query_aggregate_add(state, &other->value, err);
    case QUERY_TAKE_FIRST:
    case QUERY_TAKE_LAST:
        state->at = other->kept_at;
        return query_aggregate_add(state, &other->value, err);
    case QUERY_MAKE_LIST:
        return elements_add(state, list_array(other), places(other), err);
    case QUERY_MAKE_SET:
        for (size_t i = 0; i < other->set->values.count; i++) {
            state->at = places(other)[i];
            if (!query_aggregate_add(state, &other->set->values.values[i], err))
                return false;
        }
        return true;
    default:
        state->count += other->count;
        return true;
    }
}

/* --- Results --------------------------------------------------------------------------------- */

struct collected {
    uint64_t at;
    size_t number; /* among equals, as they came */
    struct document_value value;
};

static int by_place(const void *a, const void *b)
{
    const struct collected *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool is_in_place(const struct query_aggregate *state, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (places(state)[i] < places(state)[i - 1])
            return false;
    return true;
}

/* The values in the order of their places, of a state that has them otherwise: it takes them over,
 * so that the result is the state's own. */
static void collected_sort(struct query_aggregate *state, struct slice array)
{
    size_t count = document_count(array), begin;
    struct collected *list = memory_alloc(memory_array_size(count, sizeof *list));
    struct document_iter iter;
    struct buf sorted;

    document_iter_init(&iter, array);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++)
        list[i] = (struct collected){places(state)[i], i, iter.value};
    qsort(list, count, sizeof *list, by_place);
    buf_init(&sorted, SIZE_MAX);
    begin = document_begin(&sorted);
    for (size_t i = 0; i < count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        document_append(&sorted, document_index_key((uint32_t)i, text), &list[i].value);
        if (state->kind == QUERY_MAKE_LIST)
            places(state)[i] = list[i].at;
    }
    document_end(&sorted, begin);
    memory_free(list);
    buf_done(&state->bytes);
    state->bytes = sorted;
    if (state->kind == QUERY_MAKE_LIST) /* open again for more */
        state->bytes.len--;
}

static void set_append(const struct query_set *set, size_t begin, struct buf *buf)
{
    for (size_t i = 0; i < set->count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        document_append(buf, document_index_key((uint32_t)i, text), &set->values[i]);
    }
    document_end(buf, begin);
}

static struct document_value average(const struct query_aggregate *state)
{
    struct document_value sum = query_sum_value(&state->sum);
    int64_t integer;
    double total;

    if (sum.type == DOCUMENT_DECIMAL128)
        return document_decimal_value(
            decimal_divide(sum.decimal, decimal_from_int64((int64_t)state->count)));
    if (state->order == DOCUMENT_ORDER_SQL && query_stored_integer(&sum, &integer) &&
        integer % (int64_t)state->count == 0)
        return query_integer(integer / (int64_t)state->count);
    document_to_double(&sum, &total);
    return document_double(total / (double)state->count);
}

static wide sum_wide(const struct query_sum *sum)
{
    double high, low;

    query_sum_halves(sum, &high, &low);
    return (wide)high + (wide)low;
}

static struct document_value deviation_value(const struct query_aggregate *state)
{
    uint64_t divisor = state->count - (state->kind == QUERY_STD_DEV_SAMP);
    wide sum, variance;

    if (state->count <= (uint64_t)(state->kind == QUERY_STD_DEV_SAMP))
        return document_undefined();
    sum = sum_wide(&state->deviation.sum);
    variance =
        (sum_wide(&state->deviation.squares) - sum * sum / (wide)state->count) / (wide)divisor;
    return document_double(variance < 0 ? 0 : sqrt((double)variance));
}

struct document_value query_aggregate_finish(struct query_aggregate *state)
{
    if (state->spoiled)
        return document_undefined();
    switch (state->kind) {
    case QUERY_COUNT:
    case QUERY_COUNT_IF:
        return query_integer((int64_t)state->count);
    case QUERY_SUM:
        if (!state->count)
            return document_undefined();
        return state->order == DOCUMENT_ORDER_MONGO ? query_sum_typed(&state->sum)
                                                    : query_sum_value(&state->sum);
    case QUERY_AVG:
        return state->count ? average(state) : document_undefined();
    case QUERY_STD_DEV_POP:
    case QUERY_STD_DEV_SAMP:
        return deviation_value(state);
    case QUERY_MIN:
    case QUERY_MAX:
    case QUERY_TAKE_FIRST:
    case QUERY_TAKE_LAST:
        return state->value;
    case QUERY_MAKE_LIST:
        if (!is_in_place(state, state->places.len / sizeof state->at))
            collected_sort(state, list_array(state));
        return document_array(list_array(state));
    case QUERY_MAKE_SET:
        break;
    }
    buf_clear(&state->bytes);
    state->bytes.max =
        SIZE_MAX; /* the values are within the limit; as an array they take about that */
    set_append(&state->set->values, document_begin(&state->bytes), &state->bytes);
    if (!is_in_place(state, state->set->values.count))
        collected_sort(state, buf_slice(&state->bytes));
    return document_array(buf_slice(&state->bytes));
}

size_t query_aggregate_bytes(const struct query_aggregate *state)
{
    size_t bytes = state->bytes.capacity + state->places.capacity;

    if (state->kind == QUERY_MAKE_SET)
        bytes += arena_used(state->set->arena);
    if (is_sum(state))
        bytes += query_sum_bytes(&state->sum);
    if (is_deviation(state))
        bytes +=
            query_sum_bytes(&state->deviation.sum) + query_sum_bytes(&state->deviation.squares);
    return bytes;
}

/* --- As BSON ----------------------------------------------------------------------------------
 *
 *     a   name of the aggregate
 *     n   count, int64
 *     x   true: spoiled; then there is no v
 *     v   sum: see sum.c; deviations: the sum; min, max, first, last: the value, absent if none;
 *         makelist, makeset: an array
 *     q   deviations: the sum of squares
 *     o   makelist, makeset: the place of each, an array of int64; first, last: the place, int64 */

static void places_append(const struct query_aggregate *state, struct buf *buf)
{
    size_t begin = document_append_array_begin(buf, SLICE("o"));

    for (size_t i = 0; i < state->places.len / sizeof state->at; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        document_append_int64(buf, document_index_key((uint32_t)i, text),
                              (int64_t)places(state)[i]);
    }
    document_end(buf, begin);
}

/* As they were saved with an array of so many values. False: they were not. */
static bool places_load(struct slice document, size_t count, struct buf *at)
{
    struct document_value list;
    struct document_iter iter;

    if (!document_find(document, SLICE("o"), &list) || list.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        uint64_t place = (uint64_t)iter.value.int64;

        if (iter.value.type != DOCUMENT_INT64)
            return false;
        buf_append(at, &place, sizeof place);
    }
    return at->len == count * sizeof(uint64_t);
}

void query_aggregate_save(const struct query_aggregate *state, struct slice key, struct buf *buf)
{
    size_t begin = document_append_object_begin(buf, key);
    struct document_value list;

    document_append_string(buf, SLICE("a"), slice_of_text(names[state->kind]));
    document_append_int64(buf, SLICE("n"), (int64_t)state->count);
    document_append_bool(buf, SLICE("x"), state->spoiled);
    if (!state->spoiled) {
        switch (state->kind) {
        case QUERY_SUM:
        case QUERY_AVG:
            query_sum_save(&state->sum, SLICE("v"), buf);
            break;
        case QUERY_STD_DEV_POP:
        case QUERY_STD_DEV_SAMP:
            query_sum_save(&state->deviation.sum, SLICE("v"), buf);
            query_sum_save(&state->deviation.squares, SLICE("q"), buf);
            break;
        case QUERY_MIN:
        case QUERY_MAX:
        case QUERY_TAKE_FIRST:
        case QUERY_TAKE_LAST:
            if (state->value.type != DOCUMENT_UNDEFINED)
                document_append(buf, SLICE("v"), &state->value);
            if (is_end(state))
                document_append_int64(buf, SLICE("o"), (int64_t)state->kept_at);
            break;
        case QUERY_MAKE_LIST:
            list = document_array(list_array(state));
            document_append(buf, SLICE("v"), &list);
            places_append(state, buf);
            break;
        case QUERY_MAKE_SET:
            set_append(&state->set->values, document_append_array_begin(buf, SLICE("v")), buf);
            places_append(state, buf);
            break;
        default:
            break;
        }
    }
    document_end(buf, begin);
}

static bool not_ours(enum query_aggregate_kind kind, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "this is not the state of an aggregate %s",
                     names[kind]);
}

static bool load_value(struct query_aggregate *state, struct slice document, struct error *err)
{
    CLEANUP(buf_done) struct buf at;
    struct document_value value, squares;
    bool found = document_find(document, SLICE("v"), &value);

    buf_init(&at, SIZE_MAX);
    switch (state->kind) {
    case QUERY_SUM:
    case QUERY_AVG:
        return (found && query_sum_load(&state->sum, &value)) || not_ours(state->kind, err);
    case QUERY_STD_DEV_POP:
    case QUERY_STD_DEV_SAMP:
        return (found && query_sum_load(&state->deviation.sum, &value) &&
                document_find(document, SLICE("q"), &squares) &&
                query_sum_load(&state->deviation.squares, &squares)) ||
               not_ours(state->kind, err);
    case QUERY_MIN:
    case QUERY_MAX:
        return !found || extreme_keep(state, &value, err);
    case QUERY_TAKE_FIRST:
    case QUERY_TAKE_LAST:
        if (!document_find(document, SLICE("o"), &squares) || squares.type != DOCUMENT_INT64)
            return not_ours(state->kind, err);
        state->kept_at = (uint64_t)squares.int64;
        return !found || extreme_keep(state, &value, err);
    case QUERY_MAKE_LIST:
    case QUERY_MAKE_SET:
        state->count = 0; /* counted again as they are added */
        if (!found || value.type != DOCUMENT_ARRAY ||
            !places_load(document, document_count(value.document), &at))
            return not_ours(state->kind, err);
        return elements_add(state, value.document, (const uint64_t *)(void *)at.data, err);
    default:
        return true;
    }
}

bool query_aggregate_load(struct query_aggregate *state, enum query_aggregate_kind kind,
                          enum document_order order, const struct document_value *value,
                          size_t bytes_max, struct error *err)
{
    struct document_value name, count, spoiled;

    query_aggregate_init(state, kind, order, bytes_max);
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("a"), &name) ||
        !document_find(value->document, SLICE("n"), &count) ||
        !document_find(value->document, SLICE("x"), &spoiled) || name.type != DOCUMENT_STRING ||
        !slice_equal(name.text, slice_of_text(names[kind])) || count.type != DOCUMENT_INT64 ||
        count.int64 < 0 || spoiled.type != DOCUMENT_BOOL)
        return not_ours(kind, err);
    state->count = (uint64_t)count.int64;
    state->spoiled = spoiled.boolean;
    return state->spoiled || load_value(state, value->document, err);
}
