#include "front/mongo/command/statement.h"

#include "document/order.h"
#include "front/mongo/command/capped.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/told.h"
#include "front/mongo/pipeline/pipeline.h"
#include "item/bulk.h"

enum { PAGE_ROWS = 256 };

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- Making one ready ------------------------------------------------------------------------ */

bool mongo_writing_open(struct mongo_writing *writing, bool bypass, struct error *err)
{
    if (!mongo_collection_open(writing->call, &writing->name, &writing->collection, err))
        return false;
    if (mongo_capped_check(writing->call, &writing->collection, &writing->name, err) &&
        mongo_validation_prepare(writing->call, &writing->collection, bypass, &writing->validation,
                                 err))
        return true;
    mongo_collection_close(&writing->collection);
    return false;
}

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

bool mongo_statement_update(struct mongo_call *call, const struct mongo_changing *changing,
                            struct mongo_statement *statement, struct error *err)
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

/* --- Inserting what was not found ------------------------------------------------------------ */

static void upserted_add(struct mongo_writing *writing, size_t index,
                         const struct document_value *id)
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
static bool upsert_check(struct mongo_writing *writing, const struct mongo_statement *statement,
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

static bool upsert_insert(struct mongo_writing *writing, struct mongo_statement *statement,
                          size_t index, struct error *err)
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

    mongo_writing_context(&context, &slot, SLICE_NONE, writing, call->arena);
    slot.value = document_undefined();
    input = mongo_writing_input(writing, SLICE_NONE, &context);
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
                                .image = writing->image == MONGO_IMAGE_AFTER ? item.document
                                                                             : SLICE_NONE});
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
static bool is_rekeyed(struct mongo_writing *writing, struct error *err)
{
    struct error ignored;

    return err->code == ERROR_REKEYED &&
           mongo_collection_reopen(writing->call, &writing->name, &writing->collection, &ignored);
}

bool mongo_statement_run_one(struct mongo_writing *writing, struct mongo_statement *statement,
                             size_t index, struct error *err)
{
    for (int attempt = 0; attempt < MONGO_ATTEMPTS_MAX; attempt++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        bool found, done = false;
        struct mongo_seen seen;

        if (!mongo_one_look(writing, statement, arena, &seen, &found, err) ||
            (found && !mongo_seen_carry_out(writing, statement, &seen, arena, &done, err))) {
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
    return mongo_overtaken_too_often(err);
}

/* Deletes a page of documents at once; those that were overtaken one by one. */
static bool page_delete(struct mongo_writing *writing, struct mongo_statement *statement,
                        const struct mongo_look *look, struct error *err)
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
        else if (mongo_is_overtaken(&operations[i].err))
            fine =
                mongo_seen_carry_out(writing, statement, &look->seen[i], look->arena, &done, err);
        else
            fine = false, *err = operations[i].err;
    }
    return fine;
}

static bool page_update(struct mongo_writing *writing, struct mongo_statement *statement,
                        const struct mongo_look *look, struct error *err)
{
    bool done;

    for (size_t i = 0; i < look->count; i++)
        if (!mongo_seen_carry_out(writing, statement, &look->seen[i], look->arena, &done, err))
            return false;
    return true;
}

/* On all documents that match. They are looked at in an order that no update changes, that of their
 * _id or, where an index might lead to them by what is updated, that of their creation: none is
 * seen twice. */
static bool all_run(struct mongo_writing *writing, struct mongo_statement *statement, size_t index,
                    struct error *err)
{
    struct slice continuation = SLICE_NONE;
    int32_t before = writing->matched;

    if (statement->update && writing->collection.container &&
        writing->collection.space.definition->index_count)
        mongo_reading_by_creation(&statement->reading, writing->call->arena);
    while (writing->collection.container) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct mongo_look look = {.arena = arena,
                                  .seen = ARENA_ARRAY(arena, struct mongo_seen, PAGE_ROWS),
                                  .max = PAGE_ROWS};

        if (!mongo_page_look(writing, statement, &continuation, &look, err)) {
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

void mongo_outcome_take(struct mongo_writing *writing, const struct mongo_outcome *outcome,
                        size_t index)
{
    writing->matched += outcome->matched;
    writing->modified += outcome->modified;
    if (outcome->upserted.type != DOCUMENT_UNDEFINED)
        upserted_add(writing, index, &outcome->upserted);
}

bool mongo_statement_run(struct mongo_writing *writing, struct mongo_statement *statement,
                         size_t index, struct error *err)
{
    struct mongo_outcome before;

    if (mongo_retry_is_on(writing->call) && statement->multi)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Cannot use (or request) retryable writes with %s",
                               statement->update ? "multi=true" : "limit=0");
    if (mongo_retry_find(writing->call, index, &before)) {
        mongo_outcome_take(writing, &before, index);
        return true;
    }
    writing->statement = index;
    return statement->multi ? all_run(writing, statement, index, err)
                            : mongo_statement_run_one(writing, statement, index, err);
}
