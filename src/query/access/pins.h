/* Pins: which partition keys a filter can find anything under. Worked out once, from what the
 * filter implies, for the targets of a page and for the ranges that clients are told.
 *
 * A pin gives values, or bounds, to some components of the key, and the filter can hold only where
 * one of the pins fits. So the keys may be too many, never too few. */
#pragma once

#include "partition/definition.h"
#include "partition/map.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"
#include "query/access/conditions.h"

/* Routing keys from min up to max; of a point, min is max and belongs to it, otherwise max does
 * not. */
struct query_key_range {
    struct slice min, max;
    bool point;
};

/* Those that the filter of a plan allows: sorted, without overlaps, in the arena. None: nothing can
 * match, or the plan reads nothing. */
void query_key_ranges(const struct query_plan *plan, const struct partition_definition *definition,
                      struct arena *arena, const struct query_key_range **ret_ranges,
                      size_t *ret_count);

/* The same with ranges in place of the points that a map has spread over several spans, in the
 * arena or as they are. */
const struct query_key_range *query_key_ranges_widen(const struct query_key_range *ranges,
                                                     size_t count, const struct partition_map *map,
                                                     struct arena *arena);

/* One key, or the keys that begin with a partial one, or of those what lies between two values of
 * the next component. */
struct query_pinned {
    struct partition_key key;
    struct partition_range between; /* bytes of values; max without data: all */
};

struct query_pinning {
    struct query_pinned *list; /* none: the filter holds nowhere; one empty key: anywhere */
    size_t count;
    bool anywhere;
    bool sure; /* nothing was given up: every pin says all that the filter says of the key */
};

/* What is implied must be in the bytes of DOCUMENT_ORDER_SQL, which routing keys have. */
struct query_pinning query_pins_find(const struct query_implied *implied,
                                     const struct partition_definition *definition,
                                     struct arena *arena);

/* Is the conjunct true for all items of the keys that it pins, where these are whole? */
bool query_pins_settle(const struct query_implied *conjunct,
                       const struct partition_definition *definition);
