/* Side effects: aggregate, store, cap, subgraph. What is gathered under a name is a bulk set,
 * unless withSideEffect() gave it a seed: then its operator, or addAll, puts things together. */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/run/pile_private.h"
#include "front/gremlin/value/arithmetic.h"

bool gremlin_side_effect_value(struct gremlin_run *run, struct gremlin_side_effect *effect,
                               struct gremlin_value *ret_value, struct error *err)
{
    if (effect->group)
        return gremlin_group_result(run, effect->group, ret_value, err);
    if (!gremlin_is_null(effect->value) || effect->seeded)
        *ret_value = gremlin_value_ref(effect->value);
    else if (effect->grouped)
        *ret_value = gremlin_map_new(run->heap);
    else if (effect->treed)
        *ret_value = gremlin_table_new(run->heap, GREMLIN_TREE, 0);
    else if (effect->subgraphed)
        *ret_value = gremlin_subgraph_new(run->heap);
    else
        *ret_value = gremlin_table_new(run->heap, GREMLIN_BULK_SET, 0);
    return true;
}

static bool effect_apply(struct gremlin_run *run, struct gremlin_side_effect *effect,
                         enum gremlin_enum_word word, struct gremlin_value value, struct error *err)
{
    struct gremlin_value result;

    if (!gremlin_operator_apply(run->heap, word, effect->value, value, &result, err))
        return false;
    gremlin_value_replace_take(&effect->value, result);
    return true;
}

/* Adds count of a value. */
static bool effect_add(struct gremlin_run *run, struct gremlin_side_effect *effect,
                       struct gremlin_value value, uint64_t count, struct error *err)
{
    enum gremlin_enum_word word =
        effect->has_operator ? effect->operator.word : GREMLIN_OPERATOR_ADD_ALL;
    struct gremlin_value single;
    bool good;

    if (!effect->seeded) {
        if (gremlin_is_null(effect->value))
            effect->value = gremlin_table_new(run->heap, GREMLIN_BULK_SET, 0);
        gremlin_bulk_set_add(effect->value, value, (int64_t)count);
        return true;
    }
    if (word != GREMLIN_OPERATOR_ADD_ALL) {
        good = true;
        for (uint64_t i = 0; good && i < count; i++)
            good = query_work(&run->context, 1, err) && effect_apply(run, effect, word, value, err);
        return good;
    }
    if (effect->value.type == GREMLIN_BULK_SET) {
        gremlin_bulk_set_add(effect->value, value, (int64_t)count);
        return true;
    }
    if (!gremlin_value_iterates(effect->value)) {
        /* a seed that is no collection, and no operator: it is replaced */
        gremlin_value_replace_take(&effect->value,
                                   gremlin_table_new(run->heap, GREMLIN_BULK_SET, 0));
        gremlin_bulk_set_add(effect->value, value, (int64_t)count);
        return true;
    }
    single = gremlin_list_new(run->heap, 1);
    for (uint64_t i = 0; i < count; i++)
        gremlin_list_add(single, value);
    good = effect_apply(run, effect, word, single, err);
    gremlin_value_unref(single);
    return good;
}

struct gather {
    struct gremlin_step step;
    struct gremlin_side_effect *effect;
    struct gremlin_pile pile; /* of aggregate(): what has come, until all has */
    bool gathered;
};

static bool gather_add(struct gremlin_run *run, struct gremlin_step *step,
                       const struct gremlin_walker *traverser, struct error *err)
{
    struct gremlin_value value;
    bool found, good;

    if (!gremlin_by_apply(run, gremlin_step_by(step, 0), traverser, &value, &found, err))
        return false;
    if (!found)
        return true;
    good = effect_add(run, ((struct gather *)step)->effect, value, traverser->bulk, err);
    gremlin_value_unref(value);
    return good;
}

static bool store_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    return gather_add(run, step, traverser, err);
}

/* aggregate() takes all before it gives the first. With assign the whole becomes the value. */
static bool aggregate_batch(struct gremlin_run *run, struct gather *gather, struct error *err)
{
    struct gremlin_walkers *batch = &gather->step.pending;

    if (!gremlin_step_look_ahead(run, &gather->step, batch, 0, err))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        struct gremlin_walker taken = batch->items[i];

        if (!gather_add(run, &gather->step, &taken, err))
            return false;
        batch->items[i] = (struct gremlin_walker){0};
        if (!gremlin_pile_add_take(run, &gather->pile, taken, NULL, err))
            return false;
    }
    gremlin_step_forget_ahead(run, &gather->step);
    return true;
}

static bool aggregate_all(struct gremlin_run *run, struct gather *gather, struct error *err)
{
    struct gremlin_side_effect *effect = gather->effect;
    struct gremlin_step *step = &gather->step;
    bool assigned =
        effect->seeded && effect->has_operator && effect->operator.word == GREMLIN_OPERATOR_ASSIGN;

    gremlin_pile_done(run, &gather->pile);
    do {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        if (assigned && step->pending.count) {
            assigned = effect->seeded = false;
            gremlin_value_replace_take(&effect->value, GREMLIN_NOTHING);
        }
        if (!aggregate_batch(run, gather, err))
            return false;
    } while (step->pending.count);
    return gremlin_pile_finish(run, &gather->pile, err);
}

static bool aggregate_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                           struct gremlin_walkers *out, struct error *err)
{
    struct gather *gather = (struct gather *)step;
    size_t before = out->count;

    if (gather->gathered && !gremlin_pile_pull(run, &gather->pile, want, out, err))
        return false;
    if (out->count > before)
        return true;
    gather->gathered = false;
    if (!aggregate_all(run, gather, err))
        return false;
    gather->gathered = true;
    return gremlin_pile_pull(run, &gather->pile, want, out, err);
}

static void aggregate_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    gremlin_pile_done(run, &((struct gather *)step)->pile);
    ((struct gather *)step)->gathered = false;
}

static const struct gremlin_step_kind step_aggregate = {.name = "aggregate",
                                                        .flags = STEP_FILTERS | STEP_BARRIER |
                                                                 STEP_SIDE_EFFECT,
                                                        .pull = aggregate_pull,
                                                        .reset = aggregate_reset};
static const struct gremlin_step_kind step_store = {
    .name = "store", .flags = STEP_FILTERS | STEP_SIDE_EFFECT, .one = store_one};

static bool gather_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, bool lazy,
                           size_t from, struct error *err)
{
    struct gather *gather =
        STEP_ADD(compiler, raw, lazy ? &step_store : &step_aggregate, struct gather);
    struct slice name;

    if (raw->by_count > 1)
        return REFUSE(err, "%s() takes one by()", raw->row->name);
    if (!gremlin_argument_text(raw, from, &name, err))
        return false;
    gather->effect = gremlin_side_effect_get(compiler->run, name);
    return true;
}

bool compile_aggregate(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);

    return gather_compile(compiler, raw, local, from, err);
}

bool compile_store(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return gather_compile(compiler, raw, true, 0, err);
}

/* --- cap ------------------------------------------------------------------------------------- */

struct cap {
    struct gremlin_step step;
    const struct slice *names;
    size_t count;
};

static bool cap_value(struct gremlin_run *run, const struct cap *cap,
                      struct gremlin_value *ret_value, struct error *err)
{
    struct gremlin_side_effect *effect;
    struct gremlin_value map;

    if (cap->count == 1) {
        effect = gremlin_side_effect_find(run, cap->names[0]);
        if (!effect)
            return FAIL(err, "The side-effect key does not exist in the side-effects: %.*s",
                        SLICE_ARG(cap->names[0]));
        return gremlin_side_effect_value(run, effect, ret_value, err);
    }
    map = gremlin_map_new(run->heap);
    for (size_t i = 0; i < cap->count; i++) {
        struct gremlin_value key, value;

        effect = gremlin_side_effect_find(run, cap->names[i]);
        if (!effect)
            continue;
        if (!gremlin_side_effect_value(run, effect, &value, err))
            return false;
        key = gremlin_string(run->heap, cap->names[i]);
        gremlin_map_put_take(map, key, value);
        gremlin_value_unref(key);
    }
    *ret_value = map;
    return true;
}

static bool cap_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                     struct gremlin_walkers *out, struct error *err)
{
    uint32_t loops[LOOPS_DEPTH_MAX] = {0};
    struct gremlin_value value;

    if (step->emitted)
        return true;
    for (;;) {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        if (!step->pending.count)
            break;
    }
    step->emitted = true;
    if (!cap_value(run, (struct cap *)step, &value, err))
        return false;
    gremlin_reduced_push(run, step, value, loops, out);
    return true;
}

static const struct gremlin_step_kind step_cap = {
    .name = "cap", .flags = STEP_BARRIER | STEP_HEADS, .pull = cap_pull};

bool compile_cap(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct cap *cap = STEP_ADD(compiler, raw, &step_cap, struct cap);

    return gremlin_argument_texts(compiler, raw, 0, &cap->names, &cap->count, err);
}

/* --- subgraph -------------------------------------------------------------------------------- */

static bool subgraph_one(struct gremlin_run *run, struct gremlin_step *step,
                         struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct gremlin_side_effect *effect = ((struct gather *)step)->effect;
    struct gremlin_value ends[2];
    struct gremlin_subgraph *graph;

    if (traverser->value.type != GREMLIN_EDGE)
        return FAIL(err, "subgraph() takes edges: a %s cannot be cast to Edge",
                    gremlin_type_name(traverser->value.type));
    if (effect->value.type != GREMLIN_GRAPH)
        gremlin_value_replace_take(&effect->value, gremlin_subgraph_new(run->heap));
    graph = gremlin_subgraph(effect->value);
    if (!gremlin_set_add(graph->edges, traverser->value))
        return true;
    if (!gremlin_graph_ends(run->graph, &traverser->value, 1, GREMLIN_REACH_BOTH, false, ends, err))
        return false;
    for (size_t i = 0; i < 2; i++) {
        if (!gremlin_is_null(ends[i]))
            gremlin_set_add(graph->vertices, ends[i]);
        gremlin_value_unref(ends[i]);
    }
    return true;
}

static const struct gremlin_step_kind step_subgraph = {
    .name = "subgraph", .flags = STEP_FILTERS | STEP_SIDE_EFFECT, .one = subgraph_one};

bool compile_subgraph(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct gather *gather = STEP_ADD(compiler, raw, &step_subgraph, struct gather);
    struct slice name;

    if (!gremlin_argument_text(raw, 0, &name, err))
        return false;
    gather->effect = gremlin_side_effect_get(compiler->run, name);
    gather->effect->subgraphed = true;
    return true;
}
