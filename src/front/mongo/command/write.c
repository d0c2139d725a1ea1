/* update and delete: look for what matches, then write the version that was seen. Whoever was
 * overtaken by another writer looks again, for the document may not match any more. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/filter.h"
#include "front/mongo/command/reading.h"
#include "item/bulk.h"

enum {
    BATCH_MAX = 100000,
    ATTEMPTS_MAX = 64,
    PAGE_ROWS = 256,
    PAGE_BYTES = 4 * 1024 * 1024,
    ERRORS_TEXT_MAX = 1024 * 1024,
};

/* What is the same for all statements of a command, and what has become of them. */
struct writing {
    struct mongo_call *call;
    struct mongo_namespace name;
    struct mongo_collection collection;
    int64_t deadline_ms;
    int32_t matched, modified; /* n and nModified */
    struct buf errors, upserted;
    uint32_t error_count, upserted_count;
};

/* A document that matches, as it was seen; in an arena. */
struct seen {
    struct slice document, etag;
    struct document_value id;
};

/* Lost against another writer: nothing was done, and the next look shows why. */
static bool is_overtaken(const struct error *err)
{
    return err->code == ERROR_PRECONDITION_FAILED || err->code == ERROR_ITEM_MISSING;
}

/* --- Looking --------------------------------------------------------------------------------- */

struct look {
    struct arena *arena;
    struct seen *seen;
    size_t count, max;
};

static bool look_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct look *look = self;
    struct seen *seen = &look->seen[look->count++];
    struct document_value part = document_undefined();

    assert(look->count <= look->max);
    (void)document_find(value->document, SLICE("d"), &part);
    seen->document = arena_copy(look->arena, part.document);
    (void)document_find(value->document, SLICE("e"), &part);
    seen->etag = arena_copy(look->arena, part.text);
    (void)document_find(seen->document, SLICE("_id"), &seen->id);
    return true;
}

/* The item with this _id. *ret_count 0: there is none. */
static bool id_look(struct writing *writing, const struct document_value *id, struct look *look,
                    struct error *err)
{
    struct item_operation op = mongo_operation(writing->call, &writing->collection, ITEM_READ);
    char etag[ITEM_ETAG_LEN];
    bool found;

    op.id = *id;
    op.key = mongo_item_key(&writing->collection, SLICE_NONE);
    op.arena = look->arena;
    found = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    if (!found)
        return err->code == ERROR_ITEM_MISSING;
    item_etag(&op.result.item.header, etag);
    look->seen[0].document = op.result.item.document;
    look->seen[0].etag = arena_copy(look->arena, slice_of(etag, sizeof etag));
    (void)document_find(op.result.item.document, SLICE("_id"), &look->seen[0].id);
    look->count = 1;
    return true;
}

/* Up to look->max documents that match, behind the continuation. */
static bool page_look(struct writing *writing, const struct mongo_reading *reading,
                      struct slice *continuation, struct look *look, struct error *err)
{
    struct mongo_page page = {.rows_max = look->max,
                              .bytes_max = PAGE_BYTES,
                              .deadline_ms = writing->deadline_ms,
                              .continuation = *continuation,
                              .row = look_take,
                              .self = look};

    if (!mongo_reading_page(writing->call, &writing->collection, reading, &page, err))
        return false;
    *continuation = page.continuation;
    return true;
}

/* One document that matches, or none. */
static bool one_look(struct writing *writing, struct slice filter, struct arena *arena,
                     struct seen *ret_seen, bool *ret_found, struct error *err)
{
    struct mongo_reading reading = {
        .shape = MONGO_SHAPE_VERSION, .filter = filter, .limit = UINT64_MAX};
    struct look look = {.arena = arena, .seen = ret_seen, .max = 1};
    struct slice continuation = SLICE_NONE;
    struct document_value id;

    if (mongo_filter_is_id(filter, &id) && writing->collection.space.definition->key.system_key) {
        *ret_found = false;
        if (!id_look(writing, &id, &look, err))
            return false;
        *ret_found = look.count > 0;
        return true;
    }
    if (!mongo_reading_prepare(&reading, arena, err))
        return false;
    do /* a page may end early, for its time was up */
        if (!page_look(writing, &reading, &continuation, &look, err))
            return false;
    while (!look.count && continuation.len);
    *ret_found = look.count > 0;
    return true;
}

/* --- Errors ---------------------------------------------------------------------------------- */

static void error_add(struct writing *writing, size_t index, const struct document_value *id,
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

/* --- delete ---------------------------------------------------------------------------------- */

struct deletion {
    struct slice q;
    int64_t limit;
    struct document_value collation, hint;
};

static const struct mongo_field deletion_fields[] = {
    {"q", MONGO_FIELD_OBJECT, offsetof(struct deletion, q), true},
    {"limit", MONGO_FIELD_NUMBER, offsetof(struct deletion, limit), true},
    {"collation", MONGO_FIELD_VALUE, offsetof(struct deletion, collation)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct deletion, hint)},
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool seen_delete(struct writing *writing, const struct seen *seen, struct arena *arena,
                        struct error *err)
{
    struct item_operation op = mongo_operation(writing->call, &writing->collection, ITEM_DELETE);
    bool done;

    op.id = seen->id;
    op.key = mongo_item_key(&writing->collection, seen->document);
    op.arena = arena;
    op.options.if_match = seen->etag;
    done = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    return done;
}

static bool one_delete(struct writing *writing, struct slice filter, struct error *err)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct seen seen;
        bool found;

        if (!one_look(writing, filter, arena, &seen, &found, err))
            return false;
        if (!found)
            return true;
        if (seen_delete(writing, &seen, arena, err)) {
            writing->matched++;
            return true;
        }
        if (!is_overtaken(err))
            return false;
    }
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", ATTEMPTS_MAX);
}

/* Deletes a page of documents, all at once. *ret_overtaken: some were written meanwhile. */
static bool page_delete(struct writing *writing, const struct look *look, bool *ret_overtaken,
                        struct error *err)
{
    struct item_operation *operations =
        ARENA_ARRAY(look->arena, struct item_operation, look->count);
    bool fine = true;

    for (size_t i = 0; i < look->count; i++) {
        operations[i] = mongo_operation(writing->call, &writing->collection, ITEM_DELETE);
        operations[i].id = look->seen[i].id;
        operations[i].key = mongo_item_key(&writing->collection, look->seen[i].document);
        operations[i].arena = look->arena;
        operations[i].options.if_match = look->seen[i].etag;
    }
    bulk_run(operations, look->count, &(struct bulk_options){0});
    for (size_t i = 0; i < look->count; i++) {
        mongo_call_charged(writing->call, &operations[i].metered);
        if (operations[i].err.code == ERROR_NONE) {
            writing->matched++;
        } else if (is_overtaken(&operations[i].err)) {
            *ret_overtaken = true;
        } else if (fine) {
            *err = operations[i].err;
            fine = false;
        }
    }
    return fine;
}

/* All that match now, from the beginning. */
static bool pass_delete(struct writing *writing, const struct mongo_reading *reading,
                        bool *ret_overtaken, struct error *err)
{
    struct slice continuation = SLICE_NONE;

    do {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct look look = {.arena = arena,
                            .seen = ARENA_ARRAY(arena, struct seen, PAGE_ROWS),
                            .max = PAGE_ROWS};

        if (!page_look(writing, reading, &continuation, &look, err) ||
            (look.count && !page_delete(writing, &look, ret_overtaken, err)))
            return false;
        front_call_breathe(&writing->call->front);
    } while (continuation.len);
    return true;
}

static bool all_delete(struct writing *writing, struct slice filter, struct error *err)
{
    struct mongo_reading reading = {
        .shape = MONGO_SHAPE_VERSION, .filter = filter, .limit = UINT64_MAX};

    if (!mongo_reading_prepare(&reading, writing->call->arena, err))
        return false;
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        bool overtaken = false;

        if (!pass_delete(writing, &reading, &overtaken, err))
            return false;
        if (!overtaken)
            return true;
    }
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", ATTEMPTS_MAX);
}

static bool statement_delete(struct writing *writing, struct slice statement, struct error *err)
{
    struct deletion deletion = {0};

    if (!mongo_fields_read(statement, "delete.deletes", deletion_fields,
                           ARRAY_LEN(deletion_fields), &deletion, err))
        return false;
    if (deletion.limit != 0 && deletion.limit != 1)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "The limit field in delete objects must be 0 or 1. Got %lld",
                               (long long)deletion.limit);
    if (is_given(&deletion.collation) || is_given(&deletion.hint))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "delete: collation and hint are not offered yet");
    if (!writing->collection.container)
        return true;
    return deletion.limit ? one_delete(writing, deletion.q, err)
                          : all_delete(writing, deletion.q, err);
}

/* --- update ---------------------------------------------------------------------------------- */

struct change {
    struct slice q;
    struct document_value u, collation, hint, array_filters, variables;
    bool multi, upsert;
};

static const struct mongo_field change_fields[] = {
    {"q", MONGO_FIELD_OBJECT, offsetof(struct change, q), true},
    {"u", MONGO_FIELD_VALUE, offsetof(struct change, u), true},
    {"multi", MONGO_FIELD_BOOL, offsetof(struct change, multi)},
    {"upsert", MONGO_FIELD_BOOL, offsetof(struct change, upsert)},
    {"collation", MONGO_FIELD_VALUE, offsetof(struct change, collation)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct change, hint)},
    {"arrayFilters", MONGO_FIELD_VALUE, offsetof(struct change, array_filters)},
    {"c", MONGO_FIELD_VALUE, offsetof(struct change, variables)},
};

static bool change_check(const struct change *change, struct error *err)
{
    struct document_iter iter;

    if (change->u.type == DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "update: pipelines are not offered yet");
    if (change->u.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Update argument must be either an object or an array");
    document_iter_init(&iter, change->u.document);
    if (document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$')
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "update: the operator %.*s is not offered yet",
                               (int)MIN(iter.key.len, (size_t)32), (const char *)iter.key.data);
    if (change->multi)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "multi update is not supported for replacement-style update");
    if (is_given(&change->collation) || is_given(&change->hint) ||
        is_given(&change->array_filters) || is_given(&change->variables))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "update: collation, hint, arrayFilters and variables are not "
                               "offered yet");
    return true;
}

static bool seen_replace(struct writing *writing, const struct seen *seen, struct slice document,
                         struct error *err)
{
    struct item_operation op = mongo_operation(writing->call, &writing->collection, ITEM_REPLACE);
    struct mongo_item item;
    bool done;

    if (!mongo_item_replace(writing->call, document, &seen->id, &item, err))
        return false;
    if (slice_equal(item.document, seen->document)) {
        writing->matched++;
        return true;
    }
    op.id = item.id;
    op.key = mongo_item_key(&writing->collection, item.document);
    op.document = item.document;
    op.options.if_match = seen->etag;
    done = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    writing->matched += done;
    writing->modified += done;
    return done;
}

/* What is inserted where nothing matched: the replacement with the _id the filter asks for. */
static bool upsert_insert(struct writing *writing, const struct change *change, size_t index,
                          struct error *err)
{
    struct item_operation op;
    struct document_value id;
    struct mongo_item item;
    char text[DOCUMENT_INDEX_SIZE];
    size_t one;
    bool done;

    if (!mongo_collection_make(writing->call, &writing->name, &writing->collection, err))
        return false;
    if (document_find(change->q, SLICE("_id"), &id)) {
        if (!mongo_item_replace(writing->call, change->u.document, &id, &item, err))
            return false;
    } else if (!mongo_item_make(writing->call, change->u.document, &item, err)) {
        return false;
    }
    op = mongo_operation(writing->call, &writing->collection, ITEM_CREATE);
    op.id = item.id;
    op.key = mongo_item_key(&writing->collection, item.document);
    op.document = item.document;
    done = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    if (!done)
        return false;
    writing->matched++;
    one = document_append_object_begin(&writing->upserted,
                                       document_index_key(writing->upserted_count++, text));
    document_append_int32(&writing->upserted, SLICE("index"), (int32_t)index);
    document_append(&writing->upserted, SLICE("_id"), &item.id);
    document_end(&writing->upserted, one);
    return true;
}

static bool one_update(struct writing *writing, const struct change *change, size_t index,
                       struct error *err)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct seen seen;
        bool found = false;

        if (writing->collection.container &&
            !one_look(writing, change->q, arena, &seen, &found, err))
            return false;
        if (!found && !change->upsert)
            return true;
        if (found ? seen_replace(writing, &seen, change->u.document, err)
                  : upsert_insert(writing, change, index, err))
            return true;
        if (found ? !is_overtaken(err) : err->code != ERROR_ITEM_EXISTS)
            return false;
        if (!found && attempt)
            return false; /* taken by a document that does not match */
    }
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", ATTEMPTS_MAX);
}

static bool statement_update(struct writing *writing, struct slice statement, size_t index,
                             struct error *err)
{
    struct change change = {0};

    return mongo_fields_read(statement, "update.updates", change_fields, ARRAY_LEN(change_fields),
                             &change, err) &&
           change_check(&change, err) && one_update(writing, &change, index, err);
}

/* --- The commands ---------------------------------------------------------------------------- */

struct command {
    struct slice statements, let;
    bool ordered;
};

static bool statements_run(struct writing *writing, struct mongo_documents *statements,
                           bool update, bool ordered)
{
    struct slice statement;

    for (size_t i = 0; mongo_documents_next(statements, &statement); i++) {
        struct document_value id = document_undefined(), q;
        struct error err;

        if (update ? statement_update(writing, statement, i, &err)
                   : statement_delete(writing, statement, &err))
            continue;
        if (document_find(statement, SLICE("q"), &q) && q.type == DOCUMENT_OBJECT)
            (void)document_find(q.document, SLICE("_id"), &id);
        error_add(writing, i, &id, &err);
        if (ordered)
            return false;
    }
    return true;
}

static bool command_run(struct mongo_call *call, const char *list, bool update, struct error *err)
{
    const struct mongo_field fields[] = {
        {list, MONGO_FIELD_ARRAY, offsetof(struct command, statements), true},
        {"ordered", MONGO_FIELD_BOOL, offsetof(struct command, ordered)},
        {"let", MONGO_FIELD_OBJECT, offsetof(struct command, let)},
        {"bypassDocumentValidation", MONGO_FIELD_ANY},
    };
    struct command command = {.ordered = true};
    struct writing writing = {.call = call};
    struct mongo_documents statements;

    if (!mongo_call_namespace(call, &writing.name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &command, err) ||
        !mongo_deadline(call, &writing.deadline_ms, err) ||
        !mongo_documents_open(call, list, &statements, err))
        return false;
    if (command.let.data && document_count(command.let))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%s: let is not offered yet",
                               call->command->name);
    if (statements.count == 0 || statements.count > BATCH_MAX)
        return mongo_error_set(err, MONGO_INVALID_LENGTH,
                               "Write batch sizes must be between 1 and %d. Got %zu operations.",
                               BATCH_MAX, statements.count);
    if (!mongo_collection_open(call, &writing.name, &writing.collection, err))
        return false;
    buf_init(&writing.errors, MONGO_BSON_BYTES_MAX);
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    (void)statements_run(&writing, &statements, update, command.ordered);
    mongo_collection_close(&writing.collection);
    document_append_int32(&call->reply, SLICE("n"), writing.matched);
    if (update)
        document_append_int32(&call->reply, SLICE("nModified"), writing.modified);
    if (writing.upserted_count)
        list_append(&call->reply, "upserted", &writing.upserted);
    if (writing.error_count)
        list_append(&call->reply, "writeErrors", &writing.errors);
    buf_done(&writing.errors);
    buf_done(&writing.upserted);
    return true;
}

bool mongo_update(struct mongo_call *call, struct error *err)
{
    return command_run(call, "updates", true, err);
}

bool mongo_delete(struct mongo_call *call, struct error *err)
{
    return command_run(call, "deletes", false, err);
}
