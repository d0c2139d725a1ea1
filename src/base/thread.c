#include "base/thread.h"

#include "base/memory.h"

#include <errno.h>
#include <signal.h>

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

bool condition_wait_until(struct condition *condition, struct mutex *mutex, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000,
                             .tv_nsec = (deadline_ms % 1000) * 1000000};
    int result;

    assert(mutex_is_held(mutex));
    holder_set(mutex, NULL);
    result = pthread_cond_timedwait(&condition->native, &mutex->native, &until);
    holder_set(mutex, &self);
    assert(result == 0 || result == ETIMEDOUT);
    return result == 0;
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
