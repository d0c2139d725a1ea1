/* Condition: what must be so of an item where an expression is true, in the terms of an index.
 *
 * A condition speaks of one path and the values it may have there. What an expression implies is
 * made of conditions by `all` and `any`; NULL stands for what says nothing, and may be true for any
 * item. Every kind of expression and every function says by itself what it implies
 * (expression.h, function.h), with the makers below; whoever plans sees paths and ranges, no
 * language.
 *
 * An item has several values at a path that leads through an array; it is enough that one of them
 * is in the ranges. */
#pragma once

#include "document/collator.h"
#include "document/path.h"
#include "query/value/ranges.h"
#include "search/geometry.h"

struct query_subquery;

/* Where things may be: at most so far from a figure, metres on the Earth; 0: touching it. */
struct query_region {
    const struct document_value *figure; /* a constant; need not be a valid one */
    struct search_rules rules;
    double distance;
    bool ordered; /* the plan is ordered by the distance: it may be looked at piece by piece */
};

enum { QUERY_TERMS_MAX = 64 }; /* that are looked for at once */

/* Which terms a text has: all of one of several groups; without groups one of them at least. */
struct query_words {
    struct slice
        index; /* the index besides the policy that has the texts; data NULL: the policy's */
    struct slice language;
    const struct slice *terms; /* each once; with groups at most QUERY_TERMS_MAX */
    size_t count;
    const uint64_t *groups; /* each a set of terms, by their bits */
    size_t group_count;
    bool exact; /* a text with such terms is enough */
};

struct query_condition {
    struct document_path path; /* of the item; ends in a scalar */
    struct slice prefix;       /* of its index entries */
    bool elements;             /* it leads through an array: an item may have many values there */
    bool nested;               /* objects or arrays are among the points: no index has those */
    bool through;              /* of every value that the path leads to, through arrays too */
    bool present;              /* of that kind: something is there */
    bool wholes;               /* of that kind: objects or arrays are among the points */
    const struct query_region
        *region;                     /* it is nested, and a figure that is there; NULL: of values */
    const struct query_words *words; /* the same, a text; NULL: of values */
    struct query_ranges ranges;
    bool exact;         /* true for every value in the ranges */
    uint64_t conjuncts; /* which parts of the filter it stands for (access/conditions.h) */

    /* The values if they can be counted, NULL otherwise. */
    const struct document_value *points;
    size_t point_count;
    bool points_exact; /* true for every one of them, also where the index has cut it */
};

enum query_implied_kind {
    QUERY_IMPLIED_NEVER,  /* true for no item */
    QUERY_IMPLIED_ALWAYS, /* true for all of them */
    QUERY_IMPLIED_CONDITION,
    QUERY_IMPLIED_ABSENT, /* none of the values of the path is in the ranges of the condition */
    QUERY_IMPLIED_ALL,    /* of the parts, some of which may be NULL */
    QUERY_IMPLIED_ANY,    /* of the parts, none of which is NULL */
};

struct query_implied {
    enum query_implied_kind kind;
    bool exact; /* where this is so the expression is true */
    struct query_condition condition;
    const struct query_implied *const *parts; /* of a condition: those it was put together from, */
    size_t count;                             /* where some of them have points and others not */
};

/* Where the values of a path are that leads through arrays: each way it may go has an index of its
 * own, as the policy of Cosmos DB has it; or one index has them all, as MongoDB's have. Of that it
 * may be known that no item has an array there: then all that is said of the path is said of one
 * value. Kinds that know of it answer with operands that go `through`. */
enum query_ways { QUERY_WAYS_PATHS, QUERY_WAYS_ONE_VALUE, QUERY_WAYS_MANY_VALUES };

/* What an answer is worked out with. */
struct query_implying {
    enum query_ways ways;
    enum document_order order;   /* by which the plan compares */
    enum document_order entries; /* of the bytes that ranges are made of */
    const struct document_collator
        *collator; /* whose comparison form texts have there; NULL: as they are */
    const struct query_subquery *query; /* whose sources variables stand for */
    const struct query_subquery *inner; /* a subquery within it that is looked into, or NULL */
    struct arena *arena;
};

/* A side of an operator, or an argument of a function. */
struct query_operand {
    const struct document_value *constant; /* NULL: it is none */
    bool is_path;
    struct document_path path;
    bool elements;
    bool through; /* all values of the path, through arrays */
};

/* The beginning of the index entries of a path, in the arena. */
struct slice query_path_prefix(const struct document_path *path, struct arena *arena);

/* --- Makers: each gives NULL for an operand that is no path ------------------------------------
 */

const struct query_implied *query_implied_never(const struct query_implying *implying);
const struct query_implied *query_implied_always(const struct query_implying *implying);

/* One of these values, which are borrowed; those that are undefined are left out, for nothing
 * equals them. Objects and arrays are of use for keys alone. */
const struct query_implied *query_implied_points(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct document_value *values, size_t count);

/* None of these values, be it that there is another one or none at all. */
const struct query_implied *query_implied_absent(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct document_value *values, size_t count);

/* Values of the same type below or above, or other than this one; never, if the plan's language has
 * no such order. */
const struct query_implied *query_implied_below(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value, bool at_too);
const struct query_implied *query_implied_above(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value, bool at_too);
const struct query_implied *query_implied_other(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value);

const struct query_implied *query_implied_prefix(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 struct slice prefix);
const struct query_implied *query_implied_type(const struct query_implying *implying,
                                               const struct query_operand *operand,
                                               enum document_type type);

/* A figure in this region, which is copied. */
const struct query_implied *query_implied_region(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct query_region *region);

/* A text with these terms, which are borrowed. */
const struct query_implied *query_implied_words(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct query_words *words);

/* Any value: something is said of the path that no range tells. */
const struct query_implied *query_implied_whatever(const struct query_implying *implying,
                                                   const struct query_operand *operand);

/* The elements of what the operand is, as an operand. */
struct query_operand query_operand_elements(const struct query_implying *implying,
                                            const struct query_operand *operand);

/* A property of what the operand is, as an operand; the name is borrowed. */
struct query_operand query_operand_property(const struct query_implying *implying,
                                            const struct query_operand *operand, struct slice name);

/* All or any of several. Conditions on one path that any of them may satisfy become one; both sides
 * of one element at a time (BETWEEN) are made with query_implied_both. */
const struct query_implied *query_implied_all(const struct query_implying *implying,
                                              const struct query_implied *const *parts,
                                              size_t count);
const struct query_implied *query_implied_any(const struct query_implying *implying,
                                              const struct query_implied *const *parts,
                                              size_t count);
/* Two conditions on one and the same value of one path. */
const struct query_implied *query_implied_both(const struct query_implying *implying,
                                               const struct query_implied *a,
                                               const struct query_implied *b);

/* The same, known not to be all that the expression asks. */
const struct query_implied *query_implied_inexact(const struct query_implying *implying,
                                                  const struct query_implied *implied);
