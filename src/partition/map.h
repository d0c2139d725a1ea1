/* Shard map: which physical partition owns a routing key, as known at one version.
 *
 * A map never changes once built. A split, merge or move publishes another map with a higher
 * version, and readers keep the one they hold, so routing a request takes no lock. The spans of a
 * map tile the whole key space: every routing key is in exactly one of them. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "partition/definition.h"
#include "partition/strategy.h"

enum { PARTITION_SPANS_MAX = 65536 };

/* Why a span begins where it does. What was cut for a reason of its own stays so when it is calm.
 */
enum partition_cut {
    PARTITION_CUT_NEEDED,   /* by limits, throughput or heat: merged again when it is not */
    PARTITION_CUT_BY_HAND,  /* an operator split it */
    PARTITION_CUT_ISOLATED, /* a key value has a partition for itself */
    PARTITION_CUT_PLACED,   /* by a placement rule */
    PARTITION_CUT_SPREAD,   /* within a key value that its owner has spread: routing key, pk and the
                             * beginning of an id. Whatever belongs to the whole key lies with its
                             * first part, and all parts are on one node */
};
enum { PARTITION_CUTS = 5 };

/* "needed", "hand", "isolated", "placed", "spread". */
const char *partition_cut_name(enum partition_cut cut);

/* One physical partition: the routing keys from min, inclusive, to max, exclusive. */
struct partition_span {
    uint32_t id;             /* of the physical partition; never used again */
    uint32_t node;           /* index of the node that holds its items */
    uint64_t epoch;          /* under which it is owned; writes are fenced by it */
    double share;            /* of the container's throughput; all shares together are 1 */
    enum partition_cut cut;  /* at min */
    struct slice min, max;   /* borrowed */
    const uint32_t *parents; /* borrowed: the ids it came from, oldest first */
    size_t parent_count;
};

struct partition_map; /* opaque, shared, reference-counted */

/* Builds a map from spans in any order, copying them. The caller owns one reference.
 * ERROR_RANGES_BROKEN: they leave a gap or overlap, two have the same id, or the shares are not
 * parts of one whole. ERROR_TOO_LARGE: more than PARTITION_SPANS_MAX. */
NODISCARD bool partition_map_new(const struct partition_span *spans, size_t count, uint64_t version,
                                 struct partition_map **ret_map, struct error *err);

/* The same for the map that follows another: it remembers the bounds of spans that the other had
 * and it has not, for clients who still name them; no more than PARTITION_GONE_MAX of them. */
enum { PARTITION_GONE_MAX = 128 };
NODISCARD bool partition_map_next(const struct partition_map *before,
                                  const struct partition_span *spans, size_t count,
                                  uint64_t version, struct partition_map **ret_map,
                                  struct error *err);

/* The first map of a container. */
struct partition_map_plan {
    const struct partition_definition *definition;
    size_t count;          /* of spans, at least 1, at most: the strategy may know fewer bounds */
    uint32_t first_id;     /* the spans get this id and those that follow, in key order */
    uint64_t epoch;        /* of every span */
    const uint32_t *nodes; /* dealt to the spans in turn */
    size_t node_count;     /* at least 1 */
};

/* Builds version 1 of a map: spans that keys are expected to reach equally often, with even shares.
 * ERROR_TOO_LARGE: more than PARTITION_SPANS_MAX. */
NODISCARD bool partition_map_new_even(const struct partition_map_plan *plan,
                                      struct partition_map **ret_map, struct error *err);

struct partition_map *partition_map_ref(struct partition_map *map);
void partition_map_unref(struct partition_map *map); /* NULL is fine */
CLEANUP_FN(struct partition_map *, partition_map_unref)

/* Does anybody hold the map besides the caller, who holds one reference? */
bool partition_map_is_shared(const struct partition_map *map);

uint64_t partition_map_version(const struct partition_map *map);

/* All spans, in key order. Borrowed while map is held, as is every span below. */
const struct partition_span *partition_map_spans(const struct partition_map *map,
                                                 size_t *ret_count);

/* The span owning a routing key; never NULL, for a map has no gaps. What is at or above
 * PARTITION_ROUTING_MAX, which no routing key is, is given to the last span. */
const struct partition_span *partition_map_find(const struct partition_map *map,
                                                struct slice routing_key);

/* Is any key value spread over several spans? Then an item is found by all of its key. */
bool partition_map_is_spread(const struct partition_map *map);
/* Does the span begin or end within a key value? */
bool partition_map_is_part(const struct partition_map *map, const struct partition_span *span);
/* The spans that a logical partition (routing key and pk) is in, in the order of its ids: one,
 * unless it is spread. The first has what belongs to the whole of it. */
const struct partition_span *partition_map_parts(const struct partition_map *map,
                                                 struct slice logical, size_t *ret_count);

/* The span of that id, or NULL: it never was, or has been split, merged or moved away. */
const struct partition_span *partition_map_find_id(const struct partition_map *map, uint32_t id);

/* The routing keys that a partition had which has been split, merged or moved away. False: it never
 * was, it is here, or that is too long ago. Borrowed while map is held. */
bool partition_map_find_gone(const struct partition_map *map, uint32_t id,
                             struct partition_range *ret_range);

/* All that are remembered, those that went last first: for whoever keeps a map. */
struct partition_gone {
    uint32_t id;
    struct partition_range range;
};
const struct partition_gone *partition_map_gone(const struct partition_map *map, size_t *ret_count);
void partition_map_set_gone(struct partition_map *map, const struct partition_gone *gone,
                            size_t count); /* of a map nobody else holds yet */

/* The first of the spans that overlap a range, which follow one another; none if the range is
 * empty. */
const struct partition_span *partition_map_overlap(const struct partition_map *map,
                                                   struct partition_range range, size_t *ret_count);

/* Appends the map as a BSON document, as the catalogue keeps it; the format is at the top of
 * map_bson.c. */
void partition_map_append(const struct partition_map *map, struct buf *buf);

/* Builds a map from such a document. ERROR_STORE_VERSION: a newer Orrery wrote it.
 * ERROR_STORE_CORRUPT, ERROR_RANGES_BROKEN: it is damaged. */
NODISCARD bool partition_map_read(struct slice document, struct partition_map **ret_map,
                                  struct error *err);
