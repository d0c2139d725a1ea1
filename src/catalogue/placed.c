#include "catalogue/placed.h"

#include "catalogue/catalogue_private.h"
#include "definition/rekey.h"

static bool places(const struct definition *definition)
{
    return index_policy_places(definition_fields(definition)->policy);
}

bool container_places(const struct container *container)
{
    bool found = places(container->definition);

    for (uint32_t i = 0; i < container->before_count; i++)
        found |= places(container->before[i]);
    return found;
}

static bool is_on_one_node(const struct partition_map *map)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);

    for (size_t i = 1; i < count; i++)
        if (spans[i].node != spans[0].node)
            return false;
    return true;
}

bool catalogue_placed_lets_replace(const struct container *container,
                                   const struct definition *definition, struct error *err)
{
    if (!places(definition) || container_places(container))
        return true;
    if (container->migration)
        return error_set(err, ERROR_BUSY,
                         "a migration of container \"%.*s\" is under way: add an index with "
                         "\"placed\" behind it",
                         SLICE_ARG(container->state.info.id));
    if (container->promotions.count)
        return error_set(err, ERROR_PROMOTION_BOUND,
                         "container \"%.*s\" is tied to another by a promotion: it takes no index "
                         "with \"placed\"",
                         SLICE_ARG(container->state.info.id));
    return is_on_one_node(container->map) ||
           error_set(err, ERROR_NOT_SUPPORTED,
                     "container \"%.*s\" is on several nodes: an index with \"placed\" takes one",
                     SLICE_ARG(container->state.info.id));
}

bool catalogue_placed_lets_migrate(const struct container *container,
                                   const struct migration_request *request, struct error *err)
{
    CLEANUP(definition_unref) struct definition *placed = NULL;
    size_t count;

    if (!container_places(container))
        return true;
    for (size_t i = 0; request->nodes && i < request->target_count; i++)
        if (request->nodes[i] != partition_map_spans(container->map, &count)[0].node)
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "container \"%.*s\" has an index with \"placed\", which keeps it on "
                             "one node: drop that index first",
                             SLICE_ARG(container->state.info.id));
    if (request->kind == MIGRATION_REKEY && !places(container->definition))
        return error_set(err, ERROR_BUSY,
                         "entries of an index with \"placed\" are still being removed from "
                         "container \"%.*s\": try again later",
                         SLICE_ARG(container->state.info.id));
    return request->kind != MIGRATION_REKEY ||
           definition_placed_as(container->definition, request->definition, &placed, err);
}

bool catalogue_placed_lets_promote(const struct container *container, struct error *err)
{
    return !container_places(container) ||
           error_set(err, ERROR_PROMOTION_UNFIT,
                     "no key of container \"%.*s\" is promoted: it has an index with \"placed\"",
                     SLICE_ARG(container->state.info.id));
}
