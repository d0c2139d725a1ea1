/* The completed document is written in one order whatever the client's was, so that two definitions
 * that say the same are the same bytes; what may not change at a replace is compared that way.
 * Properties the service ignores are left out; those it knows and Orrery does not offer are refused
 * by name rather than kept without effect. */
#include "definition/definition_private.h"

#include "base/buf.h"
#include "document/bson.h"

#include <stdatomic.h>

struct definition {
    struct definition_fields fields;
    atomic_uint refs;
    struct arena *arena; /* owns this structure and all it refers to */
    const bool *taken;   /* while it is made: numbers of indexes */
};

enum { COMPUTED_MAX = 20, FEED_MINUTES_MAX = 30 * 24 * 60 };

static const struct slice default_conflict_path = SLICE("/_ts");

struct definition *definition_ref(struct definition *definition)
{
    atomic_fetch_add(&definition->refs, 1);
    return definition;
}

void definition_unref(struct definition *definition)
{
    if (definition && atomic_fetch_sub(&definition->refs, 1) == 1)
        arena_free(definition->arena);
}

const struct definition_fields *definition_fields(const struct definition *definition)
{
    return &definition->fields;
}

/* --- Reading properties ---------------------------------------------------------------------- */

/* A property that is there and not null. */
static bool property_given(struct slice document, struct slice name, struct document_value *ret)
{
    return document_find(document, name, ret) && ret->type != DOCUMENT_NULL &&
           ret->type != DOCUMENT_UNDEFINED;
}

static bool property_object(struct slice document, struct slice name, struct slice *ret_object,
                            struct error *err)
{
    struct document_value value;

    *ret_object = SLICE_NONE;
    if (!property_given(document, name, &value))
        return true;
    if (value.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s is not an object", SLICE_ARG(name));
    *ret_object = value.document;
    return true;
}

static bool property_array(struct slice document, struct slice name, struct slice *ret_array,
                           struct error *err)
{
    struct document_value value;

    *ret_array = SLICE_NONE;
    if (!property_given(document, name, &value))
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s is not an array", SLICE_ARG(name));
    *ret_array = value.document;
    return true;
}

static bool property_string(struct slice document, struct slice name, struct slice otherwise,
                            struct slice *ret_text, struct error *err)
{
    struct document_value value;

    *ret_text = otherwise;
    if (!property_given(document, name, &value))
        return true;
    if (value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s is not a string", SLICE_ARG(name));
    *ret_text = value.text;
    return true;
}

/* The element of the definition before, as it was completed then; SLICE_NONE: there was none. */
static struct slice before_object(const struct definition *before, struct slice name)
{
    struct document_value value;

    if (!before || !document_find(before->fields.document, name, &value))
        return SLICE_NONE;
    return value.document;
}

/* --- Parts of a definition ------------------------------------------------------------------- */

static bool id_read(struct definition *definition, struct slice body,
                    const struct definition *before, struct error *err)
{
    struct document_value id;

    if (!document_find(body, SLICE("id"), &id) || id.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the container has no id");
    if (before && !slice_equal(id.text, before->fields.id))
        return error_set(err, ERROR_BAD_REQUEST, "the id of a container cannot be changed");
    definition->fields.id = arena_copy(definition->arena, id.text);
    return true;
}

/* Which properties have a meaning decides how the rest is read, so it comes first. */
static bool identity_read(struct definition *definition, struct slice body,
                          const struct definition *before, struct error *err)
{
    struct document_value orrery, value;

    if (before)
        definition->fields.identity = before->fields.identity;
    if (!document_find(body, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("identity"), &value))
        return true;
    if (value.type != DOCUMENT_STRING ||
        !definition_identity_find(value.text, &definition->fields.identity))
        return error_set(err, ERROR_BAD_REQUEST, "orrery.identity must be \"%.*s\" or \"%.*s\"",
                         SLICE_ARG(definition_names(DEFINITION_IDENTITY_ID)->identity),
                         SLICE_ARG(definition_names(DEFINITION_IDENTITY_MONGO)->identity));
    if (before && before->fields.identity != definition->fields.identity)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.identity cannot be changed: items are stored under it");
    return true;
}

static bool key_read(struct definition *definition, struct slice body,
                     const struct definition *before, struct error *err)
{
    static const struct partition_definition_parts keyless = {.system_key = true};
    struct partition_definition *key = &definition->fields.key;
    struct slice object;

    if (!property_object(body, SLICE("partitionKey"), &object, err))
        return false;
    if (object.data) {
        if (!partition_definition_read(object, definition->arena, key, err))
            return false;
    } else if (before && !before->fields.key.system_key) {
        return error_set(err, ERROR_BAD_REQUEST,
                         "replacing a container needs its partition key definition");
    } else if (!partition_definition_build(&keyless, definition->arena, key, err)) {
        return false;
    }
    if (before && !partition_definition_equal(key, &before->fields.key))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the partition key definition of a container cannot be changed by "
                         "replacing it; `orrery rekey` gives a container in use another key");
    return true;
}

static bool body_marks(struct slice body, struct slice name)
{
    struct document_value orrery, mark;

    return document_find(body, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT &&
           document_find(orrery.document, name, &mark);
}

/* Spatial and full-text indexes have entries where the container says so. Whoever replaces one need
 * not: from then on it does, and items get theirs as after any change of the policy. */
static void kinds_read(struct definition *definition, struct slice body,
                       const struct definition *before)
{
    struct definition_fields *fields = &definition->fields;
    struct document_value full_text;

    fields->cells =
        index_policy_has_spatial(fields->policy) && (before || body_marks(body, SLICE("spatial")));
    if (fields->cells)
        fields->policy = index_policy_with_cells(fields->policy, definition->arena);
    fields->terms =
        index_policy_has_texts(fields->policy) && (before || body_marks(body, SLICE("fullText")));
    if (!fields->terms)
        return;
    if (!document_find(body, SLICE("fullTextPolicy"), &full_text) ||
        full_text.type != DOCUMENT_OBJECT)
        full_text.document = SLICE_NONE;
    fields->policy = index_policy_with_terms(fields->policy, full_text.document, definition->arena);
}

/* The same of indexes of vectors. What the vectors are is fixed when the container is made. */
static void vectors_read(struct definition *definition, struct slice body,
                         const struct definition *before)
{
    static const struct slice name = SLICE("vectorEmbeddingPolicy");
    struct definition_fields *fields = &definition->fields;
    struct document_value orrery, mark, policy, rows;
    bool marked = document_find(body, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT &&
                  document_find(orrery.document, SLICE("vectors"), &mark);
    bool found = document_find(before ? before->fields.document : body, name, &policy) &&
                 policy.type == DOCUMENT_OBJECT &&
                 document_find(policy.document, SLICE("vectorEmbeddings"), &rows) &&
                 rows.type == DOCUMENT_ARRAY;

    fields->vectors = found && index_policy_has_vectors(fields->policy) && (marked || before);
    if (fields->vectors)
        fields->policy =
            index_policy_with_vectors(fields->policy, rows.document, definition->arena);
}

static bool policy_read(struct definition *definition, struct slice body,
                        const struct definition *before, struct buf *out, struct error *err)
{
    CLEANUP(buf_done) struct buf completed;
    struct document_value value;
    struct slice object;

    buf_init(&completed, BUF_DEFAULT_MAX);
    if (!property_object(body, SLICE("indexingPolicy"), &object, err) ||
        !index_policy_parse(object, definition_names_of(&definition->fields), definition->arena,
                            &completed, &definition->fields.policy, err))
        return false;
    kinds_read(definition, body, before);
    vectors_read(definition, body, before);
    value = document_object(buf_slice(&completed));
    document_append(out, SLICE("indexingPolicy"), &value);
    return true;
}

static bool ttl_read(struct definition *definition, struct slice body, struct buf *out,
                     struct error *err)
{
    struct document_value value;
    int64_t seconds;

    definition->fields.default_ttl = DEFINITION_TTL_OFF;
    if (!document_find(body, SLICE("defaultTtl"), &value))
        return true;
    if (!document_to_int64(&value, &seconds) || seconds < -1 || seconds == 0 || seconds > INT32_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "The value of defaultTtl must be -1 or between 1 and 2147483647");
    definition->fields.default_ttl = (int32_t)seconds;
    document_append_int32(out, SLICE("defaultTtl"), (int32_t)seconds);
    return true;
}

/* Paths of one unique key. */
static bool unique_paths_read(struct definition *definition, struct slice paths,
                              struct definition_unique_key *key, struct buf *out,
                              size_t *path_total, struct error *err)
{
    struct document_path *parsed =
        ARENA_ARRAY(definition->arena, struct document_path, DEFINITION_UNIQUE_PATHS_MAX);
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;

    *key = (struct definition_unique_key){.paths = parsed};
    document_iter_init(&iter, paths);
    while (document_iter_next(&iter)) {
        struct document_path *path = &parsed[key->path_count];

        if (iter.value.type != DOCUMENT_STRING)
            return error_set(err, ERROR_BAD_REQUEST, "a path of a unique key is not a string");
        if (++*path_total > DEFINITION_UNIQUE_PATHS_MAX)
            return error_set(err, ERROR_BAD_REQUEST,
                             "The number of paths in all unique keys is over the limit of %d",
                             DEFINITION_UNIQUE_PATHS_MAX);
        if (!document_path_parse(iter.value.text, DOCUMENT_PATH_KEY, definition->arena, path, err))
            return false;
        if (document_names_system(definition_names_of(&definition->fields),
                                  path->segments[0].name) < DOCUMENT_SYSTEM_VERSION)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the unique key path \"%.*s\" names a system property",
                             SLICE_ARG(iter.value.text));
        document_append_string(out, document_index_key((uint32_t)key->path_count, text),
                               iter.value.text);
        key->path_count++;
    }
    if (key->path_count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "a unique key has no paths");
    return true;
}

static bool paths_same(const struct document_path *a, const struct document_path *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!slice_equal(a->segments[i].name, b->segments[i].name))
            return false;
    return true;
}

/* Unique in its logical partition, the partition key itself would allow one item in each. */
static bool unique_is_partition_key(const struct definition *definition,
                                    const struct definition_unique_key *key)
{
    for (size_t i = 0; i < key->path_count; i++) {
        bool found = false;

        for (size_t j = 0; j < definition->fields.key.path_count; j++)
            found |= paths_same(&key->paths[i], &definition->fields.key.paths[j]);
        if (!found)
            return false;
    }
    return true;
}

static bool unique_key_read(struct definition *definition, const struct document_value *value,
                            struct definition_unique_key *key, struct buf *out, size_t *path_total,
                            struct error *err)
{
    struct slice paths;
    size_t array;

    if (value->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "a unique key is not an object");
    if (!property_array(value->document, SLICE("paths"), &paths, err))
        return false;
    if (!paths.data)
        return error_set(err, ERROR_BAD_REQUEST, "a unique key has no paths");
    array = document_append_array_begin(out, SLICE("paths"));
    if (!unique_paths_read(definition, paths, key, out, path_total, err))
        return false;
    document_end(out, array);
    if (unique_is_partition_key(definition, key))
        return error_set(err, ERROR_BAD_REQUEST, "a unique key is the partition key alone");
    return true;
}

static bool unique_keys_read(struct definition *definition, struct slice keys, struct buf *out,
                             struct error *err)
{
    struct definition_unique_key *unique =
        ARENA_ARRAY(definition->arena, struct definition_unique_key, DEFINITION_UNIQUE_KEYS_MAX);
    size_t count = 0, path_total = 0, array = document_append_array_begin(out, SLICE("uniqueKeys"));
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;

    if (keys.data) {
        document_iter_init(&iter, keys);
        while (document_iter_next(&iter)) {
            size_t object;

            if (count == DEFINITION_UNIQUE_KEYS_MAX)
                return error_set(err, ERROR_BAD_REQUEST,
                                 "The number of unique keys is over the limit of %d",
                                 DEFINITION_UNIQUE_KEYS_MAX);
            object = document_append_object_begin(out, document_index_key((uint32_t)count, text));
            if (!unique_key_read(definition, &iter.value, &unique[count], out, &path_total, err))
                return false;
            document_end(out, object);
            count++;
        }
    }
    document_end(out, array);
    definition->fields.unique_keys = unique;
    definition->fields.unique_key_count = count;
    return true;
}

/* Said at creation and kept: a replace may leave it out, or say the same again. */
static bool unique_policy_read(struct definition *definition, struct slice body,
                               const struct definition *before, struct buf *out, struct error *err)
{
    CLEANUP(buf_done) struct buf policy;
    struct slice object, keys = SLICE_NONE, kept = before_object(before, SLICE("uniqueKeyPolicy"));
    struct document_value value;
    size_t begin;

    buf_init(&policy, BUF_DEFAULT_MAX);
    if (!property_object(body, SLICE("uniqueKeyPolicy"), &object, err))
        return false;
    if (!object.data && kept.data)
        object = arena_copy(definition->arena, kept);
    if (object.data && !property_array(object, SLICE("uniqueKeys"), &keys, err))
        return false;
    begin = document_begin(&policy);
    if (!unique_keys_read(definition, keys, &policy, err))
        return false;
    document_end(&policy, begin);
    if (kept.data && !slice_equal(kept, buf_slice(&policy)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the unique keys of a container cannot be changed");
    value = document_object(buf_slice(&policy));
    document_append(out, SLICE("uniqueKeyPolicy"), &value);
    return true;
}

static bool conflict_policy_write(struct slice object, struct buf *out, struct error *err)
{
    struct slice mode = SLICE("LastWriterWins"), path = default_conflict_path,
                 procedure = SLICE("");
    size_t begin;

    if (object.data &&
        (!property_string(object, SLICE("mode"), mode, &mode, err) ||
         !property_string(object, SLICE("conflictResolutionPath"), path, &path, err) ||
         !property_string(object, SLICE("conflictResolutionProcedure"), procedure, &procedure,
                          err)))
        return false;
    /* There is one write region, so no conflict ever waits in the feed, but a procedure that is
     * never called would be a promise. */
    if (slice_equal_nocase(mode, SLICE("Custom"))) {
        if (procedure.len)
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "conflicts are not resolved by stored procedures");
        path = SLICE("");
    }
    if (!slice_equal_nocase(mode, SLICE("Custom")) &&
        !slice_equal_nocase(mode, SLICE("LastWriterWins")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the conflict resolution mode \"%.*s\" is not known", SLICE_ARG(mode));
    begin = document_begin(out);
    document_append_string(out, SLICE("mode"), mode);
    document_append_string(out, SLICE("conflictResolutionPath"), path);
    document_append_string(out, SLICE("conflictResolutionProcedure"), procedure);
    document_end(out, begin);
    return true;
}

static bool conflict_policy_read(struct slice body, const struct definition *before,
                                 struct buf *out, struct error *err)
{
    static const struct slice name = SLICE("conflictResolutionPolicy");
    CLEANUP(buf_done) struct buf policy;
    struct slice object, kept = before_object(before, name);
    struct document_value value;

    buf_init(&policy, BUF_DEFAULT_MAX);
    if (!property_object(body, name, &object, err) ||
        !conflict_policy_write(object.data ? object : kept, &policy, err))
        return false;
    if (kept.data && !slice_equal(kept, buf_slice(&policy)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the conflict resolution policy of a container cannot be changed");
    value = document_object(buf_slice(&policy));
    document_append(out, name, &value);
    return true;
}

/* In a plane an index needs to know where, on the globe it does. */
static bool boxes_check(struct slice body, struct slice type, struct error *err)
{
    bool plane = slice_equal(type, SLICE("Geometry"));
    struct document_value policy, list, box;
    struct document_iter iter;

    if (!document_find(body, SLICE("indexingPolicy"), &policy) || policy.type != DOCUMENT_OBJECT ||
        !document_find(policy.document, SLICE("spatialIndexes"), &list) ||
        list.type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        bool given = iter.value.type == DOCUMENT_OBJECT &&
                     document_find(iter.value.document, SLICE("boundingBox"), &box) &&
                     box.type != DOCUMENT_NULL;

        if (given != plane)
            return error_set(err, ERROR_BAD_REQUEST,
                             plane ? "a spatial index needs a boundingBox where geospatialConfig "
                                     "has type Geometry"
                                   : "a spatial index has no boundingBox where geospatialConfig "
                                     "has type Geography");
    }
    return true;
}

static bool geospatial_read(struct definition *definition, struct slice body, struct buf *out,
                            struct error *err)
{
    struct slice object, type = SLICE("Geography");
    size_t begin;

    if (!property_object(body, SLICE("geospatialConfig"), &object, err) ||
        (object.data && !property_string(object, SLICE("type"), type, &type, err)))
        return false;
    if (!slice_equal(type, SLICE("Geography")) && !slice_equal(type, SLICE("Geometry")))
        return error_set(err, ERROR_BAD_REQUEST, "the geospatial type \"%.*s\" is not known",
                         SLICE_ARG(type));
    if (!boxes_check(body, type, err))
        return false;
    definition->fields.plane = slice_equal(type, SLICE("Geometry"));
    begin = document_append_object_begin(out, SLICE("geospatialConfig"));
    document_append_string(out, SLICE("type"), type);
    document_end(out, begin);
    return true;
}

/* The service's words for something of another type than it should be, before ours. */
static bool input_invalid(struct error *err)
{
    return error_prefix(err, "One of the specified inputs is invalid");
}

/* Names and queries are text; what the queries say is for whoever can read them. */
static bool computed_read(struct slice body, struct buf *out, struct error *err)
{
    struct document_iter iter;
    struct slice array, name, query;
    struct document_value value;
    size_t count = 0;

    if (!property_array(body, SLICE("computedProperties"), &array, err))
        return input_invalid(err);
    if (!array.data)
        return true;
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (++count > COMPUTED_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "there are more than %d computed properties",
                             COMPUTED_MAX);
        if (iter.value.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST,
                             "One of the specified inputs is invalid: a computed property is not "
                             "an object");
        if (!property_string(iter.value.document, SLICE("name"), SLICE(""), &name, err) ||
            !property_string(iter.value.document, SLICE("query"), SLICE(""), &query, err))
            return input_invalid(err);
        if (!name.len || !query.len)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a computed property needs a name and a query");
    }
    value = document_array(array);
    document_append(out, SLICE("computedProperties"), &value);
    return true;
}

static bool feed_policy_read(struct definition *definition, struct slice body, struct buf *out,
                             struct error *err)
{
    struct document_value value;
    struct slice object;
    int64_t minutes = 0;

    if (!property_object(body, SLICE("changeFeedPolicy"), &object, err))
        return false;
    if (!object.data)
        return true;
    if (property_given(object, SLICE("retentionDuration"), &value) &&
        (!document_to_int64(&value, &minutes) || minutes < 0 || minutes > FEED_MINUTES_MAX))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the retention of the change feed must be between 0 and %d minutes",
                         FEED_MINUTES_MAX);
    definition->fields.feed_retention_ms = minutes * 60 * 1000;
    value = document_object(object);
    document_append(out, SLICE("changeFeedPolicy"), &value);
    return true;
}

/* What is kept as it is for others to read; `fixed` ones only at creation. */
static const struct {
    struct slice name;
    bool fixed;
} kept_objects[] = {
    {SLICE("vectorEmbeddingPolicy"), true},
    {SLICE("fullTextPolicy"), false},
    {SLICE("clientEncryptionPolicy"), true},
};

static bool kept_read(struct slice body, const struct definition *before, struct buf *out,
                      struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_objects); i++) {
        struct slice name = kept_objects[i].name, object, kept = before_object(before, name);
        struct document_value value;

        if (!property_object(body, name, &object, err))
            return false;
        if (before && kept_objects[i].fixed) {
            if (object.data && !slice_equal(object, kept))
                return error_set(err, ERROR_BAD_REQUEST, "%.*s cannot be changed", SLICE_ARG(name));
            object = kept;
        }
        if (object.data) {
            value = document_object(object);
            document_append(out, name, &value);
        }
    }
    return true;
}

/* Kept by a replace that leaves it out, as libraries do that do not know it. */
static bool orrery_read(struct definition *definition, struct slice body,
                        const struct definition *before, struct buf *out, struct error *err)
{
    static const struct slice name = SLICE("orrery");
    CLEANUP(buf_done) struct buf completed;
    struct document_value value;
    struct slice object;
    size_t begin;

    buf_init(&completed, BUF_DEFAULT_MAX);
    if (!property_object(body, name, &object, err))
        return false;
    if (!object.data)
        object = before_object(before, name);
    begin = document_begin(&completed);
    if (!definition_orrery_read(&definition->fields, object, before ? &before->fields : NULL,
                                definition->taken, definition->arena, &completed, err))
        return false;
    if (!object.data && definition->fields.cells)
        document_append_int32(&completed, SLICE("spatial"), DEFINITION_CELLS_FORMAT);
    if (!object.data && definition->fields.terms)
        document_append_int32(&completed, SLICE("fullText"), DEFINITION_TERMS_FORMAT);
    if (!object.data && definition->fields.vectors)
        document_append_int32(&completed, SLICE("vectors"), DEFINITION_VECTORS_FORMAT);
    document_end(&completed, begin);
    if (object.data || definition->fields.cells || definition->fields.terms ||
        definition->fields.vectors) {
        value = document_object(buf_slice(&completed));
        document_append(out, name, &value);
    }
    return true;
}

static bool refused_check(struct slice body, struct error *err)
{
    struct document_value value;
    int64_t ttl;

    if (property_given(body, SLICE("analyticalStorageTtl"), &value) &&
        (!document_to_int64(&value, &ttl) || ttl != 0))
        return error_set(err, ERROR_NOT_SUPPORTED, "an analytical store is not offered");
    return true;
}

static bool parts_read(struct definition *definition, struct slice body,
                       const struct definition *before, struct buf *out, struct error *err)
{
    if (!refused_check(body, err) || !id_read(definition, body, before, err) ||
        !identity_read(definition, body, before, err))
        return false;
    document_append_string(out, SLICE("id"), definition->fields.id);
    if (!policy_read(definition, body, before, out, err) ||
        !key_read(definition, body, before, err))
        return false;
    partition_definition_append(&definition->fields.key, SLICE("partitionKey"), out);
    return ttl_read(definition, body, out, err) &&
           unique_policy_read(definition, body, before, out, err) &&
           conflict_policy_read(body, before, out, err) &&
           geospatial_read(definition, body, out, err) && computed_read(body, out, err) &&
           feed_policy_read(definition, body, out, err) &&
           definition_policies_check(body, before ? &before->fields : NULL, definition->arena,
                                     err) &&
           kept_read(body, before, out, err) &&
           definition_view_read(&definition->fields, body, before ? &before->fields : NULL,
                                definition->arena, out, err) &&
           orrery_read(definition, body, before, out, err) &&
           definition_placed_check(&definition->fields, err) &&
           definition_view_check(&definition->fields, body, err) &&
           definition_reference_check(&definition->fields, err);
}

bool definition_new(struct slice body, struct definition *before,
                    struct definition **ret_definition, struct error *err)
{
    return definition_replaced(body, before, NULL, ret_definition, err);
}

bool definition_replaced(struct slice body, struct definition *before,
                         const bool taken[INDEX_NUMBERS], struct definition **ret_definition,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf out;
    struct definition *definition = ARENA_NEW(arena, struct definition);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    definition->arena = arena;
    definition->taken = taken;
    begin = document_begin(&out);
    if (!parts_read(definition, arena_copy(arena, body), before, &out, err))
        return false;
    document_end(&out, begin);
    if (buf_overflowed(&out))
        return error_set(err, ERROR_TOO_LARGE, "the definition of the container is too large");
    definition->fields.document = arena_copy(arena, buf_slice(&out));
    definition->taken = NULL;
    atomic_init(&definition->refs, 1);
    definition->arena = TAKE(arena);
    *ret_definition = definition;
    return true;
}
