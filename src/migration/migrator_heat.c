/* What heat asks of the migrator: a split where it is halved, and shares that follow the load. */
#include "catalogue/migration.h"
#include "catalogue/shares.h"
#include "migration/migrator_private.h"

bool migrator_split_heat(struct migrator *migrator, const struct container *container,
                         uint32_t partition, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct load_profile profile;
    struct slice bound;
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
    if (!migrator_profile(migrator, now, span, arena, &profile, &known, err))
        return false;
    if (!known || !load_profile_cut(&profile, &bound))
        return error_set(err, ERROR_BAD_REQUEST, "the heat of partition %u cannot be divided",
                         partition);
    return migrator_begin(migrator, now, &request, false, err);
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
