#include "base/bell.h"

#include "base/clock.h"
#include "base/memory.h"

struct bell {
    atomic_bool heard; /* does somebody listen? */
    struct mutex lock;
    struct sleeper *sleepers; /* under lock */
};

struct bell *bell_new(void)
{
    struct bell *bell = MEMORY_NEW(struct bell);

    mutex_init(&bell->lock);
    return bell;
}

void bell_free(struct bell *bell)
{
    if (!bell)
        return;
    assert(!bell->sleepers);
    mutex_done(&bell->lock);
    memory_free(bell);
}

static void sleeper_rouse(struct sleeper *sleeper)
{
    WITH_LOCK (&sleeper->lock) {
        sleeper->rung = true;
        condition_signal(&sleeper->wake);
    }
}

void bell_ring(struct bell *bell)
{
    if (!bell || !atomic_load(&bell->heard))
        return;
    WITH_LOCK (&bell->lock) {
        atomic_store(&bell->heard, false);
        for (struct sleeper *sleeper = bell->sleepers; sleeper; sleeper = sleeper->next)
            if (sleeper->listening) {
                sleeper->listening = false;
                sleeper_rouse(sleeper);
            }
    }
}

void sleeper_init(struct sleeper *sleeper, struct bell *bell)
{
    *sleeper = (struct sleeper){.bell = bell};
    mutex_init(&sleeper->lock);
    condition_init(&sleeper->wake);
    if (bell)
        WITH_LOCK (&bell->lock) {
            sleeper->next = bell->sleepers;
            bell->sleepers = sleeper;
        }
}

void sleeper_done(struct sleeper *sleeper)
{
    if (sleeper->bell)
        WITH_LOCK (&sleeper->bell->lock) {
            struct sleeper **place = &sleeper->bell->sleepers;

            while (*place != sleeper)
                place = &(*place)->next;
            *place = sleeper->next;
        }
    condition_done(&sleeper->wake);
    mutex_done(&sleeper->lock);
}

void sleeper_listen(struct sleeper *sleeper)
{
    if (!sleeper->bell)
        return;
    WITH_LOCK (&sleeper->bell->lock) {
        WITH_LOCK (&sleeper->lock)
            sleeper->rung = false;
        sleeper->listening = true;
        atomic_store(&sleeper->bell->heard, true);
    }
}

/* Under lock. True: until_ms has passed; false: there is something to do, or it has rung. */
static bool sleep_until(struct sleeper *sleeper, int64_t until_ms, bool by_bell)
{
    while (!sleeper->stopping && !sleeper->woken && !(by_bell && sleeper->rung))
        if (!condition_wait_until(&sleeper->wake, &sleeper->lock, until_ms))
            return true;
    return false;
}

bool sleeper_sleep(struct sleeper *sleeper, int64_t pause_ms, int64_t until_idle_ms)
{
    bool go_on = false;

    WITH_LOCK (&sleeper->lock) {
        if (!sleeper->bell || until_idle_ms <= clock_monotonic_ms() + pause_ms ||
            !sleep_until(sleeper, until_idle_ms, true))
            (void)sleep_until(sleeper, clock_monotonic_ms() + pause_ms, false);
        sleeper->woken = false;
        go_on = !sleeper->stopping;
    }
    return go_on;
}

void sleeper_wake(struct sleeper *sleeper)
{
    WITH_LOCK (&sleeper->lock) {
        sleeper->woken = true;
        condition_signal(&sleeper->wake);
    }
}

void sleeper_stop(struct sleeper *sleeper)
{
    WITH_LOCK (&sleeper->lock) {
        sleeper->stopping = true;
        condition_signal(&sleeper->wake);
    }
}
