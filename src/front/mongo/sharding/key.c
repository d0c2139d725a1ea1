#include "front/mongo/sharding/key.h"

#include "front/mongo/command/item.h"

/* --- Reading --------------------------------------------------------------------------------- */

static bool bad_pattern(struct slice pattern, struct error *err)
{
    const struct document_value value = document_object(pattern);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    mongo_text_append(&text, &value, 80);
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "Shard key %.*s can contain at most one 'hashed' field, and/or multiple "
                           "numerical fields set to a value of 1",
                           SLICE_ARG(buf_slice(&text)));
}

/* Every part of a dotted name has a letter, and none is an operator. */
static bool name_is_good(struct slice name)
{
    struct slice head, tail;

    while (slice_split(name, '.', &head, &tail)) {
        if (!head.len || head.data[0] == '$')
            return false;
        name = tail;
    }
    return name.len && name.data[0] != '$';
}

static bool field_read(const struct document_iter *field, struct slice pattern,
                       struct mongo_shard_key *key, struct error *err)
{
    double number;
    bool hashed =
        field->value.type == DOCUMENT_STRING && slice_equal(field->value.text, SLICE("hashed"));

    if (!hashed && (!document_is_number(&field->value) ||
                    !document_to_double(&field->value, &number) || number != 1))
        return bad_pattern(pattern, err);
    if (hashed && key->hashed)
        return bad_pattern(pattern, err);
    if (!name_is_good(field->key))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Shard key has a field \"%.*s\", which no "
                               "document can have",
                               (int)MIN(field->key.len, (size_t)64), (const char *)field->key.data);
    for (size_t i = 0; i < MIN(key->count, (size_t)PARTITION_PATHS_MAX); i++)
        if (slice_equal(key->names[i], field->key))
            return mongo_error_set(err, MONGO_BAD_VALUE, "Shard key has the field \"%.*s\" twice",
                                   (int)MIN(field->key.len, (size_t)64),
                                   (const char *)field->key.data);
    key->hashed |= hashed;
    if (key->count < PARTITION_PATHS_MAX)
        key->names[key->count] = field->key;
    key->count++;
    return true;
}

bool mongo_shard_key_read(struct slice pattern, struct mongo_shard_key *ret_key, struct error *err)
{
    struct mongo_shard_key key = {0};
    struct document_iter iter;

    document_iter_init(&iter, pattern);
    while (document_iter_next(&iter))
        if (!field_read(&iter, pattern, &key, err))
            return false;
    if (!key.count)
        return mongo_error_set(err, MONGO_BAD_VALUE, "Shard key is empty");
    if (key.count > PARTITION_PATHS_MAX)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "a shard key of %zu fields is not offered: there are at most %d",
                               key.count, PARTITION_PATHS_MAX);
    if (key.hashed && key.count > 1)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "a compound shard key with a hashed field is not offered: hash one "
                               "field, or order all of them");
    *ret_key = key;
    return true;
}

bool mongo_shard_key_is(const struct partition_definition *definition,
                        const struct mongo_shard_key *key)
{
    bool same = !definition->system_key && definition->path_count == key->count &&
                (definition->strategy == PARTITION_STRATEGY_RANGE) == !key->hashed;

    for (size_t i = 0; same && i < key->count; i++)
        same = mongo_path_is_called(&definition->paths[i], key->names[i]);
    return same;
}

/* --- Writing --------------------------------------------------------------------------------- */

static void path_append(struct buf *out, struct slice index, struct slice name)
{
    struct document_segment segments[DOCUMENT_PATH_SEGMENTS_MAX];
    struct document_path path = {.segments = segments};
    CLEANUP(buf_done) struct buf text;
    struct slice head, tail;

    buf_init(&text, BUF_DEFAULT_MAX);
    while (path.count + 1 < ARRAY_LEN(segments) && slice_split(name, '.', &head, &tail)) {
        segments[path.count++] =
            (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY, .name = head};
        name = tail;
    }
    segments[path.count++] =
        (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY, .name = name};
    document_path_append(&path, &text);
    document_append_string(out, index, buf_slice(&text));
}

void mongo_shard_key_define(const struct mongo_shard_key *key, struct slice name, struct buf *out)
{
    size_t object = document_append_object_begin(out, name), list;
    char text[DOCUMENT_INDEX_SIZE];

    list = document_append_array_begin(out, SLICE("paths"));
    for (size_t i = 0; i < key->count; i++)
        path_append(out, document_index_key((uint32_t)i, text), key->names[i]);
    document_end(out, list);
    document_append_string(out, SLICE("kind"), key->count > 1 ? SLICE("MultiHash") : SLICE("Hash"));
    document_append_int32(out, SLICE("version"), 2);
    document_end(out, object);
}

struct slice mongo_shard_key_strategy(const struct mongo_shard_key *key)
{
    return key->hashed ? SLICE("hash") : SLICE("range");
}

struct slice mongo_shard_key_name(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < path->count; i++) {
        if (i)
            BUF_APPEND(&name, ".");
        buf_append_slice(&name, path->segments[i].name);
    }
    return arena_copy(arena, buf_slice(&name));
}

void mongo_shard_key_append(const struct partition_definition *definition, struct slice name,
                            struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t object = document_append_object_begin(out, name);

    for (size_t i = 0; i < definition->path_count; i++) {
        struct slice field = mongo_shard_key_name(&definition->paths[i], arena);

        if (definition->strategy == PARTITION_STRATEGY_RANGE)
            document_append_int32(out, field, 1);
        else
            document_append_string(out, field, SLICE("hashed"));
    }
    document_end(out, object);
}
