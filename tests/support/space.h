/* Space: one container on one node, made by hand, for tests of items without a catalogue. The
 * clock stands still until the test turns it. */
#pragma once

#include "item/operation.h"

struct test_space {
    struct engine *engine;
    struct commit *commit;
    struct commit_clock *times; /* NULL: changes are not told */
    struct arena *arena;        /* of the definition and the map */
    struct definition_fields definition;
    struct item_space space;
    struct clock clock;
    int64_t wall_ms;
    struct commit_options commit_options;
};

/* What a test wants its container to be; zeros: /pk, version 2, all paths indexed, no TTL. */
struct test_space_options {
    const char *paths[3];              /* of the partition key; NULL: "/pk" alone */
    const char *synthetic;             /* JSON of a synthetic key */
    const char *policy;                /* JSON of an indexing policy */
    const char *vectors;               /* JSON of a vectorEmbeddingPolicy */
    const char *indexes[4];            /* JSON of definitions besides it */
    const char *unique_paths[4];       /* each a unique key of its own */
    enum definition_identity identity; /* "id" where nothing is said */
    int32_t default_ttl;
    int64_t feed_retention_ms;
    size_t partitions;     /* 0: 1 */
    const char *bounds[8]; /* texts, ascending: the strategy is range, cut at these; not hash */
    int64_t logical_bytes_max;
    bool tells;                          /* its changes are told in the history of the node */
    const struct commit_options *commit; /* engine, clock and times are filled in; NULL: zeros */
};

/* Takes the engine over. The partitions are numbered from 1 under epoch 1; those that exist are
 * opened. */
void test_space_init(struct test_space *test, struct engine *engine,
                     const struct test_space_options *options);
void test_space_done(struct test_space *test);

/* Stops the committer and starts another, as a restart of the process would. */
void test_space_restart(struct test_space *test);

/* The partition key ["text"], or [number] and so on, from the JSON of the array. */
struct partition_key test_space_key(struct test_space *test, const char *json);
