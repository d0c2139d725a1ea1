/* One queue under one lock. Work that needs a worker takes longer than the lock by orders of
 * magnitude, so nothing cleverer pays.
 *
 * A thread occupies a slot. When it ends for want of work it leaves the slot marked as ended, and
 * whoever starts the next thread there joins it first, which does not wait. */
#include "net/workers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

enum slot_state { SLOT_EMPTY, SLOT_RUNNING, SLOT_ENDED };

struct slot {
    struct net_workers *workers;
    enum slot_state state; /* under the lock of workers */
    struct thread thread;
};

struct net_workers {
    struct net_workers_settings settings;
    struct mutex lock; /* for everything below */
    struct condition work_came;
    struct net_work *first, *last;
    bool stopping;
    size_t idle; /* threads waiting for work_came */
    struct net_workers_metrics metrics;
    struct slot slots[]; /* settings.threads_max */
};

static void worker_run(void *context);
static void worker_start(struct net_workers *workers);
static struct net_work *work_take(struct net_workers *workers);
static void work_finish(struct net_work *work);

struct net_workers_settings net_workers_settings_default(void)
{
    return (struct net_workers_settings){
        .threads_max = 32,
        .queue_max = 4096,
        .idle_ms = 10 * 1000,
    };
}

struct net_workers *net_workers_new(const struct net_workers_settings *settings)
{
    struct net_workers *workers = memory_alloc_zero(
        sizeof *workers + memory_array_size(settings->threads_max, sizeof(struct slot)));

    assert(settings->threads_max > 0);
    workers->settings = *settings;
    mutex_init(&workers->lock);
    condition_init(&workers->work_came);
    for (size_t i = 0; i < settings->threads_max; i++)
        workers->slots[i].workers = workers;
    return workers;
}

/* Once the workers are stopping, no slot comes into use any more. */
static bool slot_is_used(struct slot *slot)
{
    bool used = false;

    WITH_LOCK (&slot->workers->lock) {
        used = slot->state != SLOT_EMPTY;
    }
    return used;
}

void net_workers_free(struct net_workers *workers)
{
    if (!workers)
        return;
    WITH_LOCK (&workers->lock) {
        workers->stopping = true;
        condition_broadcast(&workers->work_came);
    }
    for (size_t i = 0; i < workers->settings.threads_max; i++)
        if (slot_is_used(&workers->slots[i]))
            thread_join(&workers->slots[i].thread);
    assert(!workers->first);
    condition_done(&workers->work_came);
    mutex_done(&workers->lock);
    memory_free(workers);
}

bool net_workers_submit(struct net_workers *workers, struct net_work *work, struct error *err)
{
    assert(!work->done || work->loop);
    WITH_LOCK (&workers->lock) {
        if (workers->stopping) {
            workers->metrics.refused++;
            return error_set(err, ERROR_SHUTTING_DOWN, "the server is stopping");
        }
        if (workers->metrics.queued >= workers->settings.queue_max) {
            workers->metrics.refused++;
            return error_set(err, ERROR_BUSY, "%zu requests already wait for a worker",
                             workers->settings.queue_max);
        }
        work->next = NULL;
        if (workers->last)
            workers->last->next = work;
        else
            workers->first = work;
        workers->last = work;
        workers->metrics.queued++;
        workers->metrics.submitted++;
        if (workers->idle < workers->metrics.queued &&
            workers->metrics.threads < workers->settings.threads_max)
            worker_start(workers);
        else
            condition_signal(&workers->work_came);
    }
    return true;
}

/* Under the lock: an ended thread holds it no more, so joining one cannot wait for us. */
static void worker_start(struct net_workers *workers)
{
    for (size_t i = 0; i < workers->settings.threads_max; i++) {
        struct slot *slot = &workers->slots[i];

        if (slot->state == SLOT_RUNNING)
            continue;
        if (slot->state == SLOT_ENDED)
            thread_join(&slot->thread);
        slot->state = SLOT_RUNNING;
        workers->metrics.threads++;
        thread_start(&slot->thread, "worker", worker_run, slot);
        return;
    }
}

static void worker_run(void *context)
{
    struct slot *slot = context;
    struct net_workers *workers = slot->workers;

    mutex_lock(&workers->lock);
    for (;;) {
        struct net_work *work = work_take(workers);

        if (!work)
            break;
        workers->metrics.running++;
        mutex_unlock(&workers->lock);
        work_finish(work);
        mutex_lock(&workers->lock);
        workers->metrics.running--;
    }
    slot->state = SLOT_ENDED;
    workers->metrics.threads--;
    mutex_unlock(&workers->lock);
}

/* The next piece of work; NULL after idle_ms without any, or at the end. Under the lock. */
static struct net_work *work_take(struct net_workers *workers)
{
    int64_t until_ms = clock_monotonic_ms() + workers->settings.idle_ms;
    struct net_work *work;

    while (!workers->first) {
        bool in_time;

        if (workers->stopping)
            return NULL;
        workers->idle++;
        in_time = condition_wait_until(&workers->work_came, &workers->lock, until_ms);
        workers->idle--;
        if (!in_time && !workers->first)
            return NULL;
    }
    work = workers->first;
    workers->first = work->next;
    if (!workers->first)
        workers->last = NULL;
    workers->metrics.queued--;
    return work;
}

static void done_on_loop(struct net_task *task, struct net_loop *loop)
{
    struct net_work *work = CONTAINER_OF(task, struct net_work, task);

    work->done(work, loop);
}

static void work_finish(struct net_work *work)
{
    /* Without a done, run may have freed the work. */
    bool has_done = work->done != NULL;

    work->run(work);
    if (has_done) {
        work->task.run = done_on_loop;
        net_loop_post(work->loop, &work->task);
    }
}

void net_workers_metrics(struct net_workers *workers, struct net_workers_metrics *ret_metrics)
{
    WITH_LOCK (&workers->lock) {
        *ret_metrics = workers->metrics;
    }
}
