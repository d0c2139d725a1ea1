/* Guard: a node that may fail, as an engine that keeps nobody waiting.
 *
 * It stands before a real engine and hands every call on while the node serves. When the node does
 * not answer, the guard lets go of whoever waits, turns every further call away at once
 * (ERROR_NODE_DOWN), and tries to bring the node back: it asks for a sign of life, after a failed
 * write or a failed opening it opens the store anew, and before anybody else is let in whoever
 * started it may put in order what was kept in memory. The engine behind may be another one
 * afterwards; the guard is the same.
 *
 *     serving --(no sign of life, a write of unknown outcome, a write that hangs)--> down
 *     down    --(a sign of life, then `rejoin`)--> serving
 *
 * Between the two a node whose sign of life is overdue is *suspect*: calls that are inside wait,
 * but only so many more are let in, so that a node that hangs does not take all threads with it. A
 * call that has waited for answer_ms, half of it beside one sign of life that does not come, is let
 * go: a read has failed (ERROR_NODE_DOWN), a write is in doubt. From then on nobody is let in until
 * that sign of life has come. Whether the node is down is decided apart from this.
 *
 * A node whose place another server can take (engine_fails_over) is waited for: calls that find it
 * down, or that failed without having done anything, are held back and made again when it serves,
 * for failover_ms since it went down at most, and only so many at a time. A call in a snapshot
 * cannot be made again.
 *
 * A node that has lost acknowledged writes (ERROR_STORE_LOST) stays down until the operator has
 * accepted that.
 *
 * Paused is besides all that: by the operator's word every call is turned away (ERROR_NODE_PAUSED)
 * but for one partition, the catalogue's. */
#pragma once

#include "engine/engine.h"

struct engine_guard_options {
    const char *name;            /* what the operator calls the node; copied */
    struct slice url;            /* copied; may hold a password */
    struct engine_options inner; /* of the engine behind */
    uint32_t unpaused_partition; /* what stays open while it is paused; 0: nothing */

    int64_t answer_ms; /* calls are let go after so long; 0: they wait until it is down */

    /* 0: the defaults, 100 ms, 100 ms, 1 s, 10 s, 1 s, 8. */
    int64_t probe_ms;       /* between signs of life */
    int64_t suspect_ms;     /* overdue for so long: suspect */
    int64_t hang_ms;        /* overdue for so long: down */
    int64_t write_hang_ms;  /* a write that runs for so long: down */
    int64_t backoff_ms_max; /* between attempts to bring it back: from probe_ms, doubling */
    size_t suspect_calls;   /* at most so many calls are inside a suspect node */

    int64_t failover_ms;   /* calls wait so long for another server to take over; 0: they do not */
    size_t failover_calls; /* at most so many do; 0: 16 */

    bool is_standby; /* it is one of several that may be read from: the log calls it so */

    /* Opens the store; NULL: engine_open. */
    bool (*open)(void *context, struct slice url, const struct engine_options *options,
                 struct engine **ret_engine, struct error *err);
    void *open_context;
};

struct engine_standbys;

/* A guard before a node that is not open yet, and so down. To be closed with engine_close. */
struct engine *engine_guard_new(const struct engine_guard_options *options);

/* Before an engine that is open already, which is taken over; options.url says how to open it
 * again, empty: not at all. */
struct engine *engine_guard_around(const struct engine_guard_options *options,
                                   struct engine *inner);

/* Hangs the standbys of the node (standbys.h) on its guard, which keeps, pauses, retires and frees
 * them as the node itself; NULL: it has none. Before it is kept. */
void engine_guard_hang(struct engine *engine, struct engine_standbys *standbys);

/* Serves, and is not overdue with a sign of life: worth asking when there is another to ask. */
bool engine_guard_is_well(const struct engine *engine);

/* What an engine handed to engine_guard_around is to be told, if its calls can wait. */
struct engine_watch engine_guard_watch(struct engine *engine);

/* Opens the node and lets everybody in: at the start, before it is kept. */
NODISCARD bool engine_guard_open(struct engine *engine, struct error *err);

/* The store behind must be of this id when it comes. Before it is kept. */
void engine_guard_expect(struct engine *engine, const char *node_id);

/* Who puts things in order before a node serves again: called with the node already open to the
 * calling thread, and to it alone. False: not yet. */
struct engine_guard_hooks {
    bool (*rejoin)(void *context, struct error *err);
    void *context;
};

/* Starts the thread that watches the node and brings it back. hooks are copied. by_hand: no thread,
 * the test calls engine_guard_tend. */
void engine_guard_keep(struct engine *engine, const struct engine_guard_hooks *hooks, bool by_hand);

/* Ends the thread; from then on the node stays as it is. NULL-safe in the hooks: they are not
 * called any more when this returns. */
void engine_guard_leave(struct engine *engine);

/* One look at the node: asks for a sign of life, or tries to bring it back if that is due. */
void engine_guard_tend(struct engine *engine);

/* Whoever needs the node to be put in order before it serves says so: it is down from now on, for
 * this reason, and comes back by way of rejoin. Nothing happens to an engine that is no guard. */
void engine_guard_take_down(struct engine *engine, const struct error *err);

/* By the operator's word: the node goes on without what it has lost. It is opened anew and put in
 * order (rejoin) soon. ERROR_BAD_REQUEST: it has lost nothing. */
NODISCARD bool engine_guard_accept_loss(struct engine *engine, struct error *err);

/* Waits as a call would while the node is down and may soon serve again. For threads that may
 * block. */
NODISCARD bool engine_guard_await(const struct engine *engine, struct error *err);

/* By the operator's word; running calls end as they will. */
void engine_guard_pause(struct engine *engine, bool on);

/* The node is gone for good: its engine is closed as soon as nobody is inside (true), and every
 * call is turned away from now on. Not while it is kept. */
NODISCARD bool engine_guard_retire(struct engine *engine);

/* What a node that answers may still suffer from. Each is logged when it begins, at most once a
 * minute, and when it is over. Unreadable: until the store is opened anew. Full: until a put is
 * taken again, or there is clearly more room. */
enum engine_fault { ENGINE_FAULT_UNREADABLE, ENGINE_FAULT_FULL, ENGINE_FAULTS };
const char *engine_fault_name(enum engine_fault fault); /* "unreadable", "full" */

enum engine_guard_state { ENGINE_GUARD_SERVING, ENGINE_GUARD_SUSPECT, ENGINE_GUARD_DOWN };

struct engine_guard_status {
    enum engine_guard_state state;
    bool paused;
    int64_t since_ms;                      /* wall clock: when it began to be so */
    uint64_t downs;                        /* how often it went down */
    uint64_t refused;                      /* calls turned away */
    uint64_t waited;                       /* calls held back until it served again */
    bool lost;                             /* down, since acknowledged writes are gone */
    uint64_t inside;                       /* calls, snapshots and iterators now */
    char reason[ERROR_MESSAGE_SIZE];       /* why it is down, or was last */
    bool faults[ENGINE_FAULTS];            /* now */
    uint64_t fault_counts[ENGINE_FAULTS];  /* calls that met one */
    char fault_reason[ERROR_MESSAGE_SIZE]; /* of the one that began last */
};

/* False: the engine is no guard. */
NODISCARD bool engine_guard_status(const struct engine *engine,
                                   struct engine_guard_status *ret_status);
const char *engine_guard_state_name(enum engine_guard_state state);
