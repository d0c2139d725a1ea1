#include "support/graph_bench.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "item/operation.h"
#include "support/check.h"
#include "support/documents.h"

static int64_t wall_ms(void *context)
{
    return clock_wall_ms() + ((struct graph_bench *)context)->later_ms;
}

static int64_t monotonic_ms(void *context)
{
    return clock_monotonic_ms() + ((struct graph_bench *)context)->later_ms;
}

int graph_bench_setup(void **state)
{
    struct graph_bench *bench = MEMORY_NEW(struct graph_bench);
    struct net_workers_settings workers = net_workers_settings_default();
    const struct front_query_limits limits = {.pause_ms = 60000,
                                              .deadline_ms = 600000,
                                              .memory_bytes_max = 64 << 20,
                                              .cache_bytes_max = 1 << 20,
                                              .spill_directory = "/tmp"};

    bench_setup_memory((void **)&bench->bench);
    bench_account(bench->bench, "a");
    bench_database(bench->bench, "a", "d", 0);
    bench->arena = arena_new();
    bench->clock = (struct clock){wall_ms, monotonic_ms, bench};
    workers.threads_max = 4;
    bench->services = (struct front_services){.catalogue = bench->bench->catalogue,
                                              .gates = item_gates_new(),
                                              .clock = &bench->clock,
                                              .workers = net_workers_new(&workers),
                                              .queries = front_queries_new(&limits),
                                              .query_threads = 4};
    bench->call = (struct front_call){
        .services = &bench->services, .cancelled = &bench->cancelled, .may_block = true};
    bench->heap = gremlin_heap_new(&(struct gremlin_heap_options){0});
    *state = bench;
    return 0;
}

int graph_bench_teardown(void **state)
{
    struct graph_bench *bench = *state;

    gremlin_heap_free(bench->heap);
    net_workers_free(bench->services.workers);
    front_queries_free(bench->services.queries);
    item_gates_free(bench->services.gates);
    arena_free(bench->arena);
    bench_teardown((void **)&bench->bench);
    memory_free(bench);
    return 0;
}

void graph_bench_define(struct graph_bench *bench, const char *json, unsigned partitions)
{
    bench_container(bench->bench, "a", "d", json, (int64_t)partitions * 10000);
}

void graph_bench_container(struct graph_bench *bench, const char *id, const char *paths_json,
                           unsigned partitions)
{
    struct slice json =
        paths_json
            ? arena_printf(bench->arena, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[%s]%s}}", id,
                           paths_json,
                           strchr(paths_json, ',') ? ",\"kind\":\"MultiHash\",\"version\":2" : "")
            : arena_printf(bench->arena, "{\"id\":\"%s\"}", id);

    bench_container(bench->bench, "a", "d", arena_text(bench->arena, json),
                    paths_json ? (int64_t)partitions * 10000 : 0);
}

static struct container *container_of(struct graph_bench *bench, const char *id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(bench->bench->catalogue, SLICE("a"), SLICE("d"),
                                       slice_of_text(id), &container, &err),
              &err);
    return container;
}

struct gremlin_graph *graph_bench_graph_with(struct graph_bench *bench, const char *id,
                                             struct gremlin_graph_options options)
{
    CLEANUP(container_unref) struct container *container = container_of(bench, id);
    struct gremlin_graph *graph;
    struct error err;

    options.services = &bench->services;
    options.container = container;
    if (!options.heap)
        options.heap = bench->heap;
    assert_ok(gremlin_graph_new(&options, &graph, &err), &err);
    gremlin_graph_enter(graph, &bench->call);
    return graph;
}

struct gremlin_graph *graph_bench_graph(struct graph_bench *bench, const char *id)
{
    return graph_bench_graph_with(bench, id, (struct gremlin_graph_options){0});
}

void graph_bench_item(struct graph_bench *bench, const char *id, const char *json)
{
    CLEANUP(container_unref) struct container *container = container_of(bench, id);
    struct item_space space = container_space(container, &bench->clock, bench->services.gates);
    struct slice document = document_of(bench->arena, json);
    struct item_operation op = {.space = &space,
                                .arena = bench->arena,
                                .verb = ITEM_CREATE,
                                .key = partition_key_extract(&space.definition->key, document),
                                .document = document};
    struct error err;

    assert_true(document_find(document, SLICE("id"), &op.id));
    assert_ok(item_operation_run(&op, &err), &err);
}
