/* Batches of operations on items: transactional ones, all or nothing within one logical partition,
 * and bulk ones, whose operations each succeed or fail by themselves wherever they belong.
 *
 * They come in two forms, JSON and the rows of the .NET library (hybrid_row.c); the first byte
 * tells which, as JSON never begins with the version of a row. Both are read into one struct
 * rest_batch_operation each and rendered from it, so that what lies between knows of neither, and
 * the answer has the form of the request.
 *
 * An operation keeps its own error. What is wrong with the batch as a whole (its size, the number
 * of its operations, a type nobody knows) refuses it before anything runs; what is wrong with one
 * operation is the result of that operation, and in a transaction makes 424 of all others, which is
 * how the libraries find the one to blame.
 *
 * Running one HTTP request per operation inside the server was weighed: it would give equal answers
 * for free, but a transaction needs all its operations at once, and parsing and admission per
 * operation cost more than the operations. */
#include "front/rest/item/batch.h"

#include "base/random.h"
#include "document/json.h"
#include "front/fault.h"
#include "front/item.h"
#include "front/rest/item/hybrid_row.h"
#include "front/rest/procedure/scripts.h"
#include "front/traffic.h"
#include "item/shown.h"
#include "partition/former.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

/* --- JSON ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int32_t number; /* in hybrid rows */
    enum rest_batch_kind kind;
} kinds[] = {
    {"Create", 0, REST_BATCH_CREATE},   {"Patch", 1, REST_BATCH_PATCH},
    {"Read", 2, REST_BATCH_READ},       {"Delete", 4, REST_BATCH_DELETE},
    {"Replace", 5, REST_BATCH_REPLACE}, {"Upsert", 20, REST_BATCH_UPSERT},
};

static bool kind_unknown(size_t at, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "operation %zu of the batch has no operationType that is known", at);
}

/* A property that must be a text if it is there. */
static bool text_of(struct slice operation, struct slice name, size_t at, struct slice *ret_text,
                    struct error *err)
{
    struct document_value value;

    *ret_text = SLICE_NONE;
    if (!document_find(operation, name, &value) || value.type == DOCUMENT_NULL)
        return true;
    if (value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s of operation %zu of the batch is no text",
                         SLICE_ARG(name), at);
    *ret_text = value.text;
    return true;
}

static bool json_operation_read(struct slice object, size_t at,
                                struct rest_batch_operation *ret_operation, struct error *err)
{
    struct rest_batch_operation operation = {.body = document_undefined()};
    struct document_value minimal;
    struct slice type;
    size_t i = 0;

    if (!text_of(object, SLICE("operationType"), at, &type, err) ||
        !text_of(object, SLICE("id"), at, &operation.id_given, err) ||
        !text_of(object, SLICE("partitionKey"), at, &operation.key_given, err) ||
        !text_of(object, SLICE("ifMatch"), at, &operation.if_match, err) ||
        !text_of(object, SLICE("ifNoneMatch"), at, &operation.if_none_match, err) ||
        !text_of(object, SLICE("indexingDirective"), at, &operation.directive, err))
        return false;
    while (i < ARRAY_LEN(kinds) && !slice_equal_nocase(type, slice_of_text(kinds[i].name)))
        i++;
    if (i == ARRAY_LEN(kinds))
        return kind_unknown(at, err);
    operation.kind = kinds[i].kind;
    operation.minimal = document_find(object, SLICE("minimalReturnPreference"), &minimal) &&
                        minimal.type == DOCUMENT_BOOL && minimal.boolean;
    (void)document_find(object, SLICE("resourceBody"), &operation.body);
    *ret_operation = operation;
    return true;
}

static bool count_check(size_t count, struct error *err)
{
    if (count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "Batch request has no operations.");
    if (count > REST_BATCH_OPERATIONS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Batch request has more operations than what is supported.");
    return true;
}

static bool json_read(struct rest_call *call, struct rest_batch *batch, struct error *err)
{
    struct document_value body;
    struct document_iter iter;

    if (!rest_call_body_value(call, 2, &body, err))
        return false;
    if (body.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "the body of a batch must be an array");
    if (!count_check(document_count(body.document), err))
        return false;
    batch->operations =
        ARENA_ARRAY(call->arena, struct rest_batch_operation, document_count(body.document));
    document_iter_init(&iter, body.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST, "operation %zu of the batch is no object",
                             batch->count);
        if (!json_operation_read(iter.value.document, batch->count,
                                 &batch->operations[batch->count], err))
            return false;
        batch->count++;
    }
    return true;
}

/* Libraries that send JSON sleep the waits of a batch one after the other, so that only the first
 * result shows one. The .NET library, which sends rows, takes that of each operation by itself. */
static void json_result_append(const struct rest_batch_operation *operation, bool is_first,
                               struct buf *body)
{
    char charge[COST_TEXT_SIZE];

    cost_text(operation->charge_cru, charge);
    buf_printf(body, "{\"statusCode\":%u,", operation->status);
    if (operation->substatus)
        buf_printf(body, "\"subStatusCode\":%u,", operation->substatus);
    buf_printf(body, "\"requestCharge\":%s", charge);
    if (operation->retry_after_ms && is_first)
        buf_printf(body, ",\"retryAfterMilliseconds\":%lld", (long long)operation->retry_after_ms);
    if (operation->etag.data) {
        BUF_APPEND(body, ",\"eTag\":");
        document_json_write_string(operation->etag, body);
    }
    if (operation->shown.data) {
        BUF_APPEND(body, ",\"resourceBody\":");
        buf_append_slice(body, operation->shown);
    }
    if (operation->message.data) {
        BUF_APPEND(body, ",\"message\":");
        document_json_write_string(operation->message, body);
    }
    buf_append_byte(body, '}');
}

/* --- Hybrid rows -------------------------------------------------------------------------------
 */

enum { RESOURCE_DOCUMENT = 2 };

static bool row_operation_take(struct rest_call *call, const struct hybrid_operation *row,
                               size_t at, struct rest_batch_operation *ret_operation,
                               struct error *err)
{
    struct rest_batch_operation operation = {
        .id_given = row->id,
        .key_given = row->partition_key,
        .body = document_undefined(),
        .if_match = row->if_match,
        .if_none_match = row->if_none_match,
        .directive = row->indexing_directive,
        .minimal = row->minimal,
    };
    size_t i = 0;

    while (i < ARRAY_LEN(kinds) && kinds[i].number != row->operation_type)
        i++;
    if (i == ARRAY_LEN(kinds) || row->resource_type != RESOURCE_DOCUMENT)
        return kind_unknown(at, err);
    operation.kind = kinds[i].kind;
    if (row->binary_id.data || row->effective_partition_key.data || row->ttl_seconds)
        return error_set(
            err, ERROR_NOT_SUPPORTED,
            "operation %zu of the batch has a binary id, an effective partition key or "
            "a time to live of its own",
            at);
    if (row->resource_body.data &&
        !rest_call_json(call, row->resource_body, 0, &operation.body, &operation.err))
        operation.body = document_undefined();
    *ret_operation = operation;
    return true;
}

static bool rows_read(struct rest_call *call, struct rest_batch *batch, struct error *err)
{
    struct hybrid_reader reader;
    struct hybrid_operation row;
    bool end;

    if (!hybrid_reader_init(&reader, call->http->body, err))
        return false;
    batch->operations =
        ARENA_ARRAY(call->arena, struct rest_batch_operation, REST_BATCH_OPERATIONS_MAX);
    for (;;) {
        if (!hybrid_reader_next(&reader, &row, &end, err))
            return false;
        if (end)
            return count_check(batch->count, err);
        if (!count_check(batch->count + 1, err) ||
            !row_operation_take(call, &row, batch->count, &batch->operations[batch->count], err))
            return false;
        batch->count++;
    }
}

static void row_result_append(const struct rest_batch_operation *operation, struct buf *body)
{
    struct hybrid_result result = {
        .status = operation->status,
        .substatus = (int32_t)operation->substatus,
        .etag = operation->etag,
        .resource_body = operation->shown,
        .retry_after_ms = (uint32_t)MIN(operation->retry_after_ms, (int64_t)UINT32_MAX),
        .charge = (double)operation->charge_cru / 100,
    };

    hybrid_row_append_result(body, &result);
}

/* --- Both --------------------------------------------------------------------------------------
 */

bool rest_batch_read(struct rest_call *call, struct rest_batch *ret_batch, struct error *err)
{
    struct slice body = call->http->body;
    struct rest_batch batch = {.binary = body.len && body.data[0] == HYBRID_ROW_VERSION};

    if (body.len > REST_BATCH_BYTES_MAX) {
        call->message = SLICE(FRONT_TOO_LARGE_TEXT);
        return error_set(err, ERROR_TOO_LARGE, "a batch of %zu bytes is over the limit of %d",
                         body.len, REST_BATCH_BYTES_MAX);
    }
    if (batch.binary ? !rows_read(call, &batch, err) : !json_read(call, &batch, err))
        return false;
    for (size_t i = 0; i < batch.count; i++) {
        batch.operations[i].if_match = front_http_etag_bare(batch.operations[i].if_match);
        batch.operations[i].if_none_match = front_http_etag_bare(batch.operations[i].if_none_match);
    }
    *ret_batch = batch;
    return true;
}

/* What brings an item: it says its key and id itself. */
static bool item_prepare(struct rest_call *call, const struct rest_items *items, bool key_known,
                         struct rest_batch_operation *operation, struct error *err)
{
    const struct document_names *names = definition_names_of(items->space.definition);
    struct partition_key own, *named = key_known ? &operation->key : NULL;
    struct document_value given;

    if (operation->body.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "resourceBody is missing or no object");
    if (!front_item_clean(names, operation->body.document, call->arena, &operation->document,
                          &operation->id, err))
        return false;
    if (!partition_key_derive(&items->space.definition->key, operation->document, named,
                              call->arena, &own, err))
        return false;
    operation->key = own;
    given = item_id_of_text(names, operation->id_given, call->arena);
    if (operation->kind == REST_BATCH_REPLACE && operation->id_given.data &&
        !item_id_same(names, &given, &operation->id)) {
        operation->new_id = operation->id;
        operation->id = given;
        operation->options.new_id = &operation->new_id;
    }
    return rest_item_size_check(items, operation->document, err);
}

static bool prepare(struct rest_call *call, const struct rest_items *items,
                    const struct partition_key *header, struct rest_batch_operation *operation,
                    struct error *err)
{
    bool key_known = header || operation->key_given.data;

    operation->options = (struct transaction_options){.if_match = operation->if_match,
                                                      .if_none_match = operation->if_none_match};
    operation->minimal = operation->minimal || rest_items_minimal(call);
    if (!rest_items_directive(operation->directive, &operation->options.not_indexed, err))
        return false;
    if (header)
        operation->key = *header;
    else if (key_known &&
             !partition_key_parse_either(&items->space.definition->key, operation->key_given,
                                         PARTITION_KEY_WHOLE, call->arena, &operation->key, err))
        return false;
    if (operation->kind == REST_BATCH_CREATE || operation->kind == REST_BATCH_UPSERT ||
        operation->kind == REST_BATCH_REPLACE)
        return item_prepare(call, items, key_known, operation, err);
    if (!key_known && !partition_key_unnamed(&items->space.definition->key, &operation->key))
        return rest_items_key_missing(err);
    operation->id = item_id_of_text(definition_names_of(items->space.definition),
                                    operation->id_given, call->arena);
    if (!operation->id_given.data)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: an "
                         "operation of the batch has no id");
    return operation->kind != REST_BATCH_PATCH ||
           rest_patch_parse(call, items, &operation->body, &operation->patch, err);
}

void rest_batch_prepare(struct rest_call *call, const struct rest_items *items,
                        const struct partition_key *header, struct rest_batch_operation *operation)
{
    if (operation->err.code == ERROR_NONE)
        (void)prepare(call, items, header, operation, &operation->err);
}

void rest_batch_done(struct rest_call *call, const struct rest_items *items,
                     struct rest_batch_operation *operation, uint16_t status,
                     const struct item *item)
{
    CLEANUP(buf_done) struct buf shown;

    buf_init(&shown, FRONT_HTTP_BODY_MAX);
    operation->status = status;
    if (!item || !item->document.data)
        return;
    operation->etag = rest_item_etag(item, call->arena);
    if (status == 304 || (operation->minimal && operation->kind != REST_BATCH_READ))
        return;
    rest_item_append(items, item, 0, &shown);
    operation->shown = arena_copy(call->arena, buf_slice(&shown));
}

void rest_batch_failed(struct rest_call *call, struct rest_batch_operation *operation,
                       const struct error *err)
{
    struct slice text = front_fault_tell(call->services, err, call->activity_id, call->arena);

    operation->status = err->status;
    operation->substatus = err->substatus;
    operation->message =
        err->code == ERROR_TOO_LARGE
            ? arena_printf(call->arena, FRONT_TOO_LARGE_TEXT "\r\n%.*s", SLICE_ARG(text))
            : arena_copy(call->arena, text);
}

void rest_batch_answer(struct rest_call *call, const struct rest_batch *batch)
{
    bool failed = false;

    if (batch->binary)
        hybrid_row_append_segment(&call->body);
    else
        buf_append_byte(&call->body, '[');
    for (size_t i = 0; i < batch->count; i++) {
        failed = failed || batch->operations[i].status >= 400;
        if (batch->binary) {
            row_result_append(&batch->operations[i], &call->body);
            continue;
        }
        if (i)
            buf_append_byte(&call->body, ',');
        json_result_append(&batch->operations[i], i == 0, &call->body);
    }
    if (!batch->binary)
        buf_append_byte(&call->body, ']');
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)batch->count);
    call->status = failed ? 207 : 200;
}

/* --- The operation -----------------------------------------------------------------------------
 */

/* err NULL: the batch was carried out, each of its operations as its status says. */
static void traffic_tell(const struct rest_call *call, const struct rest_items *items,
                         const struct rest_batch *batch, bool atomic, const struct error *err)
{
    static const enum advise_operation_kind told[] = {
        [REST_BATCH_CREATE] = ADVISE_CREATE, [REST_BATCH_UPSERT] = ADVISE_UPSERT,
        [REST_BATCH_READ] = ADVISE_READ,     [REST_BATCH_REPLACE] = ADVISE_REPLACE,
        [REST_BATCH_DELETE] = ADVISE_DELETE, [REST_BATCH_PATCH] = ADVISE_PATCH,
    };
    uint32_t weight = TRAFFIC_UNDECIDED;
    char name[RANDOM_UUID_SIZE];

    if (!call->services->traffic)
        return;
    random_uuid(name);
    for (size_t i = 0; i < batch->count; i++) {
        const struct rest_batch_operation *operation = &batch->operations[i];
        struct front_traffic_attempt attempt = rest_items_attempt(call, err);

        if (!err && operation->status == 429) {
            attempt.refused = true;
            attempt.wait_ms = operation->retry_after_ms;
        } else if (operation->status >= 300 || operation->id.type == DOCUMENT_UNDEFINED) {
            continue;
        }
        front_traffic_item(
            call->services, items->container,
            &(struct front_traffic_item){.kind = told[operation->kind],
                                         .key = &operation->key,
                                         .id = &operation->id,
                                         .document = operation->document,
                                         .cru = operation->charge_cru,
                                         .transaction = atomic ? slice_of_text(name) : SLICE_NONE,
                                         .weight = atomic ? &weight : NULL,
                                         .attempt = attempt});
    }
}

bool rest_items_batch(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    bool atomic = rest_headers_true(&call->headers, REST_HEADER_BATCH_ATOMIC);
    struct rest_batch batch;
    bool fine;

    if (rest_triggers_named(call))
        return error_set(err, ERROR_NOT_SUPPORTED, "triggers cannot be named for a batch");
    if (!rest_items_open(call, &items, err) || !rest_batch_read(call, &batch, err))
        return false;
    fine = atomic ? rest_batch_run_atomic(call, &items, &batch, err)
                  : rest_batch_run_bulk(call, &items, &batch, err);
    if (fine || front_traffic_is_refusal(err))
        traffic_tell(call, &items, &batch, atomic, fine ? NULL : err);
    return fine;
}
