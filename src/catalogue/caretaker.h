/* Caretaker: what must be done to stored items without anybody asking: removing the expired,
 * trimming feeds and the history to their retention, remaking index entries behind a changed
 * policy. One thread, in small slices, so that requests hardly notice. */
#pragma once

#include "catalogue/catalogue.h"

struct caretaker; /* opaque, owned */

struct caretaker_options {
    struct catalogue *catalogue;   /* borrowed; outlives it */
    const struct clock *clock;     /* borrowed; NULL: the system's */
    struct log *log;               /* borrowed; NULL: silent */
    struct bell *bell;             /* rung by commits; borrowed. NULL: rounds never wait for it */
    int64_t pause_ms;              /* between rounds while things happen; 0: 1000 */
    int64_t records_ms;            /* records of writes are kept so long; 0: for ever */
    size_t slice;                  /* items or records in one go; 0: 500 */
    struct history_limits history; /* retention_ms 0: nothing is trimmed of it */
    int64_t followed_ms;           /* the same while there are views, if that is longer */
    bool by_hand;                  /* no thread: the test calls caretaker_round */
};

struct caretaker *caretaker_new(const struct caretaker_options *options);
void caretaker_free(struct caretaker *caretaker); /* NULL is fine */
CLEANUP_FN(struct caretaker *, caretaker_free)

/* How far the remaking of a container's index entries is, from 0 to 100; 100 when nothing is to be
 * remade. */
unsigned caretaker_progress(struct caretaker *caretaker, struct container *container);

/* Somebody waits for what it has to do: the next round begins at once. */
void caretaker_wake(struct caretaker *caretaker);

/* One round over all containers. *ret_done: how many items and records were removed or remade. */
NODISCARD bool caretaker_round(struct caretaker *caretaker, size_t *ret_done, struct error *err);
