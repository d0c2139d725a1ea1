/* Threads, locks and conditions, thin over pthreads: misuse ends the process, as our own bug.
 *
 * A lock protects what the structure lists under it; each folder's README says who may hold which
 * lock. Condition waits take an absolute monotonic time, so that a changed wall clock is harmless.
 */
#pragma once

#include "base/attrs.h"
#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

struct mutex {
    pthread_mutex_t native;
    _Atomic(const void *) holder; /* something of the thread that has it; NULL: nobody */
};

struct condition {
    pthread_cond_t native;
};

void mutex_init(struct mutex *mutex);
void mutex_done(struct mutex *mutex);
void mutex_lock(struct mutex *mutex);
bool mutex_try_lock(struct mutex *mutex); /* false: somebody has it */
void mutex_unlock(struct mutex *mutex);

/* By this thread. For asserts of those who are called with a lock held. */
bool mutex_is_held(const struct mutex *mutex);

/* WITH_LOCK(&thing->lock) { ... } — do not break or goto out; return is fine. */
static inline void mutex_unlock_scope_(struct mutex **mutex)
{
    if (*mutex)
        mutex_unlock(*mutex);
}
#define WITH_LOCK(mutex_)                                                                          \
    for (__attribute__((cleanup(mutex_unlock_scope_))) struct mutex *with_lock_ =                  \
             (mutex_lock(mutex_), (mutex_));                                                       \
         with_lock_; mutex_unlock(with_lock_), with_lock_ = NULL)

void condition_init(struct condition *condition);
void condition_done(struct condition *condition);
void condition_signal(struct condition *condition);
void condition_broadcast(struct condition *condition);
void condition_wait(struct condition *condition, struct mutex *mutex);

/* False when the time passed first. deadline_ms is of clock_monotonic_ms. */
bool condition_wait_until(struct condition *condition, struct mutex *mutex, int64_t deadline_ms);

/* A bell for threads: how one is told without a lock that something has come. Whoever would sleep
 * first notes what the bell says, then looks, and sleeps only while it says the same. */
struct thread_bell {
    _Atomic uint32_t rung;
};

uint32_t thread_bell_note(struct thread_bell *bell);
void thread_bell_ring(struct thread_bell *bell,
                      bool all); /* wakes one that sleeps, or all of them */

/* False when the time passed first. Returns early now and then. */
bool thread_bell_sleep(struct thread_bell *bell, uint32_t noted, int64_t deadline_ms);

struct thread {
    pthread_t native;
};

/* Starts a thread with all signals blocked (the main thread handles them) and a name of at most 15
 * bytes, as debuggers and top show it. */
void thread_start(struct thread *thread, const char *name, void (*run)(void *context),
                  void *context);
void thread_join(struct thread *thread);

/* The calling thread gets a processor before threads that run long: its slices are short, so that
 * it need not wait until theirs are over, and it has this niceness (below 0: before others).
 * Threads and processes that it starts have neither, but a niceness of 0.
 * ERROR_SYSTEM: the system permits no such niceness; slices are short all the same, where the
 * kernel knows of them (Linux 6.12). Or whoever started the process gave it another policy, which
 * it keeps. */
NODISCARD bool thread_hasten(int nice, struct error *err);

/* The calling thread gets a processor when no other wants it, or nearly so: for work in the
 * background that nobody waits for. */
void thread_recede(void);

/* A hastened thread comes before every thread of an ordinary policy from now on (a real-time policy
 * of the lowest priority), or only as thread_hasten says, again. For threads that are seldom busy:
 * others on their processor wait as long as they run. False if the system does not permit it. */
NODISCARD bool thread_go_first(bool first, int nice);
