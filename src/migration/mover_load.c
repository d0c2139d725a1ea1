/* Copies are loaded (engine_load) where a node can do that: they are nine tenths of what a
 * migration writes, and through the committer every one of its groups would be held up by them.
 * Targets are not read before they are published, so a load that fails half way does no harm.
 *
 * The sums of what a re-key gathers go into the same file as its items, added to those that are
 * there: so a crash leaves an item with its sums or without both. The committer, which keeps sums
 * in memory, has to read them anew behind it (mover_counters_reread). */
#include "migration/mover_private.h"

#include <stdlib.h>

enum { REST_MS_MAX = 5000 };
/* Of the backlog that makes writers of a node wait: there is room left for theirs. */
#define BACKLOG_REST 0.25

/* --- Sums ------------------------------------------------------------------------------------ */

static int deltas_compare(const void *left, const void *right)
{
    return slice_compare(((const struct commit_delta *)left)->key,
                         ((const struct commit_delta *)right)->key);
}

static bool sum_put(struct mover *mover, struct mover_target *target,
                    const struct commit_delta *deltas, size_t count, struct error *err)
{
    struct counter sum = {0};
    uint8_t *bytes = arena_alloc(mover->arena, COUNTER_BYTES);
    struct engine_value stored;

    if (!engine_get(target->node->engine, NULL, target->span->id, deltas->key, ENGINE_READ_ANY,
                    mover->arena, &stored, err) ||
        (stored.found == ENGINE_FOUND && !counter_decode(stored.bytes, sum.now, err)))
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < COUNTER_NUMBERS; n++)
            sum.now[n] += deltas[i].amounts[n];
    counter_encode(&sum, bytes);
    mover_op_add(mover, target,
                 (struct engine_op){ENGINE_PUT, deltas->key, slice_of(bytes, COUNTER_BYTES)});
    return true;
}

/* What is to be added becomes what it will be then: nobody else writes a target. */
static bool sums_put(struct mover *mover, struct mover_target *target, struct error *err)
{
    struct commit_delta *deltas = target->deltas;
    size_t count = target->delta_count, same;

    if (count)
        qsort(deltas, count, sizeof *deltas, deltas_compare);
    for (size_t i = 0; i < count; i += same) {
        for (same = 1; i + same < count && slice_equal(deltas[i].key, deltas[i + same].key);)
            same++;
        if (!sum_put(mover, target, &deltas[i], same, err))
            return false;
    }
    target->delta_count = 0;
    return true;
}

bool mover_counters_reread(struct mover *mover, struct error *err)
{
    for (size_t i = 0; mover->sums_cached && i < mover->target_count; i++) {
        const struct mover_target *target = &mover->targets[i];

        if (!commit_partition_open(target->node->commit, target->span->id, target->span->epoch,
                                   err))
            return false;
    }
    mover->sums_cached = false;
    return true;
}

/* --- Loading --------------------------------------------------------------------------------- */

/* Of two with one key the one that was gathered later is behind. */
static int ops_compare(const void *left, const void *right)
{
    const struct engine_op *a = *(const struct engine_op *const *)left,
                           *b = *(const struct engine_op *const *)right;
    int order = slice_compare(a->key, b->key);

    return order ? order : (a > b) - (a < b);
}

static bool ops_are_sorted(const struct engine_op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (slice_compare(ops[i - 1].key, ops[i].key) >= 0)
            return false;
    return true;
}

/* A source is read in order; rewritten keys, and those of items, may have another. Each once: the
 * last. */
static void ops_sort(struct mover *mover, struct mover_target *target)
{
    size_t count = target->op_count, kept = 0;
    const struct engine_op **order;
    struct engine_op *sorted;

    if (ops_are_sorted(target->ops, count))
        return;
    order = ARENA_ARRAY(mover->arena, const struct engine_op *, count);
    sorted = ARENA_ARRAY(mover->arena, struct engine_op, count);
    for (size_t i = 0; i < count; i++)
        order[i] = &target->ops[i];
    qsort(order, count, sizeof *order, ops_compare);
    for (size_t i = 0; i < count; i++) {
        if (kept && slice_equal(sorted[kept - 1].key, order[i]->key))
            kept--;
        sorted[kept++] = *order[i];
    }
    target->ops = sorted;
    target->op_count = kept;
    target->op_capacity = count;
}

/* In the order of ids, as targets have them. */
static bool node_load(struct mover *mover, const struct cluster_node *node, struct error *err)
{
    struct engine_section sections[MIGRATION_TARGETS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < mover->target_count; i++) {
        struct mover_target *target = &mover->targets[i];

        if (target->node != node || target->op_count == 0)
            continue;
        if (!sums_put(mover, target, err))
            return false;
        ops_sort(mover, target);
        sections[count++] = (struct engine_section){.partition = target->span->id,
                                                    .epoch = target->span->epoch,
                                                    .ops = target->ops,
                                                    .count = target->op_count};
        target->op_count = 0;
    }
    return engine_load(node->engine, sections, count, err) ||
           error_prefix(err, "node \"%s\"", node->name);
}

bool mover_targets_can_load(const struct mover *mover)
{
    for (size_t i = 0; i < mover->target_count; i++)
        if (!engine_can_load(mover->targets[i].node->engine))
            return false;
    return true;
}

bool mover_targets_load(struct mover *mover, struct error *err)
{
    for (size_t i = 0; i < mover->target_count; i++)
        if (mover->targets[i].op_count && engine_can_load(mover->targets[i].node->engine) &&
            !node_load(mover, mover->targets[i].node, err))
            return false;
    return true;
}

/* --- Pace ------------------------------------------------------------------------------------ */

static bool node_is_behind(const struct cluster_node *node)
{
    struct engine_statistics statistics;
    struct error unused;

    return engine_can_load(node->engine) && engine_statistics(node->engine, &statistics, &unused) &&
           statistics.backlog > BACKLOG_REST;
}

/* Where clients alone keep a node behind, copying goes on all the same, slowly. */
bool mover_must_rest(struct mover *mover, int64_t now_ms)
{
    bool behind = false;

    for (size_t i = 0; !behind && i < mover->target_count; i++)
        behind = node_is_behind(mover->targets[i].node);
    for (size_t i = 0; !behind && i < mover->source_count; i++)
        behind = node_is_behind(mover->sources[i].node);
    if (!behind || mover->fenced) {
        mover->resting_since_ms = 0;
        return false;
    }
    if (!mover->resting_since_ms)
        mover->resting_since_ms = now_ms;
    if (now_ms - mover->resting_since_ms < REST_MS_MAX)
        return true;
    mover->resting_since_ms = 0;
    return false;
}
