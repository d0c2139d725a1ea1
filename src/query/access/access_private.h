/* Access from within: where to look, and what each index offers. */
#pragma once

#include "query/access/access.h"

struct query_index_uses {
    struct query_index_use *list;
    size_t count, capacity;
};

/* A path for people. */
struct slice query_path_name(const struct document_path *path, struct arena *arena);

/* Of the order of a plan: may an index give it? */
static inline bool query_index_agrees(const struct query_plan *plan, const struct item_space *space)
{
    return plan->order == query_index_order(space);
}

/* Is the path indexed for all items, also those whose entries an older policy made? */
bool query_index_covers(const struct item_space *space, const struct document_path *path);
bool query_index_covers_undefined(const struct item_space *space, const struct document_path *path);

/* What indexes offer for a filter. */
void query_index_uses_find(const struct item_space *space,
                           const struct query_conditions *conditions, struct query_index_uses *uses,
                           struct arena *arena);

/* The index that has the items in the order of the plan, forwards or backwards; false: none. */
bool query_index_for_order(const struct query_plan *plan, const struct item_space *space,
                           const struct query_conditions *conditions, struct arena *arena,
                           struct query_index_use *ret_use, bool *ret_backwards,
                           struct document_path *ret_path);

/* The composite index with these paths and directions, or all of them reversed. */
const struct index_composite *query_composite_for_order(const struct query_plan *plan,
                                                        const struct item_space *space,
                                                        struct arena *arena, bool *ret_backwards);
