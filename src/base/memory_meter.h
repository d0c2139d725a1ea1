/* Memory meter: how many bytes are held on somebody's behalf, and how many may be.
 *
 * A meter may have a parent, whose bytes its own are part of: an account of the server. Whoever is
 * about to hold much asks, and is refused at the maximum of either; whoever already holds the bytes
 * tells, whatever the maximum. Any thread; counts only, no memory is given out here. */
#pragma once

#include "base/attrs.h"

#include <stdatomic.h>

struct memory_meter {
    struct memory_meter *parent; /* NULL: none */
    size_t max;
    atomic_size_t used;
    atomic_size_t peak; /* the most that was held at one time */
};

void memory_meter_init(struct memory_meter *meter, struct memory_meter *parent, size_t max);

/* Holds `now` bytes where `before` were held. False, and nothing changes: that would be more than
 * there may be; less is always taken. meter NULL: true. */
NODISCARD bool memory_meter_change(struct memory_meter *meter, size_t before, size_t now);

/* The same without asking. meter NULL is fine. */
void memory_meter_set(struct memory_meter *meter, size_t before, size_t now);

/* Is as much held as may be, here or at a parent? */
bool memory_meter_is_full(const struct memory_meter *meter);

static inline size_t memory_meter_used(const struct memory_meter *meter)
{
    return atomic_load_explicit(&meter->used, memory_order_relaxed);
}
