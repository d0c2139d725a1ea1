#include "front/fan_out.h"

#include "base/memory.h"
#include "base/thread.h"
#include "net/workers.h"

#include <stdatomic.h>

struct fan;

/* A helping hand; it may come when all is done and the caller is gone. */
struct hand {
    struct net_work work;
    struct fan *fan;
};

struct fan {
    atomic_size_t refs; /* the caller and every hand that was submitted */
    void (*task)(void *context, size_t number);
    void *context; /* borrowed: not touched once all tasks are taken */
    size_t count;
    atomic_size_t next;
    struct mutex lock;
    size_t finished; /* below: under lock */
    struct condition all_finished;
    struct hand hands[];
};

static void fan_unref(struct fan *fan)
{
    if (atomic_fetch_sub(&fan->refs, 1) != 1)
        return;
    condition_done(&fan->all_finished);
    mutex_done(&fan->lock);
    memory_free(fan);
}

static void tasks_run(struct fan *fan)
{
    size_t number;

    while ((number = atomic_fetch_add(&fan->next, 1)) < fan->count) {
        fan->task(fan->context, number);
        WITH_LOCK (&fan->lock) {
            if (++fan->finished == fan->count)
                condition_signal(&fan->all_finished);
        }
    }
}

static void hand_run(struct net_work *work)
{
    struct hand *hand = CONTAINER_OF(work, struct hand, work);
    struct fan *fan = hand->fan;

    tasks_run(fan);
    fan_unref(fan);
}

static struct fan *fan_new(size_t count, void (*task)(void *context, size_t number), void *context)
{
    struct fan *fan = memory_alloc_zero(sizeof *fan + count * sizeof fan->hands[0]);

    fan->refs = 1;
    fan->task = task;
    fan->context = context;
    fan->count = count;
    mutex_init(&fan->lock);
    condition_init(&fan->all_finished);
    return fan;
}

static void run(void *self, size_t count, void (*task)(void *context, size_t number), void *context)
{
    const struct front_helpers *helpers = self;
    struct fan *fan = fan_new(count, task, context);
    struct error refused;

    /* Where a hand is refused, there is one less. */
    for (size_t i = 0; i + 1 < count; i++) {
        struct hand *hand = &fan->hands[i];

        *hand = (struct hand){
            .work = {.run = hand_run, .owner = helpers->owner, .part = helpers->part}, .fan = fan};
        atomic_fetch_add(&fan->refs, 1);
        if (!net_workers_submit(helpers->workers, &hand->work, &refused)) {
            atomic_fetch_sub(&fan->refs, 1);
            break;
        }
    }
    tasks_run(fan);
    net_workers_rest(helpers->workers); /* the hands it waits for have the same owner */
    WITH_LOCK (&fan->lock) {
        while (fan->finished < fan->count)
            condition_wait(&fan->all_finished, &fan->lock);
    }
    net_workers_rested(helpers->workers);
    fan_unref(fan);
}

struct query_executor front_fan_out(const struct front_helpers *helpers)
{
    return (struct query_executor){.run = run, .self = (void *)helpers, .width = helpers->width};
}

static void breath_take(void *workers)
{
    net_workers_breathe(workers);
}

struct query_breath front_breath(struct net_workers *workers)
{
    return (struct query_breath){.take = breath_take, .self = workers};
}
