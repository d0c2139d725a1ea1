#include "support/fault_engine.h"

#include "base/thread.h"
#include "engine/driver.h"

struct fault_engine {
    struct engine engine;
    struct engine *inner;
    bool lent; /* inner is somebody else's */
    struct mutex lock;
    struct condition changed;

    /* All below under lock. */
    unsigned count[4]; /* by enum fault_calls: reads and writes */
    enum fault_calls planned_calls;
    unsigned planned_in; /* 0: nothing planned; 1: the next call */
    enum error_code planned_code;
    enum fault_outcome planned_outcome;
    bool full;
    bool hold;
    unsigned held;
    bool poisoned;
    bool unplugged;
    unsigned pings;
    bool hangs, stalls, interrupted, fails_over;
    struct engine_watch watch;
    struct engine_proof proof;
    bool dark; /* the power is off */
    enum fault_outcome dark_outcome;
};

struct fault_snapshot {
    struct engine_snapshot snapshot;
    struct engine_snapshot *inner;
};

struct fault_iterator {
    struct engine_iterator iterator;
    struct engine_iterator *inner;
};

static const struct engine_driver fault_driver;

static struct fault_engine *fault_of(const struct engine *engine)
{
    assert(engine->driver == &fault_driver);
    return CONTAINER_OF((struct engine *)engine, struct fault_engine, engine);
}

static struct engine_snapshot *snapshot_inner(struct engine_snapshot *snapshot)
{
    return snapshot ? CONTAINER_OF(snapshot, struct fault_snapshot, snapshot)->inner : NULL;
}

struct engine *fault_engine_new(struct engine *inner)
{
    struct fault_engine *fault = MEMORY_NEW(struct fault_engine);

    fault->inner = inner;
    fault->engine.driver = &fault_driver;
    fault->engine.name = SLICE("fault:");
    memcpy(fault->engine.node_id, engine_node_id(inner), sizeof fault->engine.node_id);
    mutex_init(&fault->lock);
    condition_init(&fault->changed);
    return &fault->engine;
}

struct engine *fault_engine_around(struct engine *inner)
{
    struct engine *engine = fault_engine_new(inner);

    fault_of(engine)->lent = true;
    return engine;
}

static void fault_close(struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);

    if (!fault->lent)
        engine_close(fault->inner);
    condition_done(&fault->changed);
    mutex_done(&fault->lock);
    memory_free(fault);
}

void fault_engine_fail_nth(struct engine *engine, enum fault_calls calls, unsigned nth,
                           enum error_code code, enum fault_outcome outcome)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->planned_calls = calls;
        fault->planned_in = nth;
        fault->planned_code = code;
        fault->planned_outcome = outcome;
    }
}

void fault_engine_heal(struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        fault->poisoned = false;
}

void fault_engine_fill(struct engine *engine, bool full)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        fault->full = full;
}

static void gate_set(struct engine *engine, bool hold)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->hold = hold;
        condition_broadcast(&fault->changed);
    }
}

void fault_engine_hold_writes(struct engine *engine)
{
    gate_set(engine, true);
}

void fault_engine_release_writes(struct engine *engine)
{
    gate_set(engine, false);
}

void fault_engine_wait_held(struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        while (!fault->held)
            condition_wait(&fault->changed, &fault->lock);
}

void fault_engine_cut_power(struct engine *engine, enum fault_outcome in_flight)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->dark = true;
        fault->dark_outcome = in_flight;
        condition_broadcast(&fault->changed);
    }
}

void fault_engine_restore_power(struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->dark = false;
        fault->hold = false;
        fault->poisoned = false;
    }
}

unsigned fault_engine_count(const struct engine *engine, enum fault_calls calls)
{
    struct fault_engine *fault = fault_of(engine);
    unsigned count = 0;

    WITH_LOCK (&fault->lock) {
        if (calls & FAULT_READS)
            count += fault->count[FAULT_READS];
        if (calls & FAULT_WRITES)
            count += fault->count[FAULT_WRITES];
    }
    return count;
}

static bool outcome_is_known(enum error_code code)
{
    return code == ERROR_STORE_FULL || code == ERROR_STORE_UNAVAILABLE || code == ERROR_FENCED;
}

/* False: whoever watches has let it go. */
static bool hang_pass(struct fault_engine *fault)
{
    enum { PAUSE_MS = 10 };

    while ((fault->hangs || fault->stalls) && !fault->interrupted)
        if (!condition_wait_until(&fault->changed, &fault->lock, clock_monotonic_ms() + PAUSE_MS) &&
            fault->watch.let_go && fault->watch.let_go(fault->watch.context, PAUSE_MS))
            return false;
    return true;
}

/* Decides over one call. True: let it through. False: err is set, and *ret_outcome says what to do
 * to the inner engine before failing. */
static bool call_decide(struct fault_engine *fault, enum fault_calls kind,
                        enum fault_outcome *ret_outcome, struct error *err)
{
    *ret_outcome = FAULT_NOT_WRITTEN;
    if (fault->dark)
        return error_set(err, ERROR_STORE_IO, "the power is off");
    if (!hang_pass(fault))
        return error_set(err, kind == FAULT_WRITES ? ERROR_STORE_POISONED : ERROR_STORE_UNAVAILABLE,
                         "the store does not answer");
    if (fault->unplugged || fault->interrupted)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "the store cannot be reached");
    fault->count[kind]++;
    if (kind == FAULT_WRITES && fault->hold) {
        fault->held++;
        condition_broadcast(&fault->changed);
        while (fault->hold && !fault->dark)
            condition_wait(&fault->changed, &fault->lock);
        fault->held--;
        if (fault->dark) {
            *ret_outcome = fault->dark_outcome;
            return error_set(err, ERROR_STORE_IO, "the power went off");
        }
    }
    if (kind == FAULT_WRITES && fault->full)
        return error_set(err, ERROR_STORE_FULL, "the disk is full, says the test");
    if ((fault->planned_calls & kind) && fault->planned_in && --fault->planned_in == 0) {
        *ret_outcome = fault->planned_outcome;
        return error_set(err, fault->planned_code, "the test wants this call to fail");
    }
    return true;
}

static bool call_pass(struct engine *engine, enum fault_calls kind, enum fault_outcome *ret_outcome,
                      struct error *err)
{
    struct fault_engine *fault = fault_of(engine);
    bool pass = false;

    WITH_LOCK (&fault->lock) {
        if (kind == FAULT_WRITES && fault->poisoned && !fault->dark) {
            *ret_outcome = FAULT_NOT_WRITTEN;
            error_set(err, ERROR_STORE_POISONED, "an earlier write failed, as the test wanted");
        } else {
            pass = call_decide(fault, kind, ret_outcome, err);
            if (!pass && kind == FAULT_WRITES && !outcome_is_known(err->code))
                fault->poisoned = true;
        }
    }
    return pass;
}

void fault_engine_unplug(struct engine *engine, bool unplugged)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        fault->unplugged = unplugged;
}

void fault_engine_hang(struct engine *engine, bool hangs)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->hangs = hangs;
        condition_broadcast(&fault->changed);
    }
}

void fault_engine_stall(struct engine *engine, bool stalls)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->stalls = stalls;
        condition_broadcast(&fault->changed);
    }
}

void fault_engine_watch(struct engine *engine, struct engine_watch watch)
{
    fault_of(engine)->watch = watch;
}

static void fault_interrupt(struct engine *engine, bool on)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        fault->interrupted = on;
        condition_broadcast(&fault->changed);
    }
    engine_interrupt(fault->inner, on);
}

unsigned fault_engine_pings(const struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);
    unsigned pings;

    WITH_LOCK (&fault->lock)
        pings = fault->pings;
    return pings;
}

void fault_engine_fail_over(struct engine *engine, bool on)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        fault->fails_over = on;
}

static bool fault_fails_over(const struct engine *engine)
{
    struct fault_engine *fault = fault_of(engine);
    bool on = false;

    WITH_LOCK (&fault->lock)
        on = fault->fails_over;
    return on || engine_fails_over(fault->inner);
}

static bool fault_has_lost(const struct engine *engine)
{
    return engine_has_lost(fault_of(engine)->inner);
}

static bool fault_loss_accept(struct engine *engine, struct error *err)
{
    return engine_loss_accept(fault_of(engine)->inner, err);
}

/* On a way of its own: interrupted or not. */
static bool fault_ping(struct engine *engine, int64_t ms_max, struct error *err)
{
    struct fault_engine *fault = fault_of(engine);
    int64_t deadline_ms = clock_monotonic_ms() + ms_max;
    bool alive = false;

    WITH_LOCK (&fault->lock) {
        fault->pings++;
        while (fault->hangs && condition_wait_until(&fault->changed, &fault->lock, deadline_ms))
            ;
        alive = !fault->hangs && !fault->unplugged;
    }
    if (!alive)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "the store gives no sign of life");
    return engine_ping(fault->inner, ms_max, err);
}

static bool read_pass(struct engine *engine, struct error *err)
{
    enum fault_outcome outcome;

    return call_pass(engine, FAULT_READS, &outcome, err);
}

static bool fault_cluster_join(struct engine *engine, struct slice id, struct error *err)
{
    return engine_cluster_join(fault_of(engine)->inner, id, err);
}

static bool fault_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                             struct error *err)
{
    return engine_cluster_id(fault_of(engine)->inner, arena, ret_id, err);
}

/* A call that changes the store: when it is to fail, it is done all the same if the outcome says
 * so. */
#define FAULTY_CHANGE(call)                                                                        \
    do {                                                                                           \
        enum fault_outcome outcome;                                                                \
        struct error planned;                                                                      \
        if (call_pass(engine, FAULT_WRITES, &outcome, &planned))                                   \
            return (call);                                                                         \
        if (outcome == FAULT_WRITTEN && !(call))                                                   \
            return false;                                                                          \
        *err = planned;                                                                            \
        return false;                                                                              \
    } while (0)

static bool fault_partition_create(struct engine *engine, uint32_t id, uint64_t epoch,
                                   struct error *err)
{
    FAULTY_CHANGE(engine_partition_create(fault_of(engine)->inner, id, epoch, err));
}

static bool fault_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch,
                                  struct error *err)
{
    FAULTY_CHANGE(engine_partition_fence(fault_of(engine)->inner, id, epoch, err));
}

static bool fault_partition_drop(struct engine *engine, uint32_t id, struct error *err)
{
    FAULTY_CHANGE(engine_partition_drop(fault_of(engine)->inner, id, err));
}

static bool fault_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                             struct engine_range range, struct error *err)
{
    FAULTY_CHANGE(engine_range_drop(fault_of(engine)->inner, partition, epoch, range, err));
}

static bool fault_partition_list(struct engine *engine, struct arena *arena,
                                 struct engine_partition **ret_partitions, size_t *ret_count,
                                 struct error *err)
{
    return read_pass(engine, err) &&
           engine_partition_list(fault_of(engine)->inner, arena, ret_partitions, ret_count, err);
}

static bool fault_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                               struct error *err)
{
    struct engine_snapshot *inner;
    struct fault_snapshot *snapshot;

    if (!read_pass(engine, err) || !engine_snapshot_new(fault_of(engine)->inner, &inner, err))
        return false;
    snapshot = MEMORY_NEW(struct fault_snapshot);
    snapshot->snapshot.engine = engine;
    snapshot->inner = inner;
    *ret_snapshot = &snapshot->snapshot;
    return true;
}

static void fault_snapshot_free(struct engine_snapshot *snapshot)
{
    engine_snapshot_free(snapshot_inner(snapshot));
    memory_free(CONTAINER_OF(snapshot, struct fault_snapshot, snapshot));
}

static bool fault_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                      struct slice key, enum engine_reach reach, struct arena *arena,
                      struct engine_value *ret_value, struct error *err)
{
    return read_pass(engine, err) && engine_get(fault_of(engine)->inner, snapshot_inner(snapshot),
                                                partition, key, reach, arena, ret_value, err);
}

void fault_engine_show(struct engine *engine, const struct engine_proof *proof)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock)
        fault->proof = *proof;
}

/* Two gets are of one moment where nobody writes between them. */
static bool fault_prove(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                        struct slice meta, struct slice key, struct arena *arena,
                        struct engine_proof *ret_proof, struct engine_value *ret_value,
                        struct error *err)
{
    struct fault_engine *fault = fault_of(engine);
    struct engine_value value;

    if (!fault_get(engine, snapshot, partition, meta, ENGINE_READ_ANY, arena, &value, err))
        return false;
    WITH_LOCK (&fault->lock)
        *ret_proof = fault->proof;
    ret_proof->meta = value.bytes;
    *ret_value = (struct engine_value){.found = ENGINE_ABSENT};
    return !key.len || engine_get(fault->inner, snapshot_inner(snapshot), partition, key,
                                  ENGINE_READ_ANY, arena, ret_value, err);
}

static bool fault_multi_get(struct engine *engine, struct engine_snapshot *snapshot,
                            uint32_t partition, const struct slice *keys, size_t count,
                            enum engine_reach reach, struct arena *arena,
                            struct engine_value *ret_values, struct error *err)
{
    return read_pass(engine, err) &&
           engine_multi_get(fault_of(engine)->inner, snapshot_inner(snapshot), partition, keys,
                            count, reach, arena, ret_values, err);
}

static bool fault_iterator_new(struct engine *engine, struct engine_snapshot *snapshot,
                               uint32_t partition, struct engine_range range, bool backwards,
                               enum engine_reach reach, struct engine_iterator **ret_iterator,
                               struct error *err)
{
    struct engine_iterator *inner;
    struct fault_iterator *iterator;

    if (!read_pass(engine, err) ||
        !engine_iterator_new(fault_of(engine)->inner, snapshot_inner(snapshot), partition, range,
                             backwards, reach, &inner, err))
        return false;
    iterator = MEMORY_NEW(struct fault_iterator);
    iterator->iterator.engine = engine;
    iterator->inner = inner;
    *ret_iterator = &iterator->iterator;
    return true;
}

static struct engine_iterator *iterator_inner(struct engine_iterator *iterator)
{
    return CONTAINER_OF(iterator, struct fault_iterator, iterator)->inner;
}

static void fault_iterator_free(struct engine_iterator *iterator)
{
    engine_iterator_free(iterator_inner(iterator));
    memory_free(CONTAINER_OF(iterator, struct fault_iterator, iterator));
}

static bool fault_iterator_next(struct engine_iterator *iterator, struct engine_entry *ret_entry,
                                struct error *err)
{
    return read_pass(iterator->engine, err) &&
           engine_iterator_next(iterator_inner(iterator), ret_entry, err);
}

static bool fault_iterator_seek(struct engine_iterator *iterator, struct slice key,
                                struct error *err)
{
    return engine_iterator_seek(iterator_inner(iterator), key, err);
}

static bool fault_write(struct engine *engine, struct engine_section *sections, size_t count,
                        struct error *err)
{
    struct engine *inner = fault_of(engine)->inner;
    enum fault_outcome outcome;
    struct error planned;

    if (call_pass(engine, FAULT_WRITES, &outcome, &planned))
        return engine_write(inner, sections, count, err);
    if (outcome == FAULT_WRITTEN && !engine_write(inner, sections, count, err))
        return false;
    if (outcome == FAULT_TORN) {
        struct engine_section half = sections[0];

        half.count = (half.count + 1) / 2;
        if (!engine_write(inner, &half, 1, err))
            return false;
    }
    *err = planned;
    return false;
}

static bool fault_can_load(const struct engine *engine)
{
    return engine_can_load(fault_of((struct engine *)engine)->inner);
}

/* Torn: one section is there, the next is not. */
static bool fault_load(struct engine *engine, struct engine_section *sections, size_t count,
                       struct error *err)
{
    struct engine *inner = fault_of(engine)->inner;
    enum fault_outcome outcome;
    struct error planned;

    if (call_pass(engine, FAULT_WRITES, &outcome, &planned))
        return engine_load(inner, sections, count, err);
    if (outcome != FAULT_NOT_WRITTEN &&
        !engine_load(inner, sections, outcome == FAULT_TORN ? (count + 1) / 2 : count, err))
        return false;
    *err = planned;
    return false;
}

static bool fault_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                             uint64_t *ret_bytes, struct error *err)
{
    return engine_range_size(fault_of(engine)->inner, partition, range, ret_bytes, err);
}

static bool fault_backup(struct engine *engine, struct slice directory, struct error *err)
{
    return engine_backup(fault_of(engine)->inner, directory, err);
}

static bool fault_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                             struct error *err)
{
    struct fault_engine *fault = fault_of(engine);

    WITH_LOCK (&fault->lock) {
        if (fault->unplugged || fault->interrupted)
            return error_set(err, ERROR_STORE_UNAVAILABLE, "the store cannot be reached");
    }
    if (!engine_statistics(fault->inner, ret_statistics, err))
        return false;
    WITH_LOCK (&fault->lock)
        ret_statistics->poisoned |= fault->poisoned || fault->dark;
    return true;
}

static const struct engine_driver fault_driver = {
    .scheme = "fault",
    .close = fault_close,
    .cluster_join = fault_cluster_join,
    .cluster_id = fault_cluster_id,
    .partition_create = fault_partition_create,
    .partition_fence = fault_partition_fence,
    .partition_drop = fault_partition_drop,
    .partition_list = fault_partition_list,
    .snapshot_new = fault_snapshot_new,
    .snapshot_free = fault_snapshot_free,
    .get = fault_get,
    .multi_get = fault_multi_get,
    .iterator_new = fault_iterator_new,
    .iterator_free = fault_iterator_free,
    .iterator_next = fault_iterator_next,
    .iterator_seek = fault_iterator_seek,
    .write = fault_write,
    .load = fault_load,
    .can_load = fault_can_load,
    .range_drop = fault_range_drop,
    .range_size = fault_range_size,
    .backup = fault_backup,
    .statistics = fault_statistics,
    .ping = fault_ping,
    .interrupt = fault_interrupt,
    .fails_over = fault_fails_over,
    .has_lost = fault_has_lost,
    .loss_accept = fault_loss_accept,
    .prove = fault_prove,
};
