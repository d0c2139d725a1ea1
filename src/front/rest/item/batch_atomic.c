/* The whole batch is one transaction. It is planned in order until an operation fails, which ends
 * it: that one shows why, the others that they depended on it, and nothing is written.
 *
 * Etags are known only after the commit, so items are shown then: each as its operation left it,
 * with the etag it had at that moment; a read of what the batch has written before shows that. */
#include "front/rest/item/batch.h"

#include "partition/former.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum { NONE = -1 };

/* What the transaction made of one operation. */
struct step {
    const struct item *read; /* of a read */
    bool unmodified;         /* of a read: its if-none-match fits */
    int write;               /* its number as of transaction_result; NONE: it wrote nothing */
    size_t shown;            /* bytes of BSON it will show */
};

struct run {
    struct metered_transaction transaction;
    struct rest_call *call;
    const struct rest_items *items;
    struct rest_batch *batch;
    struct step *steps;
    bool strong;
    int failed; /* which operation; NONE: none, or it is not known */
};

/* --- Planning ----------------------------------------------------------------------------------
 */

/* The id an operation leaves its item with. */
static struct slice id_after(const struct rest_batch_operation *operation)
{
    return items_id_written(&operation->id, &operation->options)->text;
}

/* The last operation before this one that wrote the same item. */
static int written_before(const struct run *run, size_t at)
{
    for (size_t i = at; i-- > 0;)
        if (run->steps[i].write != NONE &&
            slice_equal(id_after(&run->batch->operations[i]), run->batch->operations[at].id.text))
            return (int)i;
    return NONE;
}

static bool plan_read(struct run *run, struct transaction *transaction, size_t at,
                      struct error *err)
{
    struct rest_batch_operation *operation = &run->batch->operations[at];
    struct step *step = &run->steps[at];
    char etag[ITEM_ETAG_LEN];
    uint64_t bytes;

    if (!transaction_read(transaction, &operation->id, &step->read, err))
        return false;
    bytes = step->read ? step->read->document.len : 0;
    operation->charge_cru = cost_read(bytes, run->strong);
    run->transaction.reads_cru = cost_add(run->transaction.reads_cru, operation->charge_cru);
    if (!step->read)
        return error_set(err, ERROR_ITEM_MISSING,
                         "Entity with the specified id does not exist in the system.");
    item_etag(&step->read->header, etag);
    step->unmodified = written_before(run, at) == NONE &&
                       slice_equal(operation->if_none_match, slice_of(etag, sizeof etag));
    step->shown = step->unmodified ? 0 : bytes;
    /* A later write of the item changes what the transaction sees, not what was read here. */
    step->read = memcpy(ARENA_NEW(run->call->arena, struct item), step->read, sizeof *step->read);
    return true;
}

static bool plan_patch(struct run *run, struct transaction *transaction,
                       struct rest_batch_operation *operation, struct slice *ret_document,
                       struct error *err)
{
    const struct item *item;

    if (!transaction_read(transaction, &operation->id, &item, err))
        return false;
    if (!item)
        return error_set(err, ERROR_ITEM_MISSING,
                         "Entity with the specified id does not exist in the system.");
    return rest_patch_make(item, &operation->patch, run->call->arena, ret_document, err) &&
           rest_item_size_check(run->items, *ret_document, err);
}

static enum transaction_verb verb_of(enum rest_batch_kind kind)
{
    switch (kind) {
    case REST_BATCH_CREATE:
        return TRANSACTION_CREATE;
    case REST_BATCH_UPSERT:
        return TRANSACTION_UPSERT;
    case REST_BATCH_DELETE:
        return TRANSACTION_DELETE;
    default:
        return TRANSACTION_REPLACE;
    }
}

static bool plan_one(struct run *run, struct transaction *transaction, size_t at, int *writes,
                     struct error *err)
{
    struct rest_batch_operation *operation = &run->batch->operations[at];
    struct slice document = operation->document;

    if (operation->err.code != ERROR_NONE) {
        *err = operation->err;
        return false;
    }
    if (operation->kind == REST_BATCH_READ)
        return plan_read(run, transaction, at, err);
    if (!items_names_check(&run->items->space, &operation->key,
                           items_id_written(&operation->id, &operation->options), err) ||
        (operation->kind == REST_BATCH_PATCH &&
         !plan_patch(run, transaction, operation, &document, err)) ||
        !transaction_write(transaction, &operation->id, verb_of(operation->kind), document,
                           &operation->options, err))
        return false;
    run->steps[at].write = (*writes)++;
    run->steps[at].shown = operation->minimal ? 0 : document.len;
    return true;
}

/* Bytes of BSON stand for those of JSON: near enough to refuse in time what would be far too much.
 */
static bool sizes_check(const struct transaction *transaction, size_t shown, struct error *err)
{
    struct transaction_work work = transaction_work(transaction);

    if (shown > REST_BATCH_ANSWER_MAX)
        return error_set(err, ERROR_BATCH_ANSWER_TOO_LARGE,
                         "the answer to the batch would be over %d bytes", REST_BATCH_ANSWER_MAX);
    if (work.bytes_read + work.bytes_written > REST_BATCH_WORK_MAX)
        return error_set(err, ERROR_BATCH_ANSWER_TOO_LARGE,
                         "the batch reads and writes more than %d bytes", REST_BATCH_WORK_MAX);
    return true;
}

static bool plan(struct metered_transaction *self, struct transaction *transaction,
                 struct error *err)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);
    size_t shown = 0;
    int writes = 0;

    for (size_t i = 0; i < run->batch->count; i++)
        run->steps[i] = (struct step){.write = NONE};
    run->failed = NONE;
    for (size_t i = 0; i < run->batch->count; i++) {
        if (!plan_one(run, transaction, i, &writes, err)) {
            run->failed = (int)i;
            return false;
        }
        shown += run->steps[i].shown;
        if (!sizes_check(transaction, shown, err) || !rest_call_grown(run->call, err))
            return false;
    }
    return true;
}

/* --- Showing -----------------------------------------------------------------------------------
 */

static void refused(struct metered_transaction *self, size_t nth)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    for (size_t i = 0; i < run->batch->count; i++)
        if (run->steps[i].write == (int)nth)
            run->failed = (int)i;
}

/* An item as it was read, with the etag that the batch itself gave it before. */
static void read_show(struct run *run, const struct transaction *transaction, size_t at)
{
    struct item item = *run->steps[at].read;
    int writer = written_before(run, at);

    if (writer != NONE) {
        struct transaction_result result =
            transaction_result(transaction, (size_t)run->steps[writer].write);

        item.header = result.item.header;
    }
    rest_batch_done(run->call, run->items, &run->batch->operations[at],
                    run->steps[at].unmodified ? 304 : 200, &item);
}

static void write_show(struct run *run, const struct transaction *transaction, size_t at)
{
    struct rest_batch_operation *operation = &run->batch->operations[at];
    struct transaction_result result =
        transaction_result(transaction, (size_t)run->steps[at].write);

    operation->charge_cru = result.charge_cru;
    if (operation->kind == REST_BATCH_DELETE)
        rest_batch_done(run->call, run->items, operation, 204, NULL);
    else
        rest_batch_done(run->call, run->items, operation,
                        operation->kind == REST_BATCH_CREATE ||
                                (operation->kind == REST_BATCH_UPSERT && result.created)
                            ? 201
                            : 200,
                        &result.item);
}

static void done(struct metered_transaction *self, struct transaction *transaction)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    for (size_t i = 0; i < run->batch->count; i++)
        if (run->steps[i].write == NONE)
            read_show(run, transaction, i);
        else
            write_show(run, transaction, i);
}

/* Whether an error is one operation's own fault, to be shown in its place. */
static bool is_of_operation(const struct error *err)
{
    switch (err->code) {
    case ERROR_BAD_REQUEST:
    case ERROR_BAD_JSON:
    case ERROR_DUPLICATE_PROPERTY:
    case ERROR_TOO_DEEP:
    case ERROR_TOO_LARGE:
    case ERROR_NOT_SUPPORTED:
    case ERROR_KEY_MISMATCH:
    case ERROR_PATCH_CONDITION:
    case ERROR_ITEM_MISSING:
    case ERROR_ITEM_EXISTS:
    case ERROR_UNIQUE_KEY:
    case ERROR_PRECONDITION_FAILED:
    case ERROR_LOGICAL_PARTITION_FULL:
    case ERROR_PARTITION_FULL:
        return true;
    default:
        return false;
    }
}

/* The last write stands for a fault of all of them together, such as a full partition. */
static int blamed(const struct run *run)
{
    if (run->failed != NONE)
        return run->failed;
    for (size_t i = run->batch->count; i-- > 0;)
        if (run->steps[i].write != NONE)
            return (int)i;
    return 0;
}

static void failure_show(struct run *run, const struct error *err, int64_t charge_cru)
{
    int failed = blamed(run);
    struct error dependent;

    (void)error_set(&dependent, ERROR_BATCH_DEPENDENCY,
                    "another operation of the batch failed, so nothing was written");
    for (size_t i = 0; i < run->batch->count; i++) {
        struct rest_batch_operation *operation = &run->batch->operations[i];

        rest_batch_failed(run->call, operation, (int)i == failed ? err : &dependent);
        operation->charge_cru = (int)i == failed ? charge_cru : 0;
    }
}

/* --- Running -----------------------------------------------------------------------------------
 */

static bool keys_check(struct rest_call *call, const struct rest_items *items,
                       const struct partition_key *header, const struct rest_batch *batch,
                       struct error *err)
{
    struct partition_key key;

    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->operations[i].key_given.data)
            continue;
        if (!partition_key_parse_either(&items->space.definition->key,
                                        batch->operations[i].key_given, PARTITION_KEY_WHOLE,
                                        call->arena, &key, err))
            return false;
        if (!key.open && !(header->former_only ? partition_key_equal(key.former, header->former)
                                               : partition_key_equal(&key, header)))
            return error_set(err, ERROR_BAD_REQUEST,
                             "One or more operations within the batch request have a different "
                             "partition key value than the request.");
    }
    return true;
}

/* The key that a request leaves open is that of the first item it brings; the others must agree. */
static bool key_settle(struct rest_call *call, const struct rest_items *items,
                       const struct rest_batch *batch, struct partition_key *key, struct error *err)
{
    const struct partition_definition *definition = &items->space.definition->key;
    struct partition_key named = *key;
    bool known = false;

    for (size_t i = 0; i < batch->count && !known; i++) {
        const struct rest_batch_operation *operation = &batch->operations[i];

        if (operation->kind == REST_BATCH_PATCH || operation->body.type != DOCUMENT_OBJECT)
            continue;
        if (!partition_key_derive(definition, operation->body.document, &named, call->arena, key,
                                  err))
            return false;
        known = true;
    }
    if (known && !key->open)
        return true;
    if (partition_synthetic_is_random(definition))
        return error_set(
            err, ERROR_BAD_REQUEST,
            "PartitionKey value must be supplied for this operation: a batch needs the "
            "suffix too, for it stays within one logical partition");
    return rest_items_key_missing(err);
}

/* What writing the documents costs at the least; and the same for every attempt of the client. */
static void run_price(struct run *run)
{
    struct metered_transaction *transaction = &run->transaction;

    transaction->ticket = XXH3_64bits(run->call->http->body.data, run->call->http->body.len) | 1;
    for (size_t i = 0; i < run->batch->count; i++) {
        const struct rest_batch_operation *operation = &run->batch->operations[i];
        struct cost_write known = {.removes = operation->kind == REST_BATCH_DELETE,
                                   .puts = operation->kind != REST_BATCH_DELETE,
                                   .new_bytes = operation->document.len};

        transaction->price_cru = cost_add(transaction->price_cru, operation->kind == REST_BATCH_READ
                                                                      ? cost_read(0, run->strong)
                                                                      : cost_write(&known));
    }
}

bool rest_batch_run_atomic(struct rest_call *call, const struct rest_items *items,
                           struct rest_batch *batch, struct error *err)
{
    struct run run = {.transaction = {.plan = plan, .done = done, .refused = refused},
                      .call = call,
                      .items = items,
                      .batch = batch,
                      .steps = ARENA_ARRAY(call->arena, struct step, batch->count),
                      .failed = NONE};
    struct metered_call metered;
    struct partition_key key;
    bool given, fine;

    if (!rest_items_key_either(call, items, &key, &given, err) ||
        !rest_items_metered(call, &metered, err))
        return false;
    if (!given && !partition_key_unnamed(&items->space.definition->key, &key))
        return rest_items_key_missing(err);
    if (key.open && !key_settle(call, items, batch, &key, err))
        return false;
    if (!keys_check(call, items, &key, batch, err) ||
        (key.former && !rest_batch_former(call, items, batch, &metered, &key, err)))
        return false;
    for (size_t i = 0; i < batch->count; i++)
        rest_batch_prepare(call, items, &key, &batch->operations[i]);
    run.strong = metered.strong;
    run_price(&run);
    fine = metered_transaction_run(call->services->meters, &items->space, &key, &run.transaction,
                                   &metered, call->arena, err);
    rest_items_charged(call, &metered);
    if (!fine && !is_of_operation(err))
        return false;
    if (!fine)
        failure_show(&run, err, metered.charge_cru);
    rest_batch_answer(call, batch);
    rest_items_headers(call, items, rest_items_partition(items, &key, call->arena), 0);
    return true;
}
