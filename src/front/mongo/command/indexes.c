/* createIndexes, dropIndexes, listIndexes and what collMod says of indexes.
 *
 * A client of createIndexes waits until its indexes are built, as it does with MongoDB: the
 * caretaker builds them (catalogue/indexes.h) while the call looks again and again, on its worker.
 * One that cannot be built is dropped again, with all others of the call, and its first conflict is
 * the answer. A client that goes away, or whose maxTimeMS ends, leaves the building behind.
 *
 * Between two looks it holds no state of any container: indexes are not settled while a collection
 * gets another key, and that does not end while a state from before is held. */
#include "front/mongo/command/indexes.h"

#include "catalogue/indexes.h"
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/transact.h"
#include "front/mongo/index/spec.h"
#include "throughput/cost.h"

#include <time.h>

enum { LOOK_FIRST_MS = 1, LOOK_MAX_MS = 50, BUSY_TRIES_MAX = 1200, NAMED_MAX = 64 };

static void charged(struct mongo_call *call, bool write)
{
    call->charge_cru += cost_metadata(write ? COST_METADATA_WRITE : COST_METADATA_READ);
}

static const struct definition_fields *fields_of(const struct mongo_collection *collection)
{
    return definition_fields(container_definition(collection->container));
}

static struct slice text_of(const struct mongo_call *call, struct slice document)
{
    const struct document_value value = document_object(document);

    return mongo_text_value(&value, call->arena);
}

/* Lets the caretaker work for a while. No collection is open. */
static bool nap(struct mongo_call *call, int64_t ms, struct error *err)
{
    caretaker_wake(call->services->caretaker);
    mongo_account_leave(call);
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
    return mongo_account_return(call, err);
}

/* --- Showing --------------------------------------------------------------------------------- */

static struct slice shown_of(const struct mongo_call *call, const struct definition_fields *fields,
                             const struct index_definition *index)
{
    struct document_value source;

    if (document_find(definition_index_document(fields, index->name), SLICE("source"), &source) &&
        source.type == DOCUMENT_OBJECT)
        return source.document;
    return mongo_index_show(index, call->arena);
}

/* The time to live of the collection, as the index that stands for it. */
static struct slice modified_shown(const struct mongo_call *call, int32_t seconds)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin, key;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    key = document_append_object_begin(&out, SLICE("key"));
    document_append_int32(&out, SLICE("_ts"), 1);
    document_end(&out, key);
    document_append_string(&out, SLICE("name"), SLICE("_ts_1"));
    document_append_int32(&out, SLICE("expireAfterSeconds"), seconds);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

/* Of _id; NULL: none. A collection with a collation has an index that holds it to it. */
static const struct document_collator *id_collator(const struct definition_fields *fields)
{
    const struct index_definition *index = definition_index(fields, MONGO_INDEX_ID);

    return index ? index->collator : NULL;
}

const struct index_definition *mongo_text_index(const struct mongo_collection *collection)
{
    const struct definition_fields *fields;

    if (!collection->container)
        return NULL;
    fields = fields_of(collection);
    for (size_t i = 0; i < fields->index_count; i++)
        if (fields->indexes[i]->text && fields->indexes[i]->state == INDEX_READY &&
            !fields->indexes[i]->hidden)
            return fields->indexes[i];
    return NULL;
}

int32_t mongo_index_count(const struct mongo_collection *collection)
{
    const struct definition_fields *fields;

    if (!collection->container)
        return 0;
    fields = fields_of(collection);
    return (int32_t)fields->index_count + !definition_index(fields, MONGO_INDEX_ID);
}

struct slice *mongo_indexes_shown(struct mongo_call *call,
                                  const struct mongo_collection *collection, size_t *ret_count)
{
    const struct definition_fields *fields = fields_of(collection);
    struct slice *list = ARENA_ARRAY(call->arena, struct slice, fields->index_count + 2);
    size_t count = 0;

    list[count++] = mongo_index_id(id_collator(fields), call->arena);
    if (fields->default_ttl > 0)
        list[count++] = modified_shown(call, fields->default_ttl);
    for (size_t i = 0; i < fields->index_count; i++)
        if (fields->indexes[i]->state != INDEX_FAILED &&
            !slice_equal(fields->indexes[i]->name, MONGO_INDEX_ID))
            list[count++] = shown_of(call, fields, fields->indexes[i]);
    *ret_count = count;
    return list;
}

static struct slice name_of(struct slice shown)
{
    struct document_value name = document_undefined();

    (void)document_find(shown, SLICE("name"), &name);
    return name.type == DOCUMENT_STRING ? name.text : SLICE_NONE;
}

static bool not_there(const struct mongo_namespace *name, const char *format, struct error *err)
{
    return mongo_error_set(
        err, MONGO_NAMESPACE_NOT_FOUND, "%s %.*s.%.*s", format,
        (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
}

bool mongo_list_indexes(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {{"cursor", MONGO_FIELD_ANY},
                                                {"includeBuildUUIDs", MONGO_FIELD_ANY}};
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct buf *out = &call->reply;
    struct mongo_namespace name;
    char text[DOCUMENT_INDEX_SIZE];
    size_t cursor, list, count;
    struct slice *shown;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    charged(call, false);
    if (!collection.container)
        return not_there(&name, "ns does not exist:", err);
    shown = mongo_indexes_shown(call, &collection, &count);
    cursor = document_append_object_begin(out, SLICE("cursor"));
    document_append_int64(out, SLICE("id"), 0);
    document_append_string(out, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    list = document_append_array_begin(out, SLICE("firstBatch"));
    for (size_t i = 0; i < count; i++) {
        const struct document_value value = document_object(shown[i]);

        document_append(out, document_index_key((uint32_t)i, text), &value);
    }
    document_end(out, list);
    document_end(out, cursor);
    return true;
}

struct mongo_index_build *mongo_index_progress(struct mongo_call *call, size_t *ret_count)
{
    const struct account *account = call->account.account;
    struct mongo_index_build *list = ARENA_ARRAY(call->arena, struct mongo_index_build, NAMED_MAX);
    size_t count = 0;

    for (size_t d = 0; account && d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++) {
            struct container *container = database_container(database, c);
            size_t indexes;
            struct catalogue_index *all;

            if (!mongo_container_fits(container))
                continue;
            all = catalogue_indexes(container, call->services->caretaker, call->arena, &indexes);
            for (size_t i = 0; i < indexes && count < NAMED_MAX; i++) {
                if (all[i].definition->state != INDEX_BUILDING)
                    continue;
                list[count++] = (struct mongo_index_build){
                    .database = arena_copy(call->arena, database_info(database)->id),
                    .collection = arena_copy(call->arena, container_info(container)->id),
                    .name = arena_copy(call->arena, all[i].definition->name),
                    .shown = arena_copy(call->arena,
                                        shown_of(call,
                                                 definition_fields(container_definition(container)),
                                                 all[i].definition)),
                    .progress = all[i].progress};
            }
        }
    }
    *ret_count = count;
    return list;
}

/* --- Duplicates ------------------------------------------------------------------------------ */

/* `{ a: 1, b: "x" }` of the values at the paths of an index; the first element of an array. */
static struct slice values_of(struct mongo_call *call, const struct index_definition *index,
                              struct slice document)
{
    CLEANUP(buf_done) struct buf out, name;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&name, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    for (size_t i = 0; i < index->part_count; i++) {
        const struct document_path *path = &index->parts[i].path;
        struct document_value value = document_object(document);

        buf_clear(&name);
        for (size_t s = 0; s <= path->count; s++) {
            struct document_value first;

            if (value.type == DOCUMENT_ARRAY && document_find_index(value.document, 0, &first))
                value = first;
            if (s == path->count)
                break;
            buf_append_slice(&name, s ? SLICE(".") : SLICE(""));
            buf_append_slice(&name, path->segments[s].name);
            if (value.type != DOCUMENT_OBJECT ||
                !document_find(value.document, path->segments[s].name, &first))
                first = document_null();
            value = first;
        }
        document_append(&out, buf_slice(&name), &value);
    }
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

static void duplicate_set(struct mongo_call *call, const struct mongo_namespace *name,
                          struct slice index, struct slice values, struct error *err)
{
    (void)mongo_error_set(err, MONGO_DUPLICATE_KEY,
                          "E11000 duplicate key error collection: %.*s.%.*s index: %.*s dup key: "
                          "%.*s",
                          SLICE_ARG(name->database), SLICE_ARG(name->collection), SLICE_ARG(index),
                          SLICE_ARG(text_of(call, values)));
    call->duplicate_value = values;
}

void mongo_duplicate_tell(struct mongo_call *call, const struct mongo_collection *collection,
                          const struct mongo_namespace *name, struct slice document,
                          struct error *err)
{
    const struct definition_fields *fields = fields_of(collection);
    const struct index_definition *index = NULL;
    struct document_value key = document_undefined();

    if (err->code != ERROR_UNIQUE_KEY)
        return;
    /* The message names it between quotes (item/transaction_commit.c). */
    for (size_t i = 0; i < fields->index_count; i++) {
        struct slice quoted =
            arena_printf(call->arena, "\"%.*s\"", SLICE_ARG(fields->indexes[i]->name));
        char *text = slice_to_text(quoted);

        if (fields->indexes[i]->unique != INDEX_UNIQUE_NOT && strstr(err->message, text))
            index = fields->indexes[i];
        memory_free(text);
    }
    if (!index || !index->part_count)
        return;
    (void)document_find(shown_of(call, fields, index), SLICE("key"), &key);
    call->duplicate_pattern =
        key.type == DOCUMENT_OBJECT ? arena_copy(call->arena, key.document) : SLICE_NONE;
    duplicate_set(call, name, index->name, values_of(call, index, document), err);
}

/* --- createIndexes --------------------------------------------------------------------------- */

struct creating {
    struct mongo_call *call;
    struct mongo_namespace name;
    struct mongo_collection collection;
    struct mongo_index_spec *specs;
    size_t spec_count;
    struct slice *added; /* definitions */
    struct slice *names; /* of those */
    size_t added_count;
    int32_t expires; /* of {_ts: 1}; INDEX_EXPIRES_NEVER: there is none among them */
};

static bool conflict(const struct creating *c, int code, const char *what, struct slice asked,
                     struct slice is, struct error *err)
{
    struct slice a = text_of(c->call, asked), b = text_of(c->call, is);

    return mongo_error_set(err, code, "%s Requested index: %.*s, existing index: %.*s", what,
                           (int)MIN(a.len, (size_t)60), (const char *)a.data,
                           (int)MIN(b.len, (size_t)60), (const char *)b.data);
}

/* *ret_same: it is there already. */
static bool spec_compare(const struct creating *c, const struct mongo_index_spec *spec,
                         struct slice is, bool *ret_same, struct error *err)
{
    bool key = mongo_index_keys_same(spec->shown, is);
    bool options = mongo_index_options_same(spec->shown, is);
    bool name = slice_equal(spec->name, name_of(is));

    *ret_same = false;
    if (!key && !name)
        return true;
    if (name && !key)
        return conflict(c, MONGO_INDEX_KEY_SPECS_CONFLICT,
                        "An existing index has the same name as the requested index. When index "
                        "names are not specified, they are auto generated and can cause conflicts.",
                        spec->shown, is, err);
    if (name && !options)
        return conflict(c, MONGO_INDEX_OPTIONS_CONFLICT,
                        "An equivalent index already exists with the same name but different "
                        "options.",
                        spec->shown, is, err);
    if (!name && !options)
        return conflict(c, MONGO_INDEX_OPTIONS_CONFLICT,
                        "An equivalent index already exists with a different name and options.",
                        spec->shown, is, err);
    if (!name)
        return mongo_error_set(err, MONGO_INDEX_OPTIONS_CONFLICT,
                               "Index already exists with a different name: %.*s",
                               SLICE_ARG(name_of(is)));
    *ret_same = true;
    return true;
}

/* A unique index holds within a logical partition, so it has to begin with the shard key. */
static bool unique_check(const struct creating *c, const struct mongo_index_spec *spec,
                         struct error *err)
{
    const struct partition_definition *key = &fields_of(&c->collection)->key;
    struct document_iter iter;

    if (!spec->unique || key->system_key)
        return true;
    document_iter_init(&iter, spec->key);
    for (size_t i = 0; i < key->path_count; i++) {
        CLEANUP(buf_done) struct buf path;

        buf_init(&path, BUF_DEFAULT_MAX);
        document_path_append(&key->paths[i], &path);
        if (!document_iter_next(&iter) ||
            !slice_equal(mongo_index_path(iter.key, c->call->arena), buf_slice(&path))) {
            struct slice text = text_of(c->call, spec->key);

            return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                                   "cannot create unique index over %.*s with shard key pattern "
                                   "{ %.*s: 1 }",
                                   (int)MIN(text.len, (size_t)80), (const char *)text.data,
                                   SLICE_ARG(slice_skip(buf_slice(&path), 1)));
        }
    }
    return true;
}

static bool spec_take(struct creating *c, const struct mongo_index_spec *spec,
                      const struct slice *shown, size_t shown_count, struct error *err)
{
    bool same = false;

    for (size_t i = 0; i < shown_count; i++) {
        if (!spec_compare(c, spec, shown[i], &same, err))
            return false;
        if (same)
            return true;
    }
    for (size_t i = 0; i < c->added_count; i++) {
        struct document_value source;

        if (!document_find(c->added[i], SLICE("source"), &source) ||
            !spec_compare(c, spec, source.document, &same, err))
            return false;
        if (same)
            return mongo_error_set(err, MONGO_INDEX_ALREADY_EXISTS,
                                   "Identical index already exists: %.*s", SLICE_ARG(spec->name));
    }
    if (!unique_check(c, spec, err))
        return false;
    if (spec->on_modified) {
        c->expires = spec->expire_after_s;
        return true;
    }
    c->names[c->added_count] = spec->name;
    c->added[c->added_count++] = spec->definition;
    return true;
}

/* An index that is building or gone is no longer what a client would see. */
static bool collection_again(struct creating *c, struct error *err)
{
    if (!mongo_collection_reopen(c->call, &c->name, &c->collection, err))
        return false;
    return c->collection.container ||
           mongo_error_set(err, 276, "the collection was dropped while its index was built");
}

/* While too many changes of the container are carried out, those before have to end. Closes the
 * collection, so nothing in the change is borrowed from it. */
static bool change_run(struct creating *c, const struct catalogue_index_change *change,
                       int64_t deadline_ms, struct error *err)
{
    mongo_collection_close(&c->collection);
    for (int i = 0;; i++) {
        if (catalogue_indexes_change(c->call->services->catalogue, c->call->account.id,
                                     c->name.database, c->name.collection, change, err))
            return true;
        if (err->code != ERROR_BUSY || i == BUSY_TRIES_MAX ||
            !mongo_may_wait(c->call, deadline_ms, err) || !nap(c->call, LOOK_MAX_MS, err))
            return false;
    }
}

/* Why it failed, in MongoDB's words. */
static bool failure_tell(struct creating *c, const struct index_definition *index,
                         struct error *err)
{
    struct slice document = definition_index_document(fields_of(&c->collection), index->name);
    struct document_value failure, reason, conflicts, first, values, key;
    struct document_iter iter, pattern;
    CLEANUP(buf_done) struct buf shown;
    size_t begin;

    buf_init(&shown, BUF_DEFAULT_MAX);
    if (!document_find(document, SLICE("failure"), &failure) ||
        !document_find(failure.document, SLICE("reason"), &reason))
        return mongo_error_set(err, 276, "the index was not built");
    if (!document_find(failure.document, SLICE("conflicts"), &conflicts) ||
        !document_find_index(conflicts.document, 0, &first) ||
        !document_find(first.document, SLICE("values"), &values)) {
        char *text = slice_to_text(reason.text);
        int code = strstr(text, "parallel arrays")   ? MONGO_CANNOT_INDEX_PARALLEL_ARRAYS
                   : strstr(text, "hashed index")    ? 16766
                   : strstr(text, "geo keys")        ? 16755
                   : strstr(text, "not in interval") ? 13027
                   : strstr(text, "the same values") ? MONGO_DUPLICATE_KEY
                                                     : 276;

        memory_free(text);
        return mongo_error_set(
            err, code, "%sindex %.*s: %.*s",
            code == MONGO_DUPLICATE_KEY ? "E11000 duplicate key error " : "",
            (int)MIN(index->name.len, (size_t)60), (const char *)index->name.data,
            (int)MIN(reason.text.len, (size_t)120), (const char *)reason.text.data);
    }
    (void)document_find(shown_of(c->call, fields_of(&c->collection), index), SLICE("key"), &key);
    begin = document_begin(&shown);
    document_iter_init(&iter, values.document);
    document_iter_init(&pattern, key.document);
    while (document_iter_next(&pattern) && document_iter_next(&iter))
        document_append(&shown, pattern.key, &iter.value);
    document_end(&shown, begin);
    c->call->duplicate_pattern = arena_copy(c->call->arena, key.document);
    duplicate_set(c->call, &c->name, index->name, arena_copy(c->call->arena, buf_slice(&shown)),
                  err);
    return false;
}

static bool give_up(struct creating *c, int64_t deadline_ms)
{
    const struct catalogue_index_change drop = {.drop = c->names, .drop_count = c->added_count};
    struct error ignored;

    return change_run(c, &drop, deadline_ms, &ignored);
}

/* Until all of them are ready, or one has failed. */
static bool built_wait(struct creating *c, int64_t deadline_ms, struct error *err)
{
    for (int64_t pause_ms = LOOK_FIRST_MS;; pause_ms = MIN(pause_ms * 2, (int64_t)LOOK_MAX_MS)) {
        size_t ready = 0;

        if (!collection_again(c, err))
            return false;
        for (size_t i = 0; i < c->added_count; i++) {
            const struct index_definition *index =
                definition_index(fields_of(&c->collection), c->names[i]);

            if (!index)
                return mongo_error_set(err, 276, "index %.*s was dropped while it was built",
                                       (int)MIN(c->names[i].len, (size_t)100),
                                       (const char *)c->names[i].data);
            if (index->state == INDEX_FAILED) {
                (void)failure_tell(c, index, err);
                (void)give_up(c, deadline_ms);
                return false;
            }
            ready += index->state == INDEX_READY;
        }
        if (ready == c->added_count)
            return true;
        mongo_collection_close(&c->collection);
        if (!mongo_may_wait(c->call, deadline_ms, err) || !nap(c->call, pause_ms, err))
            return false;
    }
}

/* The document of the collection with another time to live; 0: none. */
static bool expiry_set(const struct creating *c, const struct mongo_collection *collection,
                       int32_t seconds, struct error *err)
{
    struct slice document = fields_of(collection)->document;
    CLEANUP(buf_done) struct buf body;
    struct container *container;
    struct document_iter iter;
    size_t begin;

    buf_init(&body, BUF_DEFAULT_MAX);
    begin = document_begin(&body);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("defaultTtl")))
            document_append(&body, iter.key, &iter.value);
    if (seconds > 0)
        document_append_int32(&body, SLICE("defaultTtl"), seconds);
    document_end(&body, begin);
    if (!catalogue_container_replace(c->call->services->catalogue, c->call->account.id,
                                     c->name.database, c->name.collection, buf_slice(&body),
                                     SLICE_NONE, &container, err))
        return false;
    container_unref(container);
    return true;
}

static bool specs_read(struct creating *c, struct slice indexes, struct error *err)
{
    const struct document_collator *inherited;
    struct document_iter iter;
    size_t count = document_count(indexes);

    if (!count)
        return mongo_error_set(err, MONGO_BAD_VALUE, "Must specify at least one index to create");
    if (count > 1000)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX, "too many indexes at once");
    if (!mongo_collator_find(c->collection.terms.collation, &inherited, err))
        return false;
    c->specs = ARENA_ARRAY(c->call->arena, struct mongo_index_spec, count);
    c->added = ARENA_ARRAY(c->call->arena, struct slice, count);
    c->names = ARENA_ARRAY(c->call->arena, struct slice, count);
    document_iter_init(&iter, indexes);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "BSON field 'createIndexes.indexes.%zu' is the wrong type '%s', "
                                   "expected type 'object'",
                                   c->spec_count, mongo_type_name(iter.value.type));
        if (!mongo_index_spec_read(iter.value.document, inherited, c->call->arena,
                                   &c->specs[c->spec_count++], err))
            return error_prefix(err, "Error in specification");
    }
    return true;
}

static bool indexes_make(struct creating *c, int64_t deadline_ms, size_t *ret_before,
                         struct error *err)
{
    struct slice *shown = mongo_indexes_shown(c->call, &c->collection, ret_before);
    struct catalogue_index_change change;

    c->expires = INDEX_EXPIRES_NEVER;
    for (size_t i = 0; i < c->spec_count; i++)
        if (!spec_take(c, &c->specs[i], shown, *ret_before, err))
            return false;
    if (*ret_before + c->added_count > INDEX_DEFINITIONS_MAX)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "add index fails, too many indexes for %.*s.%.*s key:%.*s",
                               SLICE_ARG(c->name.database), SLICE_ARG(c->name.collection),
                               SLICE_ARG(text_of(c->call, c->specs[c->spec_count - 1].key)));
    if (c->expires != INDEX_EXPIRES_NEVER && !expiry_set(c, &c->collection, c->expires, err))
        return false;
    /* Of one that failed before and is still listed in the catalogue nothing is kept. */
    change = (struct catalogue_index_change){.drop = c->names,
                                             .drop_count = c->added_count,
                                             .add = c->added,
                                             .add_count = c->added_count};
    return !c->added_count ||
           (change_run(c, &change, deadline_ms, err) && built_wait(c, deadline_ms, err));
}

struct creation {
    struct slice indexes;
};

static bool all_are_there(struct creating *c, struct error *err)
{
    size_t count;
    struct slice *shown = mongo_indexes_shown(c->call, &c->collection, &count);

    c->expires = INDEX_EXPIRES_NEVER;
    for (size_t i = 0; i < c->spec_count; i++)
        if (!spec_take(c, &c->specs[i], shown, count, err))
            return false;
    return (!c->added_count && c->expires == INDEX_EXPIRES_NEVER) ||
           mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                           "Cannot create new indexes on existing collection %.*s.%.*s in a "
                           "multi-document transaction.",
                           SLICE_ARG(c->name.database), SLICE_ARG(c->name.collection));
}

/* Within a transaction: of a collection that it has made itself, and done nothing with. That is
 * pending, so that what becomes of it now is seen by nobody else before the commit; the catalogue
 * is not the transaction's, which takes the collection anew afterwards. */
static bool pending_make(struct creating *c, int64_t deadline_ms, size_t *ret_before,
                         struct error *err)
{
    struct mongo_transact *transact = c->call->transact;
    const struct front_moment *moment = c->call->front.moment;
    bool fine;

    if (!mongo_transact_has_made(c->call, c->collection.container)) {
        (void)mongo_indexes_shown(c->call, &c->collection, ret_before);
        return all_are_there(c, err);
    }
    if (!mongo_transact_unpin(c->call, c->collection.container))
        return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                               "Cannot create new indexes on non-empty collection %.*s.%.*s in a "
                               "multi-document transaction.",
                               SLICE_ARG(c->name.database), SLICE_ARG(c->name.collection));
    c->call->transact = NULL;
    c->call->front.moment = NULL;
    fine = indexes_make(c, deadline_ms, ret_before, err);
    c->call->transact = transact;
    c->call->front.moment = moment;
    return fine;
}

bool mongo_create_indexes(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"indexes", MONGO_FIELD_ARRAY, offsetof(struct creation, indexes), true},
        {"commitQuorum", MONGO_FIELD_ANY}, /* one copy of an index is built */
        {"ignoreUnknownIndexOptions", MONGO_FIELD_ANY},
    };
    struct creating c = {.call = call};
    struct creation creation = {0};
    int64_t deadline_ms;
    size_t before = 0;
    bool existed, fine;

    if (!mongo_call_namespace(call, &c.name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &creation, err) ||
        !mongo_deadline(call, &deadline_ms, err) ||
        !mongo_collection_open(call, &c.name, &c.collection, err))
        return false;
    if (!specs_read(&c, creation.indexes, err)) {
        mongo_collection_close(&c.collection);
        return false;
    }
    charged(call, true);
    existed = c.collection.container != NULL;
    fine = (existed || mongo_collection_make(call, &c.name, &c.collection, err)) &&
           (call->transact ? pending_make(&c, deadline_ms, &before, err)
                           : indexes_make(&c, deadline_ms, &before, err));
    mongo_collection_close(&c.collection);
    if (!fine)
        return false;
    document_append_int32(&call->reply, SLICE("numIndexesBefore"), (int32_t)before);
    document_append_int32(&call->reply, SLICE("numIndexesAfter"),
                          (int32_t)(before + c.added_count + (c.expires != INDEX_EXPIRES_NEVER)));
    document_append_bool(&call->reply, SLICE("createdCollectionAutomatically"), !existed);
    if (!c.added_count && c.expires == INDEX_EXPIRES_NEVER)
        document_append_string(&call->reply, SLICE("note"), SLICE("all indexes already exist"));
    return true;
}

/* --- dropIndexes ----------------------------------------------------------------------------- */

struct dropping {
    struct creating c;
    struct slice *shown;
    size_t shown_count;
    struct slice *names; /* to be dropped */
    size_t count;
    bool expiry; /* {_ts: 1} too */
};

static void drop_add(struct dropping *d, struct slice shown)
{
    struct document_value key, part;

    if (document_find(shown, SLICE("key"), &key) &&
        document_find(key.document, SLICE("_ts"), &part))
        d->expiry = true;
    else
        d->names[d->count++] = arena_copy(d->c.call->arena, name_of(shown));
}

static bool drop_named(struct dropping *d, struct slice name, struct error *err)
{
    if (slice_equal(name, SLICE("_id_")))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "cannot drop _id index");
    for (size_t i = 1; i < d->shown_count; i++)
        if (slice_equal(name, name_of(d->shown[i]))) {
            drop_add(d, d->shown[i]);
            return true;
        }
    return mongo_error_set(err, MONGO_INDEX_NOT_FOUND, "index not found with name [%.*s]",
                           (int)MIN(name.len, (size_t)128), (const char *)name.data);
}

static bool drop_keyed(struct dropping *d, const struct document_value *key, struct error *err)
{
    size_t found = 0, at = 0;
    struct slice text;

    for (size_t i = 0; i < d->shown_count; i++) {
        struct document_value is;

        if (!document_find(d->shown[i], SLICE("key"), &is) ||
            document_compare(DOCUMENT_ORDER_MONGO, &is, key) != 0)
            continue;
        found++;
        at = i;
    }
    if (found == 1 && at == 0)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "cannot drop _id index");
    if (found == 1) {
        drop_add(d, d->shown[at]);
        return true;
    }
    text = mongo_text_value(key, d->c.call->arena);
    if (found)
        return mongo_error_set(err, 181 /* AmbiguousIndexKeyPattern */,
                               "%zu indexes found for key: %.*s. Please use the name", found,
                               (int)MIN(text.len, (size_t)100), (const char *)text.data);
    return mongo_error_set(err, MONGO_INDEX_NOT_FOUND, "can't find index with key: %.*s",
                           (int)MIN(text.len, (size_t)120), (const char *)text.data);
}

static bool drop_find(struct dropping *d, const struct document_value *index, bool *ret_all,
                      struct error *err)
{
    struct document_iter iter;

    *ret_all = index->type == DOCUMENT_STRING && slice_equal(index->text, SLICE("*"));
    for (size_t i = 1; *ret_all && i < d->shown_count; i++)
        drop_add(d, d->shown[i]);
    if (*ret_all)
        return true;
    if (index->type == DOCUMENT_STRING)
        return drop_named(d, index->text, err);
    if (index->type == DOCUMENT_OBJECT)
        return drop_keyed(d, index, err);
    if (index->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'dropIndexes.index' is the wrong type '%s', expected "
                               "types '[array, object, string]'",
                               mongo_type_name(index->type));
    document_iter_init(&iter, index->document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING || d->count == INDEX_DEFINITIONS_MAX)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "dropIndexes: the index is not a list of names");
        if (!drop_named(d, iter.value.text, err))
            return false;
    }
    return true;
}

struct drop {
    struct document_value index;
};

bool mongo_drop_indexes(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"index", MONGO_FIELD_VALUE, offsetof(struct drop, index), true},
    };
    struct dropping d = {.c = {.call = call}};
    struct drop drop = {.index = document_undefined()};
    struct catalogue_index_change change;
    bool all = false, fine;
    int64_t deadline_ms;

    if (!mongo_call_namespace(call, &d.c.name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &drop, err) ||
        !mongo_deadline(call, &deadline_ms, err) ||
        !mongo_collection_open(call, &d.c.name, &d.c.collection, err))
        return false;
    charged(call, true);
    if (!d.c.collection.container)
        return not_there(&d.c.name, "ns not found", err);
    d.shown = mongo_indexes_shown(call, &d.c.collection, &d.shown_count);
    d.names = ARENA_ARRAY(call->arena, struct slice, d.shown_count + INDEX_DEFINITIONS_MAX);
    fine = drop_find(&d, &drop.index, &all, err);
    change = (struct catalogue_index_change){.drop = d.names, .drop_count = d.count};
    fine = fine && (!d.expiry || expiry_set(&d.c, &d.c.collection, 0, err)) &&
           (!d.count || change_run(&d.c, &change, deadline_ms, err));
    mongo_collection_close(&d.c.collection);
    if (!fine)
        return false;
    document_append_int32(&call->reply, SLICE("nIndexesWas"), (int32_t)d.shown_count);
    if (all)
        document_append_string(&call->reply, SLICE("msg"),
                               SLICE("non-_id indexes dropped for collection"));
    return true;
}

/* --- collMod --------------------------------------------------------------------------------- */

struct modification {
    struct slice name;
    struct slice key;
    struct document_value expires, hidden, unique, prepared;
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* A document with some of its fields said otherwise, and one left out where its value is undefined.
 */
static struct slice document_with(struct slice document, struct slice name,
                                  const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    bool there = false;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        bool it = slice_equal(iter.key, name);

        there |= it;
        if (!it)
            document_append(&out, iter.key, &iter.value);
        else if (is_given(value))
            document_append(&out, name, value);
    }
    if (!there && is_given(value))
        document_append(&out, name, value);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* The index that is meant; SLICE_NONE with an error: none. */
static struct slice modified_find(const struct dropping *d, const struct modification *asked,
                                  struct error *err)
{
    const struct document_value key = document_object(asked->key);

    if (!asked->name.data == !asked->key.data) {
        (void)mongo_error_set(err, MONGO_INVALID_OPTIONS,
                              "must specify either index name or key pattern, and not both");
        return SLICE_NONE;
    }
    for (size_t i = 0; i < d->shown_count; i++) {
        struct document_value is;

        if (asked->name.data ? slice_equal(asked->name, name_of(d->shown[i]))
                             : document_find(d->shown[i], SLICE("key"), &is) &&
                                   document_compare(DOCUMENT_ORDER_MONGO, &is, &key) == 0)
            return d->shown[i];
    }
    (void)mongo_error_set(
        err, MONGO_INDEX_NOT_FOUND, "cannot find index %.*s for ns %.*s.%.*s",
        SLICE_ARG(asked->name.data ? asked->name : text_of(d->c.call, asked->key)),
        SLICE_ARG(d->c.name.database), SLICE_ARG(d->c.name.collection));
    return SLICE_NONE;
}

static void old_and_new(struct mongo_call *call, const char *name, const struct document_value *old,
                        const struct document_value *new)
{
    if (is_given(old))
        document_append(&call->reply, arena_printf(call->arena, "%s_old", name), old);
    document_append(&call->reply, arena_printf(call->arena, "%s_new", name), new);
}

static bool modification_check(const struct modification *asked, struct error *err)
{
    if (is_given(&asked->unique) || is_given(&asked->prepared))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "collMod: an index cannot become unique; drop it and create it "
                               "again");
    if (is_given(&asked->hidden) && asked->hidden.type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'collMod.index.hidden' is the wrong type '%s', expected "
                               "type 'bool'",
                               mongo_type_name(asked->hidden.type));
    return is_given(&asked->hidden) || is_given(&asked->expires) ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "no expireAfterSeconds, hidden, unique, or prepareUnique field");
}

bool mongo_index_modify(struct mongo_call *call, struct mongo_collection *collection,
                        const struct mongo_namespace *name, struct slice index, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"name", MONGO_FIELD_STRING, offsetof(struct modification, name)},
        {"keyPattern", MONGO_FIELD_OBJECT, offsetof(struct modification, key)},
        {"expireAfterSeconds", MONGO_FIELD_VALUE, offsetof(struct modification, expires)},
        {"hidden", MONGO_FIELD_VALUE, offsetof(struct modification, hidden)},
        {"unique", MONGO_FIELD_VALUE, offsetof(struct modification, unique)},
        {"prepareUnique", MONGO_FIELD_VALUE, offsetof(struct modification, prepared)},
    };
    const struct document_value none = document_undefined();
    struct dropping d = {.c = {.call = call, .name = *name}};
    struct modification asked = {.expires = none, .hidden = none, .unique = none, .prepared = none};
    struct document_value old_expires = none, old_hidden = none, value, source;
    struct catalogue_index_change change;
    struct slice shown, definition, index_name;
    int32_t seconds = 0;

    if (!mongo_fields_read(index, "collMod.index", fields, ARRAY_LEN(fields), &asked, err) ||
        !modification_check(&asked, err) ||
        (is_given(&asked.expires) && !mongo_index_expiry_read(&asked.expires, &seconds, err)))
        return false;
    d.shown = mongo_indexes_shown(call, collection, &d.shown_count);
    shown = modified_find(&d, &asked, err);
    if (!shown.data)
        return false;
    index_name = arena_copy(call->arena, name_of(shown));
    if (slice_equal(index_name, SLICE("_id_")))
        return mongo_error_set(err, MONGO_BAD_VALUE, "can't change the _id index");
    (void)document_find(shown, SLICE("expireAfterSeconds"), &old_expires);
    (void)document_find(shown, SLICE("hidden"), &old_hidden);
    definition = definition_index_document(fields_of(collection), index_name);
    if (!definition.data) { /* {_ts: 1} */
        value = document_int32(seconds);
        if (!is_given(&asked.expires) || seconds <= 0)
            return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                   "the index on _ts can have another expireAfterSeconds above 0");
        if (!expiry_set(&d.c, collection, seconds, err))
            return false;
        old_and_new(call, "expireAfterSeconds", &old_expires, &value);
        return true;
    }
    if (is_given(&asked.expires)) {
        value = document_int32(seconds);
        shown = document_with(shown, SLICE("expireAfterSeconds"), &value, call->arena);
        definition = document_with(definition, SLICE("expireAfterSeconds"), &value, call->arena);
        old_and_new(call, "expireAfterSeconds", &old_expires, &value);
    }
    if (is_given(&asked.hidden)) {
        const struct document_value *now = asked.hidden.boolean ? &asked.hidden : &none;

        shown = document_with(shown, SLICE("hidden"), now, call->arena);
        definition = document_with(definition, SLICE("hidden"), now, call->arena);
        value = document_bool(old_hidden.type == DOCUMENT_BOOL && old_hidden.boolean);
        old_and_new(call, "hidden", &value, &asked.hidden);
    }
    source = document_object(shown);
    definition = document_with(definition, SLICE("source"), &source, call->arena);
    change = (struct catalogue_index_change){
        .drop = &index_name, .drop_count = 1, .add = &definition, .add_count = 1};
    mongo_collection_close(collection);
    return change_run(&d.c, &change, 0, err);
}
