/* The overlay of a transaction, brought up to date as it writes.
 *
 * What an item adds to it, operations and sums, follows from what was stored of it and what it is
 * by now. So a write takes out what its item had put there, and puts in what it adds now; the
 * others stay as they are. Where items depend on one another all of it is built anew, by the code
 * that builds the commit: unique values that one lets go of and another claims, two items under one
 * key, and items that are over or make room.
 *
 * New items are numbered in the order they were planned in, and keep their numbers, so that a page
 * that ended behind one of them goes on from there. */
#include "item/transaction_private.h"

#include "item/view_overlay.h"
#include "partition/layout.h"

#include <stdlib.h>

/* Memory that items have left behind which were written again, before all is built anew. */
enum { WASTE_BYTES_MAX = 1024 * 1024 };

/* What one item adds. */
struct transaction_part {
    uint32_t partition;
    uint32_t number; /* among the new ones of the partition */
    struct engine_op *ops;
    size_t op_count;
    struct commit_delta *deltas;
    size_t delta_count;
    struct moved *placed; /* entries that lie elsewhere */
    size_t placed_count;
};

/* One operation to be put or taken. */
struct moved {
    uint32_t partition;
    struct engine_op op;
};

static void overlay_drop(struct transaction *transaction)
{
    arena_free(transaction->overlay_arena);
    transaction->overlay_arena = NULL;
    transaction->overlay = NULL;
    transaction->overlay_writes = 0;
}

/* The commit fills in what it gives, long after the overlay has gone. */
static void stamp(struct write_set *set, const struct transaction *transaction, uint32_t number)
{
    write_set_stamp(set, &(struct commit_stamp){
                             .lsn = TRANSACTION_LSN_PROVISIONAL,
                             .first_number = partition_number(TRANSACTION_NUMBER_SOURCE, number),
                             .wall_ms = transaction->now_ms});
}

static struct view_section *section_of(struct view_overlay *overlay, uint32_t partition,
                                       struct arena *arena)
{
    struct view_section *sections;

    for (size_t i = 0; i < overlay->count; i++)
        if (overlay->sections[i].partition == partition)
            return &overlay->sections[i];
    sections = ARENA_ARRAY(arena, struct view_section, overlay->count + 1);
    if (overlay->count)
        memcpy(sections, overlay->sections, overlay->count * sizeof *sections);
    sections[overlay->count] = (struct view_section){.partition = partition};
    overlay->sections = sections;
    return &sections[overlay->count++];
}

/* --- All of it -------------------------------------------------------------------------------- */

/* Entries that lie elsewhere than the items of a section. */
static void placed_show(struct view_overlay *overlay, const struct transaction_section *section,
                        struct arena *arena)
{
    size_t count;
    const struct write_placed *placed = write_set_placed(section->set, &count);

    for (size_t i = 0; i < count; i++)
        view_section_put(
            section_of(overlay, write_placed_span(section->scope, &placed[i])->id, arena),
            &placed[i].op, 1, arena);
}

static bool whole_build(struct transaction *transaction, struct error *err)
{
    struct arena *own = transaction->arena, *arena = transaction->overlay_arena;
    struct view_overlay *overlay = transaction->overlay;
    uint32_t numbers = 0;
    bool fine = true;

    transaction->arena = arena;
    transaction_changes_collect(transaction, transaction->seen_count);
    overlay->sections = ARENA_ARRAY(arena, struct view_section, transaction->part_count + 1);
    for (size_t i = 0; fine && i < transaction->part_count; i++) {
        struct transaction_section *section = &transaction->sections[i];
        struct commit_part part;

        fine = write_set_build(section->scope, section->changes, section->change_count, arena,
                               &section->set, &part, err);
        if (!fine)
            break;
        /* items of a spread key are told apart by them, across its parts */
        stamp(section->set, transaction, transaction_is_spread(section->scope) ? numbers : 0);
        numbers += part.number_count;
        overlay->sections[overlay->count++] = view_section_of(&part, arena);
    }
    for (size_t i = 0; fine && i < transaction->part_count; i++)
        placed_show(overlay, &transaction->sections[i], arena);
    transaction->arena = own;
    transaction->sections = NULL;
    transaction->part_count = 0;
    for (size_t i = 0; i < transaction->entity_count; i++)
        transaction->entities[i]->change = NULL;
    return fine;
}

/* --- Item by item ----------------------------------------------------------------------------- */

static bool is_alone(const struct transaction_seen *seen)
{
    return !seen->is_shared && !seen->is_over && !seen->makes_room;
}

/* Does what the write changes depend on no other item? */
static bool stands_apart(const struct transaction_planned *planned)
{
    const struct transaction_entity *entity = planned->entity;
    const struct definition_fields *definition = planned->seen->place->scope.definition;

    return entity && is_alone(planned->seen) && (!entity->stored || is_alone(entity->stored)) &&
           !definition_is_unique(definition) && !definition->bound.bytes;
}

static bool stand_apart(const struct transaction *transaction, size_t from)
{
    for (size_t i = from; i < transaction->planned_count; i++)
        if (!stands_apart(&transaction->planned[i]))
            return false;
    return true;
}

/* What the item adds by now. */
static bool part_build(struct transaction *transaction, const struct transaction_entity *entity,
                       struct transaction_part **ret_part, struct error *err)
{
    struct arena *arena = transaction->overlay_arena;
    const struct item_scope *scope = &transaction->planned[entity->last].seen->place->scope;
    struct write_set_change *change = ARENA_NEW(arena, struct write_set_change);
    struct transaction_part *part = ARENA_NEW(arena, struct transaction_part);
    struct view_section *section = section_of(transaction->overlay, scope->partition, arena), built;
    const struct write_placed *placed;
    struct commit_part committed;
    struct write_set *set;

    *change = transaction_change_of(transaction, entity, arena);
    if (!write_set_build(scope, change, 1, arena, &set, &committed, err))
        return false;
    part->partition = scope->partition;
    part->number = entity->shown ? entity->shown->number : section->numbers;
    /* A query over the parts of a key tells items with equal values apart by their numbers. */
    if (transaction_is_spread(scope))
        part->number = (uint32_t)entity->index;
    if (!entity->shown)
        section->numbers += committed.number_count;
    stamp(set, transaction, part->number);
    built = view_section_of(&committed, arena);
    part->ops = built.ops;
    part->op_count = built.op_count;
    part->deltas = built.deltas;
    part->delta_count = built.delta_count;
    placed = write_set_placed(set, &part->placed_count);
    part->placed = ARENA_ARRAY(arena, struct moved, part->placed_count + 1);
    for (size_t i = 0; i < part->placed_count; i++)
        part->placed[i] = (struct moved){write_placed_span(scope, &placed[i])->id, placed[i].op};
    *ret_part = part;
    return true;
}

static int moved_compare(const void *left, const void *right)
{
    const struct moved *a = left, *b = right;

    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return slice_compare(a->op.key, b->op.key);
}

struct batch {
    struct moved *list;
    size_t count, capacity;
};

static void batch_add(struct batch *batch, const struct transaction_part *part)
{
    while (batch->count + part->op_count + part->placed_count > batch->capacity) {
        batch->capacity = batch->capacity ? 2 * batch->capacity : 64;
        batch->list =
            memory_realloc(batch->list, memory_array_size(batch->capacity, sizeof *batch->list));
    }
    for (size_t i = 0; i < part->op_count; i++)
        batch->list[batch->count++] = (struct moved){part->partition, part->ops[i]};
    for (size_t i = 0; i < part->placed_count; i++)
        batch->list[batch->count++] = part->placed[i];
}

/* Gives each section its own, by key. */
static void batch_apply(struct transaction *transaction, struct batch *batch, bool taken)
{
    struct arena *arena = transaction->overlay_arena;
    struct engine_op *ops =
        memory_alloc(memory_array_size(batch->count + 1, sizeof(struct engine_op)));

    if (batch->count)
        qsort(batch->list, batch->count, sizeof *batch->list, moved_compare);
    for (size_t from = 0, to; from < batch->count; from = to) {
        uint32_t partition = batch->list[from].partition;
        struct view_section *section = section_of(transaction->overlay, partition, arena);

        for (to = from; to < batch->count && batch->list[to].partition == partition; to++)
            ops[to - from] = batch->list[to].op;
        if (taken)
            view_section_take(section, ops, to - from);
        else
            view_section_put(section, ops, to - from, arena);
    }
    memory_free(ops);
    memory_free(batch->list);
}

/* Shows the writes from `from` on; each item once. */
static bool writes_show(struct transaction *transaction, size_t from, struct error *err)
{
    struct arena *arena = transaction->overlay_arena;
    struct batch put = {0}, taken = {0};
    bool fine = true;

    for (size_t i = from; fine && i < transaction->planned_count; i++) {
        const struct transaction_planned *planned = &transaction->planned[i];
        struct transaction_entity *entity = planned->entity;
        const struct transaction_part *before = entity->shown;
        struct transaction_part *part;

        if (planned->before != NO_WRITE_BEFORE && planned->before >= from)
            continue;
        fine = part_build(transaction, entity, &part, err);
        if (!fine)
            break;
        if (before) {
            batch_add(&taken, before);
            view_section_sum(section_of(transaction->overlay, before->partition, arena),
                             before->deltas, before->delta_count, true, arena);
        }
        batch_add(&put, part);
        view_section_sum(section_of(transaction->overlay, part->partition, arena), part->deltas,
                         part->delta_count, false, arena);
        entity->shown = part;
    }
    batch_apply(transaction, &taken, true);
    batch_apply(transaction, &put, false);
    return fine;
}

/* --- From outside ----------------------------------------------------------------------------- */

static bool may_go_on(const struct transaction *transaction)
{
    return transaction->overlay && transaction->overlay_is_apart &&
           arena_used(transaction->overlay_arena) <=
               2 * transaction->overlay_bytes + WASTE_BYTES_MAX &&
           stand_apart(transaction, transaction->overlay_writes);
}

static bool overlay_build(struct transaction *transaction, struct error *err)
{
    overlay_drop(transaction);
    transaction->overlay_arena = arena_new();
    transaction->overlay = ARENA_NEW(transaction->overlay_arena, struct view_overlay);
    transaction->overlay_is_apart = stand_apart(transaction, 0);
    for (size_t i = 0; i < transaction->entity_count; i++)
        transaction->entities[i]->shown = NULL;
    if (!(transaction->overlay_is_apart ? writes_show(transaction, 0, err)
                                        : whole_build(transaction, err)))
        return false;
    transaction->overlay_bytes = arena_used(transaction->overlay_arena);
    return true;
}

bool transaction_overlay(struct transaction *transaction, const struct view_overlay **ret_overlay,
                         struct error *err)
{
    bool fine = true;

    assert(transaction->snapshot && transaction->overlay_writes <= transaction->planned_count);
    if (transaction->overlay_writes < transaction->planned_count) {
        fine = may_go_on(transaction) ? writes_show(transaction, transaction->overlay_writes, err)
                                      : overlay_build(transaction, err);
        if (fine)
            transaction->overlay_writes = transaction->planned_count;
        else
            overlay_drop(transaction);
    }
    if (fine)
        *ret_overlay = transaction->overlay;
    return fine;
}

size_t transaction_overlay_bytes(const struct transaction *transaction)
{
    return transaction->overlay_arena ? arena_used(transaction->overlay_arena) : 0;
}
