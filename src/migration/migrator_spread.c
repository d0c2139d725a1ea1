/* A key value over several partitions, and back.
 *
 * The key gets partitions of its own, as by an isolation, and those are cut by the ids of its items
 * where their bytes are about even: at the shortest beginning of an item's key that the item before
 * it does not reach. All of its items are walked for that, which is little beside copying them. */
#include "catalogue/container_usage.h"
#include "catalogue/migration.h"
#include "item/item.h"
#include "migration/migrator_private.h"
#include "partition/layout.h"
#include "partition/strategy.h"

/* Part of the source's share that a key or its neighbours get at least. */
#define SHARE_LEAST 0.05

static bool key_check(const struct partition_definition *definition,
                      const struct partition_key *key, struct error *err)
{
    return (key->count == definition->path_count && !key->partial && !key->open) ||
           error_set(err, ERROR_BAD_REQUEST, "only a whole partition key is spread or gathered");
}

/* --- Where to cut ---------------------------------------------------------------------------- */

struct walk {
    struct arena *arena;
    struct buf before;               /* key of the item before */
    uint64_t bytes, items;           /* of the key */
    uint64_t bytes_done, items_done; /* before the present item */
    size_t parts;
    struct slice *points;
    size_t count;
};

/* The beginning of an item's key that is behind all of the one before. */
static struct slice separator(struct arena *arena, struct slice before, struct slice key)
{
    size_t same = 0;

    while (same < before.len && same < key.len && before.data[same] == key.data[same])
        same++;
    assert(same < key.len); /* keys ascend */
    return arena_copy(arena, slice_first(key, same + 1));
}

/* Does a part begin with this item? Where most of it lies behind the point wanted, or where each of
 * those left has to have a part for itself. */
static bool is_point(const struct walk *walk, size_t bytes)
{
    size_t left = walk->parts - 1 - walk->count;
    uint64_t wanted = walk->bytes / walk->parts * (walk->count + 1);

    return left && walk->items_done &&
           (walk->bytes_done + bytes / 2 >= wanted || walk->items_done + left >= walk->items);
}

static void item_pass(struct walk *walk, struct slice key, size_t bytes)
{
    if (is_point(walk, bytes))
        walk->points[walk->count++] = separator(walk->arena, buf_slice(&walk->before), key);
    walk->bytes_done += bytes;
    walk->items_done++;
    buf_clear(&walk->before);
    buf_append_slice(&walk->before, key);
}

static bool items_walk(struct walk *walk, struct engine *engine, uint32_t partition,
                       struct slice logical, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct slice min = item_family_key(walk->arena, PARTITION_FAMILY_ITEM, logical);
    struct slice max = arena_join(walk->arena, (const struct slice[]){min, SLICE("\xFF")}, 2);

    if (!engine_iterator_new(engine, NULL, partition, (struct engine_range){min, max}, false,
                             ENGINE_READ_ONCE, &iterator, err))
        return false;
    for (;;) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        item_pass(walk, slice_skip(entry.key, 1), entry.key.len + entry.value.len);
    }
}

/* What the key has, in whichever of its parts: its sums are in the first. Others may share its
 * routing key. */
static bool usage_of(const struct container *container, const struct partition_span *first,
                     struct slice logical, struct arena *arena, struct container_usage *ret_usage,
                     struct error *err)
{
    struct slice behind = arena_join(arena, (const struct slice[]){logical, SLICE("\xFF")}, 2);

    return container_usage_range(container, first, (struct partition_range){logical, behind}, arena,
                                 ret_usage, err);
}

/* parts - 1 points within the key. */
static bool points_find(const struct container *container, const struct partition_span *span,
                        struct slice logical, const struct container_usage *usage, size_t parts,
                        struct arena *arena, struct slice *ret_points, struct error *err)
{
    struct walk walk = {.arena = arena,
                        .bytes = usage->bytes,
                        .items = usage->items,
                        .parts = parts,
                        .points = ret_points};
    bool fine;

    buf_init(&walk.before, ENGINE_KEY_MAX);
    fine = items_walk(&walk, container_engine(container, span->node), span->id, logical, err);
    buf_done(&walk.before);
    if (!fine)
        return false;
    for (size_t i = 0; i < walk.count; i++)
        if (ret_points[i].len > PARTITION_ROUTING_KEY_MAX)
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "the key and its ids are too long to be spread: a bound would have "
                             "%zu bytes",
                             ret_points[i].len);
    return walk.count + 1 == parts ||
           error_set(err, ERROR_BAD_REQUEST,
                     "the key has too few items to be spread over %zu parts: %llu", parts,
                     (unsigned long long)walk.items_done);
}

/* --- Spreading ------------------------------------------------------------------------------- */

/* What the key and its neighbours get of the throughput: by bytes, and parts alike. */
static void weights_fill(double *weights, size_t before, size_t parts, size_t behind,
                         uint64_t key_bytes, uint64_t all_bytes)
{
    double heat = all_bytes ? (double)key_bytes / (double)all_bytes : 1;

    if (before + behind)
        heat = MIN(MAX(heat, SHARE_LEAST), 1 - SHARE_LEAST);
    else
        heat = 1;
    for (size_t i = 0; i < before + parts + behind; i++)
        weights[i] = i >= before && i < before + parts ? heat / (double)parts
                                                       : (1 - heat) / (double)(before + behind);
}

bool migrator_spread(struct migrator *migrator, const struct container *container,
                     const struct partition_key *key, size_t parts, struct migration **ret_plan,
                     struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice bounds[MIGRATION_TARGETS_MAX];
    double weights[MIGRATION_TARGETS_MAX];
    struct migration_request request = {.kind = MIGRATION_SPREAD,
                                        .source_count = 1,
                                        .bounds = bounds,
                                        .weights = weights,
                                        .cut = PARTITION_CUT_ISOLATED,
                                        .ret_plan = ret_plan};
    const struct partition_definition *definition;
    struct container_usage usage, all;
    const struct partition_span *span;
    struct partition_range range;
    struct slice logical;
    size_t spans, before, behind;

    if (parts < 2 || parts > MIGRATION_TARGETS_MAX - 2)
        return error_set(err, ERROR_BAD_REQUEST, "a key is spread over 2 to %d parts",
                         MIGRATION_TARGETS_MAX - 2);
    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    definition = &definition_fields(container_definition(now))->key;
    if (!key_check(definition, key, err))
        return false;
    logical = item_logical(definition, key, arena);
    range = partition_route_range(definition, key, arena);
    span = partition_map_overlap(container_map(now), range, &spans);
    if (spans != 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the key is spread over %zu parts already: gather it first", spans);
    before = slice_compare(range.min, span->min) > 0;
    behind = slice_compare(range.max, span->max) < 0;
    if (!usage_of(now, span, logical, arena, &usage, err) ||
        !container_usage_partition(now, span, arena, &all, err) ||
        !points_find(now, span, logical, &usage, parts, arena, bounds + before, err))
        return false;
    if (before)
        bounds[0] = range.min;
    if (behind)
        bounds[before + parts - 1] = range.max;
    weights_fill(weights, before, parts, behind, usage.bytes, all.bytes);
    request.sources = &span->id;
    request.target_count = before + parts + behind;
    request.ended = request.spread = range;
    return migrator_begin(migrator, now, &request, false, err);
}

bool migrator_gather(struct migrator *migrator, const struct container *container,
                     const struct partition_key *key, struct migration **ret_plan,
                     struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint32_t sources[MIGRATION_SOURCES_MAX];
    const struct partition_definition *definition;
    const struct partition_span *span;
    struct container_usage usage;
    struct partition_range range;
    uint64_t bytes_max;
    size_t count;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    definition = &definition_fields(container_definition(now))->key;
    if (!key_check(definition, key, err))
        return false;
    range = partition_route_range(definition, key, arena);
    span = partition_map_overlap(container_map(now), range, &count);
    if (count < 2)
        return error_set(err, ERROR_BAD_REQUEST, "the key is not spread: it is in partition %u",
                         span->id);
    if (!usage_of(now, span, item_logical(definition, key, arena), arena, &usage, err))
        return false;
    bytes_max = container_limits(now)->partition_bytes_max;
    if (bytes_max && usage.bytes > bytes_max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the key has %llu bytes, more than the %llu a physical partition may have",
                         (unsigned long long)usage.bytes, (unsigned long long)bytes_max);
    assert(count <= MIGRATION_SOURCES_MAX); /* as many as it was spread over */
    for (size_t i = 0; i < count; i++)
        sources[i] = span[i].id;
    return migrator_begin(migrator, now,
                          &(struct migration_request){.kind = MIGRATION_GATHER,
                                                      .sources = sources,
                                                      .source_count = count,
                                                      .target_count = 1,
                                                      .ret_plan = ret_plan},
                          false, err);
}
