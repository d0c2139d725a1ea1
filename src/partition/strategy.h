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
 *   hash     the effective partition key (epk.h), with -0 taken as the 0 that it equals
 *   range    the components one after the other, typed and in the SQL order of document/order.h;
 *            of a long text as many bytes as count, and a hash of the rest
 *   lookup   the number of a virtual shard, 2 bytes big-endian, and the same bytes as with range;
 *            a directory (lookup.h) or a rule says which shard the first component belongs to */
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

/* The whole key that a bound within it is of (PARTITION_CUT_SPREAD): routing key and pk, and pk
 * alone; both borrowed from the bound. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_route_cut(const struct partition_definition *definition,
                                   struct slice bound, struct slice *ret_logical,
                                   struct slice *ret_pk, struct error *err);

/* Moves *bytes behind the routing key at its start. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_route_skip(const struct partition_definition *definition,
                                    struct slice *bytes, struct error *err);

/* Up to n - 1 ascending bounds that give as many spans even shares of the keys to be expected; how
 * many there are is returned. Hashing has any number of them, lookup those between virtual shards,
 * and of the keys of a range container nothing is known in advance but the bounds its creator
 * gave. ret_points has room for n - 1; the bytes live in the arena. 1 <= n <= 2^24. */
size_t partition_route_split_points(const struct partition_definition *definition, size_t n,
                                    struct arena *arena, struct slice *ret_points);

/* Below, at or above zero, of two routing keys or bounds as clients send them: they know hashing
 * alone, and drop zeros from its keys (epk.h). */
int partition_route_compare(const struct partition_definition *definition, struct slice a,
                            struct slice b);

/* Could these bytes be a bound of a span? Of hashing anything could. Clients that compute bounds do
 * so by hashing: with another strategy theirs mean nothing, and are told apart here. */
bool partition_route_is_bound(const struct partition_definition *definition, struct slice bytes);

/* Is the order of routing keys that of the values? Then partition_route_between narrows. */
bool partition_route_is_ordered(const struct partition_definition *definition);

/* Of an ordered strategy: the range of the routing keys of all keys that begin with prefix, a
 * partial key, and whose next component has bytes from min, inclusive, to max, exclusive: bytes of
 * values as document_key_append or, cut anywhere, document_key_append_cut writes them in the SQL
 * order. It may hold more, where texts are long. In the arena. */
struct partition_range partition_route_between(const struct partition_definition *definition,
                                               const struct partition_key *prefix, struct slice min,
                                               struct slice max, struct arena *arena);

/* Of an ordered strategy: as many bytes of the value of its first component as a routing key or
 * bound has at its start; none: it is an end of the key space. Borrowed. */
struct slice partition_route_first(struct slice bound);

/* Appends the routing key that the key at the start of *bytes has under another definition, and
 * moves *bytes behind it: what a migration to that definition stores it under. The two have the
 * same paths. ERROR_NOT_SUPPORTED: they differ in more than the directory. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_reroute(const struct partition_definition *from,
                                 const struct partition_definition *to, struct slice *bytes,
                                 struct buf *buf, struct error *err);
