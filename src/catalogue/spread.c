#include "catalogue/spread.h"

#include "catalogue/catalogue_private.h"
#include "partition/synthetic.h"

/* Entries of an index besides the policy do not say which item they are of, sums of texts are of
 * whole logical partitions, and vectors have neighbours in all of their physical partition. */
static bool indexes_fit(const struct index_policy *policy)
{
    size_t count;
    const struct index_definition *const *list = index_policy_definitions(policy, &count);

    for (size_t i = 0; i < count; i++)
        if (list[i]->format != INDEX_FORMAT_POLICY || list[i]->counted ||
            list[i]->kind == &index_kind_text || list[i]->kind == &index_kind_vector)
            return false;
    return true;
}

/* What a container with a spread key cannot have; NULL: nothing of it. */
static const char *unfit(const struct definition_fields *fields)
{
    if (definition_is_unique(fields))
        return "unique keys";
    if (!indexes_fit(fields->policy) || fields->index_count)
        return "indexes besides its policy, or full-text or vector indexes";
    if (fields->bound.bytes)
        return "a bound (it is capped)";
    if (fields->reference)
        return "copies with all nodes (it is a reference container)";
    if (fields->view.form)
        return "a source (it is a view)";
    if (fields->followed)
        return "views";
    if (partition_synthetic_is_random(&fields->key))
        return "a random suffix in its partition key";
    return NULL;
}

/* What is reserved for a key value, or caps it, is counted in one partition. */
static const struct definition_tenant *tenant_within(const struct definition *definition,
                                                     struct partition_range range)
{
    const struct definition_throughput *said = &definition_fields(definition)->throughput;

    for (size_t i = 0; i < said->tenant_count; i++)
        if (slice_compare(said->tenants[i].range.min, range.max) < 0 &&
            slice_compare(range.min, said->tenants[i].range.max) < 0)
            return &said->tenants[i];
    return NULL;
}

static const struct definition_tenant *tenant_in_parts(const struct definition *definition,
                                                       const struct partition_map *map)
{
    const struct definition_tenant *tenant = NULL;
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);

    for (size_t i = 0; i < count && !tenant; i++)
        if (partition_map_is_part(map, &spans[i]))
            tenant =
                tenant_within(definition, (struct partition_range){spans[i].min, spans[i].max});
    return tenant;
}

static bool fits(const struct container *container, const struct definition *definition,
                 struct error *err)
{
    const char *why = unfit(definition_fields(definition));

    return !why || error_set(err, ERROR_NOT_SUPPORTED,
                             "no key of container \"%.*s\" can be spread while it has %s",
                             SLICE_ARG(container->state.info.id), why);
}

bool catalogue_spread_lets_migrate(const struct container *container,
                                   const struct migration_request *request, struct error *err)
{
    if (request->kind != MIGRATION_SPREAD)
        return true;
    if (container->promotions.count)
        return error_set(err, ERROR_PROMOTION_BOUND,
                         "container \"%.*s\" is tied to another by a promotion: no key of it is "
                         "spread",
                         SLICE_ARG(container->state.info.id));
    if (tenant_within(container->definition, request->spread))
        return error_set(
            err, ERROR_NOT_SUPPORTED,
            "the key has throughput of its own in container \"%.*s\", which is counted "
            "in one partition: take it away first",
            SLICE_ARG(container->state.info.id));
    for (uint32_t i = 0; i < container->before_count; i++)
        if (!fits(container, container->before[i], err))
            return false;
    return fits(container, container->definition, err);
}

static bool is_or_will_be_spread(const struct container *container)
{
    return partition_map_is_spread(container->map) ||
           (container->migration && partition_map_is_spread(migration_map(container->migration)));
}

bool catalogue_spread_lets_replace(const struct container *container,
                                   const struct definition *definition, struct error *err)
{
    const char *why = NULL;

    if (is_or_will_be_spread(container))
        why = unfit(definition_fields(definition));
    if (!why && (tenant_in_parts(definition, container->map) ||
                 (container->migration &&
                  tenant_in_parts(definition, migration_map(container->migration)))))
        why = "throughput reserved for that key";
    return !why || error_set(err, ERROR_NOT_SUPPORTED,
                             "a key of container \"%.*s\" is spread, so it cannot have %s: gather "
                             "the key first",
                             SLICE_ARG(container->state.info.id), why);
}

bool catalogue_spread_lets_promote(const struct container *container, struct error *err)
{
    return !is_or_will_be_spread(container) ||
           error_set(err, ERROR_PROMOTION_UNFIT,
                     "no key of container \"%.*s\" is promoted while one is spread: gather it "
                     "first",
                     SLICE_ARG(container->state.info.id));
}
