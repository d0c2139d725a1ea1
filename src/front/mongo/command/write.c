/* update and delete: a list of statements, each read, then carried out (statement.h). */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/point.h"
#include "front/mongo/command/statement.h"

enum { BATCH_MAX = 100000, ERRORS_TEXT_MAX = 1024 * 1024 };

/* --- Reading statements ---------------------------------------------------------------------- */

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

struct deletion {
    struct slice q, collation;
    int64_t limit;
    struct document_value hint;
};

static const struct mongo_field deletion_fields[] = {
    {"q", MONGO_FIELD_OBJECT, offsetof(struct deletion, q), true},
    {"limit", MONGO_FIELD_NUMBER, offsetof(struct deletion, limit), true},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct deletion, collation)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct deletion, hint)},
};

static bool deletion_fields_read(struct slice document, struct deletion *ret_deletion,
                                 struct error *err)
{
    if (!mongo_fields_read(document, "delete.deletes", deletion_fields, ARRAY_LEN(deletion_fields),
                           ret_deletion, err))
        return false;
    return ret_deletion->limit == 0 || ret_deletion->limit == 1 ||
           mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                           "The limit field in delete objects must be 0 or 1. Got %lld",
                           (long long)ret_deletion->limit);
}

static bool deletion_read(struct mongo_call *call, struct slice document,
                          struct mongo_statement *ret_statement, struct error *err)
{
    struct deletion deletion = {0};

    if (!deletion_fields_read(document, &deletion, err))
        return false;
    *ret_statement = (struct mongo_statement){
        .reading = {.shape = MONGO_SHAPE_VERSION,
                    .filter = deletion.q,
                    .collation = deletion.collation,
                    .collation_default = ret_statement->reading.collation_default,
                    .text = ret_statement->reading.text,
                    .hint = deletion.hint,
                    .let = ret_statement->reading.let,
                    .limit = UINT64_MAX},
        .multi = deletion.limit == 0,
        .upserted = document_undefined()};
    ret_statement->reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
    return mongo_reading_prepare(call, &ret_statement->reading, call->arena, err);
}

struct change {
    struct slice q, collation, array_filters;
    struct document_value u, hint, variables;
    bool multi, upsert;
};

static const struct mongo_field change_fields[] = {
    {"q", MONGO_FIELD_OBJECT, offsetof(struct change, q), true},
    {"u", MONGO_FIELD_VALUE, offsetof(struct change, u), true},
    {"multi", MONGO_FIELD_BOOL, offsetof(struct change, multi)},
    {"upsert", MONGO_FIELD_BOOL, offsetof(struct change, upsert)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct change, collation)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct change, hint)},
    {"arrayFilters", MONGO_FIELD_ARRAY, offsetof(struct change, array_filters)},
    {"c", MONGO_FIELD_VALUE, offsetof(struct change, variables)},
};

static bool change_fields_read(struct slice document, struct change *ret_change, struct error *err)
{
    return mongo_fields_read(document, "update.updates", change_fields, ARRAY_LEN(change_fields),
                             ret_change, err);
}

static bool change_read(struct mongo_call *call, struct slice document,
                        struct mongo_statement *ret_statement, struct error *err)
{
    struct change change = {0};

    if (!change_fields_read(document, &change, err))
        return false;
    *ret_statement = (struct mongo_statement){
        .reading = {.shape = MONGO_SHAPE_VERSION,
                    .filter = change.q,
                    .collation = change.collation,
                    .collation_default = ret_statement->reading.collation_default,
                    .text = ret_statement->reading.text,
                    .hint = change.hint,
                    .let = ret_statement->reading.let,
                    .limit = UINT64_MAX},
        .multi = change.multi,
        .upsert = change.upsert,
        .upserted = document_undefined()};
    ret_statement->reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
    return mongo_reading_prepare(call, &ret_statement->reading, call->arena, err) &&
           mongo_statement_update(
               call, &(struct mongo_changing){&change.u, change.array_filters, &change.variables},
               ret_statement, err);
}

/* --- update and delete ----------------------------------------------------------------------- */

static void error_add(struct mongo_writing *writing, size_t index, const struct document_value *id,
                      const struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(&writing->errors,
                                              document_index_key(writing->error_count++, text));

    document_append_int32(&writing->errors, SLICE("index"), (int32_t)index);
    if (writing->errors.len < ERRORS_TEXT_MAX) {
        mongo_write_error_append(writing->call, &writing->name, id, err, &writing->errors);
    } else {
        document_append_int32(&writing->errors, SLICE("code"), mongo_error_code(err));
        document_append_string(&writing->errors, SLICE("errmsg"), SLICE(""));
    }
    document_end(&writing->errors, one);
}

static void list_append(struct buf *out, const char *name, const struct buf *elements)
{
    size_t list = document_append_array_begin(out, slice_of_text(name));

    buf_append_slice(out, buf_slice(elements));
    document_end(out, list);
}

static bool grown_check(struct mongo_call *call, struct error *err)
{
    size_t used = arena_used(call->arena);

    return used <= call->held || front_call_hold(&call->front, used - call->held, err);
}

static void statements_run(struct mongo_writing *writing, struct mongo_documents *statements,
                           bool update, bool ordered)
{
    struct slice document;

    for (size_t i = 0; mongo_documents_next(statements, &document); i++) {
        struct mongo_statement statement = {
            .reading = {.let = writing->let,
                        .collation_default = writing->collection.terms.collation,
                        .text = mongo_text_index(&writing->collection)},
            .upserted = document_undefined()};
        struct error err;

        if (grown_check(writing->call, &err) &&
            (update ? change_read : deletion_read)(writing->call, document, &statement, &err) &&
            mongo_statement_run(writing, &statement, i, &err))
            continue;
        error_add(writing, i, &statement.upserted, &err);
        if (ordered)
            return;
    }
}

/* Fields that are not known, missing or of another type are faults of the command, found before
 * anything is carried out; what they hold is the statement's. */
static bool statements_check(const struct mongo_call *call, const char *list, bool update,
                             struct error *err)
{
    struct mongo_documents statements;
    struct slice document;

    if (!mongo_documents_open(call, list, &statements, err))
        return false;
    while (mongo_documents_next(&statements, &document)) {
        struct change change = {0};
        struct deletion deletion = {0};

        if (!(update ? change_fields_read(document, &change, err)
                     : deletion_fields_read(document, &deletion, err)))
            return false;
    }
    return true;
}

struct command {
    struct slice statements, let;
    bool ordered, bypass;
};

static bool command_read(struct mongo_writing *writing, const char *list, bool update,
                         struct command *ret_command, struct mongo_documents *ret_statements,
                         struct error *err)
{
    const struct mongo_field fields[] = {
        {list, MONGO_FIELD_ARRAY, offsetof(struct command, statements), true},
        {"ordered", MONGO_FIELD_BOOL, offsetof(struct command, ordered)},
        {"let", MONGO_FIELD_OBJECT, offsetof(struct command, let)},
        {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct command, bypass)},
    };
    struct mongo_call *call = writing->call;

    *ret_command = (struct command){.ordered = true};
    if (!mongo_call_namespace(call, &writing->name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), ret_command, err) ||
        !mongo_deadline(call, &writing->deadline_ms, err) ||
        !mongo_documents_open(call, list, ret_statements, err))
        return false;
    writing->let = ret_command->let;
    if (ret_statements->count == 0 || ret_statements->count > BATCH_MAX)
        return mongo_error_set(err, MONGO_INVALID_LENGTH,
                               "Write batch sizes must be between 1 and %d. Got %zu operations.",
                               BATCH_MAX, ret_statements->count);
    return statements_check(call, list, update, err);
}

static void answer_append(struct mongo_writing *writing, bool update)
{
    struct buf *out = &writing->call->reply;

    document_append_int32(out, SLICE("n"), writing->matched);
    if (update)
        document_append_int32(out, SLICE("nModified"), writing->modified);
    if (writing->upserted_count)
        list_append(out, "upserted", &writing->upserted);
    if (writing->error_count)
        list_append(out, "writeErrors", &writing->errors);
    buf_done(&writing->errors);
    buf_done(&writing->upserted);
}

/* --- One document, on the loop --------------------------------------------------------------- */

static void point_answer(struct mongo_point *point, const struct error *err)
{
    struct mongo_writing writing = {.call = point->call, .name = point->name};

    buf_init(&writing.errors, MONGO_BSON_BYTES_MAX);
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    writing.matched = writing.modified = !err;
    if (err)
        error_add(&writing, 0, &point->op.id, err);
    answer_append(&writing, true);
}

/* Is it an update of one document by its _id, and no more? */
static bool is_point(const struct change *change)
{
    return !change->multi && !change->upsert && !change->collation.data &&
           !change->array_filters.data && !is_given(&change->hint) &&
           !is_given(&change->variables) && change->u.type == DOCUMENT_OBJECT;
}

/* The document as it is in memory. False with the call cold: it is not; or, *ret_found false, it is
 * nowhere. */
static bool point_look(struct mongo_point *point, struct mongo_seen *ret_seen, bool *ret_found,
                       struct error *err)
{
    struct mongo_call *call = point->call;
    struct item_operation read = mongo_operation(call, &point->collection, ITEM_READ);
    char etag[ITEM_ETAG_LEN];
    enum item_start start;

    read.id = point->op.id;
    read.key = point->op.key;
    start = item_operation_start(&read, err);
    *ret_found = start == ITEM_START_ENDED;
    if (!*ret_found && (start == ITEM_START_COLD || err->code != ERROR_ITEM_MISSING))
        return false;
    mongo_call_charged(call, &read.metered);
    if (!*ret_found)
        return true;
    item_etag(&read.result.item.header, etag);
    ret_seen->document = read.result.item.document;
    ret_seen->etag = arena_copy(call->arena, slice_of(etag, sizeof etag));
    return document_find(ret_seen->document, SLICE("_id"), &ret_seen->id);
}

/* What the statement makes of the document, started; or answered, if that is nothing. */
static bool point_change(struct mongo_point *point, struct mongo_writing *writing,
                         struct slice document, struct error *err)
{
    struct mongo_statement statement = {.reading.let = writing->let,
                                        .upserted = document_undefined()};
    struct mongo_update_result result = {0};
    struct mongo_call *call = point->call;
    struct mongo_seen seen;
    bool found, holds = false;

    if (!point_look(point, &seen, &found, err))
        return false;
    if (found &&
        (!change_read(call, document, &statement, err) || statement.reading.script ||
         !mongo_seen_change(writing, &statement, seen.document, call->arena, &result, &holds, err)))
        return false;
    if (!found || !holds || !result.changed) {
        buf_init(&writing->errors, MONGO_BSON_BYTES_MAX);
        buf_init(&writing->upserted, MONGO_BSON_BYTES_MAX);
        writing->matched = found && holds;
        answer_append(writing, true);
        mongo_collection_close(&point->collection);
        call->cold = false;
        return true;
    }
    return mongo_seen_operation(writing, &seen, &result, call->arena, &point->op, err) &&
           mongo_point_start(point, err);
}

/* Whatever does not go the usual way is left to a worker: nothing was done then. */
static bool point_update(struct mongo_call *call, struct error *err)
{
    struct mongo_point *point = ARENA_NEW(call->arena, struct mongo_point);
    struct mongo_writing *writing = ARENA_NEW(call->arena, struct mongo_writing);
    struct mongo_documents statements;
    struct command command;
    struct change change = {0};
    struct slice document;
    bool fine;

    writing->call = point->call = call;
    if (!command_read(writing, "updates", true, &command, &statements, err) ||
        statements.count != 1 || !mongo_documents_next(&statements, &document) ||
        !change_fields_read(document, &change, err) || !is_point(&change) ||
        !mongo_collection_open(call, &writing->name, &point->collection, err))
        return false;
    point->name = writing->name;
    point->answer = point_answer;
    writing->collection = point->collection;
    fine = point->collection.container && !point->collection.terms.validator.data &&
           !point->collection.terms.capped && !point->collection.terms.collation.data &&
           mongo_item_named(&point->collection, change.q, &point->op.id, &point->op.key) &&
           point_change(point, writing, document, err);
    if (!fine)
        mongo_collection_close(&point->collection);
    return fine;
}

static bool command_run(struct mongo_call *call, const char *list, bool update, struct error *err)
{
    struct mongo_writing writing = {.call = call};
    struct mongo_documents statements;
    struct command command;

    if (!command_read(&writing, list, update, &command, &statements, err) ||
        !mongo_writing_open(&writing, command.bypass, err))
        return false;
    if (!mongo_retry_load(call, &writing.collection, err)) {
        mongo_collection_close(&writing.collection);
        return false;
    }
    buf_init(&writing.errors, MONGO_BSON_BYTES_MAX);
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    statements_run(&writing, &statements, update, command.ordered);
    mongo_collection_close(&writing.collection);
    answer_append(&writing, update);
    return true;
}

bool mongo_update(struct mongo_call *call, struct error *err)
{
    if (!call->may_block)
        return mongo_point_begin(call) && point_update(call, err);
    return command_run(call, "updates", true, err);
}

bool mongo_delete(struct mongo_call *call, struct error *err)
{
    return command_run(call, "deletes", false, err);
}
