/* Copies are loaded (engine_load) where a node can do that: they are nine tenths of what a
 * migration writes, and through the committer every one of its groups would be held up by them.
 * Targets are not read before they are published, so a load that fails half way does no harm. */
#include "migration/mover_private.h"

#include <stdlib.h>

static int ops_compare(const void *left, const void *right)
{
    return slice_compare(((const struct engine_op *)left)->key,
                         ((const struct engine_op *)right)->key);
}

/* The source was read in order; rewritten keys may have another. */
static void ops_sort(struct engine_op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (slice_compare(ops[i - 1].key, ops[i].key) >= 0) {
            qsort(ops, count, sizeof *ops, ops_compare);
            return;
        }
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
        ops_sort(target->ops, target->op_count);
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
