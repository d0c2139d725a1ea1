/* Shares that follow the load between cuts. Slowly: a span must have refused requests for some
 * minutes in a row, and after a change as many minutes pass before the next, so that what is seen
 * then is seen under the shares there are. */
#include "catalogue/shares.h"
#include "heat/heat_private.h"

/* Those of long ago are forgotten here, and containers that are gone with them. */
static struct heat_followed *followed_of(struct heat *heat, uint32_t container, int64_t minute)
{
    size_t kept = 0;

    for (size_t i = 0; i < heat->followed_count; i++)
        if (heat->followed[i].container == container ||
            heat->followed[i].minute + heat->options.limits.share_minutes > minute)
            heat->followed[kept++] = heat->followed[i];
    heat->followed_count = kept;
    for (size_t i = 0; i < kept; i++)
        if (heat->followed[i].container == container)
            return &heat->followed[i];
    if (kept == heat->followed_capacity) {
        heat->followed_capacity = MAX(kept * 2, (size_t)16);
        heat->followed = memory_realloc(
            heat->followed, memory_array_size(heat->followed_capacity, sizeof *heat->followed));
    }
    heat->followed[heat->followed_count] = (struct heat_followed){container, -1};
    return &heat->followed[heat->followed_count++];
}

bool heat_follow(struct heat *heat, const struct container *container,
                 const struct heat_figures *figures, int64_t now_ms, double *ret_shares)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint32_t wanted = heat->options.limits.share_minutes;
    int64_t minute = now_ms / HEAT_MINUTE_MS;
    size_t count, starved = 0;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct load_follower *followers = ARENA_ARRAY(arena, struct load_follower, count);
    double ru = (double)container_offer(container)->ru, *rates = ARENA_ARRAY(arena, double, count);
    struct heat_followed *before;

    if (!wanted || count < 2)
        return false;
    container_rates(container, container_map(container), rates);
    for (size_t i = 0; i < count; i++) {
        if (container_span_is_elsewhere(container, &spans[i])) {
            followers[i] = (struct load_follower){0}; /* another container pays for it, or nobody */
            continue;
        }
        followers[i] = (struct load_follower){.share = rates[i] / ru,
                                              .use = figures[i].use,
                                              .starved = figures[i].refused_minutes >= wanted};
        starved += followers[i].starved;
    }
    if (!starved)
        return false;
    before = followed_of(heat, container_info(container)->number, minute);
    if ((before->minute >= 0 && minute < before->minute + 1 + wanted) ||
        !load_follow(followers, count, ru, (double)container_limits(container)->partition_ru_max,
                     ret_shares))
        return false;
    before->minute = minute;
    return true;
}
