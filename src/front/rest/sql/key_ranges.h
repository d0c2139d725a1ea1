/* Key ranges: which partition keys a query can find anything under, read off its WHERE.
 *
 * What pins the key to single values is used: equality, IN, LIKE without wildcards, the key itself
 * as a condition, and AND, OR and NOT of these; and, where routing keys have the order of the
 * values, comparisons, BETWEEN and STARTSWITH too. Everything else may hold for any key. So the
 * ranges may be too many, never too few. */
#pragma once

#include "front/rest/sql/ast.h"
#include "partition/definition.h"

/* Routing keys from min up to max; of a point, min is max and belongs to it, otherwise max does
 * not. The bytes are in the arena. */
struct sql_key_range {
    struct slice min, max;
    bool point;
};

/* Sorted, without overlaps. None: nothing can match, or there is no FROM. The query is resolved,
 * and bound: a parameter without value could be anything. */
void sql_key_ranges(const struct sql_query *query, const struct partition_definition *definition,
                    struct arena *arena, const struct sql_key_range **ret_ranges,
                    size_t *ret_count);
