/* findAndModify: one statement, and the document before or after it. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/statement.h"
#include "front/mongo/projection/projection.h"

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

struct modification {
    struct slice query, sort, fields, collation, array_filters, let;
    struct document_value update, hint;
    bool remove, new_one, upsert, bypass;
};

static const struct mongo_field modification_fields[] = {
    {"query", MONGO_FIELD_OBJECT, offsetof(struct modification, query)},
    {"sort", MONGO_FIELD_OBJECT, offsetof(struct modification, sort)},
    {"remove", MONGO_FIELD_BOOL, offsetof(struct modification, remove)},
    {"update", MONGO_FIELD_VALUE, offsetof(struct modification, update)},
    {"new", MONGO_FIELD_BOOL, offsetof(struct modification, new_one)},
    {"fields", MONGO_FIELD_OBJECT, offsetof(struct modification, fields)},
    {"upsert", MONGO_FIELD_BOOL, offsetof(struct modification, upsert)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct modification, collation)},
    {"arrayFilters", MONGO_FIELD_ARRAY, offsetof(struct modification, array_filters)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct modification, hint)},
    {"let", MONGO_FIELD_OBJECT, offsetof(struct modification, let)},
    {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct modification, bypass)},
};

static bool modification_check(const struct modification *asked, struct error *err)
{
    if (asked->remove && is_given(&asked->update))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Cannot specify both an update and remove=true");
    if (asked->remove && asked->new_one)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Cannot specify both new=true and remove=true; 'remove' always "
                               "returns the deleted document");
    if (asked->remove && asked->upsert)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Cannot specify both upsert=true and remove=true");
    if (!asked->remove && !is_given(&asked->update))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Either an update or remove=true must be specified");
    return true;
}

/* The part of a document that is wanted; in the arena. */
static bool document_show(struct mongo_writing *writing, const struct mongo_statement *statement,
                          struct slice document, struct slice fields,
                          struct document_value *ret_value, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_build build = {
        .arena = writing->call->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct mongo_match_options options = {.collator = statement->reading.collator,
                                                .expression = mongo_expression_hook,
                                                .expression_self =
                                                    (void *)&statement->reading.expressions};
    const struct mongo_projection *projection;
    struct query_slot slot;

    mongo_writing_context(&context, &slot, document, writing, writing->call->arena);
    *ret_value = document_object(document);
    return !fields.data || !document_count(fields) ||
           (mongo_projection_compile(fields, &options, statement->reading.match, &build,
                                     &projection, err) &&
            mongo_javascript_check(writing->call, build.script, err) &&
            mongo_projection_apply(projection, &slot.value, &context, ret_value, err));
}

static bool modification_answer(struct mongo_writing *writing,
                                const struct mongo_statement *statement,
                                const struct modification *asked, struct error *err)
{
    bool inserted = statement->upserted.type != DOCUMENT_UNDEFINED;
    struct slice shown = asked->new_one ? statement->after : statement->before;
    struct buf *out = &writing->call->reply;
    struct document_value value = document_null();
    size_t part;

    if (shown.data && !document_show(writing, statement, shown, asked->fields, &value, err))
        return false;
    part = document_append_object_begin(out, SLICE("lastErrorObject"));
    document_append_int32(out, SLICE("n"), writing->matched);
    if (!asked->remove) {
        document_append_bool(out, SLICE("updatedExisting"), writing->matched && !inserted);
        if (inserted)
            document_append(out, SLICE("upserted"), &statement->upserted);
    }
    document_end(out, part);
    document_append(out, SLICE("value"), &value);
    return true;
}

/* The command was carried out before: its image is that of then. */
static bool modification_found(struct mongo_writing *writing, struct mongo_statement *statement,
                               const struct modification *asked)
{
    struct mongo_outcome before;

    if (!mongo_retry_find(writing->call, 0, &before))
        return false;
    mongo_outcome_take(writing, &before, 0);
    statement->upserted = before.upserted;
    *(asked->new_one ? &statement->after : &statement->before) = before.image;
    return true;
}

/* A duplicate is the command's error here, with the words and fields of a write error. */
bool mongo_find_and_modify(struct mongo_call *call, struct error *err)
{
    struct mongo_writing writing = {.call = call};
    struct modification asked = {0};
    struct mongo_statement statement;
    bool fine;

    if (!mongo_call_namespace(call, &writing.name, err) ||
        !mongo_arguments_read(call, modification_fields, ARRAY_LEN(modification_fields), &asked,
                              err) ||
        !modification_check(&asked, err) || !mongo_deadline(call, &writing.deadline_ms, err) ||
        !mongo_writing_open(&writing, asked.bypass, err))
        return false;
    statement = (struct mongo_statement){
        .reading = {.shape = MONGO_SHAPE_VERSION,
                    .filter = asked.query,
                    .sort = asked.sort,
                    .collation = asked.collation,
                    .collation_default = writing.collection.terms.collation,
                    .text = mongo_text_index(&writing.collection),
                    .hint = asked.hint,
                    .let = asked.let,
                    .limit = UINT64_MAX},
        .upsert = asked.upsert,
        .upserted = document_undefined()};
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    writing.image = asked.new_one ? MONGO_IMAGE_AFTER : MONGO_IMAGE_BEFORE;
    statement.reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
    fine = mongo_reading_prepare(call, &statement.reading, call->arena, err) &&
           (asked.remove ||
            mongo_statement_update(
                call, &(struct mongo_changing){&asked.update, asked.array_filters, NULL},
                &statement, err)) &&
           mongo_retry_load(call, &writing.collection, err) &&
           (modification_found(&writing, &statement, &asked) ||
            mongo_statement_run_one(&writing, &statement, 0, err)) &&
           modification_answer(&writing, &statement, &asked, err);
    mongo_collection_close(&writing.collection);
    buf_done(&writing.upserted);
    if (!fine && err->code == ERROR_ITEM_EXISTS)
        return mongo_error_set(err, MONGO_DUPLICATE_KEY,
                               "E11000 duplicate key error collection: %.*s.%.*s index: _id_ dup "
                               "key: { _id: %.*s }",
                               SLICE_ARG(writing.name.database), SLICE_ARG(writing.name.collection),
                               SLICE_ARG(mongo_text_value(&statement.upserted, call->arena)));
    return fine;
}
