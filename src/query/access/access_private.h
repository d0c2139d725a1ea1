/* Access from within: where to look, and what each index offers. */
#pragma once

#include "query/access/access.h"

struct query_index_uses {
    struct query_index_use *list;
    size_t count, capacity;
};

/* A path for people. */
struct slice query_path_name(const struct document_path *path, struct arena *arena);

/* Is the path indexed for all items, also those whose entries an older policy made? */
bool query_index_covers(const struct item_space *space, const struct document_path *path);
bool query_index_covers_undefined(const struct item_space *space, const struct document_path *path);

/* What a filter says, in the bytes of each order. Only those are made that somebody asks for. */
struct query_filter {
    const struct query_plan *plan;
    struct arena *arena;
    struct query_conditions orders[2]; /* by enum document_order */
    bool made[2];
};

const struct query_conditions *query_filter_in(struct query_filter *filter,
                                               enum document_order order);

/* What indexes offer for a filter. */
void query_index_uses_find(const struct item_space *space, struct query_filter *filter,
                           struct query_index_uses *uses);

/* The index that has the items in the order of the plan, forwards or backwards; false: none.
 * *ret_path: the path of an index that leaves out arrays and objects, and items without a value
 * unless the policy names it; without segments: it has every item. */
bool query_index_for_order(const struct query_plan *plan, const struct item_space *space,
                           struct query_filter *filter, struct query_index_use *ret_use,
                           bool *ret_backwards, struct document_path *ret_path);

/* The index with these paths and directions, or all of them reversed, whose values stand in the
 * order of the plan. */
const struct index_composite *query_composite_for_order(const struct query_plan *plan,
                                                        const struct item_space *space,
                                                        struct arena *arena, bool *ret_backwards);
