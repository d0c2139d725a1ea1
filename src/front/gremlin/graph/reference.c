/* Reference containers that a traversal reads by key. The copy of each is taken once for a request,
 * when it is first named, and is of that moment, also within a transaction: it is another
 * container, which the graph's snapshots do not cover.
 *
 * What is found is priced as the join of a query is, and is charged to the first partition of the
 * graph, as is filling a copy that was out of date. */
#include "front/gremlin/graph/graph_private.h"
#include "front/kit/references.h"
#include "query/value/compare.h"
#include "throughput/cost.h"

/* Those of one request. */
struct gremlin_references {
    struct front_references held;
    struct cost_query cost; /* what was found so far */
};

void gremlin_references_let_go(struct gremlin_graph *graph)
{
    if (!graph->references)
        return;
    front_references_done(&graph->references->held);
    memory_free(graph->references);
    graph->references = NULL;
}

/* --- Opening ------------------------------------------------------------------------------------
 */

/* Said before anything is told of the container. */
static bool may_read(void *self, const struct container *container UNUSED, struct error *err)
{
    const struct gremlin_graph *graph = self;

    return !(graph->bound || graph->options.alone) ||
           error_set(err, ERROR_FORBIDDEN,
                     "Insufficient permissions: the resource token is for its graph alone, and "
                     "reads no reference containers");
}

static uint32_t payer(const struct gremlin_graph *graph)
{
    size_t count;

    return partition_map_spans(graph->space.map, &count)[0].id;
}

/* A request that reads nothing else is refused as well where the throughput is used up. */
static bool copy_take(struct gremlin_graph *graph, struct front_reference *one, struct error *err)
{
    const struct cost_query begun = {.partitions_begun = 1, .strong = graph->options.strong};
    struct meters *meters = graph->options.services->meters;
    struct metered_call call = {.strong = graph->options.strong};
    struct metering metering;
    int64_t cru = cost_query(&begun);

    if (!metering_begin(&metering, meters,
                        &(struct metering_request){.partition = payer(graph), .price_cru = cru},
                        &call, err)) {
        graph->figures.wait_ms = call.wait_ms;
        return false;
    }
    if (!front_reference_take(&graph->call, one->container, &one->space, &one->taken, err)) {
        metering_drop(&metering);
        return false;
    }
    cru += one->taken.filled_cru;
    metering_end(&metering, cru);
    graph->figures.charge_cru += cru;
    graph->figures.charged++;
    graph->figures.reads++;
    graph->figures.reference_lag_ms = MAX(graph->figures.reference_lag_ms, one->taken.lag_ms);
    return true;
}

static bool reference_open(struct gremlin_graph *graph, struct slice container,
                           const struct front_reference **ret_reference, struct error *err)
{
    const struct definition_fields *fields;
    struct front_references *held;

    if (!graph->call.may_block)
        return view_bound_cold(err);
    if (!graph->references) {
        graph->references = MEMORY_NEW(struct gremlin_references);
        front_references_init(&graph->references->held, &graph->call,
                              container_history(graph->options.container).database_name);
        graph->references->held.allowed = may_read;
        graph->references->held.self = graph;
    }
    held = &graph->references->held;
    for (size_t i = 0; i < held->count; i++)
        if (slice_equal(container_info(held->list[i].container)->id, container)) {
            *ret_reference = &held->list[i];
            return true;
        }
    if (!front_references_open(held, SLICE_NONE, container, &fields, err))
        return false;
    *ret_reference = &held->list[held->count - 1];
    if (fields->identity != DEFINITION_IDENTITY_ID)
        error_set(err, ERROR_NOT_SUPPORTED,
                  "the reference container \"%.*s\" is a collection of the MongoDB API: its items "
                  "are known by \"_id\"",
                  SLICE_ARG(container));
    else if (copy_take(graph, &held->list[held->count - 1], err))
        return true;
    container_unref(held->list[--held->count].container);
    return false;
}

/* --- Finding ------------------------------------------------------------------------------------
 */

/* A key, and what it is compared with. */
struct sought {
    const struct partition_definition *definition;
    struct document_value values[PARTITION_PATHS_MAX + 1];
    size_t path_count, count; /* count: with the id */
};

static bool value_add(struct sought *sought, const struct gremlin_value *value, struct arena *arena,
                      struct error *err)
{
    struct document_value tag;

    return gremlin_stored_encode(value, arena, &sought->values[sought->count++], &tag, err);
}

/* Where the id is the partition key, either names it. */
static struct gremlin_lookup by_key(const struct gremlin_lookup *lookup,
                                    const struct partition_definition *definition)
{
    struct gremlin_lookup by = *lookup;

    if (!definition->system_key && definition->path_count == 1 &&
        slice_equal(definition->texts[0], SLICE("/id")) && gremlin_is_null(by.key)) {
        by.key = by.id;
        by.id = GREMLIN_NOTHING;
    }
    return by;
}

static bool key_read(struct sought *sought, const struct gremlin_lookup *lookup,
                     struct arena *arena, struct error *err)
{
    const struct partition_definition *definition = sought->definition;
    bool is_list = lookup->key.type == GREMLIN_LIST;
    size_t given = gremlin_is_null(lookup->key) ? 0
                   : is_list                    ? gremlin_list(lookup->key)->count
                                                : 1;

    sought->path_count = definition->system_key ? 0 : definition->path_count;
    if (given != sought->path_count)
        return error_set(err, ERROR_GREMLIN_RUN,
                         "the partition key of the reference container \"%.*s\" has %zu value%s, "
                         "and %zu %s given as key",
                         SLICE_ARG(lookup->container), sought->path_count,
                         PLURAL(sought->path_count), given, given == 1 ? "is" : "are");
    for (size_t i = 0; i < given; i++)
        if (!value_add(sought, is_list ? &gremlin_list(lookup->key)->items[i] : &lookup->key, arena,
                       err))
            return false;
    return gremlin_is_null(lookup->id) || value_add(sought, &lookup->id, arena, err);
}

/* What has the same hash may have another key. */
static bool item_has(const struct sought *sought, struct slice item)
{
    struct document_value value;

    for (size_t i = 0; i < sought->count; i++) {
        bool found = i < sought->path_count
                         ? document_path_find(&sought->definition->paths[i], item, &value)
                         : document_find(item, SLICE("id"), &value);

        if (!found || !query_values_same(DOCUMENT_ORDER_SQL, &value, &sought->values[i]))
            return false;
    }
    return true;
}

static void found_charge(struct gremlin_graph *graph, uint64_t items, uint64_t bytes)
{
    struct cost_query *cost = &graph->references->cost;
    int64_t before = cost_query(cost), cru;

    cost->joined_items += items;
    cost->joined_bytes += bytes;
    cru = cost_query(cost) - before;
    if (cru <= 0)
        return;
    metering_charge(graph->options.services->meters, payer(graph), cru);
    graph->figures.charge_cru += cru;
}

bool gremlin_graph_look_up(struct gremlin_graph *graph, const struct gremlin_lookup *lookup,
                           struct gremlin_value *ret_items, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context = {0};
    struct gremlin_heap *heap = graph->options.heap;
    const struct front_reference *reference = NULL;
    struct sought sought = {0};
    struct document_value items;
    struct gremlin_lookup by;
    struct document_iter iter;

    if (!gremlin_graph_goes_on(graph, err) ||
        !reference_open(graph, lookup->container, &reference, err))
        return false;
    sought.definition = &reference->space.definition->key;
    by = by_key(lookup, sought.definition);
    query_context_init(&context, arena, NULL, NULL);
    if (!key_read(&sought, &by, arena, err) ||
        !query_copy_find(reference->taken.copy, sought.values, sought.count,
                         !gremlin_is_null(by.id), &context, &items, err))
        return false;
    *ret_items = gremlin_list_new(heap, 0);
    if (items.type != DOCUMENT_ARRAY)
        return true;
    found_charge(graph, document_count(items.document), items.document.len);
    document_iter_init(&iter, items.document);
    while (document_iter_next(&iter) && !gremlin_heap_failed(heap))
        if (item_has(&sought, iter.value.document))
            gremlin_list_add_take(*ret_items, gremlin_stored_decode(heap, &iter.value, NULL));
    if (!gremlin_heap_failed(heap))
        return true;
    gremlin_value_unref(*ret_items);
    return gremlin_heap_error(heap, err);
}
