/* Positions are keys: the item key, or the number, or the index key without its family byte. A page
 * goes on with the first entry behind (or before) its position. */
#include "item/scan.h"

#include "base/bytes.h"
#include "item/cursor.h"
#include "partition/layout.h"

enum {
    ITEMS_DEFAULT = 1000,
    BYTES_DEFAULT = 4 * 1024 * 1024,
    FETCH_AT_ONCE = 128,
    SORTED_ITEMS_MAX = 2000, /* of a logical partition that is read whole and sorted */
    SORTED_BYTES_MAX = 8 * 1024 * 1024,
};

static bool is_over(const struct item_scope *scope, const struct item *item)
{
    return item_is_over(&item->header, scope->definition->default_ttl,
                        clock_read_wall_ms(scope->clock));
}

/* The least key greater than this one. */
static struct slice key_next(struct arena *arena, struct slice key)
{
    uint8_t *next = arena_alloc(arena, key.len + 1);

    memcpy(next, key.data, key.len);
    next[key.len] = 0;
    return slice_of(next, key.len + 1);
}

/* Narrows a range so that it goes on behind the position. */
static void range_after(struct engine_range *range, uint8_t family, struct slice after,
                        bool backwards, struct arena *arena)
{
    struct slice key;

    if (!after.len)
        return;
    key = item_family_key(arena, family, after);
    if (backwards)
        range->max = key;
    else
        range->min = key_next(arena, key);
}

/* --- Items ----------------------------------------------------------------------------------- */

static struct engine_range item_range(const struct item_scan_request *request, struct arena *arena)
{
    struct slice family = item_family_key(arena, PARTITION_FAMILY_ITEM, SLICE_NONE);
    struct engine_range range = {.min = family, .max = cursor_prefix_end(arena, family)};

    if (request->logical.len) {
        range.min = item_family_key(arena, PARTITION_FAMILY_ITEM, request->logical);
        range.max = cursor_prefix_end(arena, range.min);
    }
    if (request->routing_min.data && slice_compare(request->routing_min, request->logical) > 0)
        range.min = item_family_key(arena, PARTITION_FAMILY_ITEM, request->routing_min);
    if (request->routing_max.data &&
        (!request->logical.len || slice_starts_with(request->routing_max, request->logical)))
        range.max = item_family_key(arena, PARTITION_FAMILY_ITEM, request->routing_max);
    if (slice_compare(range.min, range.max) > 0) /* a part of another key with this routing key */
        range.max = range.min;
    return range;
}

/* What a page gathers until it is full. */
struct gathering {
    const struct item_scope *scope;
    struct arena *arena;
    struct item_scan_page *page;
    size_t items_max, bytes_max, bytes;
};

static bool page_is_full(const struct gathering *g)
{
    return g->page->count == g->items_max || (g->page->count && g->bytes >= g->bytes_max);
}

static void page_add(struct gathering *g, const struct item *item)
{
    if (is_over(g->scope, item))
        return;
    assert(g->page->count < g->items_max);
    g->page->items[g->page->count++] = *item;
    g->bytes += item->document.len;
}

static bool scan_by_key(const struct item_scope *scope, const struct item_scan_request *request,
                        struct gathering *g, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = item_range(request, g->arena);
    struct engine_entry entry;

    range_after(&range, PARTITION_FAMILY_ITEM, request->after, request->backwards, g->arena);
    if (!item_scope_await(scope, PLEDGE_BEFORE_READING, err) ||
        !engine_iterator_new(scope->engine, NULL, scope->partition, range, request->backwards,
                             ENGINE_READ_ANY, &iterator, err) ||
        !item_scope_await(scope, PLEDGE_AFTER_READING, err))
        return false;
    for (;;) {
        struct item item;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (page_is_full(g)) {
            g->page->more = true;
            return true;
        }
        g->page->entries_read++;
        if (!item_decode(arena_copy(g->arena, slice_skip(entry.key, 1)),
                         arena_copy(g->arena, entry.value), &item, err))
            return false;
        page_add(g, &item);
        g->page->position = item.key;
    }
}

/* --- By number ------------------------------------------------------------------------------- */

static bool key_is_wanted(const struct item_scan_request *request, struct slice key)
{
    if (request->logical.len && !slice_starts_with(key, request->logical))
        return false;
    return (!request->routing_min.data || slice_compare(key, request->routing_min) >= 0) &&
           (!request->routing_max.data || slice_compare(key, request->routing_max) < 0);
}

/* Some numbers on the way through a partition. */
struct numbers {
    struct slice keys[FETCH_AT_ONCE], positions[FETCH_AT_ONCE]; /* of wanted items */
    size_t count;
    uint8_t last[8]; /* position of the last one looked at */
    bool ended;      /* there are no more */
};

static bool entries_are_used_up(const struct item_scan_request *request, const struct gathering *g)
{
    return request->entries_max && g->page->entries_read >= request->entries_max;
}

/* Reads the next numbers of the wanted items: up to FETCH_AT_ONCE, and no more than fit the page.
 */
static bool numbers_read(struct engine_iterator *iterator, const struct item_scan_request *request,
                         struct gathering *g, struct numbers *numbers, struct error *err)
{
    size_t room = MIN((size_t)FETCH_AT_ONCE, g->items_max - g->page->count);
    struct engine_entry entry;

    assert(g->page->count < g->items_max && !numbers->ended);
    numbers->count = 0;
    while (numbers->count < room && !entries_are_used_up(request, g)) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        numbers->ended = entry.found != ENGINE_FOUND;
        if (numbers->ended)
            break;
        if (entry.key.len != 1 + sizeof numbers->last)
            return error_set(err, ERROR_STORE_CORRUPT, "the number of an item is cut short");
        g->page->entries_read++;
        memcpy(numbers->last, entry.key.data + 1, sizeof numbers->last);
        if (!key_is_wanted(request, entry.value))
            continue;
        numbers->keys[numbers->count] = arena_copy(g->arena, entry.value);
        numbers->positions[numbers->count++] = arena_copy(g->arena, slice_skip(entry.key, 1));
    }
    return true;
}

static bool scan_by_number(const struct item_scope *scope, const struct item_scan_request *request,
                           struct gathering *g, struct error *err)
{
    CLEANUP(view_done) struct view view = {.snapshot = NULL};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct slice family = item_family_key(g->arena, PARTITION_FAMILY_NUMBER, SLICE_NONE);
    struct engine_range range = {.min = family, .max = cursor_prefix_end(g->arena, family)};
    struct item items[FETCH_AT_ONCE];
    struct numbers numbers = {.count = 0};

    range_after(&range, PARTITION_FAMILY_NUMBER, request->after, request->backwards, g->arena);
    if (!view_open(scope, &view, err) ||
        !engine_iterator_new(scope->engine, view.snapshot, scope->partition, range,
                             request->backwards, ENGINE_READ_ANY, &iterator, err))
        return false;
    while (!numbers.ended) {
        if (!numbers_read(iterator, request, g, &numbers, err) ||
            !view_fetch(&view, numbers.keys, numbers.count, g->arena, items, err))
            return false;
        for (size_t i = 0; i < numbers.count; i++) {
            if (items[i].document.data)
                page_add(g, &items[i]);
            g->page->position = numbers.positions[i];
            if (page_is_full(g)) {
                g->page->more = true;
                return true;
            }
        }
        if (!numbers.ended && entries_are_used_up(request, g)) {
            g->page->position = arena_copy(g->arena, slice_of(numbers.last, sizeof numbers.last));
            g->page->more = true;
            return true;
        }
    }
    return true;
}

/* --- A small logical partition by number ------------------------------------------------------ */

static int number_compare(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    return (a->header.number > b->header.number) - (a->header.number < b->header.number);
}

/* Fills the page from items sorted by number. */
static void sorted_take(struct gathering *g, const struct item_scan_request *request,
                        const struct item *items, size_t count)
{
    uint64_t after = request->after.len == 8 ? bytes_get_be64(request->after.data) : 0;

    for (size_t i = 0; i < count && !page_is_full(g); i++) {
        const struct item *item = &items[request->backwards ? count - 1 - i : i];
        uint8_t *position;

        if (request->after.len &&
            (request->backwards ? item->header.number >= after : item->header.number <= after))
            continue;
        page_add(g, item);
        position = arena_alloc(g->arena, 8);
        bytes_put_be64(position, item->header.number);
        g->page->position = slice_of(position, 8);
    }
    g->page->more = page_is_full(g);
}

/* The numbers of a physical partition are those of all its logical ones, so walking them for the
 * sake of a small one would read them all. It is read whole and sorted instead. *ret_done false: it
 * is not small. */
static bool scan_sorted(const struct item_scope *scope, const struct item_scan_request *request,
                        struct gathering *g, bool *ret_done, struct error *err)
{
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    struct item_scan_page all = {.items = ARENA_ARRAY(scratch, struct item, SORTED_ITEMS_MAX)};
    struct gathering whole = {.scope = scope,
                              .arena = scratch,
                              .page = &all,
                              .items_max = SORTED_ITEMS_MAX,
                              .bytes_max = SORTED_BYTES_MAX};
    struct item_scan_request by_key = {.order = SCAN_BY_KEY,
                                       .logical = request->logical,
                                       .routing_min = request->routing_min,
                                       .routing_max = request->routing_max};

    assert(request->logical.len > 0);
    *ret_done = false;
    if (!scan_by_key(scope, &by_key, &whole, err))
        return false;
    if (all.more)
        return true;
    qsort(all.items, all.count, sizeof *all.items, number_compare);
    sorted_take(g, request, all.items, all.count);
    for (size_t i = 0; i < g->page->count; i++) {
        g->page->items[i].key = arena_copy(g->arena, g->page->items[i].key);
        g->page->items[i].document = arena_copy(g->arena, g->page->items[i].document);
    }
    g->page->entries_read = all.entries_read;
    *ret_done = true;
    return true;
}

static bool scan_numbers(const struct item_scope *scope, const struct item_scan_request *request,
                         struct gathering *g, struct error *err)
{
    bool done = false;

    if (request->logical.len && !scan_sorted(scope, request, g, &done, err))
        return false;
    return done || scan_by_number(scope, request, g, err);
}

bool item_scan_items(const struct item_scope *scope, const struct item_scan_request *request,
                     struct arena *arena, struct item_scan_page *ret_page, struct error *err)
{
    struct item_scan_page page = {.position = request->after};
    struct gathering gathering = {
        .scope = scope,
        .arena = arena,
        .page = &page,
        .items_max = request->items_max ? request->items_max : ITEMS_DEFAULT,
        .bytes_max = request->bytes_max ? request->bytes_max : BYTES_DEFAULT,
    };

    page.items = ARENA_ARRAY(arena, struct item, gathering.items_max);
    if (request->order == SCAN_BY_KEY ? !scan_by_key(scope, request, &gathering, err)
                                      : !scan_numbers(scope, request, &gathering, err))
        return false;
    *ret_page = page;
    return true;
}

bool item_scan_fetch(const struct item_scope *scope, struct engine_snapshot *snapshot,
                     const struct slice *keys, size_t count, struct arena *arena,
                     struct item *ret_items, struct error *err)
{
    struct view view = view_of(scope, snapshot);

    return count == 0 || view_fetch(&view, keys, count, arena, ret_items, err);
}

/* --- The index ------------------------------------------------------------------------------- */

/* What comes behind the path in the bytes of the position: value and routing key, and the number.
 */
static bool index_seek(struct cursor *cursor, const struct item_index_request *request,
                       struct error *err)
{
    struct slice after = request->after;

    if (!after.len)
        return true;
    if (after.len < request->path.len + 8)
        return error_set(err, ERROR_BAD_REQUEST, "the position of an index scan is cut short");
    after = slice_skip(after, request->path.len);
    return cursor_seek_behind(cursor, slice_first(after, after.len - 8), SLICE_NONE,
                              bytes_get_be64(after.data + after.len - 8), err);
}

static struct slice index_position(const struct item_index_request *request,
                                   const struct cursor_hit *hit, struct arena *arena)
{
    size_t len = request->path.len + hit->value.len + hit->routing.len;
    uint8_t *bytes = arena_alloc(arena, len + 8), *at = bytes;

    memcpy(at, request->path.data, request->path.len);
    at += request->path.len;
    memcpy(at, hit->value.data, hit->value.len);
    at += hit->value.len;
    memcpy(at, hit->routing.data, hit->routing.len);
    bytes_put_be64(bytes + len, hit->number);
    return slice_of(bytes, len + 8);
}

bool item_scan_index(const struct item_scope *scope, const struct item_index_request *request,
                     struct arena *arena, struct item_index_page *ret_page, struct error *err)
{
    CLEANUP(view_done) struct view view = {.snapshot = NULL};
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_range range = {request->min, request->max.data ? request->max : SLICE("\xFF")};
    struct cursor_request wanted = {.kind = CURSOR_INDEX,
                                    .backwards = request->backwards,
                                    .logical = request->logical,
                                    .path = request->path,
                                    .value_count = 1,
                                    .ranges = &range,
                                    .range_count = 1,
                                    .order = request->order};
    struct item_index_page page = {.position = request->after};
    size_t max = request->entries_max ? request->entries_max : ITEMS_DEFAULT;
    struct cursor_hit hit;

    page.hits = ARENA_ARRAY(arena, struct item_index_hit, max);
    if (!view_open(scope, &view, err) || !cursor_open(&view, &wanted, &cursor, err) ||
        !index_seek(cursor, request, err))
        return false;
    for (;;) {
        bool more;

        if (!cursor_next(cursor, &hit, &more, err))
            return false;
        page.more = more && page.count == max;
        if (!more || page.more)
            break;
        assert(page.count < max);
        page.position = index_position(request, &hit, arena);
        page.hits[page.count++] = (struct item_index_hit){.value = arena_copy(arena, hit.value),
                                                          .number = hit.number,
                                                          .key = arena_copy(arena, hit.key)};
    }
    page.entries_read = (size_t)cursor_entries(cursor);
    *ret_page = page;
    return true;
}
