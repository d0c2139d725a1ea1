/* Where the targets of a re-key are. The container's placement rules are obeyed from the first copy
 * on: a key that must be on other nodes than its neighbours is cut out of their span. Which keys a
 * pattern means is known from what is stored, so those are for the balancer once it is. */
#include "base/bytes.h"
#include "catalogue/node.h"
#include "migration/migrator_rekey.h"
#include "partition/strategy.h"

#include <stdlib.h>

struct placing {
    const struct container *container;
    const struct definition_fields *fields; /* as it will be */
    const struct cluster *cluster;
    struct node_table *table;
    struct arena *arena;
    struct placement_range claims[PLACEMENT_RULES_MAX]; /* by rule */
    size_t claim_count;
    size_t given[CLUSTER_NODES_MAX]; /* targets so far, by number of the node */
};

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

static void claims_find(struct placing *placing)
{
    const struct placement *placement = &placing->fields->placement;

    for (size_t i = 0; i < placement->count; i++) {
        const struct placement_rule *rule = &placement->rules[i];
        struct placement_range *claim = &placing->claims[placing->claim_count];

        if (!rule->key_count || rule->like)
            continue;
        *claim = (struct placement_range){
            .rule = rule,
            .key = partition_key_of(&placing->fields->key, rule->key, rule->key_count)};
        claim->range = partition_route_range(&placing->fields->key, &claim->key, placing->arena);
        placing->claim_count++;
    }
}

/* --- Bounds ---------------------------------------------------------------------------------- */

static int slices_compare(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* May it be in one span with keys that no rule names? */
static bool may_stay(const struct placing *placing, const struct placement_range *claim)
{
    uint64_t others =
        placement_nodes(placement_default(&placing->fields->placement), placing->table);

    return !claim->rule->isolate &&
           (placement_nodes(claim->rule, placing->table) & others) == others;
}

static bool bounds_cut(const struct placing *placing, struct migrator_rekey_plan *plan,
                       struct error *err)
{
    size_t count = plan->target_count - 1, kept = 0;
    struct slice *all = ARENA_ARRAY(placing->arena, struct slice, count + 2 * PLACEMENT_RULES_MAX);

    if (count)
        memcpy(all, plan->bounds, count * sizeof *all);
    for (size_t i = 0; i < placing->claim_count; i++)
        if (!may_stay(placing, &placing->claims[i])) {
            all[count++] = placing->claims[i].range.min;
            all[count++] = placing->claims[i].range.max;
        }
    qsort(all, count, sizeof *all, slices_compare);
    for (size_t i = 0; i < count; i++) {
        if (slice_compare(all[i], PARTITION_ROUTING_MIN) <= 0 ||
            slice_compare(all[i], PARTITION_ROUTING_MAX) >= 0 ||
            (kept && slice_equal(all[i], plan->bounds[kept - 1])))
            continue;
        if (kept + 2 > MIGRATION_TARGETS_MAX)
            return error_set(err, ERROR_LIMIT_REACHED,
                             "orrery.placement asks for more than %d physical partitions",
                             MIGRATION_TARGETS_MAX);
        plan->bounds[kept++] = all[i];
    }
    plan->target_count = kept + 1;
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

static bool is_claimed(const struct placing *placing, struct slice min)
{
    for (size_t i = 0; i < placing->claim_count; i++)
        if (slice_equal(placing->claims[i].range.min, min))
            return true;
    return false;
}

/* What is left and right of a key that was cut out gets throughput by its width, and the key as
 * much as if all had the same. */
static void shares_divide(const struct placing *placing, struct migrator_rekey_plan *plan)
{
    const struct partition_definition *key = &placing->fields->key;

    plan->weighed = key->strategy == PARTITION_STRATEGY_HASH && key->kind != PARTITION_HASH_V1;
    for (size_t i = 0; plan->weighed && i < plan->target_count; i++) {
        struct slice min = i ? plan->bounds[i - 1] : PARTITION_ROUTING_MIN;
        double end = i + 1 < plan->target_count ? hash_part(plan->bounds[i]) : 1;

        plan->weights[i] = is_claimed(placing, min) ? 1 / (double)plan->target_count
                                                    : MAX(end - hash_part(min), 0.001);
    }
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static bool takes_partitions(const struct placing *placing, const struct cluster_node *node)
{
    const struct node_info *info = node_table_find_number(placing->table, node->number);

    return info && !info->draining && cluster_node_serves(node);
}

/* The node of a source if it may be there, so that less is sent around; else the one with the
 * fewest so far. */
static bool node_choose(struct placing *placing, const struct partition_span *target,
                        uint32_t *ret_node, struct error *err)
{
    struct placement_verdict verdict = placement_judge(
        &placing->fields->placement, placing->claims, placing->claim_count, placing->table, target);
    const struct cluster_node *best = NULL;

    for (size_t i = 0; i < cluster_count(placing->cluster); i++) {
        const struct cluster_node *node = cluster_at(placing->cluster, i);

        if (!(verdict.allowed >> node->number & 1) || !takes_partitions(placing, node))
            continue;
        if (node->number == target->node) {
            best = node;
            break;
        }
        if (!best || placing->given[node->number] < placing->given[best->number])
            best = node;
    }
    if (!best)
        return error_set(err, ERROR_NODE_DOWN,
                         placing->fields->placement.count
                             ? "no node that orrery.placement allows takes partitions now"
                             : "no node takes partitions now");
    placing->given[best->number]++;
    *ret_node = best->number;
    return true;
}

/* Targets are spread over the nodes that the sources are on, where they may be there. */
static bool nodes_choose(struct placing *placing, struct migrator_rekey_plan *plan,
                         struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_spans(container_map(placing->container), &count);

    for (size_t i = 0; i < plan->target_count; i++) {
        struct partition_span target = {.node = spans[i * count / plan->target_count].node,
                                        .min = i ? plan->bounds[i - 1] : PARTITION_ROUTING_MIN,
                                        .max = i + 1 < plan->target_count ? plan->bounds[i]
                                                                          : PARTITION_ROUTING_MAX};

        if (!node_choose(placing, &target, &plan->nodes[i], err))
            return false;
    }
    return true;
}

bool migrator_rekey_plan_place(struct catalogue *catalogue, const struct container *container,
                               struct arena *arena, struct migrator_rekey_plan *plan,
                               struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);
    struct placing placing = {.container = container,
                              .fields = definition_fields(plan->definition),
                              .cluster = catalogue_cluster(catalogue),
                              .table = table,
                              .arena = arena};

    if (!rules_check(container, placing.fields, err))
        return false;
    claims_find(&placing);
    if (!bounds_cut(&placing, plan, err))
        return false;
    shares_divide(&placing, plan);
    return nodes_choose(&placing, plan, err);
}
