/* Where the targets of a re-key are. The container's placement rules are obeyed from the first copy
 * on: keys that must be on other nodes than their neighbours are cut out of their span. Which keys
 * a pattern means that is no range is known from what is stored, so those are for the balancer once
 * it is. */
#include "base/bytes.h"
#include "catalogue/node.h"
#include "migration/migrator_rekey.h"
#include "partition/strategy.h"

/* --- Rules ----------------------------------------------------------------------------------- */

/* Under another key the values that rules name would mean other items. */
static bool rules_check(const struct container *container, const struct definition_fields *fields,
                        struct error *err)
{
    const struct partition_definition *from =
        &definition_fields(container_definition(container))->key;

    for (size_t i = 0; i < fields->placement.count; i++) {
        const struct placement_rule *rule = &fields->placement.rules[i];

        for (size_t c = 0; c < rule->key_count; c++)
            if (c >= from->path_count || c >= fields->key.path_count ||
                !slice_equal(from->texts[c], fields->key.texts[c]))
                return error_set(err, ERROR_BAD_REQUEST,
                                 "rule %zu of orrery.placement names values of %.*s, which will "
                                 "not be in that place of the partition key: remove it first",
                                 i + 1, SLICE_ARG(from->texts[MIN(c, from->path_count - 1u)]));
    }
    return true;
}

/* --- Shares ---------------------------------------------------------------------------------- */

/* How far into the space of hashes a bound is; of version 2 they end at 2^62. */
static double hash_part(struct slice bound)
{
    const uint64_t all = UINT64_C(1) << 62;
    uint8_t head[8] = {0};

    memcpy(head, bound.data, MIN(bound.len, sizeof head));
    return (double)MIN(bytes_get_be64(head), all) / (double)all;
}

static bool is_claimed(const struct placement *placement, struct slice min)
{
    for (size_t i = 0; i < placement->range_count; i++)
        if (placement->ranges[i].key.count && slice_equal(placement->ranges[i].range.min, min))
            return true;
    return false;
}

/* What is left and right of a key that was cut out gets throughput by its width, and the key as
 * much as if all had the same. */
static void shares_divide(const struct definition_fields *fields, struct migrator_rekey_plan *plan)
{
    const struct partition_definition *key = &fields->key;

    plan->weighed = key->strategy == PARTITION_STRATEGY_HASH && key->kind != PARTITION_HASH_V1;
    for (size_t i = 0; plan->weighed && i < plan->target_count; i++) {
        struct slice min = i ? plan->bounds[i - 1] : PARTITION_ROUTING_MIN;
        double end = i + 1 < plan->target_count ? hash_part(plan->bounds[i]) : 1;

        plan->weights[i] = is_claimed(&fields->placement, min) ? 1 / (double)plan->target_count
                                                               : MAX(end - hash_part(min), 0.001);
    }
}

/* --- Nodes ----------------------------------------------------------------------------------- */

/* Targets are spread over the nodes that the sources are on, where they may be there. */
static bool nodes_choose(const struct container *container, struct placement_plan *placing,
                         struct migrator_rekey_plan *plan, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < plan->target_count; i++) {
        struct partition_span target = {.node = spans[i * count / plan->target_count].node,
                                        .min = i ? plan->bounds[i - 1] : PARTITION_ROUTING_MIN,
                                        .max = i + 1 < plan->target_count ? plan->bounds[i]
                                                                          : PARTITION_ROUTING_MAX};

        if (!placement_plan_node(placing, &target, &plan->nodes[i], err))
            return false;
    }
    return true;
}

bool migrator_rekey_plan_place(struct catalogue *catalogue, const struct container *container,
                               struct arena *arena, struct migrator_rekey_plan *plan,
                               struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);
    const struct definition_fields *fields = definition_fields(plan->definition);
    struct placement_plan placing = {.placement = &fields->placement,
                                     .cluster = catalogue_cluster(catalogue),
                                     .table = table,
                                     .arena = arena};
    struct slice *bounds;
    size_t count;

    if (!rules_check(container, fields, err) ||
        !placement_plan_cut(&placing, plan->bounds, plan->target_count - 1, MIGRATION_TARGETS_MAX,
                            &bounds, &count, err))
        return false;
    if (count)
        memcpy(plan->bounds, bounds, count * sizeof *bounds);
    plan->target_count = count + 1;
    shares_divide(fields, plan);
    return nodes_choose(container, &placing, plan, err);
}
