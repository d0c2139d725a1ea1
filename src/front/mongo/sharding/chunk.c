#include "front/mongo/sharding/chunk.h"

#include "base/bytes.h"
#include "document/order.h"
#include "front/mongo/sharding/key.h"
#include "partition/strategy.h"

enum { HASH_SHIFT = 2 }; /* the top bits of an effective partition key are clear */

static const struct document_value lowest = {.type = DOCUMENT_MIN_KEY},
                                   highest = {.type = DOCUMENT_MAX_KEY};

static bool is_ranged(const struct partition_definition *definition)
{
    return definition->strategy == PARTITION_STRATEGY_RANGE;
}

/* --- Showing --------------------------------------------------------------------------------- */

static struct document_value hash_of(struct slice *rest)
{
    uint8_t bytes[8] = {0};
    struct document_value value = {.type = DOCUMENT_INT64};

    memcpy(bytes, rest->data, MIN(rest->len, sizeof bytes));
    value.int64 = (int64_t)((bytes_get_be64(bytes) << HASH_SHIFT) ^ (uint64_t)1 << 63);
    *rest = slice_skip(*rest, MIN(rest->len, (size_t)PARTITION_EPK_LEVEL_SIZE));
    return value;
}

/* One component of a ranged bound; what follows a text that was cut is of no use. */
static struct document_value component_of(struct slice *rest, struct arena *arena)
{
    struct slice before = *rest;
    struct document_value value;
    struct error ignored;

    if (!document_key_read(DOCUMENT_ORDER_SQL, rest, arena, &value, &ignored)) {
        *rest = slice_of(before.data, 0);
        value = (struct document_value){.type = DOCUMENT_BINARY, .binary = {.bytes = before}};
    }
    return value.type == DOCUMENT_UNDEFINED ? document_null() : value;
}

static void components_show(const struct partition_definition *definition, struct slice bound,
                            struct arena *arena, struct document_value *ret_values)
{
    bool ends = slice_compare(bound, PARTITION_ROUTING_MAX) >= 0;

    for (size_t i = 0; i < definition->path_count; i++) {
        if (ends)
            ret_values[i] = highest;
        else if (!bound.len)
            ret_values[i] = lowest;
        else if (bound.data[0] == 0xFF) /* behind all that begin so */
            ret_values[i] = highest;
        else
            ret_values[i] = is_ranged(definition) ? component_of(&bound, arena) : hash_of(&bound);
    }
}

void mongo_bound_append(const struct partition_definition *definition, struct slice bound,
                        struct slice name, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value values[PARTITION_PATHS_MAX];
    size_t object = document_append_object_begin(out, name);

    components_show(definition, bound, arena, values);
    for (size_t i = 0; i < definition->path_count; i++)
        document_append(out, mongo_shard_key_name(&definition->paths[i], arena), &values[i]);
    document_end(out, object);
}

/* --- Reading --------------------------------------------------------------------------------- */

/* By its dotted name, or down the path. */
static bool field_find(const struct document_path *path, struct slice document, struct arena *arena,
                       struct document_value *ret_value)
{
    return document_find(document, mongo_shard_key_name(path, arena), ret_value) ||
           document_path_find(path, document, ret_value);
}

static bool hashed_read(const struct document_value *value, struct arena *arena,
                        struct slice *ret_bound, struct error *err)
{
    uint8_t bytes[PARTITION_EPK_LEVEL_SIZE] = {0};
    int64_t number;

    if (!document_to_int64(value, &number))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "a bound of a hashed shard key is a whole number of 64 bits");
    bytes_put_be64(bytes, ((uint64_t)number ^ (uint64_t)1 << 63) >> HASH_SHIFT);
    *ret_bound = arena_copy(arena, slice_of(bytes, sizeof bytes));
    return true;
}

/* MinKey and MaxKey at some component: the beginning and the end of all that agree before it. */
static struct slice edge_of(const struct partition_definition *definition,
                            const struct document_value *values, size_t count, bool end,
                            struct arena *arena)
{
    struct partition_key prefix = partition_key_of(definition, values, count);
    struct partition_range range = partition_route_range(definition, &prefix, arena);

    return end ? range.max : range.min;
}

bool mongo_bound_read(const struct partition_definition *definition, struct slice bound,
                      struct arena *arena, struct slice *ret_bound, struct error *err)
{
    struct document_value values[PARTITION_PATHS_MAX];
    struct partition_key key;

    for (size_t i = 0; i < definition->path_count; i++) {
        if (!field_find(&definition->paths[i], bound, arena, &values[i]))
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "a bound has all fields of the shard key: \"%.*s\" is missing",
                                   SLICE_ARG(definition->texts[i]));
        if (values[i].type == DOCUMENT_MIN_KEY || values[i].type == DOCUMENT_MAX_KEY) {
            *ret_bound = edge_of(definition, values, i, values[i].type == DOCUMENT_MAX_KEY, arena);
            return true;
        }
        if (values[i].type == DOCUMENT_OBJECT || values[i].type == DOCUMENT_ARRAY)
            return mongo_error_set(err, MONGO_BAD_VALUE, "a bound cannot be an object or an array");
        if (!is_ranged(definition))
            return hashed_read(&values[i], arena, ret_bound, err);
    }
    key = partition_key_of(definition, values, definition->path_count);
    *ret_bound = partition_route_range(definition, &key, arena).min;
    return true;
}

/* --- Finding --------------------------------------------------------------------------------- */

bool mongo_chunk_of_document(const struct container *container, struct slice document,
                             struct arena *arena, const struct partition_span **ret_span,
                             struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct document_value values[PARTITION_PATHS_MAX];
    CLEANUP(buf_done) struct buf route;
    struct partition_key key;

    buf_init(&route, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < definition->path_count; i++)
        if (!field_find(&definition->paths[i], document, arena, &values[i]))
            return mongo_error_set(err, MONGO_SHARD_KEY_NOT_FOUND,
                                   "no shard key found in chunk query: \"%.*s\" is missing",
                                   SLICE_ARG(definition->texts[i]));
    key = partition_key_of(definition, values, definition->path_count);
    partition_route(definition, &key, &route);
    *ret_span = partition_map_find(container_map(container), buf_slice(&route));
    return true;
}

/* Bounds as they are shown, which of a hash is not all of it. */
static bool bound_is(const struct partition_definition *definition, struct slice bound,
                     struct slice shown, struct arena *arena)
{
    struct document_value values[PARTITION_PATHS_MAX], asked;

    components_show(definition, bound, arena, values);
    for (size_t i = 0; i < definition->path_count; i++)
        if (!field_find(&definition->paths[i], shown, arena, &asked) ||
            document_compare(DOCUMENT_ORDER_MONGO, &asked, &values[i]) != 0)
            return false;
    return true;
}

bool mongo_chunks_between(const struct container *container, struct slice bounds,
                          struct arena *arena, const struct partition_span **ret_spans,
                          size_t *ret_count, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct document_value min, max, more;
    size_t count, first = 0, end;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    if (!document_find(bounds, SLICE("0"), &min) || !document_find(bounds, SLICE("1"), &max) ||
        document_find(bounds, SLICE("2"), &more) || min.type != DOCUMENT_OBJECT ||
        max.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "bounds are an array of two documents, the lower and the upper one");
    while (first < count && !bound_is(definition, spans[first].min, min.document, arena))
        first++;
    for (end = first; end < count; end++)
        if (bound_is(definition, spans[end].max, max.document, arena))
            break;
    if (end >= count)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "no chunks of the collection begin and end at these bounds");
    *ret_spans = &spans[first];
    *ret_count = end - first + 1;
    return true;
}

bool mongo_chunk_of_bounds(const struct container *container, struct slice bounds,
                           struct arena *arena, const struct partition_span **ret_span,
                           struct error *err)
{
    size_t count;

    return mongo_chunks_between(container, bounds, arena, ret_span, &count, err) &&
           (count == 1 ||
            mongo_error_set(err, MONGO_BAD_VALUE, "%zu chunks lie between these bounds", count));
}
