/* Graph bench: containers of a catalogue in memory, opened as graphs; for whatever runs traversals.
 * There are workers, so that reads of several partitions run at the same time. */
#pragma once

#include "front/gremlin/graph/graph.h"
#include "front/kit/queries.h"
#include "support/catalogue_bench.h"

struct graph_bench {
    struct bench *bench;
    struct arena *arena;
    struct front_services services;
    struct front_call call;
    struct gremlin_heap *heap;
    atomic_bool cancelled;
    int64_t later_ms; /* that the clock is ahead of the system's */
    struct clock clock;
};

/* In memory, with an account "a" and a database "d". */
int graph_bench_setup(void **state);
int graph_bench_teardown(void **state);

/* Makes a container: fixed, or with these paths ("/pk") and so many physical partitions. */
void graph_bench_container(struct graph_bench *bench, const char *id, const char *paths_json,
                           unsigned partitions);

/* The same by the JSON of its definition. */
void graph_bench_define(struct graph_bench *bench, const char *json, unsigned partitions);

/* A graph on it, entered; freed with gremlin_graph_free before the bench. */
struct gremlin_graph *graph_bench_graph(struct graph_bench *bench, const char *id);
struct gremlin_graph *graph_bench_graph_with(struct graph_bench *bench, const char *id,
                                             struct gremlin_graph_options options);

/* A document as the NoSQL API would store it, in JSON; key NULL: a fixed container. */
void graph_bench_item(struct graph_bench *bench, const char *id, const char *json);
