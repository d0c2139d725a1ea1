/* Transform: remaking the index entries of stored items after the policy, or the default time to
 * live, has changed. Items stay the version they are: same etag, nothing in the feed.
 *
 * It goes through a physical partition in key order, in slices, each item in a transaction of its
 * own, many of them on their way at once; an item written meanwhile has its new entries already.
 * Where it stands is the key of the last item looked at, so that it can go on after a restart. */
#pragma once

#include "item/scope.h"

struct transform_step {
    struct slice position; /* of the last item looked at, in the arena; empty: none yet */
    size_t looked_at, remade;
    bool finished;

    /* An item that cannot be in an index that is being built, and why; it was left as it is. */
    const struct index_definition *refused;
    struct error refusal;
};

/* Looks at up to max items behind position. scope->policies_before are what older items were
 * indexed with. */
NODISCARD bool transform_run(const struct item_scope *scope, struct slice position, size_t max,
                             struct arena *arena, struct transform_step *ret_step,
                             struct error *err);

/* How far a position is in the span of routing keys [min, max), from 0 to 100: keys are spread
 * evenly by hashing. */
unsigned transform_percent(struct slice position, struct slice min, struct slice max);
