#include "container/feed.h"
#include "container/mover_private.h"
#include "partition/layout.h"

bool mover_fence(struct mover *mover, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++) {
        struct mover_source *source = &mover->sources[i];
        uint64_t epoch = source->plan.epoch + 1;

        /* Fenced: it was there before. Nobody else raises the epoch of a source. */
        if (!engine_partition_fence(source->node->engine, source->plan.id, epoch, err) &&
            err->code != ERROR_FENCED)
            return error_prefix(err, "node \"%s\"", source->node->name);
        if (!commit_partition_open(source->node->commit, source->plan.id, epoch, err) ||
            !commit_partition_numbering(source->node->commit, source->plan.id, &source->numbering,
                                        err))
            return error_prefix(err, "node \"%s\"", source->node->name);
    }
    return true;
}

static struct slice mark_key(struct mover *mover, uint32_t which)
{
    uint8_t *key = arena_alloc(mover->arena, FEED_KEY_LEN);

    feed_key_encode((struct feed_place){.ordinal = which}, key);
    return slice_of(key, FEED_KEY_LEN);
}

static bool mark_read(struct mover *mover, const struct mover_source *source, uint32_t which,
                      uint64_t *lsn, struct error *err)
{
    struct engine_value value;
    uint64_t found;

    if (!engine_get(source->node->engine, NULL, source->plan.id, mark_key(mover, which),
                    ENGINE_READ_ANY, mover->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!feed_mark_decode(value.bytes, &found, err))
        return false;
    *lsn = MAX(*lsn, found);
    return true;
}

static void mark_add(struct mover *mover, struct mover_target *target, uint32_t which, uint64_t lsn)
{
    uint8_t *value = arena_alloc(mover->arena, FEED_MARK_LEN);

    if (!lsn)
        return;
    feed_mark_encode(lsn, value);
    mover_op_add(
        mover, target,
        (struct engine_op){ENGINE_PUT, mark_key(mover, which), slice_of(value, FEED_MARK_LEN)});
}

static void sums_put(struct mover *mover, struct mover_target *target)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, 't'};
    uint8_t *bytes = arena_alloc(mover->arena, COUNTER_BYTES);
    struct counter counter;

    memcpy(counter.now, target->sums, sizeof counter.now);
    counter_encode(&counter, bytes);
    mover_op_add(
        mover, target,
        (struct engine_op){ENGINE_PUT, slice_of(key, sizeof key), slice_of(bytes, COUNTER_BYTES)});
}

/* What all sources together say. */
struct ending {
    struct commit_numbering numbering;
    uint64_t merged;
};

static bool ending_read(struct mover *mover, struct ending *ending, struct error *err)
{
    *ending = (struct ending){.numbering.lsn = 1};
    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];

        ending->numbering.lsn = MAX(ending->numbering.lsn, source->numbering.lsn);
        ending->numbering.wall_ms = MAX(ending->numbering.wall_ms, source->numbering.wall_ms);
        if (!mark_read(mover, source, FEED_MARK_MERGED, &ending->merged, err))
            return false;
    }
    if (mover->source_count > 1)
        ending->merged = ending->numbering.lsn;
    return true;
}

/* The batch that ends the copy has the LSN the source's last had. */
bool mover_finish(struct mover *mover, struct error *err)
{
    struct ending ending;

    assert(mover->summed);
    mover_gather(mover);
    if (!ending_read(mover, &ending, err))
        return false;
    for (size_t i = 0; i < mover->target_count; i++) {
        struct mover_target *target = &mover->targets[i];
        struct commit_numbering before = {.lsn = ending.numbering.lsn - 1,
                                          .wall_ms = ending.numbering.wall_ms};

        sums_put(mover, target);
        mark_add(mover, target, FEED_MARK_MERGED, ending.merged);
        if (!mover_trimmed_add(mover, target, err) ||
            !commit_partition_renumber(target->node->commit, target->span->id, &before, err))
            return false;
    }
    return mover_targets_write(mover, err);
}

bool mover_clean(struct mover *mover, struct error *err)
{
    mover_gather(mover);
    for (size_t i = 0; i < mover->source_count; i++)
        mover_op_add(mover, &mover->targets[0],
                     (struct engine_op){.kind = ENGINE_DELETE,
                                        .key = mover_progress_key(mover, &mover->sources[i])});
    return mover_targets_write(mover, err);
}
