/* Physical partitions are made before the record that owns them is committed and go after it is
 * gone. Whatever happens in between leaves partitions that no record owns, which the next load
 * drops; never a record whose partitions are missing. */
#include "catalogue/catalogue_private.h"
#include "catalogue/resident.h"
#include "partition/layout.h"

enum { FIRST_EPOCH = 1 };

bool catalogue_partition_remove(const struct cluster_node *node, uint32_t id, struct error *err)
{
    commit_partition_close(node->commit, id);
    return engine_partition_drop(node->engine, id, err);
}

static bool partition_make(struct catalogue *catalogue, const struct partition_span *span,
                           struct error *err)
{
    const struct cluster_node *node = cluster_find(catalogue->cluster, span->node);

    if (!node)
        return error_set(err, ERROR_CONFIGURATION, "there is no node %u here", span->node);
    if (!engine_partition_create(node->engine, span->id, span->epoch, err) ||
        !commit_partition_open(node->commit, span->id, span->epoch, err))
        return error_prefix(err, "node \"%s\"", node->name);
    return true;
}

/* The failure of one does not spare the others. */
void catalogue_partitions_unmake_spans(struct catalogue *catalogue,
                                       const struct partition_span *spans, size_t count)
{
    struct error err;

    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = cluster_find(catalogue->cluster, spans[i].node);

        if (node && !catalogue_partition_remove(node, spans[i].id, &err)) {
            log_error(catalogue->log, "partition left behind", &err);
            catalogue->in_doubt = true;
        }
    }
}

bool catalogue_partitions_make_spans(struct catalogue *catalogue,
                                     const struct partition_span *spans, size_t count,
                                     struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!partition_make(catalogue, &spans[i], err)) {
            catalogue_partitions_unmake_spans(catalogue, spans, i + 1);
            return false;
        }
    return true;
}

void catalogue_partitions_unmake(struct catalogue *catalogue, const struct partition_map *map)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);

    catalogue_partitions_unmake_spans(catalogue, spans, count);
}

/* Ids are used up even if the container does not come to be: they are never used again. */
bool catalogue_partition_ids_take(struct catalogue_head *head, uint32_t count, uint32_t *ret_first,
                                  struct error *err)
{
    if (count >> PARTITION_NUMBER_SOURCE_BITS || head->next_partition + count > PARTITION_HISTORY)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "the numbers of physical partitions are used up");
    *ret_first = head->next_partition;
    head->next_partition += count;
    return true;
}

/* The nodes that new partitions of a container may be on. */
static bool nodes_choose(struct catalogue *catalogue, const struct definition *definition,
                         uint32_t *nodes, size_t *ret_count, struct error *err)
{
    const struct placement_rule *rule =
        placement_default(&definition_fields(definition)->placement);
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);
    size_t count = 0;

    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        const struct node_info *info = node_table_find_number(table, node->number);

        if (cluster_node_serves(node) && info && !info->draining && placement_allows(rule, info))
            nodes[count++] = node->number;
    }
    *ret_count = count;
    return count || error_set(err, ERROR_NODE_DOWN,
                              rule ? "no node that orrery.placement allows takes partitions now"
                                   : "no node takes partitions now");
}

/* --- Where rules hold from the beginning ------------------------------------------------------ */

/* Was a span cut off from the one before it because of a rule? */
static bool is_cut_by_rule(const struct placement *placement, struct slice min)
{
    for (size_t i = 0; i < placement->range_count; i++)
        if (slice_equal(placement->ranges[i].range.min, min) ||
            slice_equal(placement->ranges[i].range.max, min))
            return true;
    return false;
}

/* The map that is even, cut besides where rules ask for other nodes. */
static bool map_new_resident(struct catalogue *catalogue, const struct partition_map_plan *plan,
                             struct placement_plan *placing, struct partition_map **ret_map,
                             struct error *err)
{
    struct slice *points = ARENA_ARRAY(placing->arena, struct slice, plan->count), *bounds;
    size_t count =
        partition_route_split_points(plan->definition, plan->count, placing->arena, points);
    struct partition_span *spans;
    uint32_t first;

    if (!placement_plan_cut(placing, points, count, catalogue->limits.container_partitions_max,
                            &bounds, &count, err) ||
        !catalogue_partition_ids_take(&catalogue->head, (uint32_t)count + 1, &first, err))
        return false;
    spans = ARENA_ARRAY(placing->arena, struct partition_span, count + 1);
    for (size_t i = 0; i <= count; i++) {
        spans[i] = (struct partition_span){.id = first + (uint32_t)i,
                                           .node = plan->nodes[i % plan->node_count],
                                           .epoch = plan->epoch,
                                           .share = 1.0 / (double)(count + 1),
                                           .min = i ? bounds[i - 1] : PARTITION_ROUTING_MIN,
                                           .max = i < count ? bounds[i] : PARTITION_ROUTING_MAX};
        if (i && is_cut_by_rule(placing->placement, spans[i].min))
            spans[i].cut = PARTITION_CUT_PLACED;
        if (!placement_plan_node(placing, &spans[i], &spans[i].node, err))
            return false;
    }
    return partition_map_new(spans, count + 1, 1, ret_map, err);
}

static bool map_new(struct catalogue *catalogue, const struct definition *definition,
                    struct partition_map_plan *plan, struct partition_map **ret_map,
                    struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct placement_plan placing = {.placement = &definition_fields(definition)->placement,
                                     .cluster = catalogue->cluster};

    if (!placing.placement->resident)
        return catalogue_partition_ids_take(&catalogue->head, (uint32_t)plan->count,
                                            &plan->first_id, err) &&
               partition_map_new_even(plan, ret_map, err);
    placing.table = table = catalogue_nodes(catalogue);
    placing.arena = arena = arena_new();
    return map_new_resident(catalogue, plan, &placing, ret_map, err);
}

bool catalogue_partitions_make(struct catalogue *catalogue, const struct definition *definition,
                               uint32_t count, struct partition_map **ret_map, struct error *err)
{
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    uint32_t nodes[CLUSTER_NODES_MAX], dealt[CLUSTER_NODES_MAX];
    struct partition_map_plan plan = {.definition = &definition_fields(definition)->key,
                                      .count = count,
                                      .epoch = FIRST_EPOCH,
                                      .nodes = dealt};
    const struct partition_span *spans;
    size_t span_count;

    if (!nodes_choose(catalogue, definition, nodes, &plan.node_count, err))
        return false;
    /* Containers of one partition go round the nodes too. */
    for (size_t i = 0; i < plan.node_count; i++)
        dealt[i] = nodes[(catalogue->head.next_partition + i) % plan.node_count];
    if (index_policy_places(definition_fields(definition)->policy))
        plan.node_count = 1; /* an item and its entries are one commit (catalogue/placed.h) */
    if (!map_new(catalogue, definition, &plan, &map, err))
        return false;
    spans = partition_map_spans(map, &span_count);
    if (!catalogue_resident_check(catalogue, definition, spans, span_count, err) ||
        !catalogue_partitions_make_spans(catalogue, spans, span_count, err))
        return false;
    *ret_map = TAKE(map);
    return true;
}
