/* Bytes are added first and taken back where that was too much: of several threads that come at the
 * same time near the maximum all may be refused, but together they never pass it. */
#include "base/memory_meter.h"

void memory_meter_init(struct memory_meter *meter, struct memory_meter *parent, size_t max)
{
    meter->parent = parent;
    meter->max = max;
    atomic_init(&meter->used, 0);
    atomic_init(&meter->peak, 0);
}

static void peak_raise(struct memory_meter *meter, size_t used)
{
    size_t peak = atomic_load_explicit(&meter->peak, memory_order_relaxed);

    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&meter->peak, &peak, used, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static size_t add(struct memory_meter *meter, size_t bytes)
{
    return atomic_fetch_add_explicit(&meter->used, bytes, memory_order_relaxed) + bytes;
}

static void subtract(struct memory_meter *meter, size_t bytes)
{
    size_t before = atomic_fetch_sub_explicit(&meter->used, bytes, memory_order_relaxed);

    assert(before >= bytes);
}

bool memory_meter_change(struct memory_meter *meter, size_t before, size_t now)
{
    size_t used;

    if (!meter)
        return true;
    if (now <= before) {
        memory_meter_set(meter, before, now);
        return true;
    }
    used = add(meter, now - before);
    if (used > meter->max || !memory_meter_change(meter->parent, before, now)) {
        subtract(meter, now - before);
        return false;
    }
    peak_raise(meter, used);
    return true;
}

void memory_meter_set(struct memory_meter *meter, size_t before, size_t now)
{
    for (; meter; meter = meter->parent) {
        if (now > before)
            peak_raise(meter, add(meter, now - before));
        else if (now < before)
            subtract(meter, before - now);
    }
}

bool memory_meter_is_full(const struct memory_meter *meter)
{
    for (; meter; meter = meter->parent)
        if (memory_meter_used(meter) >= meter->max)
            return true;
    return false;
}
