/* World: a container of the catalogue on two guarded nodes, for clients that work while everything
 * about it changes. The second node can fail and come back, a write to either can be left unknown,
 * and all that is in memory can be thrown away and opened again from the stores. */
#pragma once

#include "base/random.h"
#include "base/thread.h"
#include "catalogue/catalogue.h"
#include "item/operation.h"
#include "migration/migrator.h"
#include "support/fault_engine.h"
#include "support/postgres.h"
#include "support/scratch.h"

#include <stdatomic.h>

enum { WORLD_NODES = 2 };

enum world_stores {
    WORLD_MEMORY,
    WORLD_ROCKSDB,
    WORLD_ROCKSDB_POSTGRESQL, /* the second node is a server, which is killed when it is to fail */
    WORLD_ROCKSDB_REPLICATED, /* it is a server with a standby, which takes over when it is killed
                               */
};

struct world_node {
    struct world *world;
    uint32_t number;
    struct engine *memory; /* survives crashes; NULL: the store is elsewhere */
    struct engine *guard;
    struct engine *engine; /* a faulty one around the store, behind the guard; under nodes_lock */
};

struct world {
    enum world_stores stores;
    struct scratch scratch;
    struct postgres *postgres, *standby; /* or NULL */
    char postgresql[512];                /* the URL of the first, or of both */

    struct mutex nodes_lock; /* held while a node is looked after or spoiled */
    struct world_node nodes[WORLD_NODES];
    bool away, dark; /* the second node cannot be reached; nothing can */
    struct thread keeper;
    atomic_bool stopping;

    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct item_gates *gates;
    struct clock clock; /* the system's; from it a space finds its world */

    struct mutex gate_lock; /* under it: */
    struct condition gate_changed;
    size_t inside; /* operations of clients */
    atomic_bool crashing;
    uint64_t *moments; /* when what had been unknown was settled; owned */
    size_t moment_count, moment_capacity;

    bool calm;           /* nothing will crash: spaces wait for maps as they always do */
    atomic_bool is_over; /* everything happened that was to */

    /* What happened. */
    uint64_t migrations[MIGRATION_KINDS], cancelled; /* done, before the last crash */
    unsigned crashes, crashes_behind_fence, starts_without_node, failures, faults;
};

/* definition: of the container, JSON, its id "c". ru: its throughput; 0: the default. */
void world_init(struct world *world, enum world_stores stores, const char *definition, uint64_t ru);
void world_done(struct world *world);

/* --- For clients ----------------------------------------------------------------------------- */

/* As clients_place says; context is the world. While the world crashes nobody gets in. */
struct note;
struct item_space world_enter(void *context, struct note *note, bool plain, void **ret_visit);
void world_leave(void *context, void *visit);
void world_disturbed(void *context);
struct agreements *world_agreements(void *context);

/* The container as it is now, for one that is inside or the only one; a reference. */
struct container *world_container(struct world *world);

/* --- For whoever disturbs it: one thread ----------------------------------------------------- */

/* All migrations done so far. */
uint64_t world_migrations(struct world *world, enum migration_kind kind);

/* The server dies in the middle of everything and starts again, perhaps without the second node.
 * random: which write, if any, was just under way, and what became of it. */
void world_crash(struct world *world, struct random *random);

/* The second node goes away, or comes back and serves. */
void world_fail(struct world *world);
void world_return(struct world *world);

/* One of the next writes of a node is done or not, and nobody is told; the node recovers. */
void world_fault(struct world *world, struct random *random);

/* Waits until no migration is under way, and looks at everything that is stored. */
void world_verify(struct world *world);
