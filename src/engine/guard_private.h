/* The guard from within: guard.c watches the node and brings it back, guard_calls.c hands calls on.
 */
#pragma once

#include "base/thread.h"
#include "engine/driver.h"
#include "engine/guard.h"
#include "engine/standbys.h"

#include <stdatomic.h>

/* Who is inside is counted by the processor they came in on, each count on lines of its own, so
 * that those who come and go do not wait for each other. */
enum { GUARD_DOORS = 16, GUARD_LINE_PAIR = 128 };
struct guard_door {
    atomic_size_t inside;
    uint8_t space[GUARD_LINE_PAIR - sizeof(atomic_size_t)];
};

struct guard_fault {
    atomic_bool on;
    atomic_uint_fast64_t count;
    int64_t logged_ms; /* under the guard's lock; monotonic, 0: never */
};

struct guard {
    struct engine base; /* must be first */
    struct engine_guard_options options;
    char *name, *url;   /* owned; the URL is cleansed */
    struct slice shown; /* owned: the URL without its password */
    const struct clock *clock;
    struct engine_standbys *standbys; /* owned; NULL: it has none */

    struct guard_door doors[GUARD_DOORS];

    /* Changed by the keeper alone, while the node is down and nobody is inside. Whoever comes in
     * counts himself first and looks at the state then; the keeper closes the state first and
     * looks at the counts then: one of the two sees the other. */
    struct engine *inner; /* owned; NULL: not open */
    atomic_bool down;
    atomic_bool paused, retired;
    atomic_bool doubt; /* a call failed: look at the node now, and whether its writes are sound */
    atomic_bool hurry; /* a call waits or lost its connection: ask for a sign of life now */
    /* Numbers of signs of life: the one that is asked for, 0: none, and the one that somebody gave
     * up waiting beside; while they are the same nobody else is let in. */
    atomic_uint_fast64_t ping, ping_silent;
    atomic_int_fast64_t ping_since_ms, write_since_ms; /* monotonic; 0: none under way */
    atomic_uint_fast64_t refused, waited;
    atomic_size_t waiting;          /* calls held back now */
    atomic_int_fast64_t down_at_ms; /* monotonic: since when it is down */
    atomic_bool fails_over;         /* the engine behind said so when it was last well */
    atomic_bool accepts;            /* the operator accepts what it has lost */

    struct guard_fault faults[ENGINE_FAULTS];

    struct mutex lock;           /* under it: the rest */
    struct condition wake, back; /* of the keeper; of calls held back */
    struct error reason;
    struct error fault_reason;
    uint64_t full_free; /* bytes that were free when it got full */
    int64_t since_ms;   /* wall clock */
    uint64_t downs;
    bool stopping;
    bool kept, has_thread;
    struct engine_guard_hooks hooks;
    struct thread thread;

    int64_t attempt_at_ms, backoff_ms;

    /* The keeper's own. */
    uint64_t pings;
    bool broken; /* what is open is of no use any more and is to be opened anew */
};

extern const struct engine_driver guard_driver;

static inline struct guard *guard_of(const struct engine *engine)
{
    assert(engine->driver == &guard_driver);
    return (struct guard *)engine;
}

/* The node this thread is bringing back: it alone is let in while the node is down. */
extern _Thread_local const struct guard *guard_kept;

/* Somebody was let go beside the sign of life that is still awaited. */
static inline bool guard_is_silent(const struct guard *guard)
{
    uint64_t ping = atomic_load_explicit(&guard->ping, memory_order_relaxed);

    return ping && ping == atomic_load_explicit(&guard->ping_silent, memory_order_relaxed);
}

/* A sign of life is overdue. */
static inline bool guard_is_suspect(const struct guard *guard)
{
    int64_t since_ms = atomic_load_explicit(&guard->ping_since_ms, memory_order_relaxed);

    return since_ms && clock_read_monotonic_ms(guard->clock) - since_ms > guard->options.suspect_ms;
}

size_t guard_inside(const struct guard *guard);

/* A call met a fault; one has ended. */
void guard_fault_begin(struct guard *guard, enum engine_fault fault, const struct error *err);
void guard_fault_end(struct guard *guard, enum engine_fault fault);

/* A call has failed in a way that says something about the node. */
void guard_doubt(struct guard *guard);

/* What the call that this thread makes has waited so far. It is counted in pauses after which the
 * thread got its turn, not by a clock alone: when the whole machine stands still, it is not the
 * node that does not answer. */
struct guard_wait {
    int64_t waited_ms;
    uint64_t ping;            /* the sign of life that was waited for beside it */
    int64_t silent_ms;        /* for so long */
    const struct guard *asks; /* the node whose keeper this is, while it asks for a sign of life */
};
extern _Thread_local struct guard_wait guard_wait;
