/* Pages of plans and batches of keys, on the terms of the call the graph works for; and elements
 * found, page by page. */
#include "front/gremlin/graph/graph_private.h"
#include "front/kit/queries.h"
#include "query/expression/item.h"

/* --- Plans --------------------------------------------------------------------------------------
 */

/* A page of entries, with what the call and the server have for it. */
static bool entries_run(struct gremlin_graph *graph, struct gremlin_reading *reading,
                        struct query_request *request, struct query_page *ret_page,
                        struct error *err)
{
    request->meters = graph->options.services->meters;
    request->limits.cancelled = graph->call.cancelled;
    request->is_short = !graph->call.may_block;
    request->arena = reading->arena;
    return (!graph->reads_moment || graph->moment.take(graph->moment.self, request, err)) &&
           query_entries_run(request, reading->entries, ret_page, err);
}

/* Was the next read paid for? By any thread. */
static bool has_paid(struct gremlin_graph *graph)
{
    unsigned long long left = atomic_load_explicit(&graph->paid, memory_order_relaxed);

    while (left && !atomic_compare_exchange_weak(&graph->paid, &left, left - 1))
        ;
    return left != 0;
}

bool gremlin_reading_run(struct gremlin_graph *graph, struct gremlin_reading *reading,
                         struct error *err)
{
    struct front_call call = graph->call;
    struct query_request request = {
        .space = &graph->space,
        .container = graph->rid,
        .call = &reading->metered,
        .scope = reading->scope,
        .continuation = reading->continuation,
        .limits = {.rows_max = reading->rows_max,
                   .bytes_max = graph->options.limits.page_bytes,
                   .deadline_ms = graph->options.limits.deadline_ms},
        .order_unindexed = true,
        .row = reading->row,
        .self = reading->self,
    };
    struct query_page page;

    assert(graph->entered);
    if (!call.may_block && (reading->continuation.len || graph->reads_moment ||
                            (reading->entries && reading->entries->place.begun)))
        return view_bound_cold(err);
    request.bound = &graph->left;
    request.paid = has_paid(graph);
    call.arena = reading->arena;
    call.moment = graph->reads_moment ? &graph->moment : NULL;
    reading->metered = (struct metered_call){.strong = graph->options.strong};
    if (graph->bound && request.scope.kind == QUERY_SCOPE_CONTAINER)
        request.scope = (struct query_scope){.kind = QUERY_SCOPE_KEY, .key = graph->only};
    if (reading->entries ? !entries_run(graph, reading, &request, &page, err)
                         : !front_query_run(&call, reading->plan, &request, &page, err))
        return false;
    reading->continuation = page.continuation;
    reading->metrics = page.metrics;
    return true;
}

void gremlin_reading_count(struct gremlin_graph *graph, const struct gremlin_reading *reading)
{
    struct gremlin_graph_figures *figures = &graph->figures;

    figures->charge_cru += reading->metered.charge_cru;
    figures->charged += reading->metered.charge_cru > 0;
    if (reading->metered.wait_ms)
        figures->wait_ms = reading->metered.wait_ms;
    figures->reads++;
    figures->partitions += reading->metrics.partitions;
    figures->items += reading->metrics.items_loaded;
    figures->bytes += reading->metrics.loaded_bytes;
    figures->index_entries += reading->metrics.index_entries;
}

bool gremlin_reading_all(struct gremlin_graph *graph, struct gremlin_reading *reading,
                         struct error *err)
{
    do {
        bool fine = gremlin_graph_goes_on(graph, err) && gremlin_reading_run(graph, reading, err);

        gremlin_reading_count(graph, reading);
        if (!fine)
            return false;
    } while (reading->continuation.len);
    return true;
}

const struct query_scope *gremlin_graph_scopes(struct gremlin_graph *graph, struct arena *arena,
                                               size_t *ret_count)
{
    size_t count, kept = 0;
    const struct partition_span *spans = partition_map_spans(graph->space.map, &count);
    struct query_scope *scopes = ARENA_ARRAY(arena, struct query_scope, count);

    if (!graph->reads_moment || !graph->several_nodes || graph->bound)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept && spans[i].node == spans[i - 1].node) {
            scopes[kept - 1].range.max = spans[i].max;
            continue;
        }
        scopes[kept++] =
            (struct query_scope){.kind = QUERY_SCOPE_RANGE, .range = {spans[i].min, spans[i].max}};
    }
    if (!kept)
        scopes[kept++] = (struct query_scope){.kind = QUERY_SCOPE_CONTAINER};
    *ret_count = kept;
    return scopes;
}

static bool document_evaluate(const struct query_expression *expression UNUSED,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err UNUSED)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    *ret_value = bound ? document_object(bound->item->document) : context->slots[0].value;
    return true;
}

static const struct query_kind document_kind = {"item", document_evaluate, QUERY_STABLE};

const struct query_expression *gremlin_item_expression(const struct gremlin_graph *graph,
                                                       struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);

    return graph->shown
               ? item
               : query_node(build, &document_kind, sizeof(struct query_expression), &item, 1);
}

struct query_executor gremlin_graph_executor(const struct gremlin_graph *graph,
                                             struct front_helpers *helpers)
{
    const struct front_services *services = graph->options.services;

    *helpers = (struct front_helpers){.workers = services->workers,
                                      .owner = graph->call.owner,
                                      .part = graph->call.work.part,
                                      .width = services->query_threads};
    return front_fan_out(helpers);
}

/* --- Keys ---------------------------------------------------------------------------------------
 */

struct fetching {
    struct gremlin_graph *graph;
    const struct gremlin_fetch *fetch;
    const size_t *places; /* of the references that are asked for, among those of the fetch */
    struct arena *arena;  /* of a document with its system properties */
    struct query_context context;
    struct query_slot slot;
};

/* The document with its system properties, as a query would show it. */
static bool document_whole(struct fetching *f, const struct item *item, struct slice *ret_document,
                           struct error *err)
{
    struct query_item bound;
    struct query_build build = {.arena = f->arena};
    struct document_value whole;

    query_context_init(&f->context, f->arena, NULL, f->graph->options.services->clock);
    f->context.slots = &f->slot;
    f->context.slot_count = 1;
    query_item_bind(&bound, item, definition_names_of(f->graph->space.definition), f->graph->rid,
                    &f->slot);
    if (!query_evaluate(query_variable(&build, 0), &f->context, &whole, err)) {
        query_context_done(&f->context);
        return false;
    }
    *ret_document = arena_copy(f->arena, whole.document);
    query_context_done(&f->context);
    return true;
}

static bool item_take(void *self, size_t reference, const struct item *item, struct error *err)
{
    struct fetching *f = self;
    struct slice document = item->document;
    bool fine = !f->graph->shown || document_whole(f, item, &document, err);

    fine = fine && f->fetch->take(f->fetch->self, f->places[reference], document, err);
    arena_reset(f->arena);
    return fine;
}

enum { FETCH_BYTES_MAX = 32 * 1024 * 1024 };

/* The references of one node, or all where nothing keeps them apart. */
static bool node_read(struct gremlin_graph *graph, const struct gremlin_fetch *fetch,
                      const struct items_reference *references, const size_t *places, size_t count,
                      struct gremlin_part *part, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct fetching f = {.graph = graph, .fetch = fetch, .places = places, .arena = arena};
    struct gremlin_reading counted = {.metered = {.strong = graph->options.strong}};
    struct front_helpers helpers;
    struct query_executor executor = gremlin_graph_executor(graph, &helpers);
    struct query_request request = {.space = &graph->space,
                                    .container = graph->rid,
                                    .meters = graph->options.services->meters,
                                    .call = &counted.metered,
                                    .limits = {.cancelled = graph->call.cancelled,
                                               .bytes_max = count > 1 ? FETCH_BYTES_MAX : 0},
                                    .executor = part ? NULL : &executor,
                                    .is_short = !graph->call.may_block,
                                    .bound = &graph->left,
                                    .paid = has_paid(graph)};
    struct query_fetch asked = {
        .references = references, .count = count, .take = item_take, .self = &f};
    struct query_page page;
    bool fine;

    if (request.is_short && (part || count > GREMLIN_SHORT_STEPS / VIEW_ITEM_STEPS))
        return view_bound_cold(err);
    if (part) {
        if (!gremlin_part_overlay(graph, part, err))
            return false;
        request.snapshot = transaction_snapshot(part->transaction);
        request.snapshot_of = part->engine;
        request.overlay = part->overlay;
    }
    fine = query_fetch_run(&request, &asked, &page, err);
    counted.metrics = page.metrics;
    gremlin_reading_count(graph, &counted);
    return fine;
}

/* In halves, where they are too large to be held at once. */
static bool node_fetch(struct gremlin_graph *graph, const struct gremlin_fetch *fetch,
                       const struct items_reference *references, const size_t *places, size_t count,
                       struct gremlin_part *part, struct error *err)
{
    size_t half = count / 2;

    if (node_read(graph, fetch, references, places, count, part, err))
        return true;
    if (err->code != ERROR_QUERY_LIMIT || count < 2)
        return false;
    *err = (struct error){0};
    return node_fetch(graph, fetch, references, places, half, part, err) &&
           node_fetch(graph, fetch, references + half, places + half, count - half, part, err);
}

static uint32_t node_of(const struct gremlin_graph *graph, const struct items_reference *reference,
                        struct arena *arena)
{
    struct slice logical = item_logical(&graph->space.definition->key, &reference->key, arena);

    return partition_map_find(graph->space.map, logical)->node;
}

/* Keys that whoever asks may not see are as if they were not there. */
static bool is_visible(const struct gremlin_graph *graph, const struct partition_key *key)
{
    return !graph->bound || partition_key_starts_with(key, &graph->only);
}

bool gremlin_graph_fetch(struct gremlin_graph *graph, const struct gremlin_fetch *fetch,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct items_reference *references = ARENA_ARRAY(arena, struct items_reference, fetch->count);
    size_t *places = ARENA_ARRAY(arena, size_t, fetch->count);
    bool *done = arena_alloc_zero(arena, fetch->count + 1);
    bool apart = graph->reads_moment && graph->several_nodes;

    for (size_t begin = 0; begin < fetch->count;) {
        struct gremlin_part *part = NULL;
        uint32_t node = 0;
        size_t count = 0;

        for (size_t i = begin; i < fetch->count && count < GREMLIN_CHUNK; i++) {
            const struct items_reference *reference = &fetch->references[i];

            if (done[i] || !is_visible(graph, &reference->key)) {
                done[i] = true;
                continue;
            }
            if (graph->reads_moment && !count)
                node = node_of(graph, reference, arena);
            if (apart && node_of(graph, reference, arena) != node)
                continue;
            places[count] = i;
            references[count++] = *reference;
            done[i] = true;
        }
        while (begin < fetch->count && done[begin])
            begin++;
        if (!count)
            continue;
        if (!gremlin_graph_goes_on(graph, err) ||
            (graph->reads_moment && !gremlin_part_of(graph, node, &part, err)) ||
            !node_fetch(graph, fetch, references, places, count, part, err))
            return false;
    }
    return true;
}

/* --- Elements found
 * ------------------------------------------------------------------------------- */

void *gremlin_found_new(struct gremlin_graph *graph, size_t size)
{
    struct gremlin_found *found = memory_alloc_zero(size);

    found->graph = graph;
    found->arena = arena_new();
    found->left = UINT64_MAX;
    return found;
}

static void rows_forget(struct gremlin_found *found, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        gremlin_value_unref(found->elements[i]);
        if (found->has_edges)
            gremlin_value_unref(found->edges[i]);
    }
}

void gremlin_found_free(struct gremlin_found *found)
{
    if (!found)
        return;
    if (found->done)
        found->done(found);
    rows_forget(found, found->at - found->given, found->count);
    memory_free(found->elements);
    memory_free(found->edges);
    memory_free(found->inputs);
    arena_free(found->arena);
    memory_free(found);
}

void gremlin_found_add_take(struct gremlin_found *found, size_t input, struct gremlin_value element,
                            struct gremlin_value edge)
{
    if (found->count == found->capacity) {
        found->capacity = found->capacity ? 2 * found->capacity : 64;
        found->elements = memory_realloc(
            found->elements, memory_array_size(found->capacity, sizeof *found->elements));
        if (found->has_edges)
            found->edges = memory_realloc(found->edges,
                                          memory_array_size(found->capacity, sizeof *found->edges));
        if (found->has_inputs)
            found->inputs = memory_realloc(
                found->inputs, memory_array_size(found->capacity, sizeof *found->inputs));
    }
    found->elements[found->count] = element;
    if (found->has_edges)
        found->edges[found->count] = edge;
    if (found->has_inputs)
        found->inputs[found->count] = input;
    found->count++;
}

/* Rows that were given go; what waits comes to the front. */
static void rows_settle(struct gremlin_found *found)
{
    rows_forget(found, found->at - found->given, found->at);
    found->given = 0;
    if (found->at < found->count)
        return;
    found->at = found->count = 0;
}

bool gremlin_found_next(struct gremlin_found *found, size_t want, struct gremlin_page *ret_page,
                        struct error *err)
{
    size_t rows = found->graph->options.limits.page_rows;

    rows_settle(found);
    want = want && want < rows ? want : rows;
    while (found->at == found->count && !found->ended && found->left) {
        if (!gremlin_graph_goes_on(found->graph, err) ||
            !found->next(found, (size_t)MIN((uint64_t)want, found->left), err))
            return false;
    }
    found->given = (size_t)MIN((uint64_t)MIN(found->count - found->at, rows), found->left);
    if (found->left != UINT64_MAX)
        found->left -= found->given;
    *ret_page = (struct gremlin_page){.count = found->given};
    if (found->given) {
        ret_page->elements = found->elements + found->at;
        ret_page->edges = found->has_edges ? found->edges + found->at : NULL;
        ret_page->inputs = found->has_inputs ? found->inputs + found->at : NULL;
    }
    found->at += found->given;
    return true;
}
