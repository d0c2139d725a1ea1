/* Heat in what the migrator begins: a piece of a span gets of its throughput what it spent of it,
 * so that nobody is slower for a cut.
 *
 * Splits that a raised throughput asks for are cut and shared evenly instead: they make room for a
 * load that is still to come. */
#include "container/catalogue_migration.h"
#include "container/catalogue_shares.h"
#include "container/heat_profile.h"
#include "container/migrator_private.h"

/* Nothing is known of less than this many RU. */
#define KNOWN_LEAST 1.0

static bool profile_of(const struct migrator *migrator, const struct container *container,
                       const struct partition_span *span, struct arena *arena,
                       struct heat_profile *ret_profile, bool *ret_known, struct error *err)
{
    struct meter *meter =
        migrator->options.meters ? meters_find(migrator->options.meters, span->id) : NULL;

    *ret_known = false;
    if (!meter)
        return true;
    if (!heat_profile_read(container, span, meter_statistics(meter),
                           clock_read_wall_ms(migrator->clock), arena, ret_profile, err))
        return false;
    *ret_known = heat_profile_all(ret_profile) >= KNOWN_LEAST;
    return true;
}

/* Containers that share the throughput of their database have no shares of it. */
bool migrator_weigh(const struct migrator *migrator, const struct container *container,
                    const struct partition_span *span, struct migration_request *request,
                    double *ret_weights, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_profile profile;
    bool known;

    if (container_offer(container)->shared || request->target_count > HEAT_PIECES_MAX)
        return true;
    if (!profile_of(migrator, container, span, arena, &profile, &known, err))
        return false;
    if (!known)
        return true;
    request->share = heat_profile_divide(&profile, migrator->options.meters, container, span,
                                         request->bounds, request->target_count - 1,
                                         clock_read_wall_ms(migrator->clock), ret_weights);
    request->weights = ret_weights;
    if (request->share >= 1)
        request->share = 0; /* there are no others */
    return true;
}

bool migrator_split_heat(struct migrator *migrator, const struct container *container,
                         uint32_t partition, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_profile profile;
    struct slice bound;
    double weights[2];
    struct migration_request request = {.kind = MIGRATION_SPLIT,
                                        .sources = &partition,
                                        .source_count = 1,
                                        .target_count = 2,
                                        .bounds = &bound};
    const struct partition_span *span;
    bool known;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    span = partition_map_find_id(container_map(now), partition);
    if (!span)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "container \"%.*s\" has no partition %u",
                         SLICE_ARG(container_info(now)->id), partition);
    if (!profile_of(migrator, now, span, arena, &profile, &known, err))
        return false;
    if (!known || !heat_profile_cut(&profile, &bound))
        return error_set(err, ERROR_BAD_REQUEST, "the heat of partition %u cannot be divided",
                         partition);
    return migrator_weigh(migrator, now, span, &request, weights, err) &&
           migrator_begin(migrator, now, &request, err);
}

bool migrator_share(struct migrator *migrator, const struct container *container,
                    const double *shares, size_t count, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;

    if (!catalogue_shares_set(migrator->catalogue, container, shares, count, &now, err))
        return false;
    if (migrator->options.shared)
        migrator->options.shared(now, migrator->options.context);
    return true;
}
