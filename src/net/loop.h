/* Loop: one thread that waits for descriptors, timers and tasks; normally one for each core.
 *
 * What belongs to a loop (connections, requests being read, pools) is touched only by its thread
 * and needs no lock. Other threads reach it by posting a task. A loop with nothing to do sleeps
 * without a tick. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct net_loop;  /* opaque; lives as long as its loops */
struct net_loops; /* opaque, owned by the server */

/* A piece of work for a loop's thread, kept inside the structure it is about (CONTAINER_OF). It
 * belongs to the loop from post to run, and may be freed or posted again by run. */
struct net_task {
    struct net_task *next;
    void (*run)(struct net_task *task, struct net_loop *loop);
    const void *owner; /* on whose behalf: owners take turns; NULL: the server's own */
};

/* Starts count threads (0: one for each core this process may use).
 * ERROR_SYSTEM: descriptors or threads are exhausted. */
NODISCARD bool net_loops_new(size_t count, struct net_loops **ret_loops, struct error *err);

/* Runs the tasks already posted, then ends the threads. Listeners and workers go first: nobody may
 * post any more. NULL is fine. */
void net_loops_free(struct net_loops *loops);
CLEANUP_FN(struct net_loops *, net_loops_free)

/* Loops get a processor before the threads that work, with this niceness (thread_hasten); with
 * first, and where the system permits that too, before everything else while they are seldom busy.
 * ERROR_SYSTEM: the system does not permit the niceness to one of them. */
NODISCARD bool net_loops_hasten(struct net_loops *loops, int nice, bool first, struct error *err);

size_t net_loops_count(const struct net_loops *loops);

/* Cores that this process may use; at least 1. */
size_t net_cores_usable(void);
struct net_loop *net_loops_at(struct net_loops *loops, size_t index);

size_t net_loop_index(const struct net_loop *loop);
bool net_loop_is_current(const struct net_loop *loop); /* is this its thread? */

/* Has the loop's thread run the task soon; tasks of one owner from one thread run in the order
 * posted. From any thread, without a lock. */
void net_loop_post(struct net_loop *loop, struct net_task *task);

/* Runs the task on the loop's thread and waits for it. Not from a loop's thread. */
void net_loop_call(struct net_loop *loop, void (*run)(void *context), void *context);

/* The rest is for the loop's own thread. */

/* "Thu, 27 Apr 2017 00:51:12 GMT", made anew when the second has changed. Borrowed until the loop
 * waits again. */
struct slice net_loop_date(struct net_loop *loop);

/* Timer: calls back once at or after a time of clock_monotonic_ms. Moving the time later costs a
 * store, which is what a deadline renewed by every request needs. */
struct net_timer; /* opaque, owned */

struct net_timer *net_timer_new(struct net_loop *loop, void (*fire)(void *context), void *context);
void net_timer_free(struct net_timer *timer); /* NULL is fine */

enum { NET_TIMER_NEVER = 0 };
void net_timer_set(struct net_timer *timer, int64_t at_ms); /* NET_TIMER_NEVER: off */
