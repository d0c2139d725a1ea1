/* Access: how the items a query may want are got at. Chosen for each page from the filter, the
 * indexing policy and cheap counts; what is chosen changes the cost, never the rows.
 *
 * Where to look is a list of targets: the whole container, one logical partition, the points and
 * ranges a filter names. How is a scan, one index, the entries common to several, without those of
 * another, or the items that any of several has. */
#pragma once

#include "query/access/conditions.h"
#include "query/access/spans.h"

/* Items with these routing keys; of one logical partition if that is given. */
struct query_target {
    struct partition_range range;
    struct slice logical;
    struct query_ranges values; /* of an index on the partition key: those of this target; none: all
                                   that the index is asked for */
};

struct query_targets {
    const struct query_target *list; /* ascending, apart from each other */
    size_t count;
    uint64_t conjuncts; /* of the filter: true for every item of the targets */
};

/* Have items that an older policy indexed entries of the definition too? */
bool query_definition_is_whole(const struct item_space *space,
                               const struct index_definition *definition);

/* The full-text index that has the terms at a path of all items, those too that an older policy
 * made the entries of; NULL: none. */
const struct index_definition *query_text_at(const struct item_space *space,
                                             const struct document_path *path);

/* From the scope of the request and what the filter says of the partition key, in the bytes of
 * DOCUMENT_ORDER_SQL; of the request nothing but scope and definition is looked at. None: no item
 * can be wanted. */
struct query_targets query_targets_find(const struct query_request *request,
                                        const struct query_conditions *conditions,
                                        struct arena *arena);

/* Looks whether the spans that the targets need serve. Those that do not are taken out of the
 * targets and noted as missing, if the request takes a partial result; else ERROR_NODE_DOWN or
 * ERROR_NODE_PAUSED, naming them. */
NODISCARD bool query_targets_serve(struct query_spans *spans, struct query_targets *targets,
                                   struct arena *arena, struct error *err);

/* What is asked of an index of vectors: the entries that are the most alike to a vector. Of each
 * span come the best ones first; how many are enough is seen as rows are made of them
 * (query_hits_taken). */
struct query_nearest {
    struct search_asked asked;
    const struct index_vector *index;
    uint64_t wanted; /* rows of a span, after which no other can be among those of the plan */
    uint64_t first;  /* entries that are tried before it is seen whether they make as many rows */
    uint64_t list;   /* candidates that a graph looks for, if the index has one; 0: no graph */
    bool filtered;   /* not every entry makes a row */
    const struct index_definition *definition; /* of the index */
};

/* The order by a score that the entries of a full-text index tell. */
struct query_scoring {
    struct document_path path; /* of the text */
    struct slice language, phrases, hits;
    double texts, words;             /* all this is the function's arguments */
    uint8_t terms[QUERY_TERMS_MAX];  /* which term a phrase is */
    double weights[QUERY_TERMS_MAX]; /* and what it counts */
    size_t phrase_count;
    uint64_t wanted; /* rows of a span, after which no other can be among those of the plan */
    bool filtered;   /* not every entry makes a row */
    bool whole;      /* items without any of the terms are rows too, behind all others */
};

/* What is asked of a full-text index: the items that have certain terms, by routing key and number;
 * or those with the best scores. */
struct query_terms {
    const struct cursor_range *ranges; /* of each term, and behind them of texts with too many */
    size_t count;                      /* of terms */
    const uint64_t *groups;            /* sets of terms: an item has all of one */
    size_t group_count;
    const struct query_scoring *scoring; /* NULL: all items */
};

/* An index and the part of it that is wanted; or several of them, any of which an item may be in
 * (a union): those are walked together by routing key and number, and an item comes once. */
struct query_index_use {
    const struct query_index_use *members; /* of a union; each is single, or gathered */
    size_t member_count;                   /* 0: it is no union */
    struct slice prefix;
    size_t value_count;
    size_t kept_count;         /* values that are the order of hits; 0: all */
    const bool *descending;    /* of a composite index */
    enum document_order order; /* of its entries: ranges are bytes of it */
    struct query_ranges ranges;
    bool single;        /* all entries have one value: they come by routing key and number */
    bool gathered;      /* of a union: entries of many values, to be put in that order */
    bool exact;         /* what its conjuncts say is true for every entry */
    uint64_t conjuncts; /* of the filter */
    struct slice name;  /* for people: /a/? or (/a ASC, /b DESC) */
    uint64_t estimate; /* entries in the first span, counted up to QUERY_ESTIMATE_MAX; where that is
                          not enough to choose by, further */

    /* Of a definition that has all values of its paths (definitions.c); NULL: of another. Values
     * that are given for its first parts are in the prefix. */
    const struct index_definition *definition;
    bool within;                        /* no more of a region than query_access_wish.within */
    bool repeats;                       /* an item may have several entries: its first counts */
    const struct document_path *place;  /* where its only figure is; NULL: there may be several */
    const struct search_circle *circle; /* of an index of places whose entries begin with cells: the
                                           walk passes over points out of it; NULL: over none */
    const struct query_ranges *bounds;  /* of each part, as bytes of rising values; none: all */
    size_t bound_count;
    const struct query_nearest *nearest; /* of an index of vectors; NULL: of another */
    const struct query_terms *terms;     /* of a full-text index of a policy; NULL: of another */
    const uint64_t *arrays; /* for each part, bit n: an array stands behind so many segments */
};

enum { QUERY_ARRAYS_DEPTH_MAX = 63 };

enum {
    QUERY_ESTIMATE_MAX = 256,
    QUERY_TARGETS_MAX = 1024,
    QUERY_UNION_MAX = 64,
    QUERY_WITH_MAX = 4,        /* that an index is intersected with */
    QUERY_GATHERED_MAX = 1024, /* entries of a range that are put in order at once */
};

/* Metres; beyond, an index leads to most of what there is on the Earth. */
#define QUERY_RING_EVERYWHERE 8e6

enum query_access_kind {
    QUERY_ACCESS_NOTHING, /* the filter is never true */
    QUERY_ACCESS_SCAN,
    QUERY_ACCESS_POINT, /* partition key and id are given: one item */
    QUERY_ACCESS_INDEX,
};

struct query_access {
    enum query_access_kind kind;
    const struct query_target *targets; /* ascending, apart from each other */
    size_t target_count;
    const struct document_value *ids; /* of a point: each of them */
    size_t id_count;
    const struct query_index_use *index;
    const struct query_index_use *with[QUERY_WITH_MAX]; /* entries must be in these too; each is
                                                           single, as the index is or the members
                                                           of the union */
    size_t with_count;
    const struct query_index_use *without; /* and not in this, which is single too; or NULL */
    bool backwards;
    bool ordered;  /* hits come in the order of the plan */
    bool exact;    /* the filter is true for all hits: it need not be looked at */
    double within; /* that was looked for, as wished or found */
    uint64_t work; /* that choosing took besides reading, in units of evaluation */

    /* For explanations: what was weighed, and paths that have no index. */
    const struct query_index_use *weighed;
    size_t weighed_count;
    const struct query_condition *missing; /* conditions that no index serves */
    size_t missing_count;
    const struct document_path *search_missing;    /* of a text without index; NULL: none */
    const struct document_path *order_missing;     /* the path of the order, if it has no index */
    const struct query_condition *const *together; /* what a composite index could serve: values,
                                                      and at most one range, which is the last */
    size_t together_count;
};

/* The order that the entries of paths have, which the indexing policy names. Other definitions have
 * their own. */
enum document_order query_paths_order(const struct item_space *space);

/* What a continuation remembers of the choice, so that the next page goes on with it. */
uint32_t query_access_mark(const struct query_access *access);

struct query_access_wish {
    const struct document_path *cover; /* nothing is asked but the values of this path; or NULL */
    bool order_sorted;                 /* not from an index */
    bool order;                        /* the plan's order is wanted, if it can be had */
    bool number_order; /* unordered: creation order is wanted where it costs little */
    bool counts;       /* nothing is wanted of items but how many the filter is true for */
    uint64_t rows;     /* about how many items will be asked for; 0: all there are */
    bool resumed;      /* an unordered query goes on: with the access of this mark */
    uint32_t mark;
    double within;      /* of what the plan's order by distance asks for, as far as this; 0: all */
    uint64_t near_rows; /* rows that are wanted by that order: how far to look is to be found by how
                         * densely an index has things there, if one serves; 0: as far as within */
    bool counted;       /* entries are counted in advance even where there is nothing to choose */
    struct query_context *context; /* that the filter will be evaluated in: it keeps shapes */
};

/* In the arena. ERROR_BAD_REQUEST: the access that the continuation goes by is no longer there. */
NODISCARD bool query_access_choose(const struct query_plan *plan, struct query_spans *spans,
                                   const struct query_access_wish *wish, struct arena *arena,
                                   struct query_access *ret_access, struct error *err);

/* The index of vectors that the order of the plan can be had from, instead of a scan; NULL: none.
 */
const struct query_index_use *query_vectors_use(const struct query_plan *plan,
                                                const struct item_space *space,
                                                const struct query_access *access,
                                                struct arena *arena);

/* The full-text index that the order of the plan can be had from, instead of the access; NULL:
 * none.
 */
const struct query_index_use *query_scores_use(const struct query_plan *plan,
                                               const struct item_space *space,
                                               const struct query_access *access,
                                               struct arena *arena);

/* The entries that a full-text index has of the items for which an expression is true; NULL: there
 * is no such index, or items expire. */
const struct query_index_use *query_words_use(const struct query_plan *plan,
                                              const struct item_space *space,
                                              const struct query_expression *expression,
                                              struct arena *arena);

/* Has the item, for which the use has an entry, no other one there? What is not sure is false. */
bool query_entry_is_only(const struct query_index_use *use, struct slice document);

/* Is the entry with this value passed over: one of a point that is out of what is asked for? */
bool query_entry_is_out(const struct query_index_use *use, struct slice value);

/* Is the entry with this value, as places have it, the one that an item is taken at: the first of
 * its entries that the use walks? Scratch is the arena's. */
NODISCARD bool query_entry_is_first(const struct query_index_use *use, bool backwards,
                                    struct slice document, struct slice value, struct arena *arena,
                                    bool *ret_first, struct error *err);

/* What ORDER BY does with values that an index would not hold. */
struct query_order_rules {
    bool keeps_undefined; /* items without a value come too */
    bool keeps_nested;    /* and those with an array or object there */
};

/* ERROR_BAD_REQUEST: several properties, and no composite index for them; or one without an index,
 * where the request does not allow that. */
NODISCARD bool query_order_check(const struct query_plan *plan, const struct query_request *request,
                                 struct arena *arena, struct query_order_rules *ret_rules,
                                 struct error *err);
