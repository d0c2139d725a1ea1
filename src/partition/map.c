/* A sorted array searched by bisection. A tree would make splits cheaper, but a container splits a
 * few times in its life and is searched on every request. Ids have an array of their own, for
 * requests that name one. */
#include "partition/map.h"

#include <endian.h>
#include <math.h>
#include <stdatomic.h>

/* Shares are divided and added with every split and merge; this much may be lost on the way. */
#define SHARES_SLACK 1e-6

struct partition_map {
    atomic_uint refs;
    uint64_t version;
    struct arena *arena; /* owns this map, its spans and their bounds */
    size_t count;
    struct partition_span *spans;        /* by min */
    const uint64_t *heads;               /* of their min: what is searched */
    const struct partition_span **by_id; /* by id */
    struct partition_gone *gone;         /* those that went last first */
    size_t gone_count;
    bool is_spread; /* a span begins within a key value */
};

static struct partition_span *spans_copy_sorted(const struct partition_span *spans, size_t count,
                                                struct arena *arena);
static const uint64_t *heads_of(const struct partition_span *spans, size_t count,
                                struct arena *arena);
static const struct partition_span **spans_by_id(const struct partition_span *spans, size_t count,
                                                 struct arena *arena);
static bool spans_tile(const struct partition_span *spans, size_t count, struct error *err);
static bool ids_differ(const struct partition_span *const *by_id, size_t count, struct error *err);
static bool shares_make_one(const struct partition_span *spans, size_t count, struct error *err);
static bool parts_fit(const struct partition_span *spans, size_t count, bool *ret_spread,
                      struct error *err);

static bool count_fits(size_t count, struct error *err)
{
    if (count > PARTITION_SPANS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%zu physical partitions are over the limit of %d",
                         count, PARTITION_SPANS_MAX);
    return true;
}

bool partition_map_new(const struct partition_span *spans, size_t count, uint64_t version,
                       struct partition_map **ret_map, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_map *map = ARENA_NEW(arena, struct partition_map);

    if (!count_fits(count, err))
        return false;
    atomic_init(&map->refs, 1);
    map->version = version;
    map->count = count;
    map->spans = spans_copy_sorted(spans, count, arena);
    map->heads = heads_of(map->spans, count, arena);
    map->by_id = spans_by_id(map->spans, count, arena);
    if (!spans_tile(map->spans, count, err) || !ids_differ(map->by_id, count, err) ||
        !shares_make_one(map->spans, count, err) ||
        !parts_fit(map->spans, count, &map->is_spread, err))
        return false; /* the arena goes, *ret_map stays untouched */

    map->arena = TAKE(arena);
    *ret_map = map;
    return true;
}

void partition_map_set_gone(struct partition_map *map, const struct partition_gone *gone,
                            size_t count)
{
    assert(!partition_map_is_shared(map));
    map->gone_count = MIN(count, (size_t)PARTITION_GONE_MAX);
    map->gone = ARENA_ARRAY(map->arena, struct partition_gone, map->gone_count);
    for (size_t i = 0; i < map->gone_count; i++)
        map->gone[i] = (struct partition_gone){
            .id = gone[i].id,
            .range = {.min = arena_copy(map->arena, gone[i].range.min),
                      .max = arena_copy(map->arena, gone[i].range.max)},
        };
}

bool partition_map_next(const struct partition_map *before, const struct partition_span *spans,
                        size_t count, uint64_t version, struct partition_map **ret_map,
                        struct error *err)
{
    struct partition_gone gone[PARTITION_GONE_MAX];
    struct partition_map *map;
    size_t gone_count = 0;

    if (!partition_map_new(spans, count, version, &map, err))
        return false;
    for (size_t i = 0; i < before->count && gone_count < PARTITION_GONE_MAX; i++) {
        const struct partition_span *span = &before->spans[i];

        if (!partition_map_find_id(map, span->id))
            gone[gone_count++] = (struct partition_gone){
                .id = span->id, .range = {.min = span->min, .max = span->max}};
    }
    for (size_t i = 0; i < before->gone_count && gone_count < PARTITION_GONE_MAX; i++)
        if (!partition_map_find_id(map, before->gone[i].id)) /* a promoted one may be back */
            gone[gone_count++] = before->gone[i];
    partition_map_set_gone(map, gone, gone_count);
    *ret_map = map;
    return true;
}

const struct partition_gone *partition_map_gone(const struct partition_map *map, size_t *ret_count)
{
    *ret_count = map->gone_count;
    return map->gone;
}

bool partition_map_find_gone(const struct partition_map *map, uint32_t id,
                             struct partition_range *ret_range)
{
    for (size_t i = 0; i < map->gone_count; i++)
        if (map->gone[i].id == id) {
            *ret_range = map->gone[i].range;
            return true;
        }
    return false;
}

static int compare_min(const void *a, const void *b)
{
    const struct partition_span *left = a, *right = b;

    return slice_compare(left->min, right->min);
}

static struct partition_span *spans_copy_sorted(const struct partition_span *spans, size_t count,
                                                struct arena *arena)
{
    struct partition_span *copies = ARENA_ARRAY(arena, struct partition_span, count);

    for (size_t i = 0; i < count; i++) {
        struct partition_span *copy = &copies[i];
        struct slice parents = slice_of(spans[i].parents, spans[i].parent_count * sizeof(uint32_t));

        *copy = spans[i];
        copy->min = arena_copy(arena, copy->min);
        copy->max = arena_copy(arena, copy->max);
        copy->parents = (const uint32_t *)(const void *)arena_copy(arena, parents).data;
    }
    qsort(copies, count, sizeof *copies, compare_min);
    return copies;
}

static int compare_id(const void *a, const void *b)
{
    const struct partition_span *const *left = a, *const *right = b;

    return ((*left)->id > (*right)->id) - ((*left)->id < (*right)->id);
}

static const struct partition_span **spans_by_id(const struct partition_span *spans, size_t count,
                                                 struct arena *arena)
{
    const struct partition_span **by_id = ARENA_ARRAY(arena, const struct partition_span *, count);

    for (size_t i = 0; i < count; i++)
        by_id[i] = &spans[i];
    qsort(by_id, count, sizeof *by_id, compare_id);
    return by_id;
}

/* A gap loses items, an overlap answers for a key twice. Both are refused here, so no later code
 * looks for them. */
static bool spans_tile(const struct partition_span *spans, size_t count, struct error *err)
{
    struct slice reached = PARTITION_ROUTING_MIN;

    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(spans[i].min, reached))
            return error_set(err, ERROR_RANGES_BROKEN,
                             "span %u does not begin where the one before it ends", spans[i].id);
        if (slice_compare(spans[i].min, spans[i].max) >= 0)
            return error_set(err, ERROR_RANGES_BROKEN, "span %u is empty", spans[i].id);
        if (spans[i].max.len > PARTITION_ROUTING_KEY_MAX)
            return error_set(err, ERROR_RANGES_BROKEN, "span %u has a bound of %zu bytes",
                             spans[i].id, spans[i].max.len);
        reached = spans[i].max;
    }
    if (!slice_equal(reached, PARTITION_ROUTING_MAX))
        return error_set(err, ERROR_RANGES_BROKEN, "spans do not end at the last key");
    return true;
}

static bool ids_differ(const struct partition_span *const *by_id, size_t count, struct error *err)
{
    for (size_t i = 1; i < count; i++) {
        if (by_id[i - 1]->id == by_id[i]->id)
            return error_set(err, ERROR_RANGES_BROKEN, "two spans have the id %u", by_id[i]->id);
    }
    return true;
}

static bool shares_make_one(const struct partition_span *spans, size_t count, struct error *err)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (!(spans[i].share >= 0 && spans[i].share <= 1)) /* so written, it refuses NaN too */
            return error_set(err, ERROR_RANGES_BROKEN, "span %u has a share of %g", spans[i].id,
                             spans[i].share);
        sum += spans[i].share;
    }
    if (fabs(sum - 1) > SHARES_SLACK)
        return error_set(err, ERROR_RANGES_BROKEN, "shares of all spans add up to %g", sum);
    return true;
}

/* A transaction writes to several parts of a key and to what belongs to the whole of it, so they
 * are on one node. */
static bool parts_fit(const struct partition_span *spans, size_t count, bool *ret_spread,
                      struct error *err)
{
    *ret_spread = false;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].cut != PARTITION_CUT_SPREAD)
            continue;
        if (i == 0)
            return error_set(err, ERROR_RANGES_BROKEN, "the first span begins within a key");
        if (spans[i].node != spans[i - 1].node)
            return error_set(err, ERROR_RANGES_BROKEN,
                             "spans %u and %u are parts of one key and on different nodes",
                             spans[i - 1].id, spans[i].id);
        *ret_spread = true;
    }
    return true;
}

bool partition_map_new_even(const struct partition_map_plan *plan, struct partition_map **ret_map,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_span *spans;
    struct slice *points;
    size_t count;

    assert(plan->count > 0 && plan->node_count > 0);
    if (!count_fits(plan->count, err))
        return false;
    assert(plan->first_id <= UINT32_MAX - plan->count);
    spans = ARENA_ARRAY(arena, struct partition_span, plan->count);
    points = ARENA_ARRAY(arena, struct slice, plan->count);
    count = partition_route_split_points(plan->definition, plan->count, arena, points) + 1;
    assert(count <= plan->count && plan->epoch > 0);
    points[count - 1] = PARTITION_ROUTING_MAX;
    for (size_t i = 0; i < count; i++) {
        spans[i] = (struct partition_span){
            .id = plan->first_id + (uint32_t)i,
            .node = plan->nodes[i % plan->node_count],
            .epoch = plan->epoch,
            .share = 1.0 / (double)count,
            .min = i ? points[i - 1] : PARTITION_ROUTING_MIN,
            .max = points[i],
        };
    }
    return partition_map_new(spans, count, 1, ret_map, err);
}

struct partition_map *partition_map_ref(struct partition_map *map)
{
    unsigned before = atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);

    assert(before > 0);
    return map;
}

void partition_map_unref(struct partition_map *map)
{
    unsigned before;

    if (!map)
        return;
    before = atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        arena_free(map->arena); /* the map is in it */
}

bool partition_map_is_shared(const struct partition_map *map)
{
    return atomic_load_explicit(&map->refs, memory_order_acquire) > 1;
}

uint64_t partition_map_version(const struct partition_map *map)
{
    return map->version;
}

const struct partition_span *partition_map_spans(const struct partition_map *map, size_t *ret_count)
{
    *ret_count = map->count;
    return map->spans;
}

/* The first eight bytes as a number. Where two differ, so do the bytes they are of, in the same
 * direction: what a shorter one lacks counts as zeros, and nothing is below those. */
static uint64_t head_of(struct slice routing_key)
{
    uint64_t head = 0;

    if (routing_key.len)
        memcpy(&head, routing_key.data, MIN(routing_key.len, sizeof head));
    return be64toh(head);
}

static const uint64_t *heads_of(const struct partition_span *spans, size_t count,
                                struct arena *arena)
{
    uint64_t *heads = ARENA_ARRAY(arena, uint64_t, count);

    for (size_t i = 0; i < count; i++)
        heads[i] = head_of(spans[i].min);
    return heads;
}

/* The last span that begins at or before the key: the first begins before every key. */
static size_t find_index(const struct partition_map *map, struct slice routing_key)
{
    size_t low = 0, high = map->count;
    uint64_t head = head_of(routing_key);

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (map->heads[middle] < head ||
            (map->heads[middle] == head && slice_compare(map->spans[middle].min, routing_key) <= 0))
            low = middle;
        else
            high = middle;
    }
    assert(low < map->count && slice_compare(map->spans[low].min, routing_key) <= 0);
    return low;
}

const struct partition_span *partition_map_find(const struct partition_map *map,
                                                struct slice routing_key)
{
    return &map->spans[find_index(map, routing_key)];
}

bool partition_map_is_spread(const struct partition_map *map)
{
    return map->is_spread;
}

bool partition_map_is_part(const struct partition_map *map, const struct partition_span *span)
{
    return span->cut == PARTITION_CUT_SPREAD ||
           (span + 1 < map->spans + map->count && span[1].cut == PARTITION_CUT_SPREAD);
}

const struct partition_span *partition_map_parts(const struct partition_map *map,
                                                 struct slice logical, size_t *ret_count)
{
    size_t first = find_index(map, logical), end = first + 1;

    while (end < map->count && map->spans[end].cut == PARTITION_CUT_SPREAD &&
           slice_starts_with(map->spans[end].min, logical))
        end++;
    *ret_count = end - first;
    return &map->spans[first];
}

const struct partition_span *partition_map_find_id(const struct partition_map *map, uint32_t id)
{
    size_t low = 0, high = map->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->by_id[middle]->id == id)
            return map->by_id[middle];
        if (map->by_id[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct partition_span *partition_map_overlap(const struct partition_map *map,
                                                   struct partition_range range, size_t *ret_count)
{
    size_t first = find_index(map, range.min), last = first;
    bool empty = slice_compare(range.min, range.max) >= 0 ||
                 slice_compare(range.min, PARTITION_ROUTING_MAX) >= 0;

    if (!empty) {
        last = find_index(map, range.max);
        if (slice_compare(map->spans[last].min, range.max) < 0)
            last++; /* it begins inside; otherwise it begins just where the range ends */
    }
    assert(first <= last && last <= map->count);
    *ret_count = last - first;
    return &map->spans[first];
}

const char *partition_cut_name(enum partition_cut cut)
{
    static const char *const names[PARTITION_CUTS] = {"needed", "hand", "isolated", "placed",
                                                      "spread"};

    assert((unsigned)cut < PARTITION_CUTS);
    return names[cut];
}
