/* Plans: compiled queries, kept for the next request that says the same.
 *
 * A plan says what is wanted and nothing of how, so it is a function of the bytes it is kept under:
 * whoever keeps one puts everything into the key that compiling has looked at. What changes in a
 * container changes the key, or does not matter; nothing has to be thrown away for it.
 *
 * One request at a time has a plan, and may change it: there are as many of a key as run at once.
 * The bytes of all have a limit, above which accounts that have most give up what they have not
 * used for longest. Any thread. */
#pragma once

#include "base/arena.h"

struct front_plans; /* opaque, owned */

/* At the beginning of what is kept, in its arena. */
struct front_plan {
    struct arena *arena; /* of this and of all it points to; freed with it */
    /* Of plans.c. */
    uint64_t hash;
    struct slice key;
    size_t bytes;
    struct front_plan_holder *holder;
    struct front_plan *same;          /* in the table */
    struct front_plan *newer, *older; /* of the account */
};

struct front_plans *front_plans_new(size_t bytes_max);
void front_plans_free(struct front_plans *plans); /* NULL is fine */
CLEANUP_FN(struct front_plans *, front_plans_free)

/* A plan of the account's that nobody else has now; the caller's until it is given back, or freed
 * by its arena. NULL: there is none. */
struct front_plan *front_plans_take(struct front_plans *plans, uint64_t account, struct slice key);

/* Keeps it for others, or frees it. The key is copied into its arena if it was not kept before. */
void front_plans_give(struct front_plans *plans, uint64_t account, struct slice key,
                      struct front_plan *plan);

struct front_plans_metrics {
    uint64_t bytes, count; /* now, without those in use */
    uint64_t found, missed;
};

void front_plans_metrics(struct front_plans *plans, struct front_plans_metrics *ret_metrics);
