/* Where the keys of rules lie, as far as definitions tell, and spans made accordingly.
 *
 * A pattern is a range if it is a text and a star: "eu-*" under the strategy range is all texts
 * from "eu-" up to the first that is behind all of them. Bounds are routing keys of whole texts,
 * as all bounds are that clients may be shown. */
#include "cluster/placement.h"
#include "document/bson.h"
#include "partition/lookup.h"
#include "partition/strategy.h"

#include <stdlib.h>

/* --- Patterns -------------------------------------------------------------------------------- */

static bool is_literal(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.data[i] == '*' || pattern.data[i] == '?')
            return false;
    return true;
}

/* "eu-*": eu-. */
static bool beginning_of(struct slice pattern, struct slice *ret_beginning)
{
    struct slice beginning = slice_first(pattern, pattern.len ? pattern.len - 1 : 0);

    if (!beginning.len || beginning.len > PARTITION_ZONE_BEGINNING_MAX ||
        pattern.data[beginning.len] != '*' || !is_literal(beginning))
        return false;
    *ret_beginning = beginning;
    return true;
}

/* Behind all texts that begin so, and before every other that is behind them: the last byte becomes
 * the next one, which there is in UTF-8. A bound, and perhaps no text. */
static struct slice behind(struct slice beginning, struct arena *arena)
{
    struct slice copy = arena_copy(arena, beginning);

    ((uint8_t *)copy.data)[copy.len - 1]++;
    return copy;
}

/* --- Ranges ---------------------------------------------------------------------------------- */

static struct partition_range range_of(const struct partition_definition *key,
                                       const struct document_value *values, size_t count,
                                       struct arena *arena)
{
    struct partition_key named = partition_key_of(key, values, count);

    return partition_route_range(key, &named, arena);
}

/* All components but the last as they are, the last from a text on and below another. */
static bool ordered_find(const struct placement_rule *rule, const struct partition_definition *key,
                         struct arena *arena, struct partition_range *ret_range)
{
    struct document_value values[PARTITION_PATHS_MAX];
    size_t last = rule->key_count - 1;
    struct slice beginning;

    if (!beginning_of(rule->key[last].text, &beginning))
        return false;
    memcpy(values, rule->key, last * sizeof *values);
    values[last] = document_string(beginning);
    ret_range->min = range_of(key, values, rule->key_count, arena).min;
    values[last] = document_string(behind(beginning, arena));
    ret_range->max = range_of(key, values, rule->key_count, arena).min;
    return true;
}

static bool zone_find(const struct placement_rule *rule, const struct partition_definition *key,
                      struct arena *arena, struct partition_range *ret_range)
{
    struct slice beginning;

    return rule->key_count == 1 && beginning_of(rule->key[0].text, &beginning) &&
           partition_lookup_zone_range(key->lookup, beginning, arena, ret_range);
}

static bool pattern_find(const struct placement_rule *rule, const struct partition_definition *key,
                         struct arena *arena, struct partition_range *ret_range)
{
    for (size_t i = 0; i + 1 < rule->key_count; i++)
        if (!is_literal(rule->key[i].text))
            return false;
    if (rule->isolate)
        return false; /* each of its keys is to have a range */
    if (key->strategy == PARTITION_STRATEGY_LOOKUP)
        return zone_find(rule, key, arena, ret_range);
    return partition_route_is_ordered(key) && ordered_find(rule, key, arena, ret_range);
}

static bool range_find(const struct placement_rule *rule, const struct partition_definition *key,
                       struct arena *arena, struct placement_range *ret_range)
{
    *ret_range = (struct placement_range){.rule = rule};
    if (rule->like && !is_literal(rule->key[rule->key_count - 1].text))
        return pattern_find(rule, key, arena, &ret_range->range);
    for (size_t i = 0; rule->like && i + 1 < rule->key_count; i++)
        if (!is_literal(rule->key[i].text))
            return false;
    ret_range->key = partition_key_of(key, rule->key, rule->key_count);
    ret_range->range = partition_route_range(key, &ret_range->key, arena);
    return true;
}

static bool apart(size_t number, const struct placement_rule *rule,
                  const struct partition_definition *key, struct error *err)
{
    const char *why =
        rule->isolate ? "keys of a pattern cannot be isolated one by one where a rule is resident"
        : key->strategy == PARTITION_STRATEGY_LOOKUP
            ? "a resident pattern needs a zone of orrery.strategy of the same pattern"
        : key->strategy == PARTITION_STRATEGY_RANGE
            ? "a resident pattern is texts and, last, a text of up to 60 bytes and a star"
            : "a hash scatters the keys of a pattern: where a rule is resident they need the "
              "strategy range, or lookup with a zone, or a first component of their own";

    return error_set(err, ERROR_BAD_REQUEST, "rule %zu of orrery.placement: %s", number, why);
}

bool placement_settle(struct placement *placement, const struct partition_definition *key,
                      struct arena *arena, struct error *err)
{
    placement->ranges = ARENA_ARRAY(arena, struct placement_range, placement->count + 1);
    placement->range_count = 0;
    for (size_t i = 0; i < placement->count; i++) {
        struct placement_rule *rule = &placement->rules[i];

        rule->ranged = rule->key_count &&
                       range_find(rule, key, arena, &placement->ranges[placement->range_count]);
        placement->range_count += rule->ranged;
        if (placement->resident && rule->key_count && !rule->ranged)
            return apart(i + 1, rule, key, err);
    }
    return true;
}

/* --- New spans ------------------------------------------------------------------------------- */

static int slices_compare(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* May it be in one span with keys that no rule names? */
static bool may_stay(const struct placement_plan *plan, const struct placement_range *claim)
{
    uint64_t others = placement_nodes(placement_default(plan->placement), plan->table);

    return !claim->rule->isolate && (placement_nodes(claim->rule, plan->table) & others) == others;
}

bool placement_plan_cut(const struct placement_plan *plan, const struct slice *bounds, size_t count,
                        size_t spans_max, struct slice **ret_bounds, size_t *ret_count,
                        struct error *err)
{
    const struct placement *placement = plan->placement;
    struct slice *all =
        ARENA_ARRAY(plan->arena, struct slice, count + 2 * placement->range_count + 1);
    size_t kept = 0;

    if (count)
        memcpy(all, bounds, count * sizeof *all);
    for (size_t i = 0; i < placement->range_count; i++)
        if (!may_stay(plan, &placement->ranges[i])) {
            all[count++] = placement->ranges[i].range.min;
            all[count++] = placement->ranges[i].range.max;
        }
    qsort(all, count, sizeof *all, slices_compare);
    for (size_t i = 0; i < count; i++)
        if (slice_compare(all[i], PARTITION_ROUTING_MIN) > 0 &&
            slice_compare(all[i], PARTITION_ROUTING_MAX) < 0 &&
            (!kept || !slice_equal(all[i], all[kept - 1])))
            all[kept++] = all[i];
    if (kept + 1 > spans_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "orrery.placement asks for more than %zu physical partitions", spans_max);
    *ret_bounds = all;
    *ret_count = kept;
    return true;
}

static bool takes_partitions(const struct placement_plan *plan, const struct cluster_node *node)
{
    for (size_t i = 0; i < plan->table->count; i++)
        if (plan->table->list[i].number == node->number)
            return !plan->table->list[i].draining && cluster_node_serves(node);
    return false;
}

bool placement_plan_node(struct placement_plan *plan, const struct partition_span *span,
                         uint32_t *ret_node, struct error *err)
{
    const struct placement *placement = plan->placement;
    struct placement_verdict verdict =
        placement_judge(placement, placement->ranges, placement->range_count, plan->table, span);
    const struct cluster_node *best = NULL;

    for (size_t i = 0; i < cluster_count(plan->cluster); i++) {
        const struct cluster_node *node = cluster_at(plan->cluster, i);

        if (!(verdict.allowed >> node->number & 1) || !takes_partitions(plan, node))
            continue;
        if (node->number == span->node) {
            best = node;
            break;
        }
        if (!best || plan->given[node->number] < plan->given[best->number])
            best = node;
    }
    if (!best)
        return error_set(err, ERROR_NODE_DOWN,
                         placement->count
                             ? "no node that orrery.placement allows takes partitions now"
                             : "no node takes partitions now");
    plan->given[best->number]++;
    *ret_node = best->number;
    return true;
}
