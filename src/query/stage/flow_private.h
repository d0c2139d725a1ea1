/* Flow: a chain at work. Rows are pushed through it one at a time; what must see all rows first
 * keeps them back in a sink, so a flow is a list of segments with a sink between any two. */
#pragma once

#include "query/output.h"
#include "query/spool/spool.h"
#include "query/stage/chain.h"
#include "query/stage/rest.h"
#include "throughput/cost.h"

struct query_sink;
struct query_looking;

/* What a stage did on a page, where the page is to be explained. */
struct query_stage_figures {
    uint64_t rows_in, rows_out;
    uint64_t ns, spilled_bytes; /* of its own, not of stages behind it */
    uint64_t items_loaded, index_entries;
    int64_t charge_cru;
    struct query_stage_figures **chains; /* of a facet: those of the stages of each */
};

/* How far the sums of a run had come. */
struct query_figures_mark {
    uint64_t ns, spilled_bytes, items_loaded, index_entries;
    int64_t charge_cru;
};

/* What all flows of a page share. */
struct query_stages {
    const struct query_plan *plan;
    const struct query_request *request;
    struct query_context context;
    struct arena *arena;                  /* of the row */
    struct query_spill_budget *spill;     /* owned; NULL: nothing is spilled */
    size_t memory_max;                    /* of each spool */
    bool paid;                            /* an earlier page has paid for what is read */
    int64_t charge_cru;                   /* of all pages below */
    size_t facet_bytes;                   /* of what the chains of facets have given so far */
    struct query_metrics metrics;         /* the same */
    const struct query_wanted *wanted;    /* of the plan that is run next; NULL: all items are */
    struct query_stage_figures *figuring; /* of the stage that is at work; NULL: of none */
    struct query_figures_mark mark;       /* when it began */
};

struct query_segment {
    size_t first, end;       /* its stages */
    struct query_sink *sink; /* owned; NULL: the last */
};

struct query_flow {
    struct query_stages *run;
    const struct query_chain *chain;
    struct query_segment *segments; /* owned */
    size_t segment_count;
    uint64_t *counters;             /* owned: of each stage, what is left of skip and limit */
    struct arena **arenas;          /* owned: of each unwind, of the element it is at */
    struct query_looking **looking; /* owned: of each lookup */
    bool stop;                      /* set by give: no more rows are wanted */
    bool (*give)(struct query_flow *flow, struct error *err); /* a row came out */
    void *self;
    struct query_stage_figures *figures; /* of each stage, and of what is only kept; NULL: nobody
                                            asks */

    /* Where the row that is pushed came from, among the rows of the last segment. */
    uint64_t number, given; /* rows that came of it so far */
    uint64_t *begun;        /* owned: the counters when it came */
};

/* cached: the flow hands out pages, so its last sink should be one that can be kept. head: rows
 * come straight from a plan below. */
struct query_flow *query_flow_new(struct query_stages *run, const struct query_chain *chain,
                                  bool cached, struct query_stage_figures *figures);
void query_flow_free(struct query_flow *flow); /* NULL is fine */
CLEANUP_FN(struct query_flow *, query_flow_free)

/* The row stands in the slots; it enters segment nth, or goes on behind a stage of it. */
NODISCARD bool query_flow_push(struct query_flow *flow, size_t nth, struct error *err);
NODISCARD bool query_flow_push_from(struct query_flow *flow, size_t nth, size_t stage,
                                    struct error *err);

/* Would more rows make no difference to a segment? */
bool query_flow_is_done(const struct query_flow *flow, size_t nth);

/* A row of the last segment comes. */
void query_flow_row_begin(struct query_flow *flow, uint64_t number);

/* What a segment holds back in batches is pushed on. */
NODISCARD bool query_flow_flush(struct query_flow *flow, size_t nth, struct error *err);

/* Rows of the first segment have ended: all but the last segment are worked off, and the sink
 * before that is ready to give. */
NODISCARD bool query_flow_end(struct query_flow *flow, struct error *err);

/* --- Figures --------------------------------------------------------------------------------- */

/* For the stages of the chain and what is only kept, all zero. */
struct query_stage_figures *query_figures_new(const struct query_chain *chain, struct arena *arena);

/* From here on the work is that of another stage (NULL: of none). Gives the one it was of, which is
 * to be entered again. */
struct query_stage_figures *query_figures_enter(struct query_stages *run,
                                                struct query_stage_figures *figures);

/* The explanation of a page: that of the plan below (empty: it was not run), with its figures those
 * of the whole, and the stages. */
struct slice query_stages_explain(const struct query_flow *flow, struct slice below,
                                  const struct query_page *page);

/* --- Sinks ----------------------------------------------------------------------------------- */

enum query_sink_kind {
    QUERY_SINK_KEEP, /* rows as they came; of a union also those of the other plan */
    QUERY_SINK_SORT,
    QUERY_SINK_DISTINCT,
    QUERY_SINK_GROUP,
    QUERY_SINK_TOTAL, /* a group without keys */
    QUERY_SINK_FACET,
    QUERY_SINK_WINDOW,
};

/* behind: the stage, or for what is only kept the last before it; NULL: rows as they come in. */
struct query_sink *query_sink_new(struct query_stages *run, enum query_sink_kind kind,
                                  const struct query_stage *behind, uint64_t rows_max,
                                  struct query_stage_figures *figures);
void query_sink_free(struct query_sink *sink); /* NULL is fine */
CLEANUP_FN(struct query_sink *, query_sink_free)

enum query_sink_kind query_sink_kind(const struct query_sink *sink);

/* Takes the row in the slots. */
NODISCARD bool query_sink_take(struct query_sink *sink, struct error *err);

/* No more come; then they are put into the slots one by one. */
NODISCARD bool query_sink_finish(struct query_sink *sink, struct error *err);
NODISCARD bool query_sink_next(struct query_sink *sink, bool *ret_more, struct error *err);

/* Of kinds with nothing but a spool: it is taken out, with the row given last once more, or put in
 * instead of rows. */
struct query_spool *query_sink_spool_take(struct query_sink *sink);
void query_sink_spool_put(struct query_sink *sink, struct query_spool *spool);

/* --- Windows --------------------------------------------------------------------------------- */

struct query_windowing; /* opaque, owned */

struct query_windowing *query_windowing_new(struct query_stages *run,
                                            const struct query_stage *stage);
void query_windowing_free(struct query_windowing *w); /* NULL is fine */
NODISCARD bool query_windowing_take(struct query_windowing *w, struct error *err);
NODISCARD bool query_windowing_finish(struct query_windowing *w, struct error *err);
NODISCARD bool query_windowing_next(struct query_windowing *w, bool *ret_more, struct error *err);

/* --- Other containers ------------------------------------------------------------------------ */

/* The request for a page of another plan, of the run's own: with what is left of its limits. Looks
 * at those first, for a page may be over before it has looked itself. */
NODISCARD bool query_stages_ask(struct query_stages *run, struct query_request *ret_request,
                                struct error *err);

/* All rows of a plan over another container. */
NODISCARD bool
query_other_run(struct query_stages *run, struct slice container, const struct query_plan *plan,
                const struct query_binding *bindings, size_t binding_count,
                bool (*row)(void *self, const struct document_value *value, struct error *err),
                void *self, struct error *err);

/* Takes the row in the slots into a batch, which goes on when it is full, or is flushed. */
struct query_looking *query_looking_new(struct query_flow *flow, size_t nth, size_t stage);
void query_looking_free(struct query_looking *looking); /* NULL is fine */
NODISCARD bool query_looking_take(struct query_looking *looking, struct error *err);
/* No more rows come of those that came: what waits goes on. */
NODISCARD bool query_looking_flush(struct query_looking *looking, struct error *err);

/* The items that a search comes to from these values, each as struct query_graph says. */
NODISCARD bool
query_graph_search(struct query_stages *run, const struct query_lookup *lookup,
                   const struct document_value *from, const struct query_binding *lets,
                   bool (*row)(void *self, const struct document_value *value, struct error *err),
                   void *self, struct error *err);

/* A spool of the run. */
struct query_spool *query_stages_spool(struct query_stages *run,
                                       const struct query_spool_options *options);
void query_stages_spool_free(struct query_stages *run, struct query_spool *spool); /* NULL: fine */
NODISCARD bool query_stages_spool_finish(struct query_stages *run, struct query_spool *spool,
                                         struct error *err);

/* The key of a value under an order: descending ones turned. */
void query_stages_key(struct query_stages *run, const struct document_value *value, bool descending,
                      struct buf *key);
