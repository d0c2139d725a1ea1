/* Run: a traversal is compiled to steps and run to its end on the calling thread, which blocks.
 *
 * The steps pull batches of traversers from one another. Results leave through a callback as they
 * come: limit() stops reading early, and a client that has gone stops the run through the cancel
 * flag. Everything a traversal holds at one time is on the heap of its request, whose limit ends
 * the run with an error; what barriers keep beyond their share of it goes to disk. Every loop
 * counts its work and looks at the deadline.
 *
 * The writes of a run belong to the transaction of its graph handle. Whoever called commits it or
 * takes it back; a run that fails has not undone anything by itself. */
#pragma once

#include "front/gremlin/graph/graph.h"
#include "front/gremlin/value/traversal.h"
#include "query/value/context.h"

#include <stdatomic.h>

struct query_spill;

/* Where versions of TinkerPop differ (facts 13), whose behaviour is asked for. */
enum gremlin_version {
    GREMLIN_VERSION_3_7,
    GREMLIN_VERSION_3_8,
};

/* 0 of a limit: none. */
struct gremlin_run_limits {
    uint64_t operators_max; /* steps of the traversal with all its children; 0: 400 */
    uint64_t loops_max;     /* iterations of one repeat(); 0: no limit */
    uint64_t results_max;   /* given in all */
    uint64_t work_max;      /* units, about one for each traverser at each step */
    int64_t deadline_ms;    /* by the clock's monotonic hand */
    /* Memory is the limit of the heap. */
};

/* A batch of results. Values are borrowed during the call. bulks[i] says how often values[i] is
 * meant; NULL: once each, which is so unless options.bulked. False with err set ends the run. */
struct gremlin_sink {
    bool (*take)(void *self, const struct gremlin_value *values, const uint64_t *bulks,
                 size_t count, struct error *err);
    void *self;
};

struct gremlin_run_options {
    enum gremlin_version version;
    struct gremlin_run_limits limits;
    size_t batch;   /* results in one call of the sink, at most; 0: 64 */
    bool bulked;    /* the sink takes bulks: traversers that are alike may come as one */
    bool read_only; /* steps that write are refused: ERROR_FORBIDDEN */
    bool cloud;     /* as the hosted service: has('id', x) is T.id, property('id', x) sets the id;
                     * what V([a, b]) is, the graph handle knows */
    struct slice text; /* of the script, for executionProfile(); empty: made of the traversal */
    const struct clock *clock;    /* NULL: the system's */
    const atomic_bool *cancelled; /* NULL: nobody can */
    struct query_breath breath;   /* take NULL: nobody else wants the processor */
    struct query_spill *spill;    /* where barriers put aside what is too much; NULL: nowhere */
    size_t spill_at;              /* bytes of the heap that a barrier may take before it does */
    uint64_t seed;                /* of coin(), sample(), shuffle; 0: chance */
};

/* What became of a run, beside its error. */
struct gremlin_outcome {
    uint16_t status;                   /* Gremlin's: 200; 500, 595, 597, 598 ... of errors */
    bool failed_step;                  /* fail() ended it: status 595 */
    struct gremlin_value fail_message; /* then: a reference, a string */
    uint64_t results;                  /* given, bulks counted */
    uint64_t work;                     /* units done */
    bool wrote;                        /* at least one step that writes was reached */
};

void gremlin_outcome_done(struct gremlin_outcome *outcome);

/* Runs the traversal, with its terminal step: next(n) ends after n results, iterate() gives none,
 * hasNext() one boolean, toSet() each result once, explain() a text.
 * ERROR_GREMLIN_COMPILE (597): an unknown step, wrong arguments; ERROR_GREMLIN_RUN (500): a value
 * that a step cannot take; ERROR_GREMLIN_FAIL (595); ERROR_TIMED_OUT (598): the deadline, or
 * cancelled; ERROR_QUERY_LIMIT, ERROR_MEMORY_FULL: limits; and errors of the graph. outcome is
 * filled either way. */
NODISCARD bool gremlin_run(struct gremlin_graph *graph, struct gremlin_heap *heap,
                           const struct gremlin_traversal *traversal,
                           const struct gremlin_run_options *options,
                           const struct gremlin_sink *sink, struct gremlin_outcome *ret_outcome,
                           struct error *err);

/* May an event loop try it, within bounds of work, memory and of what it reads? *ret_kind: a hash
 * of what it does, whatever the values in it are, for those who remember how it went. */
bool gremlin_traversal_is_short(const struct gremlin_traversal *traversal, uint64_t *ret_kind);

/* Would the traversal write? For read-only keys and for choosing a transaction, before it runs. */
bool gremlin_traversal_writes(const struct gremlin_traversal *traversal);
