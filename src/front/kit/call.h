/* Call: one request of any front on its way from its loop to its answer.
 *
 * A call begins on the loop of its connection, in memory that is the transport's. Its operation
 * runs there if it needs nothing that blocks; if it finds that it does (cold), or is known to,
 * the request is kept and the operation runs again on a worker from its beginning. An operation may
 * also leave the call pending: a committer ends it, through the loop. Whichever way it goes, a call
 * is finished exactly once, and is gone then.
 *
 *     begun -> run on the loop -> finished
 *                              -> pending -> finished, or moved
 *           -> kept -> moved to a worker -> run there -> finished
 *                                                     -> parked -> moved
 *
 * What differs by protocol is the transport's, what differs by API the kind's. A front embeds this
 * structure at the beginning of its own, without a name and as `front`. */
#pragma once

#include "front/account.h"
#include "net/workers.h"
#include "observe/observed.h"

#include <stdatomic.h>

struct front_call;
struct query_request;

/* What queries of a call read instead of now: sets snapshot and overlay of a request. */
struct front_moment {
    bool (*take)(void *self, struct query_request *request, struct error *err);
    void *self;
};

/* How a call's bytes come and go: one for HTTP/1.1 (kit/http.h), one for each other protocol. */
struct front_transport {
    /* On the loop: the bytes of the request outlive the handler from now on. They may move. */
    void (*keep)(struct front_call *call);
    /* Throws away what was gathered for the answer: the operation begins anew. */
    void (*restart)(struct front_call *call);
    /* Set when the client has gone; good until the answer. NULL: nobody would notice. */
    const atomic_bool *(*cancel_flag)(const struct front_call *call);
};

/* What an API does in the life of its calls. */
struct front_call_kind {
    /* Runs the operation, from its beginning, where call->may_block says whether it may. */
    bool (*run)(struct front_call *call, struct error *err);
    /* The request's bytes have moved: finds anew what points to them. NULL: nothing does. */
    void (*kept)(struct front_call *call);
    /* Which of the account's containers it is about, for the workers' turns. */
    uint64_t (*part)(const struct front_call *call);
    /* The operation is over, the account still there: pays what is to be paid. NULL: nothing. */
    void (*settle)(struct front_call *call);
    /* Answers, and so ends the call. */
    void (*answer)(struct front_call *call);
    void (*refuse)(struct front_call *call, const struct error *err);
    /* The call is over: who asked what, when it began, and with what status it is answered if it
     * succeeded, for those who count and log. NULL: nobody is told of it. */
    void (*describe)(const struct front_call *call, struct observed_request *request);
};

struct front_call {
    const struct front_transport *transport;
    const struct front_call_kind *kind;
    const struct front_services *services;
    atomic_uint *under_way; /* calls that a committer will end: see front_calls_wait */
    struct net_loop *loop;  /* where the connection lives */
    struct arena *arena;    /* of the request; gone with the answer */
    struct front_account account;
    struct net_owner *owner;           /* the account, as workers and memory know it; may be NULL */
    const struct front_moment *moment; /* of a transaction; NULL: now */
    size_t held;                       /* on its meter, until the call ends */
    size_t work_bytes;                 /* to be held there besides where a worker works on it */
    bool may_block;                    /* false: on a loop; set cold and return rather than block */
    const atomic_bool *cancelled;      /* the client has gone; NULL: nobody would notice */
    bool primary;  /* it is read from primaries alone: a standby was lost in the middle */
    bool cold;     /* out: run again where it may block; the answer so far is thrown away */
    bool *pending; /* out, on a loop: the operation ends later, by front_call_finish; the call must
                    * not be touched after that was set in motion */
    /* Out, on a worker: nothing is to be done yet. It is called, where the operation has returned,
     * to put the call somewhere from where it is moved again, once; what was returned counts for
     * nothing. */
    void (*park)(struct front_call *call);
    void *parked;    /* for whoever set park */
    bool kept;       /* the request's bytes are in the arena */
    uint8_t entered; /* of pauses_enter: it is under way */
    int64_t charge_cru;
    int64_t wait_ms;          /* of a refusal for lack of throughput */
    uint64_t ended_ns;        /* of clock_monotonic_ns, set by front_call_finish */
    struct observed observed; /* found out on the way; the container by front_call_observe */
    struct net_work work;
};

/* Runs the operation: here, on the loop, or where blocks is true on a worker. The call may be over
 * when it returns. */
void front_call_run(struct front_call *call, bool blocks);

/* On a loop: keeps the request beyond the handler's return. */
void front_call_keep(struct front_call *call);

/* Runs the operation on a worker, from its beginning. From any thread; the call is kept. */
void front_call_move(struct front_call *call);

/* Holds so many bytes more on the account's meter, until the call ends. ERROR_MEMORY_FULL. */
NODISCARD bool front_call_hold(struct front_call *call, size_t bytes, struct error *err);

/* On a worker, between two items that are shown: lets others of the account have the processor. Not
 * where something is held that others wait for. */
void front_call_breathe(const struct front_call *call);

/* The container it is about was found. */
static inline void front_call_observe(struct front_call *call, const struct container *container)
{
    call->observed.container = container_info(container)->number;
}

/* It is no longer one of those that a pause waits for: it waits itself, and will neither read nor
 * write. */
void front_call_leave(struct front_call *call);

/* Ends the call: answers with what it has gathered, or with the error. From any thread. */
void front_call_finish(struct front_call *call, bool fine, const struct error *err);

/* Waits for the calls that committers will still end: after the listeners have gone, before the
 * loops go. */
void front_calls_wait(atomic_uint *under_way);
