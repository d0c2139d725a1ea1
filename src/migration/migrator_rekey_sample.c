/* How long copying takes, found out by copying: a sample of the items goes through the write sets
 * and the group commit that the mover uses, into a store in memory which is gone afterwards. */
#include "item/write_set.h"
#include "migration/migrator_rekey.h"

enum {
    PARTITION = 1,
    EPOCH = 1,
    CHUNK_BYTES = 256 * 1024, /* as the mover commits */
};

bool migrator_rekey_sample_init(struct migrator_rekey_sample *sample,
                                const struct item_space *space,
                                const struct definition_fields *placed, struct error *err)
{
    *sample = (struct migrator_rekey_sample){.arena = arena_new()};
    if (!engine_open(SLICE("memory:"), &(struct engine_options){0}, &sample->engine, err) ||
        !engine_partition_create(sample->engine, PARTITION, EPOCH, err))
        return false;
    sample->commit = commit_new(&(struct commit_options){.engine = sample->engine});
    sample->scope = (struct item_scope){.engine = sample->engine,
                                        .commit = sample->commit,
                                        .partition = PARTITION,
                                        .epoch = EPOCH,
                                        .definition = placed,
                                        .policy = placed->policy,
                                        .policy_version = space->policy_version,
                                        .clock = space->clock};
    return commit_partition_open(sample->commit, PARTITION, EPOCH, err);
}

void migrator_rekey_sample_done(struct migrator_rekey_sample *sample)
{
    commit_free(sample->commit);
    engine_close(sample->engine);
    arena_free(sample->arena);
}

/* What one commit brings. */
struct chunk {
    struct engine_op *ops;
    struct commit_delta *deltas;
    size_t op_count, op_capacity, delta_count;
};

static void ops_add(struct chunk *chunk, const struct commit_part *part, struct arena *arena)
{
    if (chunk->op_count + part->op_count > chunk->op_capacity) {
        size_t capacity = 2 * (chunk->op_count + part->op_count);
        struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, capacity);

        if (chunk->op_count)
            memcpy(ops, chunk->ops, chunk->op_count * sizeof *ops);
        chunk->ops = ops;
        chunk->op_capacity = capacity;
    }
    if (part->op_count)
        memcpy(chunk->ops + chunk->op_count, part->ops, part->op_count * sizeof *part->ops);
    chunk->op_count += part->op_count;
}

static bool item_add(struct migrator_rekey_sample *sample,
                     const struct migrator_rekey_sampled *item, struct chunk *chunk,
                     struct error *err)
{
    struct write_set_change *change = ARENA_NEW(sample->arena, struct write_set_change);
    struct commit_part part;
    struct write_set *set;

    *change = (struct write_set_change){.key = item->rekeyed.item_key,
                                        .after = item->rekeyed.document,
                                        .ttl = item->item.header.ttl,
                                        .flags = item->item.header.flags & ITEM_NOT_INDEXED,
                                        .is_carried = true,
                                        .carried = item->item.header};
    if (!write_set_build(&sample->scope, change, 1, sample->arena, &set, &part, err))
        return false;
    ops_add(chunk, &part, sample->arena);
    for (size_t i = 0; i < part.delta_count; i++)
        chunk->deltas[chunk->delta_count++] = part.deltas[i];
    return true;
}

/* Items from *at on, in one commit. */
static bool chunk_copy(struct migrator_rekey_sample *sample,
                       const struct migrator_rekey_sampled *list, size_t count, size_t *at,
                       struct error *err)
{
    struct chunk chunk = {.deltas =
                              ARENA_ARRAY(sample->arena, struct commit_delta, 2 * (count - *at))};
    struct commit_part part = {.partition = PARTITION, .epoch = EPOCH};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    for (size_t bytes = 0; *at < count && bytes < CHUNK_BYTES; ++*at) {
        if (!item_add(sample, &list[*at], &chunk, err))
            return false;
        bytes += list[*at].item.key.len + list[*at].item.document.len;
        sample->bytes += list[*at].item.document.len;
    }
    part.ops = chunk.ops;
    part.op_count = chunk.op_count;
    part.deltas = chunk.deltas;
    part.delta_count = chunk.delta_count;
    return commit_run(sample->commit, &batch, err);
}

bool migrator_rekey_sample_copy(struct migrator_rekey_sample *sample,
                                const struct migrator_rekey_sampled *list, size_t count,
                                struct error *err)
{
    for (size_t at = 0; at < count;) {
        arena_reset(sample->arena);
        if (!chunk_copy(sample, list, count, &at, err))
            return false;
    }
    sample->items += count;
    return true;
}
