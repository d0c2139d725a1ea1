/* Condition: what one part of a filter says of one path of the item, in the terms of the index.
 *
 * A filter is cut at its ANDs. Of each part that speaks of a single path and constants, the values
 * are known that it can be true for. The rest of the filter is left to evaluation. */
#pragma once

#include "index/policy.h"
#include "query/access/ranges.h"
#include "query/plan.h"

enum { QUERY_CONJUNCTS_MAX = 64 }; /* looked at; the parts behind are evaluated all the same */

struct query_condition {
    struct document_path path; /* of the item; ends in a scalar */
    struct slice prefix;       /* of its index entries */
    bool elements;             /* it leads through an array: an item may have many values there */
    struct query_ranges ranges;
    bool exact;         /* true for every value in the ranges */
    uint64_t conjuncts; /* which parts of the filter it stands for */

    /* The values if they can be counted, NULL otherwise; not for what several parts say. */
    const struct document_value *points;
    size_t point_count;
};

struct query_conditions {
    struct query_condition *list; /* one for each path; of elements one for each part */
    size_t count;
    size_t conjunct_count;
    uint64_t settled;                    /* conjuncts that are constant and true */
    bool all;                            /* every part of the filter is among the conjuncts */
    bool never;                          /* the filter is true for nothing */
    const struct query_condition *parts; /* as they stand in the filter, before those of one path
                                            became one */
    size_t part_count;
};

/* In the arena. */
struct query_conditions query_conditions_find(const struct query_plan *plan, struct arena *arena);

/* The beginning of the index entries of a path, in the arena. */
struct slice query_path_prefix(const struct document_path *path, struct arena *arena);

/* The path of the item that an expression is, through variables of sources as well. */
bool query_path_find(const struct query_plan *plan, const struct query_expression *expression,
                     struct arena *arena, struct document_path *ret_path, bool *ret_elements);
