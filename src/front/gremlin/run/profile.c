/* profile(), executionProfile() and explain(): what a run did, and what it would do. */
#include "base/clock.h"
#include "front/gremlin/run/compile_private.h"

static void put(struct gremlin_run *run, struct gremlin_value map, const char *name,
                struct gremlin_value value) /* taken */
{
    struct gremlin_value key = gremlin_string(run->heap, slice_of_text(name));

    gremlin_map_put_take(map, key, value);
    gremlin_value_unref(key);
}

static struct gremlin_value text_of(struct gremlin_run *run, const char *text)
{
    return gremlin_string(run->heap, slice_of_text(text));
}

/* --- The text of a traversal ----------------------------------------------------------------- */

static void instructions_write(const struct gremlin_instructions *list, struct buf *text);

static void argument_write(struct gremlin_value value, struct buf *text)
{
    if (value.type == GREMLIN_TRAVERSAL) {
        BUF_APPEND(text, "__");
        instructions_write(&gremlin_argument_traversal(value)->steps, text);
    } else if (gremlin_is_string(value)) {
        BUF_APPEND(text, "'");
        buf_append_slice(text, gremlin_bytes(value));
        BUF_APPEND(text, "'");
    } else {
        gremlin_value_write_text(value, text);
    }
}

static void instructions_write(const struct gremlin_instructions *list, struct buf *text)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct gremlin_instruction *in = &list->items[i];

        BUF_APPEND(text, ".");
        buf_append_slice(text, in->name);
        BUF_APPEND(text, "(");
        for (size_t j = 0; j < in->count; j++) {
            if (j)
                BUF_APPEND(text, ",");
            argument_write(in->arguments[j], text);
        }
        BUF_APPEND(text, ")");
    }
}

static struct gremlin_value traversal_text(struct gremlin_run *run,
                                           const struct gremlin_traversal *traversal)
{
    struct gremlin_value value;
    struct buf text;

    if (run->options->text.len)
        return gremlin_string(run->heap, run->options->text);
    buf_init(&text, 1 << 16);
    BUF_APPEND(&text, "g");
    instructions_write(&traversal->sources, &text);
    instructions_write(&traversal->steps, &text);
    value = gremlin_string(run->heap, buf_slice(&text));
    buf_done(&text);
    return value;
}

/* --- explain --------------------------------------------------------------------------------- */

/* Does the step ask for edges into vertices? There is more than one way to them. */
static bool comes_in(const struct gremlin_step *step)
{
    static const char *const names[] = {"in", "inE", "both", "bothE"};

    for (size_t i = 0; step->instruction && i < ARRAY_LEN(names); i++)
        if (slice_equal(step->instruction->name, slice_of_text(names[i])))
            return true;
    return false;
}

static void part_write(const struct gremlin_run *run, const struct gremlin_part *part,
                       struct buf *text)
{
    bool first = true;

    BUF_APPEND(text, "[");
    for (const struct gremlin_step *step = part->start->next; step; step = step->next) {
        if (!first)
            BUF_APPEND(text, ", ");
        first = false;
        buf_append_text(text, step->kind->name);
        if (step->instruction &&
            !slice_equal(step->instruction->name, slice_of_text(step->kind->name))) {
            BUF_APPEND(text, ":");
            buf_append_slice(text, step->instruction->name);
        }
        if (comes_in(step)) {
            BUF_APPEND(text, " by ");
            buf_append_text(text, gremlin_graph_way_in(run->graph));
        }
        if (step->part_count)
            BUF_APPEND(text, "(");
        for (size_t i = 0; i < step->part_count; i++)
            part_write(run, step->parts[i], text);
        if (step->part_count)
            BUF_APPEND(text, ")");
    }
    BUF_APPEND(text, "]");
}

struct gremlin_value gremlin_run_explain(struct gremlin_run *run,
                                         const struct gremlin_traversal *traversal)
{
    struct gremlin_value map = gremlin_map_new(run->heap), report;
    struct buf text;

    buf_init(&text, 1 << 20);
    part_write(run, run->root, &text);
    put(run, map, "original", traversal_text(run, traversal));
    put(run, map, "intermediate", gremlin_list_new(run->heap, 0));
    put(run, map, "final", gremlin_string(run->heap, buf_slice(&text)));
    buf_done(&text);
    report = gremlin_report_new(run->heap, GREMLIN_EXPLANATION, map);
    gremlin_value_unref(map);
    return report;
}

bool compile_explain(struct gremlin_compiler *compiler, struct gremlin_raw *raw UNUSED,
                     struct error *err)
{
    if (compiler->outer || compiler->index + 1 != compiler->count)
        return REFUSE(err, "explain() stands at the end of a traversal");
    compiler->run->explained = true;
    return true;
}

/* --- profile --------------------------------------------------------------------------------- */

/* What a step took by itself: without the steps it pulled from. */
static uint64_t step_own_ns(const struct gremlin_step *step)
{
    uint64_t before = step->previous ? step->previous->ns : 0;

    return step->ns > before ? step->ns - before : 0;
}

static struct gremlin_value step_name(struct gremlin_run *run, const struct gremlin_step *step)
{
    struct gremlin_value name;
    struct buf text;

    buf_init(&text, 4096);
    if (step->instruction) {
        buf_append_slice(&text, step->instruction->name);
        BUF_APPEND(&text, "(");
        for (size_t i = 0; i < step->instruction->count && text.len < 1024; i++) {
            if (i)
                BUF_APPEND(&text, ",");
            argument_write(step->instruction->arguments[i], &text);
        }
        BUF_APPEND(&text, ")");
    } else {
        buf_append_text(&text, step->kind->name);
    }
    name = gremlin_string(run->heap, buf_slice(&text));
    buf_done(&text);
    return name;
}

static struct gremlin_value step_metrics(struct gremlin_run *run, const struct gremlin_step *step,
                                         uint64_t total, size_t number, unsigned depth)
{
    struct gremlin_value map = gremlin_map_new(run->heap), counts = gremlin_map_new(run->heap);
    struct gremlin_value annotations = gremlin_map_new(run->heap), nested;
    uint64_t ns = step_own_ns(step);
    char id[32];

    snprintf(id, sizeof id, "%zu.0.0()", number);
    put(run, map, "id", text_of(run, id));
    put(run, map, "name", step_name(run, step));
    put(run, map, "dur", gremlin_double((double)ns / 1e6));
    put(run, counts, "traverserCount", gremlin_long((int64_t)step->traversers));
    put(run, counts, "elementCount", gremlin_long((int64_t)step->elements));
    put(run, map, "counts", counts);
    put(run, annotations, "percentDur",
        gremlin_double(total ? (double)ns * 100.0 / (double)total : 0));
    if (comes_in(step))
        put(run, annotations, "edges", text_of(run, gremlin_graph_way_in(run->graph)));
    put(run, map, "annotations", annotations);
    if (step->part_count && depth < 16) {
        nested = gremlin_list_new(run->heap, 0);
        for (size_t i = 0; i < step->part_count; i++)
            for (const struct gremlin_step *below = step->parts[i]->start->next; below;
                 below = below->next)
                gremlin_list_add_take(nested, step_metrics(run, below, total, i, depth + 1));
        put(run, map, "metrics", nested);
    }
    return map;
}

static struct gremlin_value profile_report(struct gremlin_run *run, const struct gremlin_step *last)
{
    struct gremlin_value map = gremlin_map_new(run->heap);
    struct gremlin_value metrics = gremlin_list_new(run->heap, 0), report;
    uint64_t total = last->previous->ns;
    size_t number = 0;

    for (const struct gremlin_step *step = last->part->start->next; step && step != last;
         step = step->next)
        gremlin_list_add_take(metrics, step_metrics(run, step, total, number++, 0));
    put(run, map, "dur", gremlin_double((double)total / 1e6));
    put(run, map, "metrics", metrics);
    report = gremlin_report_new(run->heap, GREMLIN_METRICS, map);
    gremlin_value_unref(map);
    return report;
}

struct profile {
    struct gremlin_step step;
    struct gremlin_side_effect *effect; /* NULL: the result is the report */
    bool execution;                     /* as the hosted service shows it */
};

/* --- executionProfile ------------------------------------------------------------------------ */

static const char *operator_name(const struct gremlin_step *step)
{
    static const struct {
        const char *step, *name;
    } names[] = {
        {"V", "GetVertices"},
        {"E", "GetEdges"},
        {"out", "GetNeighborVertices"},
        {"in", "GetNeighborVertices"},
        {"both", "GetNeighborVertices"},
        {"outE", "GetEdges"},
        {"inE", "GetEdges"},
        {"bothE", "GetEdges"},
        {"outV", "GetNeighborVertices"},
        {"inV", "GetNeighborVertices"},
        {"bothV", "GetNeighborVertices"},
        {"otherV", "GetNeighborVertices"},
        {"coalesce", "Coalesce"},
        {"inject", "ConstantSourceOperator"},
        {"constant", "ConstantSourceOperator"},
        {"count", "ProjectAggregation"},
        {"sum", "ProjectAggregation"},
        {"min", "ProjectAggregation"},
        {"max", "ProjectAggregation"},
        {"mean", "ProjectAggregation"},
        {"fold", "ProjectAggregation"},
        {"group", "ProjectAggregation"},
        {"groupCount", "ProjectAggregation"},
        {"union", "CartesianProductOperator"},
    };

    for (size_t i = 0; step->instruction && i < sizeof names / sizeof *names; i++)
        if (slice_equal(step->instruction->name, slice_of_text(names[i].step)))
            return names[i].name;
    return "ProjectOperator";
}

static bool reads_store(const struct gremlin_step *step)
{
    const char *name = operator_name(step);

    return strncmp(name, "Get", 3) == 0;
}

static struct gremlin_value execution_report(struct gremlin_run *run,
                                             const struct gremlin_step *last)
{
    struct gremlin_graph_figures figures = gremlin_graph_figures(run->graph);
    struct gremlin_value map = gremlin_map_new(run->heap);
    struct gremlin_value metrics = gremlin_list_new(run->heap, 0);
    uint64_t total = last->previous->ns;
    bool stored = false;

    put(run, map, "gremlin", traversal_text(run, last->part->traversal));
    put(run, map, "totalTime", gremlin_long((int64_t)(total / 1000000)));
    for (const struct gremlin_step *step = last->part->start->next; step && step != last;
         step = step->next) {
        struct gremlin_value one = gremlin_map_new(run->heap);
        struct gremlin_value below = gremlin_map_new(run->heap);
        uint64_t ns = step_own_ns(step);

        put(run, one, "name", text_of(run, operator_name(step)));
        put(run, one, "time", gremlin_long((int64_t)(ns / 1000000)));
        put(run, below, "percentTime",
            gremlin_double(total ? (double)ns * 100.0 / (double)total : 0));
        put(run, one, "annotations", below);
        below = gremlin_map_new(run->heap);
        put(run, below, "resultCount", gremlin_long((int64_t)step->elements));
        put(run, one, "counts", below);
        if (reads_store(step)) {
            struct gremlin_value operations = gremlin_list_new(run->heap, 1);

            below = gremlin_map_new(run->heap);
            /* what the graph read in all stands at the first step that reads */
            put(run, below, "fanoutFactor",
                gremlin_long(
                    stored || !figures.reads ? 1 : (int64_t)(figures.partitions / figures.reads)));
            put(run, below, "count", gremlin_long((int64_t)step->elements));
            put(run, below, "size", gremlin_long(stored ? 0 : (int64_t)figures.bytes));
            put(run, below, "time", gremlin_double((double)ns / 1e6));
            stored = true;
            gremlin_list_add_take(operations, below);
            put(run, one, "storeOps", operations);
        }
        gremlin_list_add_take(metrics, one);
    }
    put(run, map, "metrics", metrics);
    put(run, map, "requestCharge", gremlin_double((double)figures.charge_cru / 100.0));
    return map;
}

static bool profile_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                         struct gremlin_walkers *out, struct error *err)
{
    struct profile *profile = (struct profile *)step;
    uint32_t loops[LOOPS_DEPTH_MAX] = {0};
    size_t from = out->count;

    if (profile->effect) {
        if (!gremlin_step_pull(run, step->previous, want, out, err))
            return false;
        if (out->count == from)
            gremlin_value_replace_take(&profile->effect->value, profile_report(run, step));
        return true;
    }
    if (step->emitted)
        return true;
    do {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
    } while (step->pending.count);
    step->emitted = true;
    gremlin_reduced_push(
        run, step, profile->execution ? execution_report(run, step) : profile_report(run, step),
        loops, out);
    return true;
}

static const struct gremlin_step_kind step_profile = {
    .name = "profile", .flags = STEP_BARRIER, .pull = profile_pull};
static const struct gremlin_step_kind step_profile_effect = {
    .name = "profile", .flags = STEP_SIDE_EFFECT | STEP_FILTERS, .pull = profile_pull};

bool compile_profile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct profile *profile =
        STEP_ADD(compiler, raw, raw->count ? &step_profile_effect : &step_profile, struct profile);
    struct slice name;

    if (compiler->outer)
        return REFUSE(err, "profile() stands in no child traversal");
    compiler->run->profiled = true;
    if (!raw->count)
        return compiler->index + 1 == compiler->count ||
               REFUSE(err, "profile() must be the last step, or have a side effect's name");
    if (!gremlin_argument_text(raw, 0, &name, err))
        return false;
    profile->effect = gremlin_side_effect_get(compiler->run, name);
    return true;
}

bool compile_execution_profile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                               struct error *err)
{
    struct profile *profile = STEP_ADD(compiler, raw, &step_profile, struct profile);

    if (compiler->outer || compiler->index + 1 != compiler->count)
        return REFUSE(err, "executionProfile() stands at the end of a traversal");
    compiler->run->profiled = true;
    profile->execution = true;
    return true;
}
