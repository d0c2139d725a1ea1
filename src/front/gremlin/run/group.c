/* group, groupCount, tree: of the stream, or as side effects that cap() reads.
 *
 * The value of a group is a traversal over the group's stream: by(count()), by(values('x').sum()).
 * Of by('key'), by(T.id) and by() each traverser gives one value to a list, at once; counts are
 * kept as numbers; only for other traversals the traversers of a group are kept until somebody
 * reads it, and the first result is the group's. Those are on a pile by the number of their group,
 * and so on disk where they are too many; what the groups are is on the heap, as their map will be.
 */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/run/pile_private.h"

struct group_entry {
    struct gremlin_value values; /* a list, a long, or null */
};

enum group_form {
    GROUP_OBJECTS, /* lists of objects, or of what by() gives */
    GROUP_COUNTS,
    GROUP_STREAM,
};

/* What was gathered under a name; shared by all steps of that name. */
struct gremlin_group_state {
    struct gremlin_value index; /* a map: key to its number */
    struct group_entry *entries;
    size_t count, capacity;
    const struct gremlin_by *value; /* of the first step; NULL: the objects */
    enum group_form form;
    struct gremlin_pile streams; /* traversers kept for a traversal, by group */
    bool being_read;
};

struct group {
    struct gremlin_step step;
    struct slice name; /* data NULL: it is the stream's */
    struct gremlin_by key, value;
    bool has_key, has_value;
    enum group_form form;
    struct gremlin_group_state own;
    struct gremlin_side_effect *effect;
};

static struct gremlin_group_state *group_state(struct gremlin_run *run, struct group *group)
{
    struct gremlin_group_state *state = &group->own;

    if (group->effect) {
        if (!group->effect->group)
            group->effect->group = ARENA_NEW(run->arena, struct gremlin_group_state);
        state = group->effect->group;
    }
    if (gremlin_is_null(state->index)) {
        state->index = gremlin_map_new(run->heap);
        state->form = group->form;
        gremlin_pile_init(&state->streams, 1, NULL);
        state->value = group->has_value ? &group->value : NULL;
    }
    return state;
}

static struct group_entry *group_entry(struct gremlin_run *run, struct gremlin_group_state *state,
                                       struct gremlin_value key)
{
    bool new;
    struct gremlin_row *row = gremlin_table_row(state->index, key, &new);

    if (!new)
        return &state->entries[row->value.integer];
    row->value = gremlin_long((int64_t)state->count);
    if (state->count == state->capacity) {
        size_t capacity = state->capacity ? state->capacity * 2 : 16;

        state->entries =
            gremlin_heap_grow(run->heap, state->entries, state->capacity * sizeof *state->entries,
                              capacity * sizeof *state->entries);
        state->capacity = capacity;
    }
    state->entries[state->count] = (struct group_entry){0};
    return &state->entries[state->count++];
}

static void list_append(struct gremlin_run *run, struct gremlin_value *list,
                        struct gremlin_value value, uint64_t bulk)
{
    if (gremlin_is_null(*list))
        *list = gremlin_list_new(run->heap, 1);
    for (uint64_t i = 0; i < bulk && !gremlin_heap_failed(run->heap); i++)
        gremlin_list_add(*list, value);
}

static bool group_add(struct gremlin_run *run, struct group *group,
                      const struct gremlin_walker *traverser, struct error *err)
{
    struct gremlin_group_state *state = group_state(run, group);
    struct group_entry *entry;
    struct gremlin_value key, value;
    bool found;

    if (!gremlin_by_apply(run, group->has_key ? &group->key : NULL, traverser, &key, &found, err))
        return false;
    if (!found)
        return true;
    entry = group_entry(run, state, key);
    gremlin_value_unref(key);
    switch (state->form) {
    case GROUP_COUNTS:
        entry->values.type = GREMLIN_LONG;
        entry->values.integer += (int64_t)traverser->bulk;
        return true;
    case GROUP_STREAM:
        value = gremlin_long(entry - state->entries);
        return gremlin_pile_add_take(run, &state->streams, gremlin_walker_copy(traverser), &value,
                                     err);
    case GROUP_OBJECTS:
        if (!gremlin_by_apply(run, state->value, traverser, &value, &found, err))
            return false;
        if (found) {
            list_append(run, &entry->values, value, traverser->bulk);
            gremlin_value_unref(value);
        }
        return true;
    }
    return true;
}

/* --- Results ---------------------------------------------------------------------------------- */

/* Where the start of a value's traversal gets the stream of a group from. */
struct stream {
    struct gremlin_feed feed;
    struct gremlin_pile *pile;
    struct gremlin_walker next; /* the first of another group, or of this one if it just begins */
    int64_t group;              /* its; -1: there are no more */
    int64_t wanted;
};

static bool stream_step(struct gremlin_run *run, struct stream *stream, struct error *err)
{
    struct gremlin_value key;
    bool found;

    stream->group = -1;
    if (!gremlin_pile_next(run, stream->pile, &stream->next, &key, &found, err))
        return false;
    if (found)
        stream->group = key.integer;
    return true;
}

static bool stream_feed(struct gremlin_run *run, struct gremlin_feed *feed, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct stream *stream = (struct stream *)feed;

    for (size_t given = 0; given < want && stream->group == stream->wanted; given++) {
        gremlin_walkers_push(run, out, stream->next);
        stream->next = (struct gremlin_walker){0};
        if (!stream_step(run, stream, err))
            return false;
    }
    return true;
}

/* The value of a group, whose stream is passed; *ret_found false: it has none, and is left out. */
static bool stream_value(struct gremlin_run *run, const struct gremlin_by *by,
                         struct stream *stream, struct gremlin_value *ret_value, bool *ret_found,
                         struct error *err)
{
    struct gremlin_walker first = {0};

    gremlin_part_reset(run, by->part);
    by->part->feed = &stream->feed;
    if (!gremlin_part_next(run, by->part, &first, ret_found, err)) {
        by->part->feed = NULL;
        return false;
    }
    by->part->feed = NULL;
    gremlin_part_reset(run, by->part);
    if (*ret_found)
        *ret_value = gremlin_value_take(&first.value);
    else if (by->productive) {
        *ret_value = GREMLIN_NOTHING;
        *ret_found = true;
    }
    gremlin_walker_done(&first);
    while (stream->group == stream->wanted) {
        gremlin_walker_done(&stream->next);
        if (!stream_step(run, stream, err))
            return false;
    }
    return true;
}

/* Groups are numbered as they came, and so they come here. */
static bool streams_result(struct gremlin_run *run, struct gremlin_group_state *state,
                           struct gremlin_value map, struct error *err)
{
    const struct gremlin_table *index = gremlin_table(state->index);
    struct stream stream = {.feed = {stream_feed}, .pile = &state->streams};
    bool good = gremlin_pile_finish(run, &state->streams, err) && stream_step(run, &stream, err);

    for (size_t i = 0; good && i < index->count; i++) {
        struct gremlin_value value;
        bool found = false;

        stream.wanted = index->rows[i].value.integer;
        good = stream_value(run, state->value, &stream, &value, &found, err);
        if (good && found)
            gremlin_map_put_take(map, index->rows[i].key, value);
    }
    if (stream.group >= 0)
        gremlin_walker_done(&stream.next);
    return good;
}

bool gremlin_group_result(struct gremlin_run *run, struct gremlin_group_state *state,
                          struct gremlin_value *ret_map, struct error *err)
{
    struct gremlin_value map = gremlin_map_new(run->heap);
    const struct gremlin_table *index;

    *ret_map = map;
    if (!state || gremlin_is_null(state->index))
        return true;
    if (state->form == GROUP_STREAM) {
        bool good;

        if (state->being_read)
            return FAIL(err, "the values of a group() cannot be made of the group itself");
        state->being_read = true;
        good = streams_result(run, state, map, err);
        state->being_read = false;
        return good;
    }
    index = gremlin_table(state->index);
    for (size_t i = 0; i < index->count; i++) {
        struct gremlin_value values = state->entries[index->rows[i].value.integer].values;

        /* What by('key') finds is folded, and nothing folded is an empty list. */
        gremlin_map_put_take(map, index->rows[i].key,
                             gremlin_is_null(values) ? gremlin_list_new(run->heap, 0)
                                                     : gremlin_value_ref(values));
    }
    return true;
}

void gremlin_group_clear(struct gremlin_run *run, struct gremlin_group_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        gremlin_value_unref(state->entries[i].values);
    gremlin_pile_done(run, &state->streams);
    if (state->entries)
        gremlin_heap_release(run->heap, state->entries, state->capacity * sizeof *state->entries);
    gremlin_value_unref(state->index);
    *state = (struct gremlin_group_state){0};
}

static bool group_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                       struct gremlin_walkers *out, struct error *err)
{
    struct group *group = (struct group *)step;
    uint32_t loops[LOOPS_DEPTH_MAX] = {0};
    struct gremlin_value map;

    if (step->emitted)
        return true;
    for (;;) {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        if (!step->pending.count)
            break;
        if (!gremlin_step_look_ahead(run, step, &step->pending, 0, err))
            return false;
        for (size_t i = 0; i < step->pending.count; i++)
            if (!group_add(run, group, &step->pending.items[i], err))
                return false;
        gremlin_step_forget_ahead(run, step);
        memcpy(loops, step->pending.items[0].loops, sizeof loops);
    }
    step->emitted = true;
    if (!gremlin_group_result(run, &group->own, &map, err))
        return false;
    gremlin_group_clear(run, &group->own);
    gremlin_reduced_push(run, step, map, loops, out);
    return true;
}

static bool group_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    return group_add(run, (struct group *)step, traverser, err);
}

static void group_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    gremlin_group_clear(run, &((struct group *)step)->own);
}

static const struct gremlin_step_kind step_group = {.name = "group",
                                                    .flags = STEP_BARRIER | STEP_ORDER_FREE,
                                                    .pull = group_pull,
                                                    .reset = group_reset};
static const struct gremlin_step_kind step_group_effect = {
    .name = "groupSideEffect", .flags = STEP_FILTERS | STEP_SIDE_EFFECT, .one = group_one};

static bool group_begin(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        struct group *group, struct error *err)
{
    if (raw->count) {
        if (!gremlin_argument_text(raw, 0, &group->name, err))
            return false;
        group->effect = gremlin_side_effect_get(compiler->run, group->name);
        group->effect->grouped = true;
    }
    group->step.local = true;
    raw->by_taken = true;
    if (raw->by_count) {
        group->has_key = true;
        if (!gremlin_compile_by(compiler, raw->by[0], &group->key, err))
            return false;
        if (group->key.part)
            gremlin_step_own(compiler, &group->step, group->key.part);
    }
    return true;
}

/* by(count()) alone. */
static bool part_counts(const struct gremlin_instruction *by)
{
    const struct gremlin_traversal *traversal;

    if (by->count != 1 || !gremlin_argument_is_traversal(by->arguments[0]))
        return false;
    traversal = gremlin_argument_traversal(by->arguments[0]);
    return traversal->steps.count == 1 && !traversal->steps.items[0].count &&
           slice_equal(traversal->steps.items[0].name, SLICE("count"));
}

bool compile_group(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct group *group =
        STEP_ADD(compiler, raw, raw->count ? &step_group_effect : &step_group, struct group);

    if (raw->by_count > 2)
        return REFUSE(err, "The key and value traversals for group()-step have already been set");
    if (!group_begin(compiler, raw, group, err))
        return false;
    if (raw->by_count < 2)
        return true;
    if (part_counts(raw->by[1])) {
        group->form = GROUP_COUNTS;
        return true;
    }
    group->has_value = true;
    if (!gremlin_compile_by(compiler, raw->by[1], &group->value, err))
        return false;
    if (group->value.part) {
        group->form = GROUP_STREAM;
        gremlin_step_own(compiler, &group->step, group->value.part);
    }
    return true;
}

bool compile_group_count(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    struct group *group =
        STEP_ADD(compiler, raw, raw->count ? &step_group_effect : &step_group, struct group);

    group->form = GROUP_COUNTS;
    if (raw->by_count > 1)
        return REFUSE(err, "The key traversal for groupCount()-step has already been set");
    return group_begin(compiler, raw, group, err);
}

/* --- tree ------------------------------------------------------------------------------------ */

struct tree {
    struct gremlin_step step;
    struct gremlin_side_effect *effect; /* NULL: of the stream */
    struct gremlin_value tree;
};

static bool tree_add(struct gremlin_run *run, struct gremlin_step *step, struct gremlin_value tree,
                     const struct gremlin_walker *traverser, struct error *err)
{
    struct gremlin_trail_nodes nodes;
    bool good = true;

    if (!gremlin_trail_section(run, traverser, SLICE_NONE, SLICE_NONE, &nodes, err))
        return false;
    for (size_t i = 0; good && i < nodes.count; i++) {
        struct gremlin_value key;
        bool found;

        good = gremlin_by_apply_value(run, gremlin_step_by(step, i), traverser,
                                      nodes.nodes[i]->value, &key, &found, err);
        if (good && found) {
            tree = gremlin_tree_branch(tree, key);
            gremlin_value_unref(key);
        }
    }
    gremlin_trail_release(run, &nodes);
    return good;
}

static bool tree_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                      struct gremlin_walkers *out, struct error *err)
{
    struct tree *tree = (struct tree *)step;
    uint32_t loops[LOOPS_DEPTH_MAX] = {0};

    if (step->emitted)
        return true;
    tree->tree = gremlin_table_new(run->heap, GREMLIN_TREE, 0);
    for (;;) {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        if (!step->pending.count)
            break;
        for (size_t i = 0; i < step->pending.count; i++)
            if (!tree_add(run, step, tree->tree, &step->pending.items[i], err))
                return false;
    }
    step->emitted = true;
    gremlin_reduced_push(run, step, gremlin_value_take(&tree->tree), loops, out);
    return true;
}

static bool tree_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct tree *tree = (struct tree *)step;

    if (tree->effect->value.type != GREMLIN_TREE)
        gremlin_value_replace_take(&tree->effect->value,
                                   gremlin_table_new(run->heap, GREMLIN_TREE, 0));
    return tree_add(run, step, tree->effect->value, traverser, err);
}

static void tree_reset(struct gremlin_run *run UNUSED, struct gremlin_step *step)
{
    gremlin_value_replace_take(&((struct tree *)step)->tree, GREMLIN_NOTHING);
}

static const struct gremlin_step_kind step_tree = {.name = "tree",
                                                   .flags = STEP_BARRIER | STEP_NEEDS_PATH,
                                                   .pull = tree_pull,
                                                   .reset = tree_reset};
static const struct gremlin_step_kind step_tree_effect = {.name = "treeSideEffect",
                                                          .flags = STEP_FILTERS | STEP_SIDE_EFFECT |
                                                                   STEP_NEEDS_PATH,
                                                          .one = tree_one};

bool compile_tree(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct tree *tree =
        STEP_ADD(compiler, raw, raw->count ? &step_tree_effect : &step_tree, struct tree);
    struct slice name;

    if (!raw->count)
        return true;
    if (!gremlin_argument_text(raw, 0, &name, err))
        return false;
    tree->effect = gremlin_side_effect_get(compiler->run, name);
    tree->effect->treed = true;
    return true;
}
