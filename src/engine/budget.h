/* Budget: memory that the stores of one process share.
 *
 * Every store that is open has an equal part of it for its caches and write buffers. When one opens
 * or closes, the others are told their new part at once. */
#pragma once

#include "base/attrs.h"

struct engine_budget; /* opaque, owned; outlives the stores that share it */

struct engine_budget *engine_budget_new(size_t bytes);
void engine_budget_free(struct engine_budget *budget); /* NULL is fine */

/* One store, in its own memory. */
struct engine_budget_share {
    /* The part is another now. Called by whoever opens or closes a store, one at a time: must not
     * join or leave. */
    void (*resize)(struct engine_budget_share *share, size_t bytes);
    size_t bytes; /* the budget's: its part */
    bool is_ready;
    struct engine_budget_share *next;
};

/* Returns the part of the one who comes. The others are told theirs; it is from when it is ready
 * on: at once if the part is another by then. */
size_t engine_budget_join(struct engine_budget *budget, struct engine_budget_share *share);
void engine_budget_ready(struct engine_budget *budget, struct engine_budget_share *share,
                         size_t joined_bytes);
void engine_budget_leave(struct engine_budget *budget, struct engine_budget_share *share);
