/* POST operations/partitionkeydelete: all items of one partition key.
 *
 * What fits one transaction goes in one. More goes in several, one after the other, before the
 * request is answered; somebody who looks meanwhile sees the logical partition shrink. Once begun
 * it is not held back: what it costs beyond the budget is owed.
 *
 * By a key of before a re-key: items of it have keys of their own by now and are wherever those
 * are, so all of the container is looked through, and what is found goes key by key. */
#include "front/rest/target/former.h"
#include "front/rest/target/items.h"

#include "item/scan.h"
#include "partition/former.h"
#include "throughput/cost.h"

enum {
    ITEMS_PER_TRANSACTION = 4000,
    BYTES_PER_TRANSACTION = 8 * 1024 * 1024,
    PAGE = 16,
    PAGE_OF_ALL = 500,
};

struct run {
    struct metered_transaction transaction;
    const struct rest_items *items;
    struct arena *arena;
    uint64_t bytes;
    bool more;
    uint64_t lsn;
};

static bool delete_one(struct run *run, struct transaction *transaction, const struct item *item,
                       struct error *err)
{
    struct partition_key key;
    struct document_value id;

    run->bytes += item->document.len;
    return rest_item_names(run->items, item->key, run->arena, &key, &id, err) &&
           transaction_write(transaction, &id, TRANSACTION_DELETE, SLICE_NONE, NULL, err);
}

static bool is_full(const struct run *run, size_t count)
{
    return count >= ITEMS_PER_TRANSACTION || run->bytes >= BYTES_PER_TRANSACTION;
}

static bool plan(struct metered_transaction *self, struct transaction *transaction,
                 struct error *err)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);
    struct transaction_page page = {.more = true};
    size_t count = 0;

    run->bytes = 0;
    while (page.more && !is_full(run, count)) {
        if (!transaction_scan(transaction, page.position, PAGE, false, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++)
            if (!delete_one(run, transaction, &page.items[i], err))
                return false;
        count += page.count;
    }
    run->more = page.more;
    return true;
}

static void done(struct metered_transaction *self, struct transaction *transaction)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    run->lsn = transaction_lsn(transaction);
}

/* One transaction, priced but not held back. */
static bool round_run(struct rest_call *call, struct run *run, const struct partition_key *key,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct metered_call metered = {0};
    bool fine;

    run->arena = arena;
    fine = metered_transaction_run(NULL, &run->items->space, key, &run->transaction, &metered,
                                   arena, err);
    call->charge_cru = cost_add(call->charge_cru, metered.charge_cru);
    return fine;
}

static bool rounds_run(struct rest_call *call, struct run *run, const struct partition_key *key,
                       struct error *err)
{
    do {
        if (!round_run(call, run, key, err))
            return false;
    } while (run->more);
    return true;
}

/* --- By a key of before a re-key ------------------------------------------------------------- */

struct former_run {
    struct metered_transaction transaction;
    const struct rest_items *items;
    const struct partition_key *former;
    struct arena *arena;
    struct document_value *ids; /* of one logical partition */
    size_t count;
};

static bool had_key(const struct former_run *run, const struct item *item)
{
    return item->document.data && partition_former_fits(run->items->space.definition->key.formerly,
                                                        item->document, run->former, run->arena);
}

/* What has changed since it was found is looked at again. */
static bool former_plan(struct metered_transaction *self, struct transaction *transaction,
                        struct error *err)
{
    struct former_run *run = CONTAINER_OF(self, struct former_run, transaction);

    for (size_t i = 0; i < run->count; i++) {
        const struct item *item;

        if (!transaction_read(transaction, &run->ids[i], &item, err))
            return false;
        if (item && had_key(run, item) &&
            !transaction_write(transaction, &run->ids[i], TRANSACTION_DELETE, SLICE_NONE, NULL,
                               err))
            return false;
    }
    return true;
}

/* The first of the items that had the key, and those behind it in the same logical partition;
 * *at moves behind them. */
static bool group_delete(struct rest_call *call, struct former_run *run,
                         const struct item_scan_page *page, size_t *at, struct error *err)
{
    struct metered_call metered = {0};
    struct partition_key key, own;
    bool fine;

    run->ids = ARENA_ARRAY(run->arena, struct document_value, page->count);
    run->count = 0;
    for (; *at < page->count; ++*at) {
        const struct item *item = &page->items[*at];

        if (!had_key(run, item))
            continue;
        if (!rest_item_names(run->items, item->key, run->arena, &own, &run->ids[run->count], err))
            return false;
        if (run->count && !partition_key_equal(&own, &key))
            break;
        key = own;
        run->count++;
    }
    if (!run->count)
        return true;
    fine = metered_transaction_run(NULL, &run->items->space, &key, &run->transaction, &metered,
                                   run->arena, err);
    call->charge_cru = cost_add(call->charge_cru, metered.charge_cru);
    return fine;
}

static bool former_span_run(struct rest_call *call, struct former_run *run,
                            const struct partition_span *span, struct error *err)
{
    struct item_scope scope = item_space_span_scope(&run->items->space, span);
    struct cost_query cost = {.partitions_begun = 1};
    struct item_scan_page page = {.more = true};
    CLEANUP(buf_done) struct buf position;

    buf_init(&position, BUF_DEFAULT_MAX);
    while (page.more) {
        struct item_scan_request request = {.after = buf_slice(&position),
                                            .items_max = PAGE_OF_ALL};

        arena_reset(run->arena);
        if (!item_scan_items(&scope, &request, run->arena, &page, err))
            return false;
        for (size_t at = 0; at < page.count;)
            if (!group_delete(call, run, &page, &at, err))
                return false;
        for (size_t i = 0; i < page.count; i++)
            cost.loaded_bytes += page.items[i].document.len;
        cost.items_loaded += page.count;
        buf_clear(&position);
        buf_append_slice(&position, page.position);
    }
    call->charge_cru = cost_add(call->charge_cru, cost_query(&cost));
    return true;
}

static bool former_run(struct rest_call *call, const struct rest_items *items,
                       const struct partition_key *former, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct former_run run = {
        .transaction = {.plan = former_plan}, .items = items, .former = former, .arena = arena};
    size_t count;
    const struct partition_span *spans = partition_map_spans(items->space.map, &count);

    for (size_t i = 0; i < count; i++)
        if (!former_span_run(call, &run, &spans[i], err))
            return false;
    return true;
}

bool rest_partition_delete(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct run run = {.transaction = {.plan = plan, .done = done}, .items = &items};
    struct metering_request request = {.price_cru =
                                           cost_write(&(struct cost_write){.removes = true})};
    struct metered_call metered;
    struct partition_key key;
    struct metering metering;
    bool given, former, fine;

    if (!rest_items_open(call, &items, err) ||
        !rest_items_key_either(call, &items, &key, &given, err) ||
        !rest_items_metered(call, &metered, err))
        return false;
    if (!given || key.open)
        return rest_items_key_missing(err);
    if (!rest_former_is_meant(&items, &key, call->arena, &former, err))
        return false;
    if (former) {
        request.partition = partition_map_find(items.space.map, PARTITION_ROUTING_MIN)->id;
    } else {
        request.partition = rest_items_partition(&items, &key, call->arena);
        request.pk = metering_pk(&key, call->arena);
    }
    if (!metering_begin(&metering, call->services->meters, &request, &metered, err)) {
        call->wait_ms = metered.wait_ms;
        return false;
    }
    fine = former ? former_run(call, &items, key.former, err) : rounds_run(call, &run, &key, err);
    /* A partition without items is looked at all the same. */
    call->charge_cru = MAX(call->charge_cru, cost_read(0, false));
    metering_end(&metering, call->charge_cru);
    if (!fine)
        return false;
    rest_items_headers(call, &items, request.partition, run.lsn);
    rest_answer_header(call, SLICE("x-ms-cosmos-is-partition-key-delete-pending"), SLICE("false"));
    call->status = 200;
    return true;
}
