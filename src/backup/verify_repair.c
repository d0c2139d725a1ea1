/* A repair looks at the item again as it is now, not as the moment has it, and is one commit that
 * relies on the item: who writes it meanwhile makes the entries anew and wins. A sum gets what it
 * lacked at the moment added, whatever was added since. */
#include "backup/verify_private.h"

#include "partition/layout.h"

enum { REPAIR_TRIES = 5 };

static bool op_is_needed(const struct verify *verify, const struct engine_op *op,
                         const struct item_header *header, struct arena *arena, bool *ret_needed,
                         struct error *err)
{
    struct engine_value value;

    *ret_needed = false;
    if (op->key.data[0] == PARTITION_FAMILY_ITEM)
        return true;
    if (!engine_get(verify->scope.engine, NULL, verify->partition->id, op->key, ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    *ret_needed = value.found != ENGINE_FOUND || !verify_value_fits(op, value.bytes, header);
    return true;
}

/* Of entries that lie elsewhere those that are not as they should be, in parts of their own. */
static bool placed_collect(struct verify *verify, const struct verify_item *item,
                           struct arena *arena, struct commit_part **parts, size_t *part_count,
                           struct error *err)
{
    size_t count, lacking = 0;
    const struct write_placed *placed = write_set_placed(item->set, &count);
    struct write_placed *list = ARENA_ARRAY(arena, struct write_placed, count + 1);
    struct commit_part *all = ARENA_ARRAY(arena, struct commit_part, count + 1);

    for (size_t i = 0; i < count; i++) {
        struct engine_value value;

        if (!engine_get(verify->scope.engine, NULL,
                        write_placed_span(&verify->scope, &placed[i])->id, placed[i].op.key,
                        ENGINE_READ_ANY, arena, &value, err))
            return false;
        if (value.found != ENGINE_FOUND || value.bytes.len)
            list[lacking++] = placed[i];
    }
    if (!lacking)
        return true;
    all[0] = **parts;
    *parts = all;
    return write_placed_parts(&verify->scope, list, lacking, all, part_count, arena, err);
}

/* What the item lacks of what it makes; *ret_makes: the surplus is among what it makes now. */
static bool lacking_collect(struct verify *verify, struct slice key, struct slice stored,
                            struct slice surplus, struct arena *arena, struct commit_part *part,
                            struct verify_item *ret_item, bool *ret_makes, struct error *err)
{
    struct verify_item item;
    struct error damage;

    if (!verify_item_build(verify, key, stored, arena, &item, &damage))
        return true; /* nobody knows what it makes */
    *ret_item = item;
    part->ops = ARENA_ARRAY(arena, struct engine_op, item.part.op_count + 1);
    for (size_t i = 0; i < item.part.op_count; i++) {
        bool needed;

        *ret_makes |= surplus.data && slice_equal(item.part.ops[i].key, surplus);
        if (!op_is_needed(verify, &item.part.ops[i], &item.item.header, arena, &needed, err))
            return false;
        if (needed)
            part->ops[part->op_count++] = item.part.ops[i];
    }
    return true;
}

static bool item_try(struct verify *verify, struct slice item_key, struct slice surplus,
                     struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice key = item_family_key(arena, PARTITION_FAMILY_ITEM, item_key);
    struct engine_op alone[1];
    struct commit_part part = {.partition = verify->partition->id,
                               .epoch = verify->scope.epoch,
                               .writers = verify->scope.writers,
                               .ops = alone};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = commit_moment(verify->scope.commit)};
    struct engine_value value = {.found = ENGINE_ABSENT};
    struct verify_item *item = ARENA_NEW(arena, struct verify_item);
    bool makes = false;

    if (item_key.len) {
        part.relied = &key;
        part.relied_count = 1;
        if (!engine_get(verify->scope.engine, NULL, verify->partition->id, key, ENGINE_READ_ANY,
                        arena, &value, err))
            return false;
    }
    if (value.found == ENGINE_FOUND &&
        !lacking_collect(verify, item_key, value.bytes, surplus, arena, &part, item, &makes, err))
        return false;
    if (surplus.data && !makes)
        part.ops[part.op_count++] = (struct engine_op){ENGINE_DELETE, surplus, SLICE_NONE};
    if (!placed_collect(verify, item, arena, &batch.parts, &batch.part_count, err))
        return false;
    if (!part.op_count && batch.part_count == 1 && !batch.parts[0].op_count)
        return true;
    if (!commit_run(verify->scope.commit, &batch, err))
        return false;
    for (size_t i = 0; i < batch.part_count; i++)
        verify->figures.repaired += batch.parts[i].op_count;
    return true;
}

bool verify_repair_item(struct verify *verify, struct slice item_key, struct slice surplus,
                        struct error *err)
{
    for (size_t tries = 0;; tries++) {
        if (item_try(verify, item_key, surplus, err))
            return true;
        if (tries == REPAIR_TRIES ||
            (err->code != ERROR_CONFLICT && err->code != ERROR_SNAPSHOT_TOO_OLD &&
             err->code != ERROR_BUSY))
            return false;
    }
}

bool verify_repair_sum(struct verify *verify, struct slice key, const int64_t *lacks,
                       struct error *err)
{
    struct commit_delta delta = {.key = key};
    struct commit_part part = {.partition = verify->partition->id,
                               .epoch = verify->scope.epoch,
                               .writers = verify->scope.writers,
                               .deltas = &delta,
                               .delta_count = 1};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    memcpy(delta.amounts, lacks, sizeof delta.amounts);
    /* the committer may know another sum by heart than the store has: it is to read it again */
    if (!commit_partition_open(verify->scope.commit, verify->partition->id, verify->scope.epoch,
                               err))
        return false;
    if (!commit_run(verify->scope.commit, &batch, err))
        return false;
    verify->figures.repaired++;
    return true;
}
