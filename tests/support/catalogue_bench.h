/* Catalogue bench: a node, and the catalogue that is open on it; for stories told on several
 * engines. ON(memory, story) and its kin are the rows of a list of tests. */
#pragma once

#include "catalogue/catalogue.h"
#include "support/fault_engine.h"
#include "support/postgres.h"
#include "support/scratch.h"

#include <stdatomic.h>

struct bench {
    struct scratch scratch;
    struct arena *arena;
    struct slice url;      /* none: in memory, where the engine outlives catalogues */
    struct engine *engine; /* in memory: a fault engine */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct definition_limits limits; /* of the catalogue when it is opened next */
    atomic_uint gone;                /* physical partitions the catalogue has called gone */
};

void bench_open(struct bench *bench);
void bench_close(struct bench *bench);
void bench_reopen(struct bench *bench);

int bench_setup_memory(void **state);
int bench_setup_rocksdb(void **state);
int bench_setup_postgresql(void **state); /* the initial state is the server */
int bench_teardown(void **state);

/* Short words for what the stories begin with; body is JSON. */
void bench_account(struct bench *bench, const char *id);
void bench_database(struct bench *bench, const char *account, const char *id, int64_t ru);
void bench_container(struct bench *bench, const char *account, const char *database,
                     const char *json, int64_t ru);

#define BENCH_BODY(id) "{\"id\":\"" id "\",\"partitionKey\":{\"paths\":[\"/pk\"]}}"

#define ON(engine, story)                                                                          \
    {                                                                                              \
#engine ": " #story, story, bench_setup_##engine, bench_teardown, NULL                     \
    }
#define ON_POSTGRESQL(story)                                                                       \
    {                                                                                              \
        "postgresql: " #story, story, bench_setup_postgresql, bench_teardown, server               \
    }
#define ON_BOTH(story) ON(memory, story), ON(rocksdb, story)
