/* The numbers of a partition are walked, which is cheap for they are small, and of their items a
 * reservoir is kept: each that comes takes the place of another with the chance that keeps all
 * equal. Items in the order of their keys would not do, for those of one key value stand together.
 */
#include "item/sample.h"

#include "base/random.h"
#include "item/cursor.h"

enum { FETCH = 64 };

struct reservoir {
    struct slice *keys; /* in the arena */
    size_t count, max;
    uint64_t seen;
    struct random random;
    struct arena *arena;
};

static void reservoir_offer(struct reservoir *reservoir, struct slice key)
{
    uint64_t at = reservoir->seen++;

    assert(reservoir->count <= reservoir->seen && reservoir->max > 0);
    if (reservoir->count < reservoir->max)
        at = reservoir->count++;
    else
        at = random_below(&reservoir->random, at + 1);
    if (at < reservoir->max)
        reservoir->keys[at] = arena_copy(reservoir->arena, key);
}

static bool span_walk(const struct view *view, struct reservoir *reservoir, uint64_t entries_max,
                      struct error *err)
{
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_hit hit;
    bool more = true;

    if (!cursor_open(view, &(struct cursor_request){.kind = CURSOR_NUMBERS}, &cursor, err))
        return false;
    while (more && cursor_entries(cursor) < entries_max) {
        if (!cursor_next(cursor, &hit, &more, err))
            return false;
        if (more)
            reservoir_offer(reservoir, hit.key);
    }
    return true;
}

static bool span_give(const struct view *view, const struct reservoir *reservoir,
                      const struct sample_request *request, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item items[FETCH];

    for (size_t i = 0; i < reservoir->count; i += FETCH) {
        size_t count = MIN(reservoir->count - i, (size_t)FETCH);

        arena_reset(arena);
        if (!view_fetch(view, reservoir->keys + i, count, arena, items, err))
            return false;
        for (size_t j = 0; j < count; j++)
            if (items[j].document.data)
                request->take(request->context, &items[j]);
    }
    return true;
}

/* Each partition gives its part, by the items it has. */
static size_t span_part(const struct view *view, uint64_t all, size_t max, struct error *err)
{
    uint64_t items, bytes;

    if (!view_count(view, SLICE_NONE, &items, &bytes, err) || !all)
        return 0;
    return all <= max ? (size_t)items : (size_t)((double)items / (double)all * (double)max + 0.5);
}

static bool items_count(const struct item_space *space, uint64_t *ret_items, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    *ret_items = 0;
    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);
        CLEANUP(view_done) struct view view = {0};
        uint64_t items, bytes;

        if (!view_open(&scope, &view, err) || !view_count(&view, SLICE_NONE, &items, &bytes, err))
            return false;
        *ret_items += items;
    }
    return true;
}

bool sample_items(const struct item_space *space, const struct sample_request *request,
                  uint64_t *ret_seen, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);
    uint64_t all, seen = 0;

    if (!items_count(space, &all, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(view_done) struct view view = {0};
        struct reservoir reservoir = {.arena = arena};
        uint64_t entries_max =
            request->entries_max ? MAX(request->entries_max / count, (size_t)1) : UINT64_MAX;

        if (!view_open(&scope, &view, err))
            return false;
        reservoir.max = span_part(&view, all, request->items_max, err);
        reservoir.keys = ARENA_ARRAY(arena, struct slice, reservoir.max + 1);
        random_seed(&reservoir.random, request->seed + i);
        if (reservoir.max && (!span_walk(&view, &reservoir, entries_max, err) ||
                              !span_give(&view, &reservoir, request, err)))
            return false;
        seen += reservoir.seen;
    }
    *ret_seen = seen;
    return true;
}
