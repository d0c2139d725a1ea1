/* The list becomes a shard map, as the server has one, and the texts of its shards beside it in the
 * same order. */
#include <orrery/route.h>

#include "definition/strategy.h"
#include "document/bson.h"
#include "document/json.h"
#include "partition/map.h"
#include "partition/strategy.h"

enum { LIST_BYTES_MAX = 256 * 1024 * 1024, KEY_BYTES_MAX = 8192, FORMAT = 1 };

struct orrery_shards {
    struct arena *arena; /* owns all but the map */
    struct partition_map *map;
    struct partition_definition definition;
    struct orrery_shard *shards; /* in the order of the map */
    size_t count;
};

static void told(struct orrery_problem *problem, const struct error *err)
{
    if (problem)
        (void)snprintf(problem->message, sizeof problem->message, "%s", err->message);
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool broken(struct error *err, const char *what)
{
    return error_set(err, ERROR_BAD_REQUEST, "the shard list is broken: %s", what);
}

static bool text_of(struct slice object, const char *name, struct slice *ret_text,
                    struct error *err)
{
    struct document_value value;

    if (!document_find(object, slice_of_text(name), &value) || value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "the shard list is broken: no \"%s\"", name);
    *ret_text = value.text;
    return true;
}

static const char *copied(struct orrery_shards *shards, struct slice text)
{
    return (const char *)arena_printf(shards->arena, "%.*s", SLICE_ARG(text)).data;
}

/* A node without a name is a number. */
static const char *node_of(struct orrery_shards *shards, struct slice object)
{
    struct document_value value;
    int64_t number;

    if (!document_find(object, SLICE("node"), &value))
        return "";
    if (value.type == DOCUMENT_STRING)
        return copied(shards, value.text);
    if (!document_to_int64(&value, &number))
        return "";
    return (const char *)arena_printf(shards->arena, "%lld", (long long)number).data;
}

static bool shard_read(struct orrery_shards *shards, struct slice object,
                       struct partition_span *span, struct orrery_shard *shard, struct error *err)
{
    struct slice id = SLICE_NONE, min = SLICE_NONE, max = SLICE_NONE;
    struct slice endpoint = SLICE_NONE, range = SLICE_NONE;
    uint64_t number;

    if (!text_of(object, "id", &id, err) || !text_of(object, "minInclusive", &min, err) ||
        !text_of(object, "maxExclusive", &max, err) ||
        !text_of(object, "endpoint", &endpoint, err) || !text_of(object, "rangeId", &range, err) ||
        !partition_epk_from_hex(min, shards->arena, &span->min, err) ||
        !partition_epk_from_hex(max, shards->arena, &span->max, err))
        return false;
    if (!slice_to_uint64(id, &number) || number > UINT32_MAX)
        return broken(err, "an id is no number");
    span->id = (uint32_t)number;
    *shard = (struct orrery_shard){.id = copied(shards, id),
                                   .range_id = copied(shards, range),
                                   .node = node_of(shards, object),
                                   .endpoint = copied(shards, endpoint),
                                   .min = copied(shards, min),
                                   .max = copied(shards, max)};
    return true;
}

/* The list is in the order of keys, as the map is: if it were not, they would not go together. */
static bool order_check(const struct partition_map *map, const struct partition_span *spans,
                        struct error *err)
{
    size_t count;
    const struct partition_span *sorted = partition_map_spans(map, &count);

    for (size_t i = 0; i < count; i++)
        if (sorted[i].id != spans[i].id)
            return broken(err, "shards are not in the order of keys");
    return true;
}

static bool spans_read(struct orrery_shards *shards, struct slice array, uint64_t version,
                       struct error *err)
{
    size_t count = document_count(array);
    struct partition_span *spans = ARENA_ARRAY(shards->arena, struct partition_span, count + 1);
    struct document_iter iter;

    if (count == 0 || count > PARTITION_SPANS_MAX)
        return broken(err, "no shards, or too many");
    shards->shards = ARENA_ARRAY(shards->arena, struct orrery_shard, count);
    document_iter_init(&iter, array);
    for (; document_iter_next(&iter); shards->count++) {
        struct partition_span *span = &spans[shards->count];

        *span = (struct partition_span){.epoch = 1, .share = 1.0 / (double)count};
        if (iter.value.type != DOCUMENT_OBJECT)
            return broken(err, "a shard is no object");
        if (!shard_read(shards, iter.value.document, span, &shards->shards[shards->count], err))
            return false;
    }
    return partition_map_new(spans, count, version, &shards->map, err) &&
           order_check(shards->map, spans, err);
}

/* As the container's definition says it; the directory of lookup comes with it. */
static bool strategy_read(struct orrery_shards *shards, struct slice list, struct error *err)
{
    struct definition_fields fields = {.key = shards->definition};
    CLEANUP(buf_done) struct buf completed;
    struct document_value orrery, strategy;
    struct slice name = SLICE_NONE;
    bool known;

    buf_init(&completed, LIST_BYTES_MAX);
    if (!text_of(list, "strategy", &name, err))
        return false;
    if (!document_find(list, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("strategy"), &strategy))
        return slice_equal(name, SLICE("hash")) || broken(err, "its strategy is not described");
    known = definition_strategy_read(&fields, &strategy, NULL, shards->arena, &completed, err);
    shards->definition = fields.key;
    return known || error_prefix(err, "the strategy of the shard list");
}

static bool definition_read(struct orrery_shards *shards, struct slice list, struct error *err)
{
    struct document_value key;

    if (!document_find(list, SLICE("partitionKey"), &key) || key.type != DOCUMENT_OBJECT)
        return broken(err, "no \"partitionKey\"");
    return partition_definition_read(key.document, shards->arena, &shards->definition, err) &&
           strategy_read(shards, list, err);
}

static bool list_read(struct orrery_shards *shards, struct slice list, struct error *err)
{
    struct document_value format, version, array;
    int64_t format_number, version_number;

    if (!document_find(list, SLICE("format"), &format) ||
        !document_to_int64(&format, &format_number) || format_number != FORMAT)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "this is no shard list, or one of a newer form than this library knows");
    if (!document_find(list, SLICE("version"), &version) ||
        !document_to_int64(&version, &version_number) || version_number < 1)
        return broken(err, "no \"version\"");
    if (!document_find(list, SLICE("shards"), &array) || array.type != DOCUMENT_ARRAY)
        return broken(err, "no \"shards\"");
    return definition_read(shards, list, err) &&
           spans_read(shards, array.document, (uint64_t)version_number, err);
}

struct orrery_shards *orrery_shards_read(const char *json, size_t len,
                                         struct orrery_problem *problem)
{
    const struct document_limits limits = {.refuse_duplicates = true};
    struct orrery_shards *shards = MEMORY_NEW(struct orrery_shards);
    CLEANUP(buf_done) struct buf document;
    struct error err;

    buf_init(&document, LIST_BYTES_MAX);
    shards->arena = arena_new();
    if (document_json_read(slice_of(json, len), &limits, &document, &err) &&
        list_read(shards, arena_copy(shards->arena, buf_slice(&document)), &err))
        return shards;
    told(problem, &err);
    orrery_shards_free(shards);
    return NULL;
}

void orrery_shards_free(struct orrery_shards *shards)
{
    if (!shards)
        return;
    partition_map_unref(shards->map);
    arena_free(shards->arena);
    memory_free(shards);
}

/* --- Looking --------------------------------------------------------------------------------- */

uint64_t orrery_shards_version(const struct orrery_shards *shards)
{
    return partition_map_version(shards->map);
}

size_t orrery_shards_count(const struct orrery_shards *shards)
{
    return shards->count;
}

const struct orrery_shard *orrery_shards_at(const struct orrery_shards *shards, size_t index)
{
    assert(index < shards->count);
    return &shards->shards[index];
}

/* --- Routing --------------------------------------------------------------------------------- */

static const struct orrery_shard *shard_of(const struct orrery_shards *shards,
                                           const struct partition_span *span)
{
    size_t count;

    return &shards->shards[span - partition_map_spans(shards->map, &count)];
}

static bool key_read(const struct orrery_shards *shards, const char *key, size_t len,
                     enum partition_key_need need, struct arena *arena,
                     struct partition_key *ret_key, struct orrery_problem *problem)
{
    const struct partition_key_limits limits = {KEY_BYTES_MAX};
    struct error err;

    if (partition_key_parse(&shards->definition, slice_of(key, len), need, arena, ret_key, &err) &&
        (ret_key->partial || partition_key_check(&shards->definition, ret_key, &limits, &err)))
        return true;
    told(problem, &err);
    return false;
}

const struct orrery_shard *orrery_route(const struct orrery_shards *shards, const char *key,
                                        size_t len, struct orrery_problem *problem)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf routing;
    struct partition_key parsed;

    buf_init(&routing, BUF_DEFAULT_MAX);
    if (!key_read(shards, key, len, PARTITION_KEY_WHOLE, arena, &parsed, problem))
        return NULL;
    partition_route(&shards->definition, &parsed, &routing);
    return shard_of(shards, partition_map_find(shards->map, buf_slice(&routing)));
}

const struct orrery_shard *orrery_route_all(const struct orrery_shards *shards, const char *prefix,
                                            size_t len, size_t *ret_count,
                                            struct orrery_problem *problem)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key parsed;

    if (!key_read(shards, prefix, len, PARTITION_KEY_ANY, arena, &parsed, problem))
        return NULL;
    return shard_of(
        shards, partition_map_overlap(shards->map,
                                      partition_route_range(&shards->definition, &parsed, arena),
                                      ret_count));
}

size_t orrery_route_key(const struct orrery_shards *shards, const char *key, size_t len, char *hex,
                        size_t size, struct orrery_problem *problem)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf routing;
    CLEANUP(buf_done) struct buf text;
    struct partition_key parsed;

    buf_init(&routing, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    if (!key_read(shards, key, len, PARTITION_KEY_WHOLE, arena, &parsed, problem))
        return 0;
    partition_route(&shards->definition, &parsed, &routing);
    partition_epk_hex(buf_slice(&routing), &text);
    if (size) {
        size_t shown = MIN(text.len, size - 1);

        if (shown)
            memcpy(hex, text.data, shown);
        hex[shown] = 0;
    }
    return text.len;
}
