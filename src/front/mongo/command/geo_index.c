#include "front/mongo/command/geo_index.h"

#include "index/policy.h"

bool mongo_geo_index_check(const struct mongo_collection *collection, const struct mongo_near *near,
                           struct error *err)
{
    const struct index_definition *const *list;
    size_t count;

    if (!collection->container)
        return true;
    list = index_policy_besides(collection->space.definition->policy, &count);
    for (size_t i = 0; i < count; i++)
        if (mongo_near_takes(near, list[i]))
            return true;
    return mongo_error_set(err, MONGO_NO_QUERY_EXECUTION_PLANS,
                           "error processing query: GEONEAR  field=%.*s planner returned error :: "
                           "caused by :: unable to find index for $geoNear query",
                           SLICE_ARG(mongo_near_key(near)));
}

static struct slice dotted(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < path->count; i++) {
        buf_append_text(&text, i ? "." : "");
        buf_append_slice(&text, path->segments[i].name);
    }
    return arena_copy(arena, buf_slice(&text));
}

bool mongo_geo_index_key(const struct mongo_collection *collection, struct arena *arena,
                         struct slice *ret_key, struct error *err)
{
    static const char *const names[] = {"2dsphere", "2d"};
    const struct index_definition *const *list;
    const struct index_part *found[2] = {NULL};
    size_t count, counts[2] = {0};
    int plane;

    *ret_key = SLICE_NONE;
    if (!collection->container)
        return true;
    list = index_policy_besides(collection->space.definition->policy, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i]->kind != &index_kind_spatial || list[i]->hidden ||
            list[i]->state != INDEX_READY)
            continue;
        plane = list[i]->spatial->rules.surface == SEARCH_PLANE;
        counts[plane]++;
        for (size_t n = 0; n < list[i]->part_count; n++)
            if (list[i]->parts[n].cells)
                found[plane] = &list[i]->parts[n];
    }
    plane = counts[1] > 0;
    if (!counts[plane])
        return mongo_error_set(err, MONGO_INDEX_NOT_FOUND,
                               "$geoNear requires a 2d or 2dsphere index, but none were found");
    if (counts[plane] > 1)
        return mongo_error_set(err, MONGO_INDEX_NOT_FOUND,
                               "There is more than one %s index; unsure which to use for $geoNear",
                               names[plane]);
    *ret_key = dotted(&found[plane]->path, arena);
    return true;
}
