/* The condition is compiled by itself: a plan need not be possible for its keys to be known. What
 * it pins is then the same question as when a plan is run. */
#include "front/rest/sql/key_ranges.h"

#include "front/rest/sql/compile_private.h"

void sql_key_ranges(const struct sql_query *query, const struct partition_definition *definition,
                    struct arena *arena, const struct query_key_range **ret_ranges,
                    size_t *ret_count)
{
    struct query_plan plan;

    sql_compile_filter(query, arena, &plan);
    query_key_ranges(&plan, definition, arena, ret_ranges, ret_count);
}
