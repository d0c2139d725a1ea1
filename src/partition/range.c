/* Range: keys that are near each other are stored near each other. Nothing is known of keys to come
 * but what the creator of a container said, so it begins with one span or with those its bounds
 * make, and is split where its data is. */
#include "partition/strategy_private.h"

static void range_route(const struct partition_definition *definition UNUSED,
                        const struct partition_key *key, struct buf *buf)
{
    for (size_t i = 0; i < key->count; i++)
        component_append(&key->components[i], buf);
}

static bool range_skip(const struct partition_definition *definition, struct slice *bytes,
                       struct error *err)
{
    struct slice rest = *bytes;

    for (size_t i = 0; i < definition->path_count; i++)
        if (!component_skip(&rest, err))
            return false;
    *bytes = rest;
    return true;
}

/* All of them, or as many as are asked for, spread over all. */
static size_t range_split_points(const struct partition_definition *definition, size_t n,
                                 struct arena *arena, struct slice *ret_points)
{
    size_t all = definition->bound_count, count = MIN(n - 1, all);

    assert(n > 0);
    for (size_t i = 0; i < count; i++)
        ret_points[i] =
            arena_copy(arena, definition->bounds[(i + 1) * (all + 1) / (count + 1) - 1]);
    return count;
}

const struct strategy strategy_range = {range_route, range_skip, range_split_points,
                                        strategy_compare_bytes, true};
