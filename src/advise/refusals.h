/* Refusals: operations of one container that were refused for lack of throughput and may come
 * again, so that a second attempt is known from a second operation.
 *
 * An attempt is told by its ticket, and by not coming before the time it was told to: who comes
 * earlier is somebody else who wants the same. Each refusal is taken by one attempt, so that even
 * where two clients are confused their number is right.
 *
 * Bounded: where too many wait, the one that is due first is forgotten, and counts as a new
 * operation when it comes. Not safe for use by several threads at once. */
#pragma once

#include "base/memory.h"

enum {
    REFUSALS_MAX = 16384,    /* kept of one container */
    REFUSALS_LATE_MS = 5000, /* who comes later than this after its time is taken for a new one */
};

struct refusal {
    uint64_t ticket;   /* the same in all attempts of one operation; 0: free */
    uint64_t sequence; /* of its record; 0: it has none */
    int64_t first_ms;  /* when it came first, */
    int64_t due_ms;    /* and may come again */
    uint32_t weight;   /* of its record; 0: it has none */
    uint32_t count;    /* answers 429 so far */
};

struct refusals; /* opaque, owned */

struct refusals *refusals_new(void);
void refusals_free(struct refusals *refusals); /* NULL is fine */

/* Remembers one; returns where, for refusals_set_sequence. */
size_t refusals_add(struct refusals *refusals, const struct refusal *refusal, int64_t now_ms);

/* The record of the refusal at a place, if it is still there. */
void refusals_set_sequence(struct refusals *refusals, size_t place, uint64_t ticket,
                           uint64_t sequence);

/* Takes out the one this attempt is a repetition of, if there is one. */
bool refusals_take(struct refusals *refusals, uint64_t ticket, int64_t now_ms,
                   struct refusal *ret_refusal);
