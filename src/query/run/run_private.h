/* A run from within: one page of one query, shared by the files that make rows (run_rows.c), those
 * that keep them back (run_spool.c) and the one that ties it together (run.c). */
#pragma once

#include "query/access/cover.h"
#include "query/expression/item.h"
#include "query/output.h"
#include "query/run.h"
#include "query/run/ahead.h"
#include "query/run/hits.h"
#include "query/spool/cache.h"

enum query_mode {
    QUERY_MODE_STREAM,    /* a row is given as soon as it is made */
    QUERY_MODE_AGGREGATE, /* all rows become one */
    QUERY_MODE_GROUP,
    QUERY_MODE_DISTINCT,
    QUERY_MODE_SORT,
};

struct query_run_state {
    const struct query_plan *plan;
    const struct query_request *request;
    struct arena *arena; /* of the page */
    enum query_mode mode;

    struct query_spans spans;        /* list NULL: not a container's */
    struct query_spans *spans_owner; /* &spans, of the page's own run */
    struct query_access access;
    struct query_order_rules rules;
    struct query_cover cover;
    bool covered;         /* hits are not loaded: entries stand for items */
    bool keyed;           /* nor loaded: keys of items tell all that the plan reads */
    uint64_t items_count; /* of the targets, where cover.counts_missing */
    bool feed_loads;      /* options of the feed, for the feeds of parts */
    enum query_hits_runs feed_runs;
    struct query_hits *feed;   /* owned */
    struct query_ahead *ahead; /* owned; NULL: no calls are made ahead */
    bool judged, holds;        /* by it: what the filter says of the present hit */
    const struct slice *documents;
    size_t document_count, document_at;
    bool single_given; /* of a plan without FROM */

    const struct clock *clock; /* NULL: the system's */
    struct query_context context;
    struct arena *row_arena; /* the context's, forgotten after each item */
    struct query_item item;
    const struct query_hit *hit; /* the present one */
    bool repeated; /* covered, and its value is that of the hit before: what follows from it too */
    uint32_t row;  /* which row of it, from 1 */
    void *taking;  /* the present taker's own */

    struct query_position from; /* where the page begins */
    struct query_position at;   /* and how far it has come */
    struct buf place_bytes;     /* of at.place */

    struct query_spill_budget *spill; /* of the page; borrowed; NULL: nothing is spilled */

    double within;      /* an order by distance: nothing is looked for further out; 0: everywhere */
    uint64_t near_rows; /* rows wanted by distance: how far to look is not known yet; 0: it is */
    bool unscored;      /* an order by scores of texts: not by what entries say of them */
    bool by_number;     /* sorting: in order of creation, whatever the routing keys */

    struct query_output output; /* full: from here on the next row is only looked for */
    bool finished;              /* there will be no more rows: the limit is reached */
    bool held;                  /* a budget ended the page */
    bool drained;               /* the feed has no more hits */
    uint64_t hits, looked_at;   /* hits at the last look at clock and charge */
    uint64_t looked_at_work;    /* and the work done by then */
    uint64_t matched;           /* hits that the filter accepted */
    uint64_t spilled_bytes;
};

/* The names of the container; of documents at hand the usual ones. */
static inline const struct document_names *query_run_names(const struct query_run_state *run)
{
    return run->request->space ? definition_names_of(run->request->space->definition)
                               : definition_names(DEFINITION_IDENTITY_ID);
}

/* Called for each row of each hit that the filter accepts; sets stop in *ret_stop. */
typedef bool (*query_row_taker)(struct query_run_state *run, bool *ret_stop, struct error *err);

/* Makes an item without properties the present row. */
void query_row_bind_missing(struct query_run_state *run);

/* Goes through hits and rows until the end, until the taker says stop (the present hit is then not
 * done), or until pausing is asked for and may be done. *ret_ended: all hits were seen. */
NODISCARD bool query_rows_take(struct query_run_state *run, query_row_taker taker, bool may_pause,
                               bool *ret_ended, struct error *err);

/* Has the page taken or cost enough by now? Looks only now and then. */
bool query_run_should_pause(struct query_run_state *run);

/* Has it taken as long as it may? */
bool query_run_is_over(const struct query_run_state *run);

/* A taker whose rows may be taken in parts: each part has its own `taking`, which is merged into
 * that of the run. */
struct query_taking {
    query_row_taker taker;
    void *(*open)(struct query_run_state *part, size_t part_count);
    bool (*merge)(void *taking, void *part, struct error *err);
    void (*close)(void *part);
};

/* Is there an executor, and enough to do for it? */
NODISCARD bool query_parallel_wanted(struct query_run_state *run, bool *ret_wanted,
                                     struct error *err);

/* All rows, by as many threads as there are; run->taking is set. */
NODISCARD bool query_parallel_take(struct query_run_state *run, const struct query_taking *taking,
                                   struct error *err);

/* How many items the targets hold, at least; counted no further than max. */
NODISCARD bool query_targets_count(struct query_run_state *run, uint64_t max, uint64_t *ret_items,
                                   struct error *err);

/* The context of a run and its slots; and all that a run owns. */
void query_run_context_init(struct query_run_state *run);
void query_run_done(struct query_run_state *run);
CLEANUP_VALUE_FN(struct query_run_state, query_run_done)

/* The number of the present hit's item. Of hits that are covered, or several, it is no more than
 * that of one of them. */
uint64_t query_hit_number(const struct query_run_state *run);

/* Is it a row? Undefined is none, nor what JSON cannot show. */
bool query_row_shows(const struct query_run_state *run, const struct document_value *value);

/* Hands a row out: offset, limit, page size. Sets full and finished. */
NODISCARD bool query_row_give(struct query_run_state *run, const struct document_value *value,
                              struct error *err);

/* Adds a value of the present hit to a state. What lists and sets keep counts as memory of the
 * query, of all of them together. */
NODISCARD bool query_run_aggregate_add(struct query_run_state *run, struct query_aggregate *state,
                                       const struct document_value *value, struct error *err);

/* The page has come as far as this place. */
void query_place_keep(struct query_run_state *run, const struct query_place *place,
                      struct partition_range window);

/* Appends the order key of the present row; cut: of each value what an index has of it. *ret_kept
 * false: the row has no place in the order. */
NODISCARD bool query_order_key(struct query_run_state *run, bool cut, struct buf *key,
                               bool *ret_kept, struct error *err);

/* Do values of the plan's order count only as far as an index has them? */
bool query_order_is_cut(const struct query_plan *plan);

/* How far out an order by distance looks to begin with. */
void query_rings_begin(struct query_run_state *run);

/* Chooses the access once more, for a mode or a distance that has changed, and begins anew. */
NODISCARD bool query_run_again(struct query_run_state *run, struct error *err);

/* Group, distinct and sort: fills a spool, or takes it from the cache, and gives from it.
 * *ret_more: a continuation is needed. */
NODISCARD bool query_spool_run(struct query_run_state *run, bool *ret_more, struct error *err);

/* The page for people; into the arena. */
struct slice query_explain(const struct query_run_state *run, const struct query_page *page,
                           const struct cost_query *cost, struct arena *arena);
