#include "item/view_overlay.h"

#include <stdlib.h>

enum { DELTAS_LOOSE = 64 };

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
                                   .ops = ARENA_ARRAY(arena, struct engine_op, part->op_count + 1),
                                   .deltas = part->deltas,
                                   .delta_count = part->delta_count,
                                   .numbers = part->number_count};

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

/* The first operation at or behind a key, from `low` on. */
static size_t lower_bound_from(const struct view_section *section, size_t low, struct slice key)
{
    size_t high = section->op_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slice_compare(section->ops[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t lower_bound(const struct view_section *section, struct slice key)
{
    return lower_bound_from(section, 0, key);
}

void view_section_take(struct view_section *section, const struct engine_op *ops, size_t count)
{
    size_t kept = 0, from = 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = lower_bound_from(section, from, ops[i].key);

        if (at == section->op_count || section->ops[at].key.data != ops[i].key.data)
            continue;
        memmove(&section->ops[kept], &section->ops[from], (at - from) * sizeof *section->ops);
        kept += at - from;
        from = at + 1;
    }
    memmove(&section->ops[kept], &section->ops[from],
            (section->op_count - from) * sizeof *section->ops);
    section->op_count = kept + section->op_count - from;
}

static void ops_reserve(struct view_section *section, size_t more, struct arena *arena)
{
    struct engine_op *ops;

    if (section->op_count + more <= section->op_capacity)
        return;
    section->op_capacity = 2 * (section->op_count + more);
    ops = ARENA_ARRAY(arena, struct engine_op, section->op_capacity);
    if (section->op_count)
        memcpy(ops, section->ops, section->op_count * sizeof *ops);
    section->ops = ops;
}

/* From the last on, each moves what is behind it, so that nothing moves twice. */
void view_section_put(struct view_section *section, const struct engine_op *ops, size_t count,
                      struct arena *arena)
{
    struct {
        size_t op, place;
    } *fresh = memory_alloc(memory_array_size(count + 1, sizeof *fresh));
    size_t fresh_count = 0, place = 0, end = section->op_count, to;

    ops_reserve(section, count, arena);
    for (size_t i = 0; i < count; i++) {
        place = lower_bound_from(section, place, ops[i].key);
        if (place < section->op_count && slice_equal(section->ops[place].key, ops[i].key)) {
            section->ops[place] = ops[i];
        } else {
            fresh[fresh_count].op = i;
            fresh[fresh_count++].place = place;
        }
    }
    section->op_count += fresh_count;
    to = section->op_count;
    while (fresh_count) {
        size_t moved;

        fresh_count--;
        moved = end - fresh[fresh_count].place;
        memmove(&section->ops[to - moved], &section->ops[fresh[fresh_count].place],
                moved * sizeof *section->ops);
        to -= moved + 1;
        end -= moved;
        section->ops[to] = ops[fresh[fresh_count].op];
    }
    memory_free(fresh);
}

static int delta_compare(const void *left, const void *right)
{
    return slice_compare(((const struct commit_delta *)left)->key,
                         ((const struct commit_delta *)right)->key);
}

/* Those of one key become one. */
static void deltas_merge(struct view_section *section)
{
    size_t kept = 0;

    qsort(section->deltas, section->delta_count, sizeof *section->deltas, delta_compare);
    for (size_t i = 0; i < section->delta_count; i++) {
        const struct commit_delta *delta = &section->deltas[i];

        if (kept && slice_equal(section->deltas[kept - 1].key, delta->key))
            for (size_t n = 0; n < COUNTER_NUMBERS; n++)
                section->deltas[kept - 1].amounts[n] += delta->amounts[n];
        else
            section->deltas[kept++] = *delta;
    }
    section->delta_count = section->delta_merged = kept;
}

void view_section_sum(struct view_section *section, const struct commit_delta *deltas, size_t count,
                      bool taken, struct arena *arena)
{
    if (section->delta_count + count > section->delta_capacity) {
        size_t capacity = 2 * (section->delta_count + count);
        struct commit_delta *larger = ARENA_ARRAY(arena, struct commit_delta, capacity);

        if (section->delta_count)
            memcpy(larger, section->deltas, section->delta_count * sizeof *larger);
        section->deltas = larger;
        section->delta_capacity = capacity;
    }
    for (size_t i = 0; i < count; i++) {
        struct commit_delta *delta = &section->deltas[section->delta_count++];

        *delta = deltas[i];
        for (size_t n = 0; taken && n < COUNTER_NUMBERS; n++)
            delta->amounts[n] = -delta->amounts[n];
    }
    if (section->delta_count > 2 * section->delta_merged + DELTAS_LOOSE)
        deltas_merge(section);
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
