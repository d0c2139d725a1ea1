/* Strategy: from a partition key to its routing key, the ordered bytes that decide which physical
 * partition an item is in.
 *
 * Everything below sees routing keys alone, so that the shard map, splits, merges, moves and
 * fan-out exist once for all strategies. Whatever a strategy does, this holds:
 *
 *   - equal keys have equal routing keys; so one logical partition is never in two places;
 *   - every routing key is in [PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX), begins neither with
 *     FF nor with another routing key of the container, and is at most PARTITION_ROUTING_KEY_MAX
 *     bytes long;
 *   - the routing keys of all keys that begin with a partial key lie in one range.
 *
 * Hashing is the only strategy today: the routing key is the effective partition key (epk.h), with
 * -0 taken as the 0 that it equals. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "partition/definition.h"
#include "partition/epk.h"
#include "partition/key.h"

#define PARTITION_ROUTING_MIN PARTITION_EPK_MIN
#define PARTITION_ROUTING_MAX PARTITION_EPK_MAX

/* Routing keys from min, inclusive, to max, exclusive. */
struct partition_range {
    struct slice min, max;
};

/* Appends the routing key of a whole key. */
void partition_route(const struct partition_definition *definition, const struct partition_key *key,
                     struct buf *buf);

/* The range that holds the routing keys of all keys that begin with this one: of a whole key its
 * own alone, of the empty prefix all of them. A stored key `routing key | pk | id` lies between the
 * same two bounds. In the arena. */
struct partition_range partition_route_range(const struct partition_definition *definition,
                                             const struct partition_key *key, struct arena *arena);

/* Moves *bytes behind the routing key at its start. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_route_skip(const struct partition_definition *definition,
                                    struct slice *bytes, struct error *err);

/* The n - 1 ascending bounds that give n spans even shares of the keys to be expected. ret_points
 * has room for them; the bytes live in the arena. 1 <= n <= 2^24. */
void partition_route_split_points(const struct partition_definition *definition, size_t n,
                                  struct arena *arena, struct slice *ret_points);
