/* Entries that lie elsewhere than the items that make them (item/write_placed.h): of each item they
 * are looked up in the partition where they belong, and of each that is found the item is looked
 * for by its number, in whichever partition that is. All partitions of such a container are on one
 * node, so that the moment of the node has both. */
#include "backup/verify_private.h"

#include "base/bytes.h"
#include "partition/layout.h"

enum { REPAIR_TRIES = 5 };

bool verify_is_placed(const struct verify *verify, struct slice key)
{
    struct slice entry = slice_skip(key, 1);

    if (key.data[0] != PARTITION_FAMILY_INDEX)
        return false;
    if (index_policy_placed(verify->scope.policy, entry))
        return true;
    for (size_t i = 0; i < verify->before_count; i++)
        if (index_policy_placed(definition_fields(verify->before[i])->policy, entry))
            return true;
    return false;
}

/* --- From items to entries ------------------------------------------------------------------- */

bool verify_placed_check(struct verify *verify, const struct verify_item *item, struct error *err)
{
    size_t count;
    const struct write_placed *placed = write_set_placed(item->set, &count);

    for (size_t i = 0; i < count; i++) {
        uint32_t partition = write_placed_span(&verify->scope, &placed[i])->id;
        struct engine_value value;

        if (!engine_get(verify->scope.engine, verify->partition->node->snapshot, partition,
                        placed[i].op.key, ENGINE_READ_ANY, verify->arena, &value, err))
            return false;
        verify->figures.entries++;
        if (value.found == ENGINE_FOUND && !value.bytes.len)
            continue;
        if (value.found == ENGINE_FOUND)
            verify_tell(verify, VERIFY_WRONG, placed[i].op.key,
                        "the entry has another value than its item makes");
        else
            verify_tell(verify, VERIFY_MISSING, placed[i].op.key,
                        "an entry that its item makes is missing in partition %u", partition);
        if (verify->repair && !verify_repair_item(verify, item->item.key, SLICE_NONE, err))
            return false;
    }
    return true;
}

/* --- From entries to items ------------------------------------------------------------------- */

/* An item wherever it is. */
struct owner {
    const struct partition_span *span; /* NULL: there is none */
    struct slice key;                  /* item key */
};

/* snapshot NULL: as things are now. */
static bool owner_look(const struct verify *verify, struct engine_snapshot *snapshot,
                       const struct partition_span *span, struct slice number, struct arena *arena,
                       struct owner *owner, struct error *err)
{
    struct engine_value value;

    if (!engine_get(verify->scope.engine, snapshot, span->id, number, ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    if (value.found == ENGINE_FOUND)
        *owner = (struct owner){span, value.bytes};
    return true;
}

/* First where its number was given. */
static bool owner_find(const struct verify *verify, struct engine_snapshot *snapshot,
                       struct slice entry, struct arena *arena, struct owner *ret_owner,
                       struct error *err)
{
    struct slice bytes = slice_skip(entry, entry.len - 8);
    struct slice number = item_family_key(arena, PARTITION_FAMILY_NUMBER, bytes);
    size_t count;
    const struct partition_span *spans = partition_map_spans(verify->scope.map, &count);
    const struct partition_span *first = partition_map_find_id(
        verify->scope.map, (uint32_t)(bytes_get_be64(bytes.data) >> PARTITION_NUMBER_COUNTER_BITS));

    *ret_owner = (struct owner){0};
    if (first && !owner_look(verify, snapshot, first, number, arena, ret_owner, err))
        return false;
    for (size_t i = 0; i < count && !ret_owner->span; i++)
        if (!owner_look(verify, snapshot, &spans[i], number, arena, ret_owner, err))
            return false;
    return true;
}

/* Does the item make the entry? Of one that is damaged nobody can tell. */
static bool is_made(const struct verify *verify, struct engine_snapshot *snapshot,
                    const struct owner *owner, struct slice entry, struct arena *arena,
                    bool *ret_made, struct error *err)
{
    struct verify_item item;
    struct engine_value value;
    struct error damage;
    const struct write_placed *placed;
    size_t count;

    *ret_made = false;
    if (!owner->span)
        return true;
    if (!engine_get(verify->scope.engine, snapshot, owner->span->id,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, owner->key), ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!verify_item_build(verify, owner->key, value.bytes, arena, &item, &damage)) {
        *ret_made = true;
        return true;
    }
    placed = write_set_placed(item.set, &count);
    for (size_t i = 0; i < count && !*ret_made; i++)
        *ret_made = slice_equal(placed[i].op.key, entry) &&
                    write_placed_span(&verify->scope, &placed[i])->id == verify->partition->id;
    return true;
}

/* Removes it, unless an item makes it by now; relies on the item. */
static bool surplus_try(struct verify *verify, struct slice entry, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_op gone = {ENGINE_DELETE, entry, SLICE_NONE};
    uint64_t moment = commit_moment(verify->scope.commit);
    struct commit_part parts[2] = {{.partition = verify->partition->id,
                                    .epoch = verify->scope.epoch,
                                    .writers = verify->scope.writers,
                                    .ops = &gone,
                                    .op_count = 1}};
    struct commit_batch batch = {.parts = parts, .part_count = 1, .moment = moment};
    struct owner owner;
    struct slice relied;
    bool made;

    if (!owner_find(verify, NULL, entry, arena, &owner, err) ||
        !is_made(verify, NULL, &owner, entry, arena, &made, err))
        return false;
    if (made)
        return true;
    if (owner.span) {
        struct commit_part *part = &parts[0];

        relied = item_family_key(arena, PARTITION_FAMILY_ITEM, owner.key);
        if (owner.span->id != verify->partition->id) {
            part = &parts[batch.part_count++];
            *part = (struct commit_part){.partition = owner.span->id, .epoch = owner.span->epoch};
        }
        part->relied = &relied;
        part->relied_count = 1;
    }
    if (!commit_run(verify->scope.commit, &batch, err))
        return false;
    verify->figures.repaired++;
    return true;
}

bool verify_placed_look(struct verify *verify, struct slice found, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_snapshot *snapshot = verify->partition->node->snapshot;
    struct slice key = arena_copy(arena, found);
    struct owner owner = {0};
    bool made = false;

    if (key.len > 9 && (!owner_find(verify, snapshot, key, arena, &owner, err) ||
                        !is_made(verify, snapshot, &owner, key, arena, &made, err)))
        return false;
    if (made)
        return true;
    verify_tell(verify, VERIFY_SURPLUS, key, "no item makes the entry");
    for (size_t tries = 0; verify->repair; tries++) {
        if (surplus_try(verify, key, err))
            return true;
        if (tries == REPAIR_TRIES ||
            (err->code != ERROR_CONFLICT && err->code != ERROR_SNAPSHOT_TOO_OLD &&
             err->code != ERROR_BUSY))
            return false;
    }
    return true;
}
