/* A share is what falls to one budget for one partition key, since a key may have throughput of its
 * own there. Budgets and not partitions are told apart: those of a database's throughput may be the
 * same for several partitions, and the second to ask would find what the first has taken.
 *
 * No ticket: libraries put refused operations into other batches when they send them again, so the
 * place a budget keeps is for whichever comes when it is due. */
#include "item/admission.h"

#include "throughput/cost.h"

struct share {
    struct budget *budget;
    struct slice pk;
    int64_t price_cru;
    uint32_t operations;
    int64_t charge_cru;
    struct budget_grant grant;
    bool is_asked;
    struct share *next;
};

struct admission {
    struct meters *meters;
    struct metered_call call;
    struct arena *arena;
    struct share *shares;
    size_t count;
};

struct admission *admission_new(struct meters *meters, const struct metered_call *call,
                                struct arena *arena)
{
    struct admission *admission = ARENA_NEW(arena, struct admission);

    *admission = (struct admission){.meters = meters, .call = *call, .arena = arena};
    return admission;
}

static struct share *share_find(const struct admission *admission, const struct budget *budget,
                                struct slice pk)
{
    struct share *share = admission->shares;

    while (share && (share->budget != budget || !slice_equal(share->pk, pk)))
        share = share->next;
    return share;
}

static int64_t now_ms(const struct admission *admission)
{
    return clock_read_monotonic_us(meters_clock(admission->meters)) / 1000;
}

void admission_add(struct admission *admission, const struct metering_request *request)
{
    struct meter *meter =
        admission->meters ? meters_find(admission->meters, request->partition) : NULL;
    struct budget *budget = meter ? meter_budget(meter) : NULL;
    struct share *share;

    if (!budget)
        return;
    share = share_find(admission, budget, request->pk);
    if (!share) {
        share = ARENA_NEW(admission->arena, struct share);
        *share = (struct share){.budget = budget, .pk = request->pk, .next = admission->shares};
        admission->shares = share;
        admission->count++;
    }
    share->price_cru = cost_add(share->price_cru, request->price_cru);
    share->operations++;
}

/* Asks one budget for all shares of it. */
static bool budget_ask(struct admission *admission, struct budget *budget, int64_t *ret_wait_ms,
                       struct error *err)
{
    struct budget_request *requests =
        ARENA_ARRAY(admission->arena, struct budget_request, admission->count);
    struct budget_grant *grants =
        ARENA_ARRAY(admission->arena, struct budget_grant, admission->count);
    size_t count = 0, at = 0;

    for (struct share *share = admission->shares; share; share = share->next) {
        if (share->budget != budget)
            continue;
        share->is_asked = true;
        requests[count++] =
            (struct budget_request){.price_cru = share->price_cru,
                                    .operations = share->operations,
                                    .key = share->pk,
                                    .bucket = admission->call.bucket,
                                    .low_priority = admission->call.low_priority,
                                    .minute_pool_off = admission->call.minute_pool_off};
    }
    if (!budget_admit_all(budget, requests, count, now_ms(admission), grants, ret_wait_ms, err))
        return false;
    for (struct share *share = admission->shares; share; share = share->next)
        if (share->budget == budget)
            share->grant = grants[at++];
    return true;
}

/* All are asked even behind a refusal: each then keeps a place for its part, and the wait is that
 * of the one that needs the longest. */
bool admission_ask(struct admission *admission, int64_t *ret_wait_ms, struct error *err)
{
    struct error refusal = {0};
    int64_t longest_ms = 0;

    for (struct share *share = admission->shares; share; share = share->next) {
        struct error why;
        int64_t wait_ms;

        if (share->is_asked || budget_ask(admission, share->budget, &wait_ms, &why))
            continue;
        if (wait_ms > longest_ms) {
            longest_ms = wait_ms;
            refusal = why;
        }
    }
    if (refusal.code == ERROR_NONE)
        return true;
    for (struct share *share = admission->shares; share; share = share->next)
        budget_drop(share->budget, &share->grant, now_ms(admission));
    *ret_wait_ms = longest_ms;
    *err = refusal;
    return false;
}

/* An operation may come to spend where nobody thought of: a partition has split, or an item was
 * found elsewhere. That is a debt. */
void admission_charge(struct admission *admission, struct budget *budget, struct slice pk,
                      int64_t charge_cru)
{
    struct share *share = share_find(admission, budget, pk);

    if (share)
        share->charge_cru = cost_add(share->charge_cru, charge_cru);
    else
        budget_charge(budget, charge_cru, now_ms(admission));
}

void admission_end(struct admission *admission)
{
    for (struct share *share = admission->shares; share; share = share->next)
        budget_settle(share->budget, &share->grant, share->charge_cru, now_ms(admission));
}
