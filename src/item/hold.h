/* Holds: what is refused for a time within a container, asked for at every read and write of a key,
 * at every range that is read, and once more where a transaction commits.
 *
 * Who decides is told later (maintain/pauses.h): here is only the question. Spaces of clients'
 * requests carry it; those of migrations, expiry and administration do not. While nothing is held
 * the answer is one load. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <stdatomic.h>

struct item_hold_question {
    void *nodes;           /* of the space: whose container it is */
    uint32_t node;         /* that holds the keys */
    struct slice min, max; /* routing keys: from min, inclusive, to max, exclusive; max data NULL:
                            * one logical partition, whose bytes begin with its routing key */
    bool changes;          /* it is written */
};

struct item_holds {
    atomic_size_t count; /* 0: nothing is */
    /* ERROR_PAUSED, ERROR_WRITES_PAUSED. */
    bool (*admits)(struct item_holds *holds, const struct item_hold_question *question,
                   struct error *err);
};

NODISCARD static inline bool item_holds_admit(struct item_holds *holds,
                                              const struct item_hold_question *question,
                                              struct error *err)
{
    return !holds || !atomic_load_explicit(&holds->count, memory_order_relaxed) ||
           holds->admits(holds, question, err);
}
