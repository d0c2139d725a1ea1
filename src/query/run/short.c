/* Which plans are short. Expressions cost about as much as they have parts and as the values they
 * look at have bytes; what a page that is short may use of either is bounded (QUERY_SHORT_WORK).
 * Left out is what costs more than it counts, or counts too late: regular expressions and patterns,
 * calls that make long texts, subqueries, joins, functions of the user. Of built-in functions those
 * that indexes know (IS_DEFINED, STARTSWITH, ARRAY_CONTAINS and their kin) only look at their
 * arguments; those of places give up where a figure is more than a point or a small convex ring
 * (query_limits.brief). */
#include "query/expression/expression.h"
#include "query/run.h"

static bool kind_is_short(const struct query_expression *expression)
{
    static const struct query_kind *const kinds[] = {
        &query_kind_constant,    &query_kind_variable, &query_kind_property, &query_kind_index,
        &query_kind_array,       &query_kind_object,   &query_kind_and,      &query_kind_or,
        &query_kind_comparison,  &query_kind_not,      &query_kind_between,  &query_kind_in,
        &query_kind_conditional, &query_kind_coalesce,
    };

    if (expression->kind == &query_kind_call) {
        const struct query_function *function = ((const struct query_call *)expression)->function;

        return (function->imply || function->imply_most) && !function->costly;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (expression->kind == kinds[i])
            return true;
    return false;
}

static bool is_short(const struct query_expression *expression)
{
    if (!kind_is_short(expression))
        return false;
    for (uint32_t i = 0; i < expression->child_count; i++)
        if (!is_short(expression->children[i]))
            return false;
    return true;
}

bool query_plan_is_short(const struct query_plan *plan)
{
    const struct query_subquery *query = &plan->query;

    if (plan->rest || query->source_count || query->key_count || query->distinct ||
        (query->filter && !is_short(query->filter)) || !is_short(query->select))
        return false;
    for (size_t i = 0; i < query->aggregate_count; i++)
        if (query->aggregates[i].kind == QUERY_MAKE_LIST ||
            query->aggregates[i].kind == QUERY_MAKE_SET || !is_short(query->aggregates[i].argument))
            return false;
    for (size_t i = 0; i < query->order_count; i++)
        if (!is_short(query->order[i].expression))
            return false;
    return true;
}
