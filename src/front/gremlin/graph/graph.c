#include "front/gremlin/graph/graph_private.h"

enum { PAGE_ROWS = 1000, TRANSACTION_BYTES = 64 * 1024 * 1024 };
static const size_t page_bytes = 4 * 1024 * 1024;

/* --- Keys ---------------------------------------------------------------------------------------
 */

static bool key_refuse(const struct partition_definition *definition, size_t path, const char *why,
                       struct error *err)
{
    return error_set(err, ERROR_NOT_SUPPORTED, "a graph cannot have the partition key \"%.*s\": %s",
                     SLICE_ARG(definition->texts[path]), why);
}

/* Edges have the key of their source, so it is a property that both can have: of one level, and
 * none that means something else. */
static bool keys_check(struct gremlin_graph *graph, struct error *err)
{
    const struct partition_definition *definition = &graph->space.definition->key;

    if (partition_map_is_spread(graph->space.map))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a graph cannot have a key that is spread over several partitions: its "
                         "vertices and edges are found by whole keys");
    if (definition->system_key)
        return true;
    if (definition->synthetic)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a graph cannot have a synthetic partition key: edges have the key of "
                         "their source, not one made of their own properties");
    for (size_t i = 0; i < definition->path_count; i++) {
        const struct document_path *path = &definition->paths[i];

        if (path->count != 1 || path->segments[0].kind != DOCUMENT_SEGMENT_PROPERTY)
            return key_refuse(definition, i, "it has to be of one level", err);
        if (slice_equal(path->segments[0].name, SLICE("id")))
            return key_refuse(definition, i,
                              "edges are kept with their source, whose id is another", err);
        if (slice_equal(path->segments[0].name, SLICE("label")))
            return key_refuse(definition, i,
                              "edges are kept with their source, whose label is another", err);
        if (gremlin_name_is_own(path->segments[0].name))
            return key_refuse(definition, i, "edges use the property themselves", err);
        graph->keys[i] = path->segments[0].name;
    }
    graph->key_count = definition->path_count;
    return true;
}

static void nodes_look(struct gremlin_graph *graph)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(graph->space.map, &count);

    graph->several_nodes = false;
    for (size_t i = 1; i < count; i++)
        graph->several_nodes |= spans[i].node != spans[0].node;
}

bool gremlin_graph_renewed(struct gremlin_graph *graph)
{
    struct error ignored = {0};

    graph->key_count = 0;
    nodes_look(graph);
    return keys_check(graph, &ignored);
}

/* --- Opening ------------------------------------------------------------------------------------
 */

static bool moment_take(void *self, struct query_request *request, struct error *err);

static void bound_copy(struct gremlin_graph *graph, const struct partition_key *only)
{
    graph->bound = true;
    graph->only = *only;
    for (size_t i = 0; i < only->count; i++)
        if (only->components[i].type == DOCUMENT_STRING)
            graph->only.components[i].text = arena_copy(graph->arena, only->components[i].text);
    graph->options.only = NULL;
}

bool gremlin_graph_new(const struct gremlin_graph_options *options,
                       struct gremlin_graph **ret_graph, struct error *err)
{
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = MEMORY_NEW(struct gremlin_graph);

    graph->options = *options;
    (void)container_ref(options->container);
    graph->arena = arena_new();
    graph->space = front_space(options->services, options->container);
    graph->rid = container_rid(options->container);
    graph->moment = (struct front_moment){moment_take, graph};
    graph->left = (struct view_bound){GREMLIN_SHORT_STEPS, GREMLIN_SHORT_BYTES};
    graph->reads_moment = options->one_moment;
    graph->link = gremlin_heap_alloc(options->heap, sizeof *graph->link);
    graph->link->graph = graph;
    if (!graph->options.limits.page_rows)
        graph->options.limits.page_rows = PAGE_ROWS;
    if (!graph->options.limits.page_bytes)
        graph->options.limits.page_bytes = page_bytes;
    if (!graph->options.limits.transaction_bytes_max)
        graph->options.limits.transaction_bytes_max = TRANSACTION_BYTES;
    if (options->only)
        bound_copy(graph, options->only);
    if (graph->space.definition->identity != DEFINITION_IDENTITY_ID)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "the container \"%.*s\" is a collection of the MongoDB API: its items are "
                         "known by \"_id\"",
                         SLICE_ARG(container_info(options->container)->id));
    if (!keys_check(graph, err))
        return false;
    nodes_look(graph);
    *ret_graph = TAKE(graph);
    return true;
}

void gremlin_graph_free(struct gremlin_graph *graph)
{
    if (!graph)
        return;
    gremlin_graph_let_go(graph);
    gremlin_references_let_go(graph);
    gremlin_graph_look_away(graph);
    for (size_t i = 0; i < GREMLIN_INTERNED; i++) {
        gremlin_value_unref(graph->labels[i]);
        gremlin_value_unref(graph->partitions[i]);
    }
    graph->link->graph = NULL; /* the heap's: elements may outlive us */
    item_space_release(&graph->space);
    container_unref(graph->options.container);
    arena_free(graph->arena);
    memory_free(graph);
}

void gremlin_graph_look(struct gremlin_graph *graph, const struct item_reading_options *options)
{
    assert(!graph->reading);
    if (!graph->reads_moment && !graph->parts)
        graph->reading = item_reading_begin(&graph->space, options);
}

void gremlin_graph_look_away(struct gremlin_graph *graph)
{
    item_reading_end(TAKE(graph->reading));
    graph->space.reading = NULL;
}

void gremlin_graph_enter(struct gremlin_graph *graph, struct front_call *call)
{
    graph->entered = call != NULL;
    gremlin_references_let_go(graph);
    if (!call) {
        graph->call.cancelled = NULL;
        graph->call.account = (struct front_account){0};
        return;
    }
    graph->call = (struct front_call){.services = call->services,
                                      .account = call->account,
                                      .owner = call->owner,
                                      .cancelled = call->cancelled,
                                      .may_block = call->may_block,
                                      .work = {.part = call->work.part}};
}

void gremlin_graph_set_paid(struct gremlin_graph *graph, uint64_t reads)
{
    atomic_store(&graph->paid, reads);
}

void gremlin_graph_set_deadline(struct gremlin_graph *graph, int64_t deadline_ms)
{
    graph->options.limits.deadline_ms = deadline_ms;
}

void gremlin_graph_begin(struct gremlin_graph *graph)
{
    graph->reads_moment = true;
}

/* --- What is known of it ------------------------------------------------------------------------
 */

struct gremlin_heap *gremlin_graph_heap(const struct gremlin_graph *graph)
{
    return graph->options.heap;
}

uint64_t gremlin_graph_number(const struct gremlin_graph *graph)
{
    return container_info(graph->options.container)->number;
}

struct slice gremlin_graph_key(const struct gremlin_graph *graph)
{
    return graph->key_count == 1 ? graph->keys[0] : SLICE_NONE;
}

bool gremlin_graph_key_is(const struct gremlin_graph *graph, struct slice name)
{
    for (size_t i = 0; i < graph->key_count; i++)
        if (slice_equal(graph->keys[i], name))
            return true;
    return false;
}

size_t gremlin_graph_key_count(const struct gremlin_graph *graph)
{
    return graph->key_count;
}

struct gremlin_names gremlin_graph_names(const struct gremlin_graph *graph)
{
    return (struct gremlin_names){graph->keys, graph->key_count};
}

bool gremlin_graph_show_system(struct gremlin_graph *graph, const struct slice *names, size_t count,
                               struct error *err)
{
    const struct document_names *known = definition_names_of(graph->space.definition);

    for (size_t i = 0; i < count; i++) {
        enum document_system system = document_names_system(known, names[i]);

        if (slice_equal(names[i], SLICE("inVPartition")) ||
            slice_equal(names[i], SLICE("outVPartition")))
            graph->shows_ends = true;
        else if (system < DOCUMENT_SYSTEM_SHOWN)
            graph->shown |= (uint8_t)(1u << system);
        else
            return error_set(err, ERROR_BAD_REQUEST, "there is no system property \"%.*s\"",
                             (int)MIN(names[i].len, (size_t)64), (const char *)names[i].data);
    }
    return true;
}

struct gremlin_graph_figures gremlin_graph_figures(const struct gremlin_graph *graph)
{
    return graph->figures;
}

bool gremlin_graph_goes_on(const struct gremlin_graph *graph, struct error *err)
{
    const atomic_bool *cancelled = graph->call.cancelled;
    int64_t deadline_ms = graph->options.limits.deadline_ms;

    if (cancelled && atomic_load_explicit(cancelled, memory_order_relaxed))
        return error_set(err, ERROR_CANCELLED, "the client has gone");
    if (deadline_ms && clock_read_monotonic_ms(graph->options.services->clock) >= deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the request takes longer than it may");
    if (gremlin_heap_failed(graph->options.heap))
        return gremlin_heap_error(graph->options.heap, err);
    return true;
}

/* --- The moment
 * ----------------------------------------------------------------------------------- */

/* Queries of a graph that reads one moment see its transaction on the node they are for. */
static bool moment_take(void *self, struct query_request *request, struct error *err)
{
    struct gremlin_graph *graph = self;
    const struct partition_span *span;
    struct gremlin_part *part;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice routing = PARTITION_ROUTING_MIN;

    if (request->scope.kind == QUERY_SCOPE_RANGE)
        routing = request->scope.range.min;
    else if (request->scope.kind == QUERY_SCOPE_KEY)
        routing =
            partition_route_range(&graph->space.definition->key, &request->scope.key, arena).min;
    span = partition_map_find(graph->space.map, routing);
    if (!gremlin_part_of(graph, span->node, &part, err) || !gremlin_part_overlay(graph, part, err))
        return false;
    request->snapshot = transaction_snapshot(part->transaction);
    request->snapshot_of = part->engine;
    request->overlay = part->overlay;
    return true;
}
