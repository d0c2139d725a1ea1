#include "base/thread.h"

#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must_succeed(int result)
{
    assert(result == 0);
}

/* Its address tells threads apart, for less than asking the system who one is. */
static _Thread_local char self;

static void holder_set(struct mutex *mutex, const void *holder)
{
    atomic_store_explicit(&mutex->holder, holder, memory_order_relaxed);
}

bool mutex_is_held(const struct mutex *mutex)
{
    return atomic_load_explicit(&mutex->holder, memory_order_relaxed) == &self;
}

void mutex_init(struct mutex *mutex)
{
    atomic_init(&mutex->holder, NULL);
    must_succeed(pthread_mutex_init(&mutex->native, NULL));
}

void mutex_done(struct mutex *mutex)
{
    must_succeed(pthread_mutex_destroy(&mutex->native));
}

void mutex_lock(struct mutex *mutex)
{
    must_succeed(pthread_mutex_lock(&mutex->native));
    holder_set(mutex, &self);
}

bool mutex_try_lock(struct mutex *mutex)
{
    int result = pthread_mutex_trylock(&mutex->native);

    assert(result == 0 || result == EBUSY);
    if (result == 0)
        holder_set(mutex, &self);
    return result == 0;
}

void mutex_unlock(struct mutex *mutex)
{
    assert(mutex_is_held(mutex));
    holder_set(mutex, NULL);
    must_succeed(pthread_mutex_unlock(&mutex->native));
}

void condition_init(struct condition *condition)
{
    pthread_condattr_t attributes;

    must_succeed(pthread_condattr_init(&attributes));
    must_succeed(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    must_succeed(pthread_cond_init(&condition->native, &attributes));
    pthread_condattr_destroy(&attributes);
}

void condition_done(struct condition *condition)
{
    must_succeed(pthread_cond_destroy(&condition->native));
}

void condition_signal(struct condition *condition)
{
    must_succeed(pthread_cond_signal(&condition->native));
}

void condition_broadcast(struct condition *condition)
{
    must_succeed(pthread_cond_broadcast(&condition->native));
}

void condition_wait(struct condition *condition, struct mutex *mutex)
{
    assert(mutex_is_held(mutex));
    holder_set(mutex, NULL);
    must_succeed(pthread_cond_wait(&condition->native, &mutex->native));
    holder_set(mutex, &self);
}

static struct timespec time_of(int64_t monotonic_ms)
{
    return (struct timespec){.tv_sec = monotonic_ms / 1000,
                             .tv_nsec = (monotonic_ms % 1000) * 1000000};
}

bool condition_wait_until(struct condition *condition, struct mutex *mutex, int64_t deadline_ms)
{
    struct timespec until = time_of(deadline_ms);
    int result;

    assert(mutex_is_held(mutex));
    holder_set(mutex, NULL);
    result = pthread_cond_timedwait(&condition->native, &mutex->native, &until);
    holder_set(mutex, &self);
    assert(result == 0 || result == ETIMEDOUT);
    return result == 0;
}

/* A futex: sleeping compares the word again under the kernel's own lock, so a ring between the look
 * and the sleep is not missed. */
uint32_t thread_bell_note(struct thread_bell *bell)
{
    return atomic_load(&bell->rung);
}

void thread_bell_ring(struct thread_bell *bell, bool all)
{
    atomic_fetch_add(&bell->rung, 1);
    (void)syscall(SYS_futex, &bell->rung, FUTEX_WAKE_PRIVATE, all ? INT_MAX : 1);
}

bool thread_bell_sleep(struct thread_bell *bell, uint32_t noted, int64_t deadline_ms)
{
    struct timespec until = time_of(deadline_ms);

    return syscall(SYS_futex, &bell->rung, FUTEX_WAIT_BITSET_PRIVATE, noted, &until, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

struct start {
    void (*run)(void *context);
    void *context;
};

static void *thread_main(void *argument)
{
    struct start start = *(struct start *)argument;

    memory_free(argument);
    start.run(start.context);
    return NULL;
}

void thread_start(struct thread *thread, const char *name, void (*run)(void *context),
                  void *context)
{
    struct start *start = MEMORY_NEW(struct start);
    sigset_t all, before;

    *start = (struct start){.run = run, .context = context};
    sigfillset(&all);
    must_succeed(pthread_sigmask(SIG_SETMASK, &all, &before));
    must_succeed(pthread_create(&thread->native, NULL, thread_main, start));
    must_succeed(pthread_sigmask(SIG_SETMASK, &before, NULL));
    pthread_setname_np(thread->native, name);
}

void thread_join(struct thread *thread)
{
    must_succeed(pthread_join(thread->native, NULL));
}

/* Niceness alone is not enough: a thread that runs is left alone until its slice ends, some
 * milliseconds, unless whoever wakes has a shorter one. Short slices alone are not either: a thread
 * that has had its share meanwhile waits for others to have theirs, whatever its slice. */
enum {
    HASTY_SLICE_NS = 100 * 1000, /* the least that the kernel takes */
    RESET_ON_FORK = 1,
};

/* What sched_setattr takes; its header cannot be included beside the C library's. */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;                           /* of real-time policies */
    uint64_t runtime_ns, deadline_ns, period_ns; /* runtime: the slice */
};

static bool schedule_as(const struct scheduling *attributes)
{
    return syscall(SYS_sched_setattr, 0, attributes, 0) == 0;
}

static bool schedule(int nice)
{
    struct scheduling attributes = {
        .size = sizeof attributes,
        .policy = SCHED_OTHER,
        .flags = RESET_ON_FORK,
        .nice = nice,
        .runtime_ns = HASTY_SLICE_NS,
    };

    return schedule_as(&attributes);
}

bool thread_hasten(int nice, struct error *err)
{
    if (sched_getscheduler(0) != SCHED_OTHER)
        return error_set(err, ERROR_SYSTEM, "it was started with another scheduling policy");
    if (schedule(nice))
        return true;
    error_set_errno(err, ERROR_SYSTEM, "the system permits no niceness of %d", nice);
    (void)schedule(getpriority(PRIO_PROCESS, 0));
    return false;
}

/* The lowest niceness still gets some of a processor that is always busy: what it does gets done in
 * the end. Anybody may be nicer. */
void thread_recede(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
}

bool thread_go_first(bool first, int nice)
{
    struct scheduling attributes = {
        .size = sizeof attributes,
        .policy = SCHED_RR,
        .flags = RESET_ON_FORK,
        .priority = 1,
    };

    return first ? schedule_as(&attributes) : schedule(nice);
}
