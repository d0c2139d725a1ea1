/* Who is waited for, without a lock that requests would share.
 *
 * A request counts itself in one of two turns, the present one, and counts itself out of the same.
 * Whoever waits makes the other one the present turn, and waits until as many have ended in the old
 * one as began: those that begin meanwhile are none of them. A request that read the turn just
 * before it changed and counts itself later than we look has not asked for pauses yet, and will
 * find those that were set before the drain. Ends are summed up before begins, so that one that
 * begins and ends between the two makes the sums differ and never agree too soon. */
#include "maintain/pauses_private.h"

#include <sched.h>
#include <time.h>

enum { LOOK_NS = 2000000 };

uint8_t pauses_enter(struct pauses *pauses)
{
    unsigned turn, at;

    if (!pauses)
        return 0;
    turn = atomic_load(&pauses->turn) & 1;
    at = (unsigned)sched_getcpu() % PAUSES_CELLS;
    atomic_fetch_add(&pauses->cells[at].began[turn], 1);
    return (uint8_t)(turn + 1);
}

void pauses_leave(struct pauses *pauses, uint8_t entered)
{
    if (pauses && entered)
        atomic_fetch_add(&pauses->cells[(unsigned)sched_getcpu() % PAUSES_CELLS].ended[entered - 1],
                         1);
}

static uint64_t under_way(struct pauses *pauses, unsigned turn)
{
    uint64_t began = 0, ended = 0;

    for (size_t i = 0; i < PAUSES_CELLS; i++)
        ended += atomic_load(&pauses->cells[i].ended[turn]);
    for (size_t i = 0; i < PAUSES_CELLS; i++)
        began += atomic_load(&pauses->cells[i].began[turn]);
    return began - ended;
}

/* Waits for one turn that is no longer the present one. */
static bool turn_drain(struct pauses *pauses, unsigned turn, int64_t until_ms,
                       const atomic_bool *cancelled)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};

    while (under_way(pauses, turn)) {
        if (clock_monotonic_ms() >= until_ms || (cancelled && atomic_load(cancelled)))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

bool pauses_drain(struct pauses *pauses, int64_t until_ms, const atomic_bool *cancelled,
                  uint64_t *ret_under_way)
{
    bool drained = false;

    WITH_LOCK (&pauses->draining) {
        unsigned now = atomic_load(&pauses->turn) & 1;

        /* first those that a drain before, which was given up, has left behind */
        if (turn_drain(pauses, 1 - now, until_ms, cancelled)) {
            atomic_store(&pauses->turn, 1 - now);
            drained = turn_drain(pauses, now, until_ms, cancelled);
        }
        *ret_under_way = drained ? 0 : under_way(pauses, 0) + under_way(pauses, 1);
    }
    return drained;
}
