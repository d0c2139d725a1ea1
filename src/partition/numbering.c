/* Where the numbering of each open partition stands, and how it is remembered: under the key 'm'
 * (format 1, 33 bytes), written with every group that touches the partition:
 *
 *     1 byte   format, 1
 *     8 bytes  lsn, big-endian
 *     8 bytes  wall clock of the last commit in ms, big-endian
 *     8 bytes  source of item numbers, big-endian (the partition's id)
 *     8 bytes  next counter of item numbers, big-endian */
#include "base/bytes.h"
#include "partition/commit_private.h"
#include "partition/layout.h"

enum { META_FORMAT = 1 };

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

struct partition *commit_partition_find(const struct commit *commit, uint32_t id)
{
    size_t place = partition_place(commit, id);

    if (place == commit->partition_count || commit->partitions[place]->id != id)
        return NULL;
    return commit->partitions[place];
}

void commit_meta_encode(struct partition *partition)
{
    const struct commit_numbers *now = &partition->now;

    partition->meta[0] = META_FORMAT;
    bytes_put_be64(partition->meta + 1, now->lsn);
    bytes_put_be64(partition->meta + 9, (uint64_t)now->wall_ms);
    bytes_put_be64(partition->meta + 17, now->source);
    bytes_put_be64(partition->meta + 25, now->counter);
}

static bool meta_decode(struct slice bytes, struct commit_numbers *ret_numbering, struct error *err)
{
    if (bytes.len != COMMIT_META_LEN || bytes.data[0] != META_FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "the numbering of a partition is damaged");
    *ret_numbering = (struct commit_numbers){
        .lsn = bytes_get_be64(bytes.data + 1),
        .wall_ms = (int64_t)bytes_get_be64(bytes.data + 9),
        .source = bytes_get_be64(bytes.data + 17),
        .counter = bytes_get_be64(bytes.data + 25),
    };
    if (ret_numbering->source >> PARTITION_NUMBER_SOURCE_BITS ||
        ret_numbering->counter >> PARTITION_NUMBER_COUNTER_BITS)
        return error_set(err, ERROR_STORE_CORRUPT, "the numbering of a partition is damaged");
    return true;
}

struct slice commit_meta_key(void)
{
    static const uint8_t key[] = {PARTITION_FAMILY_META};

    return slice_of(key, sizeof key);
}

bool commit_meta_lsn(struct slice stored, uint64_t *ret_lsn)
{
    struct commit_numbers numbers = {0};
    struct error ignored;

    if (!meta_decode(stored, &numbers, &ignored))
        return false;
    *ret_lsn = numbers.lsn;
    return true;
}

static bool meta_read(struct commit *commit, uint32_t id, struct commit_numbers *ret_numbering,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    if (!engine_get(commit->engine, NULL, id, commit_meta_key(), ENGINE_READ_ANY, arena, &value,
                    err))
        return false;
    if (value.found == ENGINE_ABSENT) {
        *ret_numbering = (struct commit_numbers){.source = id};
        return true;
    }
    return meta_decode(value.bytes, ret_numbering, err);
}

static struct partition *partition_insert(struct commit *commit, uint32_t id)
{
    size_t place = partition_place(commit, id);
    struct partition *partition = MEMORY_NEW(struct partition);

    assert(mutex_is_held(&commit->partitions_lock) && mutex_is_held(&commit->durable_lock));
    assert(place == commit->partition_count || commit->partitions[place]->id > id);
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

    assert(mutex_is_held(&commit->partitions_lock));
    while ((partition = commit_partition_find(commit, id)) != NULL && partition->in_group) {
        partition->closing = true;
        condition_wait(&commit->group_left, &commit->partitions_lock);
    }
    return partition;
}

static bool partition_open_locked(struct commit *commit, uint32_t id, uint64_t epoch,
                                  struct error *err)
{
    struct partition *partition = partition_quiet(commit, id);
    struct commit_numbers numbering;

    if (partition && epoch < partition->epoch) {
        partition->closing = false;
        return error_set(err, ERROR_FENCED, "partition %u is at epoch %llu, not %llu", id,
                         (unsigned long long)partition->epoch, (unsigned long long)epoch);
    }
    if (!meta_read(commit, id, &numbering, err))
        return false;
    WITH_LOCK (&commit->durable_lock) {
        if (!partition)
            partition = partition_insert(commit, id);
        partition->epoch = epoch;
        partition->closing = false;
        partition->unpledged_until_ms = 0;
        partition->durable = partition->now = numbering;
    }
    counters_forget(commit->counters, id);
    return true;
}

bool commit_partition_open(struct commit *commit, uint32_t id, uint64_t epoch, struct error *err)
{
    bool opened = false;

    assert(id > 0 && id < 1u << PARTITION_NUMBER_SOURCE_BITS && epoch > 0);
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
            WITH_LOCK (&commit->durable_lock) {
                commit->partition_count--;
                memmove(&commit->partitions[place], &commit->partitions[place + 1],
                        (commit->partition_count - place) * sizeof *commit->partitions);
            }
            memory_free(partition);
            counters_forget(commit->counters, id);
        }
    }
}

bool commit_partition_is_open(struct commit *commit, uint32_t id, uint64_t epoch)
{
    const struct partition *partition;

    WITH_LOCK (&commit->durable_lock) {
        partition = commit_partition_find(commit, id);
        if (partition && partition->epoch < epoch)
            partition = NULL;
    }
    return partition != NULL;
}

static bool not_open(struct error *err, uint32_t id)
{
    return error_set(err, ERROR_PARTITION_UNKNOWN, "partition %u is not open", id);
}

bool commit_partition_lsn(struct commit *commit, uint32_t id, uint64_t *ret_lsn, struct error *err)
{
    struct partition *partition;
    uint64_t lsn = 0;

    WITH_LOCK (&commit->durable_lock) {
        partition = commit_partition_find(commit, id);
        if (partition)
            lsn = partition->durable.lsn;
    }
    if (!partition)
        return not_open(err, id);
    *ret_lsn = lsn;
    return true;
}

uint64_t commit_partition_oldest(struct commit *commit, uint32_t id)
{
    const struct partition *partition;
    uint64_t oldest = 0;

    WITH_LOCK (&commit->durable_lock) {
        partition = commit_partition_find(commit, id);
        if (partition)
            oldest = partition->oldest;
    }
    return oldest;
}

void commit_partition_note_oldest(struct commit *commit, uint32_t id, uint64_t number)
{
    WITH_LOCK (&commit->durable_lock) {
        struct partition *partition = commit_partition_find(commit, id);

        if (partition)
            partition->oldest = MAX(partition->oldest, number);
    }
}

bool commit_partition_numbering(struct commit *commit, uint32_t id,
                                struct commit_numbering *ret_numbering, struct error *err)
{
    const struct partition *partition;
    struct commit_numbering numbering = {0};

    WITH_LOCK (&commit->durable_lock) {
        partition = commit_partition_find(commit, id);
        if (partition)
            numbering = (struct commit_numbering){.lsn = partition->durable.lsn,
                                                  .wall_ms = partition->durable.wall_ms};
    }
    if (!partition)
        return not_open(err, id);
    *ret_numbering = numbering;
    return true;
}

/* Until the group that the partition is in by now has left; NULL: it is no longer open. Under
 * partitions_lock, which it lets go of. */
static struct partition *group_pass(struct commit *commit, struct partition *partition, uint32_t id)
{
    uint64_t left = commit->groups_left;

    while (partition && partition->in_group && commit->groups_left == left) {
        condition_wait(&commit->group_left, &commit->partitions_lock);
        partition = commit_partition_find(commit, id);
    }
    return partition;
}

/* Turns nobody away: only the group in flight is waited for, the next one is in the journal. */
bool commit_partition_tap(struct commit *commit, uint32_t id, bool on, struct error *err)
{
    struct partition *partition;

    WITH_LOCK (&commit->partitions_lock) {
        partition = commit_partition_find(commit, id);
        if (partition)
            partition->tapped = on;
        partition = group_pass(commit, partition, id);
    }
    return partition || not_open(err, id);
}

bool commit_partition_require(struct commit *commit, uint32_t id, uint32_t writers,
                              struct error *err)
{
    struct partition *partition;

    WITH_LOCK (&commit->partitions_lock) {
        partition = commit_partition_find(commit, id);
        if (partition)
            partition->writers = writers;
        partition = group_pass(commit, partition, id);
    }
    return partition || not_open(err, id);
}

bool commit_partition_hold(struct commit *commit, uint32_t id, int64_t ms, struct error *err)
{
    struct partition *partition;

    assert(ms >= 0);
    WITH_LOCK (&commit->partitions_lock) {
        partition = commit_partition_find(commit, id);
        if (partition) {
            partition->held_until_ms =
                ms ? clock_read_monotonic_ms(commit->clock) + MIN(ms, (int64_t)COMMIT_HOLD_MS_MAX)
                   : 0;
            commit->hold_until_ms = MAX(commit->hold_until_ms, partition->held_until_ms);
        }
    }
    if (!partition)
        return not_open(err, id);
    if (!ms)
        WITH_LOCK (&commit->sleep_lock)
            condition_signal(&commit->wake);
    return true;
}

bool commit_partitions_reload(struct commit *commit, struct error *err)
{
    assert(mutex_is_held(&commit->partitions_lock) && !commit->in_group);
    for (size_t i = 0; i < commit->partition_count; i++) {
        struct partition *partition = commit->partitions[i];
        struct commit_numbers numbering;

        if (!meta_read(commit, partition->id, &numbering, err))
            return false;
        WITH_LOCK (&commit->durable_lock)
            partition->durable = partition->now = numbering;
        counters_forget(commit->counters, partition->id);
    }
    return true;
}

/* The era is above whatever was given out and lost, since a partition numbers some 10^12 commits in
 * one. An item takes one number of the counter at most for each commit that was lost. */
bool commit_partition_renumber(struct engine *engine, uint32_t id, uint64_t epoch,
                               struct error *err)
{
    enum { COUNTER_STEP = 1 << 20 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct commit_numbers numbers = {.source = id};
    struct partition partition = {0};
    struct engine_value value;
    struct engine_op op = {.kind = ENGINE_PUT, .key = commit_meta_key()};
    struct engine_section section = {.partition = id, .epoch = epoch, .ops = &op, .count = 1};

    if (!engine_get(engine, NULL, id, commit_meta_key(), ENGINE_READ_ANY, arena, &value, err) ||
        (value.found == ENGINE_FOUND && !meta_decode(value.bytes, &numbers, err)))
        return false;
    numbers.lsn = partition_lsn_in(partition_lsn_era(numbers.lsn) + 1, numbers.lsn);
    numbers.counter += COUNTER_STEP;
    partition.now = numbers;
    commit_meta_encode(&partition);
    op.value = slice_of(partition.meta, COMMIT_META_LEN);
    return engine_write(engine, &section, 1, err);
}
