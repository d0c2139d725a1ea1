/* Living: a container on nodes of its own, whose partitions split, move or get other keys while
 * clients use it.
 *
 *     living_open(&living, &(struct living_options){.name = "...", .urls = urls, .url_count = 2});
 *     living_migrate(&living, &(struct migrator_options){...});
 *     living_fill(&living, items);
 *     ... clients.h ...
 *     living_close(&living);
 *
 * Whatever fails ends the program. */
#pragma once

#include "base/random.h"
#include "catalogue/container_space.h"
#include "migration/migrator.h"

enum { LIVING_NODES_MAX = 4, LIVING_MB = 1024 * 1024 };

struct living_options {
    const char *name;        /* of the comparison, for messages; stays */
    const char *const *urls; /* of the nodes, which get the names a, b, ... */
    size_t url_count;
    size_t write_buffer_bytes;              /* engine.write_buffer_bytes of each node; 0: its own */
    const char *key;                        /* path of the partition key; NULL: /tenant */
    const char *policy;                     /* indexing policy as JSON; NULL: every path */
    const struct definition_limits *limits; /* NULL: the published ones */
    int64_t ru;
};

struct living {
    const char *name;
    struct engine *engines[LIVING_NODES_MAX];
    size_t engine_count;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct item_gates *gates;
    uint64_t items;     /* of space.h: 0 and up */
    atomic_uint failed; /* operations */
};

void living_open(struct living *living, const struct living_options *options);
/* Starts the migrator; the catalogue is put into its options. */
void living_migrate(struct living *living, const struct migrator_options *options);
void living_close(struct living *living);

/* The container as it is now; the caller lets it go. */
struct container *living_container(struct living *living);

/* Waits until no migration is under way. */
void living_wait(struct living *living);

/* Puts about so many items of space.h into it, in transactions of a logical partition each, by many
 * writers at once; then waits until the nodes have finished what they put off, so that it is not
 * charged to what comes next. Says how long both took. */
void living_fill(struct living *living, uint64_t items);

/* One operation on an item drawn at random, in arena: half of them read it, half replace it. */
void living_operate(struct living *living, struct random *random, struct arena *arena);

/* A number from the environment. */
uint64_t living_option(const char *name, uint64_t preset);

/* Until a time of clock_monotonic_ms. */
void living_rest_until(int64_t until_ms);
