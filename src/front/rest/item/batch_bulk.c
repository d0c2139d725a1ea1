/* Each operation stands alone; item/bulk.h runs them so that they share the syncs of group
 * commit. Each names its partition key, and goes where that belongs: the range a client thinks all
 * of them are in is no more than a hint, for clients know hashing alone and may be behind a split.
 */
#include "item/bulk.h"

#include "front/rest/item/batch.h"
#include "throughput/cost.h"

static void operation_take(const struct metered_call *metered,
                           struct rest_batch_operation *operation, struct bulk_operation *ret_bulk)
{
    static const enum transaction_verb verbs[] = {
        [REST_BATCH_CREATE] = TRANSACTION_CREATE,   [REST_BATCH_UPSERT] = TRANSACTION_UPSERT,
        [REST_BATCH_REPLACE] = TRANSACTION_REPLACE, [REST_BATCH_DELETE] = TRANSACTION_DELETE,
        [REST_BATCH_PATCH] = TRANSACTION_REPLACE,
    };

    *ret_bulk = (struct bulk_operation){
        .key = operation->key,
        .id = operation->id,
        .is_read = operation->kind == REST_BATCH_READ,
        .document = operation->document,
        .options = operation->options,
        .metered = *metered,
        .err = operation->err,
        .ended = operation->err.code != ERROR_NONE,
    };
    if (!ret_bulk->is_read)
        ret_bulk->verb = verbs[operation->kind];
    if (operation->kind == REST_BATCH_PATCH) {
        ret_bulk->make = rest_patch_make;
        ret_bulk->context = &operation->patch;
    }
}

static void operation_show(struct rest_call *call, const struct rest_items *items,
                           struct rest_batch_operation *operation,
                           const struct bulk_operation *bulk)
{
    const struct item *item = bulk->is_read ? &bulk->item : &bulk->result.item;
    uint16_t status = 200;

    operation->charge_cru = bulk->metered.charge_cru;
    operation->key = bulk->key;
    if (bulk->err.code != ERROR_NONE) {
        rest_batch_failed(call, operation, &bulk->err);
        operation->retry_after_ms = bulk->err.status == 429 ? MAX(bulk->metered.wait_ms, 1) : 0;
        return;
    }
    if (operation->kind == REST_BATCH_DELETE) {
        rest_batch_done(call, items, operation, 204, NULL);
        return;
    }
    if (bulk->is_read && operation->if_none_match.len &&
        slice_equal(operation->if_none_match, rest_etag_bare(rest_item_etag(item, call->arena))))
        status = 304;
    else if (!bulk->is_read && bulk->result.created)
        status = 201;
    rest_batch_done(call, items, operation, status, item);
}

/* An answer has a limit too. What was written cannot be taken back, so it is merely not shown; a
 * read is told to come again alone. Whether an item fits is judged by its BSON, before it is
 * rendered. */
static void operation_fit(struct rest_batch_operation *operation, struct bulk_operation *bulk,
                          size_t *bytes)
{
    size_t len = bulk->is_read ? bulk->item.document.len : bulk->result.item.document.len;

    if (bulk->err.code != ERROR_NONE || operation->kind == REST_BATCH_DELETE)
        return;
    if (operation->minimal && !bulk->is_read)
        return;
    if (*bytes + len <= REST_BATCH_ANSWER_MAX) {
        *bytes += len;
        return;
    }
    operation->minimal = true;
    if (bulk->is_read)
        (void)error_set(&bulk->err, ERROR_BATCH_ANSWER_TOO_LARGE,
                        "the answer to the batch would be over %d bytes", REST_BATCH_ANSWER_MAX);
}

/* The partition an answer speaks for: that of the first operation that has one. */
static uint32_t partition_shown(const struct rest_call *call, const struct rest_items *items,
                                const struct bulk_operation *bulk, size_t count)
{
    size_t spans;

    for (size_t i = 0; i < count; i++)
        if (bulk[i].ended && bulk[i].err.code == ERROR_NONE)
            return rest_items_partition(items, &bulk[i].key, call->arena);
    return partition_map_spans(items->space.map, &spans)->id;
}

/* What one run of operations is about. */
struct bulk_call {
    struct rest_call *call;
    struct metered_call metered;
    bool in_order;
    bool again; /* what a re-key has left undone of the run before */
};

static bool grown(void *call, struct error *err)
{
    return rest_call_grown(call, err);
}

static bool bulk_go(struct bulk_call *go, const struct rest_items *items, struct rest_batch *batch,
                    struct bulk_operation *bulk, struct error *err)
{
    struct bulk_options options = {.admitted = go->again,
                                   .in_order = go->in_order,
                                   .bytes_max = REST_BATCH_WORK_MAX,
                                   .grown = grown,
                                   .context = go->call};
    struct partition_key header;
    bool given;

    if (!rest_items_key_either(go->call, items, &header, &given, err))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        if (go->again && bulk[i].err.code != ERROR_REKEYED)
            continue;
        if (go->again)
            batch->operations[i].err = (struct error){0};
        rest_batch_prepare(go->call, items, given ? &header : NULL, &batch->operations[i]);
        operation_take(&go->metered, &batch->operations[i], &bulk[i]);
    }
    bulk_run(go->call->services->meters, &items->space, bulk, batch->count, &options,
             go->call->arena);
    return true;
}

/* A budget refused them all: then each says so, whatever else may be wrong with it. */
static void refusal_spread(struct bulk_operation *bulk, size_t count)
{
    const struct bulk_operation *refused = bulk;

    while (refused < bulk + count && refused->err.status != 429)
        refused++;
    if (refused == bulk + count)
        return;
    for (size_t i = 0; i < count; i++) {
        bulk[i].err = refused->err;
        bulk[i].metered.wait_ms = refused->metered.wait_ms;
        bulk[i].ended = true;
    }
}

/* The container was re-keyed between two operations: those behind mean other keys by now. */
static bool is_rekeyed(const struct bulk_operation *bulk, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bulk[i].ended && bulk[i].err.code == ERROR_REKEYED)
            return true;
    return false;
}

bool rest_batch_run_bulk(struct rest_call *call, const struct rest_items *items,
                         struct rest_batch *batch, struct error *err)
{
    struct bulk_operation *bulk = ARENA_ARRAY(call->arena, struct bulk_operation, batch->count);
    bool in_order = rest_call_header(call, REST_HEADER_BATCH_CONTINUE).data &&
                    !rest_headers_true(&call->headers, REST_HEADER_BATCH_CONTINUE);
    CLEANUP(rest_items_close) struct rest_items now = {0};
    struct bulk_call go = {.call = call, .in_order = in_order};
    struct error dependent;
    size_t shown = 0;

    if (!rest_items_metered(call, &go.metered, err) || !bulk_go(&go, items, batch, bulk, err))
        return false;
    if (is_rekeyed(bulk, batch->count)) {
        go.again = true;
        if (!rest_items_open(call, &now, err) || !bulk_go(&go, &now, batch, bulk, err))
            return false;
        items = &now;
    }
    refusal_spread(bulk, batch->count);
    (void)error_set(&dependent, ERROR_BATCH_DEPENDENCY,
                    "an operation before this one failed, so it was not carried out");
    for (size_t i = 0; i < batch->count; i++) {
        /* In order, what was wrong from the start is not looked at behind a failure either. */
        if (!bulk[i].ended ||
            (in_order && i && batch->operations[i - 1].status >= 400 && bulk[i].err.status != 429))
            bulk[i].err = dependent;
        if (bulk[i].metered.key_found)
            bulk[i].key = bulk[i].metered.key;
        operation_fit(&batch->operations[i], &bulk[i], &shown);
        operation_show(call, items, &batch->operations[i], &bulk[i]);
        rest_call_breathe(call);
        call->charge_cru = cost_add(call->charge_cru, bulk[i].metered.charge_cru);
    }
    rest_batch_answer(call, batch);
    rest_items_headers(call, items, partition_shown(call, items, bulk, batch->count), 0);
    return true;
}
