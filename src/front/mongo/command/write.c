/* update, delete and findAndModify: look for what matches, then write the version that was seen.
 * Whoever was overtaken by another writer looks at the document again, which may not match any
 * more.
 *
 * What a statement looks at is in arenas of its own, one for each page, so that a statement over
 * all documents of a collection holds no more than a page of them. */
#include "base/clock.h"
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/filter.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/retry.h"
#include "front/mongo/command/told.h"
#include "front/mongo/command/validation.h"
#include "front/mongo/pipeline/pipeline.h"
#include "front/mongo/projection/projection.h"
#include "front/mongo/update/update.h"
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
    struct mongo_validation validation;
    int64_t deadline_ms;
    struct slice let;          /* variables; data NULL: none */
    int32_t matched, modified; /* n and nModified */
    struct buf errors, upserted;
    uint32_t error_count, upserted_count;
    size_t statement;                                     /* which it is at, for its record */
    enum { IMAGE_NONE, IMAGE_BEFORE, IMAGE_AFTER } image; /* what the record keeps of it */
};

/* A document that matches, as it was seen; in an arena. */
struct seen {
    struct slice document, etag;
    struct document_value id;
};

/* One statement: what it looks for, and what it makes of it. */
struct statement {
    struct mongo_reading reading;
    const struct mongo_update *update; /* NULL: it deletes */
    bool upsert, multi;

    /* Of the last document that was written, for findAndModify; in the call's arena. */
    struct slice before, after;     /* data NULL: there was, or is, none */
    struct document_value upserted; /* its _id; undefined: nothing was inserted */
};

/* Lost against another writer, or against another shard key: nothing was done, and the next look
 * shows why. */
static bool is_overtaken(const struct error *err)
{
    return err->code == ERROR_PRECONDITION_FAILED || err->code == ERROR_ITEM_MISSING ||
           err->code == ERROR_REKEYED;
}

static bool overtaken_too_often(struct error *err)
{
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", ATTEMPTS_MAX);
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

/* The item with this _id and key, as it is now. *ret_found false: there is none. */
static bool item_look(struct writing *writing, const struct document_value *id,
                      const struct partition_key *key, struct arena *arena, struct seen *ret_seen,
                      bool *ret_found, struct error *err)
{
    struct item_operation op = mongo_operation(writing->call, &writing->collection, ITEM_READ);
    char etag[ITEM_ETAG_LEN];

    op.id = *id;
    op.key = *key;
    op.arena = arena;
    *ret_found = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    if (!*ret_found)
        return err->code == ERROR_ITEM_MISSING;
    item_etag(&op.result.item.header, etag);
    ret_seen->document = op.result.item.document;
    ret_seen->etag = arena_copy(arena, slice_of(etag, sizeof etag));
    (void)document_find(op.result.item.document, SLICE("_id"), &ret_seen->id);
    return true;
}

/* Up to look->max documents that match, behind the continuation. */
static bool page_look(struct writing *writing, const struct statement *statement,
                      struct slice *continuation, struct look *look, struct error *err)
{
    struct mongo_page page = {.rows_max = look->max,
                              .bytes_max = PAGE_BYTES,
                              .deadline_ms = writing->deadline_ms,
                              .continuation = *continuation,
                              .row = look_take,
                              .self = look};

    if (!mongo_reading_page(writing->call, &writing->collection, &statement->reading, &page, err))
        return false;
    *continuation = page.continuation;
    return true;
}

/* One document that matches, or none. */
static bool one_look(struct writing *writing, const struct statement *statement,
                     struct arena *arena, struct seen *ret_seen, bool *ret_found, struct error *err)
{
    struct look look = {.arena = arena, .seen = ret_seen, .max = 1};
    struct slice continuation = SLICE_NONE;
    struct partition_key key;
    struct document_value id;

    *ret_found = false;
    if (!writing->collection.container)
        return true;
    if (!writing->call->explaining && !mongo_reading_is_hinted(&statement->reading) &&
        !statement->reading.collator &&
        mongo_item_named(&writing->collection, statement->reading.filter, &id, &key))
        return item_look(writing, &id, &key, arena, ret_seen, ret_found, err);
    do /* a page may end early, for its time was up */
        if (!page_look(writing, statement, &continuation, &look, err))
            return false;
    while (!look.count && continuation.len);
    *ret_found = look.count > 0;
    return true;
}

/* --- One document ---------------------------------------------------------------------------- */

static void context_begin(struct query_context *context, struct query_slot *slot,
                          struct slice document, struct writing *writing, struct arena *arena)
{
    *slot = (struct query_slot){.value = document_object(document)};
    query_context_init(context, arena, NULL, writing->call->services->clock);
    context->slots = slot;
    context->slot_count = 1;
    context->order = DOCUMENT_ORDER_MONGO;
    context->keep_nonfinite = true;
    if (writing->call->options->javascript)
        context->udf = mongo_javascript_host(writing->call);
}

static struct mongo_update_input input_of(const struct writing *writing, struct slice document,
                                          struct query_context *context)
{
    int64_t now_ms = clock_read_wall_ms(writing->call->services->clock);

    return (struct mongo_update_input){.document = document,
                                       .position = -1,
                                       .now_ms = now_ms,
                                       .now_timestamp = (uint64_t)(now_ms / 1000) << 32 | 1,
                                       .context = context};
}

/* What the document becomes. *ret_holds false: it does not match, as seen now. */
static bool document_change(struct writing *writing, const struct statement *statement,
                            struct slice document, struct arena *arena,
                            struct mongo_update_result *ret_result, bool *ret_holds,
                            struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    const struct document_value value = document_object(document);
    struct mongo_update_input input;
    struct query_slot slot;

    context_begin(&context, &slot, document, writing, arena);
    input = input_of(writing, document, &context);
    if (!mongo_match_position(statement->reading.match, &value, &context, ret_holds,
                              &input.position, err))
        return false;
    return !*ret_holds || !statement->update ||
           mongo_update_apply(statement->update, &input, arena, ret_result, err);
}

/* What an update by operators did, for change streams; absent for a replacement. */
static struct slice description_of(const struct mongo_update_result *result, struct arena *arena)
{
    const struct document_value updated = document_object(result->updated_fields),
                                removed = document_array(result->removed_fields),
                                truncated = document_array(result->truncated_arrays);
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, ENGINE_VALUE_MAX);
    if (!result->updated_fields.data)
        return SLICE_NONE;
    begin = document_begin(&out);
    document_append(&out, SLICE("updatedFields"), &updated);
    document_append(&out, SLICE("removedFields"), &removed);
    document_append(&out, SLICE("truncatedArrays"), &truncated);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* Writes what the document becomes, or deletes it. *ret_written false: another writer was first. */
static bool seen_write(struct writing *writing, const struct seen *seen,
                       const struct mongo_update_result *result, struct arena *arena,
                       bool *ret_written, struct error *err)
{
    struct slice after = result->document;
    struct item_operation op = mongo_operation(writing->call, &writing->collection,
                                               after.data ? ITEM_REPLACE : ITEM_DELETE);
    bool done;

    op.id = seen->id;
    op.key = mongo_item_key(&writing->collection, seen->document);
    op.arena = arena;
    op.document = after;
    if (after.data && !mongo_shard_key_keep(&writing->collection, seen->document, after, err))
        return false;
    op.options.if_match = seen->etag;
    op.options.record = mongo_retry_record(
        writing->call, writing->statement,
        &(struct mongo_outcome){.matched = 1,
                                .modified = after.data != NULL,
                                .upserted = document_undefined(),
                                .image = writing->image == IMAGE_BEFORE  ? seen->document
                                         : writing->image == IMAGE_AFTER ? after
                                                                         : SLICE_NONE});
    op.options.description = description_of(result, arena);
    done = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    mongo_told_item(writing->call, &writing->collection, &op, done ? NULL : err);
    *ret_written = done;
    if (!done && after.data)
        mongo_duplicate_tell(writing->call, &writing->collection, &writing->name, after, err);
    return done || is_overtaken(err);
}

/* The document as it is now, after another writer, or another shard key, was faster. */
static bool seen_again(struct writing *writing, struct seen *seen, bool rekeyed,
                       struct arena *arena, bool *ret_there, struct error *err)
{
    struct partition_key key;

    *ret_there = false;
    if (rekeyed &&
        !mongo_collection_reopen(writing->call, &writing->name, &writing->collection, err))
        return false;
    if (!writing->collection.container)
        return true;
    key = mongo_item_key(&writing->collection, seen->document);
    return item_look(writing, &seen->id, &key, arena, seen, ret_there, err);
}

static void written_keep(const struct writing *writing, struct statement *statement,
                         struct slice before, struct slice after)
{
    struct arena *arena = writing->call->arena;

    statement->before = arena_copy(arena, before);
    statement->after = after.data ? arena_copy(arena, after) : SLICE_NONE;
}

/* Carries the statement out on a document that was seen to match; overtaken, on what it is then. */
static bool seen_carry_out(struct writing *writing, struct statement *statement, struct seen *seen,
                           struct arena *arena, bool *ret_done, struct error *err)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        struct mongo_update_result result = {0};
        bool there, written = true;

        if (!document_change(writing, statement, seen->document, arena, &result, ret_done, err))
            return false;
        if (!*ret_done)
            return true;
        if (result.changed && !mongo_validation_check(&writing->validation, result.document,
                                                      seen->document, arena, err))
            return false;
        if (!statement->update || result.changed) {
            if (!seen_write(writing, seen, &result, arena, &written, err))
                return false;
        }
        if (written) {
            writing->matched++;
            writing->modified += result.changed;
            if (!statement->multi) /* of all documents nobody asks, and they would not fit */
                written_keep(writing, statement, seen->document, result.document);
            return true;
        }
        if (!seen_again(writing, seen, err->code == ERROR_REKEYED, arena, &there, err))
            return false;
        *ret_done = false;
        if (!there)
            return true;
    }
    return overtaken_too_often(err);
}

/* --- Inserting what was not found ------------------------------------------------------------ */

static void upserted_add(struct writing *writing, size_t index, const struct document_value *id)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(&writing->upserted,
                                              document_index_key(writing->upserted_count++, text));

    document_append_int32(&writing->upserted, SLICE("index"), (int32_t)index);
    document_append(&writing->upserted, SLICE("_id"), id);
    document_end(&writing->upserted, one);
}

/* Where to insert follows from the filter: of a sharded collection it has to say the whole key, and
 * what is inserted has to have it. */
static bool upsert_check(struct writing *writing, const struct statement *statement,
                         struct slice document, struct error *err)
{
    const struct partition_definition *key;
    struct mongo_equality *equalities;
    size_t count;

    if (!mongo_collection_is_sharded(&writing->collection))
        return true;
    key = &writing->collection.space.definition->key;
    if (!mongo_match_equalities(statement->reading.match, writing->call->arena, &equalities, &count,
                                err))
        return false;
    for (size_t i = 0; i < key->path_count; i++) {
        bool found = false;

        for (size_t e = 0; e < count && !found; e++) {
            struct document_value value;

            found = mongo_path_is_called(&key->paths[i], equalities[e].path);
            if (found && document_path_find(&key->paths[i], document, &value) &&
                document_compare(DOCUMENT_ORDER_MONGO, &value, &equalities[e].value) != 0)
                return mongo_error_set(err, MONGO_IMMUTABLE_FIELD,
                                       "the update would give the document another shard key than "
                                       "the query of the upsert names");
        }
        if (!found)
            return mongo_error_set(err, MONGO_SHARD_KEY_NOT_FOUND,
                                   "Failed to target upsert by query :: could not extract exact "
                                   "shard key");
    }
    return mongo_shard_key_check(&writing->collection, document, err);
}

static bool upsert_insert(struct writing *writing, struct statement *statement, size_t index,
                          struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct mongo_call *call = writing->call;
    uint8_t made[DOCUMENT_OBJECT_ID_SIZE];
    const struct document_value new_id = {.type = DOCUMENT_OBJECT_ID, .id = made};
    struct mongo_update_input input;
    struct item_operation op;
    struct query_slot slot;
    struct mongo_item item;
    struct slice document;

    context_begin(&context, &slot, SLICE_NONE, writing, call->arena);
    slot.value = document_undefined();
    input = input_of(writing, SLICE_NONE, &context);
    input.inserting = true;
    mongo_object_id(call->mongo, made);
    if (!mongo_update_upsert(statement->update, statement->reading.match, &input, &new_id,
                             call->arena, &document, err) ||
        !mongo_item_make(call, document, &item, err))
        return false;
    mongo_collection_close(&writing->collection);
    if (!mongo_collection_make(call, &writing->name, &writing->collection, err) ||
        !mongo_validation_check(&writing->validation, item.document, SLICE_NONE, call->arena,
                                err) ||
        !upsert_check(writing, statement, item.document, err))
        return false;
    op = mongo_operation(call, &writing->collection, ITEM_CREATE);
    op.id = item.id;
    op.key = mongo_item_key(&writing->collection, item.document);
    op.document = item.document;
    op.options.record = mongo_retry_record(
        call, writing->statement,
        &(struct mongo_outcome){.matched = 1,
                                .upserted = item.id,
                                .image =
                                    writing->image == IMAGE_AFTER ? item.document : SLICE_NONE});
    statement->upserted = item.id;
    if (!item_operation_run(&op, err)) {
        mongo_call_charged(call, &op.metered);
        mongo_told_item(call, &writing->collection, &op, err);
        mongo_duplicate_tell(call, &writing->collection, &writing->name, item.document, err);
        return false;
    }
    mongo_call_charged(call, &op.metered);
    mongo_told_item(call, &writing->collection, &op, NULL);
    statement->after = item.document;
    writing->matched++;
    upserted_add(writing, index, &item.id);
    return true;
}

/* --- Statements ------------------------------------------------------------------------------ */

/* The collection has another shard key than what was looked at, of which nothing was done: it is
 * opened anew. */
static bool is_rekeyed(struct writing *writing, struct error *err)
{
    struct error ignored;

    return err->code == ERROR_REKEYED &&
           mongo_collection_reopen(writing->call, &writing->name, &writing->collection, &ignored);
}

/* On one document that matches, or on none. */
static bool one_run(struct writing *writing, struct statement *statement, size_t index,
                    struct error *err)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        bool found, done = false;
        struct seen seen;

        if (!one_look(writing, statement, arena, &seen, &found, err) ||
            (found && !seen_carry_out(writing, statement, &seen, arena, &done, err))) {
            if (is_rekeyed(writing, err))
                continue;
            return false;
        }
        if (done)
            return true;
        if (found)
            continue; /* it has gone, or become another */
        if (!statement->upsert || upsert_insert(writing, statement, index, err))
            return true;
        if (is_rekeyed(writing, err))
            continue;
        /* taken by a document that came meanwhile, or else by one that does not match */
        if (err->code != ERROR_ITEM_EXISTS || attempt)
            return false;
        statement->upserted = document_undefined();
    }
    return overtaken_too_often(err);
}

/* Deletes a page of documents at once; those that were overtaken one by one. */
static bool page_delete(struct writing *writing, struct statement *statement,
                        const struct look *look, struct error *err)
{
    struct item_operation *operations =
        ARENA_ARRAY(look->arena, struct item_operation, look->count);
    bool fine = true, done;

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
        mongo_told_item(writing->call, &writing->collection, &operations[i],
                        operations[i].err.code == ERROR_NONE ? NULL : &operations[i].err);
        if (operations[i].err.code == ERROR_NONE)
            writing->matched++;
        else if (!fine)
            continue;
        else if (is_overtaken(&operations[i].err))
            fine = seen_carry_out(writing, statement, &look->seen[i], look->arena, &done, err);
        else
            fine = false, *err = operations[i].err;
    }
    return fine;
}

static bool page_update(struct writing *writing, struct statement *statement,
                        const struct look *look, struct error *err)
{
    bool done;

    for (size_t i = 0; i < look->count; i++)
        if (!seen_carry_out(writing, statement, &look->seen[i], look->arena, &done, err))
            return false;
    return true;
}

/* On all documents that match. They are looked at in an order that no update changes, that of their
 * _id or, where an index might lead to them by what is updated, that of their creation: none is
 * seen twice. */
static bool all_run(struct writing *writing, struct statement *statement, size_t index,
                    struct error *err)
{
    struct slice continuation = SLICE_NONE;
    int32_t before = writing->matched;

    if (statement->update && writing->collection.container &&
        writing->collection.space.definition->index_count)
        mongo_reading_by_creation(&statement->reading, writing->call->arena);
    while (writing->collection.container) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct look look = {
            .arena = arena, .seen = ARENA_ARRAY(arena, struct seen, PAGE_ROWS), .max = PAGE_ROWS};

        if (!page_look(writing, statement, &continuation, &look, err)) {
            if (writing->matched == before && is_rekeyed(writing, err)) {
                continuation = SLICE_NONE;
                continue;
            }
            return err->code == ERROR_REKEYED
                       ? mongo_error_set(err, MONGO_QUERY_PLAN_KILLED,
                                         "the collection got another shard key while its documents "
                                         "were written: %d were",
                                         writing->matched - before)
                       : false;
        }
        if (look.count && !(statement->update ? page_update(writing, statement, &look, err)
                                              : page_delete(writing, statement, &look, err)))
            return false;
        if (!continuation.len)
            break;
        front_call_breathe(&writing->call->front);
    }
    return writing->matched != before || !statement->upsert ||
           upsert_insert(writing, statement, index, err);
}

/* It was carried out before: it counts as it did then. */
static void outcome_take(struct writing *writing, const struct mongo_outcome *outcome, size_t index)
{
    writing->matched += outcome->matched;
    writing->modified += outcome->modified;
    if (outcome->upserted.type != DOCUMENT_UNDEFINED)
        upserted_add(writing, index, &outcome->upserted);
}

static bool statement_run(struct writing *writing, struct statement *statement, size_t index,
                          struct error *err)
{
    struct mongo_outcome before;

    if (mongo_retry_is_on(writing->call) && statement->multi)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Cannot use (or request) retryable writes with %s",
                               statement->update ? "multi=true" : "limit=0");
    if (mongo_retry_find(writing->call, index, &before)) {
        outcome_take(writing, &before, index);
        return true;
    }
    writing->statement = index;
    return statement->multi ? all_run(writing, statement, index, err)
                            : one_run(writing, statement, index, err);
}

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
                          struct statement *ret_statement, struct error *err)
{
    struct deletion deletion = {0};

    if (!deletion_fields_read(document, &deletion, err))
        return false;
    *ret_statement = (struct statement){
        .reading = {.shape = MONGO_SHAPE_VERSION,
                    .filter = deletion.q,
                    .collation = deletion.collation,
                    .collation_default = ret_statement->reading.collation_default,
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

/* What an update consists of besides the documents it is for. */
struct changing {
    const struct document_value *update;
    struct slice array_filters;
    const struct document_value *constants; /* of a pipeline, `c`; NULL: none */
};

/* A pipeline sees the variables of `let`, and of `c` behind them. */
struct pipeline_scope {
    const struct mongo_expression_options *outer;
    struct slice constants;
};

static bool pipeline_compile(void *self, struct slice pipeline, struct query_build *build,
                             const struct query_expression **ret_document, struct error *err)
{
    const struct pipeline_scope *scope = self;
    struct mongo_expression_options options = {.collator = scope->outer->collator};

    return mongo_expression_let(scope->constants, scope->outer, build, &options.variables,
                                &options.variable_count, err) &&
           mongo_pipeline_update(pipeline, &options, build, ret_document, err);
}

static bool update_prepare(struct mongo_call *call, const struct changing *changing,
                           struct statement *statement, struct error *err)
{
    struct query_build build = {
        .arena = call->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    struct pipeline_scope scope = {.outer = &statement->reading.expressions};
    const struct mongo_update_options options = {.array_filters = changing->array_filters,
                                                 .collator = statement->reading.collator,
                                                 .multi = statement->multi,
                                                 .pipeline = pipeline_compile,
                                                 .pipeline_self = &scope};

    if (changing->constants && is_given(changing->constants)) {
        if (changing->update->type != DOCUMENT_ARRAY)
            return mongo_error_set(err, 51198,
                                   "Constant values may only be specified for pipeline updates");
        if (changing->constants->type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "BSON field 'update.updates.c' is the wrong type '%s', "
                                   "expected type 'object'",
                                   mongo_type_name(changing->constants->type));
        scope.constants = changing->constants->document;
    }
    return mongo_update_compile(changing->update, &options, &build, &statement->update, err) &&
           mongo_javascript_check(call, build.script, err);
}

static bool change_fields_read(struct slice document, struct change *ret_change, struct error *err)
{
    return mongo_fields_read(document, "update.updates", change_fields, ARRAY_LEN(change_fields),
                             ret_change, err);
}

static bool change_read(struct mongo_call *call, struct slice document,
                        struct statement *ret_statement, struct error *err)
{
    struct change change = {0};

    if (!change_fields_read(document, &change, err))
        return false;
    *ret_statement = (struct statement){
        .reading = {.shape = MONGO_SHAPE_VERSION,
                    .filter = change.q,
                    .collation = change.collation,
                    .collation_default = ret_statement->reading.collation_default,
                    .hint = change.hint,
                    .let = ret_statement->reading.let,
                    .limit = UINT64_MAX},
        .multi = change.multi,
        .upsert = change.upsert,
        .upserted = document_undefined()};
    ret_statement->reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
    return mongo_reading_prepare(call, &ret_statement->reading, call->arena, err) &&
           update_prepare(call,
                          &(struct changing){&change.u, change.array_filters, &change.variables},
                          ret_statement, err);
}

/* --- update and delete ----------------------------------------------------------------------- */

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

static bool grown_check(struct mongo_call *call, struct error *err)
{
    size_t used = arena_used(call->arena);

    return used <= call->held || front_call_hold(&call->front, used - call->held, err);
}

static void statements_run(struct writing *writing, struct mongo_documents *statements, bool update,
                           bool ordered)
{
    struct slice document;

    for (size_t i = 0; mongo_documents_next(statements, &document); i++) {
        struct statement statement = {
            .reading = {.let = writing->let,
                        .collation_default = writing->collection.terms.collation},
            .upserted = document_undefined()};
        struct error err;

        if (grown_check(writing->call, &err) &&
            (update ? change_read : deletion_read)(writing->call, document, &statement, &err) &&
            statement_run(writing, &statement, i, &err))
            continue;
        error_add(writing, i, &statement.upserted, &err);
        if (ordered)
            return;
    }
}

/* Opens the collection and its validator. */
static bool collection_open(struct writing *writing, bool bypass, struct error *err)
{
    if (!mongo_collection_open(writing->call, &writing->name, &writing->collection, err))
        return false;
    if (mongo_validation_prepare(writing->call, &writing->collection, bypass, &writing->validation,
                                 err))
        return true;
    mongo_collection_close(&writing->collection);
    return false;
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

static bool command_run(struct mongo_call *call, const char *list, bool update, struct error *err)
{
    const struct mongo_field fields[] = {
        {list, MONGO_FIELD_ARRAY, offsetof(struct command, statements), true},
        {"ordered", MONGO_FIELD_BOOL, offsetof(struct command, ordered)},
        {"let", MONGO_FIELD_OBJECT, offsetof(struct command, let)},
        {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct command, bypass)},
    };
    struct command command = {.ordered = true};
    struct writing writing = {.call = call};
    struct mongo_documents statements;

    if (!mongo_call_namespace(call, &writing.name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &command, err) ||
        !mongo_deadline(call, &writing.deadline_ms, err) ||
        !mongo_documents_open(call, list, &statements, err))
        return false;
    writing.let = command.let;
    if (statements.count == 0 || statements.count > BATCH_MAX)
        return mongo_error_set(err, MONGO_INVALID_LENGTH,
                               "Write batch sizes must be between 1 and %d. Got %zu operations.",
                               BATCH_MAX, statements.count);
    if (!statements_check(call, list, update, err) ||
        !collection_open(&writing, command.bypass, err))
        return false;
    if (!mongo_retry_load(call, &writing.collection, err)) {
        mongo_collection_close(&writing.collection);
        return false;
    }
    buf_init(&writing.errors, MONGO_BSON_BYTES_MAX);
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    statements_run(&writing, &statements, update, command.ordered);
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

/* --- findAndModify --------------------------------------------------------------------------- */

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
static bool document_show(struct writing *writing, const struct statement *statement,
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

    context_begin(&context, &slot, document, writing, writing->call->arena);
    *ret_value = document_object(document);
    return !fields.data || !document_count(fields) ||
           (mongo_projection_compile(fields, &options, statement->reading.match, &build,
                                     &projection, err) &&
            mongo_javascript_check(writing->call, build.script, err) &&
            mongo_projection_apply(projection, &slot.value, &context, ret_value, err));
}

static bool modification_answer(struct writing *writing, const struct statement *statement,
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
static bool modification_found(struct writing *writing, struct statement *statement,
                               const struct modification *asked)
{
    struct mongo_outcome before;

    if (!mongo_retry_find(writing->call, 0, &before))
        return false;
    outcome_take(writing, &before, 0);
    statement->upserted = before.upserted;
    *(asked->new_one ? &statement->after : &statement->before) = before.image;
    return true;
}

/* A duplicate is the command's error here, with the words and fields of a write error. */
bool mongo_find_and_modify(struct mongo_call *call, struct error *err)
{
    struct writing writing = {.call = call};
    struct modification asked = {0};
    struct statement statement;
    bool fine;

    if (!mongo_call_namespace(call, &writing.name, err) ||
        !mongo_arguments_read(call, modification_fields, ARRAY_LEN(modification_fields), &asked,
                              err) ||
        !modification_check(&asked, err) || !mongo_deadline(call, &writing.deadline_ms, err) ||
        !collection_open(&writing, asked.bypass, err))
        return false;
    statement =
        (struct statement){.reading = {.shape = MONGO_SHAPE_VERSION,
                                       .filter = asked.query,
                                       .sort = asked.sort,
                                       .collation = asked.collation,
                                       .collation_default = writing.collection.terms.collation,
                                       .hint = asked.hint,
                                       .let = asked.let,
                                       .limit = UINT64_MAX},
                           .upsert = asked.upsert,
                           .upserted = document_undefined()};
    buf_init(&writing.upserted, MONGO_BSON_BYTES_MAX);
    writing.image = asked.new_one ? IMAGE_AFTER : IMAGE_BEFORE;
    statement.reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
    fine = mongo_reading_prepare(call, &statement.reading, call->arena, err) &&
           (asked.remove ||
            update_prepare(call, &(struct changing){&asked.update, asked.array_filters, NULL},
                           &statement, err)) &&
           mongo_retry_load(call, &writing.collection, err) &&
           (modification_found(&writing, &statement, &asked) ||
            one_run(&writing, &statement, 0, err)) &&
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
