#include "load/split_points.h"

#include "catalogue/container_usage.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "partition/strategy.h"

/* Even points are chosen from up to this many over all keys. */
enum { GRID = 65536 };

/* Going through the logical partitions in key order. */
struct walk {
    const struct partition_definition *definition;
    const struct partition_span *span;
    struct arena *arena;
    uint64_t total, passed; /* bytes: of all, before the present one */
    struct slice before;    /* routing key of the one before */
    struct slice last;      /* the last place a cut is possible at */
    size_t pieces;
    struct slice *points;
    size_t count;
};

static bool routing_of(const struct partition_definition *definition, struct slice key,
                       struct slice *ret_routing, struct error *err)
{
    struct slice logical = slice_skip(key, 2), rest = logical;

    if (!partition_route_skip(definition, &rest, err))
        return false;
    *ret_routing = slice_first(logical, logical.len - rest.len);
    return true;
}

/* The counters of a span's logical partitions. */
static bool logicals_iterate(const struct container *container, const struct partition_span *span,
                             struct engine_iterator **ret_iterator, struct error *err)
{
    static const uint8_t from[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t to[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};

    return engine_iterator_new(
        container_engine(container, span->node), NULL, span->id,
        (struct engine_range){slice_of(from, sizeof from), slice_of(to, sizeof to)}, false,
        ENGINE_READ_ANY, ret_iterator, err);
}

/* The next one that is not empty. *ret_found false: there is none. */
static bool logical_next(struct engine_iterator *iterator,
                         const struct partition_definition *definition, struct slice *ret_routing,
                         uint64_t *ret_bytes, bool *ret_found, struct error *err)
{
    for (;;) {
        int64_t numbers[COUNTER_NUMBERS];
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        *ret_found = entry.found == ENGINE_FOUND;
        if (!*ret_found)
            return true;
        if (!counter_decode(entry.value, numbers, err) ||
            !routing_of(definition, entry.key, ret_routing, err))
            return false;
        *ret_bytes = (uint64_t)MAX(numbers[0], (int64_t)0);
        if (numbers[1] > 0)
            return true; /* else it was emptied */
    }
}

/* A cut in front of a logical partition, where the next piece should begin by now. */
static void place_offer(struct walk *walk, struct slice routing)
{
    uint64_t wanted = walk->total / walk->pieces * (walk->count + 1);

    if (!walk->before.data || slice_equal(routing, walk->before) ||
        slice_compare(routing, walk->span->min) <= 0)
        return;
    walk->last = routing;
    if (walk->passed >= wanted && walk->count + 1 < walk->pieces)
        walk->points[walk->count++] = routing;
}

static bool logicals_walk(struct walk *walk, struct engine_iterator *iterator, struct error *err)
{
    for (;;) {
        struct slice routing;
        uint64_t bytes;
        bool found;

        if (!logical_next(iterator, walk->definition, &routing, &bytes, &found, err))
            return false;
        if (!found)
            return true;
        routing = arena_copy(walk->arena, routing);
        place_offer(walk, routing);
        walk->before = routing;
        walk->passed += bytes;
    }
}

bool split_points_by_bytes(const struct container *container, const struct partition_span *span,
                           size_t pieces, struct arena *arena, struct slice *ret_points,
                           size_t *ret_count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct walk walk = {
        .definition = &definition_fields(container_definition(container))->key,
        .span = span,
        .arena = arena,
        .pieces = pieces,
        .points = ret_points,
    };
    struct container_usage usage;

    assert(pieces >= 2);
    if (!container_usage_partition(container, span, arena, &usage, err) ||
        !logicals_iterate(container, span, &iterator, err))
        return false;
    walk.total = usage.bytes;
    if (!logicals_walk(&walk, iterator, err))
        return false;
    /* The largest comes last: cut in front of it. */
    if (walk.count == 0 && walk.last.data)
        ret_points[walk.count++] = walk.last;
    *ret_count = walk.count;
    return true;
}

bool split_points_bytes(const struct container *container, const struct partition_span *span,
                        const struct slice *bounds, size_t count, uint64_t *ret_bytes,
                        struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    size_t piece = 0;

    memset(ret_bytes, 0, (count + 1) * sizeof *ret_bytes);
    if (!logicals_iterate(container, span, &iterator, err))
        return false;
    for (;;) {
        struct slice routing;
        uint64_t bytes;
        bool found;

        if (!logical_next(iterator, definition, &routing, &bytes, &found, err))
            return false;
        if (!found)
            return true;
        while (piece < count && slice_compare(routing, bounds[piece]) >= 0)
            piece++;
        ret_bytes[piece] += bytes;
    }
}

/* Bounds that cut all keys into pieces reached about equally often. */
static struct slice *grid_make(const struct container *container, struct arena *arena,
                               size_t *ret_count)
{
    struct slice *grid = ARENA_ARRAY(arena, struct slice, GRID);

    *ret_count = partition_route_split_points(
        &definition_fields(container_definition(container))->key, GRID, arena, grid);
    return grid;
}

void split_points_reach(const struct container *container, struct arena *arena, double *ret_parts)
{
    size_t known, count, at = 0;
    const struct slice *grid = grid_make(container, arena, &known);
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        size_t first = at;

        while (at < known && (i + 1 == count || slice_compare(grid[at], spans[i].max) < 0))
            at++;
        ret_parts[i] = known ? (double)(at - first) / (double)known : 0;
    }
}

void split_points_even(const struct container *container, const struct partition_span *span,
                       size_t pieces, struct arena *arena, struct slice *ret_points,
                       size_t *ret_count)
{
    size_t first = 0, last, within, known;
    const struct slice *grid = grid_make(container, arena, &known);

    assert(pieces >= 2 && pieces < GRID);
    while (first < known && slice_compare(grid[first], span->min) <= 0)
        first++;
    for (last = first; last < known && slice_compare(grid[last], span->max) < 0;)
        last++;
    within = last - first;
    *ret_count = MIN(pieces - 1, within);
    for (size_t i = 0; i < *ret_count; i++)
        ret_points[i] = grid[first + within * (i + 1) / (*ret_count + 1)];
}
