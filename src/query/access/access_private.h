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

/* What a filter says to indexes that have all values of a path, by one collation. */
struct query_through {
    const struct document_collator *collator; /* NULL: none */
    struct query_conditions ways[2];          /* without arrays, with */
    bool made[2];
    struct query_through *next;
};

/* What a filter says, in the bytes of each order. Only those are made that somebody asks for. */
struct query_filter {
    const struct query_plan *plan;
    struct arena *arena;
    struct query_conditions orders[2]; /* by enum document_order */
    bool made[2];

    /* For definitions that have all values of a path (definitions.c): where there are arrays in the
     * targets, and what the filter says of paths with and without. */
    struct query_spans *spans;
    const struct query_targets *targets;
    struct query_through *through; /* those that somebody has asked for */
    const uint64_t *arrays; /* INDEX_PARTS_MAX for each definition besides; NULL: not looked */
    bool arrays_shown;      /* somebody wants to know of them, whether it matters or not */
    struct slice hint;      /* no other index than this one; data NULL: any */
    struct query_context *context; /* that it will be evaluated in */
    double within;                 /* of a region that the plan is ordered by, no more than this */
    uint64_t near_rows; /* as many rows are wanted by that order, and within is to be found; 0: it
                           is given */
    struct cursor_range bounds; /* of its entries, those that are wanted; data NULL: all */
    uint64_t work;              /* that looking for indexes took, in units of evaluation */
    bool failed;                /* looking failed: */
    struct error error;
};

/* What definitions of that kind offer for the filter. */
void query_definition_uses_find(const struct item_space *space, struct query_filter *filter,
                                struct query_index_uses *uses);

/* One of them that gives the order of the plan; false: none does. */
bool query_definition_for_order(const struct item_space *space, struct query_filter *filter,
                                struct query_index_use *ret_use, bool *ret_backwards);

/* All entries of a definition that a hint names. */
bool query_definition_whole(const struct item_space *space, struct query_filter *filter,
                            struct slice name, struct query_index_use *ret_use);

/* The ranges of cells that a region may be in, in the bytes of an order. False: its figure is none,
 * so nothing is found there by whoever looks. */
/* The circle that a region is, for query_index_use.circle; NULL: it is none. */
const struct search_circle *query_region_circle(const struct query_region *region,
                                                const struct query_filter *filter);
NODISCARD bool query_region_ranges(const struct query_region *region,
                                   const struct index_spatial *spatial, enum document_order order,
                                   struct query_filter *filter, struct query_ranges *ret_ranges);

/* Around the point of a region that the plan is ordered by. */
struct query_density {
    const struct index_definition *definition;
    size_t part;         /* of it: the cells */
    struct slice prefix; /* of the entries, up to the cells */
    const struct query_region *region;
};

/* How far away the rows that are wanted should be, by how densely entries lie; INFINITY: there may
 * be too few. False: the filter's error says why. */
NODISCARD bool query_density_radius(struct query_filter *filter,
                                    const struct query_density *density, double *ret_radius);

/* What spatial indexes offer. */
void query_spatial_uses_find(const struct item_space *space, struct query_filter *filter,
                             struct query_index_uses *uses);

/* A path that leads to one value of an item; NULL: it goes through arrays. */
const struct document_path *query_one_place(const struct document_path *path, struct arena *arena);

/* What full-text indexes offer. */
void query_text_uses_find(const struct item_space *space, struct query_filter *filter,
                          struct query_index_uses *uses);

struct query_index_use *query_index_use_add(struct query_index_uses *uses, struct arena *arena);

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

/* --- Choosing --------------------------------------------------------------------------------- */

struct query_choosing {
    const struct query_plan *plan;
    struct query_spans *spans;
    const struct item_space *space;
    struct arena *arena;
    struct query_filter filter;
    const struct query_conditions *conditions; /* in the order of the paths' entries */
    struct query_targets targets;
    struct query_index_uses uses;
    bool counted;     /* somebody wants to see the counts of all */
    uint64_t further; /* how far entries are counted at most */
    struct error *err;
};

/* Counts what unions lead to, and drops those that are of no use. */
NODISCARD bool query_unions_weigh(struct query_choosing *c);

/* Counts the entries in the first span, no further than max: more is as good as max, or
 * QUERY_ESTIMATE_MAX. */
NODISCARD bool query_use_estimate(struct query_choosing *c, struct query_index_use *use,
                                  uint64_t max);

/* Of two whose entries were counted. */
bool query_use_is_better(const struct query_index_use *a, const struct query_index_use *b);

/* Do its entries come by routing key and number? Those of one value do, and so do unions of such.
 */
bool query_use_is_numbered(const struct query_index_use *use);

/* The best of the uses, counted if that is asked; NULL: there are none. */
NODISCARD bool query_best_find(struct query_choosing *c, bool count,
                               const struct query_index_use **ret_best);

/* A bit for each conjunct of the filter. */
uint64_t query_conjuncts_all(const struct query_choosing *c);

/* What else it takes to settle the filter by indexes alone, in the order they are offered, so that
 * a continuation finds the same. Nothing, if all of them together do not. */
void query_settle_find(const struct query_choosing *c, struct query_access *access);

/* A count that several indexes settle is what they have in common: whichever is the first, the
 * rarest of them leads (stream_common.c), so that none need be counted to choose. False: they do
 * not. */
bool query_settle_first(const struct query_choosing *c, const struct query_access_wish *wish,
                        struct query_access *access);

/* What is looked up besides the index of the access. */
void query_others_take(const struct query_choosing *c, const struct query_access_wish *wish,
                       struct query_access *access);
