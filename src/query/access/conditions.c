/* An array holds many values: two conditions on its elements may be true for two of them. So these
 * are never intersected, and serve as an access path only one by one. */
#include "query/access/conditions.h"

#include "query/expression/imply.h"

bool query_path_find(const struct query_plan *plan, const struct query_expression *expression,
                     struct arena *arena, struct document_path *ret_path, bool *ret_elements)
{
    struct query_implying implying = {.query = &plan->query, .arena = arena};
    struct query_operand operand = query_operand_of(&implying, expression);

    if (!operand.is_path)
        return false;
    *ret_path = operand.path;
    *ret_elements = operand.elements;
    return true;
}

/* A path that is in the list already gets the values both allow. */
static void condition_add(struct query_conditions *conditions,
                          const struct query_condition *condition, struct arena *arena)
{
    for (size_t i = 0; i < conditions->count && !condition->elements; i++) {
        struct query_condition *known = &conditions->list[i];

        if (known->elements || !slice_equal(known->prefix, condition->prefix))
            continue;
        known->ranges = query_ranges_intersect(known->ranges, condition->ranges, arena);
        known->exact &= condition->exact;
        known->conjuncts |= condition->conjuncts;
        known->through &= condition->through;
        known->present |= condition->present;
        known->wholes |= condition->wholes;
        known->points = NULL;
        known->point_count = 0;
        conditions->never |= known->ranges.count == 0;
        return;
    }
    conditions->list[conditions->count++] = *condition;
}

/* What one conjunct says. Of one that is itself made of several, each by itself is less than it. */
static void conjunct_add(struct query_conditions *found, const struct query_implied *implied,
                         size_t number, bool whole, struct arena *arena)
{
    uint64_t bit = (uint64_t)1 << number;
    struct query_condition condition;

    if (!implied)
        return;
    switch (implied->kind) {
    case QUERY_IMPLIED_NEVER:
        found->never = true;
        return;
    case QUERY_IMPLIED_ALWAYS:
        if (whole)
            found->settled |= bit;
        return;
    case QUERY_IMPLIED_CONDITION:
        condition = implied->condition;
        condition.exact &= whole;
        condition.points_exact &= whole;
        condition.conjuncts = bit;
        if (found->part_count == QUERY_CONJUNCTS_MAX)
            return;
        ((struct query_condition *)found->parts)[found->part_count++] = condition;
        found->never |= !condition.nested && !condition.ranges.count;
        if (!condition.nested)
            condition_add(found, &condition, arena);
        return;
    case QUERY_IMPLIED_ABSENT:
        if (!whole || !implied->exact)
            return;
        condition = implied->condition;
        condition.conjuncts = bit;
        found->absents[found->absent_count++] = condition;
        return;
    case QUERY_IMPLIED_ANY:
        if (found->alternative_count < QUERY_CONJUNCTS_MAX && whole)
            found->alternatives[found->alternative_count++] =
                (struct query_alternative){implied, bit};
        return;
    case QUERY_IMPLIED_ALL:
        for (size_t i = 0; i < implied->count; i++)
            conjunct_add(found, implied->parts[i], number, false, arena);
        return;
    }
}

const struct query_implied *query_conjunct(const struct query_conditions *conditions, size_t number)
{
    const struct query_implied *implied = conditions->implied;

    return implied && implied->kind == QUERY_IMPLIED_ALL ? implied->parts[number] : implied;
}

static struct query_conditions conditions_find(const struct query_plan *plan,
                                               struct query_implying implying)
{
    struct arena *arena = implying.arena;
    const struct query_expression *filter = plan->query.filter;
    struct query_conditions found = {.all = true};
    size_t count = filter ? 1 : 0;

    if (filter)
        found.implied = query_imply(&implying, filter, true);
    if (found.implied && found.implied->kind == QUERY_IMPLIED_ALL)
        count = found.implied->count;
    found.all = count <= QUERY_CONJUNCTS_MAX;
    found.conjunct_count = MIN(count, (size_t)QUERY_CONJUNCTS_MAX);
    if (!found.implied)
        return found;
    found.list = ARENA_ARRAY(arena, struct query_condition, 2 * QUERY_CONJUNCTS_MAX);
    found.parts = found.list + QUERY_CONJUNCTS_MAX;
    found.absents = ARENA_ARRAY(arena, struct query_condition, found.conjunct_count + 1);
    found.alternatives = ARENA_ARRAY(arena, struct query_alternative, QUERY_CONJUNCTS_MAX);
    for (size_t i = 0; i < found.conjunct_count; i++)
        conjunct_add(&found, query_conjunct(&found, i), i, true, arena);
    return found;
}

struct query_conditions query_conditions_find(const struct query_plan *plan,
                                              enum document_order entries, struct arena *arena)
{
    return conditions_find(plan, (struct query_implying){.ways = QUERY_WAYS_PATHS,
                                                         .order = plan->order,
                                                         .entries = entries,
                                                         .query = &plan->query,
                                                         .arena = arena});
}

struct query_conditions query_conditions_through(const struct query_plan *plan,
                                                 enum query_ways ways,
                                                 const struct document_collator *collator,
                                                 struct arena *arena)
{
    return conditions_find(plan, (struct query_implying){.ways = ways,
                                                         .order = plan->order,
                                                         .entries = DOCUMENT_ORDER_MONGO,
                                                         .collator = collator,
                                                         .query = &plan->query,
                                                         .arena = arena});
}
