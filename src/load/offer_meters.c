#include "load/offer_meters.h"

#include "catalogue/shares.h"
#include "load/profile.h"

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

static int64_t cru_of(double ru)
{
    return (int64_t)(ru * 100 + 0.5);
}

/* Throughput buckets and key values with throughput of their own, as far as they are in the span.
 */
static void bounds_apply(struct meters *meters, const struct container *container,
                         const struct partition_span *span, struct arena *arena)
{
    const struct definition_throughput *said =
        &definition_fields(container_definition(container))->throughput;
    struct budget *budget = meter_budget(meters_find(meters, span->id));
    struct budget_tenant *tenants = ARENA_ARRAY(arena, struct budget_tenant, said->tenant_count);
    int64_t now_ms = clock_read_monotonic_ms(meters_clock(meters));
    size_t count = 0;

    for (uint8_t i = 0; i < BUDGET_BUCKETS; i++)
        budget_set_bucket(budget, (uint8_t)(i + 1),
                          said->percent_max[i] ? said->percent_max[i] : 100, now_ms);
    for (size_t i = 0; i < said->tenant_count; i++) {
        const struct definition_tenant *tenant = &said->tenants[i];

        if (slice_compare(tenant->range.min, span->min) >= 0 &&
            slice_compare(tenant->range.min, span->max) < 0)
            tenants[count++] =
                (struct budget_tenant){.key = tenant->pk,
                                       .reserved_cru = (int64_t)tenant->reserved * 100,
                                       .cap_cru = (int64_t)tenant->cap * 100};
    }
    budget_set_tenants(budget, tenants, count, now_ms);
}

bool load_meters_apply(struct meters *meters, const struct container *container,
                       uint32_t burst_seconds, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct budget_options options = options_of(container, burst_seconds);
    const struct offer *offer = container_offer(container);
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = NULL;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    double *rates = ARENA_ARRAY(arena, double, count);

    for (size_t i = 0; i < count && !container_is_enforced(container); i++)
        meters_set_free(meters, spans[i].id);
    if (!container_is_enforced(container))
        return true;
    if (offer->shared && !meters_shared(meters, offer->number, &options, &shared, err))
        return false;
    container_rates(container, container_map(container), rates);
    for (size_t i = 0; i < count; i++) {
        /* Paid for by the container that the key is in; or empty, and without a share: who looks
         * at all partitions is not held back. */
        if (container_span_is_elsewhere(container, &spans[i]))
            continue;
        if (shared) {
            meters_set_shared(meters, spans[i].id, shared, (uint32_t)i);
            continue;
        }
        options.rate_cru = cru_of(rates[i]);
        meters_set_own(meters, spans[i].id, &options);
        bounds_apply(meters, container, &spans[i], arena);
    }
    return true;
}

/* --- Migrations ------------------------------------------------------------------------------ */

/* The sources' past goes to a target by its part of all the targets' shares. Where one source
 * becomes several targets that divides it, where several become one it adds up. */
static void past_take_over(struct meters *meters, const struct migration *migration,
                           const struct partition_span *target)
{
    size_t source_count, target_count;
    const struct migration_source *sources = migration_sources(migration, &source_count);
    const struct partition_span *targets = migration_targets(migration, &target_count);
    struct budget *budget = meter_budget(meters_find(meters, target->id));
    double shares = 0;

    for (size_t i = 0; i < target_count; i++)
        shares += targets[i].share;
    for (size_t i = 0; i < source_count; i++) {
        struct meter *source = meters_find(meters, sources[i].id);

        if (source && meter_budget(source))
            budget_take_over(budget, meter_budget(source),
                             shares > 0 ? target->share / shares : 1.0 / (double)target_count,
                             clock_read_monotonic_ms(meters_clock(meters)));
    }
}

/* What was asked of the sources, by the heat of their keys: so what a target spends is known before
 * anybody has asked it for anything. A re-key makes other keys of them. */
static void use_take_over(struct meters *meters, const struct container *container, size_t target,
                          struct arena *arena)
{
    const struct migration *migration = container_migration(container);
    int64_t now_ms = clock_read_wall_ms(meters_clock(meters));
    size_t source_count, target_count;
    const struct migration_source *sources = migration_sources(migration, &source_count);
    const struct partition_span *targets = migration_targets(migration, &target_count);
    struct statistics *to = meter_statistics(meters_find(meters, targets[target].id));

    for (size_t i = 0; i < source_count && migration_kind(migration) != MIGRATION_REKEY; i++) {
        const struct partition_span *span =
            partition_map_find_id(container_map(container), sources[i].id);
        struct meter *source = meters_find(meters, sources[i].id);
        struct slice *bounds = ARENA_ARRAY(arena, struct slice, target_count);
        struct load_profile profile = {.bounds = bounds, .bound_count = target_count - 1};
        double all;

        if (!span || !source)
            continue;
        for (size_t t = 1; t < target_count; t++)
            bounds[t - 1] = targets[t].min;
        load_profile_followed(container, span, meter_statistics(source), now_ms, arena, &profile);
        all = load_profile_all(&profile);
        if (all > 0)
            statistics_take_over(to, meter_statistics(source),
                                 (load_profile_below(&profile, targets[target].max) -
                                  load_profile_below(&profile, targets[target].min)) /
                                     all,
                                 now_ms);
    }
}

bool load_meters_prepare(struct meters *meters, const struct container *container,
                         uint32_t burst_seconds, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct migration *migration = container_migration(container);
    struct budget_options options = options_of(container, burst_seconds);
    const struct offer *offer = container_offer(container);
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = NULL;
    size_t count, span_count;
    const struct partition_span *targets = migration_targets(migration, &count);
    const struct partition_span *spans = partition_map_spans(migration_map(migration), &span_count);
    double *rates = ARENA_ARRAY(arena, double, span_count);

    for (size_t i = 0; i < count && !container_is_enforced(container); i++)
        meters_set_free(meters, targets[i].id);
    if (!container_is_enforced(container))
        return true;
    if (offer->shared && !meters_shared(meters, offer->number, &options, &shared, err))
        return false;
    container_rates(container, migration_map(migration), rates);
    for (size_t i = 0; i < count; i++) {
        size_t place =
            (size_t)(partition_map_find_id(migration_map(migration), targets[i].id) - spans);

        if (meters_find(meters, targets[i].id))
            continue;
        if (shared) {
            meters_set_shared(meters, targets[i].id, shared, (uint32_t)place);
            continue;
        }
        options.rate_cru = cru_of(rates[place]);
        meters_set_own(meters, targets[i].id, &options);
        bounds_apply(meters, container, &targets[i], arena);
        if (migration_kind(migration) == MIGRATION_COPY)
            continue; /* nobody has asked it for anything */
        use_take_over(meters, container, i, arena);
        past_take_over(meters, migration, &targets[i]);
    }
    return true;
}

/* --- Now ------------------------------------------------------------------------------------- */

/* Summed over the partitions; a partition nobody has used yet counts with its floor. */
static int64_t own_now_cru(struct meters *meters, const struct container *container)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    double *rates = ARENA_ARRAY(arena, double, count);
    int64_t sum = 0;

    container_rates(container, container_map(container), rates);
    for (size_t i = 0; i < count; i++) {
        struct budget_state state;

        if (meters_state(meters, spans[i].id, &state))
            sum += state.current_cru;
        else
            sum += (int64_t)(rates[i] * BUDGET_AUTOSCALE_FLOOR);
    }
    return sum;
}

uint64_t load_meters_now(struct meters *meters, const struct offer *offer,
                         const struct container *container)
{
    uint64_t floor_ru = offer->ru * BUDGET_AUTOSCALE_FLOOR / 100, now_ru = floor_ru;
    struct budget_state state;

    if (offer->kind == OFFER_MANUAL)
        return offer->ru;
    if (container)
        now_ru = (uint64_t)(own_now_cru(meters, container) / 100);
    else if (meters_shared_state(meters, offer->number, &state))
        now_ru = (uint64_t)(state.current_cru / 100);
    return MIN(MAX(now_ru, floor_ru), offer->ru);
}
