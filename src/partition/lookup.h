/* Lookup: a directory says which virtual shard a key belongs to.
 *
 * There is a fixed number of virtual shards. The first component of a partition key names one, by
 * its line in the directory or, if it has none, by a rule: a hash of it over all shards, or one
 * shard for all of them. So all keys that begin alike are in one shard. Shards are the beginning of
 * routing keys: physical partitions hold some of them each, or a part of one.
 *
 * A *zone* is a row of shards for all texts that begin alike: they are spread over its shards by
 * their hash, or are in the one their line names, and no other key is ever in these. So all keys of
 * "eu-*" lie in one range of routing keys, those to come too.
 *
 * A directory is a part of the partition key definition and as immutable. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"
#include "partition/definition.h"
#include "partition/strategy.h"

enum {
    PARTITION_SHARDS_MAX = 32768,
    PARTITION_SHARD_SIZE = 2, /* bytes at the start of a routing key */
    PARTITION_ZONES_MAX = 64,
    PARTITION_ZONE_BEGINNING_MAX = 60, /* bytes: a component is not cut so soon */
};

/* A line: the component as in routing keys, and its shard. */
struct partition_line {
    struct slice component;
    uint32_t shard;
};

/* Texts that begin so, and their shards from first to last. */
struct partition_zone {
    struct slice beginning;
    struct slice component; /* what their components begin with */
    uint32_t first, last;
};

struct partition_lookup {
    uint32_t shards;
    bool hashes; /* keys without a line are spread; else they are in preset */
    uint32_t preset;
    uint32_t zoned;                     /* shards that are of zones */
    const struct partition_line *lines; /* sorted by component */
    size_t line_count;
    const struct partition_zone *zones; /* by their shards */
    size_t zone_count;
};

/* The component of a value, in the arena. */
struct slice partition_component(const struct document_value *value, struct arena *arena);

/* Takes zones, as many as count, and sorts them; shards and the rule for other keys are set. Before
 * the lines. ERROR_BAD_REQUEST: they overlap, begin alike, or leave no shard for other keys. */
NODISCARD bool partition_lookup_zones_settle(struct partition_lookup *lookup,
                                             struct partition_zone *zones, size_t count,
                                             struct arena *arena, struct error *err);

/* The routing keys of a zone, in the arena. False: no zone is of texts that begin so. */
NODISCARD bool partition_lookup_zone_range(const struct partition_lookup *lookup,
                                           struct slice beginning, struct arena *arena,
                                           struct partition_range *ret_range);

/* Sorts lines, which are as many as line_count says. ERROR_BAD_REQUEST: two are of one key, or one
 * names a shard that there is not, or that is of another zone than its key. */
NODISCARD bool partition_lookup_settle(struct partition_lookup *lookup,
                                       struct partition_line *lines, struct error *err);

/* The line of a component, or NULL. */
const struct partition_line *partition_lookup_find(const struct partition_lookup *lookup,
                                                   struct slice component);

/* The shard of a component, by its line or by the rule. */
uint32_t partition_lookup_shard(const struct partition_lookup *lookup, struct slice component);

/* The routing keys of all keys whose first component is this one, as long as it is in that shard;
 * in the arena. */
struct partition_range partition_lookup_range(uint32_t shard, struct slice component,
                                              struct arena *arena);

/* Calls `each` for every component that two directories of one container place in different shards,
 * of some twice, until it says false. Only those with a line in one of the two may be. */
NODISCARD bool partition_lookup_differences(const struct partition_lookup *before,
                                            const struct partition_lookup *after,
                                            bool (*each)(void *context, struct slice component,
                                                         uint32_t from, uint32_t to,
                                                         struct error *err),
                                            void *context, struct error *err);
