/* The list is walked as a whole whenever something was made visible: a look at two numbers for each
 * of those who wait, and none where nobody does. Committers only ring. */
#include "front/mongo/stream/waits.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

struct mongo_waits {
    struct commit_clock *times;
    atomic_size_t count;

    struct mutex lock; /* of all below */
    struct condition wake;
    struct mongo_wait *first;
    bool rung; /* there is something to look at */
    bool stopped, ending;
    struct thread thread;
};

static void waits_main(void *context);

/* On committers' threads. */
static void ring(void *context)
{
    struct mongo_waits *waits = context;

    if (!atomic_load(&waits->count))
        return;
    WITH_LOCK (&waits->lock) {
        waits->rung = true;
        condition_signal(&waits->wake);
    }
}

struct mongo_waits *mongo_waits_new(struct commit_clock *times)
{
    struct mongo_waits *waits = MEMORY_NEW(struct mongo_waits);

    waits->times = times;
    mutex_init(&waits->lock);
    condition_init(&waits->wake);
    thread_start(&waits->thread, "mongo-waits", waits_main, waits);
    commit_clock_listen(times, ring, waits);
    return waits;
}

void mongo_waits_free(struct mongo_waits *waits)
{
    if (!waits)
        return;
    commit_clock_listen(waits->times, NULL, NULL);
    WITH_LOCK (&waits->lock) {
        assert(!waits->first);
        waits->ending = true;
        condition_signal(&waits->wake);
    }
    thread_join(&waits->thread);
    condition_done(&waits->wake);
    mutex_done(&waits->lock);
    memory_free(waits);
}

/* --- Looking --------------------------------------------------------------------------------- */

static bool is_due(const struct mongo_waits *waits, const struct mongo_wait *wait, uint64_t settled,
                   int64_t now_ms)
{
    return waits->stopped || wait->woken || now_ms >= wait->until_ms ||
           (wait->cancelled && atomic_load(wait->cancelled)) ||
           (settled > wait->after && commit_clock_noted(waits->times, wait->hash) > wait->after);
}

/* Takes those that are due off the list. Says when the next is, if nothing else happens. */
static struct mongo_wait *due_take(struct mongo_waits *waits, int64_t *ret_next_ms)
{
    uint64_t settled = commit_clock_settled(waits->times);
    int64_t now_ms = clock_monotonic_ms();
    struct mongo_wait *due = NULL, **place = &waits->first;

    *ret_next_ms = INT64_MAX;
    while (*place) {
        struct mongo_wait *wait = *place;

        if (is_due(waits, wait, settled, now_ms)) {
            *place = wait->next;
            wait->next = due;
            due = wait;
            atomic_fetch_sub(&waits->count, 1);
        } else {
            *ret_next_ms = MIN(*ret_next_ms, wait->until_ms);
            place = &wait->next;
        }
    }
    return due;
}

/* A call may be gone as soon as it moves, and its wait with it. */
static void due_run(struct mongo_wait *due)
{
    while (due) {
        struct mongo_wait *next = due->next;
        atomic_uint *under_way = due->call->under_way;

        front_call_move(due->call);
        atomic_fetch_sub(under_way, 1);
        due = next;
    }
}

static void waits_main(void *context)
{
    struct mongo_waits *waits = context;

    mutex_lock(&waits->lock);
    while (!waits->ending) {
        struct mongo_wait *due;
        int64_t next_ms;

        waits->rung = false;
        due = due_take(waits, &next_ms);
        if (due) {
            mutex_unlock(&waits->lock);
            due_run(due);
            mutex_lock(&waits->lock);
        } else if (next_ms == INT64_MAX) {
            while (!waits->rung && !waits->ending)
                condition_wait(&waits->wake, &waits->lock);
        } else {
            while (!waits->rung && !waits->ending &&
                   condition_wait_until(&waits->wake, &waits->lock, next_ms))
                ;
        }
    }
    mutex_unlock(&waits->lock);
}

/* --- From outside ---------------------------------------------------------------------------- */

void mongo_waits_add(struct mongo_waits *waits, struct mongo_wait *wait, struct front_call *call)
{
    atomic_fetch_add(call->under_way, 1);
    wait->call = call;
    wait->woken = false;
    /* counted before it looks whether it is due: what is made visible after that look rings */
    atomic_fetch_add(&waits->count, 1);
    WITH_LOCK (&waits->lock) {
        wait->next = waits->first;
        waits->first = wait;
        waits->rung = true;
        condition_signal(&waits->wake);
    }
}

void mongo_waits_kill(struct mongo_waits *waits, uint64_t cursor)
{
    WITH_LOCK (&waits->lock) {
        for (struct mongo_wait *wait = waits->first; wait; wait = wait->next)
            if (wait->cursor == cursor)
                wait->woken = waits->rung = true;
        if (waits->rung)
            condition_signal(&waits->wake);
    }
}

void mongo_waits_look_cursors(struct mongo_waits *waits, struct front_cursors *cursors)
{
    WITH_LOCK (&waits->lock) {
        for (struct mongo_wait *wait = waits->first; wait; wait = wait->next)
            if (!front_cursors_is_open(cursors, wait->cursor))
                wait->woken = waits->rung = true;
        if (waits->rung)
            condition_signal(&waits->wake);
    }
}

void mongo_waits_look(struct mongo_waits *waits)
{
    ring(waits);
}

void mongo_waits_stop(struct mongo_waits *waits)
{
    WITH_LOCK (&waits->lock) {
        waits->stopped = waits->rung = true;
        condition_signal(&waits->wake);
    }
}

bool mongo_waits_are_over(struct mongo_waits *waits)
{
    bool over = false;

    WITH_LOCK (&waits->lock)
        over = waits->stopped;
    return over;
}

size_t mongo_waits_count(struct mongo_waits *waits)
{
    return atomic_load(&waits->count);
}
