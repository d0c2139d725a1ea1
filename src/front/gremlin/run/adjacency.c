/* Where elements come from: V() and E(), edges and neighbours of vertices, ends of edges.
 *
 * An expansion takes a whole batch of traversers to the graph at once and hands out page by page
 * what comes back, so that a limit behind it stops the reading. Filters that follow are conditions
 * of the graph where it can evaluate them (fold_conditions), and count() right behind becomes a
 * count of the graph. */
#include "front/gremlin/run/compile_private.h"

enum {
    CACHE_MAX = 4096, /* elements that a V() within a traversal keeps for the next traverser */
    AHEAD_MAX = 16384,
};

/* --- V() and E() ----------------------------------------------------------------------------- */

struct source {
    struct gremlin_step step;
    enum gremlin_element_kind kind;
    bool by_id;
    struct gremlin_value ids; /* a list, unrolled; null: all */
    struct gremlin_conditions conditions;
    bool counts; /* count() follows: a number comes out */

    struct gremlin_found *found;
    struct gremlin_walker input; /* whose elements come now */
    bool busy;
    struct gremlin_value cache; /* a list of what was found; null: nothing kept */
    bool cached;                /* it is all there is */
    size_t at;                  /* of the cache */
};

static bool references_gather(struct gremlin_run *run, const struct source *source,
                              struct gremlin_reference *references, size_t *ret_count)
{
    const struct gremlin_list *ids = gremlin_list(source->ids);
    struct gremlin_value seen = gremlin_set_new(run->heap);
    size_t count = 0;

    for (size_t i = 0; i < ids->count; i++) {
        struct gremlin_value pair;
        struct gremlin_reference reference;

        if (!gremlin_reference_of(run->graph, &ids->items[i], &reference))
            continue;
        pair = gremlin_list_new(run->heap, 2);
        gremlin_list_add(pair, reference.partition);
        gremlin_list_add(pair, reference.id);
        if (gremlin_set_add(seen, pair))
            references[count++] = reference;
        gremlin_value_unref(pair);
    }
    gremlin_value_unref(seen);
    *ret_count = count;
    return true;
}

static bool search_open(struct gremlin_run *run, struct source *source,
                        const struct gremlin_reference *references, size_t count, uint64_t limit,
                        struct error *err)
{
    struct gremlin_search search = {.kind = source->kind,
                                    .references = references,
                                    .reference_count = count,
                                    .conditions = source->conditions.items,
                                    .condition_count = source->conditions.count,
                                    .limit = limit};

    return gremlin_graph_search(run->graph, &search, &source->found, err);
}

/* Elements that were found by their texts: a map of lists. */
static bool found_by_id(struct gremlin_run *run, struct source *source, struct gremlin_value map,
                        struct error *err)
{
    struct gremlin_page page;

    do {
        if (!gremlin_found_next(source->found, 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            bool new;
            struct gremlin_row *row =
                gremlin_table_row(map, gremlin_element(page.elements[i])->id, &new);

            if (new)
                row->value = gremlin_list_new(run->heap, 1);
            gremlin_list_add(row->value, page.elements[i]);
        }
    } while (page.count);
    gremlin_found_free(source->found);
    source->found = NULL;
    return true;
}

static bool partition_fits(struct gremlin_value wanted, struct gremlin_value element)
{
    return gremlin_is_null(wanted) || gremlin_is_null(gremlin_element(element)->partition) ||
           gremlin_equal(wanted, gremlin_element(element)->partition);
}

/* As V('a', 'b', 'a') names them: in that order, each as often, those that are missing left out. */
static void found_in_order(struct gremlin_run *run, struct source *source, struct gremlin_value map)
{
    const struct gremlin_list *ids = gremlin_list(source->ids);

    for (size_t i = 0; i < ids->count; i++) {
        struct gremlin_reference reference;
        struct gremlin_value text;
        const struct gremlin_value *found;

        if (!gremlin_reference_of(run->graph, &ids->items[i], &reference) ||
            !gremlin_id_text(run->heap, &reference.id, &text))
            continue;
        found = gremlin_map_get(map, text);
        for (size_t j = 0; found && j < gremlin_list(*found)->count; j++)
            if (partition_fits(reference.partition, gremlin_list(*found)->items[j]))
                gremlin_list_add(source->cache, gremlin_list(*found)->items[j]);
        gremlin_value_unref(text);
    }
}

static bool source_look_up(struct gremlin_run *run, struct source *source, struct error *err)
{
    size_t max = gremlin_list(source->ids)->count, count;
    struct gremlin_reference *references =
        gremlin_heap_alloc(run->heap, (max + 1) * sizeof *references);
    struct gremlin_value map = gremlin_map_new(run->heap);
    bool good = references_gather(run, source, references, &count);

    source->cache = gremlin_list_new(run->heap, count);
    if (good && count) {
        good = search_open(run, source, references, count, 0, err) &&
               found_by_id(run, source, map, err);
        if (good)
            found_in_order(run, source, map);
    }
    gremlin_value_unref(map);
    gremlin_heap_release(run->heap, references, (max + 1) * sizeof *references);
    source->cached = good;
    return good;
}

static void source_end(struct gremlin_run *run, struct source *source)
{
    gremlin_found_free(source->found);
    source->found = NULL;
    gremlin_walker_done(&source->input);
    source->busy = false;
    source->at = 0;
    if (!source->cached || run->plan_writes) {
        gremlin_value_replace_take(&source->cache, GREMLIN_NOTHING);
        source->cached = false;
    }
}

/* One traverser more to give all elements to. */
static bool source_begin(struct gremlin_run *run, struct source *source, bool *ret_found,
                         struct error *err)
{
    struct gremlin_step *step = &source->step;

    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (!(step->eager ? gremlin_step_drain(run, step, &step->pending, err)
                          : gremlin_step_pull(run, step->previous, 1, &step->pending, err)))
            return false;
    }
    *ret_found = step->at < step->pending.count;
    if (!*ret_found)
        return true;
    source->input = step->pending.items[step->at];
    step->pending.items[step->at++] = (struct gremlin_walker){0};
    source->busy = true;
    source->at = 0;
    if (source->cached)
        return true;
    if (source->by_id)
        return source_look_up(run, source, err);
    return search_open(run, source, NULL, 0, 0, err);
}

static bool source_page(struct gremlin_run *run, struct source *source, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_page page;

    if (!gremlin_found_next(source->found, want < PULL_ALL ? want : 0, &page, err))
        return false;
    if (gremlin_is_null(source->cache) && !run->plan_writes && source->step.previous->previous)
        source->cache = gremlin_list_new(run->heap, 0);
    for (size_t i = 0; i < page.count; i++) {
        gremlin_walkers_push(run, out,
                             gremlin_walker_split(run, &source->input,
                                                  gremlin_value_ref(page.elements[i]),
                                                  &source->step));
        if (source->cache.type == GREMLIN_LIST && gremlin_list(source->cache)->count <= CACHE_MAX)
            gremlin_list_add(source->cache, page.elements[i]);
    }
    if (!page.count) {
        source->cached =
            source->cache.type == GREMLIN_LIST && gremlin_list(source->cache)->count <= CACHE_MAX;
        source_end(run, source);
    }
    return true;
}

static bool source_count(struct gremlin_run *run, struct source *source,
                         struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_search search = {.kind = source->kind,
                                    .conditions = source->conditions.items,
                                    .condition_count = source->conditions.count};
    struct gremlin_walkers input = {0};
    uint64_t total = 0, count;

    if (source->step.emitted)
        return true;
    if (!gremlin_step_drain(run, &source->step, &input, err))
        return false;
    source->step.emitted = true;
    if (input.count && !gremlin_graph_count(run->graph, &search, &count, err))
        return false;
    for (size_t i = 0; i < input.count; i++)
        total += count * input.items[i].bulk;
    gremlin_walkers_push(run, out,
                         (struct gremlin_walker){.value = gremlin_long((int64_t)total), .bulk = 1});
    gremlin_walker_set(run, &out->items[out->count - 1], gremlin_long((int64_t)total),
                       &source->step);
    gremlin_walkers_done(run, &input);
    return true;
}

static bool source_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct source *source = (struct source *)step;
    size_t from = out->count;

    if (source->counts)
        return source_count(run, source, out, err);
    while (out->count == from) {
        bool found;

        if (!source->busy) {
            if (!source_begin(run, source, &found, err))
                return false;
            if (!found)
                return true;
        }
        if (source->found) {
            if (!source_page(run, source, want, out, err))
                return false;
            continue;
        }
        const struct gremlin_list *cache = gremlin_list(source->cache);

        for (size_t given = 0; given < want && source->at < cache->count; given++)
            gremlin_walkers_push(run, out,
                                 gremlin_walker_split(run, &source->input,
                                                      gremlin_value_ref(cache->items[source->at++]),
                                                      step));
        if (source->at == cache->count)
            source_end(run, source);
    }
    return true;
}

static void source_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    source_end(run, (struct source *)step);
}

static const struct gremlin_step_kind step_source = {
    .name = "source", .pull = source_pull, .reset = source_reset};

static void ids_unroll(struct gremlin_compiler *compiler, struct gremlin_value list,
                       struct gremlin_value value, unsigned depth)
{
    struct gremlin_reference reference;
    struct gremlin_cursor cursor = {0};
    struct gremlin_value item;
    int64_t bulk;

    if (gremlin_reference_of(compiler->run->graph, &value, &reference) ||
        !gremlin_value_iterates(value) || depth > 4) {
        gremlin_list_add(list, value);
        return;
    }
    while (gremlin_collection_next(value, &cursor, &item, &bulk)) {
        ids_unroll(compiler, list, item, depth + 1);
        gremlin_value_unref(item);
    }
}

static bool source_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                           enum gremlin_element_kind kind, struct error *err)
{
    struct source *source = STEP_ADD(compiler, raw, &step_source, struct source);

    source->kind = kind;
    if (raw->with_count)
        return REFUSE(err, "%s() takes no with()", raw->row->name);
    if (raw->count) {
        source->by_id = true;
        source->ids = gremlin_list_new(compiler->run->heap, raw->count);
        for (size_t i = 0; i < raw->count; i++) {
            if (gremlin_argument_is_traversal(raw->arguments[i]))
                return gremlin_argument_wrong(raw, i, "an id", err);
            ids_unroll(compiler, source->ids, raw->arguments[i], 0);
        }
    }
    if (!gremlin_fold_conditions(compiler, raw, &source->conditions, err) ||
        !gremlin_strategy_conditions(compiler, &source->conditions))
        return false;
    if (!raw->count && gremlin_raw_is(gremlin_raw_next(compiler), "count") &&
        !gremlin_raw_next(compiler)->count && gremlin_is_null(raw->labels) &&
        !compiler->run->filters) {
        source->counts = true;
        compiler->index++;
        raw->labels = compiler->raws[compiler->index].labels;
        return true;
    }
    return gremlin_add_strategy_filter(compiler, kind, err);
}

bool compile_v(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return source_compile(compiler, raw, GREMLIN_ELEMENT_VERTEX, err);
}

bool compile_e(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return source_compile(compiler, raw, GREMLIN_ELEMENT_EDGE, err);
}

/* --- Expansions ------------------------------------------------------------------------------ */

struct expand {
    struct gremlin_step step;
    enum gremlin_reach reach;
    enum gremlin_want want;
    const struct slice *labels;
    size_t label_count;
    struct gremlin_conditions edges, vertices;
    bool heads;
    bool counts;

    struct gremlin_found *found;
    struct gremlin_value *origins; /* of the batch in pending, borrowed from it */
    size_t origin_room;
    struct gremlin_value ahead; /* a map of vertices to lists of what they lead to; null: none */
};

static bool not_a_vertex(const struct gremlin_step *step, struct gremlin_value value,
                         struct error *err)
{
    return FAIL(err, "%.*s() takes vertices: a %s cannot be cast to Vertex",
                SLICE_ARG(step->instruction->name), gremlin_type_name(value.type));
}

static bool origins_fill(struct gremlin_run *run, struct expand *expand,
                         const struct gremlin_walkers *batch, size_t from, struct error *err)
{
    size_t count = batch->count - from;

    if (expand->origin_room < count) {
        expand->origins = gremlin_heap_grow(run->heap, expand->origins,
                                            expand->origin_room * sizeof *expand->origins,
                                            count * sizeof *expand->origins);
        expand->origin_room = count;
    }
    for (size_t i = 0; i < count; i++) {
        expand->origins[i] = batch->items[from + i].value;
        if (expand->origins[i].type != GREMLIN_VERTEX)
            return not_a_vertex(&expand->step, expand->origins[i], err);
    }
    return true;
}

static struct gremlin_expansion expansion_of(const struct gremlin_run *run,
                                             const struct expand *expand, size_t count)
{
    bool heads = expand->heads && !expand->vertices.count &&
                 (run->trail_mode == TRAIL_NONE ||
                  (run->trail_mode == TRAIL_LABELS && gremlin_is_null(expand->step.labels)));

    return (struct gremlin_expansion){
        .vertices = expand->origins,
        .vertex_count = count,
        .reach = expand->reach,
        .want = expand->want,
        .labels = expand->labels,
        .label_count = expand->label_count,
        .edge_conditions = expand->edges.items,
        .edge_condition_count = expand->edges.count,
        .vertex_conditions = expand->vertices.items,
        .vertex_condition_count = expand->vertices.count,
        .heads = heads && expand->want == GREMLIN_WANT_VERTICES,
    };
}

/* What is known of a single vertex already. */
static bool expand_from_ahead(struct gremlin_run *run, struct expand *expand,
                              struct gremlin_walkers *out)
{
    struct gremlin_step *step = &expand->step;
    const struct gremlin_value *list;
    struct gremlin_walker *input = &step->pending.items[0];

    if (gremlin_is_null(expand->ahead) || step->pending.count != 1 ||
        input->value.type != GREMLIN_VERTEX)
        return false;
    list = gremlin_map_get(expand->ahead, input->value);
    if (!list)
        return false;
    for (size_t i = 0; i < gremlin_list(*list)->count; i++)
        gremlin_walkers_push(run, out,
                             gremlin_walker_split(run, input,
                                                  gremlin_value_ref(gremlin_list(*list)->items[i]),
                                                  step));
    gremlin_walkers_clear(&step->pending);
    return true;
}

static bool expand_begin(struct gremlin_run *run, struct expand *expand, size_t want,
                         struct gremlin_walkers *out, bool *ret_more, struct error *err)
{
    struct gremlin_step *step = &expand->step;
    struct gremlin_expansion expansion;

    gremlin_walkers_clear(&step->pending);
    if (!gremlin_step_pull(run, step->previous, want, &step->pending, err))
        return false;
    *ret_more = step->pending.count > 0;
    if (!*ret_more || expand_from_ahead(run, expand, out))
        return true;
    if (step->merges)
        gremlin_walkers_merge(run, &step->pending, 0);
    if (!origins_fill(run, expand, &step->pending, 0, err))
        return false;
    expansion = expansion_of(run, expand, step->pending.count);
    return gremlin_graph_expand(run->graph, &expansion, &expand->found, err);
}

static bool expand_count(struct gremlin_run *run, struct expand *expand,
                         struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_step *step = &expand->step;
    uint64_t total = 0;

    if (step->emitted)
        return true;
    for (;;) {
        struct gremlin_expansion expansion;
        uint64_t *counts;
        size_t count;
        bool good;

        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        count = step->pending.count;
        if (!count)
            break;
        gremlin_walkers_merge(run, &step->pending, 0);
        count = step->pending.count;
        if (!origins_fill(run, expand, &step->pending, 0, err))
            return false;
        expansion = expansion_of(run, expand, count);
        expansion.want = GREMLIN_WANT_EDGES;
        expansion.heads = false;
        counts = gremlin_heap_alloc(run->heap, count * sizeof *counts);
        good = gremlin_graph_count_edges(run->graph, &expansion, counts, err);
        for (size_t i = 0; good && i < count; i++)
            total += counts[i] * step->pending.items[i].bulk;
        gremlin_heap_release(run->heap, counts, count * sizeof *counts);
        if (!good)
            return false;
    }
    step->emitted = true;
    struct gremlin_walker result = {.bulk = 1};

    gremlin_walker_set(run, &result, gremlin_long((int64_t)total), step);
    gremlin_walkers_push(run, out, result);
    return true;
}

static bool expand_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct expand *expand = (struct expand *)step;
    size_t from = out->count;

    if (expand->counts)
        return expand_count(run, expand, out, err);
    while (out->count == from) {
        struct gremlin_page page;
        bool more;

        if (!expand->found) {
            if (!expand_begin(run, expand, want, out, &more, err))
                return false;
            if (!more)
                return true;
            continue;
        }
        if (!gremlin_found_next(expand->found, want < PULL_ALL ? want : 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++)
            gremlin_walkers_push(run, out,
                                 gremlin_walker_split(run, &step->pending.items[page.inputs[i]],
                                                      gremlin_value_ref(page.elements[i]), step));
        if (!page.count) {
            gremlin_found_free(expand->found);
            expand->found = NULL;
            gremlin_walkers_clear(&step->pending);
        }
    }
    return true;
}

static void expand_reset(struct gremlin_run *run UNUSED, struct gremlin_step *step)
{
    struct expand *expand = (struct expand *)step;

    gremlin_found_free(expand->found);
    expand->found = NULL;
}

const struct gremlin_step_kind step_expand = {
    .name = "expand", .flags = STEP_HEADS, .pull = expand_pull, .reset = expand_reset};

static bool ahead_fill(struct gremlin_run *run, struct expand *expand, size_t count,
                       struct gremlin_found *found, struct error *err)
{
    struct gremlin_page page;
    size_t total = 0, last = 0;

    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            bool new;
            struct gremlin_row *row =
                gremlin_table_row(expand->ahead, expand->origins[page.inputs[i]], &new);

            last = page.inputs[i];
            gremlin_list_add(row->value, page.elements[i]);
        }
        total += page.count;
    } while (page.count && total < AHEAD_MAX);
    if (page.count) {
        /* Not all: only vertices whose results are known to be whole may be answered from it. */
        struct gremlin_value whole = gremlin_map_new(run->heap);

        for (size_t i = 0; i < count; i++) {
            const struct gremlin_value *list = gremlin_map_get(expand->ahead, expand->origins[i]);

            if (i < last && list && gremlin_list(*list)->count &&
                !gremlin_equivalent(expand->origins[i], expand->origins[last]))
                gremlin_map_put(whole, expand->origins[i], *list);
        }
        gremlin_value_replace_take(&expand->ahead, whole);
    }
    return true;
}

/* Expands the first step of a child for all vertices of a batch. */
bool gremlin_expand_ahead(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_walkers *batch, size_t from, struct error *err)
{
    struct expand *expand = (struct expand *)step;
    size_t count = 0;
    struct gremlin_walkers firsts = {0};
    struct gremlin_expansion expansion;
    struct gremlin_found *found = NULL;
    bool good;

    gremlin_expand_forget(run, step);
    if (expand->counts)
        return true;
    expand->ahead = gremlin_map_new(run->heap);
    for (size_t i = from; i < batch->count; i++) {
        bool new;

        if (batch->items[i].value.type != GREMLIN_VERTEX)
            continue;
        struct gremlin_row *row = gremlin_table_row(expand->ahead, batch->items[i].value, &new);

        if (!new)
            continue;
        row->value = gremlin_list_new(run->heap, 0);
        gremlin_walkers_push(
            run, &firsts,
            (struct gremlin_walker){.value = gremlin_value_ref(batch->items[i].value)});
        count++;
    }
    if (!count)
        return true;
    good = origins_fill(run, expand, &firsts, 0, err);
    if (good) {
        expansion = expansion_of(run, expand, count);
        good = gremlin_graph_expand(run->graph, &expansion, &found, err) &&
               ahead_fill(run, expand, count, found, err);
    }
    gremlin_found_free(found);
    gremlin_walkers_done(run, &firsts);
    return good;
}

void gremlin_expand_forget(struct gremlin_run *run UNUSED, struct gremlin_step *step)
{
    struct expand *expand = (struct expand *)step;

    gremlin_value_replace_take(&expand->ahead, GREMLIN_NOTHING);
}

/* --- Compiling them -------------------------------------------------------------------------- */

static bool add_ends(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                     enum gremlin_reach which, bool other);

/* Where strategies look at edges, a neighbour is an edge and its other end. */
static bool expand_by_edges(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                            struct expand *expand, struct error *err)
{
    expand->want = GREMLIN_WANT_EDGES;
    if (!gremlin_add_strategy_filter(compiler, GREMLIN_ELEMENT_EDGE, err))
        return false;
    if (expand->reach == GREMLIN_REACH_BOTH)
        compiler->run->trail_mode = TRAIL_FULL;
    add_ends(compiler, raw,
             expand->reach == GREMLIN_REACH_OUT  ? GREMLIN_REACH_IN
             : expand->reach == GREMLIN_REACH_IN ? GREMLIN_REACH_OUT
                                                 : GREMLIN_REACH_BOTH,
             expand->reach == GREMLIN_REACH_BOTH);
    return gremlin_add_strategy_filter(compiler, GREMLIN_ELEMENT_VERTEX, err);
}

static bool expand_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                           enum gremlin_reach reach, bool edges, size_t from, struct error *err)
{
    struct expand *expand = STEP_ADD(compiler, raw, &step_expand, struct expand);
    const struct gremlin_raw *next;

    expand->reach = reach;
    expand->want = edges ? GREMLIN_WANT_EDGES : GREMLIN_WANT_VERTICES;
    if (!gremlin_argument_texts(compiler, raw, from, &expand->labels, &expand->label_count, err))
        return false;
    if (raw->count > from && !expand->label_count) {
        /* out(null): no edge is labelled so */
        static const struct slice none = {(const uint8_t *)"\0", 1};

        expand->labels = &none;
        expand->label_count = 1;
    }
    if (compiler->run->verify_labels && !expand->label_count)
        return REFUSE(err,
                      "The provided traversal contains a vertex step without any specified edge "
                      "label: %s()",
                      raw->row->name);
    if (compiler->run->filters && !compiler->plain && !edges)
        return expand_by_edges(compiler, raw, expand, err);
    expand->heads = !edges && gremlin_heads_suffice(compiler);
    if (!expand->heads &&
        !gremlin_fold_conditions(compiler, raw, edges ? &expand->edges : &expand->vertices, err))
        return false;
    next = gremlin_raw_next(compiler);
    if (gremlin_raw_is(next, "count") && !next->count && gremlin_is_null(raw->labels) &&
        !expand->vertices.count && !compiler->run->filters) {
        expand->counts = true;
        expand->step.merges = true;
        compiler->index++;
        raw->labels = next->labels;
        compiler->part->barrier = true;
        return true;
    }
    return gremlin_add_strategy_filter(compiler,
                                       edges ? GREMLIN_ELEMENT_EDGE : GREMLIN_ELEMENT_VERTEX, err);
}

#define EXPANSION(name, reach, edges)                                                              \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)       \
    {                                                                                              \
        return expand_compile(compiler, raw, reach, edges, 0, err);                                \
    }
EXPANSION(compile_out, GREMLIN_REACH_OUT, false)
EXPANSION(compile_in, GREMLIN_REACH_IN, false)
EXPANSION(compile_both, GREMLIN_REACH_BOTH, false)
EXPANSION(compile_out_e, GREMLIN_REACH_OUT, true)
EXPANSION(compile_in_e, GREMLIN_REACH_IN, true)
EXPANSION(compile_both_e, GREMLIN_REACH_BOTH, true)

static bool argument_reach(const struct gremlin_raw *raw, enum gremlin_reach *ret_reach,
                           struct error *err)
{
    if (!gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_DIRECTION))
        return gremlin_argument_wrong(raw, 0, "a Direction", err);
    switch (gremlin_word_canonical(raw->arguments[0].word.word)) {
    case GREMLIN_DIRECTION_OUT:
        *ret_reach = GREMLIN_REACH_OUT;
        return true;
    case GREMLIN_DIRECTION_IN:
        *ret_reach = GREMLIN_REACH_IN;
        return true;
    default:
        *ret_reach = GREMLIN_REACH_BOTH;
        return true;
    }
}

bool compile_to(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    enum gremlin_reach reach = GREMLIN_REACH_OUT;

    return argument_reach(raw, &reach, err) && expand_compile(compiler, raw, reach, false, 1, err);
}

bool compile_to_e(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    enum gremlin_reach reach = GREMLIN_REACH_OUT;

    return argument_reach(raw, &reach, err) && expand_compile(compiler, raw, reach, true, 1, err);
}

/* --- Ends of edges --------------------------------------------------------------------------- */

struct ends {
    struct gremlin_step step;
    enum gremlin_reach which;
    bool other; /* the one that the traverser did not come from */
    bool heads;
};

/* The vertex before the edge on the path. */
static bool came_from(const struct gremlin_walker *traverser,
                      const struct gremlin_value **ret_vertex)
{
    const struct gremlin_path *node = traverser->trail;

    for (node = node ? node->before : NULL; node && node->length; node = node->before)
        if (node->value.type == GREMLIN_VERTEX) {
            *ret_vertex = &node->value;
            return true;
        }
    return false;
}

static bool other_end(struct gremlin_run *run, const struct gremlin_walker *traverser, bool *ret_in,
                      struct error *err)
{
    const struct gremlin_edge *edge = gremlin_edge(traverser->value);
    const struct gremlin_value *from;

    if (!came_from(traverser, &from))
        return FAIL(err, "otherV() of %s: the path holds no vertex it came from",
                    gremlin_value_shown(run, traverser->value));
    *ret_in = gremlin_equal(edge->out.id, gremlin_element(*from)->id) &&
              (gremlin_is_null(edge->out.partition) ||
               gremlin_is_null(gremlin_element(*from)->partition) ||
               gremlin_equal(edge->out.partition, gremlin_element(*from)->partition));
    return true;
}

static bool ends_give(struct gremlin_run *run, struct ends *ends,
                      const struct gremlin_walkers *input, struct gremlin_value *vertices,
                      struct gremlin_walkers *out, struct error *err)
{
    enum gremlin_reach which = ends->other ? GREMLIN_REACH_BOTH : ends->which;
    size_t each = which == GREMLIN_REACH_BOTH ? 2 : 1;
    bool good = true;

    for (size_t i = 0; i < input->count; i++) {
        bool in = false;

        if (good && ends->other)
            good = other_end(run, &input->items[i], &in, err);
        for (size_t j = 0; j < each; j++) {
            struct gremlin_value vertex = vertices[i * each + j];

            if (!good || gremlin_is_null(vertex) || (ends->other && (j == 1) != in))
                gremlin_value_unref(vertex);
            else
                gremlin_walkers_push(
                    run, out, gremlin_walker_split(run, &input->items[i], vertex, &ends->step));
        }
    }
    return good;
}

static bool ends_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                      struct gremlin_walkers *out, struct error *err)
{
    struct ends *ends = (struct ends *)step;
    size_t from = out->count;

    while (out->count == from) {
        enum gremlin_reach which = ends->other ? GREMLIN_REACH_BOTH : ends->which;
        size_t count;
        struct gremlin_value *edges, *vertices;
        bool good;

        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, want, &step->pending, err))
            return false;
        count = step->pending.count;
        if (!count)
            return true;
        for (size_t i = 0; i < count; i++)
            if (step->pending.items[i].value.type != GREMLIN_EDGE)
                return FAIL(err, "%.*s() takes edges: a %s cannot be cast to Edge",
                            SLICE_ARG(step->instruction->name),
                            gremlin_type_name(step->pending.items[i].value.type));
        edges = gremlin_heap_alloc(run->heap, count * 3 * sizeof *edges);
        vertices = edges + count;
        for (size_t i = 0; i < count; i++)
            edges[i] = step->pending.items[i].value;
        good = gremlin_graph_ends(run->graph, edges, count, which,
                                  ends->heads && run->trail_mode == TRAIL_NONE, vertices, err);
        if (good)
            good = ends_give(run, ends, &step->pending, vertices, out, err);
        gremlin_heap_release(run->heap, edges, count * 3 * sizeof *edges);
        gremlin_walkers_clear(&step->pending);
        if (!good)
            return false;
    }
    return true;
}

static const struct gremlin_step_kind step_ends = {
    .name = "ends", .flags = STEP_HEADS, .pull = ends_pull};
static const struct gremlin_step_kind step_other = {
    .name = "other", .flags = STEP_HEADS | STEP_NEEDS_PATH, .pull = ends_pull};

static bool add_ends(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                     enum gremlin_reach which, bool other)
{
    struct ends *ends = STEP_ADD(compiler, raw, other ? &step_other : &step_ends, struct ends);

    ends->which = which;
    ends->other = other;
    ends->heads = gremlin_heads_suffice(compiler);
    return true;
}

static bool ends_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         enum gremlin_reach which, bool other, struct error *err)
{
    return add_ends(compiler, raw, which, other) &&
           gremlin_add_strategy_filter(compiler, GREMLIN_ELEMENT_VERTEX, err);
}

#define ENDS(name, which, other)                                                                   \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)       \
    {                                                                                              \
        return ends_compile(compiler, raw, which, other, err);                                     \
    }
ENDS(compile_out_v, GREMLIN_REACH_OUT, false)
ENDS(compile_in_v, GREMLIN_REACH_IN, false)
ENDS(compile_both_v, GREMLIN_REACH_BOTH, false)
ENDS(compile_other_v, GREMLIN_REACH_BOTH, true)

bool compile_to_v(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    enum gremlin_reach reach = GREMLIN_REACH_OUT;

    return argument_reach(raw, &reach, err) && ends_compile(compiler, raw, reach, false, err);
}
