/* Collections and views made, changed, renamed and dropped. What a collection was made with is kept
 * with the definition of its container (terms.h). */
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/validation.h"
#include "front/mongo/command/view.h"
#include "throughput/cost.h"

enum { ATTEMPTS_MAX = 16, SHOWN_MAX = 64 };

static void write_charged(struct mongo_call *call)
{
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
}

#define SHOWN(text) (int)MIN((text).len, (size_t)SHOWN_MAX), (const char *)(text).data

static bool not_there(const struct mongo_namespace *name, struct error *err)
{
    return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s.%.*s",
                           SHOWN(name->database), SHOWN(name->collection));
}

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- Options --------------------------------------------------------------------------------- */

/* The names of the options that create takes; what they are is said by terms.c. */
static const struct mongo_field create_fields[] = {
    {"capped", MONGO_FIELD_ANY},
    {"size", MONGO_FIELD_ANY},
    {"max", MONGO_FIELD_ANY},
    {"validator", MONGO_FIELD_ANY},
    {"validationLevel", MONGO_FIELD_ANY},
    {"validationAction", MONGO_FIELD_ANY},
    {"viewOn", MONGO_FIELD_ANY},
    {"pipeline", MONGO_FIELD_ANY},
    {"collation", MONGO_FIELD_ANY},
    {"changeStreamPreAndPostImages", MONGO_FIELD_ANY},
    {"timeseries", MONGO_FIELD_ANY},
    {"clusteredIndex", MONGO_FIELD_ANY},
    {"expireAfterSeconds", MONGO_FIELD_ANY},
    {"storageEngine", MONGO_FIELD_ANY},
    {"indexOptionDefaults", MONGO_FIELD_ANY},
    {"idIndex", MONGO_FIELD_ANY}, /* of mongorestore; it is as it is */
    {"autoIndexId", MONGO_FIELD_ANY},
    {"flags", MONGO_FIELD_ANY}, /* of dumps of old servers */
};
enum { OPTIONS = 15 }; /* those that are kept */

static bool is_option(struct slice name)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (slice_equal(name, slice_of_text(create_fields[i].name)))
            return true;
    return false;
}

/* What would say the same if it were left out is not kept. */
static bool is_idle(const struct document_iter *iter)
{
    if (slice_equal(iter->key, SLICE("capped")))
        return iter->value.type == DOCUMENT_BOOL && !iter->value.boolean;
    return !is_given(&iter->value);
}

/* The options among the fields of a command over those before, in the arena. */
static struct slice options_merge(struct mongo_call *call, struct slice before, struct slice body)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value other;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (before.data) {
        document_iter_init(&iter, before);
        while (document_iter_next(&iter))
            if (!document_find(body, iter.key, &other) || !is_given(&other))
                document_append(&out, iter.key, &iter.value);
    }
    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        if (is_option(iter.key) && !is_idle(&iter))
            document_append(&out, iter.key, &iter.value);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

/* The options with the collation as it is kept: whole, or not at all where it is simple. */
static bool options_collate(struct mongo_call *call, struct slice *options, struct error *err)
{
    const struct document_collator *collator;
    CLEANUP(buf_done) struct buf out;
    struct document_value collation;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!document_find(*options, SLICE("collation"), &collation) ||
        collation.type != DOCUMENT_OBJECT)
        return true; /* of what else it may be terms.c speaks */
    if (!document_count(collation.document))
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'create.collation.locale' is missing but a required "
                               "field");
    if (!mongo_collator_find(collation.document, &collator, err))
        return false;
    begin = document_begin(&out);
    document_iter_init(&iter, *options);
    while (document_iter_next(&iter)) {
        if (!slice_equal(iter.key, SLICE("collation"))) {
            document_append(&out, iter.key, &iter.value);
        } else if (collator) {
            collation = document_object(document_collator_document(collator));
            document_append(&out, iter.key, &collation);
        }
    }
    document_end(&out, begin);
    *options = arena_copy(call->arena, buf_slice(&out));
    return true;
}

/* A validator that cannot be compiled would refuse every write. */
static bool validator_check(struct mongo_call *call, const struct mongo_namespace *name,
                            const struct mongo_terms *terms, struct error *err)
{
    const struct mongo_collection collection = {.terms = {.validator = terms->validator,
                                                          .collation = terms->collation,
                                                          .level = MONGO_LEVEL_STRICT}};
    struct mongo_validation unused;

    if (!terms->validator.data)
        return true;
    if (slice_equal(name->database, SLICE("admin")) ||
        slice_equal(name->database, SLICE("local")) || slice_equal(name->database, SLICE("config")))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Document validators are not allowed on collection %.*s.%.*s in the "
                               "%.*s internal database",
                               SHOWN(name->database), SHOWN(name->collection),
                               SHOWN(name->database));
    return mongo_validation_prepare(call, &collection, false, &unused, err);
}

/* What would be kept and not obeyed is refused. */
static bool offered_check(const struct mongo_terms *terms, struct error *err)
{
    return !terms->capped ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "create: capped is not offered yet: documents go by an index with "
                           "expireAfterSeconds");
}

static bool terms_check(struct mongo_call *call, const struct mongo_namespace *name,
                        struct slice options, struct mongo_terms *ret_terms, struct error *err)
{
    return mongo_terms_read(options, ret_terms, err) && offered_check(ret_terms, err) &&
           validator_check(call, name, ret_terms, err) &&
           (!ret_terms->view_on.data || mongo_view_check(call, name, ret_terms, err));
}

/* --- create ---------------------------------------------------------------------------------- */

bool mongo_create(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;
    struct mongo_terms terms;
    struct slice options;

    static_assert(ARRAY_LEN(create_fields) == OPTIONS + 3, "options come first");
    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, create_fields, ARRAY_LEN(create_fields), NULL, err))
        return false;
    options = options_merge(call, SLICE_NONE, call->message.body);
    if (!options_collate(call, &options, err))
        return false;
    if (slice_starts_with(name.collection, SLICE("system.")))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE, "Invalid system namespace: %.*s.%.*s",
                               SHOWN(name.database), SHOWN(name.collection));
    if (!terms_check(call, &name, options, &terms, err))
        return false;
    write_charged(call);
    return mongo_collection_create(
        call, &name, &(struct mongo_collection_terms){.options = options}, &collection, err);
}

/* --- collMod --------------------------------------------------------------------------------- */

struct change {
    struct document_value index, capped_size, capped_max, expires, dry_run;
    struct document_value view_on, pipeline, validator, level, action, images;
};

static const struct mongo_field change_fields[] = {
    {"index", MONGO_FIELD_VALUE, offsetof(struct change, index)},
    {"validator", MONGO_FIELD_VALUE, offsetof(struct change, validator)},
    {"validationLevel", MONGO_FIELD_VALUE, offsetof(struct change, level)},
    {"validationAction", MONGO_FIELD_VALUE, offsetof(struct change, action)},
    {"viewOn", MONGO_FIELD_VALUE, offsetof(struct change, view_on)},
    {"pipeline", MONGO_FIELD_VALUE, offsetof(struct change, pipeline)},
    {"changeStreamPreAndPostImages", MONGO_FIELD_VALUE, offsetof(struct change, images)},
    {"cappedSize", MONGO_FIELD_VALUE, offsetof(struct change, capped_size)},
    {"cappedMax", MONGO_FIELD_VALUE, offsetof(struct change, capped_max)},
    {"expireAfterSeconds", MONGO_FIELD_VALUE, offsetof(struct change, expires)},
    {"dryRun", MONGO_FIELD_VALUE, offsetof(struct change, dry_run)},
};

static bool change_check(const struct change *change, const struct mongo_namespace *name,
                         const struct mongo_terms *terms, struct error *err)
{
    bool view = terms->view_on.data != NULL;
    bool capped = is_given(&change->capped_size) || is_given(&change->capped_max);
    bool both = is_given(&change->view_on) && is_given(&change->pipeline);

    if (is_given(&change->expires))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "'expireAfterSeconds' is only supported on time-series collections; "
                               "name the index it is of");
    if (view &&
        (is_given(&change->index) || is_given(&change->validator) || is_given(&change->level) ||
         is_given(&change->action) || is_given(&change->images) || capped))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "option not supported on a view: %s",
                               is_given(&change->index)       ? "index"
                               : is_given(&change->validator) ? "validator"
                               : is_given(&change->level)     ? "validationLevel"
                               : is_given(&change->action)    ? "validationAction"
                               : capped                       ? "cappedSize"
                                                              : "changeStreamPreAndPostImages");
    if (!view && (is_given(&change->view_on) || is_given(&change->pipeline)))
        return mongo_error_set(
            err, MONGO_INVALID_OPTIONS,
            "'viewOn' and 'pipeline' are of views, and %.*s.%.*s is a collection",
            SHOWN(name->database), SHOWN(name->collection));
    if (view && !both)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Must specify both 'viewOn' and 'pipeline' when modifying a view");
    return !capped || terms->capped ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "Trying to set 'cappedSize' or 'cappedMax' on a non-capped collection");
}

/* The fields of the command with cappedSize and cappedMax by the names that create has for them. */
static struct slice change_options(struct mongo_call *call, const struct change *change)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, call->message.body);
    while (document_iter_next(&iter))
        if (is_option(iter.key) && is_given(&iter.value))
            document_append(&out, iter.key, &iter.value);
    if (is_given(&change->capped_size))
        document_append(&out, SLICE("size"), &change->capped_size);
    if (is_given(&change->capped_max))
        document_append(&out, SLICE("max"), &change->capped_max);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

/* Gives the container other options. *ret_raced: somebody else has changed it meanwhile. */
static bool options_set(struct mongo_call *call, const struct mongo_namespace *name,
                        const struct container *container, struct slice options, bool *ret_raced,
                        struct error *err)
{
    struct slice body =
        definition_with_mongo(definition_fields(container_definition(container)),
                              mongo_terms_stored(options, call->arena), call->arena);
    struct container *changed;

    *ret_raced = false;
    if (!catalogue_container_replace(call->services->catalogue, call->account.id, name->database,
                                     name->collection, body, container_info(container)->etag,
                                     &changed, err)) {
        *ret_raced = err->code == ERROR_PRECONDITION_FAILED;
        return *ret_raced;
    }
    container_unref(changed);
    return true;
}

static bool change_once(struct mongo_call *call, const struct mongo_namespace *name,
                        const struct change *change, bool *ret_raced, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct slice options, asked = change_options(call, change);
    struct mongo_terms terms;

    *ret_raced = false;
    if (!mongo_collection_open_any(call, name, &collection, err))
        return false;
    if (!collection.container)
        return not_there(name, err);
    if (!change_check(change, name, &collection.terms, err))
        return false;
    if (!document_count(asked))
        return true;
    options = options_merge(call, collection.terms.options, asked);
    return terms_check(call, name, options, &terms, err) &&
           options_set(call, name, collection.container, options, ret_raced, err);
}

static bool index_change(struct mongo_call *call, const struct mongo_namespace *name,
                         const struct document_value *index, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};

    if (index->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'collMod.index' is the wrong type '%s', expected type "
                               "'object'",
                               mongo_type_name(index->type));
    if (!mongo_collection_open(call, name, &collection, err))
        return false;
    if (!collection.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist");
    return mongo_index_modify(call, &collection, name, index->document, err);
}

bool mongo_coll_mod(struct mongo_call *call, struct error *err)
{
    struct change change = {0};
    struct mongo_namespace name;
    bool raced = true;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, change_fields, ARRAY_LEN(change_fields), &change, err))
        return false;
    write_charged(call);
    if (is_given(&change.dry_run))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "collMod: dryRun is not offered");
    for (int attempt = 0; raced && attempt < ATTEMPTS_MAX; attempt++)
        if (!change_once(call, &name, &change, &raced, err))
            return false;
    if (raced)
        return mongo_error_set(err, MONGO_CONFLICTING_OPERATION,
                               "the collection is being changed by others");
    return !is_given(&change.index) || index_change(call, &name, &change.index, err);
}

/* --- drop ------------------------------------------------------------------------------------ */

bool mongo_drop(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;
    int32_t indexes;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_collection_open_any(call, &name, &collection, err))
        return false;
    write_charged(call);
    if (!collection.container)
        return true;
    indexes = mongo_index_count(&collection);
    if (!catalogue_container_drop(call->services->catalogue, call->account.id, name.database,
                                  name.collection, SLICE_NONE, err))
        return err->code == ERROR_NOT_FOUND;
    if (!collection.terms.view_on.data)
        document_append_int32(&call->reply, SLICE("nIndexesWas"), indexes);
    document_append_string(&call->reply, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    return true;
}

/* --- renameCollection ------------------------------------------------------------------------ */

struct renaming {
    struct slice to;
    struct document_value drop_target;
};

static bool rename_run(struct mongo_call *call, const struct mongo_namespace *from,
                       const struct mongo_namespace *to, bool drop_target, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection source = {0}, target = {0};
    struct container *renamed;

    if (!mongo_collection_open(call, from, &source, err) ||
        !mongo_collection_open_any(call, to, &target, err))
        return false;
    if (!source.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND,
                               "Source collection %.*s.%.*s does not exist", SHOWN(from->database),
                               SHOWN(from->collection));
    if (slice_equal(from->collection, to->collection))
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION, "Can't rename a collection to itself");
    if (target.container && (!drop_target || target.terms.view_on.data))
        return mongo_error_set(err, MONGO_NAMESPACE_EXISTS, "target namespace exists");
    if (!catalogue_container_rename(call->services->catalogue, call->account.id, from->database,
                                    from->collection, to->collection, drop_target, &renamed, err))
        return err->code == ERROR_NAME_TAKEN
                   ? mongo_error_set(err, MONGO_NAMESPACE_EXISTS, "target namespace exists")
                   : false;
    container_unref(renamed);
    return true;
}

bool mongo_rename_collection(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"to", MONGO_FIELD_STRING, offsetof(struct renaming, to), true},
        {"dropTarget", MONGO_FIELD_VALUE, offsetof(struct renaming, drop_target)},
    };
    struct renaming renaming = {0};
    struct mongo_namespace from, to;
    bool drop_target = false;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &renaming, err) ||
        !mongo_namespace_read(&call->target, &from, err))
        return false;
    {
        const struct document_value text = document_string(renaming.to);

        if (!mongo_namespace_read(&text, &to, err))
            return false;
    }
    if (is_given(&renaming.drop_target)) {
        if (renaming.drop_target.type != DOCUMENT_BOOL)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "BSON field 'renameCollection.dropTarget' is the wrong type "
                                   "'%s', expected type 'bool'",
                                   mongo_type_name(renaming.drop_target.type));
        drop_target = renaming.drop_target.boolean;
    }
    if (!slice_equal(from.database, to.database))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "renameCollection: a collection stays in its database; copy it with "
                               "$out");
    if (slice_starts_with(to.collection, SLICE("system.")))
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                               "renaming to system collections is not allowed");
    write_charged(call);
    return rename_run(call, &from, &to, drop_target, err);
}
