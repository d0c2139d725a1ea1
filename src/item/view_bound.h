/* Bound: what a reader on an event loop may still do. Everything it reads is in memory, and it
 * takes so many steps at most; where either does not hold, reading fails with ERROR_COLD, nothing
 * counts, and the same is done again by a worker. */
#pragma once

#include "base/error.h"

struct view_bound {
    uint32_t steps; /* entries walked; an item that is loaded is worth several */
    uint32_t bytes; /* of items */
};

enum { VIEW_ITEM_STEPS = 8, VIEW_WALK_STEPS = 16 }; /* of a walk: to begin it */

NODISCARD static inline bool view_bound_cold(struct error *err)
{
    return error_set(err, ERROR_COLD, "this is for a worker");
}

NODISCARD static inline bool view_bound_take(struct view_bound *bound, size_t steps, size_t bytes,
                                             struct error *err)
{
    if (steps > bound->steps || bytes > bound->bytes)
        return view_bound_cold(err);
    bound->steps -= (uint32_t)steps;
    bound->bytes -= (uint32_t)bytes;
    return true;
}
