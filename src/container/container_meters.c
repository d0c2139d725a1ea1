#include "container/container_meters.h"

static struct budget_options options_of(const struct container *container, uint32_t burst_seconds)
{
    const struct offer *offer = container_offer(container);

    return (struct budget_options){
        .rate_cru = (int64_t)offer->ru * 100,
        .rate_max_cru = (int64_t)container_limits(container)->partition_ru_max * 100,
        .autoscale = offer->kind == OFFER_AUTOSCALE,
        .minute_pool = offer->ru_per_minute,
        .burst_seconds = burst_seconds,
    };
}

bool container_meters_apply(struct meters *meters, const struct container *container,
                            uint32_t burst_seconds, struct error *err)
{
    struct budget_options options = options_of(container, burst_seconds);
    const struct offer *offer = container_offer(container);
    struct shared_throughput *shared = NULL;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    int64_t whole_cru = options.rate_cru;

    if (offer->shared && !meters_shared(meters, offer->number, &options, &shared, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (shared) {
            meters_set_shared(meters, spans[i].id, shared, (uint32_t)i);
            continue;
        }
        options.rate_cru = (int64_t)((double)whole_cru * spans[i].share + 0.5);
        meters_set_own(meters, spans[i].id, &options);
    }
    return true;
}

/* Summed over the partitions; a partition nobody has used yet counts with its floor. */
static int64_t own_now_cru(struct meters *meters, const struct offer *offer,
                           const struct container *container)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct budget_state state;

        if (meters_state(meters, spans[i].id, &state))
            sum += state.current_cru;
        else
            sum += (int64_t)((double)offer->ru * spans[i].share * BUDGET_AUTOSCALE_FLOOR);
    }
    return sum;
}

uint64_t container_meters_now(struct meters *meters, const struct offer *offer,
                              const struct container *container)
{
    uint64_t floor_ru = offer->ru * BUDGET_AUTOSCALE_FLOOR / 100, now_ru = floor_ru;
    struct budget_state state;

    if (offer->kind == OFFER_MANUAL)
        return offer->ru;
    if (container)
        now_ru = (uint64_t)(own_now_cru(meters, offer, container) / 100);
    else if (meters_shared_state(meters, offer->number, &state))
        now_ru = (uint64_t)(state.current_cru / 100);
    return MIN(MAX(now_ru, floor_ru), offer->ru);
}
