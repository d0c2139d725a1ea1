/* Session: variables of scripts, and a transaction, that several requests of one connection share,
 * one after the other.
 *
 * A session begins with the first request that names it and dies with its connection, by close, or
 * when it is not used for long. It is the loop's while none of its requests runs, and else the one
 * worker's that runs it. */
#pragma once

#include "front/gremlin/command/front.h"
#include "front/gremlin/command/target.h"

enum {
    GREMLIN_SESSION_ID_MAX = 256,
    GREMLIN_TRANSACTION_REQUESTS_MAX = 10000,
};

/* A transaction under way. */
struct gremlin_transaction {
    struct gremlin_graph *graph; /* NULL: there is none */
    struct gremlin_heap *heap;   /* of its values */
    struct gremlin_heap **kept;  /* of requests within it, which its values may point into */
    size_t kept_count;
    struct container *container; /* that the graph is of */
};

struct gremlin_call;

struct gremlin_session {
    struct gremlin *gremlin;
    struct gremlin_session *next;
    size_t id_len;
    uint8_t id[GREMLIN_SESSION_ID_MAX];
    int64_t used_ms;                   /* when its last request ended */
    bool busy;                         /* one of its requests runs, or is about to */
    bool over;                         /* it goes with that */
    struct gremlin_call *first, *last; /* that wait for their turn */

    struct gremlin_heap *heap;      /* of the variables; NULL: there are none */
    struct gremlin_value variables; /* a map */
    struct gremlin_transaction transaction;
};

/* ERROR_LIMIT_REACHED: there are as many as there may be. */
NODISCARD bool gremlin_session_new(struct gremlin *gremlin, struct slice id,
                                   struct gremlin_session **ret_session, struct error *err);
/* What its transaction has written is rolled back. None of its requests runs or waits. */
void gremlin_session_free(struct gremlin_session *session); /* NULL is fine */

static inline struct slice gremlin_session_id(const struct gremlin_session *session)
{
    return slice_of(session->id, session->id_len);
}

/* The variables as a map on the heap of a request; null: there are none. */
NODISCARD bool gremlin_session_variables(const struct gremlin_session *session,
                                         struct gremlin_heap *heap, struct gremlin_value *ret_map,
                                         struct error *err);
/* Sets one. ERROR_TOO_LARGE: they hold as much as they may. */
NODISCARD bool gremlin_session_set(struct gremlin_session *session, struct memory_meter *meter,
                                   struct slice name, struct gremlin_value value,
                                   struct error *err);

/* Begins a transaction of that graph, if there is none. ERROR_BAD_REQUEST: there is one of another
 * graph. */
NODISCARD bool gremlin_transaction_begin(struct gremlin_session *session,
                                         const struct gremlin_graph_options *options,
                                         struct memory_meter *meter, struct error *err);
/* Has it had as many requests as it may? Then err says so. */
bool gremlin_transaction_is_long(const struct gremlin_transaction *transaction, struct error *err);
/* A request within it is over, whose values it may still need: takes over its heap. */
void gremlin_transaction_keep(struct gremlin_transaction *transaction, struct gremlin_heap *heap);
/* It is over; what was not committed never was. */
void gremlin_transaction_end(struct gremlin_transaction *transaction);
