/* Budgets are added behind an atomic count, in an array of the largest size, so that finding one
 * takes no lock: a pointer once visible stays until the last reference goes. */
#include "throughput/shared.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

struct shared_throughput {
    atomic_uint refs;
    atomic_uint count;
    struct budget *budgets[SHARED_PARTITIONS_MAX];
    struct mutex lock;             /* held while the throughput changes */
    struct budget_options options; /* of one partition; under lock */
};

uint32_t throughput_partitions(int64_t rate_cru, int64_t partition_max_cru)
{
    int64_t count;

    if (rate_cru <= 0 || partition_max_cru <= 0)
        return 1;
    count = rate_cru / partition_max_cru + (rate_cru % partition_max_cru != 0);
    return (uint32_t)MIN(count, UINT32_MAX);
}

static bool count_fits(uint32_t count, struct error *err)
{
    if (count <= SHARED_PARTITIONS_MAX)
        return true;
    return error_set(err, ERROR_BAD_REQUEST,
                     "shared throughput would take %u partitions, the limit is %d", count,
                     SHARED_PARTITIONS_MAX);
}

bool shared_throughput_new(const struct budget_options *options,
                           struct shared_throughput **ret_shared, struct error *err)
{
    uint32_t count = throughput_partitions(options->rate_cru, options->rate_max_cru);
    struct shared_throughput *shared;

    if (!count_fits(count, err))
        return false;
    shared = MEMORY_NEW(struct shared_throughput);
    shared->refs = 1;
    mutex_init(&shared->lock);
    shared->options = *options;
    shared->options.rate_cru = options->rate_cru / count;
    for (uint32_t i = 0; i < count; i++)
        shared->budgets[i] = budget_new(&shared->options);
    shared->count = count;
    *ret_shared = shared;
    return true;
}

struct shared_throughput *shared_throughput_ref(struct shared_throughput *shared)
{
    atomic_fetch_add(&shared->refs, 1);
    return shared;
}

struct shared_throughput *shared_throughput_unref(struct shared_throughput *shared)
{
    if (!shared || atomic_fetch_sub(&shared->refs, 1) > 1)
        return NULL;
    for (uint32_t i = 0; i < shared->count; i++)
        budget_free(shared->budgets[i]);
    mutex_done(&shared->lock);
    memory_free(shared);
    return NULL;
}

struct budget *shared_throughput_budget(struct shared_throughput *shared, uint32_t place)
{
    return shared->budgets[place % atomic_load_explicit(&shared->count, memory_order_acquire)];
}

uint32_t shared_throughput_count(const struct shared_throughput *shared)
{
    return atomic_load_explicit(&shared->count, memory_order_acquire);
}

bool shared_throughput_set(struct shared_throughput *shared, int64_t rate_cru, bool autoscale,
                           bool minute_pool, int64_t now_ms, struct error *err)
{
    WITH_LOCK (&shared->lock) {
        uint32_t before = shared->count;
        uint32_t count = MAX(throughput_partitions(rate_cru, shared->options.rate_max_cru), before);

        if (!count_fits(count, err))
            return false;
        shared->options.rate_cru = rate_cru / count;
        shared->options.autoscale = autoscale;
        shared->options.minute_pool = minute_pool;
        for (uint32_t i = 0; i < before; i++)
            budget_set_throughput(shared->budgets[i], shared->options.rate_cru, autoscale,
                                  minute_pool, now_ms);
        for (uint32_t i = before; i < count; i++)
            shared->budgets[i] = budget_new(&shared->options);
        atomic_store_explicit(&shared->count, count, memory_order_release);
    }
    return true;
}

void shared_throughput_get_state(struct shared_throughput *shared, int64_t now_ms,
                                 struct budget_state *ret_state)
{
    struct budget_state sum = {0};
    uint32_t count = shared_throughput_count(shared);

    for (uint32_t i = 0; i < count; i++) {
        struct budget_state one;

        budget_get_state(shared->budgets[i], now_ms, &one);
        sum.rate_cru += one.rate_cru;
        sum.current_cru += one.current_cru;
        sum.hour_peak_cru += one.hour_peak_cru;
        sum.hour_before_cru += one.hour_before_cru;
        sum.credit_cru += one.credit_cru;
        sum.minute_left_cru += one.minute_left_cru;
        sum.owed_ms = MAX(sum.owed_ms, one.owed_ms);
        sum.waiting += one.waiting;
    }
    *ret_state = sum;
}
