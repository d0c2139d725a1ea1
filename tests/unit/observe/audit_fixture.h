/* A catalogue in memory, behind an engine that can be told to fail. */
#pragma once

#include "base/memory.h"
#include "catalogue/catalogue.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"

struct fixture {
    struct arena *arena;
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct clock clock;
    _Atomic int64_t now_ms;
};

static inline int64_t test_now(void *context)
{
    return ((struct fixture *)context)->now_ms;
}

static inline int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    struct engine *inner;
    struct error err;

    fixture->arena = arena_new();
    fixture->now_ms = INT64_C(1700000000000);
    fixture->clock =
        (struct clock){.wall_ms = test_now, .monotonic_ms = test_now, .context = fixture};
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &inner, &err), &err);
    fixture->engine = fault_engine_new(inner);
    fixture->cluster = cluster_new(NULL);
    assert_ok(cluster_add(fixture->cluster, "a", fixture->engine, &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = fixture->cluster, .purge_by_hand = true},
                  &fixture->catalogue, &err),
              &err);
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;

    catalogue_close(fixture->catalogue);
    cluster_free(fixture->cluster);
    engine_close(fixture->engine);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}
