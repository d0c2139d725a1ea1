/* Run: a plan is run page by page.
 *
 * Each page is a call of its own that begins with the continuation of the one before and keeps
 * nothing in between: any process may run the next one. A continuation is made of values (order
 * key, routing key, number; what is left of offset and limit; half-done aggregates), so it survives
 * restarts, splits and merges. It is not sealed here: the front signs it and binds it to the
 * container.
 *
 * A page sees one moment of each physical partition, and ends after so many rows, bytes, RU or so
 * much time. Blocking; from any thread. */
#pragma once

#include "definition/rid.h"
#include "item/cursor.h"
#include "item/metering.h"
#include "query/plan.h"

struct query_blocks;
struct query_lists;
struct query_members;
struct query_cache;
struct view_overlay;
struct query_spill;

/* What a page that is_short may do at most: some hundred microseconds of a processor. */
enum {
    QUERY_SHORT_STEPS = 400,       /* as struct view_bound counts them */
    QUERY_SHORT_BYTES = 64 * 1024, /* of items, and of rows */
    QUERY_SHORT_WORK = 10 * 1000,  /* units of evaluation */
};

/* Bytes of a continuation at most, so that it is below 1 KB when sealed and in base64. */
enum { QUERY_CONTINUATION_MAX = 640 };

enum query_scope_kind {
    QUERY_SCOPE_CONTAINER,
    QUERY_SCOPE_KEY,   /* one partition key, or all that begin with a partial one */
    QUERY_SCOPE_RANGE, /* routing keys from min to max */
    QUERY_SCOPE_KEYS,  /* each of these: the suffixes of a base */
};

struct query_scope {
    enum query_scope_kind kind;
    struct partition_key key;
    struct partition_range range;
    const struct partition_key *keys;
    size_t key_count; /* at most QUERY_TARGETS_MAX */
};

struct query_page_limits {
    uint64_t rows_max;            /* 0: 100 */
    uint64_t bytes_max;           /* of rows as BSON; 0: 4 MB; one row is always given */
    uint64_t row_bytes_max;       /* of a single one: above it ERROR_QUERY_LIMIT; 0: no limit */
    const struct buf *rendered;   /* where rows become text: counts as well; NULL: nowhere */
    int64_t cru_max;              /* the page ends when it has cost so much; 0: no limit */
    int64_t pause_ms;             /* monotonic: the page ends early then; 0: never */
    int64_t deadline_ms;          /* monotonic: ERROR_TIMED_OUT; 0: none */
    uint64_t work_max;            /* units of evaluation (query/value/context.h); 0: no limit */
    size_t memory_max;            /* of what is sorted, grouped or made distinct; 0: 64 MB */
    const atomic_bool *cancelled; /* NULL: nobody can */
    struct query_breath breath;   /* take NULL: nobody else wants the processor */
    struct memory_meter *memory;  /* what the page uses is held there; NULL: nowhere */
};

/* Runs task(context, 0) to task(context, count - 1), at the same time or not, and returns when all
 * are done. */
struct query_executor {
    void (*run)(void *self, size_t count, void (*task)(void *context, size_t number),
                void *context);
    void *self;
    size_t width; /* how many may run at once */
};

/* A slot that has a value from the beginning, in every row. */
struct query_binding {
    uint32_t slot;
    struct document_value value;
};

/* Which access is to be taken, whatever another would cost. */
enum query_hint_kind {
    QUERY_HINT_NONE,
    QUERY_HINT_SCAN,
    QUERY_HINT_INDEX, /* the index of this name, which is there */
};

struct query_hint {
    enum query_hint_kind kind;
    struct slice name;
    /* Of an index: entries outside of them are not wanted, in the bytes behind the definition's
     * prefix. The filter says so too. None: all are. */
    struct cursor_range bounds;
};

/* What a transaction reads on one node; borrowed. */
struct query_moment {
    const struct engine *engine; /* behind standbys */
    struct engine_snapshot *snapshot;
    const struct view_overlay *overlay; /* NULL: nothing is seen besides */
};

struct query_wanted;

struct query_request {
    struct query_hint hint;
    const struct item_space *space; /* NULL: there is no container, and no items but these: */
    const struct slice *documents;  /* as query_run_documents takes them; borrowed */
    size_t document_count;
    struct rid container;      /* what _rid and _self are made of */
    struct meters *meters;     /* NULL: not held back, but priced */
    struct metered_call *call; /* in: how it is paid; out: charge and wait. NULL: the defaults */
    bool paid;                 /* an earlier page has paid for what is read: only work is charged */
    struct query_scope scope;
    struct slice continuation; /* empty: the first page */
    struct query_page_limits limits;
    struct query_udf_host udf;
    struct query_reference_host reference; /* of the plan's references */
    /* The moment that is read instead of now, of the node of the only partition in scope; borrowed.
     * For queries within a transaction, by one thread. NULL: now. */
    struct engine_snapshot *snapshot;
    const struct engine *snapshot_of;   /* the node of it; NULL: known to be that of all spans */
    const struct view_overlay *overlay; /* what is seen besides; NULL: nothing */
    /* The same of several nodes: each span is read as the one of its node has it. Then snapshot is
     * that of any of them, and overlay one of theirs if there is one. */
    const struct query_moment *moments;
    size_t moment_count;
    struct query_blocks *blocks;   /* of vectors; NULL: they are walked for each search */
    struct query_lists *lists;     /* of entries of terms; the same */
    struct query_members *members; /* of items that intersections met; NULL: none */
    struct query_cache *cache;     /* NULL: unfinished results are computed anew for each page */
    struct query_spill
        *spill; /* NULL: what does not fit the memory is computed in several passes */
    const struct query_executor *executor; /* NULL: all is done by the calling thread */
    bool in_memory;                        /* front_query_run: nothing is spilled */
    bool partial;                          /* partitions that do not serve are passed over */
    bool order_unindexed;                  /* an order may be one that no index has */
    /* Of a stream without an order, by a scan: items come as they were made, and behind the last of
     * them there is still a continuation, for those that will be. Empty: there was no item yet.
     * ERROR_POSITION_LOST: the item that the continuation stands at is no more, nor, perhaps, are
     * others behind it. */
    bool tail;
    /* The page is made by an event loop: it waits for nobody, and does little. ERROR_COLD: that was
     * not enough; nothing is charged then, and whatever rows were given count for nothing. Of plans
     * that are short themselves (query_plan_is_short), from their beginning. */
    bool is_short;
    struct view_bound *bound; /* of one that is short: what several pages may do together, which
                               * goes down with each; NULL: as much as a page may */
    bool timed;               /* times of steps are measured */
    bool explain;             /* page.explain is filled */
    struct arena *arena;      /* of the continuation and the explanation */

    const struct query_binding *bindings; /* NULL: none */
    size_t binding_count;
    int64_t now_ticks; /* of a query that begins: its time; 0: the clock's */

    /* Another container that a stage reads: sets space (NULL: there is none), documents, meters and
     * what else differs in a copy of this request. They stay good until the page is done. NULL:
     * stages name none. */
    bool (*other)(void *self, struct slice container, struct query_request *request,
                  struct error *err);
    void *other_self;
    /* Of such a copy: documents may be those alone that may be wanted (reference/copy.h). NULL: all
     * are. */
    const struct query_wanted *wanted;

    /* Told of each index besides the policy's that a query begins to walk, with the container of
     * the request; by any thread. NULL: nobody wants to know. */
    void (*index_used)(void *self, const struct rid *container,
                       const struct index_definition *index);
    void *index_used_self;

    /* Takes a row; the value is good during the call. False with err set ends the query. */
    bool (*row)(void *self, const struct document_value *value, struct error *err);
    void *self;
};

struct query_metrics {
    uint64_t items_loaded, loaded_bytes; /* "retrieved" */
    uint64_t rows, row_bytes;            /* "output" */
    uint64_t index_entries, index_lookups;
    uint32_t partitions;    /* read from for this page */
    uint64_t work;          /* units of evaluation */
    uint64_t spilled_bytes; /* written to disk for this page */
    /* Measured only where asked for. */
    uint64_t total_ns, plan_ns, index_ns, load_ns, run_ns, output_ns;
};

struct query_page {
    struct slice continuation; /* in the arena; empty: there is no more */
    int64_t charge_cru;
    struct query_metrics metrics;
    struct slice explain;    /* BSON, in the arena; as docs/design/query.md describes it */
    const uint32_t *missing; /* in the arena: the partitions that were passed over */
    size_t missing_count;
};

/* May the first page of it be tried on an event loop? Its expressions are bounded by the number of
 * their parts and the bytes of what they look at. */
bool query_plan_is_short(const struct query_plan *plan);

/* The next page. ERROR_BAD_REQUEST: the continuation is not one of this query; ORDER BY several
 * properties lacks its composite index, or one its index. ERROR_QUERY_LIMIT, ERROR_TIMED_OUT;
 * ERROR_TOO_MANY_REQUESTS and its kin before anything was read; ERROR_NODE_DOWN,
 * ERROR_NODE_PAUSED: partitions it has to read do not serve, which the message names; errors of
 * stores. */
NODISCARD bool query_run(const struct query_plan *plan, const struct query_request *request,
                         struct query_page *ret_page, struct error *err);

/* The same over documents at hand, in their order, such as databases and offers: of the request
 * only continuation, limits, udf, arena, row and self count. Orders are free and undefined is left
 * out. Charge is 0. */
NODISCARD bool query_run_documents(const struct query_plan *plan, const struct slice *documents,
                                   size_t count, const struct query_request *request,
                                   struct query_page *ret_page, struct error *err);
