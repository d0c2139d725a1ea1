/* Scripts run on a graph bench, results as text: what tests of traversals are written with. */
#pragma once

#include "front/gremlin/run/run.h"
#include "support/graph_bench.h"

/* The toy graphs that TinkerPop's documentation uses, as scripts, one statement after another. */
extern const char *const gremlin_runs_modern[];
extern const char *const gremlin_runs_crew[];

struct gremlin_ran {
    bool good;
    struct error err;
    struct gremlin_outcome outcome;
    const char
        *text; /* results in the bench's arena, separated by " | "; the message of an error */
};

/* Runs the last statement's results to text; writes are committed. options NULL: the defaults. */
struct gremlin_ran gremlin_runs(struct graph_bench *bench, const char *container,
                                const char *script, const struct gremlin_run_options *options);

/* Runs all of them, which must succeed. */
void gremlin_runs_all(struct graph_bench *bench, const char *container, const char *const *scripts);
