/* One run: options become limits, sources and steps become a plan, and its results go to the sink
 * in batches. */
#include "front/gremlin/run/compile_private.h"
#include "query/spool/spill.h"

enum { BATCH_DEFAULT = 64 };

void gremlin_outcome_done(struct gremlin_outcome *outcome)
{
    gremlin_value_unref(outcome->fail_message);
    outcome->fail_message = GREMLIN_NOTHING;
}

static void run_init(struct gremlin_run *run, const struct gremlin_run_options *options)
{
    struct query_limits limits = {.work_max = options->limits.work_max,
                                  .deadline_ms = options->limits.deadline_ms};

    run->arena = arena_new();
    run->scratch = arena_new();
    query_context_init(&run->context, run->scratch, &limits, options->clock);
    run->context.cancelled = options->cancelled;
    run->context.breath = options->breath;
    run->spill = query_spill_budget_new(options->spill);
    gremlin_graph_packing(run->graph, &run->packing);
    run->v38 = options->version >= GREMLIN_VERSION_3_8;
    run->bulks = true;
    if (options->seed)
        gremlin_run_seed(run, options->seed);
}

void gremlin_run_seed(struct gremlin_run *run, uint64_t seed)
{
    random_seed(&run->random, seed);
    run->seeded = true;
}

/* Asked for by few runs, and a call of the system. */
struct random *gremlin_run_random(struct gremlin_run *run)
{
    uint64_t seed;

    if (!run->seeded) {
        random_secret(&seed, sizeof seed);
        gremlin_run_seed(run, seed);
    }
    return &run->random;
}

static void run_done(struct gremlin_run *run)
{
    for (struct gremlin_step *step = run->steps; step; step = step->all) {
        gremlin_step_reset(run, step);
        gremlin_walkers_done(run, &step->pending);
        if (step->kind == &step_expand)
            gremlin_expand_forget(run, step);
    }
    for (struct gremlin_side_effect *effect = run->side_effects; effect; effect = effect->next) {
        gremlin_value_unref(effect->value);
        if (effect->group)
            gremlin_group_clear(run, effect->group);
    }
    gremlin_packing_done(&run->packing);
    query_spill_budget_unref(run->spill);
    gremlin_value_unref(run->sack_seed);
    query_context_done(&run->context);
    arena_free(run->scratch);
    arena_free(run->arena);
}

/* --- Results --------------------------------------------------------------------------------- */

/* Results on their way to the sink. */
struct results {
    struct gremlin_run *run;
    const struct gremlin_sink *sink;
    struct gremlin_value *values;
    uint64_t *bulks;
    size_t count, max;
    uint64_t left;             /* to be given; UINT64_MAX: all */
    struct gremlin_value seen; /* of toSet(): a set */
};

static bool results_flush(struct results *results, struct error *err)
{
    struct gremlin_run *run = results->run;
    bool good;

    if (!results->count)
        return true;
    good = results->sink->take(results->sink->self, results->values,
                               run->options->bulked ? results->bulks : NULL, results->count, err);
    for (size_t i = 0; i < results->count; i++)
        gremlin_value_unref(results->values[i]);
    results->count = 0;
    return good;
}

static bool results_put(struct results *results, struct gremlin_value value, uint64_t bulk,
                        struct error *err)
{
    struct gremlin_run *run = results->run;
    uint64_t max = run->options->limits.results_max;

    run->outcome->results += bulk;
    if (max && run->outcome->results > max)
        return error_set(err, ERROR_QUERY_LIMIT, "the traversal has more than %llu results",
                         (unsigned long long)max);
    results->values[results->count] = gremlin_value_ref(value);
    results->bulks[results->count++] = bulk;
    return results->count < results->max || results_flush(results, err);
}

static bool results_take(struct results *results, struct gremlin_walker *traverser,
                         struct error *err)
{
    uint64_t bulk = traverser->bulk < results->left ? traverser->bulk : results->left;

    if (results->seen.type == GREMLIN_SET) {
        if (!gremlin_set_add(results->seen, traverser->value))
            return true;
        bulk = 1;
    }
    if (results->left != UINT64_MAX)
        results->left -= bulk;
    if (results->run->options->bulked)
        return !bulk || results_put(results, traverser->value, bulk, err);
    for (uint64_t i = 0; i < bulk; i++)
        if (!query_work(&results->run->context, 1, err) ||
            !results_put(results, traverser->value, 1, err))
            return false;
    return true;
}

static bool results_all(struct results *results, bool ignored, struct error *err)
{
    struct gremlin_run *run = results->run;
    struct gremlin_walkers batch = {0};
    bool good = true;

    while (good && results->left) {
        size_t want = results->left < PULL_ALL ? (size_t)results->left : PULL_ALL;

        gremlin_walkers_clear(&batch);
        good = gremlin_step_pull(run, run->root->end, want, &batch, err);
        if (!good || !batch.count)
            break;
        for (size_t i = 0; good && !ignored && i < batch.count && results->left; i++)
            good = results_take(results, &batch.items[i], err);
    }
    gremlin_walkers_done(run, &batch);
    return good && results_flush(results, err);
}

static bool results_exist(struct results *results, struct error *err)
{
    struct gremlin_walker first = {0};
    bool found;

    if (!gremlin_part_next(results->run, results->run->root, &first, &found, err))
        return false;
    gremlin_walker_done(&first);
    return results_put(results, gremlin_boolean(found), 1, err) && results_flush(results, err);
}

static bool run_results(struct gremlin_run *run, const struct gremlin_traversal *traversal,
                        const struct gremlin_sink *sink, struct error *err)
{
    size_t max = run->options->batch ? run->options->batch : BATCH_DEFAULT;
    struct results results = {.run = run, .sink = sink, .max = max, .left = UINT64_MAX};

    if (max > 65536)
        max = results.max = 65536;
    results.values = ARENA_ARRAY(run->arena, struct gremlin_value, max + 1);
    results.bulks = ARENA_ARRAY(run->arena, uint64_t, max + 1);
    bool good;

    switch (traversal->terminal) {
    case GREMLIN_HAS_NEXT:
        good = results_exist(&results, err);
        break;
    case GREMLIN_NEXT:
        results.left = traversal->amount ? traversal->amount : 1;
        good = results_all(&results, false, err);
        break;
    case GREMLIN_TRY_NEXT:
        results.left = 1;
        good = results_all(&results, false, err);
        break;
    case GREMLIN_TO_SET:
        results.seen = gremlin_set_new(run->heap);
        good = results_all(&results, false, err);
        break;
    default:
        good = results_all(&results, traversal->terminal == GREMLIN_ITERATE, err);
        break;
    }
    for (size_t i = 0; i < results.count; i++)
        gremlin_value_unref(results.values[i]);
    gremlin_value_unref(results.seen);
    return good;
}

/* --- Running --------------------------------------------------------------------------------- */

static bool run_compile(struct gremlin_run *run, const struct gremlin_traversal *traversal,
                        struct error *err)
{
    struct gremlin_compiler compiler = {.run = run};

    if (!gremlin_compile_sources(&compiler, traversal, err) ||
        !gremlin_compile_part(&compiler, traversal, (struct gremlin_part_options){0}, &run->root,
                              err))
        return false;
    /* The first step gets one traverser without an object to begin with. */
    gremlin_part_add(run, run->root,
                     (struct gremlin_walker){.bulk = 1, .sack = gremlin_value_ref(run->sack_seed)});
    return true;
}

static bool run_whole(struct gremlin_run *run, const struct gremlin_traversal *traversal,
                      const struct gremlin_sink *sink, struct error *err)
{
    if (!traversal->steps.count)
        return true;
    if (!run_compile(run, traversal, err))
        return false;
    if (traversal->terminal == GREMLIN_EXPLAIN || run->explained) {
        struct gremlin_value text = gremlin_run_explain(run, traversal);
        bool good = sink->take(sink->self, &text, NULL, 1, err);

        gremlin_value_unref(text);
        run->outcome->results = 1;
        return good;
    }
    return run_results(run, traversal, sink, err);
}

bool gremlin_run(struct gremlin_graph *graph, struct gremlin_heap *heap,
                 const struct gremlin_traversal *traversal,
                 const struct gremlin_run_options *options, const struct gremlin_sink *sink,
                 struct gremlin_outcome *ret_outcome, struct error *err)
{
    struct gremlin_run run = {
        .graph = graph, .heap = heap, .options = options, .outcome = ret_outcome};
    bool good;

    *ret_outcome = (struct gremlin_outcome){.status = 200};
    run_init(&run, options);
    good = run_whole(&run, traversal, sink, err);
    ret_outcome->work = run.context.work;
    if (!good)
        ret_outcome->status = error_face(err->code)->gremlin_status;
    run_done(&run);
    return good;
}
