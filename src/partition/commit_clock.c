/* Floors: a member writes down what the time was before its first tick, and clears it when its
 * group is visible. Whoever asks what is settled reads the time first and the floors then: a member
 * that has no floor by then gets its ticks above that time. */
#include "partition/commit_clock.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

enum { MEMBERS_MAX = 64, SLOTS = 4096 };

struct commit_clock {
    const struct clock *clock;
    uint64_t started;
    atomic_uint_fast64_t last;                /* given, or passed over */
    atomic_uint_fast64_t floors[MEMBERS_MAX]; /* 0: not between begin and end */
    atomic_bool members[MEMBERS_MAX];
    atomic_uint_fast64_t noted[SLOTS];

    atomic_bool listening;
    struct mutex lock; /* of the two below */
    void (*settled)(void *context);
    void *context;
};

struct commit_clock *commit_clock_new(const struct clock *source)
{
    struct commit_clock *clock = MEMORY_NEW(struct commit_clock);

    clock->clock = source ? source : &clock_system;
    mutex_init(&clock->lock);
    clock->started = commit_clock_now(clock);
    return clock;
}

void commit_clock_free(struct commit_clock *clock)
{
    if (!clock)
        return;
    for (size_t i = 0; i < MEMBERS_MAX; i++)
        assert(!atomic_load(&clock->members[i]));
    mutex_done(&clock->lock);
    memory_free(clock);
}

static uint64_t wall(const struct commit_clock *clock)
{
    return (uint64_t)(MAX(clock_read_wall_ms(clock->clock), (int64_t)1000) / 1000) << 32;
}

/* At least so much; the greater one of both. */
static uint64_t raise_to(atomic_uint_fast64_t *value, uint64_t least)
{
    uint_fast64_t now = atomic_load(value);

    while (now < least && !atomic_compare_exchange_weak(value, &now, least))
        ;
    return MAX((uint64_t)now, least);
}

uint64_t commit_clock_now(struct commit_clock *clock)
{
    return raise_to(&clock->last, wall(clock));
}

void commit_clock_advance(struct commit_clock *clock, uint64_t time)
{
    (void)raise_to(&clock->last, time);
}

uint64_t commit_clock_started(const struct commit_clock *clock)
{
    return clock->started;
}

uint64_t commit_clock_settled(struct commit_clock *clock)
{
    uint64_t settled = commit_clock_now(clock);

    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        uint64_t floor = atomic_load(&clock->floors[i]);

        if (floor)
            settled = MIN(settled, floor);
    }
    return settled;
}

void commit_clock_note(struct commit_clock *clock, uint64_t hash, uint64_t time)
{
    (void)raise_to(&clock->noted[hash % SLOTS], time);
}

uint64_t commit_clock_noted(const struct commit_clock *clock, uint64_t hash)
{
    return atomic_load(&clock->noted[hash % SLOTS]);
}

void commit_clock_listen(struct commit_clock *clock, void (*settled)(void *context), void *context)
{
    WITH_LOCK (&clock->lock) {
        clock->settled = settled;
        clock->context = context;
        atomic_store(&clock->listening, settled != NULL);
    }
}

/* --- Members --------------------------------------------------------------------------------- */

unsigned commit_clock_join(struct commit_clock *clock)
{
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        bool taken = false;

        if (atomic_compare_exchange_strong(&clock->members[i], &taken, true))
            return i;
    }
    assert(!"as many committers as a cluster has nodes");
    abort();
}

void commit_clock_leave(struct commit_clock *clock, unsigned member)
{
    assert(atomic_load(&clock->members[member]));
    atomic_store(&clock->floors[member], 0);
    atomic_store(&clock->members[member], false);
}

void commit_clock_begin(struct commit_clock *clock, unsigned member)
{
    assert(atomic_load(&clock->members[member]) && !atomic_load(&clock->floors[member]));
    atomic_store(&clock->floors[member], commit_clock_now(clock));
}

uint64_t commit_clock_tick(struct commit_clock *clock)
{
    (void)commit_clock_now(clock);
    return atomic_fetch_add(&clock->last, 1) + 1;
}

void commit_clock_end(struct commit_clock *clock, unsigned member)
{
    assert(atomic_load(&clock->floors[member]));
    atomic_store(&clock->floors[member], 0);
    commit_clock_look(clock);
}

uint64_t commit_clock_pass(struct commit_clock *clock)
{
    return commit_clock_tick(clock);
}

void commit_clock_look(struct commit_clock *clock)
{
    if (atomic_load(&clock->listening))
        WITH_LOCK (&clock->lock) {
            if (clock->settled)
                clock->settled(clock->context);
        }
}
