#include "catalogue/container_space.h"

#include "catalogue/migration.h"
#include "definition/rekey.h"

static struct engine *engine_of(void *nodes, uint32_t node)
{
    return container_engine(nodes, node);
}

static struct commit *commit_of(void *nodes, uint32_t node)
{
    return container_commit(nodes, node);
}

static bool space_renew(struct item_space *space, struct error *err)
{
    struct item_holds *holds = space->holds;
    struct container *container;
    bool rekeyed, read_only = space->read_only;

    if (!container_renew(space->nodes, &container, err))
        return false;
    rekeyed = space->rekeyed ||
              !definition_keys_equal(&space->definition->key,
                                     &definition_fields(container_definition(container))->key);
    space->release(space);
    *space = container_space(container, space->clock, space->gates);
    space->holds = holds;
    space->read_only = read_only;
    space->renewed = true;
    space->rekeyed = rekeyed;
    return true;
}

static bool space_is_current(void *container)
{
    return container_is_current(container);
}

static void space_release(struct item_space *space)
{
    if (space->renewed)
        container_unref(space->nodes);
    space->renewed = false;
}

/* A physical partition that is too large is split, so most have no limit. A reference container is
 * kept small as a whole: each of its partitions has an equal part. */
static int64_t partition_bytes_max(const struct container *container,
                                   const struct definition_limits *limits)
{
    uint64_t max = UINT64_MAX;
    size_t count;

    if (container_is_fixed(container))
        max = MIN(limits->partition_bytes_max, container_bytes_max(container));
    if (definition_fields(container_definition(container))->reference) {
        (void)partition_map_spans(container_map(container), &count);
        max = MIN(max, MAX(limits->reference_bytes_max / count, UINT64_C(1)));
    }
    return max == UINT64_MAX ? 0 : (int64_t)max;
}

struct item_space container_space(struct container *container, const struct clock *clock,
                                  struct item_gates *gates)
{
    const struct definition_limits *limits = container_limits(container);
    struct definition *const *before;
    size_t before_count = container_policies_before(container, &before);
    struct item_space space = {
        .map = container_map(container),
        .definition = definition_fields(container_definition(container)),
        .policy_version = container_policy_version(container),
        .writers = container_writers(container),
        .policies_before_count = before_count,
        /* A physical partition that has grown too large is split; what cannot be split is one
         * logical partition, so that one must fit, unless it is spread. */
        .logical_bytes_max =
            (int64_t)MIN(limits->logical_partition_bytes_max, limits->partition_bytes_max),
        .spread_bytes_max = (int64_t)limits->logical_partition_bytes_max,
        .partition_bytes_max = partition_bytes_max(container, limits),
        .item_bytes_max = limits->item_bytes_max,
        .key_limits = {.bytes_max = limits->key_bytes_max},
        .id_bytes_max = limits->item_id_bytes_max,
        .clock = clock,
        .gates = gates,
        .nodes = container,
        .engine = engine_of,
        .commit = commit_of,
        .renew = space_renew,
        .release = space_release,
        .is_current = space_is_current,
        .since_ms = container_since(container),
    };

    space.history = container_history(container);
    space.read_only = space.definition->view.form != DEFINITION_VIEW_NONE;
    if (container_promotions(container)->count)
        space.promotions = container_promotions(container);
    static_assert((int)CONTAINER_POLICIES_MAX <= (int)CONTAINER_POLICIES_BEFORE_MAX,
                  "all of them fit");
    for (size_t i = 0; i < before_count; i++)
        space.policies_before[i] = definition_fields(before[i])->policy;
    return space;
}
