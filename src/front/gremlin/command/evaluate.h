/* Evaluation: a script or bytecode run to its end, with its graph, its transaction and
 * the batches of its results.
 *
 * Results of what only reads leave as they come; those of what writes are held, within a limit,
 * until its transaction is committed: nobody is told of what may not come to be. What lost against
 * another writer is run again from its beginning, a few times, as long as nothing was told. */
#pragma once

#include "front/gremlin/command/answer.h"
#include "front/gremlin/command/arguments.h"
#include "front/gremlin/command/session.h"

struct gremlin_evaluation {
    struct front_call *call;
    struct gremlin *gremlin;
    const struct gremlin_identity *identity;
    const struct gremlin_asked *asked;
    struct gremlin_session *session; /* NULL: none */
    struct gremlin_heap *heap;       /* of the request; NULL once a transaction has taken it over */
    struct gremlin_answering *answering;

    /* Sends a batch that others follow. NULL: all of them are held to the end, as one. */
    bool (*send)(struct gremlin_evaluation *evaluation, const struct gremlin_batch *batch,
                 struct error *err);

    /* Of an attempt on a loop that came to nothing: what it has paid for; in and out. */
    int64_t tried_cru;
    uint64_t tried_reads;

    /* Out: */
    struct gremlin_batch batch; /* the last one, or empty; gremlin_evaluation_done frees it */
    struct gremlin_value fail_message; /* of fail(); null: it was none */
    uint16_t code;                     /* of an error, where it is not as its row says; 0: it is */

    /* Its own: */
    struct gremlin_graph *graph;
    struct slice database;
    const struct gremlin_graph_options *options;
    struct gremlin_batch *held; /* full ones before the last */
    size_t held_count, held_bytes;
    struct gremlin_value list; /* where results go that are assigned; null: they are told */
    struct gremlin_value variables;
    int64_t begun_ms, deadline_ms, evaluation_ms; /* it may take so long */
    size_t batch_max;                             /* results of a frame */
    enum item_level level;                        /* of reads */
    bool tokens;                                  /* elements come without properties */
    bool silent;                                  /* results are not wanted */
    bool holding;                                 /* nothing may be told yet */
    bool sent;                                    /* something was */
    bool tried;                                   /* on a loop, as one of this kind: */
    uint64_t kind;
    bool ended; /* the transaction of the session was committed, or rolled back */
};

/* Runs it, on a worker, or, where the call may not block, on its loop: there it ends with the call
 * cold unless it is short and has all it reads at hand, which is told by one frame. The batches
 * before the last are sent when it returns true; on an error none is sent any more. */
NODISCARD bool gremlin_evaluate(struct gremlin_evaluation *evaluation, struct error *err);
/* Frees what it holds, and the heap of the request: values of it are no more. */
void gremlin_evaluation_done(struct gremlin_evaluation *evaluation);
