/* Pauses from within: the list and its notes (pauses.c), whom they refuse (pauses_check.c), and
 * what is still under way (pauses_drain.c). */
#pragma once

#include "base/thread.h"
#include "maintain/pauses.h"
#include "partition/strategy.h"

enum { PAUSES_CELLS = 16 };

/* Requests that began and ended, counted apart from each other: by a processor of many, and in
 * turns, see pauses_drain.c. */
struct pauses_cell {
    atomic_uint_least64_t began[2], ended[2];
    char apart[32]; /* from the next processor's */
};

/* The keys of a pause as routing keys of its container, made when first asked for. */
struct pause_keys {
    struct definition *definition; /* they were made by; referenced; NULL: not yet */
    struct arena *arena;           /* of the ranges */
    struct partition_range *ranges;
    size_t count;
    bool all; /* a key is none of the container's any more: all of it is paused */
};

struct pauses {
    struct item_holds
        holds; /* its count is for those who only want to know whether there are any */
    struct catalogue *catalogue;
    const struct clock *clock;
    struct mutex lock; /* of what follows; not held while something is written */
    struct pause list[PAUSES_MAX];
    struct pause_keys keys[PAUSES_MAX]; /* of those */
    size_t count;
    struct node_table *nodes; /* names and regions as of nodes_ms; NULL: not looked at yet */
    int64_t nodes_ms;         /* monotonic */
    struct mutex changing;    /* one change at a time; taken before the other */

    struct mutex draining; /* one at a time */
    atomic_uint turn;
    struct pauses_cell cells[PAUSES_CELLS];
};

void pause_keys_done(struct pause_keys *keys);

/* Reads its keys by a definition; ranges in the arena. ERROR_BAD_REQUEST. */
NODISCARD bool pause_keys_read(const struct pause *pause,
                               const struct partition_definition *definition, struct arena *arena,
                               struct partition_range **ret_ranges, size_t *ret_count,
                               struct error *err);

/* What holds.admits is. */
bool pauses_admit(struct item_holds *holds, const struct item_hold_question *question,
                  struct error *err);
