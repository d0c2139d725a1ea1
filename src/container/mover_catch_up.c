/* A key of the journal is looked up as it is now, and made the same in its target. Which of several
 * commits it was noted by does not matter, so keys are sorted and each is looked up once. */
#include "container/mover_private.h"
#include "partition/layout.h"

enum { LOOK_UP_AT_ONCE = 32 };

/* --- Sums ------------------------------------------------------------------------------------ */

static void sums_add(struct mover_target *target, const int64_t *numbers, int sign)
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        target->sums[i] += sign * numbers[i];
}

/* Before the fence, so that the pause does not grow with the number of logical partitions. */
static bool target_sum(struct mover_target *target, struct error *err)
{
    static const uint8_t min[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t max[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};

    memset(target->sums, 0, sizeof target->sums);
    if (!engine_iterator_new(target->node->engine, NULL, target->span->id, range, false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        int64_t numbers[COUNTER_NUMBERS];
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!counter_decode(entry.value, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
}

/* A counter of the target is about to become another. */
static bool sums_follow(struct mover *mover, struct mover_target *target, struct slice key,
                        const struct engine_value *value, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];
    struct engine_value before;

    if (!engine_get(target->node->engine, NULL, target->span->id, key, ENGINE_READ_ANY,
                    mover->arena, &before, err))
        return false;
    if (before.found == ENGINE_FOUND) {
        if (!counter_decode(before.bytes, numbers, err))
            return false;
        sums_add(target, numbers, -1);
    }
    if (value->found == ENGINE_FOUND) {
        if (!counter_decode(value->bytes, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
    return true;
}

static bool sums_begin(struct mover *mover, struct error *err)
{
    for (size_t i = 0; !mover->summed && i < mover->target_count; i++)
        if (!target_sum(&mover->targets[i], err))
            return false;
    mover->summed = true;
    return true;
}

/* --- Catching up ----------------------------------------------------------------------------- */

/* Keys of the journal, in the arena. */
struct touched {
    struct slice *keys;
    size_t count, capacity;
};

static void touched_add(struct mover *mover, struct touched *touched, struct slice key)
{
    if (touched->count == touched->capacity) {
        size_t capacity = touched->capacity ? touched->capacity * 2 : 1024;
        struct slice *keys = ARENA_ARRAY(mover->arena, struct slice, capacity);

        if (touched->count)
            memcpy(keys, touched->keys, touched->count * sizeof *keys);
        touched->keys = keys;
        touched->capacity = capacity;
    }
    touched->keys[touched->count++] = arena_copy(mover->arena, key);
}

/* Whole entries, until there are enough; the source's position moves on. */
static bool journal_read(struct mover *mover, struct mover_source *source,
                         struct engine_snapshot *snapshot, struct touched *touched,
                         struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    if (!engine_iterator_new(source->node->engine, snapshot, source->plan.id,
                             journal_range(source->journal, mover->arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    while (touched->count < mover->round_keys) {
        struct engine_entry entry;
        struct slice key;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!journal_key_decode(entry.key, &source->journal, err))
            return false;
        while (entry.value.len) {
            if (!journal_next(&entry.value, &key, err))
                return false;
            if (!mover_is_mark(key))
                touched_add(mover, touched, key);
        }
    }
    return true;
}

static int slices_compare(const void *left, const void *right)
{
    return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

static void touched_settle(struct touched *touched)
{
    size_t kept = 0;

    if (touched->count)
        qsort(touched->keys, touched->count, sizeof *touched->keys, slices_compare);
    for (size_t i = 0; i < touched->count; i++)
        if (i == 0 || !slice_equal(touched->keys[i], touched->keys[kept - 1]))
            touched->keys[kept++] = touched->keys[i];
    touched->count = kept;
}

static bool key_apply(struct mover *mover, struct mover_target *target, struct slice key,
                      const struct engine_value *value, struct error *err)
{
    bool found = value->found == ENGINE_FOUND;

    if (key.data[0] == PARTITION_FAMILY_COUNTER && !sums_follow(mover, target, key, value, err))
        return false;
    mover_op_add(mover, target,
                 (struct engine_op){found ? ENGINE_PUT : ENGINE_DELETE, key,
                                    found ? value->bytes : SLICE_NONE});
    return true;
}

static bool key_apply_everywhere(struct mover *mover, struct slice key,
                                 const struct engine_value *value, struct error *err)
{
    for (size_t i = 0; i < mover->target_count; i++)
        if (!key_apply(mover, &mover->targets[i], key, value, err))
            return false;
    return true;
}

/* Makes the key in the targets what it is in the source. Where nothing tells whose it was, it is
 * removed everywhere: its bytes exist once in a container. */
static bool key_sync(struct mover *mover, struct slice key, const struct engine_value *value,
                     struct error *err)
{
    struct mover_entry moved = {.key = key, .value = value->bytes};
    struct engine_value rewritten = *value;
    struct mover_target *target = NULL;

    if (!(mover->to ? mover_reroute(mover, key, value, &moved, err)
                    : mover_routing(key, value, &moved.routing, err)))
        return false;
    if (value->found == ENGINE_FOUND)
        rewritten.bytes = moved.value;
    if (moved.routing.len)
        return mover_target_find(mover, moved.routing, &target, err) &&
               key_apply(mover, target, moved.key, &rewritten, err);
    return key_apply_everywhere(mover, moved.key, &rewritten, err) &&
           (!moved.other.len || key_apply_everywhere(mover, moved.other, &rewritten, err));
}

static bool keys_sync(struct mover *mover, const struct mover_source *source,
                      struct engine_snapshot *snapshot, const struct touched *touched,
                      struct error *err)
{
    struct engine_value values[LOOK_UP_AT_ONCE];
    size_t bytes = 0;

    for (size_t begin = 0, count; begin < touched->count; begin += count) {
        count = MIN((size_t)LOOK_UP_AT_ONCE, touched->count - begin);
        if (!engine_multi_get(source->node->engine, snapshot, source->plan.id,
                              &touched->keys[begin], count, ENGINE_READ_ANY, mover->values, values,
                              err))
            return false;
        for (size_t i = 0; i < count; i++) {
            if (!key_sync(mover, touched->keys[begin + i], &values[i], err))
                return false;
            bytes += values[i].found == ENGINE_FOUND ? values[i].bytes.len : 0;
        }
        if (bytes < mover->chunk_bytes)
            continue;
        if (!mover_targets_write(mover, err))
            return false;
        arena_reset(mover->values);
        mover->figures.bytes += bytes;
        bytes = 0;
    }
    mover->figures.bytes += bytes;
    return true;
}

static bool source_catch_up(struct mover *mover, struct mover_source *source, size_t *keys,
                            struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct touched touched = {0};

    mover_gather(mover);
    if (!engine_snapshot_new(source->node->engine, &snapshot, err) ||
        !journal_read(mover, source, snapshot, &touched, err))
        return false;
    if (touched.count == 0)
        return !mover->rekeys || mover_rekey_again(mover, source, snapshot, err);
    *keys += touched.count;
    mover->figures.keys += touched.count;
    touched_settle(&touched);
    if (!(mover->rekeys
              ? mover_rekey_keys(mover, source, snapshot, touched.keys, touched.count, err)
              : keys_sync(mover, source, snapshot, &touched, err)))
        return false;
    /* A snapshot of postgresql: holds a connection, which the commit may want. */
    engine_snapshot_free(TAKE(snapshot));
    mover_progress_add(mover, source);
    return mover_targets_write(mover, err);
}

bool mover_race(const struct mover *mover, struct mover_race *ret_race, struct error *err)
{
    struct mover_race race = {0};

    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];
        uint64_t lsn;

        if (!commit_partition_lsn(source->node->commit, source->plan.id, &lsn, err))
            return false;
        race.written += lsn;
        race.caught_up += source->journal.lsn;
    }
    *ret_race = race;
    return true;
}

bool mover_hold(struct mover *mover, int64_t ms, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++)
        if (!commit_partition_hold(mover->sources[i].node->commit, mover->sources[i].plan.id, ms,
                                   err))
            return false;
    return true;
}

bool mover_catch_up(struct mover *mover, size_t *ret_keys, struct error *err)
{
    size_t keys = 0;

    *ret_keys = 0;
    if (!mover->target_count)
        return true;
    if (!mover->rekeys && !sums_begin(mover, err))
        return false;
    for (size_t i = 0; i < mover->source_count; i++)
        if (!source_catch_up(mover, &mover->sources[i], &keys, err))
            return false;
    *ret_keys = keys;
    return true;
}
