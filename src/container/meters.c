/* A hash table of meters that only grows while requests run, under a read-write lock that is held
 * for the look-up alone. */
#include "container/meters.h"

#include "throughput/cost.h"

#include <pthread.h>
#include <xxhash.h>

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
    struct pool *pools; /* under lock */
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
    *ret_shared = pool->shared;
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

void meters_remove(struct meters *meters, uint32_t partition)
{
    size_t place;

    pthread_rwlock_wrlock(&meters->lock);
    place = meter_place(meters, partition);
    if (place < meters->count && meters->meters[place]->partition == partition) {
        meter_free(meters->meters[place]);
        meters->count--;
        memmove(&meters->meters[place], &meters->meters[place + 1],
                (meters->count - place) * sizeof(struct meter *));
    }
    pthread_rwlock_unlock(&meters->lock);
}

struct statistics *meter_statistics(struct meter *meter)
{
    return meter->statistics;
}

struct budget *meter_budget(struct meter *meter)
{
    return meter->shared ? shared_throughput_budget(meter->shared, meter->place) : meter->own;
}

/* --- One request ----------------------------------------------------------------------------- */

/* From admission to settlement. */
struct metering {
    struct meters *meters;
    struct meter *meter;
    struct budget *budget; /* NULL: not held back */
    struct budget_grant grant;
    struct slice pk; /* encoded */
    struct metered_call *call;
    uint64_t bytes_in, bytes_out;
};

static struct slice pk_of(const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(key, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

static void statistics_add(struct metering *m, int64_t cru, bool throttled)
{
    struct statistics_event event = {.key = m->pk,
                                     .cru = cru,
                                     .throttled = throttled,
                                     .bytes_in = m->bytes_in,
                                     .bytes_out = m->bytes_out};

    statistics_record(m->meter->statistics, &event, clock_read_wall_ms(m->meters->clock));
}

/* The same for every attempt of one request, so that it finds the place it was given. */
static uint64_t ticket_of(const struct metering *m, const struct document_value *id)
{
    uint64_t seed = id->type == DOCUMENT_STRING ? XXH3_64bits(id->text.data, id->text.len) : 1;

    return XXH3_64bits_withSeed(m->pk.data, m->pk.len, seed) | 1;
}

static bool metering_begin(struct metering *m, struct meters *meters,
                           const struct item_space *space, const struct partition_key *key,
                           const struct document_value *id, int64_t price_cru,
                           struct metered_call *call, struct arena *arena, struct error *err)
{
    struct budget_request request = {.price_cru = price_cru,
                                     .bucket = call->bucket,
                                     .low_priority = call->low_priority,
                                     .minute_pool_off = call->minute_pool_off};
    struct item_scope scope =
        item_space_scope(space, item_logical(&space->definition->key, key, arena));

    *m = (struct metering){.meters = meters, .call = call};
    m->meter = meters ? meters_find(meters, scope.partition) : NULL;
    if (!m->meter)
        return true;
    m->pk = pk_of(key, arena);
    m->budget = meter_budget(m->meter);
    request.key = m->pk;
    request.ticket = ticket_of(m, id);
    if (!m->budget || budget_admit(m->budget, &request, clock_read_monotonic_ms(meters->clock),
                                   &m->grant, &call->wait_ms, err))
        return true;
    statistics_add(m, 0, true);
    return false;
}

static void metering_end(struct metering *m, int64_t charge_cru)
{
    m->call->charge_cru = charge_cru;
    if (!m->meter)
        return;
    m->call->minute_used = m->grant.minute_used;
    if (m->budget)
        budget_settle(m->budget, &m->grant, charge_cru, clock_read_monotonic_ms(m->meters->clock));
    statistics_add(m, charge_cru, false);
}

/* As if it had never begun. */
static void metering_drop(struct metering *m)
{
    if (m->meter && m->budget)
        budget_settle(m->budget, &m->grant, 0, clock_read_monotonic_ms(m->meters->clock));
}

bool metered_read(struct meters *meters, const struct item_space *space,
                  const struct partition_key *key, const struct document_value *id,
                  struct metered_call *call, struct arena *arena, struct item *ret_item,
                  struct error *err)
{
    struct metering metering;
    bool found;

    if (!metering_begin(&metering, meters, space, key, id, cost_read(0, call->strong), call, arena,
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

    *ret_cold = false;
    if (!metering_begin(&metering, meters, space, key, id, cost_read(0, call->strong), call, arena,
                        err))
        return false;
    found = items_read_cached(space, key, id, arena, ret_item, ret_cold, err);
    if (*ret_cold) {
        metering_drop(&metering);
        return true;
    }
    metering.bytes_out = found ? ret_item->document.len : 0;
    metering_end(&metering, cost_read(metering.bytes_out, call->strong));
    return found;
}

/* A write that was refused has read what it was refused for. Faults of the server are free. */
static int64_t refused_cru(const struct error *err)
{
    switch (err->code) {
    case ERROR_ITEM_EXISTS:
    case ERROR_ITEM_MISSING:
    case ERROR_PRECONDITION_FAILED:
    case ERROR_UNIQUE_KEY:
    case ERROR_LOGICAL_PARTITION_FULL:
    case ERROR_PARTITION_FULL:
    case ERROR_BAD_REQUEST:
    case ERROR_TOO_LARGE:
        return cost_write_refused(0);
    default:
        return 0;
    }
}

bool metered_write(struct meters *meters, const struct item_space *space,
                   const struct partition_key *key, const struct document_value *id,
                   enum transaction_verb verb, struct slice document,
                   const struct transaction_options *options, struct metered_call *call,
                   struct arena *arena, struct transaction_result *ret_result, struct error *err)
{
    struct cost_write known = {.removes = verb == TRANSACTION_DELETE,
                               .puts = verb != TRANSACTION_DELETE,
                               .new_bytes = document.len};
    struct transaction_work work = {0};
    struct metering metering;
    bool written;

    if (!metering_begin(&metering, meters, space, key, id, cost_write(&known), call, arena, err))
        return false;
    metering.bytes_in = document.len;
    written = items_write(space, key, id, verb, document, options, arena, ret_result, &work, err);
    metering_end(&metering, written ? work.write_cru : refused_cru(err));
    return written;
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

    metering_end(&started->metering, err ? refused_cru(err) : work->write_cru);
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
    if (!metering_begin(metering, meters, space, key, id, cost_write(&known), call, arena, err))
        return false;
    metering->bytes_in = document.len;
    started->done = done;
    started->context = context;
    if (!items_write_start(space, key, id, verb, document, options, arena, metered_write_end,
                           started, ret_begun, err)) {
        metering_end(metering, refused_cru(err));
        return false;
    }
    if (!*ret_begun)
        metering_drop(metering);
    return true;
}

bool metered_change(struct meters *meters, const struct item_space *space,
                    const struct partition_key *key, const struct document_value *id,
                    bool (*make)(const struct item *item, void *context, struct arena *arena,
                                 struct slice *ret_document, struct error *err),
                    void *context, const struct transaction_options *options,
                    struct metered_call *call, struct arena *arena,
                    struct transaction_result *ret_result, struct error *err)
{
    struct cost_write known = {.removes = true, .puts = true};
    struct transaction_work work = {0};
    struct metering metering;
    bool written;

    if (!metering_begin(&metering, meters, space, key, id, cost_write(&known), call, arena, err))
        return false;
    written = items_change(space, key, id, make, context, options, arena, ret_result, &work, err);
    metering.bytes_in = work.bytes_written;
    metering_end(&metering, written ? work.write_cru : refused_cru(err));
    return written;
}
