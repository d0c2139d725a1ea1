/* How a group is made:
 *
 *     take      the whole queue at once, oldest first, up to group_bytes_max
 *     admit     each batch: partition open at its epoch? anything it relied on written since? a
 *               counter over its limit? What passes is noted as written, so that later batches of
 *               the same group are judged against it too
 *     assemble  stamp, collect the operations of all batches, add counters and meta, sort
 *     write     one engine batch; on ERROR_FENCED the shut-out batches leave and the rest is
 *               assembled again
 *     finish    publish the moment, then call done()
 *
 * While the engine syncs, the next group fills the queue by itself. A second thread that prepares
 * the next group meanwhile was weighed and left out: admitting and assembling are a twentieth of
 * the engine's own processor time for a group, and at one client the hand-over would cost more.
 *
 * What is remembered per partition, under the key 'm' (format 1, 33 bytes):
 *
 *     1 byte   format, 1
 *     8 bytes  lsn, big-endian
 *     8 bytes  wall clock of the last commit in ms, big-endian
 *     8 bytes  source of item numbers, big-endian (the partition's id)
 *     8 bytes  next counter of item numbers, big-endian
 *
 * A failed engine write whose outcome is unknown poisons the committer: everything queued and
 * everything later is refused until the node is opened again. */
#include "partition/commit.h"

#include "base/bytes.h"
#include "base/thread.h"
#include "partition/layout.h"
#include "partition/recent.h"

#include <stdatomic.h>

enum {
    QUEUE_MAX_DEFAULT = 65536,
    GROUP_BYTES_DEFAULT = 8 * 1024 * 1024,
    RECENT_KEYS_DEFAULT = 65536,
    RECENT_BYTES_PER_KEY = 128,
    COUNTERS_DEFAULT = 65536,
    META_FORMAT = 1,
    META_LEN = 33,
};

/* Item numbers end a little early, because batches of one group are counted only when stamped. */
#define NUMBER_COUNTER_MAX ((UINT64_C(1) << PARTITION_NUMBER_COUNTER_BITS) - (1 << 28))

/* Where the numbering of a partition stands. */
struct numbering {
    uint64_t lsn;
    int64_t wall_ms;
    uint64_t source, counter;
};

struct partition {
    uint32_t id;
    uint64_t epoch;
    struct numbering durable;
    struct numbering now; /* including the group being made */
    bool in_group;
    bool closing; /* open or close waits: no more batches */
    uint8_t meta[META_LEN];
    struct partition *next_in_group;
};

/* One operation on its way into the engine: sorted by partition, key, and age of its batch. */
struct placed_op {
    uint64_t key_head; /* the first 8 bytes of the key, so that most comparisons are one */
    uint32_t partition;
    uint32_t age;
    const struct engine_op *op;
};

struct commit {
    struct engine *engine;
    const struct clock *clock;
    struct log *log;
    size_t queue_max, group_bytes_max;
    bool validation_off;

    /* The queue: pushed by any thread, newest first; taken whole by the committer. */
    _Atomic(struct commit_batch *) queue;
    atomic_size_t queued;
    struct mutex sleep_lock;
    struct condition wake;
    atomic_bool stopping;
    struct thread thread;

    /* Held while a group is admitted and assembled, not while it is written. */
    struct mutex partitions_lock;
    struct condition group_left;   /* the partitions of a group are free again */
    struct partition **partitions; /* under partitions_lock; sorted by id */
    size_t partition_count, partition_capacity;

    /* The committer's own; counters also under partitions_lock, for open and close. */
    struct recent *recent;
    struct counters *counters;
    uint64_t sequence;
    struct arena *arena;      /* of the group being made */
    struct placed_op *placed; /* reused from group to group */
    size_t placed_capacity;
    struct partition *in_group;

    atomic_uint_fast64_t moment;
    atomic_bool poisoned;
    atomic_uint_fast64_t batches, groups, conflicts, too_old;
};

static void committer_main(void *context);

struct commit *commit_new(const struct commit_options *options)
{
    struct commit *commit = MEMORY_NEW(struct commit);
    size_t keys = options->recent_keys_max ? options->recent_keys_max : RECENT_KEYS_DEFAULT;

    commit->engine = options->engine;
    commit->clock = options->clock ? options->clock : &clock_system;
    commit->log = options->log;
    commit->queue_max = options->queue_max ? options->queue_max : QUEUE_MAX_DEFAULT;
    commit->group_bytes_max =
        options->group_bytes_max ? options->group_bytes_max : GROUP_BYTES_DEFAULT;
    commit->validation_off = options->validation_off;
    commit->recent = recent_new(keys, MAX(keys * RECENT_BYTES_PER_KEY, (size_t)4 * ENGINE_KEY_MAX));
    commit->counters = counters_new(options->engine, options->counters_max ? options->counters_max
                                                                           : COUNTERS_DEFAULT);
    commit->arena = arena_new();
    mutex_init(&commit->sleep_lock);
    condition_init(&commit->wake);
    mutex_init(&commit->partitions_lock);
    condition_init(&commit->group_left);
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
    for (size_t i = 0; i < commit->partition_count; i++)
        memory_free(commit->partitions[i]);
    memory_free(commit->partitions);
    memory_free(commit->placed);
    recent_free(commit->recent);
    counters_free(commit->counters);
    arena_free(commit->arena);
    condition_done(&commit->group_left);
    mutex_done(&commit->partitions_lock);
    condition_done(&commit->wake);
    mutex_done(&commit->sleep_lock);
    memory_free(commit);
}

/* --- The queue ------------------------------------------------------------------------------- */

/* Refused here, one by one, because a group is written as a whole. */
static bool batch_is_sane(const struct commit_batch *batch, struct error *err)
{
    assert(batch->part_count > 0);
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].op_count; i++) {
            const struct engine_op *op = &batch->parts[p].ops[i];

            if (op->key.len > ENGINE_KEY_MAX || op->value.len > ENGINE_VALUE_MAX)
                return error_set(err, ERROR_TOO_LARGE,
                                 "a key of %zu or a value of %zu bytes is over the limit",
                                 op->key.len, op->value.len);
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
    /* Only who finds the queue empty can find the committer asleep. */
    if (!head)
        WITH_LOCK (&commit->sleep_lock)
            condition_signal(&commit->wake);
    return true;
}

/* The whole queue, oldest first. Waits while there is none; NULL when stopping. */
static struct commit_batch *queue_take(struct commit *commit)
{
    struct commit_batch *newest, *oldest = NULL;

    newest = atomic_exchange_explicit(&commit->queue, NULL, memory_order_acquire);
    if (!newest)
        WITH_LOCK (&commit->sleep_lock) {
            while (
                !(newest = atomic_exchange_explicit(&commit->queue, NULL, memory_order_acquire)) &&
                !atomic_load(&commit->stopping))
                condition_wait(&commit->wake, &commit->sleep_lock);
        }
    while (newest) {
        struct commit_batch *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
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

/* --- Partitions ------------------------------------------------------------------------------ */

static size_t partition_place(const struct commit *commit, uint32_t id)
{
    size_t low = 0, high = commit->partition_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (commit->partitions[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct partition *partition_find(const struct commit *commit, uint32_t id)
{
    size_t place = partition_place(commit, id);

    if (place == commit->partition_count || commit->partitions[place]->id != id)
        return NULL;
    return commit->partitions[place];
}

static void meta_encode(struct partition *partition)
{
    const struct numbering *now = &partition->now;

    partition->meta[0] = META_FORMAT;
    bytes_put_be64(partition->meta + 1, now->lsn);
    bytes_put_be64(partition->meta + 9, (uint64_t)now->wall_ms);
    bytes_put_be64(partition->meta + 17, now->source);
    bytes_put_be64(partition->meta + 25, now->counter);
}

static bool meta_decode(struct slice bytes, struct numbering *ret_numbering, struct error *err)
{
    if (bytes.len != META_LEN || bytes.data[0] != META_FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "the numbering of a partition is damaged");
    *ret_numbering = (struct numbering){
        .lsn = bytes_get_be64(bytes.data + 1),
        .wall_ms = (int64_t)bytes_get_be64(bytes.data + 9),
        .source = bytes_get_be64(bytes.data + 17),
        .counter = bytes_get_be64(bytes.data + 25),
    };
    return true;
}

static const uint8_t meta_key_bytes[] = {PARTITION_FAMILY_META};

static bool meta_read(struct commit *commit, uint32_t id, struct numbering *ret_numbering,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    if (!engine_get(commit->engine, NULL, id, slice_of(meta_key_bytes, 1), ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    if (value.found == ENGINE_ABSENT) {
        *ret_numbering = (struct numbering){.source = id};
        return true;
    }
    return meta_decode(value.bytes, ret_numbering, err);
}

static struct partition *partition_insert(struct commit *commit, uint32_t id)
{
    size_t place = partition_place(commit, id);
    struct partition *partition = MEMORY_NEW(struct partition);

    if (commit->partition_count == commit->partition_capacity) {
        commit->partition_capacity =
            commit->partition_capacity ? commit->partition_capacity * 2 : 16;
        commit->partitions =
            memory_realloc(commit->partitions, memory_array_size(commit->partition_capacity,
                                                                 sizeof *commit->partitions));
    }
    memmove(&commit->partitions[place + 1], &commit->partitions[place],
            (commit->partition_count - place) * sizeof *commit->partitions);
    partition->id = id;
    commit->partitions[place] = partition;
    commit->partition_count++;
    return partition;
}

/* Waits until no group refers to the partition. Under partitions_lock, which it lets go of. */
static struct partition *partition_quiet(struct commit *commit, uint32_t id)
{
    struct partition *partition;

    while ((partition = partition_find(commit, id)) != NULL && partition->in_group) {
        partition->closing = true;
        condition_wait(&commit->group_left, &commit->partitions_lock);
    }
    return partition;
}

static bool partition_open_locked(struct commit *commit, uint32_t id, uint64_t epoch,
                                  struct error *err)
{
    struct partition *partition = partition_quiet(commit, id);
    struct numbering numbering;

    if (!meta_read(commit, id, &numbering, err))
        return false;
    if (!partition)
        partition = partition_insert(commit, id);
    partition->epoch = epoch;
    partition->closing = false;
    partition->durable = partition->now = numbering;
    counters_forget(commit->counters, id);
    return true;
}

bool commit_partition_open(struct commit *commit, uint32_t id, uint64_t epoch, struct error *err)
{
    bool opened = false;

    assert(id < 1u << PARTITION_NUMBER_SOURCE_BITS);
    WITH_LOCK (&commit->partitions_lock)
        opened = partition_open_locked(commit, id, epoch, err);
    return opened;
}

void commit_partition_close(struct commit *commit, uint32_t id)
{
    WITH_LOCK (&commit->partitions_lock) {
        struct partition *partition = partition_quiet(commit, id);
        size_t place = partition_place(commit, id);

        if (partition) {
            memory_free(partition);
            commit->partition_count--;
            memmove(&commit->partitions[place], &commit->partitions[place + 1],
                    (commit->partition_count - place) * sizeof *commit->partitions);
            counters_forget(commit->counters, id);
        }
    }
}

bool commit_partition_lsn(struct commit *commit, uint32_t id, uint64_t *ret_lsn, struct error *err)
{
    struct partition *partition;
    uint64_t lsn = 0;

    WITH_LOCK (&commit->partitions_lock) {
        partition = partition_find(commit, id);
        if (partition)
            lsn = partition->durable.lsn;
    }
    if (!partition)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "partition %u is not open", id);
    *ret_lsn = lsn;
    return true;
}

/* --- Admitting ------------------------------------------------------------------------------- */

static bool part_is_open(const struct commit *commit, const struct commit_part *part,
                         struct error *err)
{
    const struct partition *partition = partition_find(commit, part->partition);

    if (!partition)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "partition %u is not open here",
                         part->partition);
    if (partition->closing || partition->epoch != part->epoch)
        return error_set(err, ERROR_FENCED, "partition %u is at epoch %llu, not %llu",
                         part->partition, (unsigned long long)partition->epoch,
                         (unsigned long long)part->epoch);
    if (partition->now.counter + part->number_count > NUMBER_COUNTER_MAX)
        return error_set(err, ERROR_STORE_FULL, "partition %u has given out all its item numbers",
                         part->partition);
    return true;
}

static bool part_is_valid(struct commit *commit, const struct commit_part *part, uint64_t moment,
                          struct error *err)
{
    for (size_t i = 0; i < part->relied_count; i++)
        if (recent_has_key(commit->recent, moment, part->partition, part->relied[i]))
            return error_set(err, ERROR_CONFLICT, "another transaction wrote the same item first");
    for (size_t i = 0; i < part->scanned_count; i++)
        if (recent_has_range(commit->recent, moment, part->partition, part->scanned[i]))
            return error_set(err, ERROR_CONFLICT,
                             "another transaction wrote into a range that was read");
    return true;
}

static bool batch_is_valid(struct commit *commit, const struct commit_batch *batch,
                           struct error *err)
{
    if (batch->moment == COMMIT_NOTHING_RELIED_ON || commit->validation_off)
        return true;
    if (batch->moment < recent_floor(commit->recent)) {
        atomic_fetch_add(&commit->too_old, 1);
        return error_set(err, ERROR_SNAPSHOT_TOO_OLD,
                         "the transaction began %llu commits ago, too many to check",
                         (unsigned long long)(commit->sequence - batch->moment));
    }
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_is_valid(commit, &batch->parts[i], batch->moment, err)) {
            atomic_fetch_add(&commit->conflicts, 1);
            return false;
        }
    return true;
}

static bool part_fits(struct commit *commit, const struct commit_part *part, struct error *err)
{
    for (size_t i = 0; i < part->delta_count; i++) {
        const struct commit_delta *delta = &part->deltas[i];
        struct counter *counter;

        assert(delta->key.len && delta->key.data[0] == PARTITION_FAMILY_COUNTER);
        if (!counters_get(commit->counters, part->partition, delta->key, &counter, err))
            return false;
        if (delta->first_max && delta->amounts[0] > 0 &&
            counter->now[0] + delta->amounts[0] > delta->first_max)
            return error_set(err, ERROR_LOGICAL_PARTITION_FULL,
                             "the logical partition holds %lld bytes and %lld more would pass its "
                             "limit of %lld",
                             (long long)counter->now[0], (long long)delta->amounts[0],
                             (long long)delta->first_max);
    }
    return true;
}

/* part_fits has brought the counters into memory, where they stay until the group ends. */
static void batch_add_counters(struct commit *commit, const struct commit_batch *batch)
{
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].delta_count; i++) {
            const struct commit_delta *delta = &batch->parts[p].deltas[i];
            struct counter *counter;
            struct error err;
            bool found = counters_get(commit->counters, batch->parts[p].partition, delta->key,
                                      &counter, &err);

            assert(found);
            counters_add(commit->counters, counter, delta->amounts);
        }
}

static void batch_note(struct commit *commit, struct commit_batch *batch)
{
    batch->sequence = ++commit->sequence;
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].touched_count; i++)
            recent_add(commit->recent, batch->sequence, batch->parts[p].partition,
                       batch->parts[p].touched[i]);
}

static bool batch_admit(struct commit *commit, struct commit_batch *batch, struct error *err)
{
    if (atomic_load(&commit->poisoned))
        return error_set(err, ERROR_STORE_POISONED,
                         "a write of this node failed; it refuses writes until it is reopened");
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_is_open(commit, &batch->parts[i], err))
            return false;
    if (!batch_is_valid(commit, batch, err))
        return false;
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_fits(commit, &batch->parts[i], err))
            return false;
    batch_add_counters(commit, batch);
    batch_note(commit, batch);
    return true;
}

/* --- Assembling ------------------------------------------------------------------------------ */

static uint64_t key_head(struct slice key)
{
    uint8_t head[8] = {0};

    memcpy(head, key.data, MIN(key.len, sizeof head));
    return bytes_get_be64(head);
}

static void op_place(struct commit *commit, size_t at, uint32_t partition, uint32_t age,
                     const struct engine_op *op)
{
    if (at == commit->placed_capacity) {
        commit->placed_capacity = commit->placed_capacity ? commit->placed_capacity * 2 : 256;
        commit->placed = memory_realloc(
            commit->placed, memory_array_size(commit->placed_capacity, sizeof *commit->placed));
    }
    commit->placed[at] = (struct placed_op){
        .key_head = key_head(op->key), .partition = partition, .age = age, .op = op};
}

static int placed_compare(const void *left, const void *right)
{
    const struct placed_op *a = left, *b = right;
    int order;

    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    if (a->key_head != b->key_head)
        return a->key_head < b->key_head ? -1 : 1;
    order = slice_compare(a->op->key, b->op->key);
    if (order)
        return order;
    return (a->age > b->age) - (a->age < b->age);
}

static void part_stamp(struct commit *commit, struct commit_part *part, int64_t now_ms)
{
    struct partition *partition = partition_find(commit, part->partition);
    struct numbering *now = &partition->now;

    if (!partition->in_group) {
        partition->in_group = true;
        partition->next_in_group = commit->in_group;
        commit->in_group = partition;
    }
    now->lsn++;
    now->wall_ms = MAX(now->wall_ms, now_ms);
    part->stamp = (struct commit_stamp){
        .lsn = now->lsn,
        .first_number = partition_number((uint32_t)now->source, now->counter),
        .wall_ms = now->wall_ms,
    };
    now->counter += part->number_count;
}

static size_t batches_place(struct commit *commit, struct commit_batch *batches)
{
    int64_t now_ms = clock_read_wall_ms(commit->clock);
    uint32_t age = 0;
    size_t count = 0;

    for (struct commit_batch *batch = batches; batch; batch = batch->next, age++) {
        for (size_t p = 0; p < batch->part_count; p++)
            part_stamp(commit, &batch->parts[p], now_ms);
        if (batch->stamp)
            batch->stamp(batch);
        for (size_t p = 0; p < batch->part_count; p++)
            for (size_t i = 0; i < batch->parts[p].op_count; i++)
                op_place(commit, count++, batch->parts[p].partition, age, &batch->parts[p].ops[i]);
    }
    return count;
}

static const struct engine_op *put_new(struct commit *commit, struct slice key, const void *value,
                                       size_t len)
{
    struct engine_op *op = ARENA_NEW(commit->arena, struct engine_op);

    *op = (struct engine_op){ENGINE_PUT, key, slice_of(value, len)};
    return op;
}

/* Meta and counters of the group, once each however many batches there are. */
static size_t sums_place(struct commit *commit, size_t count)
{
    struct slice meta_key = slice_of(meta_key_bytes, sizeof meta_key_bytes);

    for (struct partition *p = commit->in_group; p; p = p->next_in_group) {
        meta_encode(p);
        op_place(commit, count++, p->id, UINT32_MAX, put_new(commit, meta_key, p->meta, META_LEN));
    }
    for (struct counter *c = counters_changed(commit->counters); c; c = c->next_changed) {
        uint8_t *bytes = arena_alloc(commit->arena, COUNTER_BYTES);

        counter_encode(c, bytes);
        op_place(commit, count++, c->partition, UINT32_MAX,
                 put_new(commit, c->key, bytes, COUNTER_BYTES));
    }
    return count;
}

/* Sorted, one operation per key (the last one), cut into sections by partition. */
static size_t sections_make(struct commit *commit, size_t placed_count,
                            struct engine_section **ret_sections)
{
    struct engine_op *ops = ARENA_ARRAY(commit->arena, struct engine_op, placed_count);
    struct engine_section *sections =
        ARENA_ARRAY(commit->arena, struct engine_section, commit->partition_count);
    size_t op_count = 0, section_count = 0;

    qsort(commit->placed, placed_count, sizeof *commit->placed, placed_compare);
    for (size_t i = 0; i < placed_count; i++) {
        const struct placed_op *placed = &commit->placed[i];
        struct engine_section *section = section_count ? &sections[section_count - 1] : NULL;

        if (!section || section->partition != placed->partition) {
            section = &sections[section_count++];
            *section = (struct engine_section){
                .partition = placed->partition,
                .epoch = partition_find(commit, placed->partition)->epoch,
                .ops = &ops[op_count],
            };
        } else if (slice_equal(section->ops[section->count - 1].key, placed->op->key)) {
            section->ops[section->count - 1] = *placed->op;
            continue;
        }
        ops[op_count++] = *placed->op;
        section->count++;
    }
    *ret_sections = sections;
    return section_count;
}

static size_t group_assemble(struct commit *commit, struct commit_batch *batches,
                             struct engine_section **ret_sections)
{
    size_t count = batches_place(commit, batches);

    return sections_make(commit, sums_place(commit, count), ret_sections);
}

/* --- One group ------------------------------------------------------------------------------- */

/* A list of batches that grows at its end. */
struct batch_list {
    struct commit_batch *first, **end;
};

static void list_init(struct batch_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_add(struct batch_list *list, struct commit_batch *batch)
{
    batch->next = NULL;
    *list->end = batch;
    list->end = &batch->next;
}

/* The partitions of the group go back to where they stood, or forward to where they are. */
static void group_leave(struct commit *commit, bool durable)
{
    while (commit->in_group) {
        struct partition *partition = commit->in_group;

        if (durable)
            partition->durable = partition->now;
        else
            partition->now = partition->durable;
        partition->in_group = false;
        commit->in_group = partition->next_in_group;
    }
    if (durable)
        counters_keep(commit->counters);
    else
        counters_undo(commit->counters);
}

static bool batch_is_fenced(const struct commit_batch *batch, const struct engine_section *sections,
                            size_t count)
{
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t s = 0; s < count; s++)
            if (sections[s].fenced && sections[s].partition == batch->parts[p].partition)
                return true;
    return false;
}

/* Takes the batches out that meet a fence; the rest starts over and adds its counters anew. */
static void fenced_remove(struct commit *commit, struct batch_list *group,
                          const struct engine_section *sections, size_t count,
                          const struct error *err, struct batch_list *refused)
{
    struct commit_batch *batch = group->first, *next;

    group_leave(commit, false);
    list_init(group);
    for (; batch; batch = next) {
        next = batch->next;
        if (batch_is_fenced(batch, sections, count)) {
            batch->err = *err;
            list_add(refused, batch);
        } else {
            batch_add_counters(commit, batch);
            list_add(group, batch);
        }
    }
}

static size_t batch_bytes(const struct commit_batch *batch)
{
    size_t bytes = 0;

    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].op_count; i++)
            bytes += batch->parts[p].ops[i].key.len + batch->parts[p].ops[i].value.len;
    return bytes;
}

/* Admits batches from the front of *queue until the group is full. */
static void group_admit(struct commit *commit, struct commit_batch **queue,
                        struct batch_list *group, struct batch_list *refused)
{
    size_t bytes = 0;

    while (*queue && bytes < commit->group_bytes_max) {
        struct commit_batch *batch = *queue;

        *queue = batch->next;
        if (batch_admit(commit, batch, &batch->err)) {
            bytes += batch_bytes(batch);
            list_add(group, batch);
        } else {
            list_add(refused, batch);
        }
    }
}

/* Comes and goes with partitions_lock held, but writes without it: the partitions of a group stay,
 * because open and close wait for in_group. */
static bool group_write(struct commit *commit, struct batch_list *group, struct batch_list *refused,
                        struct error *err)
{
    while (group->first) {
        struct engine_section *sections;
        size_t count = group_assemble(commit, group->first, &sections);
        bool written;

        mutex_unlock(&commit->partitions_lock);
        written = engine_write(commit->engine, sections, count, err);
        mutex_lock(&commit->partitions_lock);
        if (written || err->code != ERROR_FENCED)
            return written;
        fenced_remove(commit, group, sections, count, err, refused);
    }
    return true;
}

static void list_done(struct commit *commit, struct batch_list *list, bool written)
{
    struct commit_batch *batch = list->first, *next;

    for (; batch; batch = next) {
        next = batch->next;
        atomic_fetch_sub(&commit->queued, 1);
        batch->done(batch, written ? NULL : &batch->err);
    }
}

static void group_count(struct commit *commit, const struct batch_list *group)
{
    uint64_t count = 0;

    for (const struct commit_batch *batch = group->first; batch; batch = batch->next)
        count++;
    if (count)
        atomic_fetch_add(&commit->groups, 1);
    atomic_fetch_add(&commit->batches, count);
}

static void group_failed(struct commit *commit, struct batch_list *group, const struct error *err)
{
    bool nothing_written = err->code == ERROR_STORE_FULL || err->code == ERROR_STORE_UNAVAILABLE;

    for (struct commit_batch *batch = group->first; batch; batch = batch->next)
        batch->err = *err;
    if (!nothing_written && !atomic_exchange(&commit->poisoned, true))
        log_error(commit->log, "node refuses writes until it is reopened", err);
}

static void group_run(struct commit *commit, struct commit_batch **queue)
{
    struct batch_list group, refused;
    struct error err;
    bool written;

    list_init(&group);
    list_init(&refused);
    mutex_lock(&commit->partitions_lock);
    arena_reset(commit->arena);
    group_admit(commit, queue, &group, &refused);
    written = group_write(commit, &group, &refused, &err);
    group_leave(commit, written);
    condition_broadcast(&commit->group_left);
    mutex_unlock(&commit->partitions_lock);

    /* Also after a failure: what was noted as written but is not must not conflict for ever. */
    atomic_store_explicit(&commit->moment, commit->sequence, memory_order_release);
    if (written)
        group_count(commit, &group);
    else
        group_failed(commit, &group, &err);
    list_done(commit, &group, written);
    list_done(commit, &refused, false);
}

static void committer_main(void *context)
{
    struct commit *commit = context;
    struct commit_batch *queue;

    while ((queue = queue_take(commit)) != NULL)
        while (queue)
            group_run(commit, &queue);
}

/* --- Looking from outside -------------------------------------------------------------------- */

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
