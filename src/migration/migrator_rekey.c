/* A re-key begins with a definition and as many targets as the throughput and the bytes ask for. */
#include "migration/migrator_rekey.h"
#include "catalogue/container_usage.h"
#include "catalogue/migration.h"
#include "partition/strategy.h"

static bool sources_list(const struct container *container, struct migrator_rekey_plan *plan,
                         struct error *err)
{
    const struct partition_span *spans =
        partition_map_spans(container_map(container), &plan->source_count);

    if (plan->source_count > MIGRATION_SOURCES_MAX)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "container \"%.*s\" has %zu physical partitions; at most %d can be "
                         "re-keyed together",
                         SLICE_ARG(container_info(container)->id), plan->source_count,
                         MIGRATION_SOURCES_MAX);
    for (size_t i = 0; i < plan->source_count; i++)
        plan->sources[i] = spans[i].id;
    return true;
}

/* Half full, so that they are not split at once. */
static size_t targets_wanted(const struct container *container, uint64_t bytes)
{
    const struct definition_limits *limits = container_limits(container);
    size_t by_throughput = offer_partitions_needed(limits, container_offer(container));
    size_t by_bytes = limits->partition_bytes_max
                          ? (size_t)(bytes / MAX(limits->partition_bytes_max / 2, UINT64_C(1))) + 1
                          : 1;

    return MIN(MAX(by_throughput, by_bytes), (size_t)MIGRATION_TARGETS_MAX);
}

bool migrator_rekey_plan_make(struct catalogue *catalogue, const struct container *container,
                              const struct definition_rekey *rekey, struct arena *arena,
                              struct migrator_rekey_plan *ret_plan, struct error *err)
{
    struct migrator_rekey_plan *plan = ret_plan;
    struct container_usage usage;
    size_t wanted;

    plan->definition = NULL;
    if (container_is_fixed(container) &&
        definition_fields(container_definition(container))->identity != DEFINITION_IDENTITY_MONGO)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "container \"%.*s\" has no partition key and cannot be re-keyed",
                         SLICE_ARG(container_info(container)->id));
    if (!sources_list(container, plan, err) ||
        !container_usage_all(container, arena, &usage, err) ||
        !definition_rekeyed(container_definition(container), rekey, &plan->definition, err))
        return false;
    if (definition_fields(plan->definition)->document.len >
        container_limits(container)->definition_bytes_max)
        return error_set(err, ERROR_TOO_LARGE,
                         "container definition of %zu bytes is over the limit of %u",
                         definition_fields(plan->definition)->document.len,
                         container_limits(container)->definition_bytes_max);
    wanted = MIN(targets_wanted(container, usage.bytes),
                 (size_t)container_limits(container)->container_partitions_max);
    plan->items = usage.items;
    plan->bytes = usage.bytes;
    plan->target_count =
        1 + partition_route_split_points(&definition_fields(plan->definition)->key,
                                         MAX(wanted, (size_t)1), arena, plan->bounds);
    return migrator_rekey_plan_place(catalogue, container, arena, plan, err);
}

void migrator_rekey_plan_done(struct migrator_rekey_plan *plan)
{
    definition_unref(plan->definition);
}

bool migrator_rekey(struct migrator *migrator, const struct container *container,
                    const struct definition_rekey *rekey, bool allows_missing, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(migrator_rekey_plan_done) struct migrator_rekey_plan plan = {0};

    return catalogue_container_reopen(migrator->catalogue, container, &now, err) &&
           migrator_rekey_plan_make(migrator->catalogue, now, rekey, arena, &plan, err) &&
           migrator_begin(migrator, now,
                          &(struct migration_request){.kind = MIGRATION_REKEY,
                                                      .sources = plan.sources,
                                                      .source_count = plan.source_count,
                                                      .target_count = plan.target_count,
                                                      .bounds = plan.bounds,
                                                      .nodes = plan.nodes,
                                                      .weights = plan.weighed ? plan.weights : NULL,
                                                      .definition = plan.definition,
                                                      .allows_missing = allows_missing},
                          false, err);
}

bool migrator_grace_end(struct migrator *migrator, const struct container *container,
                        struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(definition_unref) struct definition *definition = NULL;

    return catalogue_container_reopen(migrator->catalogue, container, &now, err) &&
           definition_grace_ended(container_definition(now), &definition, err) &&
           catalogue_directory_note(migrator->catalogue, now, definition, err);
}
