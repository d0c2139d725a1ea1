/* Key ranges: which partition keys a query can find anything under, read off its WHERE as
 * query/access/pins.h does it for plans; for whoever has the tree and no plan. */
#pragma once

#include "front/rest/sql/ast.h"
#include "query/access/pins.h"

/* Sorted, without overlaps. None: nothing can match, or there is no FROM. The query is resolved,
 * and bound: a parameter without value could be anything. */
void sql_key_ranges(const struct sql_query *query, const struct partition_definition *definition,
                    struct arena *arena, const struct query_key_range **ret_ranges,
                    size_t *ret_count);
