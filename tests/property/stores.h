/* Stores of the containers that move: two nodes in memory, on disks, or one of them a PostgreSQL
 * server, that fail on demand; and what a run is told by its environment. */
#pragma once

#include "property/moving.h"
#include "support/postgres.h"
#include "support/scratch.h"

extern const struct moving_store stores_memory, stores_memory_failing;

/* Two nodes that are opened anew after a restart. */
struct stores {
    struct scratch scratch;
    struct postgres *postgres; /* borrowed; NULL: both nodes are RocksDB's */
    char url[256];             /* of a fresh database there */
    int64_t connect_ms_max;    /* 0: the engine's own */
    bool away;
};

/* A restart opens them; writes can fail. */
struct moving_store stores_on_disk(struct stores *stores, struct postgres *postgres);

/* The second node is away at times: its directory, or its server is killed. */
struct moving_store stores_failing(struct stores *stores, struct postgres *postgres);
void stores_done(struct stores *stores);
CLEANUP_VALUE_FN(struct stores, stores_done)

/* A number of the environment (ORRERY_TEST_SEED, ORRERY_TEST_STEPS). */
uint64_t stores_number(const char *name, uint64_t otherwise);
