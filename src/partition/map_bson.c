/* Formats 1 and 2 of a stored map, a BSON document:
 *
 *     {format: 1 or 2, version: int64, spans: [{
 *         id: int64, node: int64, epoch: int64, share: double,
 *         min: binary, max: binary, cut: int32, parents: [int64, ...]}, ...],
 *      gone: [{id: int64, min: binary, max: binary}, ...]}
 *
 * `gone` is left out when there is none.
 *
 * `cut` is enum partition_cut, and left out when it is 0.
 *
 * Format 2 has spans that begin within a key value (PARTITION_CUT_SPREAD), which versions before it
 * would take for keys out of place; a map without any is written in format 1.
 *
 * Both bounds are kept although each is written twice so: a span that went missing or was changed
 * is then found when the map is read. Numbers without sign are written with the sign bit as part
 * of them. A reader ignores properties it does not know; what an old reader must not ignore raises
 * the format. */
#include "partition/map.h"

#include "document/bson.h"

enum { MAP_FORMAT = 2, MAP_FORMAT_WHOLE_KEYS = 1 };

static void append_span(const struct partition_span *span, struct slice key, struct buf *buf);
static void append_gone(const struct partition_map *map, struct buf *buf);
static bool read_gone(struct slice document, struct arena *arena, struct partition_map *map,
                      struct error *err);
static bool read_spans(struct slice array, struct arena *arena, struct partition_span *ret_spans,
                       struct error *err);
static bool read_span(struct slice document, struct arena *arena, struct partition_span *ret_span,
                      struct error *err);

void partition_map_append(const struct partition_map *map, struct buf *buf)
{
    char index[DOCUMENT_INDEX_SIZE];
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);
    size_t document = document_begin(buf), array;

    document_append_int32(buf, SLICE("format"),
                          partition_map_is_spread(map) ? MAP_FORMAT : MAP_FORMAT_WHOLE_KEYS);
    document_append_int64(buf, SLICE("version"), (int64_t)partition_map_version(map));
    array = document_append_array_begin(buf, SLICE("spans"));
    for (uint32_t i = 0; i < count; i++)
        append_span(&spans[i], document_index_key(i, index), buf);
    document_end(buf, array);
    append_gone(map, buf);
    document_end(buf, document);
}

static void append_bounds(struct slice min, struct slice max, struct buf *buf)
{
    const struct document_value from = {.type = DOCUMENT_BINARY, .binary = {.bytes = min}};
    const struct document_value to = {.type = DOCUMENT_BINARY, .binary = {.bytes = max}};

    document_append(buf, SLICE("min"), &from);
    document_append(buf, SLICE("max"), &to);
}

static void append_gone(const struct partition_map *map, struct buf *buf)
{
    char index[DOCUMENT_INDEX_SIZE];
    size_t count, array;
    const struct partition_gone *gone = partition_map_gone(map, &count);

    if (!count)
        return;
    array = document_append_array_begin(buf, SLICE("gone"));
    for (uint32_t i = 0; i < count; i++) {
        size_t object = document_append_object_begin(buf, document_index_key(i, index));

        document_append_int64(buf, SLICE("id"), gone[i].id);
        append_bounds(gone[i].range.min, gone[i].range.max, buf);
        document_end(buf, object);
    }
    document_end(buf, array);
}

static void append_span(const struct partition_span *span, struct slice key, struct buf *buf)
{
    size_t object = document_append_object_begin(buf, key), parents;
    char index[DOCUMENT_INDEX_SIZE];

    document_append_int64(buf, SLICE("id"), span->id);
    document_append_int64(buf, SLICE("node"), span->node);
    document_append_int64(buf, SLICE("epoch"), (int64_t)span->epoch);
    document_append_double(buf, SLICE("share"), span->share);
    append_bounds(span->min, span->max, buf);
    if (span->cut)
        document_append_int32(buf, SLICE("cut"), (int32_t)span->cut);
    parents = document_append_array_begin(buf, SLICE("parents"));
    for (uint32_t i = 0; i < span->parent_count; i++)
        document_append_int64(buf, document_index_key(i, index), span->parents[i]);
    document_end(buf, parents);
    document_end(buf, object);
}

static bool damaged(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE_CORRUPT, "shard map has no valid \"%s\"", what);
}

bool partition_map_read(struct slice document, struct partition_map **ret_map, struct error *err)
{
    const struct document_limits limits = {.bytes_max = SIZE_MAX};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value;
    struct partition_span *spans;
    int64_t format, version;
    size_t count;

    if (!document_validate(document, &limits, err))
        return error_set(err, ERROR_STORE_CORRUPT, "shard map is not BSON");
    if (!document_find(document, SLICE("format"), &value) || !document_to_int64(&value, &format) ||
        format < 1)
        return damaged(err, "format");
    if (format > MAP_FORMAT)
        return error_set(err, ERROR_STORE_VERSION, "shard map of format %d is newer than %d",
                         (int)MIN(format, (int64_t)INT32_MAX), MAP_FORMAT);
    if (!document_find(document, SLICE("version"), &value) || !document_to_int64(&value, &version))
        return damaged(err, "version");
    if (!document_find(document, SLICE("spans"), &value) || value.type != DOCUMENT_ARRAY)
        return damaged(err, "spans");
    count = document_count(value.document);
    spans = ARENA_ARRAY(arena, struct partition_span, count);
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    if (!read_spans(value.document, arena, spans, err) ||
        !partition_map_new(spans, count, (uint64_t)version, &map, err) ||
        !read_gone(document, arena, map, err))
        return false;
    *ret_map = TAKE(map);
    return true;
}

static bool read_spans(struct slice array, struct arena *arena, struct partition_span *ret_spans,
                       struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    for (; document_iter_next(&iter); ret_spans++) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return damaged(err, "spans");
        if (!read_span(iter.value.document, arena, ret_spans, err))
            return false;
    }
    return true;
}

static bool to_uint32(const struct document_value *value, uint32_t *ret_number)
{
    int64_t number;

    if (!document_to_int64(value, &number) || number < 0 || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool read_uint32(struct slice document, struct slice key, uint32_t *ret_number)
{
    struct document_value value;

    return document_find(document, key, &value) && to_uint32(&value, ret_number);
}

static bool read_bound(struct slice document, struct slice key, struct slice *ret_bound)
{
    struct document_value value;

    if (!document_find(document, key, &value) || value.type != DOCUMENT_BINARY)
        return false;
    *ret_bound = value.binary.bytes;
    return true;
}

static bool read_gone(struct slice document, struct arena *arena, struct partition_map *map,
                      struct error *err)
{
    struct document_value value;
    struct document_iter iter;
    struct partition_gone *gone;
    size_t count = 0;

    if (!document_find(document, SLICE("gone"), &value))
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return damaged(err, "gone");
    gone = ARENA_ARRAY(arena, struct partition_gone, document_count(value.document));
    document_iter_init(&iter, value.document);
    for (; document_iter_next(&iter); count++)
        if (iter.value.type != DOCUMENT_OBJECT ||
            !read_uint32(iter.value.document, SLICE("id"), &gone[count].id) ||
            !read_bound(iter.value.document, SLICE("min"), &gone[count].range.min) ||
            !read_bound(iter.value.document, SLICE("max"), &gone[count].range.max))
            return damaged(err, "gone");
    partition_map_set_gone(map, gone, count);
    return true;
}

static bool read_parents(struct slice document, struct arena *arena,
                         struct partition_span *ret_span)
{
    struct document_value value;
    struct document_iter iter;
    uint32_t *parents;
    size_t count = 0;

    if (!document_find(document, SLICE("parents"), &value) || value.type != DOCUMENT_ARRAY)
        return false;
    parents = ARENA_ARRAY(arena, uint32_t, document_count(value.document));
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter)) {
        if (!to_uint32(&iter.value, &parents[count++]))
            return false;
    }
    ret_span->parents = parents;
    ret_span->parent_count = count;
    return true;
}

static bool read_span(struct slice document, struct arena *arena, struct partition_span *ret_span,
                      struct error *err)
{
    struct partition_span span = {0};
    struct document_value value;
    int64_t epoch;

    if (!read_uint32(document, SLICE("id"), &span.id))
        return damaged(err, "id");
    if (!read_uint32(document, SLICE("node"), &span.node))
        return damaged(err, "node");
    if (!document_find(document, SLICE("epoch"), &value) || !document_to_int64(&value, &epoch))
        return damaged(err, "epoch");
    span.epoch = (uint64_t)epoch;
    if (!document_find(document, SLICE("share"), &value) || value.type != DOCUMENT_DOUBLE)
        return damaged(err, "share");
    span.share = value.number;
    if (!read_bound(document, SLICE("min"), &span.min))
        return damaged(err, "min");
    if (!read_bound(document, SLICE("max"), &span.max))
        return damaged(err, "max");
    if (document_find(document, SLICE("cut"), &value)) {
        int64_t cut;

        if (!document_to_int64(&value, &cut) || cut < 0 || cut >= PARTITION_CUTS)
            return damaged(err, "cut");
        span.cut = (enum partition_cut)cut;
    }
    if (!read_parents(document, arena, &span))
        return damaged(err, "parents");
    *ret_span = span;
    return true;
}
