/* Waits: calls that wait for something to be written (commit_clock.h), without a thread and without
 * a look at anything meanwhile.
 *
 * A call that found nothing parks (kit/call.h) and is added here; it runs again, from its
 * beginning, when something was noted under its hash and is settled, when its time is up, when its
 * client has gone, when its cursor was killed, or when the server stops. One thread looks after all
 * of them: it sleeps until the earliest end, or until a committer has made something visible. */
#pragma once

#include "front/kit/call.h"
#include "front/kit/cursors.h"
#include "partition/commit_clock.h"

struct mongo_waits; /* opaque, owned */

struct mongo_waits *mongo_waits_new(struct commit_clock *times);
void mongo_waits_free(struct mongo_waits *waits); /* nobody waits; NULL is fine */
CLEANUP_FN(struct mongo_waits *, mongo_waits_free)

/* Kept in what is around the call. */
struct mongo_wait {
    uint64_t hash, after;         /* something noted under it, later than that */
    int64_t until_ms;             /* of clock_monotonic_ms */
    uint64_t cursor;              /* that it reads */
    const atomic_bool *cancelled; /* its client has gone; may be NULL */

    /* Of the list. */
    struct front_call *call;
    struct mongo_wait *next;
    bool woken; /* by hand */
};

/* Takes the call over, which is kept; it may run again before this returns. */
void mongo_waits_add(struct mongo_waits *waits, struct mongo_wait *wait, struct front_call *call);

/* Wakes who reads this cursor; whose cursor is gone; who is cancelled; or everybody, now and from
 * now on. */
void mongo_waits_kill(struct mongo_waits *waits, uint64_t cursor);
void mongo_waits_look_cursors(struct mongo_waits *waits, struct front_cursors *cursors);
void mongo_waits_look(struct mongo_waits *waits);
void mongo_waits_stop(struct mongo_waits *waits);

/* Was it stopped? Then nobody is to wait any more. */
bool mongo_waits_are_over(struct mongo_waits *waits);

/* Waiting now. */
size_t mongo_waits_count(struct mongo_waits *waits);
