#include "item/view_overlay.h"

#include <stdlib.h>

/* --- Sections -------------------------------------------------------------------------------- */

struct placed {
    const struct engine_op *op;
    size_t age;
};

static int placed_compare(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    int order = slice_compare(a->op->key, b->op->key);

    return order ? order : (a->age > b->age) - (a->age < b->age);
}

struct view_section view_section_of(const struct commit_part *part, struct arena *arena)
{
    struct placed *placed = ARENA_ARRAY(arena, struct placed, part->op_count + 1);
    struct view_section section = {.partition = part->partition,
                                   .numbers = part->number_count,
                                   .ops = ARENA_ARRAY(arena, struct engine_op, part->op_count + 1),
                                   .deltas = part->deltas,
                                   .delta_count = part->delta_count};

    for (size_t i = 0; i < part->op_count; i++)
        placed[i] = (struct placed){&part->ops[i], i};
    qsort(placed, part->op_count, sizeof *placed, placed_compare);
    for (size_t i = 0; i < part->op_count; i++) {
        if (section.op_count &&
            slice_equal(section.ops[section.op_count - 1].key, placed[i].op->key))
            section.op_count--;
        section.ops[section.op_count++] = *placed[i].op;
    }
    return section;
}

const struct view_section *view_overlay_find(const struct view_overlay *overlay, uint32_t partition)
{
    for (size_t i = 0; overlay && i < overlay->count; i++)
        if (overlay->sections[i].partition == partition)
            return &overlay->sections[i];
    return NULL;
}

/* The first operation at or behind a key. */
static size_t lower_bound(const struct view_section *section, struct slice key)
{
    size_t low = 0, high = section->op_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slice_compare(section->ops[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Operations that are put between others: from the last, each moves what is behind it. Room is
 * taken for twice as many, so that what growing costs is moving. */
static void ops_merge(struct view_section *section, const struct view_section *added,
                      struct arena *arena)
{
    size_t old = section->op_count, fresh = added->op_count, at = old + fresh, kept;

    if (at > section->op_capacity) {
        struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, 2 * at);

        if (old)
            memcpy(ops, section->ops, old * sizeof *ops);
        section->ops = ops;
        section->op_capacity = 2 * at;
    }
    while (fresh) {
        size_t place = lower_bound(&(struct view_section){.ops = section->ops, .op_count = old},
                                   added->ops[fresh - 1].key);

        kept = place;
        if (place < old && slice_equal(section->ops[place].key, added->ops[fresh - 1].key))
            place++; /* the later one counts */
        memmove(&section->ops[at - (old - place)], &section->ops[place],
                (old - place) * sizeof *section->ops);
        at -= old - place;
        old = kept;
        section->ops[--at] = added->ops[--fresh];
    }
    /* those that took the place of others have left a gap before the first that moved */
    kept = section->op_count + added->op_count - at;
    memmove(&section->ops[old], &section->ops[at], kept * sizeof *section->ops);
    section->op_count = old + kept;
}

/* Sums of one key are one. */
static void delta_add(struct view_section *section, const struct commit_delta *added,
                      struct arena *arena)
{
    struct commit_delta *deltas = (struct commit_delta *)section->deltas;

    for (size_t i = 0; i < section->delta_count; i++) {
        if (!slice_equal(deltas[i].key, added->key))
            continue;
        for (size_t n = 0; n < COUNTER_NUMBERS; n++)
            deltas[i].amounts[n] += added->amounts[n];
        return;
    }
    if (section->delta_count >= section->delta_capacity) {
        section->delta_capacity = 2 * section->delta_count + 8;
        deltas = ARENA_ARRAY(arena, struct commit_delta, section->delta_capacity);
        if (section->delta_count)
            memcpy(deltas, section->deltas, section->delta_count * sizeof *deltas);
    }
    deltas[section->delta_count++] = *added;
    section->deltas = deltas;
}

void view_overlay_add(struct view_overlay *overlay, const struct view_section *added,
                      struct arena *arena)
{
    struct view_section *section =
        (struct view_section *)view_overlay_find(overlay, added->partition);
    if (!section) {
        struct view_section *sections = ARENA_ARRAY(arena, struct view_section, overlay->count + 1);

        if (overlay->count)
            memcpy(sections, overlay->sections, overlay->count * sizeof *sections);
        sections[overlay->count++] = *added;
        overlay->sections = sections;
        return;
    }
    ops_merge(section, added, arena);
    section->numbers += added->numbers;
    for (size_t i = 0; i < added->delta_count; i++)
        delta_add(section, &added->deltas[i], arena);
}

const struct engine_op *view_section_get(const struct view_section *section, struct slice key)
{
    size_t at = section ? lower_bound(section, key) : 0;

    return section && at < section->op_count && slice_equal(section->ops[at].key, key)
               ? &section->ops[at]
               : NULL;
}

/* --- Walking --------------------------------------------------------------------------------- */

bool view_walk_open(struct view_walk *walk, const struct view_walk_options *options,
                    struct error *err)
{
    *walk = (struct view_walk){.backwards = options->backwards, .bound = options->bound};
    if (options->bound && !view_bound_take(options->bound, VIEW_WALK_STEPS, 0, err))
        return false;
    if (!engine_iterator_new(options->engine, options->snapshot, options->partition, options->range,
                             options->backwards,
                             options->bound ? ENGINE_READ_CACHED : options->reach, &walk->iterator,
                             err))
        return false;
    if (!options->section)
        return true;
    walk->section = options->section;
    walk->arena = arena_new();
    if (options->range.min.data)
        walk->range.min = arena_copy(walk->arena, options->range.min);
    if (options->range.max.data)
        walk->range.max = arena_copy(walk->arena, options->range.max);
    if (walk->backwards)
        walk->at = walk->range.max.data ? lower_bound(walk->section, walk->range.max)
                                        : walk->section->op_count;
    else
        walk->at = walk->range.min.data ? lower_bound(walk->section, walk->range.min) : 0;
    return true;
}

void view_walk_done(struct view_walk *walk)
{
    engine_iterator_free(walk->iterator);
    arena_free(walk->arena);
    *walk = (struct view_walk){0};
}

/* The next operation within the range; NULL: there is none. */
static const struct engine_op *planned_peek(const struct view_walk *walk)
{
    const struct view_section *section = walk->section;
    const struct engine_op *op;

    if (walk->backwards ? walk->at == 0 : walk->at >= section->op_count)
        return NULL;
    op = &section->ops[walk->backwards ? walk->at - 1 : walk->at];
    if (walk->backwards ? walk->range.min.data && slice_compare(op->key, walk->range.min) < 0
                        : walk->range.max.data && slice_compare(op->key, walk->range.max) >= 0)
        return NULL;
    return op;
}

static void planned_pass(struct view_walk *walk)
{
    walk->at = walk->backwards ? walk->at - 1 : walk->at + 1;
}

static bool next_merged(struct view_walk *walk, struct engine_entry *ret_entry, struct error *err)
{
    for (;;) {
        const struct engine_op *op = planned_peek(walk);
        int order;

        if (!walk->has_stored) {
            if (!engine_iterator_next(walk->iterator, &walk->stored, err))
                return false;
            walk->has_stored = true;
        }
        if (walk->stored.found == ENGINE_COLD || (!op && walk->stored.found != ENGINE_FOUND)) {
            *ret_entry = walk->stored;
            return true;
        }
        order = !op                                  ? -1
                : walk->stored.found != ENGINE_FOUND ? 1
                                                     : slice_compare(walk->stored.key, op->key);
        if (op && walk->stored.found == ENGINE_FOUND && walk->backwards)
            order = -order;
        if (order < 0) {
            walk->has_stored = false;
            *ret_entry = walk->stored;
            return true;
        }
        if (order == 0)
            walk->has_stored = false;
        planned_pass(walk);
        if (op->kind == ENGINE_PUT) {
            *ret_entry =
                (struct engine_entry){.found = ENGINE_FOUND, .key = op->key, .value = op->value};
            return true;
        }
    }
}

bool view_walk_next_slow(struct view_walk *walk, struct engine_entry *ret_entry, struct error *err)
{
    if (walk->section ? !next_merged(walk, ret_entry, err)
                      : !engine_iterator_next(walk->iterator, ret_entry, err))
        return false;
    if (!walk->bound)
        return true;
    return ret_entry->found != ENGINE_COLD ? view_bound_take(walk->bound, 1, 0, err)
                                           : view_bound_cold(err);
}

bool view_walk_seek(struct view_walk *walk, struct slice key, struct error *err)
{
    if (walk->section) {
        size_t at = lower_bound(walk->section, key);

        walk->has_stored = false;
        if (!walk->backwards) {
            size_t first = walk->range.min.data ? lower_bound(walk->section, walk->range.min) : 0;

            walk->at = MAX(at, first);
        } else {
            size_t last = walk->range.max.data ? lower_bound(walk->section, walk->range.max)
                                               : walk->section->op_count;

            if (at < walk->section->op_count && slice_equal(walk->section->ops[at].key, key))
                at++;
            walk->at = MIN(at, last);
        }
    }
    return engine_iterator_seek(walk->iterator, key, err);
}
