/* As bytes it is a document: n, the number of contributions; k, the values of the group; p, for
 * each aggregate {s: its state, x: how many spoil it, d: doubles}. */
#include "front/rest/views/tally.h"

#include "engine/engine.h"
#include "query/value/compare.h"

#include <math.h>

enum { PART_BYTES_MAX = 16 * 1024 * 1024 }; /* an extreme is a value of an item */

bool rest_view_tally_keeps(enum query_aggregate_kind kind)
{
    return kind == QUERY_COUNT || kind == QUERY_COUNT_IF || kind == QUERY_SUM ||
           kind == QUERY_AVG || kind == QUERY_MIN || kind == QUERY_MAX;
}

bool rest_view_tally_orders(enum query_aggregate_kind kind)
{
    return kind == QUERY_MIN || kind == QUERY_MAX;
}

/* --- Values ---------------------------------------------------------------------------------- */

/* false stands for what spoils a sum, [] for what spoils an extreme. */
static bool is_spoiler(enum query_aggregate_kind kind, const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return false;
    if (kind == QUERY_SUM || kind == QUERY_AVG)
        return !document_is_number(value);
    return rest_view_tally_orders(kind) &&
           (value->type == DOCUMENT_ARRAY || value->type == DOCUMENT_OBJECT);
}

struct document_value rest_view_tally_argument(enum query_aggregate_kind kind,
                                               const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return *value;
    switch (kind) {
    case QUERY_COUNT:
        return document_bool(true);
    case QUERY_COUNT_IF:
        return value->type == DOCUMENT_BOOL && value->boolean ? *value : document_undefined();
    case QUERY_SUM:
    case QUERY_AVG:
        return document_is_number(value) ? *value : document_bool(false);
    default:
        return is_spoiler(kind, value) ? document_array(slice_of("\x05\0\0\0", 5)) : *value;
    }
}

static bool is_sum(const struct rest_view_part *part)
{
    return part->aggregate.kind == QUERY_SUM || part->aggregate.kind == QUERY_AVG;
}

static bool is_double(const struct document_value *value)
{
    int64_t integer;

    return !query_stored_integer(value, &integer);
}

static bool part_add(struct rest_view_part *part, const struct document_value *value,
                     struct error *err)
{
    if (is_spoiler(part->aggregate.kind, value)) {
        part->spoilers++;
        return true;
    }
    if (is_sum(part) && value->type != DOCUMENT_UNDEFINED)
        part->doubles += is_double(value);
    return query_aggregate_add(&part->aggregate, value, err);
}

/* The exact opposite of a number, if it has one that can be added. */
static bool negated(const struct document_value *value, struct document_value *ret_value)
{
    int64_t integer;
    double real;

    if (query_stored_integer(value, &integer)) {
        if (integer == INT64_MIN)
            return false;
        *ret_value = document_int64(-integer);
        return true;
    }
    if (!document_to_double(value, &real) || !isfinite(real))
        return false;
    *ret_value = document_double(-real);
    return true;
}

static void sum_take(struct rest_view_part *part, const struct document_value *value)
{
    struct query_sum *sum = &part->aggregate.sum;
    bool longs = sum->has_longs;
    struct document_value opposite;

    part->aggregate.count--;
    part->doubles -= is_double(value);
    if (sum->has_special || !negated(value, &opposite)) {
        part->stale = true;
        return;
    }
    if (!query_sum_add(sum, &opposite, false) || sum->has_special)
        part->stale = true;
    sum->has_longs = longs;
    if (!part->doubles) { /* what is left of doubles is exactly nothing */
        sum->has_doubles = false;
        sum->part_count = 0;
    }
}

static void part_take(struct rest_view_part *part, const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return;
    if (is_spoiler(part->aggregate.kind, value)) {
        part->spoilers--;
    } else if (is_sum(part)) {
        sum_take(part, value);
    } else {
        part->aggregate.count--;
        if (rest_view_tally_orders(part->aggregate.kind) &&
            !document_compare(part->aggregate.order, value, &part->aggregate.value))
            part->stale = true;
    }
}

/* --- Contributions --------------------------------------------------------------------------- */

void rest_view_tally_init(struct rest_view_tally *tally, const struct query_aggregate_call *calls,
                          size_t count, struct slice keys, struct arena *arena)
{
    *tally = (struct rest_view_tally){.part_count = count,
                                      .parts = ARENA_ARRAY(arena, struct rest_view_part, count + 1),
                                      .keys = keys};
    for (size_t i = 0; i < count; i++) {
        tally->parts[i] = (struct rest_view_part){0};
        query_aggregate_init(&tally->parts[i].aggregate, calls[i].kind, DOCUMENT_ORDER_SQL,
                             PART_BYTES_MAX);
    }
}

void rest_view_tally_done(struct rest_view_tally *tally)
{
    for (size_t i = 0; i < tally->part_count; i++)
        query_aggregate_done(&tally->parts[i].aggregate);
}

bool rest_view_tally_add(struct rest_view_tally *tally, struct slice arguments, struct error *err)
{
    struct document_iter iter;

    tally->count++;
    document_iter_init(&iter, arguments);
    for (size_t i = 0; i < tally->part_count && document_iter_next(&iter); i++)
        if (!part_add(&tally->parts[i], &iter.value, err))
            return false;
    return true;
}

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the state of a group of a view cannot be read");
}

bool rest_view_tally_take(struct rest_view_tally *tally, struct slice arguments, struct error *err)
{
    struct document_iter iter;

    if (!tally->count)
        return broken(err);
    tally->count--;
    document_iter_init(&iter, arguments);
    for (size_t i = 0; i < tally->part_count && document_iter_next(&iter); i++)
        part_take(&tally->parts[i], &iter.value);
    return true;
}

void rest_view_tally_renew(struct rest_view_tally *tally, size_t nth)
{
    struct rest_view_part *part = &tally->parts[nth];
    struct query_aggregate before = part->aggregate;

    query_aggregate_init(&part->aggregate, before.kind, before.order, before.bytes_max);
    if (rest_view_tally_orders(before.kind))
        part->aggregate.count = before.count;
    else
        part->spoilers = part->doubles = 0;
    part->stale = false;
    query_aggregate_done(&before);
}

bool rest_view_tally_add_one(struct rest_view_tally *tally, size_t nth,
                             const struct document_value *value, struct error *err)
{
    return part_add(&tally->parts[nth], value, err);
}

bool rest_view_tally_extreme(struct rest_view_tally *tally, size_t nth,
                             const struct document_value *value, struct error *err)
{
    struct query_aggregate *aggregate = &tally->parts[nth].aggregate;
    uint64_t count = aggregate->count;
    bool added;

    if (is_spoiler(aggregate->kind, value))
        return true;
    added = query_aggregate_add(aggregate, value, err);
    aggregate->count = count;
    return added;
}

struct document_value rest_view_tally_result(struct rest_view_tally *tally, size_t nth)
{
    struct rest_view_part *part = &tally->parts[nth];

    assert(!part->stale);
    return part->spoilers ? document_undefined() : query_aggregate_finish(&part->aggregate);
}

/* --- As bytes -------------------------------------------------------------------------------- */

struct slice rest_view_tally_save(const struct rest_view_tally *tally, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value keys = document_array(tally->keys);
    size_t begin, array;

    buf_init(&out, ENGINE_VALUE_MAX);
    begin = document_begin(&out);
    document_append_int64(&out, SLICE("n"), (int64_t)tally->count);
    document_append(&out, SLICE("k"), &keys);
    array = document_append_array_begin(&out, SLICE("p"));
    for (uint32_t i = 0; i < tally->part_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        size_t object = document_append_object_begin(&out, document_index_key(i, text));

        query_aggregate_save(&tally->parts[i].aggregate, SLICE("s"), &out);
        document_append_int64(&out, SLICE("x"), (int64_t)tally->parts[i].spoilers);
        document_append_int64(&out, SLICE("d"), (int64_t)tally->parts[i].doubles);
        document_end(&out, object);
    }
    document_end(&out, array);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static bool number_load(struct slice document, struct slice name, uint64_t *ret_number)
{
    struct document_value value;

    if (!document_find(document, name, &value) || value.type != DOCUMENT_INT64 || value.int64 < 0)
        return false;
    *ret_number = (uint64_t)value.int64;
    return true;
}

static bool part_load(struct rest_view_part *part, const struct document_value *from,
                      struct error *err)
{
    struct query_aggregate empty = part->aggregate;
    struct document_value state;
    bool loaded;

    if (from->type != DOCUMENT_OBJECT || !document_find(from->document, SLICE("s"), &state) ||
        !number_load(from->document, SLICE("x"), &part->spoilers) ||
        !number_load(from->document, SLICE("d"), &part->doubles))
        return broken(err);
    loaded = query_aggregate_load(&part->aggregate, empty.kind, empty.order, &state,
                                  empty.bytes_max, err);
    query_aggregate_done(&empty);
    return loaded || broken(err);
}

bool rest_view_tally_keys(struct slice bytes, struct slice *ret_keys, struct error *err)
{
    struct document_value keys;

    if (!document_find(bytes, SLICE("k"), &keys) || keys.type != DOCUMENT_ARRAY)
        return broken(err);
    *ret_keys = keys.document;
    return true;
}

bool rest_view_tally_load(struct rest_view_tally *tally, struct slice bytes, struct error *err)
{
    struct document_value parts;
    struct document_iter iter;

    if (!rest_view_tally_keys(bytes, &tally->keys, err))
        return false;
    if (!number_load(bytes, SLICE("n"), &tally->count) ||
        !document_find(bytes, SLICE("p"), &parts) || parts.type != DOCUMENT_ARRAY ||
        document_count(parts.document) != tally->part_count)
        return broken(err);
    document_iter_init(&iter, parts.document);
    for (size_t i = 0; i < tally->part_count && document_iter_next(&iter); i++)
        if (!part_load(&tally->parts[i], &iter.value, err))
            return false;
    return true;
}
