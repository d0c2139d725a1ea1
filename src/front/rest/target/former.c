#include "front/rest/target/former.h"

#include "partition/counters.h"
#include "partition/former.h"
#include "partition/layout.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"
#include "query/expression/expression.h"
#include "query/function/function.h"

enum { COUNTERS_MAX = 1000 }; /* looked at, of a partial key */

/* Does a logical partition in this range have items? The counters tell. */
static bool span_has_items(const struct rest_items *items, const struct partition_span *span,
                           struct engine_range range, bool *ret_has, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct item_scope scope = item_space_span_scope(&items->space, span);

    if (!engine_iterator_new(scope.engine, NULL, scope.partition, range, false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    for (size_t i = 0; i < COUNTERS_MAX && !*ret_has; i++) {
        int64_t numbers[COUNTER_NUMBERS];
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!counter_decode(entry.value, numbers, err))
            return false;
        *ret_has = numbers[1] > 0;
    }
    return true;
}

bool rest_former_is_meant(const struct rest_items *items, const struct partition_key *key,
                          struct arena *arena, bool *ret_meant, struct error *err)
{
    struct partition_range range;
    struct engine_range counters;
    const struct partition_span *spans;
    bool has = false;
    size_t count;

    *ret_meant = key->former_only;
    if (!key->former || key->former_only || key->open || key->count == 0)
        return true;
    range = partition_route_range(&items->space.definition->key, key, arena);
    counters.min = arena_join(arena, (const struct slice[]){SLICE("cl"), range.min}, 2);
    counters.max = arena_join(arena, (const struct slice[]){SLICE("cl"), range.max}, 2);
    spans = partition_map_overlap(items->space.map, range, &count);
    for (size_t i = 0; i < count && !has; i++)
        if (!span_has_items(items, &spans[i], counters, &has, err))
            return false;
    *ret_meant = !has;
    return true;
}

static const struct query_expression *path_of(struct query_build *build,
                                              const struct document_path *path)
{
    const struct query_expression *value = query_variable(build, 0);

    for (size_t i = 0; i < path->count; i++)
        value = query_property_of(build, value, path->segments[i].name);
    return value;
}

static const struct query_expression *component_is(struct query_build *build,
                                                   const struct document_path *path,
                                                   const struct document_value *value)
{
    const struct query_expression *operand = path_of(build, path);

    if (value->type != DOCUMENT_UNDEFINED)
        return query_compare(build, QUERY_EQUAL, operand, query_constant(build, *value));
    return query_not(build,
                     query_call(build, query_function_find(SLICE("IS_DEFINED")), &operand, 1));
}

bool rest_former_filter(const struct rest_items *items, const struct partition_key *former,
                        struct arena *arena, struct query_plan *plan, struct error *err)
{
    const struct partition_definition *formerly = items->space.definition->key.formerly;
    const struct query_expression *filter = plan->query.filter;
    struct query_build build = {.arena = arena};

    if (plan->constant)
        return true;
    for (size_t i = 0; i < former->count; i++) {
        const struct query_expression *is;

        if (formerly->synthetic && formerly->synthetic->target == i)
            return error_set(err, ERROR_QUERY_NOT_SUPPORTED,
                             "the container was re-keyed: a query by a key that the server made "
                             "before needs the key it has now, or what that is made of");
        is = component_is(&build, &formerly->paths[i], &former->components[i]);
        filter = filter ? query_and(&build, filter, is) : is;
    }
    if (build.failed) {
        *err = build.error;
        return false;
    }
    plan->query.filter = filter;
    return true;
}

size_t rest_former_keep(const struct rest_items *items, const struct partition_key *former,
                        struct arena *arena, struct item *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (partition_former_fits(items->space.definition->key.formerly, list[i].document, former,
                                  arena))
            list[kept++] = list[i];
    return kept;
}
