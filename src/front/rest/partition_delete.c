/* POST operations/partitionkeydelete: all items of one partition key.
 *
 * What fits one transaction goes in one. More goes in several, one after the other, before the
 * request is answered; somebody who looks meanwhile sees the logical partition shrink. Once begun
 * it is not held back: what it costs beyond the budget is owed. */
#include "front/rest/former.h"
#include "front/rest/items.h"

#include "throughput/cost.h"

enum { ITEMS_PER_TRANSACTION = 4000, BYTES_PER_TRANSACTION = 8 * 1024 * 1024, PAGE = 16 };

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
    if (former)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "the container was re-keyed: items of a partition key are deleted by the "
                         "key they have now");
    request.partition = rest_items_partition(&items, &key, call->arena);
    request.pk = metering_pk(&key, call->arena);
    if (!metering_begin(&metering, call->services->meters, &request, &metered, err)) {
        call->wait_ms = metered.wait_ms;
        return false;
    }
    fine = rounds_run(call, &run, &key, err);
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
