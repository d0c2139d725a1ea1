/* Context: what expressions are evaluated in. The row they look at, the memory and the work they
 * may use, and what they may ask of the outside: the time, chance, functions of the user.
 *
 * One context belongs to one thread and lives for one page of a query. Values that evaluation makes
 * are in its arena and stay good until the caller resets it, commonly once per row.
 *
 * Three limits hold whatever a query says: bytes of temporaries (ERROR_QUERY_LIMIT), units of work
 * (ERROR_QUERY_LIMIT) and a deadline (ERROR_TIMED_OUT). Whoever loops over input counts its steps
 * with query_work, and whoever allocates does it with query_alloc or between query_build_begin and
 * query_build_end; so no function needs limits of its own. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory_meter.h"
#include "base/random.h"
#include "document/bson.h"
#include "document/order.h"

#include <stdatomic.h>

struct query_context;
struct query_regex_cache;
struct query_shape_cache;
struct query_vector_cache;
struct search_analyser;

/* A score that index entries have told, and what it is of; text NULL: none. */
struct query_known_score {
    const uint8_t *text; /* where the text of the item begins */
    struct slice language, phrases, hits;
    double texts, words;
    double score;
};
struct query_ahead;
struct query_expression;

/* A row that is not all there: properties that are computed when asked for, such as the system
 * properties of an item. query/expression/item.h has the one for items. */
struct query_virtual {
    /* The property of that name. False: it is none of ours, look into the stored object. */
    bool (*property)(void *self, struct slice name, struct query_context *context,
                     struct document_value *ret_value);
    /* The whole object, computed properties included; in memory that lives as long as the row. */
    bool (*whole)(void *self, struct query_context *context, struct document_value *ret_value,
                  struct error *err);
};

/* What a variable stands for in the present row: the item, a JOIN variable, a group key, the
 * result of an aggregate. */
struct query_slot {
    struct document_value value;        /* undefined: there is nothing */
    const struct query_virtual *hidden; /* not NULL: value, an object, lacks some properties */
    void *hidden_self;
};

/* A variable that a kind binds while what is below it is evaluated: on the stack of the evaluation,
 * in no slot. */
struct query_local {
    const struct query_local *outer;
    struct document_value value;
};

/* Calls a user-defined function. Results are in the context's arena. */
struct query_udf_host {
    bool (*call)(void *self, struct slice name, const struct document_value *arguments,
                 size_t count, struct query_context *context, struct document_value *ret_value,
                 struct error *err);
    void *self;
    /* The same for many rows at once (query/run/ahead.h): row i has the width arguments from
     * arguments[i * width] on. *ret_made false: a row failed, so each is to be called by itself.
     * NULL: always one by one. */
    bool (*call_many)(void *self, struct slice name, const struct document_value *arguments,
                      size_t width, size_t rows, struct query_context *context,
                      struct document_value *ret_values, bool *ret_made, struct error *err);
};

/* Finds items of containers that queries may join (query/expression/reference.h): an array of them,
 * or undefined where there are none; good as long as the page. find NULL: there are no such
 * containers. */
struct query_reference_host {
    bool (*find)(void *self, size_t number, const struct document_value *keys, size_t count,
                 struct query_context *context, struct document_value *ret_items,
                 struct error *err);
    void *self;
};

/* Results of such calls that are here already (query/run/ahead.h). find NULL: there are none. */
struct query_made_ahead {
    const struct query_ahead *self;
    /* The result of a call for the present row, and the bytes of its arguments. *ret_found false:
     * it was not made. */
    bool (*find)(const struct query_ahead *self, const struct query_expression *call,
                 bool *ret_found, struct document_value *ret_value, uint64_t *ret_bytes,
                 struct error *err);
};

/* Whoever shares the processors between queries. NULL: nobody does. */
struct query_breath {
    void (*take)(void *self); /* returns when the thread may go on */
    void *self;
};

struct query_limits {
    size_t bytes_max;  /* of temporaries at one time; 0: 16 MiB */
    uint64_t work_max; /* units, about one per node evaluated and per 16 bytes walked; 0: no end */
    int64_t deadline_ms; /* by the clock's monotonic hand; 0: none */
    bool brief; /* an event loop evaluates: what takes long by itself fails with ERROR_COLD */
};

struct query_context {
    struct query_slot *slots; /* borrowed; as many as the plan asks for */
    size_t slot_count;
    const struct query_local *locals; /* the innermost; NULL: none */

    struct arena *arena; /* borrowed */
    struct buf scratch;  /* where objects, arrays and texts are put together, as a stack */
    struct query_limits limits;
    uint64_t work;       /* done so far */
    uint64_t work_check; /* when to look at limits and clock again */
    const struct clock *clock;
    const atomic_bool *cancelled; /* NULL: nobody can; true: ERROR_TIMED_OUT at the next look */
    struct query_breath breath;   /* taken at every look */
    struct memory_meter *memory;  /* what temporaries are held on; NULL: nobody counts them */
    size_t memory_held;           /* there, for this context */
    size_t kept_bytes;            /* held besides arena and scratch: spools, states */
    const struct buf *rendered;   /* and the answer in the making; NULL: elsewhere */

    int64_t now_ticks;    /* 100 ns since 1970, the same for the whole query */
    struct random random; /* of RAND(), once random_seeded */
    bool random_seeded;
    struct query_udf_host udf;     /* call NULL: user-defined functions are refused by name */
    uint64_t udf_bytes;            /* of arguments and results of those calls so far */
    struct query_made_ahead ahead; /* calls of them that were made before */
    struct query_reference_host reference;
    uint64_t joined_items, joined_bytes; /* that it has found so far */
    bool keep_nonfinite;       /* NaN and infinities may stand in objects and arrays (MongoDB) */
    enum document_order order; /* by which values are compared: the plan's */
    struct query_regex_cache *regexes;    /* made when first needed */
    struct query_shape_cache *shapes;     /* as well */
    struct query_vector_cache *vectors;   /* as well */
    struct query_known_score known_score; /* of the present item */
    struct search_analyser *analyser;     /* of the language that was asked for last */
    struct slice analyser_language;
};

/* clock NULL: the system's. limits NULL: the defaults. The static time of the query is the wall
 * clock's at this moment; set now_ticks to hand in another, as when a query goes on. */
void query_context_init(struct query_context *context, struct arena *arena,
                        const struct query_limits *limits, const struct clock *clock);
void query_context_done(struct query_context *context);
CLEANUP_VALUE_FN(struct query_context, query_context_done)

/* The next number of RAND(). The seed costs a system call, so it is got when first needed. */
uint64_t query_random(struct query_context *context);

/* Counts work, and now and then looks at the limits, the clock and whether anyone still waits. */
bool query_work_check(struct query_context *context, struct error *err);
NODISCARD static inline bool query_work(struct query_context *context, uint64_t units,
                                        struct error *err)
{
    context->work += units;
    if (LIKELY(context->work < context->work_check))
        return true;
    return query_work_check(context, err);
}

/* Lets others have the processor, if it is their turn. */
static inline void query_context_breathe(struct query_context *context)
{
    if (context->breath.take)
        context->breath.take(context->breath.self);
}

/* Holds on the meter what the context uses by now. ERROR_MEMORY_FULL. To be called now and then:
 * small amounts, and what goes and comes back soon, are not followed. */
NODISCARD bool query_memory_hold(struct query_context *context, struct error *err);

/* Is the arena, with other bytes elsewhere, within the limit? For what allocates without asking,
 * such as sets. */
NODISCARD bool query_memory_check(const struct query_context *context, size_t other,
                                  struct error *err);

/* Memory in the arena. NULL: the limit is reached. */
void *query_alloc(struct query_context *context, size_t size, struct error *err);

/* Puts bytes together in context->scratch and gives them back in the arena. What is evaluated in
 * between may do the same, for each takes away what it has added:
 *
 *     size_t mark = query_build_begin(context);
 *     ... append to &context->scratch ...
 *     return query_build_end(context, mark, &bytes, err);
 *
 * After a failure in between, query_build_drop; it returns false. */
static inline size_t query_build_begin(struct query_context *context)
{
    return context->scratch.len;
}
NODISCARD bool query_build_end(struct query_context *context, size_t mark, struct slice *ret_bytes,
                               struct error *err);
/* An element of an object or array that is put together. ERROR_TOO_DEEP: with it, that would be
 * nested deeper than QUERY_VALUE_DEPTH_MAX, which leaves room below what readers can take, for
 * whoever wraps a result. ERROR_QUERY_LIMIT: there is no more memory for it. */
enum { QUERY_VALUE_DEPTH_MAX = DOCUMENT_DEPTH_MAX - 16 };
NODISCARD bool query_build_append(struct query_context *context, struct slice key,
                                  const struct document_value *value, struct error *err);

/* Closes the object or array that was begun at `begin`, alone since mark, and gives it. */
NODISCARD bool query_build_close(struct query_context *context, size_t mark, size_t begin,
                                 enum document_type type, struct document_value *ret_value,
                                 struct error *err);

static inline bool query_build_drop(struct query_context *context, size_t mark)
{
    context->scratch.len = mark;
    context->scratch.overflowed = false;
    return false;
}
