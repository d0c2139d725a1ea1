/* Traversers and batches of them. A path is a chain of counted nodes (value/element.h), so that a
 * split costs a reference and one node; where nobody asks for paths there is none. */
#include "front/gremlin/run/run_private.h"

void gremlin_walker_done(struct gremlin_walker *traverser)
{
    gremlin_value_unref(traverser->value);
    gremlin_value_unref(traverser->sack);
    gremlin_path_unref(traverser->trail);
    *traverser = (struct gremlin_walker){0};
}

struct gremlin_walker gremlin_walker_copy(const struct gremlin_walker *from)
{
    struct gremlin_walker copy = *from;

    gremlin_value_ref(copy.value);
    gremlin_value_ref(copy.sack);
    gremlin_object_ref(copy.trail);
    return copy;
}

/* Puts value at the end of the trail, if that is tracked: always, or where it has a name. */
static void trail_extend(struct gremlin_run *run, struct gremlin_walker *traverser,
                         struct gremlin_value labels)
{
    struct gremlin_path *before = traverser->trail;

    traverser->on_trail = false;
    if (run->trail_mode == TRAIL_NONE ||
        (run->trail_mode == TRAIL_LABELS && gremlin_is_null(labels)))
        return;
    traverser->trail = gremlin_path_extend(run->heap, before, traverser->value, labels);
    traverser->on_trail = true;
    gremlin_path_unref(before);
}

void gremlin_walker_set(struct gremlin_run *run, struct gremlin_walker *traverser,
                        struct gremlin_value value, const struct gremlin_step *step)
{
    gremlin_value_replace_take(&traverser->value, value);
    trail_extend(run, traverser, step ? step->labels : GREMLIN_NOTHING);
}

struct gremlin_walker gremlin_walker_split(struct gremlin_run *run,
                                           const struct gremlin_walker *from,
                                           struct gremlin_value value,
                                           const struct gremlin_step *step)
{
    struct gremlin_walker split = *from;

    split.value = value;
    gremlin_value_ref(split.sack);
    gremlin_object_ref(split.trail);
    trail_extend(run, &split, step ? step->labels : GREMLIN_NOTHING);
    return split;
}

void gremlin_walker_label(struct gremlin_run *run, struct gremlin_walker *traverser,
                          struct gremlin_value labels)
{
    struct gremlin_path *before = traverser->trail;

    if (gremlin_is_null(labels) || run->trail_mode == TRAIL_NONE)
        return;
    if (!traverser->on_trail) {
        trail_extend(run, traverser, labels);
        return;
    }
    traverser->trail = gremlin_path_label(run->heap, before, labels);
    gremlin_path_unref(before);
}

bool gremlin_trail_has(const struct gremlin_path *node, struct slice label)
{
    if (gremlin_is_null(node->labels))
        return false;
    const struct gremlin_table *labels = gremlin_table(node->labels);

    for (size_t i = 0; i < labels->count; i++)
        if (slice_equal(gremlin_bytes(labels->rows[i].key), label))
            return true;
    return false;
}

/* --- Batches --------------------------------------------------------------------------------- */

void gremlin_walkers_clear(struct gremlin_walkers *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        gremlin_walker_done(&batch->items[i]);
    batch->count = 0;
}

void gremlin_walkers_done(struct gremlin_run *run, struct gremlin_walkers *batch)
{
    gremlin_walkers_clear(batch);
    if (batch->items)
        gremlin_heap_release(run->heap, batch->items, batch->capacity * sizeof *batch->items);
    *batch = (struct gremlin_walkers){0};
}

void gremlin_walkers_push(struct gremlin_run *run, struct gremlin_walkers *batch,
                          struct gremlin_walker traverser)
{
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity ? batch->capacity * 2 : 8;

        batch->items =
            gremlin_heap_grow(run->heap, batch->items, batch->capacity * sizeof *batch->items,
                              capacity * sizeof *batch->items);
        batch->capacity = capacity;
    }
    batch->items[batch->count++] = traverser;
}

void gremlin_walkers_forget(struct gremlin_walkers *batch, size_t count)
{
    assert(count <= batch->count);
    batch->count -= count;
    if (count && batch->count)
        memmove(batch->items, batch->items + count, batch->count * sizeof *batch->items);
}

/* Alike: nothing that a later step can see tells them apart. */
static bool traversers_alike(const struct gremlin_walker *a, const struct gremlin_walker *b)
{
    return a->trail == b->trail && a->on_trail == b->on_trail &&
           memcmp(a->loops, b->loops, sizeof a->loops) == 0 &&
           gremlin_equivalent(a->sack, b->sack) && gremlin_equivalent(a->value, b->value);
}

/* Worth merging: elements, texts and numbers. Containers would have to be walked. */
static bool traverser_merges(const struct gremlin_walker *traverser)
{
    return traverser->value.type < GREMLIN_LIST || gremlin_is_element(traverser->value);
}

void gremlin_walkers_merge(struct gremlin_run *run, struct gremlin_walkers *batch, size_t from)
{
    size_t count = batch->count - from, room = 16, kept = from;
    uint32_t *slots;

    if (!run->bulks || run->trail_mode == TRAIL_FULL || count < 2)
        return;
    while (room < count * 2)
        room *= 2;
    slots = gremlin_heap_alloc(run->heap, room * sizeof *slots);
    memset(slots, 0, room * sizeof *slots);
    for (size_t i = from; i < batch->count; i++) {
        struct gremlin_walker *item = &batch->items[i];
        size_t slot = gremlin_hash(item->value, gremlin_heap_seed(run->heap)) & (room - 1);

        if (!traverser_merges(item)) {
            batch->items[kept++] = *item;
            continue;
        }
        while (slots[slot] && !traversers_alike(&batch->items[slots[slot] - 1], item))
            slot = (slot + 1) & (room - 1);
        if (slots[slot]) {
            batch->items[slots[slot] - 1].bulk += item->bulk;
            gremlin_walker_done(item);
            continue;
        }
        batch->items[kept] = *item;
        slots[slot] = (uint32_t)++kept;
    }
    batch->count = kept;
    gremlin_heap_release(run->heap, slots, room * sizeof *slots);
}
