#include "item/feed.h"
#include "migration/mover_private.h"
#include "partition/layout.h"

bool mover_unpledge(struct mover *mover, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];

        if (!commit_partition_unpledge(source->node->commit, source->plan.id, err))
            return error_prefix(err, "node \"%s\"", source->node->name);
    }
    return true;
}

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

/* What the sources of a target say together. */
struct ending {
    struct commit_numbering numbering;
    uint64_t merged;
};

/* Not before either, neither by era nor by what is counted within one: records of a key stay in
 * order when they come to another era. */
static uint64_t lsn_behind(uint64_t a, uint64_t b)
{
    return partition_lsn_in(MAX(partition_lsn_era(a), partition_lsn_era(b)),
                            MAX(partition_lsn_low(a), partition_lsn_low(b)));
}

static bool ending_add(struct mover *mover, const struct mover_source *source,
                       struct ending *ending, struct error *err)
{
    ending->numbering.lsn = lsn_behind(ending->numbering.lsn, source->numbering.lsn);
    ending->numbering.wall_ms = MAX(ending->numbering.wall_ms, source->numbering.wall_ms);
    return mark_read(mover, source, FEED_MARK_MERGED, &ending->merged, err);
}

/* Of all sources; where each has a target of its own, of that one alone. What a target receives in
 * another era is behind all that is its own, and the next LSN behind that. */
static bool ending_read(struct mover *mover, size_t target, struct ending *ending,
                        struct error *err)
{
    uint64_t low = 0, era = migration_era(mover->migration);
    /* Has each source a target of its own? */
    bool of_one =
        (mover->to && !mover->rekeys) || migration_kind(mover->migration) == MIGRATION_COPY;

    *ending = (struct ending){.numbering.lsn = 1};
    for (size_t i = 0; i < mover->source_count; i++) {
        low = MAX(low, partition_lsn_low(mover->sources[i].numbering.lsn));
        if (mover->to && partition_lsn_era(mover->sources[i].numbering.lsn) >= era)
            return error_set(err, ERROR_RANGES_BROKEN, "partition %u has come to another era",
                             mover->sources[i].plan.id);
        if ((!of_one || i == target) && !ending_add(mover, &mover->sources[i], ending, err))
            return false;
    }
    if (mover->targets[target].receives)
        ending->numbering.lsn = partition_lsn_in(era, low);
    if (mover->targets[target].receives || (!mover->to && !of_one && mover->source_count > 1))
        ending->merged = ending->numbering.lsn;
    return true;
}

static bool target_end(struct mover *mover, size_t nth, struct error *err)
{
    struct mover_target *target = &mover->targets[nth];
    struct ending ending;

    if (!ending_read(mover, nth, &ending, err))
        return false;
    target->ends = true;
    target->numbering = (struct commit_numbering){.lsn = ending.numbering.lsn - 1,
                                                  .wall_ms = ending.numbering.wall_ms};
    if (!mover->rekeys) /* the committer has kept them, entry by entry */
        sums_put(mover, target);
    mark_add(mover, target, FEED_MARK_MERGED, ending.merged);
    if (!mover_trimmed_add(mover, target, ending.numbering.lsn, err))
        return false;
    assert(target->op_count); /* the numbering comes with them */
    return true;
}

/* The batch that ends the copy has the LSN the source's last had. It says so itself: a numbering
 * set before it would be forgotten when the committer reads all of them anew, which it does before
 * the first batch behind a write of unknown outcome. */
bool mover_finish(struct mover *mover, struct error *err)
{
    mover_gather(mover);
    if (!mover->target_count)
        return mover_reroute_check(mover, err);
    if (mover->rekeys && mover->conflict_count)
        return error_set(err, ERROR_REKEY_CONFLICTS, "%zu item%s cannot be given a new key",
                         mover->conflict_count, PLURAL(mover->conflict_count));
    assert(mover->summed || mover->rekeys);
    for (size_t i = 0; i < mover->target_count; i++)
        if (!target_end(mover, i, err))
            return false;
    return mover_targets_write(mover, err);
}

bool mover_clean(struct mover *mover, struct error *err)
{
    mover_gather(mover);
    for (size_t i = 0; mover->target_count && i < mover->source_count; i++)
        mover_op_add(mover, &mover->targets[0],
                     (struct engine_op){.kind = ENGINE_DELETE,
                                        .key = mover_progress_key(mover, &mover->sources[i])});
    return mover_targets_write(mover, err);
}
