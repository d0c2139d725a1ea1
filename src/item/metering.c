#include "item/metering.h"

#include "item/admission.h"
#include "item/alias.h"
#include "item/claim.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum { ATTEMPTS_MAX = 100 }; /* of a transaction; those after the first wait for their turn */

/* --- Any request ------------------------------------------------------------------------------ */

struct slice metering_pk(const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(key, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

static void statistics_add(struct metering *metering, int64_t cru, bool throttled, int64_t time_us)
{
    struct statistics_event event = {.key = metering->pk,
                                     .cru = cru,
                                     .throttled = throttled,
                                     .bytes_in = metering->bytes_in,
                                     .bytes_out = metering->bytes_out,
                                     .time_us = (uint64_t)MAX(time_us, (int64_t)0)};

    statistics_record(meter_statistics(metering->meter), &event,
                      clock_read_wall_ms(meters_clock(metering->meters)));
}

static int64_t now_us(const struct metering *metering)
{
    return clock_read_monotonic_us(meters_clock(metering->meters));
}

bool metering_begin(struct metering *metering, struct meters *meters,
                    const struct metering_request *request, struct metered_call *call,
                    struct error *err)
{
    struct budget_request wanted = {.price_cru = request->price_cru,
                                    .key = request->pk,
                                    .ticket = request->ticket,
                                    .bucket = call->bucket,
                                    .low_priority = call->low_priority,
                                    .minute_pool_off = call->minute_pool_off};

    *metering = (struct metering){.meters = meters, .pk = request->pk, .call = call};
    metering->meter = meters ? meters_find(meters, request->partition) : NULL;
    if (!metering->meter)
        return true;
    metering->budget = meter_budget(metering->meter);
    metering->begun_us = now_us(metering);
    if (!metering->budget || call->admission ||
        budget_admit(metering->budget, &wanted, metering->begun_us / 1000, &metering->grant,
                     &call->wait_ms, err))
        return true;
    statistics_add(metering, 0, true, 0);
    return false;
}

void metering_end(struct metering *metering, int64_t charge_cru)
{
    int64_t ended_us;

    metering->call->charge_cru = charge_cru;
    if (!metering->meter)
        return;
    ended_us = now_us(metering);
    metering->call->minute_used = metering->grant.minute_used;
    if (metering->budget && metering->call->admission)
        admission_charge(metering->call->admission, metering->budget, metering->pk, charge_cru);
    else if (metering->budget)
        budget_settle(metering->budget, &metering->grant, charge_cru, ended_us / 1000);
    statistics_add(metering, charge_cru, false, ended_us - metering->begun_us);
}

void metering_charge(struct meters *meters, uint32_t partition, int64_t charge_cru)
{
    struct metered_call call = {0};
    struct metering metering = {.meters = meters, .call = &call};

    metering.meter = meters ? meters_find(meters, partition) : NULL;
    if (!metering.meter)
        return;
    if (meter_budget(metering.meter))
        budget_charge(meter_budget(metering.meter), charge_cru, now_us(&metering) / 1000);
    statistics_add(&metering, charge_cru, false, 0);
}

void metering_refuse(struct meters *meters, const struct metering_request *request)
{
    struct metering metering = {.meters = meters, .pk = request->pk};

    metering.meter = meters ? meters_find(meters, request->partition) : NULL;
    if (metering.meter)
        statistics_add(&metering, 0, true, 0);
}

void metering_drop(struct metering *metering)
{
    if (metering->meter && metering->budget)
        budget_drop(metering->budget, &metering->grant, now_us(metering) / 1000);
}

int64_t metering_refused_cru(const struct error *err)
{
    switch (err->code) {
    case ERROR_ITEM_EXISTS:
    case ERROR_ITEM_MISSING:
    case ERROR_PRECONDITION_FAILED:
    case ERROR_UNIQUE_KEY:
    case ERROR_LOGICAL_PARTITION_FULL:
    case ERROR_PARTITION_FULL:
    case ERROR_BAD_REQUEST:
    case ERROR_KEY_MISMATCH:
    case ERROR_PATCH_CONDITION:
    case ERROR_TOO_LARGE:
        return cost_write_refused(0);
    default:
        return 0;
    }
}

/* --- Operations on one item ------------------------------------------------------------------- */

/* The same for every attempt of one request, so that it finds the place it was given. */
static uint64_t ticket_of(struct slice pk, const struct document_value *id)
{
    uint64_t seed = id->type == DOCUMENT_STRING ? XXH3_64bits(id->text.data, id->text.len) : 1;

    return XXH3_64bits_withSeed(pk.data, pk.len, seed) | 1;
}

static bool item_begin(struct metering *metering, struct meters *meters,
                       const struct item_space *space, const struct partition_key *key,
                       const struct document_value *id, int64_t price_cru,
                       struct metered_call *call, struct arena *arena, struct error *err)
{
    struct metering_request request = {.price_cru = price_cru};
    struct slice logical = item_logical(&space->definition->key, key, arena);

    request.partition = partition_map_find(space->map, logical)->id;
    request.pk = metering_pk(key, arena);
    request.ticket = ticket_of(request.pk, id);
    return metering_begin(metering, meters, &request, call, err);
}

/* The claim of an operation whose key is not known whole. What it was charged goes to the call,
 * also when it failed. */
static bool claim_begin(struct claim *claim, struct meters *meters, const struct item_space *space,
                        const struct partition_key *key, const struct document_value *id,
                        enum claim_purpose purpose, struct metered_call *call, struct arena *arena,
                        struct error *err)
{
    bool taken;
    bool fine = claim_take(claim, meters, space, key, id, purpose, true, call, arena, &taken, err);

    call->charge_cru = claim->cru;
    if (fine) {
        call->key_found = true;
        call->key = claim->key;
    }
    return fine;
}

static bool read_run(struct meters *meters, const struct item_space *space,
                     const struct partition_key *key, const struct document_value *id,
                     struct metered_call *call, struct arena *arena, struct item *ret_item,
                     struct error *err);

static bool claimed_read(struct meters *meters, const struct item_space *space,
                         const struct partition_key *key, const struct document_value *id,
                         struct metered_call *call, struct arena *arena, struct item *ret_item,
                         struct error *err)
{
    CLEANUP(claim_release) struct claim claim = {0};
    bool found;

    if (!claim_begin(&claim, meters, space, key, id, CLAIM_READ, call, arena, err))
        return false;
    found = metered_read(meters, &claim.space, &claim.key, id, call, arena, ret_item, err);
    call->charge_cru = cost_add(call->charge_cru, claim.cru);
    return found;
}

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "entity with the specified id does not exist in the system");
}

/* Is an operation still to be tried by the key of before? Either it makes sense in no other way, or
 * what it says now has led to no item. */
static bool alias_is_due(const struct partition_key *key, bool tried, const struct error *err)
{
    return key->former && (tried ? err->code == ERROR_ITEM_MISSING : key->former_only);
}

/* The key of now, for an operation on an item that must be there. */
static bool alias_key(struct meters *meters, const struct item_space *space,
                      const struct partition_key *key, const struct document_value *id,
                      struct metered_call *call, struct arena *arena, struct error *err)
{
    bool found;

    if (!alias_find(meters, space, key->former, id, call, arena, &call->key, &found, err))
        return false;
    call->key_found = found;
    return found || missing(err);
}

/* What the first attempt and the looking cost goes with the second. */
static void charge_carry(struct metered_call *call, int64_t before_cru)
{
    call->charge_cru = cost_add(call->charge_cru, before_cru);
}

bool metered_read(struct meters *meters, const struct item_space *space,
                  const struct partition_key *key, const struct document_value *id,
                  struct metered_call *call, struct arena *arena, struct item *ret_item,
                  struct error *err)
{
    struct partition_key found;
    int64_t before_cru;
    bool fine;

    if (!alias_is_due(key, false, err)) {
        if (read_run(meters, space, key, id, call, arena, ret_item, err))
            return true;
        if (!alias_is_due(key, true, err))
            return false;
    }
    if (!alias_key(meters, space, key, id, call, arena, err))
        return false;
    before_cru = call->charge_cru;
    found = call->key;
    fine = read_run(meters, space, &found, id, call, arena, ret_item, err);
    charge_carry(call, before_cru);
    return fine;
}

static bool read_run(struct meters *meters, const struct item_space *space,
                     const struct partition_key *key, const struct document_value *id,
                     struct metered_call *call, struct arena *arena, struct item *ret_item,
                     struct error *err)
{
    struct metering metering;
    bool found;

    if (claim_is_needed(&space->definition->key, key, CLAIM_READ))
        return claimed_read(meters, space, key, id, call, arena, ret_item, err);
    if (!item_begin(&metering, meters, space, key, id, cost_read(0, call->strong), call, arena,
                    err))
        return false;
    found = items_read(space, key, id, arena, ret_item, err);
    metering.bytes_out = found ? ret_item->document.len : 0;
    metering_end(&metering, cost_read(metering.bytes_out, call->strong));
    return found;
}

bool metered_read_cached(struct meters *meters, const struct item_space *space,
                         const struct partition_key *key, const struct document_value *id,
                         struct metered_call *call, struct arena *arena, struct item *ret_item,
                         bool *ret_cold, struct error *err)
{
    struct metering metering;
    bool found;

    *ret_cold = key->former_only || claim_is_needed(&space->definition->key, key, CLAIM_READ);
    if (*ret_cold)
        return true;
    if (!item_begin(&metering, meters, space, key, id, cost_read(0, call->strong), call, arena,
                    err))
        return false;
    found = items_read_cached(space, key, id, arena, ret_item, ret_cold, err);
    if (!found && !*ret_cold && alias_is_due(key, true, err))
        *ret_cold = true;
    *ret_cold |= found && ret_item->document.len > METERED_CACHED_MAX;
    if (*ret_cold) {
        metering_drop(&metering);
        return true;
    }
    metering.bytes_out = found ? ret_item->document.len : 0;
    metering_end(&metering, cost_read(metering.bytes_out, call->strong));
    return found;
}

/* Admits a write and, if it is one with a claim, looks for the item then: if that is elsewhere, it
 * is that partition that has to admit it. */
static bool write_admit(struct metering *metering, struct meters *meters,
                        const struct item_space *space, const struct partition_key *key,
                        const struct document_value *id, int64_t price_cru, struct claim *claim,
                        struct metered_call *call, struct arena *arena, struct error *err)
{
    bool moved;

    if (!item_begin(metering, meters, space, key, id, price_cru, call, arena, err))
        return false;
    if (!claim)
        return true;
    if (!claim_look(claim, meters, id, arena, &moved, err)) {
        metering_drop(metering);
        call->charge_cru = claim->cru;
        return false;
    }
    call->key = claim->key;
    if (!moved)
        return true;
    metering_drop(metering);
    call->charge_cru = claim->cru;
    return item_begin(metering, meters, space, key, id, price_cru, call, arena, err);
}

/* claim NULL: none is needed. */
static bool write_run(struct meters *meters, const struct item_space *space,
                      const struct partition_key *key, const struct document_value *id,
                      enum transaction_verb verb, struct slice document,
                      const struct transaction_options *options, struct claim *claim,
                      struct metered_call *call, struct arena *arena,
                      struct transaction_result *ret_result, struct error *err)
{
    struct cost_write known = {.removes = verb == TRANSACTION_DELETE,
                               .puts = verb != TRANSACTION_DELETE,
                               .new_bytes = document.len};
    struct transaction_work work = {0};
    struct metering metering;
    bool written;

    if (!write_admit(&metering, meters, space, key, items_id_written(id, options),
                     cost_write(&known), claim, call, arena, err))
        return false;
    metering.bytes_in = document.len;
    written = items_write(space, key, id, verb, document, options, arena, ret_result, &work, err);
    metering_end(&metering, written ? work.write_cru : metering_refused_cru(err));
    if (claim)
        call->charge_cru = cost_add(call->charge_cru, claim->cru);
    return written;
}

/* Under a random suffix the id an item gets must be free under its base. Only that is claimed, and
 * not the id it has as well: two that exchange ids would wait for each other. The item is found
 * without a claim, so that one who moves it to another suffix meanwhile makes this a 404. */
static bool write_renamed(struct meters *meters, const struct item_space *space,
                          const struct partition_key *key, const struct document_value *id,
                          struct slice document, const struct transaction_options *options,
                          struct metered_call *call, struct arena *arena,
                          struct transaction_result *ret_result, struct error *err)
{
    CLEANUP(claim_release) struct claim found = {0};
    CLEANUP(claim_release) struct claim claim = {0};
    struct transaction_options claimed = *options;
    int64_t before_cru = 0;
    bool fine;

    if (key->open) {
        if (!claim_begin(&found, meters, space, key, id, CLAIM_READ, call, arena, err))
            return false;
        key = &found.key;
        before_cru = found.cru;
    }
    claimed.id_is_free = true;
    fine =
        claim_begin(&claim, meters, space, key, options->new_id, CLAIM_CREATE, call, arena, err) &&
        write_run(meters, &claim.space, &claim.key, id, TRANSACTION_REPLACE, document, &claimed,
                  &claim, call, arena, ret_result, err);
    charge_carry(call, before_cru);
    return fine;
}

static bool write_claimed(struct meters *meters, const struct item_space *space,
                          const struct partition_key *key, const struct document_value *id,
                          enum transaction_verb verb, struct slice document,
                          const struct transaction_options *options, struct metered_call *call,
                          struct arena *arena, struct transaction_result *ret_result,
                          struct error *err)
{
    CLEANUP(claim_release) struct claim claim = {0};
    struct transaction_options claimed = {0};

    if (options && options->new_id && partition_synthetic_is_random(&space->definition->key))
        return write_renamed(meters, space, key, id, document, options, call, arena, ret_result,
                             err);
    if (!claim_is_needed(&space->definition->key, key, claim_purpose_of(verb)))
        return write_run(meters, space, key, id, verb, document, options, NULL, call, arena,
                         ret_result, err);
    if (!claim_begin(&claim, meters, space, key, id, claim_purpose_of(verb), call, arena, err))
        return false;
    if (options)
        claimed = *options;
    claimed.id_is_free = true;
    return write_run(meters, &claim.space, &claim.key, id, verb, document, &claimed, &claim, call,
                     arena, ret_result, err);
}

/* Somebody who knows the definition before creates an item, or may: there is none under the former
 * key, or it is the one that has the key of now. */
static bool former_is_free(struct meters *meters, const struct item_space *space,
                           const struct partition_key *key, const struct document_value *id,
                           enum transaction_verb verb, struct metered_call *call,
                           struct arena *arena, struct error *err)
{
    struct partition_key other;
    bool found;

    if (!alias_find(meters, space, key->former, id, call, arena, &other, &found, err))
        return false;
    if (!found || partition_key_equal(&other, key))
        return true;
    if (verb == TRANSACTION_CREATE)
        return error_set(err, ERROR_ITEM_EXISTS, "entity with the specified id already exists");
    return error_set(err, ERROR_KEY_MISMATCH,
                     "the container was re-keyed: the item has another partition key by now, and "
                     "that cannot be changed by writing it");
}

static bool write_former(struct meters *meters, const struct item_space *space,
                         const struct partition_key *key, const struct document_value *id,
                         enum transaction_verb verb, struct slice document,
                         const struct transaction_options *options, struct metered_call *call,
                         struct arena *arena, struct transaction_result *ret_result,
                         struct error *err)
{
    const struct document_value *name = items_id_written(id, options);
    struct slice claim = alias_claim(key->former, name, arena);
    bool claims = space->gates && !partition_synthetic_is_random(&space->definition->key);
    int64_t before_cru;
    bool fine;

    if (claims)
        item_gates_claim(space->gates, claim);
    fine = former_is_free(meters, space, key, name, name == id ? verb : TRANSACTION_CREATE, call,
                          arena, err);
    before_cru = call->charge_cru;
    if (fine) {
        fine = write_claimed(meters, space, key, id, verb, document, options, call, arena,
                             ret_result, err);
        charge_carry(call, before_cru);
    }
    if (claims)
        item_gates_unclaim(space->gates, claim);
    return fine;
}

bool metered_write(struct meters *meters, const struct item_space *space,
                   const struct partition_key *key, const struct document_value *id,
                   enum transaction_verb verb, struct slice document,
                   const struct transaction_options *options, struct metered_call *call,
                   struct arena *arena, struct transaction_result *ret_result, struct error *err)
{
    struct partition_key found;
    int64_t before_cru;
    bool fine;

    /* With an item, its key of now is known; without, it has to be found. */
    if (key->former && verb != TRANSACTION_DELETE)
        return write_former(meters, space, key, id, verb, document, options, call, arena,
                            ret_result, err);
    if (!alias_is_due(key, false, err)) {
        if (write_claimed(meters, space, key, id, verb, document, options, call, arena, ret_result,
                          err))
            return true;
        if (!alias_is_due(key, true, err))
            return false;
    }
    if (!alias_key(meters, space, key, id, call, arena, err))
        return false;
    before_cru = call->charge_cru;
    found = call->key;
    fine = write_claimed(meters, space, &found, id, verb, document, options, call, arena,
                         ret_result, err);
    charge_carry(call, before_cru);
    return fine;
}

/* A metered write under way; in the arena. */
struct metered_started {
    struct metering metering;
    items_write_done *done;
    void *context;
};

static void metered_write_end(const struct transaction_result *result,
                              const struct transaction_work *work, const struct error *err,
                              void *context)
{
    struct metered_started *started = context;

    metering_end(&started->metering, err ? metering_refused_cru(err) : work->write_cru);
    started->done(result, work, err, started->context);
}

bool metered_write_start(struct meters *meters, const struct item_space *space,
                         const struct partition_key *key, const struct document_value *id,
                         enum transaction_verb verb, struct slice document,
                         const struct transaction_options *options, struct metered_call *call,
                         struct arena *arena, items_write_done *done, void *context,
                         bool *ret_begun, struct error *err)
{
    struct cost_write known = {.removes = verb == TRANSACTION_DELETE,
                               .puts = verb != TRANSACTION_DELETE,
                               .new_bytes = document.len};
    struct metered_started *started = ARENA_NEW(arena, struct metered_started);
    struct metering *metering = &started->metering;

    *ret_begun = false;
    if (key->former || claim_is_needed(&space->definition->key, key, claim_purpose_of(verb)))
        return true;
    if (!item_begin(metering, meters, space, key, id, cost_write(&known), call, arena, err))
        return false;
    metering->bytes_in = document.len;
    started->done = done;
    started->context = context;
    if (!items_write_start(space, key, id, verb, document, options, arena, metered_write_end,
                           started, ret_begun, err)) {
        metering_end(metering, metering_refused_cru(err));
        return false;
    }
    if (!*ret_begun)
        metering_drop(metering);
    return true;
}

static bool change_run(struct meters *meters, const struct item_space *space,
                       const struct partition_key *key, const struct document_value *id,
                       bool (*make)(const struct item *item, void *context, struct arena *arena,
                                    struct slice *ret_document, struct error *err),
                       void *context, const struct transaction_options *options,
                       struct metered_call *call, struct arena *arena,
                       struct transaction_result *ret_result, struct error *err)
{
    CLEANUP(claim_release) struct claim claim = {0};
    struct cost_write known = {.removes = true, .puts = true};
    struct transaction_work work = {0};
    struct metering metering;
    bool written;

    if (claim_is_needed(&space->definition->key, key, CLAIM_CHANGE)) {
        if (!claim_begin(&claim, meters, space, key, id, CLAIM_CHANGE, call, arena, err))
            return false;
        space = &claim.space;
        key = &claim.key;
    }
    if (!item_begin(&metering, meters, space, key, id, cost_write(&known), call, arena, err))
        return false;
    written = items_change(space, key, id, make, context, options, arena, ret_result, &work, err);
    metering.bytes_in = work.bytes_written;
    metering_end(&metering, written ? work.write_cru : metering_refused_cru(err));
    call->charge_cru = cost_add(call->charge_cru, claim.cru);
    return written;
}

bool metered_change(struct meters *meters, const struct item_space *space,
                    const struct partition_key *key, const struct document_value *id,
                    bool (*make)(const struct item *item, void *context, struct arena *arena,
                                 struct slice *ret_document, struct error *err),
                    void *context, const struct transaction_options *options,
                    struct metered_call *call, struct arena *arena,
                    struct transaction_result *ret_result, struct error *err)
{
    struct partition_key found;
    int64_t before_cru;
    bool fine;

    if (!alias_is_due(key, false, err)) {
        if (change_run(meters, space, key, id, make, context, options, call, arena, ret_result,
                       err))
            return true;
        if (!alias_is_due(key, true, err))
            return false;
    }
    if (!alias_key(meters, space, key, id, call, arena, err))
        return false;
    before_cru = call->charge_cru;
    found = call->key;
    fine =
        change_run(meters, space, &found, id, make, context, options, call, arena, ret_result, err);
    charge_carry(call, before_cru);
    return fine;
}

/* --- Transactions ------------------------------------------------------------------------------
 */

static bool transaction_attempt(const struct item_space *space, struct slice logical,
                                struct metered_transaction *run, struct arena *arena,
                                int64_t *ret_writes_cru, struct error *err)
{
    CLEANUP(arena_free) struct arena *own = run->own_arena ? arena_new() : NULL;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope = item_space_scope(space, logical);
    size_t nth;

    run->reads_cru = 0;
    run->space = space;
    run->arena = own ? own : arena;
    if (!transaction_begin(&scope, logical, run->arena, &transaction, err) ||
        !run->plan(run, transaction, err))
        return false;
    if (!transaction_commit(transaction, err)) {
        if (run->refused && transaction_refused(transaction, &nth))
            run->refused(run, nth);
        return false;
    }
    if (run->done)
        run->done(run, transaction);
    *ret_writes_cru = transaction_work(transaction).write_cru;
    return true;
}

/* The first attempt does not wait for anybody. Those that follow take turns with other transactions
 * of the logical partition that lost as well, and so lose only to writes of single items. */
static bool transaction_attempts(const struct item_space *space, const struct partition_key *key,
                                 struct slice logical, struct metered_transaction *run,
                                 struct arena *arena, int64_t *ret_writes_cru, struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *space;
    struct item_gates *gates = run->gates ? run->gates : space->gates;
    int attempts_max = run->attempts_max ? run->attempts_max : ATTEMPTS_MAX;
    bool done = false, at_gate = false;

    now.renewed = false;
    for (int i = 0; i < attempts_max && !done; i++) {
        /* Routed anew: with another map another definition may have come. */
        done = transaction_attempt(&now, item_logical(&now.definition->key, key, arena), run, arena,
                                   ret_writes_cru, err);
        if (!done && !item_space_try_again(&now, err))
            break;
        if (!done && !at_gate) {
            item_gates_enter(gates, logical);
            at_gate = true;
        }
    }
    if (at_gate)
        item_gates_leave(gates, logical);
    return done;
}

bool metered_transaction_run(struct meters *meters, const struct item_space *space,
                             const struct partition_key *key,
                             struct metered_transaction *transaction, struct metered_call *call,
                             struct arena *arena, struct error *err)
{
    struct slice logical = item_logical(&space->definition->key, key, arena);
    struct metering_request request = {
        .partition = partition_map_find(space->map, logical)->id,
        .price_cru = transaction->price_cru,
        .pk = metering_pk(key, arena),
        .ticket = transaction->ticket,
    };
    struct metering metering;
    int64_t writes_cru = 0;
    bool done;

    if (key->open)
        return error_set(err, ERROR_BAD_REQUEST,
                         "PartitionKey value must be supplied for this operation: whole, for it "
                         "stays within one logical partition");
    if (!metering_begin(&metering, meters, &request, call, err))
        return false;
    done = transaction_attempts(space, key, logical, transaction, arena, &writes_cru, err);
    metering_end(&metering,
                 cost_add(transaction->reads_cru, done ? writes_cru : metering_refused_cru(err)));
    return done;
}
