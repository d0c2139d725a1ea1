#include "item/metering.h"

#include "item/admission.h"
#include "throughput/cost.h"
#include "throughput/statistics_all.h"

enum { ATTEMPTS_MAX = 100 }; /* of a transaction; those after the first wait for their turn */

/* --- Any request ------------------------------------------------------------------------------ */

struct slice metering_pk(const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(key, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

static void refused_add(struct metering *metering, int64_t price_cru)
{
    statistics_refused(meter_statistics(metering->meter), metering->pk, price_cru,
                       clock_read_wall_ms(meters_clock(metering->meters)));
}

static void statistics_add(struct metering *metering, int64_t cru, int64_t time_us)
{
    struct statistics_event event = {.key = metering->pk,
                                     .cru = cru,
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

/* Who has a budget of its own for some keys, or is refused first, is for the budget to judge. */
static bool metering_borrow(struct metering *metering, const struct metering_request *request,
                            struct error *err)
{
    const struct meters_lender *lender = meters_lender(metering->meters);
    const struct metered_call *call = metering->call;

    metering->partition = request->partition;
    if (call->low_priority || call->bucket || call->minute_pool_off ||
        !lender->admit(lender->context, request->partition, request->price_cru))
        return error_set(err, ERROR_UNPROVED, "no throughput is lent for partition %u",
                         request->partition);
    assert(request->price_cru > 0);
    metering->borrowed_cru = request->price_cru;
    return true;
}

static void metering_repay(struct metering *metering, int64_t charge_cru)
{
    const struct meters_lender *lender = meters_lender(metering->meters);
    int64_t borrowed_cru = metering->borrowed_cru;

    metering->borrowed_cru = 0;
    lender->settle(lender->context, metering->partition, borrowed_cru, charge_cru);
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
    if (meters && meters_lender(meters))
        return metering_borrow(metering, request, err);
    metering->meter = meters ? meters_find(meters, request->partition) : NULL;
    if (!metering->meter)
        return true;
    metering->budget = meter_budget(metering->meter);
    metering->begun_us = now_us(metering);
    if (!metering->budget || call->admission ||
        budget_admit(metering->budget, &wanted, metering->begun_us / 1000, &metering->grant,
                     &call->wait_ms, err))
        return true;
    refused_add(metering, request->price_cru);
    return false;
}

void metering_end(struct metering *metering, int64_t charge_cru)
{
    int64_t ended_us;

    metering->call->charge_cru = charge_cru;
    if (metering->borrowed_cru)
        metering_repay(metering, charge_cru);
    if (!metering->meter)
        return;
    ended_us = now_us(metering);
    metering->call->minute_used = metering->grant.minute_used;
    if (metering->budget && metering->call->admission)
        admission_charge(metering->call->admission, metering->budget, metering->pk, charge_cru);
    else if (metering->budget)
        budget_settle(metering->budget, &metering->grant, charge_cru, ended_us / 1000);
    statistics_add(metering, charge_cru, ended_us - metering->begun_us);
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
    statistics_add(&metering, charge_cru, 0);
}

void metering_refuse(struct meters *meters, const struct metering_request *request)
{
    struct metering metering = {.meters = meters, .pk = request->pk};

    metering.meter = meters ? meters_find(meters, request->partition) : NULL;
    if (metering.meter)
        refused_add(&metering, request->price_cru);
}

void metering_drop(struct metering *metering)
{
    if (metering->borrowed_cru)
        metering_repay(metering, 0);
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
    case ERROR_PARALLEL_ARRAYS:
    case ERROR_HASHED_ARRAY:
    case ERROR_NO_FIGURE:
    case ERROR_OUTSIDE_BOX:
        return cost_write_refused(0);
    default:
        return 0;
    }
}

/* --- Transactions ------------------------------------------------------------------------------
 */

static bool transaction_attempt(struct metered_transaction *run, const struct item_route *route,
                                struct arena *arena, int64_t *ret_writes_cru, struct error *err)
{
    CLEANUP(arena_free) struct arena *own = run->own_arena ? arena_new() : NULL;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope = item_route_scope(route);
    size_t nth;

    run->reads_cru = 0;
    run->space = route->space;
    run->arena = own ? own : arena;
    if (!transaction_begin(&scope, route->logical, run->arena, &transaction, err) ||
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
static bool transaction_attempts(struct metered_transaction *run, const struct item_route *first,
                                 const struct partition_key *key, struct arena *arena,
                                 int64_t *ret_writes_cru, struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *first->space;
    struct item_gates *gates = run->gates ? run->gates : first->space->gates;
    int attempts_max = run->attempts_max ? run->attempts_max : ATTEMPTS_MAX;
    struct item_route route = *first;
    bool done = false, at_gate = false;

    now.renewed = false;
    route.space = &now;
    for (int i = 0; i < attempts_max && !done; i++) {
        bool overtaken;

        done = transaction_attempt(run, &route, arena, ret_writes_cru, err);
        overtaken = !done && item_space_is_overtaken(err);
        if (!done && !item_space_try_again(&now, err))
            break;
        if (overtaken) /* with another map another definition may have come */
            route = item_space_route(&now, key, NULL, arena);
        if (!done && !at_gate) {
            item_gates_enter(gates, first->logical);
            at_gate = true;
        }
    }
    if (at_gate)
        item_gates_leave(gates, first->logical);
    return done;
}

bool metered_transaction_run(struct meters *meters, const struct item_space *space,
                             const struct partition_key *key,
                             struct metered_transaction *transaction, struct metered_call *call,
                             struct arena *arena, struct error *err)
{
    struct item_route route = item_space_route(space, key, NULL, arena);
    struct metering_request request = {
        .partition = route.span->id,
        .price_cru = transaction->price_cru,
        .pk = route.pk,
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
    done = transaction_attempts(transaction, &route, key, arena, &writes_cru, err);
    metering_end(&metering,
                 cost_add(transaction->reads_cru, done ? writes_cru : metering_refused_cru(err)));
    return done;
}
