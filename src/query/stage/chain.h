/* Chain: a query as stages, each of which makes rows of the rows before it.
 *
 * A row is what stands in its slots. It begins as an item in slot 0; unwind, lookup and window bind
 * further slots beside those that are there; project, group, facet and union leave nothing but what
 * they bind themselves. Expressions of a stage see the slots that are bound before it. Slots that a
 * stage binds differ from those that are bound before it.
 *
 * query_chain_plan makes a plan of a chain: its longest beginning that the modes of query_run know
 * becomes the query of the plan, which runs in the partitions and in parallel (filters and their
 * indexes, joins of arrays, partial groups, orders with their first rows, counts from an index
 * alone); the rest are stages over the rows of that plan. Like a plan, a chain is immutable and
 * lives in the arena of its expressions.
 *
 * What comes first is decided by the order of the plan: sorts, groups, distinct, least and
 * greatest. Rows keep their sequence except where a sort, group, distinct or union is; those of a
 * group come in any sequence. */
#pragma once

#include "base/buf.h"
#include "query/plan.h"

enum query_stage_kind {
    QUERY_STAGE_MATCH,
    QUERY_STAGE_UNWIND,
    QUERY_STAGE_PROJECT,
    QUERY_STAGE_GROUP,
    QUERY_STAGE_SORT,
    QUERY_STAGE_SKIP,
    QUERY_STAGE_LIMIT,
    QUERY_STAGE_DISTINCT,
    QUERY_STAGE_LOOKUP,
    QUERY_STAGE_FACET,
    QUERY_STAGE_UNION,
    QUERY_STAGE_WINDOW,
};

/* A row for each element. What is no array has no elements. */
struct query_unwind {
    const struct query_expression *array;
    uint32_t slot;
    bool indexed;        /* the number of the element is bound as well */
    uint32_t index_slot; /* -1 of a row that was kept */
    bool keep_empty;     /* a row without elements stays, with nothing in the slot */
};

struct query_project {
    const struct query_expression *select; /* undefined: no row */
    uint32_t slot;
};

/* A row for each combination of keys; without keys always one row. */
struct query_group {
    const struct query_group_key *keys;
    size_t key_count;
    const struct query_aggregate_call *aggregates;
    size_t aggregate_count;
};

struct query_sort {
    const struct query_order *order; /* rows that are equal keep their sequence */
    size_t count;
};

/* Of rows whose keys are all equal the first one. */
struct query_distinct {
    const struct query_expression *const *keys;
    size_t count;
};

struct query_let {
    const struct query_expression *expression; /* in the row */
    uint32_t slot;                             /* in the rows of the other plan */
};

/* Which items of another container belong to a row, where a language has another rule for that than
 * equality. */
struct query_pairing {
    /* What an item has to be like for a row whose local this is: a condition over slot 0 of the
     * other plan (NULL: none belongs to it), and what belongs is asked with; in the build's arena.
     */
    bool (*condition)(const struct query_pairing *self, struct query_build *build,
                      const struct document_value *local,
                      const struct query_expression **ret_condition, const void **ret_row,
                      struct error *err);
    /* Does the item belong to the row, going by what foreign gives for it? */
    bool (*belongs)(const void *row, const struct document_value *foreign,
                    struct query_context *context, bool *ret_belongs, struct error *err);
    /* The path of an item whose value decides, with local an array of values, by MongoDB's rule of
     * equality (struct query_wanted). data NULL: more than that does. */
    struct slice path;
};

/* A search that goes on from what it has found: local is where it begins, an array of values; the
 * items that pair with them say where it goes on, and so forth. Each item is found once, and given
 * as [what the plan selects, the number of steps to it], in no particular sequence. */
struct query_graph {
    const struct query_expression *identity; /* of an item */
    const struct query_expression *next;     /* of an item: an array of values */
    uint64_t steps_max;                      /* UINT64_MAX: no end */
};

/* What another plan gives for the row, as an array. With local and foreign only those of its items
 * count whose foreign is equal to local, in the order of the plan; undefined is equal to nothing.
 */
struct query_lookup {
    struct slice container;
    const struct query_plan *plan;                  /* over the items of the container */
    const struct query_expression *local, *foreign; /* foreign: of an item; NULL: all of them */
    const struct query_pairing *pairing;            /* NULL: equality */
    const struct query_graph *graph;                /* NULL: what pairs with the row itself */
    const struct query_let *lets;                   /* what the plan sees of the row */
    size_t let_count;
    uint32_t slot;
};

/* Stages, and what is given of the rows that come out of them. */
struct query_chain {
    const struct query_stage *stages;
    size_t count;
    const struct query_expression *select; /* undefined: no row */
};

/* Several chains over the same rows; each gives an array, and all of them together one row. */
struct query_facet {
    const struct query_chain *chains;
    const uint32_t *slots; /* one for each */
    size_t count;

    /* Filled in by query_chain_plan: slots of a row that the chains look at. */
    const uint32_t *inputs;
    size_t input_count;
};

/* Behind the rows those of another plan. */
struct query_union {
    struct slice container;
    const struct query_plan *plan;
    uint32_t slot; /* the only one that is bound, and what the others are bound to */
};

/* --- Windows --------------------------------------------------------------------------------- */

enum query_window_kind {
    QUERY_WINDOW_AGGREGATE, /* of the rows of the frame */
    QUERY_WINDOW_FIRST,     /* the value of the first row of the frame; undefined: there is none */
    QUERY_WINDOW_LAST,
    QUERY_WINDOW_RANK,       /* rows before it that are not equal in the order, and itself */
    QUERY_WINDOW_DENSE_RANK, /* the same, rows that are equal counted once */
    QUERY_WINDOW_ROW_NUMBER,
    QUERY_WINDOW_SHIFT, /* the value of the row so many behind it */
    QUERY_WINDOW_FOLD,  /* what fold makes of the value of the row before and of the argument */
};

enum query_bound_kind { QUERY_BOUND_UNBOUNDED, QUERY_BOUND_OFFSET };

/* Offset 0: the row itself; negative: before it. */
struct query_bound {
    enum query_bound_kind kind;
    double offset; /* of documents whole */
};

/* Rows between two bounds, both inclusive: so many rows away, or, where by is QUERY_FRAME_RANGE,
 * those whose only sort key differs by so much in the direction of the order. A row whose sort key
 * is no finite number is as far from another as their places say, and those equal to it are with
 * it. */
enum query_frame_by { QUERY_FRAME_ROWS, QUERY_FRAME_RANGE };

struct query_window_output {
    enum query_window_kind kind;
    enum query_aggregate_kind aggregate;
    const struct query_expression *argument;  /* of aggregate, first, last and shift */
    const struct query_expression *otherwise; /* of shift: where there is no such row; NULL */
    const struct query_expression *fold;      /* sees nothing but: */
    uint32_t fold_slot;                       /* the value before, undefined at the first row; */
    uint32_t fold_argument;                   /* and the argument, in this slot */
    int64_t shift;
    enum query_frame_by by;
    struct query_bound from, to;
    uint32_t slot;
};

/* Beside each row what is computed over rows around it, among those with equal keys. Rows come by
 * keys and then by order. */
struct query_window {
    const struct query_expression *const *keys;
    size_t key_count;
    const struct query_order *order;
    size_t order_count;
    const struct query_window_output *outputs;
    size_t output_count;
};

/* --- Stages ---------------------------------------------------------------------------------- */

struct query_stage {
    enum query_stage_kind kind;
    union {
        const struct query_expression *match; /* rows for which it is true */
        struct query_unwind unwind;
        struct query_project project;
        struct query_group group;
        struct query_sort sort;
        uint64_t amount; /* of skip and limit */
        struct query_distinct distinct;
        struct query_lookup lookup;
        struct query_facet facet;
        struct query_union unite;
        struct query_window window;
    };

    /* Filled in by query_chain_plan: slots that are bound behind the stage and looked at later. */
    const uint32_t *kept;
    size_t kept_count;
};

/* What is done with the rows of a plan. */
struct query_rest {
    struct query_chain chain;
    /* What a row of the plan stands in: an array has a value for each slot; a single one, where
     * there is one slot, is the row itself. */
    const uint32_t *slots;
    size_t slot_count;
    bool single;
};

enum { QUERY_STAGES_MAX = 1000 };

/* Makes a plan of the chain, in the arena of build, copying what it points to but for expressions
 * and plans. Of plan, slot_count, order, fingerprint and binding are the caller's. The build fails
 * with ERROR_BAD_REQUEST where the chain has too many stages, or a union has not one slot. */
void query_chain_plan(struct query_build *build, const struct query_chain *chain,
                      struct query_plan *plan);

/* The same for a chain behind the query of the plan, of which these slots are bound when select is
 * evaluated; that is set. */
void query_chain_behind(struct query_build *build, const struct query_chain *chain,
                        const uint32_t *bound, size_t count, struct query_plan *plan);

/* What the query of the plan does, as the stages it stands for: an element "pushed" of a BSON
 * document. */
void query_pushed_append(const struct query_plan *plan, struct buf *buf);
