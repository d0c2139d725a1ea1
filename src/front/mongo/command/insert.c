/* insert: a bulk of creates, a part of the batch at a time, so that what a part holds in memory is
 * bounded however many documents there are. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/capped.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/point.h"
#include "front/mongo/command/retry.h"
#include "front/mongo/command/told.h"
#include "front/mongo/command/validation.h"
#include "item/bulk.h"

enum { BATCH_MAX = 100000, PART_MAX = 256, ERRORS_TEXT_MAX = 1024 * 1024, REKEYED_MAX = 8 };

struct insert {
    struct slice documents; /* or a sequence */
    bool ordered, bypass;
};

struct inserting {
    struct mongo_call *call;
    struct mongo_namespace name;
    struct mongo_collection collection;
    struct mongo_validation validation;
    struct slice *infos; /* errInfo of the documents of the part */
    bool ordered;
    int32_t inserted;
    struct buf errors; /* elements of writeErrors */
    uint32_t error_count;
};

static void error_add(struct inserting *inserting, size_t index, const struct document_value *id,
                      const struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(&inserting->errors,
                                              document_index_key(inserting->error_count++, text));

    document_append_int32(&inserting->errors, SLICE("index"), (int32_t)index);
    if (inserting->errors.len < ERRORS_TEXT_MAX) {
        mongo_write_error_append(inserting->call, &inserting->name, id, err, &inserting->errors);
    } else { /* a batch in which everything fails must fit a reply */
        document_append_int32(&inserting->errors, SLICE("code"), mongo_error_code(err));
        document_append_string(&inserting->errors, SLICE("errmsg"), SLICE(""));
    }
    document_end(&inserting->errors, one);
}

static bool grown(void *context, struct error *err)
{
    struct mongo_call *call = context;
    size_t used = arena_used(call->arena);

    return used <= call->held || front_call_hold(&call->front, used - call->held, err);
}

/* Did some come too late, for the collection got another shard key meanwhile? Nothing was done of
 * them then; they are made ready to be run with the key of now. */
static bool part_is_rekeyed(struct inserting *inserting, struct item_operation *operations,
                            size_t count)
{
    bool found = false;
    struct error err;

    for (size_t i = 0; i < count && !found; i++)
        found = operations[i].ended && operations[i].err.code == ERROR_REKEYED;
    if (!found ||
        !mongo_collection_reopen(inserting->call, &inserting->name, &inserting->collection, &err) ||
        !inserting->collection.container)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = &operations[i];

        if (op->ended && op->err.code != ERROR_REKEYED)
            continue;
        op->key = mongo_item_key(&inserting->collection, op->document);
        op->err.code = ERROR_NONE;
        op->ended = !mongo_shard_key_check(&inserting->collection, op->document, &op->err);
    }
    return true;
}

/* One part of the batch, from the index on. False: no more are to be inserted. */
static bool part_run(struct inserting *inserting, struct item_operation *operations, size_t count,
                     size_t index)
{
    const struct bulk_options options = {
        .in_order = inserting->ordered, .grown = grown, .context = inserting->call};
    bool on = true;

    bulk_run(operations, count, &options);
    for (int i = 0; i < REKEYED_MAX && part_is_rekeyed(inserting, operations, count); i++)
        bulk_run(operations, count, &options);
    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = &operations[i];

        mongo_call_charged(inserting->call, &op->metered);
        if (!op->ended || !on)
            continue;
        mongo_told_item(inserting->call, &inserting->collection, op,
                        op->err.code == ERROR_NONE ? NULL : &op->err);
        if (op->err.code == ERROR_NONE) {
            inserting->inserted++;
            continue;
        }
        mongo_duplicate_tell(inserting->call, &inserting->collection, &inserting->name,
                             op->document, &op->err);
        inserting->call->error_info = inserting->infos[i];
        error_add(inserting, index + i, &op->id, &op->err);
        on = !inserting->ordered;
    }
    return on;
}

/* Takes the next documents of the batch and inserts them. */
static bool part_insert(struct inserting *inserting, struct mongo_documents *documents,
                        size_t *index)
{
    struct mongo_call *call = inserting->call;
    struct item_operation *operations = ARENA_ARRAY(call->arena, struct item_operation, PART_MAX);
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    size_t count = 0;
    struct slice document;

    inserting->infos = ARENA_ARRAY(call->arena, struct slice, PART_MAX);
    inserting->validation.brief = inserting->errors.len >= ERRORS_TEXT_MAX;
    while (count < PART_MAX && mongo_documents_next(documents, &document)) {
        const struct mongo_outcome inserted = {.matched = 1, .upserted = document_undefined()};
        struct item_operation *op = &operations[count++];
        struct mongo_outcome before;
        struct mongo_item item;

        *op = mongo_operation(call, &inserting->collection, ITEM_CREATE);
        op->id = document_null();
        if (mongo_retry_find(call, *index + count - 1, &before)) {
            op->ended = true; /* well, and long ago */
            continue;
        }
        if (mongo_item_make(call, document, &item, &op->err) &&
            mongo_shard_key_check(&inserting->collection, item.document, &op->err) &&
            mongo_capped_fits(&inserting->collection, item.document, &op->err)) {
            op->id = item.id;
            op->document = item.document;
            op->key = mongo_item_key(&inserting->collection, item.document);
            op->err.code = ERROR_NONE;
            op->options.record = mongo_retry_record(call, *index + count - 1, &inserted);
            op->ended = !mongo_validation_check(&inserting->validation, item.document, SLICE_NONE,
                                                scratch, &op->err);
            inserting->infos[count - 1] = op->ended ? call->error_info : SLICE_NONE;
        } else {
            op->ended = true;
        }
        if (op->ended && inserting->ordered)
            break; /* those before it are inserted, none behind */
    }
    *index += count;
    return count && part_run(inserting, operations, count, *index - count) && count == PART_MAX;
}

static void answer_append(struct mongo_call *call, int32_t inserted, const struct buf *errors)
{
    size_t list;

    document_append_int32(&call->reply, SLICE("n"), inserted);
    if (!errors->len)
        return;
    list = document_append_array_begin(&call->reply, SLICE("writeErrors"));
    buf_append_slice(&call->reply, buf_slice(errors));
    document_end(&call->reply, list);
}

static bool command_read(struct mongo_call *call, struct inserting *inserting, bool *ret_bypass,
                         struct mongo_documents *ret_documents, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"documents", MONGO_FIELD_ARRAY, offsetof(struct insert, documents), true},
        {"ordered", MONGO_FIELD_BOOL, offsetof(struct insert, ordered)},
        {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct insert, bypass)},
        {"bypassEmptyTsReplacement", MONGO_FIELD_ANY},
    };
    struct insert asked = {.ordered = true};

    if (!mongo_call_namespace(call, &inserting->name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_documents_open(call, "documents", ret_documents, err))
        return false;
    if (ret_documents->count == 0 || ret_documents->count > BATCH_MAX)
        return mongo_error_set(err, MONGO_INVALID_LENGTH,
                               "Write batch sizes must be between 1 and %d. Got %zu operations.",
                               BATCH_MAX, ret_documents->count);
    inserting->ordered = asked.ordered;
    *ret_bypass = asked.bypass;
    return true;
}

/* --- One document, on the loop --------------------------------------------------------------- */

static void point_answer(struct mongo_point *point, const struct error *err)
{
    struct inserting inserting = {.call = point->call, .name = point->name};

    buf_init(&inserting.errors, MONGO_BSON_BYTES_MAX);
    if (err) {
        struct error told = *err;

        mongo_duplicate_tell(point->call, &point->collection, &point->name, point->op.document,
                             &told);
        error_add(&inserting, 0, &point->op.id, &told);
    }
    answer_append(point->call, !err, &inserting.errors);
    buf_done(&inserting.errors);
}

/* A collection that is there, and asks nothing of its documents that takes long. */
static bool point_insert(struct mongo_call *call, struct error *err)
{
    struct mongo_point *point = ARENA_NEW(call->arena, struct mongo_point);
    struct inserting inserting = {.call = call};
    struct mongo_documents documents;
    struct slice document;
    struct mongo_item item;
    bool bypass = false;

    if (!command_read(call, &inserting, &bypass, &documents, err)) {
        call->cold = false;
        return false;
    }
    if (documents.count != 1 || !mongo_documents_next(&documents, &document) ||
        !mongo_collection_open(call, &inserting.name, &point->collection, err))
        return false;
    if (!point->collection.container || point->collection.terms.validator.data ||
        point->collection.terms.capped || point->collection.terms.collation.data ||
        !mongo_item_make(call, document, &item, err) ||
        !mongo_shard_key_check(&point->collection, item.document, err)) {
        mongo_collection_close(&point->collection);
        return false;
    }
    point->call = call;
    point->name = inserting.name;
    point->answer = point_answer;
    point->op = mongo_operation(call, &point->collection, ITEM_CREATE);
    point->op.id = item.id;
    point->op.document = item.document;
    point->op.key = mongo_item_key(&point->collection, item.document);
    point->op.options.record = mongo_retry_record(
        call, 0, &(struct mongo_outcome){.matched = 1, .upserted = document_undefined()});
    return mongo_point_start(point, err);
}

bool mongo_insert(struct mongo_call *call, struct error *err)
{
    struct inserting inserting = {.call = call};
    struct mongo_documents documents;
    size_t index = 0;
    bool bypass = false;

    if (!call->may_block)
        return mongo_point_begin(call) && point_insert(call, err);
    if (!command_read(call, &inserting, &bypass, &documents, err) ||
        !mongo_collection_make(call, &inserting.name, &inserting.collection, err))
        return false;
    if (!mongo_capped_check(call, &inserting.collection, &inserting.name, err) ||
        !mongo_retry_load(call, &inserting.collection, err) ||
        !mongo_validation_prepare(call, &inserting.collection, bypass, &inserting.validation,
                                  err)) {
        mongo_collection_close(&inserting.collection);
        return false;
    }
    buf_init(&inserting.errors, MONGO_BSON_BYTES_MAX);
    while (part_insert(&inserting, &documents, &index))
        front_call_breathe(&call->front);
    mongo_collection_close(&inserting.collection);
    answer_append(call, inserting.inserted, &inserting.errors);
    buf_done(&inserting.errors);
    return true;
}
