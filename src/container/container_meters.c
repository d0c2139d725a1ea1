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
