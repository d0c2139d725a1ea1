/* Conditions: what a filter says of the paths of an item, in the terms of the index.
 *
 * A filter implies something (query/expression/imply.h). Where that is `all` of several parts each
 * of them is a conjunct; what a part says of a single path is a condition, and what gives several
 * paths to choose from is an alternative. The rest of the filter is left to evaluation. */
#pragma once

#include "index/policy.h"
#include "query/plan.h"
#include "query/value/condition.h"

enum { QUERY_CONJUNCTS_MAX = 64 }; /* looked at; the parts behind are evaluated all the same */

/* A conjunct that any of several conditions makes true. */
struct query_alternative {
    const struct query_implied *implied;
    uint64_t conjuncts;
};

struct query_conditions {
    const struct query_implied *implied; /* by the whole filter; NULL: nothing */
    struct query_condition *list;        /* one for each path; of elements one for each part */
    size_t count;
    struct query_alternative *alternatives;
    size_t alternative_count;
    struct query_condition *absents; /* of which an item has no value in the ranges */
    size_t absent_count;
    size_t conjunct_count;
    uint64_t settled;                    /* conjuncts that are constant and true */
    bool all;                            /* every part of the filter is among the conjuncts */
    bool never;                          /* the filter is true for nothing */
    const struct query_condition *parts; /* as they stand in the filter, before those of one path
                                            became one */
    size_t part_count;
};

/* In the arena. entries: the order of the index entries that ranges are wanted for. */
struct query_conditions query_conditions_find(const struct query_plan *plan,
                                              enum document_order entries, struct arena *arena);

/* The same for indexes that have all values of a path, in MongoDB's order and with texts in the
 * comparison form of the collator, NULL: as they are; those of other kinds of
 * expressions are among them and not `through`. */
struct query_conditions query_conditions_through(const struct query_plan *plan,
                                                 enum query_ways ways,
                                                 const struct document_collator *collator,
                                                 struct arena *arena);

/* The conjunct of that number; NULL: nothing is known of it. */
const struct query_implied *query_conjunct(const struct query_conditions *conditions,
                                           size_t number);

/* The path of the item that an expression is, through variables of sources as well. */
bool query_path_find(const struct query_plan *plan, const struct query_expression *expression,
                     struct arena *arena, struct document_path *ret_path, bool *ret_elements);
