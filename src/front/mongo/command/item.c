#include "front/mongo/command/item.h"

#include "front/mongo/command/filter.h"
#include "front/mongo/command/transact.h"

/* --- The _id --------------------------------------------------------------------------------- */

static bool id_check(const struct document_value *id, struct error *err)
{
    struct document_iter iter;

    if (id->type == DOCUMENT_ARRAY || id->type == DOCUMENT_REGEX || id->type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_INVALID_ID_FIELD, "The '_id' value cannot be of type %s",
                               mongo_type_name(id->type));
    if (id->type != DOCUMENT_OBJECT)
        return true;
    document_iter_init(&iter, id->document);
    while (document_iter_next(&iter))
        if (iter.key.len && iter.key.data[0] == '$')
            return mongo_error_set(err, MONGO_DOLLAR_PREFIXED_FIELD_NAME,
                                   "_id fields may not contain '$'-prefixed fields: %.*s is not "
                                   "valid for storage.",
                                   (int)MIN(iter.key.len, (size_t)64), (const char *)iter.key.data);
    return true;
}

/* What has to be done with a document before it can be stored. */
struct look {
    struct document_value id; /* undefined: it has none */
    bool first;               /* and it stands first */
    bool stamps;              /* empty timestamps are to be filled in */
};

static bool is_empty_stamp(const struct document_iter *iter)
{
    return iter->value.type == DOCUMENT_TIMESTAMP && iter->value.timestamp == 0;
}

static bool document_look(struct slice document, struct look *ret_look, struct error *err)
{
    struct look look = {.id = document_undefined()};
    struct document_iter iter;
    bool there = false;
    size_t at = 0;

    document_iter_init(&iter, document);
    for (; document_iter_next(&iter); at++) {
        if (slice_equal(iter.key, SLICE("_id"))) {
            if (there)
                return mongo_error_set(err, MONGO_BAD_VALUE,
                                       "can't have multiple _id fields in one document");
            there = true;
            look.first = at == 0;
            look.id = iter.value;
            if (!id_check(&look.id, err))
                return false;
        } else if (is_empty_stamp(&iter)) {
            look.stamps = true;
        }
    }
    *ret_look = look;
    return true;
}

/* --- Documents ------------------------------------------------------------------------------- */

static bool size_check(struct slice document, struct error *err)
{
    return document.len <= MONGO_BSON_BYTES_MAX ||
           mongo_error_set(err, MONGO_BSON_OBJECT_TOO_LARGE,
                           "BSONObj size: %zu (0x%zX) is invalid. Size must be between 0 and "
                           "16793600(16MB)",
                           document.len, document.len);
}

/* The _id, then everything else in its order. */
static struct slice document_rebuild(struct mongo_call *call, struct slice document,
                                     const struct document_value *id)
{
    CLEANUP(buf_done) struct buf out;
    int64_t now_s = clock_read_wall_ms(call->services->clock) / 1000;
    struct document_value stamp = {.type = DOCUMENT_TIMESTAMP,
                                   .timestamp = (uint64_t)now_s << 32 | 1};
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append(&out, SLICE("_id"), id);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("_id")))
            continue;
        if (is_empty_stamp(&iter))
            document_append(&out, iter.key, &stamp);
        else
            buf_append(&out, iter.element, (size_t)(iter.at - iter.element));
    }
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

/* Slices of the item point into its own document. */
static bool item_finish(struct mongo_call *call, struct slice document, const struct look *look,
                        const struct document_value *id, struct mongo_item *ret_item,
                        struct error *err)
{
    if (!look->first || look->stamps)
        document = document_rebuild(call, document, id);
    ret_item->document = document;
    (void)document_find(document, SLICE("_id"), &ret_item->id);
    return size_check(document, err);
}

bool mongo_item_make(struct mongo_call *call, struct slice document, struct mongo_item *ret_item,
                     struct error *err)
{
    uint8_t made[DOCUMENT_OBJECT_ID_SIZE];
    struct look look;

    if (!size_check(document, err) || !document_look(document, &look, err))
        return false;
    if (look.id.type == DOCUMENT_UNDEFINED) {
        mongo_object_id(call->mongo, made);
        look.id = (struct document_value){.type = DOCUMENT_OBJECT_ID, .id = made};
    }
    return item_finish(call, document, &look, &look.id, ret_item, err);
}

/* --- Operations ------------------------------------------------------------------------------ */

struct partition_key mongo_item_key(const struct mongo_collection *collection,
                                    struct slice document)
{
    const struct partition_definition *key = &collection->space.definition->key;
    const struct document_value none = document_undefined();

    if (key->system_key)
        return partition_key_of(key, &none, 1);
    return partition_key_extract(key, document);
}

/* --- Shard keys ------------------------------------------------------------------------------ */

bool mongo_collection_is_sharded(const struct mongo_collection *collection)
{
    return collection->container && !collection->space.definition->key.system_key;
}

/* Is an array at the path, or before its end? */
static bool array_is_met(const struct document_path *path, struct slice document)
{
    for (size_t i = 0; i < path->count; i++) {
        struct document_value value;

        if (!document_find(document, path->segments[i].name, &value))
            return false;
        if (value.type == DOCUMENT_ARRAY)
            return true;
        if (value.type != DOCUMENT_OBJECT)
            return false;
        document = value.document;
    }
    return false;
}

bool mongo_shard_key_check(const struct mongo_collection *collection, struct slice document,
                           struct error *err)
{
    const struct partition_definition *key = &collection->space.definition->key;

    for (size_t i = 0; !key->system_key && i < key->path_count; i++)
        if (array_is_met(&key->paths[i], document))
            return mongo_error_set(err, MONGO_SHARD_KEY_NOT_FOUND,
                                   "Shard key cannot contain array values or array descendants.");
    return true;
}

bool mongo_shard_key_keep(const struct mongo_collection *collection, struct slice before,
                          struct slice after, struct error *err)
{
    struct partition_key was, is;

    if (!mongo_collection_is_sharded(collection))
        return true;
    if (!mongo_shard_key_check(collection, after, err))
        return false;
    was = mongo_item_key(collection, before);
    is = mongo_item_key(collection, after);
    return partition_key_equal(&was, &is) ||
           mongo_error_set(err, MONGO_IMMUTABLE_FIELD,
                           "After applying the update, the shard key of the document was found to "
                           "have been altered: the shard key of a document is immutable; insert "
                           "another document and delete this one");
}

bool mongo_path_is_called(const struct document_path *path, struct slice name)
{
    struct slice head, tail;

    for (size_t i = 0; i + 1 < path->count; i++) {
        if (!slice_split(name, '.', &head, &tail) || !slice_equal(head, path->segments[i].name))
            return false;
        name = tail;
    }
    return slice_equal(name, path->segments[path->count - 1].name);
}

static size_t component_called(const struct partition_definition *key, struct slice name)
{
    size_t i = 0;

    while (i < key->path_count && !mongo_path_is_called(&key->paths[i], name))
        i++;
    return i;
}

/* Objects have no place of their own among keys, so that the key does not tell one from another. */
static bool names_one_key(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_CODE_WITH_SCOPE;
}

bool mongo_item_named(const struct mongo_collection *collection, struct slice filter,
                      struct document_value *ret_id, struct partition_key *ret_key)
{
    const struct partition_definition *key = &collection->space.definition->key;
    struct document_value values[PARTITION_PATHS_MAX];
    bool known[PARTITION_PATHS_MAX] = {0}, identified = false;
    struct document_iter iter;

    if (!filter.data)
        return false;
    values[0] = document_undefined();
    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        bool is_id = slice_equal(iter.key, SLICE("_id"));
        size_t at = key->system_key ? key->path_count : component_called(key, iter.key);

        if (!mongo_filter_is_plain(&iter.value) || (is_id && identified))
            return false;
        if (is_id)
            *ret_id = iter.value;
        identified |= is_id;
        if (at < key->path_count) {
            if (known[at] || (!is_id && !names_one_key(&iter.value)))
                return false;
            known[at] = true;
            values[at] = iter.value;
        } else if (!is_id) {
            return false;
        }
    }
    for (size_t i = 0; !key->system_key && i < key->path_count; i++)
        identified &= known[i];
    if (identified)
        *ret_key = partition_key_of(key, values, key->path_count);
    return identified;
}

/* --- Writing --------------------------------------------------------------------------------- */

struct item_operation mongo_operation(const struct mongo_call *call,
                                      const struct mongo_collection *collection,
                                      enum item_verb verb)
{
    return (struct item_operation){.space = call->transact ? mongo_transact_space(call, collection)
                                                           : &collection->space,
                                   .among = mongo_transact_agreement(call),
                                   .meters = call->services->meters,
                                   .arena = call->arena,
                                   .verb = verb,
                                   .metered = mongo_call_metered(call)};
}

void mongo_duplicate_append(struct mongo_call *call, struct buf *out)
{
    const struct document_value pattern = document_object(call->duplicate_pattern);
    const struct document_value value = document_object(call->duplicate_value);

    if (pattern.document.data)
        document_append(out, SLICE("keyPattern"), &pattern);
    if (value.document.data)
        document_append(out, SLICE("keyValue"), &value);
}

void mongo_write_error_append(struct mongo_call *call, const struct mongo_namespace *name,
                              const struct document_value *id, const struct error *err,
                              struct buf *out)
{
    size_t part;

    if (call->transact && !call->unwritten) {
        call->unwritten = ARENA_NEW(call->arena, struct error);
        *call->unwritten = *err;
    }
    if (err->code != ERROR_ITEM_EXISTS) {
        mongo_error_append(call, err, out);
        if (mongo_error_code(err) == MONGO_DUPLICATE_KEY)
            mongo_duplicate_append(call, out);
        if (call->error_info.data && mongo_error_code(err) == MONGO_DOCUMENT_VALIDATION_FAILURE) {
            const struct document_value info = document_object(call->error_info);

            document_append(out, SLICE("errInfo"), &info);
        }
        return;
    }
    document_append_int32(out, SLICE("code"), MONGO_DUPLICATE_KEY);
    part = document_append_object_begin(out, SLICE("keyPattern"));
    document_append_int32(out, SLICE("_id"), 1);
    document_end(out, part);
    part = document_append_object_begin(out, SLICE("keyValue"));
    document_append(out, SLICE("_id"), id);
    document_end(out, part);
    document_append_string(
        out, SLICE("errmsg"),
        arena_printf(call->arena,
                     "E11000 duplicate key error collection: %.*s.%.*s index: _id_ dup key: "
                     "{ _id: %.*s }",
                     SLICE_ARG(name->database), SLICE_ARG(name->collection),
                     SLICE_ARG(mongo_text_value(id, call->arena))));
}
