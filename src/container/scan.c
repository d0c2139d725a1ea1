/* Positions are keys: the item key, or the number, or the index key without its family byte. A page
 * goes on with the first entry behind (or before) its position. */
#include "container/scan.h"

#include "base/bytes.h"
#include "document/order.h"
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

/* The first key that is greater than every key beginning with prefix; prefix is not all FF. */
static struct slice prefix_end(struct arena *arena, struct slice prefix)
{
    uint8_t *end = (uint8_t *)arena_copy(arena, prefix).data;
    size_t len = prefix.len;

    while (len && end[len - 1] == 0xFF)
        len--;
    assert(len);
    end[len - 1]++;
    return slice_of(end, len);
}

/* The least key greater than this one. */
static struct slice key_next(struct arena *arena, struct slice key)
{
    uint8_t *next = arena_alloc(arena, key.len + 1);

    memcpy(next, key.data, key.len);
    next[key.len] = 0;
    return slice_of(next, key.len + 1);
}

static struct slice joined(struct arena *arena, uint8_t family, struct slice a, struct slice b)
{
    uint8_t *bytes = arena_alloc(arena, 1 + a.len + b.len);

    bytes[0] = family;
    if (a.len)
        memcpy(bytes + 1, a.data, a.len);
    if (b.len)
        memcpy(bytes + 1 + a.len, b.data, b.len);
    return slice_of(bytes, 1 + a.len + b.len);
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

static struct engine_range item_range(const struct scan_request *request, struct arena *arena)
{
    struct slice family = item_family_key(arena, PARTITION_FAMILY_ITEM, SLICE_NONE);
    struct engine_range range = {.min = family, .max = prefix_end(arena, family)};

    if (request->logical.len) {
        range.min = item_family_key(arena, PARTITION_FAMILY_ITEM, request->logical);
        range.max = prefix_end(arena, range.min);
        return range;
    }
    if (request->routing_min.data)
        range.min = item_family_key(arena, PARTITION_FAMILY_ITEM, request->routing_min);
    if (request->routing_max.data)
        range.max = item_family_key(arena, PARTITION_FAMILY_ITEM, request->routing_max);
    return range;
}

/* What a page gathers until it is full. */
struct gathering {
    const struct item_scope *scope;
    struct arena *arena;
    struct scan_page *page;
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
    g->page->items[g->page->count++] = *item;
    g->bytes += item->document.len;
}

static bool scan_by_key(const struct item_scope *scope, const struct scan_request *request,
                        struct gathering *g, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = item_range(request, g->arena);
    struct engine_entry entry;

    range_after(&range, PARTITION_FAMILY_ITEM, request->after, request->backwards, g->arena);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition, range, request->backwards,
                             ENGINE_READ_ANY, &iterator, err))
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

static bool key_is_wanted(const struct scan_request *request, struct slice key)
{
    if (request->logical.len)
        return slice_starts_with(key, request->logical);
    return (!request->routing_min.data || slice_compare(key, request->routing_min) >= 0) &&
           (!request->routing_max.data || slice_compare(key, request->routing_max) < 0);
}

/* Reads the next numbers of the wanted items: up to FETCH_AT_ONCE, and no more than fit the page.
 */
static bool numbers_read(struct engine_iterator *iterator, const struct scan_request *request,
                         struct gathering *g, struct slice *keys, struct slice *positions,
                         size_t *ret_count, bool *ret_ended, struct error *err)
{
    size_t room = MIN((size_t)FETCH_AT_ONCE, g->items_max - g->page->count);
    struct engine_entry entry;
    size_t count = 0;

    *ret_ended = false;
    while (count < room) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            *ret_ended = true;
            break;
        }
        g->page->entries_read++;
        if (!key_is_wanted(request, entry.value))
            continue;
        keys[count] = arena_copy(g->arena, entry.value);
        positions[count++] = arena_copy(g->arena, slice_skip(entry.key, 1));
    }
    *ret_count = count;
    return true;
}

static bool fetch_in(const struct item_scope *scope, struct engine_snapshot *snapshot,
                     const struct slice *keys, size_t count, struct arena *arena,
                     struct item *ret_items, struct error *err)
{
    struct slice *full = ARENA_ARRAY(arena, struct slice, count);
    struct engine_value *values = ARENA_ARRAY(arena, struct engine_value, count);

    for (size_t i = 0; i < count; i++)
        full[i] = item_family_key(arena, PARTITION_FAMILY_ITEM, keys[i]);
    /* One key is by far the most frequent case, and several cost more than their number. */
    if (count == 1 ? !engine_get(scope->engine, snapshot, scope->partition, full[0],
                                 ENGINE_READ_ANY, arena, values, err)
                   : !engine_multi_get(scope->engine, snapshot, scope->partition, full, count,
                                       ENGINE_READ_ANY, arena, values, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        ret_items[i] = (struct item){.key = keys[i]};
        if (values[i].found == ENGINE_FOUND &&
            !item_decode(keys[i], values[i].bytes, &ret_items[i], err))
            return false;
        if (ret_items[i].document.data && is_over(scope, &ret_items[i]))
            ret_items[i].document = SLICE_NONE;
    }
    return true;
}

static bool scan_by_number(const struct item_scope *scope, const struct scan_request *request,
                           struct gathering *g, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct slice family = item_family_key(g->arena, PARTITION_FAMILY_NUMBER, SLICE_NONE);
    struct engine_range range = {.min = family, .max = prefix_end(g->arena, family)};
    struct slice keys[FETCH_AT_ONCE], positions[FETCH_AT_ONCE];
    struct item items[FETCH_AT_ONCE];
    bool ended = false;

    range_after(&range, PARTITION_FAMILY_NUMBER, request->after, request->backwards, g->arena);
    if (!engine_snapshot_new(scope->engine, &snapshot, err) ||
        !engine_iterator_new(scope->engine, snapshot, scope->partition, range, request->backwards,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    while (!ended) {
        size_t count;

        if (!numbers_read(iterator, request, g, keys, positions, &count, &ended, err) ||
            !fetch_in(scope, snapshot, keys, count, g->arena, items, err))
            return false;
        for (size_t i = 0; i < count; i++) {
            if (items[i].document.data)
                page_add(g, &items[i]);
            g->page->position = positions[i];
            if (page_is_full(g)) {
                g->page->more = true;
                return true;
            }
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
static void sorted_take(struct gathering *g, const struct scan_request *request,
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
static bool scan_sorted(const struct item_scope *scope, const struct scan_request *request,
                        struct gathering *g, bool *ret_done, struct error *err)
{
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    struct scan_page all = {.items = ARENA_ARRAY(scratch, struct item, SORTED_ITEMS_MAX)};
    struct gathering whole = {.scope = scope,
                              .arena = scratch,
                              .page = &all,
                              .items_max = SORTED_ITEMS_MAX,
                              .bytes_max = SORTED_BYTES_MAX};
    struct scan_request by_key = {.order = SCAN_BY_KEY, .logical = request->logical};

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

static bool scan_numbers(const struct item_scope *scope, const struct scan_request *request,
                         struct gathering *g, struct error *err)
{
    bool done = false;

    if (request->logical.len && !scan_sorted(scope, request, g, &done, err))
        return false;
    return done || scan_by_number(scope, request, g, err);
}

bool scan_items(const struct item_scope *scope, const struct scan_request *request,
                struct arena *arena, struct scan_page *ret_page, struct error *err)
{
    struct scan_page page = {.position = request->after};
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

bool scan_fetch(const struct item_scope *scope, const struct slice *keys, size_t count,
                struct arena *arena, struct item *ret_items, struct error *err)
{
    return count == 0 || fetch_in(scope, NULL, keys, count, arena, ret_items, err);
}

/* --- The index ------------------------------------------------------------------------------- */

static struct engine_range index_range(const struct index_scan_request *request,
                                       struct arena *arena)
{
    struct engine_range range;

    range.min = joined(arena, PARTITION_FAMILY_INDEX, request->path, request->min);
    range.max =
        request->max.data
            ? joined(arena, PARTITION_FAMILY_INDEX, request->path, request->max)
            : prefix_end(arena, joined(arena, PARTITION_FAMILY_INDEX, request->path, SLICE_NONE));
    return range;
}

/* Takes an index key (without its family) and its value apart. */
static bool hit_decode(struct slice path, struct slice key, struct slice rest, struct arena *arena,
                       struct index_hit *ret_hit, struct error *err)
{
    struct slice after_path = slice_skip(key, path.len), behind = after_path, routing;
    uint8_t *item_key;
    bool cut;

    if (!document_key_skip_cut(DOCUMENT_ORDER_SQL, INDEX_VALUE_MAX, &behind, &cut, err))
        return false;
    if (behind.len < 8)
        return error_set(err, ERROR_STORE_CORRUPT, "an index entry is cut short");
    routing = slice_first(behind, behind.len - 8);
    item_key = arena_alloc(arena, routing.len + rest.len);
    memcpy(item_key, routing.data, routing.len);
    memcpy(item_key + routing.len, rest.data, rest.len);
    *ret_hit = (struct index_hit){
        .value = arena_copy(arena, slice_first(after_path, after_path.len - behind.len)),
        .number = bytes_get_be64(behind.data + behind.len - 8),
        .key = slice_of(item_key, routing.len + rest.len),
    };
    return true;
}

bool scan_index(const struct item_scope *scope, const struct index_scan_request *request,
                struct arena *arena, struct index_page *ret_page, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = index_range(request, arena);
    struct index_page page = {.position = request->after};
    size_t max = request->entries_max ? request->entries_max : ITEMS_DEFAULT;
    struct engine_entry entry;

    range_after(&range, PARTITION_FAMILY_INDEX, request->after, request->backwards, arena);
    page.hits = ARENA_ARRAY(arena, struct index_hit, max);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition, range, request->backwards,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (page.count == max) {
            page.more = true;
            break;
        }
        page.entries_read++;
        page.position = arena_copy(arena, slice_skip(entry.key, 1));
        if (!hit_decode(request->path, page.position, entry.value, arena, &page.hits[page.count],
                        err))
            return false;
        if (!request->logical.len || slice_starts_with(page.hits[page.count].key, request->logical))
            page.count++;
    }
    *ret_page = page;
    return true;
}
