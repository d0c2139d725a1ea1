/* A hash table of meters that only grows while requests run, under a read-write lock that is held
 * for the look-up alone. */
#include "item/meters.h"

#include <pthread.h>

struct meter {
    uint32_t partition;
    struct budget *own;               /* NULL: shared, or none */
    struct shared_throughput *shared; /* a reference; NULL: own, or none */
    uint32_t place;
    struct statistics *statistics;
};

/* The pool of one database. */
struct pool {
    uint32_t offer;
    struct shared_throughput *shared; /* a reference */
    struct pool *next;
};

struct meters {
    const struct clock *clock;
    pthread_rwlock_t lock;
    struct meter **meters; /* under lock; sorted by partition */
    size_t count, capacity;
    struct pool *pools;          /* under lock */
    struct meters_lender lender; /* admit NULL: none */
};

struct meters *meters_new(const struct clock *clock)
{
    struct meters *meters = MEMORY_NEW(struct meters);

    meters->clock = clock;
    pthread_rwlock_init(&meters->lock, NULL);
    return meters;
}

static void meter_free(struct meter *meter)
{
    budget_free(meter->own);
    shared_throughput_unref(meter->shared);
    statistics_free(meter->statistics);
    memory_free(meter);
}

void meters_free(struct meters *meters)
{
    if (!meters)
        return;
    for (size_t i = 0; i < meters->count; i++)
        meter_free(meters->meters[i]);
    while (meters->pools) {
        struct pool *pool = meters->pools;

        meters->pools = pool->next;
        shared_throughput_unref(pool->shared);
        memory_free(pool);
    }
    memory_free(meters->meters);
    pthread_rwlock_destroy(&meters->lock);
    memory_free(meters);
}

static size_t meter_place(const struct meters *meters, uint32_t partition)
{
    size_t low = 0, high = meters->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (meters->meters[middle]->partition < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct meter *meter_find(const struct meters *meters, uint32_t partition)
{
    size_t place = meter_place(meters, partition);

    if (place == meters->count || meters->meters[place]->partition != partition)
        return NULL;
    return meters->meters[place];
}

static struct meter *meter_make(struct meters *meters, uint32_t partition)
{
    struct meter *meter = meter_find(meters, partition);
    size_t place = meter_place(meters, partition);

    assert(partition > 0);
    assert(place == meters->count || meters->meters[place]->partition >= partition);
    if (meter)
        return meter;
    if (meters->count == meters->capacity) {
        meters->capacity = meters->capacity ? meters->capacity * 2 : 16;
        meters->meters = memory_realloc(
            meters->meters, memory_array_size(meters->capacity, sizeof(struct meter *)));
    }
    memmove(&meters->meters[place + 1], &meters->meters[place],
            (meters->count - place) * sizeof(struct meter *));
    meter = MEMORY_NEW(struct meter);
    meter->partition = partition;
    meter->statistics = statistics_new(0);
    meters->meters[place] = meter;
    meters->count++;
    return meter;
}

struct meter *meters_find(struct meters *meters, uint32_t partition)
{
    struct meter *meter;

    pthread_rwlock_rdlock(&meters->lock);
    meter = meter_find(meters, partition);
    pthread_rwlock_unlock(&meters->lock);
    return meter;
}

void meters_set_free(struct meters *meters, uint32_t partition)
{
    pthread_rwlock_wrlock(&meters->lock);
    (void)meter_make(meters, partition);
    pthread_rwlock_unlock(&meters->lock);
}

void meters_set_own(struct meters *meters, uint32_t partition, const struct budget_options *options)
{
    struct meter *meter;

    pthread_rwlock_wrlock(&meters->lock);
    meter = meter_make(meters, partition);
    if (meter->own)
        budget_set_throughput(meter->own, options->rate_cru, options->autoscale,
                              options->minute_pool, clock_read_monotonic_ms(meters->clock));
    else
        meter->own = budget_new(options);
    meter->shared = shared_throughput_unref(meter->shared);
    pthread_rwlock_unlock(&meters->lock);
}

/* A budget of its own that the partition had before stays, unused: requests may hold grants of
 * it. */
void meters_set_shared(struct meters *meters, uint32_t partition, struct shared_throughput *shared,
                       uint32_t place)
{
    struct meter *meter;

    assert(shared);
    pthread_rwlock_wrlock(&meters->lock);
    meter = meter_make(meters, partition);
    if (meter->shared != shared) {
        shared_throughput_unref(meter->shared);
        meter->shared = shared_throughput_ref(shared);
    }
    meter->place = place;
    pthread_rwlock_unlock(&meters->lock);
}

static bool pool_get(struct meters *meters, uint32_t offer, const struct budget_options *options,
                     struct shared_throughput **ret_shared, struct error *err)
{
    struct pool *pool = meters->pools;

    while (pool && pool->offer != offer)
        pool = pool->next;
    if (!pool) {
        struct shared_throughput *shared;

        if (!shared_throughput_new(options, &shared, err))
            return false;
        pool = MEMORY_NEW(struct pool);
        *pool = (struct pool){.offer = offer, .shared = shared, .next = meters->pools};
        meters->pools = pool;
    } else if (!shared_throughput_set(pool->shared, options->rate_cru, options->autoscale,
                                      options->minute_pool, clock_read_monotonic_ms(meters->clock),
                                      err)) {
        return false;
    }
    *ret_shared = shared_throughput_ref(pool->shared);
    return true;
}

bool meters_shared(struct meters *meters, uint32_t offer, const struct budget_options *options,
                   struct shared_throughput **ret_shared, struct error *err)
{
    bool got;

    pthread_rwlock_wrlock(&meters->lock);
    got = pool_get(meters, offer, options, ret_shared, err);
    pthread_rwlock_unlock(&meters->lock);
    return got;
}

bool meters_shared_state(struct meters *meters, uint32_t offer, struct budget_state *ret_state)
{
    struct pool *pool;

    pthread_rwlock_rdlock(&meters->lock);
    pool = meters->pools;
    while (pool && pool->offer != offer)
        pool = pool->next;
    if (pool)
        shared_throughput_get_state(pool->shared, clock_read_monotonic_ms(meters->clock),
                                    ret_state);
    pthread_rwlock_unlock(&meters->lock);
    return pool;
}

bool meters_state(struct meters *meters, uint32_t partition, struct budget_state *ret_state)
{
    struct meter *meter = meters_find(meters, partition);
    struct budget *budget = meter ? meter_budget(meter) : NULL;

    if (budget)
        budget_get_state(budget, clock_read_monotonic_ms(meters->clock), ret_state);
    return budget;
}

static bool pool_is_used(const struct meters *meters, const struct pool *pool)
{
    for (size_t i = 0; i < meters->count; i++)
        if (meters->meters[i]->shared == pool->shared)
            return true;
    return false;
}

/* The offer of a dropped database is never asked for again. That of one whose last container was
 * dropped begins anew with the next. */
static void pool_leave(struct meters *meters, const struct shared_throughput *shared)
{
    struct pool **at = &meters->pools;

    while (*at && (*at)->shared != shared)
        at = &(*at)->next;
    if (*at && !pool_is_used(meters, *at)) {
        struct pool *pool = *at;

        *at = pool->next;
        shared_throughput_unref(pool->shared);
        memory_free(pool);
    }
}

void meters_remove(struct meters *meters, uint32_t partition)
{
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = NULL;
    size_t place;

    pthread_rwlock_wrlock(&meters->lock);
    place = meter_place(meters, partition);
    if (place < meters->count && meters->meters[place]->partition == partition) {
        if (meters->meters[place]->shared)
            shared = shared_throughput_ref(meters->meters[place]->shared);
        meter_free(meters->meters[place]);
        meters->count--;
        memmove(&meters->meters[place], &meters->meters[place + 1],
                (meters->count - place) * sizeof(struct meter *));
        if (shared)
            pool_leave(meters, shared);
    }
    pthread_rwlock_unlock(&meters->lock);
}

void meters_borrow(struct meters *meters, const struct meters_lender *lender)
{
    meters->lender = *lender;
}

const struct meters_lender *meters_lender(const struct meters *meters)
{
    return meters->lender.admit ? &meters->lender : NULL;
}

const struct clock *meters_clock(const struct meters *meters)
{
    return meters->clock;
}

struct statistics *meter_statistics(struct meter *meter)
{
    return meter->statistics;
}

struct budget *meter_budget(struct meter *meter)
{
    return meter->shared ? shared_throughput_budget(meter->shared, meter->place) : meter->own;
}
