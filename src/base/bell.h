/* Bell: wakes threads that have nothing to do until something happens.
 *
 * Keepers (caretaker, migrator, balancer) look around in rounds. While things happen there is one
 * round a pause; when nothing has happened since a round began, and it found nothing to do, the
 * next one waits for the bell, however long that takes, up to a bound for what rings no bell.
 *
 *     sleeper_listen(&sleeper);              from here on a ring is noticed
 *     ... the round ...
 *     sleeper_sleep(&sleeper, until, until_idle)
 *
 * Who rings pays one load while nobody listens. */
#pragma once

#include "base/thread.h"

#include <stdint.h>

struct bell; /* opaque, owned; outlives its sleepers and those who ring */

struct bell *bell_new(void);
void bell_free(struct bell *bell); /* NULL is fine */
CLEANUP_FN(struct bell *, bell_free)

/* Something has happened. From any thread; NULL: there is no bell. */
void bell_ring(struct bell *bell);

/* A thread that sleeps by a bell, or by none; within its owner. */
struct sleeper {
    struct bell *bell;    /* borrowed; NULL: it is never idle */
    struct sleeper *next; /* the bell's, as the next */
    bool listening;
    struct mutex lock; /* taken after the bell's */
    struct condition wake;
    bool stopping, woken, rung; /* under lock */
};

void sleeper_init(struct sleeper *sleeper, struct bell *bell);
void sleeper_done(struct sleeper *sleeper);

/* Rings from now on count for the next sleep. */
void sleeper_listen(struct sleeper *sleeper);

/* Sleeps for pause_ms if the bell has rung since sleeper_listen, else until a pause after it rings,
 * or until until_idle_ms, of the monotonic clock, without a ring. sleeper_wake ends it. False: it
 * was stopped. */
bool sleeper_sleep(struct sleeper *sleeper, int64_t pause_ms, int64_t until_idle_ms);

/* There is something to do at once. */
void sleeper_wake(struct sleeper *sleeper);
void sleeper_stop(struct sleeper *sleeper);
