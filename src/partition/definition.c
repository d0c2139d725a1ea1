/* Parts, the object clients send and the object the catalogue keeps all come through
 * partition_definition_build, so that nothing is placed by a definition that was not checked. */
#include "partition/definition.h"

#include "document/bson.h"

#include <inttypes.h>

static bool kind_of_parts(const struct partition_definition_parts *parts,
                          enum partition_kind *ret_kind, struct error *err);
static bool parse_path(struct slice text, struct arena *arena,
                       struct partition_definition *definition, struct error *err);
static int place_length(const char *message);
static bool paths_equal(const struct document_path *a, const struct document_path *b);
static bool read_paths(struct slice document, struct arena *arena,
                       struct partition_definition_parts *parts, struct error *err);

bool partition_definition_build(const struct partition_definition_parts *parts, struct arena *arena,
                                struct partition_definition *ret_definition, struct error *err)
{
    static const struct slice system_path = SLICE("/_partitionKey");
    struct partition_definition definition = {.system_key = parts->system_key,
                                              .version_given = parts->version == 1};
    const struct slice *paths = parts->paths;
    size_t count = parts->path_count, count_max;

    if (!kind_of_parts(parts, &definition.kind, err))
        return false;
    if (count == 0 && parts->system_key) {
        paths = &system_path;
        count = 1;
    }
    count_max =
        definition.kind == PARTITION_MULTI_HASH && !parts->system_key ? PARTITION_PATHS_MAX : 1;
    if (count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "partition key definition names no path");
    if (count > count_max)
        return error_set(err, ERROR_BAD_REQUEST, "Too many partition key paths");
    for (size_t i = 0; i < count; i++) {
        if (!parse_path(paths[i], arena, &definition, err))
            return false;
    }
    assert(definition.path_count == count);
    *ret_definition = definition;
    return true;
}

static bool kind_of_parts(const struct partition_definition_parts *parts,
                          enum partition_kind *ret_kind, struct error *err)
{
    bool hash = !parts->kind.data || slice_equal(parts->kind, SLICE("Hash"));

    if (!hash && !slice_equal(parts->kind, SLICE("MultiHash")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "partition key kind is neither Hash nor MultiHash but \"%.*s\"",
                         SLICE_ARG(parts->kind));
    if (parts->version < 0 || parts->version > 2)
        return error_set(err, ERROR_BAD_REQUEST,
                         "partition key version %" PRIi64 " is neither 1 nor 2", parts->version);
    if (!hash && parts->version != 2)
        return error_set(err, ERROR_BAD_REQUEST, "partition key kind MultiHash needs version 2");
    if (!hash)
        *ret_kind = PARTITION_MULTI_HASH;
    else
        *ret_kind = parts->version == 2 ? PARTITION_HASH_V2 : PARTITION_HASH_V1;
    return true;
}

static bool parse_path(struct slice text, struct arena *arena,
                       struct partition_definition *definition, struct error *err)
{
    size_t i = definition->path_count;
    struct error why;

    assert(i < PARTITION_PATHS_MAX);
    if (!document_path_parse(text, DOCUMENT_PATH_KEY, arena, &definition->paths[i], &why))
        return error_set(err, ERROR_BAD_REQUEST,
                         "The partition key component definition %.*s. Partition key paths must "
                         "contain only valid characters and not contain a trailing slash or "
                         "wildcard character.",
                         place_length(why.message), why.message);
    for (size_t before = 0; before < i; before++) {
        if (paths_equal(&definition->paths[before], &definition->paths[i]))
            return error_set(err, ERROR_BAD_REQUEST, "partition key path '%s' is given twice",
                             arena_text(arena, text));
    }
    definition->texts[i] = arena_copy(arena, text);
    definition->path_count++;
    return true;
}

/* The parser says which path failed and where, as the service does, and then, behind a colon, why
 * in our own words; the service has a sentence of its own for that. */
static int place_length(const char *message)
{
    size_t len = strlen(message);

    for (size_t at = len; at > 1; at--) {
        if (message[at - 1] == '\'' && message[at] == ':')
            return (int)at;
    }
    return (int)len;
}

static bool paths_equal(const struct document_path *a, const struct document_path *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!slice_equal(a->segments[i].name, b->segments[i].name))
            return false;
    }
    return true;
}

bool partition_definition_read(struct slice document, struct arena *arena,
                               struct partition_definition *ret_definition, struct error *err)
{
    struct partition_definition_parts parts = {0};
    struct document_value value;

    if (document_find(document, SLICE("kind"), &value) && value.type != DOCUMENT_NULL) {
        if (value.type != DOCUMENT_STRING)
            return error_set(err, ERROR_BAD_REQUEST, "partition key kind is not a string");
        parts.kind = value.text;
    }
    if (document_find(document, SLICE("version"), &value) && value.type != DOCUMENT_NULL) {
        if (!document_to_int64(&value, &parts.version) || parts.version == 0)
            return error_set(err, ERROR_BAD_REQUEST, "partition key version is neither 1 nor 2");
    }
    if (document_find(document, SLICE("systemKey"), &value) && value.type != DOCUMENT_NULL) {
        if (value.type != DOCUMENT_BOOL)
            return error_set(err, ERROR_BAD_REQUEST, "partition key systemKey is not a boolean");
        parts.system_key = value.boolean;
    }
    return read_paths(document, arena, &parts, err) &&
           partition_definition_build(&parts, arena, ret_definition, err);
}

/* One path more than a definition can have is enough to see that there are too many. */
static bool read_paths(struct slice document, struct arena *arena,
                       struct partition_definition_parts *parts, struct error *err)
{
    struct slice *paths = ARENA_ARRAY(arena, struct slice, PARTITION_PATHS_MAX + 1);
    struct document_value value;
    struct document_iter iter;

    parts->paths = paths;
    if (!document_find(document, SLICE("paths"), &value))
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "partition key paths are not an array");
    document_iter_init(&iter, value.document);
    while (parts->path_count <= PARTITION_PATHS_MAX && document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return error_set(err, ERROR_BAD_REQUEST, "partition key path is not a string");
        paths[parts->path_count++] = iter.value.text;
    }
    return true;
}

void partition_definition_append(const struct partition_definition *definition, struct slice key,
                                 struct buf *buf)
{
    bool multi = definition->kind == PARTITION_MULTI_HASH;
    size_t object = document_append_object_begin(buf, key);
    size_t paths = document_append_array_begin(buf, SLICE("paths"));
    char index[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; i < definition->path_count; i++)
        document_append_string(buf, document_index_key(i, index), definition->texts[i]);
    document_end(buf, paths);
    document_append_string(buf, SLICE("kind"), multi ? SLICE("MultiHash") : SLICE("Hash"));
    if (definition->kind != PARTITION_HASH_V1)
        document_append_int32(buf, SLICE("version"), 2);
    else if (definition->version_given)
        document_append_int32(buf, SLICE("version"), 1);
    if (definition->system_key)
        document_append_bool(buf, SLICE("systemKey"), true);
    document_end(buf, object);
}

bool partition_definition_equal(const struct partition_definition *a,
                                const struct partition_definition *b)
{
    if (a->kind != b->kind || a->system_key != b->system_key || a->path_count != b->path_count)
        return false;
    for (size_t i = 0; i < a->path_count; i++) {
        if (!paths_equal(&a->paths[i], &b->paths[i]))
            return false;
    }
    return true;
}
