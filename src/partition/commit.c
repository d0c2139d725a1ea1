/* The queue and the committer's thread. Clients push onto a list without a lock; the committer
 * takes the whole list when it has finished a group, so that the next one fills while the engine
 * syncs.
 *
 * A second thread that prepares the next group meanwhile was weighed and left out: admitting and
 * assembling are a twentieth of the engine's own processor time for a group, and at one client the
 * hand-over would cost more. */
#include "partition/commit_private.h"

enum {
    QUEUE_MAX_DEFAULT = 65536,
    GROUP_BYTES_DEFAULT = 8 * 1024 * 1024,
    RECENT_KEYS_DEFAULT = 65536,
    RECENT_BYTES_PER_KEY = 128,
    COUNTERS_DEFAULT = 65536,
    HELD_POLL_MS = 2,       /* while batches are held */
    POISONED_POLL_MS = 250, /* while the outcome of a write is not known */
};

static void committer_main(void *context);

struct commit *commit_new(const struct commit_options *options)
{
    struct commit *commit = MEMORY_NEW(struct commit);
    size_t keys = options->recent_keys_max ? options->recent_keys_max : RECENT_KEYS_DEFAULT;

    commit->engine = options->engine;
    commit->clock = options->clock ? options->clock : &clock_system;
    commit->log = options->log;
    commit->bell = options->bell;
    commit->times = options->times;
    if (commit->times)
        commit->member = commit_clock_join(commit->times);
    commit->queue_max = options->queue_max ? options->queue_max : QUEUE_MAX_DEFAULT;
    commit->group_bytes_max =
        options->group_bytes_max ? options->group_bytes_max : GROUP_BYTES_DEFAULT;
    commit->validation_off = options->validation_off;
    commit->recent = recent_new(keys, MAX(keys * RECENT_BYTES_PER_KEY, (size_t)4 * ENGINE_KEY_MAX));
    commit->counters = counters_new(options->engine, options->counters_max ? options->counters_max
                                                                           : COUNTERS_DEFAULT);
    pledges_init(&commit->pledges);
    commit->arena = arena_new();
    commit->held_end = &commit->held;
    mutex_init(&commit->sleep_lock);
    condition_init(&commit->wake);
    mutex_init(&commit->partitions_lock);
    mutex_init(&commit->durable_lock);
    condition_init(&commit->group_left);
    mutex_init(&commit->still_lock);
    condition_init(&commit->still_changed);
    thread_start(&commit->thread, "commit", committer_main, commit);
    return commit;
}

void commit_free(struct commit *commit)
{
    if (!commit)
        return;
    WITH_LOCK (&commit->sleep_lock) {
        atomic_store(&commit->stopping, true);
        condition_signal(&commit->wake);
    }
    thread_join(&commit->thread);
    assert(!atomic_load(&commit->queue) && !commit->held && !commit->in_group);
    for (size_t i = 0; i < commit->partition_count; i++)
        memory_free(commit->partitions[i]);
    memory_free(commit->partitions);
    memory_free(commit->placed);
    recent_free(commit->recent);
    counters_free(commit->counters);
    pledges_done(&commit->pledges);
    arena_free(commit->arena);
    if (commit->times)
        commit_clock_leave(commit->times, commit->member);
    condition_done(&commit->still_changed);
    mutex_done(&commit->still_lock);
    condition_done(&commit->group_left);
    mutex_done(&commit->durable_lock);
    mutex_done(&commit->partitions_lock);
    condition_done(&commit->wake);
    mutex_done(&commit->sleep_lock);
    memory_free(commit);
}

/* --- The queue ------------------------------------------------------------------------------- */

/* Refused here, one by one, because a group is written as a whole. */
static bool batch_is_sane(const struct commit_batch *batch, struct error *err)
{
    assert(batch->part_count > 0 && batch->done);
    for (size_t p = 0; p < batch->part_count; p++) {
        assert(batch->parts[p].partition > 0 && batch->parts[p].epoch > 0);
        assert(p == 0 || batch->parts[p].partition != batch->parts[p - 1].partition);
        for (size_t i = 0; i < batch->parts[p].op_count; i++) {
            const struct engine_op *op = &batch->parts[p].ops[i];

            if (op->key.len > ENGINE_KEY_MAX || op->value.len > ENGINE_VALUE_MAX)
                return error_set(err, ERROR_TOO_LARGE,
                                 "a key of %zu or a value of %zu bytes is over the limit",
                                 op->key.len, op->value.len);
        }
    }
    return true;
}

bool commit_submit(struct commit *commit, struct commit_batch *batch, struct error *err)
{
    struct commit_batch *head;

    if (!batch_is_sane(batch, err))
        return false;
    if (atomic_fetch_add(&commit->queued, 1) >= commit->queue_max) {
        atomic_fetch_sub(&commit->queued, 1);
        return error_set(err, ERROR_BUSY, "%zu writes are waiting already", commit->queue_max);
    }
    head = atomic_load_explicit(&commit->queue, memory_order_relaxed);
    do
        batch->next = head;
    while (!atomic_compare_exchange_weak_explicit(&commit->queue, &head, batch,
                                                  memory_order_release, memory_order_relaxed));
    /* Only who finds the queue empty can find the committer asleep. The lock was held after the
     * push, so it is not between looking and sleeping; signalled while it is held, the committer
     * would wake up to wait for it. */
    if (!head) {
        mutex_lock(&commit->sleep_lock);
        mutex_unlock(&commit->sleep_lock);
        condition_signal(&commit->wake);
    }
    return true;
}

/* False: it is time to look at what is held, or whether the engine knows by now. Under sleep_lock.
 */
static bool queue_wait(struct commit *commit)
{
    assert(mutex_is_held(&commit->sleep_lock));
    if (commit->held || atomic_load(&commit->poisoned))
        return condition_wait_until(&commit->wake, &commit->sleep_lock,
                                    clock_monotonic_ms() +
                                        (commit->held ? HELD_POLL_MS : POISONED_POLL_MS));
    condition_wait(&commit->wake, &commit->sleep_lock);
    return true;
}

/* What was held comes before what is new. */
static struct commit_batch *held_take(struct commit *commit, struct commit_batch *queue)
{
    struct commit_batch *held = commit->held;

    if (!held)
        return queue;
    *commit->held_end = queue;
    commit->held = NULL;
    commit->held_end = &commit->held;
    return held;
}

/* The whole queue, oldest first. Waits while there is none; NULL when stopping, and now and then
 * while the outcome of a write is not known. */
static struct commit_batch *queue_take(struct commit *commit)
{
    struct commit_batch *newest, *oldest = NULL;

    newest = atomic_exchange_explicit(&commit->queue, NULL, memory_order_acquire);
    if (!newest)
        WITH_LOCK (&commit->sleep_lock) {
            while (
                !(newest = atomic_exchange_explicit(&commit->queue, NULL, memory_order_acquire)) &&
                !atomic_load(&commit->stopping) && queue_wait(commit))
                ;
        }
    while (newest) {
        struct commit_batch *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return held_take(commit, oldest);
}

struct waiter {
    struct mutex lock;
    struct condition wake;
    bool finished, failed;
    struct error err;
};

/* commit_run hides its waiter behind the batch. */
struct waiting_batch {
    struct commit_batch batch;
    struct commit_batch *original;
    struct waiter waiter;
};

static void waiting_stamp(struct commit_batch *batch)
{
    struct waiting_batch *waiting = CONTAINER_OF(batch, struct waiting_batch, batch);

    if (waiting->original->stamp)
        waiting->original->stamp(waiting->original);
}

static void waiting_done(struct commit_batch *batch, const struct error *err)
{
    struct waiter *waiter = &CONTAINER_OF(batch, struct waiting_batch, batch)->waiter;

    mutex_lock(&waiter->lock);
    assert(!waiter->finished); /* done is called once */
    waiter->failed = err != NULL;
    if (err)
        waiter->err = *err;
    waiter->finished = true;
    condition_signal(&waiter->wake);
    mutex_unlock(&waiter->lock);
}

bool commit_run(struct commit *commit, struct commit_batch *batch, struct error *err)
{
    struct waiting_batch waiting = {.batch = *batch, .original = batch};
    struct waiter *waiter = &waiting.waiter;
    bool submitted;

    waiting.batch.stamp = waiting_stamp;
    waiting.batch.done = waiting_done;
    mutex_init(&waiter->lock);
    condition_init(&waiter->wake);
    submitted = commit_submit(commit, &waiting.batch, err);
    if (submitted) {
        mutex_lock(&waiter->lock);
        while (!waiter->finished)
            condition_wait(&waiter->wake, &waiter->lock);
        mutex_unlock(&waiter->lock);
        batch->sequence = waiting.batch.sequence;
        if (waiter->failed)
            *err = waiter->err;
    }
    condition_done(&waiter->wake);
    mutex_done(&waiter->lock);
    return submitted && !waiter->failed;
}

static void committer_main(void *context)
{
    struct commit *commit = context;
    struct commit_batch *queue;

    for (;;) {
        queue = queue_take(commit);
        if (!queue && atomic_load(&commit->stopping))
            return;
        if (!queue)
            commit_recover(commit);
        while (queue)
            commit_group_run(commit, &queue);
    }
}

/* --- Looking from outside -------------------------------------------------------------------- */

struct commit_clock *commit_times(const struct commit *commit)
{
    return commit->times;
}

struct pledges *commit_pledges(struct commit *commit)
{
    return &commit->pledges;
}

uint64_t commit_moment(const struct commit *commit)
{
    return atomic_load_explicit(&commit->moment, memory_order_acquire);
}

struct commit_statistics commit_statistics(const struct commit *commit)
{
    return (struct commit_statistics){
        .batches = atomic_load(&commit->batches),
        .groups = atomic_load(&commit->groups),
        .conflicts = atomic_load(&commit->conflicts),
        .too_old = atomic_load(&commit->too_old),
        .queued = atomic_load(&commit->queued),
        .poisoned = atomic_load(&commit->poisoned),
    };
}
