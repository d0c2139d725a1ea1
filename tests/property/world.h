/* World: one container made by hand, on a store that can be made to fail, with a clock the test
 * turns. Which items there can be is fixed: a few logical partitions, a few ids in each, so that
 * random operations meet the same items again and again. */
#pragma once

#include "base/random.h"
#include "item/operation.h"

enum {
    WORLD_KEYS = 8,       /* logical partitions */
    WORLD_IDS = 8,        /* ids in each */
    WORLD_PARTITIONS = 4, /* physical partitions, at most */
    WORLD_FIRST_PARTITION = 11,
};

/* What a container is like. */
struct world_config {
    const char *name;
    const char *key;              /* partition key definition, JSON */
    const char *const *key_texts; /* WORLD_KEYS keys, as the header of a request has them */
    const char *policies[2];      /* indexing policies, JSON, in turn; NULL: the default */
    const char *unique_keys[3];   /* comma-separated paths; NULL ends */
    size_t partitions;
    int32_t default_ttl;
    int64_t feed_retention_ms;
    int64_t logical_bytes_max;
    bool clock_may_step_back;
};

extern const struct world_config world_plain;        /* one path, no time to live */
extern const struct world_config world_hierarchical; /* two paths, unique keys, time to live, all
                                                        versions kept */
extern const struct world_config world_own_ttl;      /* hash version 1, items' own time to live,
                                                        versions kept for a short while */

/* One logical partition. */
struct world_key {
    struct partition_key key;
    struct slice logical, routing;
    uint32_t partition; /* index: id - WORLD_FIRST_PARTITION */
};

struct world {
    const struct world_config *config;
    struct arena *arena; /* for as long as the world */
    struct definition_fields definition;
    struct world_key keys[WORLD_KEYS];
    struct document_value ids[WORLD_IDS];
    struct slice item_keys[WORLD_KEYS][WORLD_IDS];

    /* What the catalogue would remember of the index. */
    const struct index_policy *policies[2];
    uint32_t policy_version;
    size_t policies_behind; /* versions before it that items may still be indexed by */
    uint32_t transform_partition;
    struct slice transform_position;

    struct engine *engine; /* the faulty one around the real one */
    struct commit *commit;
    struct partition_map *map;
    uint64_t epoch;
    struct item_gates *gates;
    struct item_space space;
    struct clock clock;
    int64_t now_ms;
};

/* Takes the engine over and makes the partitions in it. */
void world_init(struct world *world, const struct world_config *config, struct engine *inner);
void world_done(struct world *world);

/* Everything in memory goes, as when the process ends; raised: another epoch, as when another
 * process takes over. world_stop alone, then another engine, then world_start: the store is opened
 * anew too. */
void world_stop(struct world *world);
void world_start(struct world *world, bool raised);

struct item_scope world_scope(const struct world *world, uint32_t partition);

/* The policy of a version. */
const struct index_policy *world_policy(const struct world *world, uint32_t version);

/* Begins a transform to the other policy, notes how far it is, and ends it. */
void world_policy_change(struct world *world);
void world_policy_progress(struct world *world, struct slice position, bool finished);

/* A random document of an item, with so many bytes more than it would have. */
struct slice world_document(struct world *world, struct random *random, unsigned key, unsigned id,
                            size_t filler);
