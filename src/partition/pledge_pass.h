/* Windows (pledge.h) for code that runs both where it may wait and on event loops, where it must
 * not. */
#pragma once

#include "partition/pledge.h"

/* pledges_await, but who may not wait is told *ret_cold instead. One load while none is open. */
NODISCARD static inline bool pledges_pass(struct pledges *pledges, uint64_t partitions,
                                          enum pledge_moment moment, bool may_wait, bool *ret_cold,
                                          struct error *err)
{
    bool open = pledges_windows(pledges) & partitions;

    *ret_cold = open && !may_wait;
    return !open || !may_wait || pledges_await(pledges, partitions, moment, err);
}
