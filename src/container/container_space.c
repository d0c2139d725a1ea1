#include "container/container_space.h"

static struct engine *engine_of(void *nodes, uint32_t node)
{
    return container_engine(nodes, node);
}

static struct commit *commit_of(void *nodes, uint32_t node)
{
    return container_commit(nodes, node);
}

struct item_space container_space(struct container *container, const struct clock *clock,
                                  struct item_gates *gates)
{
    const struct catalogue_limits *limits = container_limits(container);

    return (struct item_space){
        .map = container_map(container),
        .definition = definition_fields(container_definition(container)),
        .policy_version = 1,
        .logical_bytes_max = (int64_t)limits->logical_partition_bytes_max,
        .item_bytes_max = limits->item_bytes_max,
        .clock = clock,
        .gates = gates,
        .nodes = container,
        .engine = engine_of,
        .commit = commit_of,
    };
}
