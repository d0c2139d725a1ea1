#include "base/thread.h"

#include "base/memory.h"

#include <errno.h>
#include <signal.h>

static void must_succeed(int result)
{
    assert(result == 0);
}

void mutex_init(struct mutex *mutex)
{
    must_succeed(pthread_mutex_init(&mutex->native, NULL));
}

void mutex_done(struct mutex *mutex)
{
    must_succeed(pthread_mutex_destroy(&mutex->native));
}

void mutex_lock(struct mutex *mutex)
{
    must_succeed(pthread_mutex_lock(&mutex->native));
}

void mutex_unlock(struct mutex *mutex)
{
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
    must_succeed(pthread_cond_wait(&condition->native, &mutex->native));
}

bool condition_wait_until(struct condition *condition, struct mutex *mutex, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000,
                             .tv_nsec = (deadline_ms % 1000) * 1000000};
    int result = pthread_cond_timedwait(&condition->native, &mutex->native, &until);

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
