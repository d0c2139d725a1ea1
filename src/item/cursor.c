/* One engine iterator serves all ranges of a cursor: between them it seeks, as it does past the
 * entries of other routing keys. A seek costs about what ten steps do, so a cursor steps a few
 * times before it seeks.
 *
 * Groups. Who walks the same few entries again and again (the edges of a vertex) has them from
 * above the store: all entries of a group as one piece of bytes, each with the lengths of its key
 * and its value before it. What is not kept is read by the iterator, which is opened then, and
 * offered. Of a group that is too large only that is kept, as a single byte; from there on the
 * cursor walks as others do. */
#include "item/cursor.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "document/order.h"
#include "index/policy.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "partition/strategy.h"

enum {
    STEPS_BEFORE_SEEK = 8,
    NUMBER_SIZE = 8,
    KEPT_BYTES_MAX = 32 * 1024 * 1024, /* half of what an engine's cache has by default */
};

struct cursor {
    struct cursor_request request;
    struct view_walk walk;
    struct view view;     /* whose snapshot outlives the cursor */
    struct arena *arena;  /* for keys that are looked up by number */
    struct slice routing; /* of the logical partition that is wanted; empty: of any */
    size_t range;         /* the present one of the index */
    uint64_t entries;
    unsigned passed;  /* entries in a row that were not wanted */
    struct buf seek;  /* bytes of a place to go to */
    struct buf place; /* not to be given again: cursor_seek_behind */
    struct buf key;   /* of the present hit */
    bool at_place;
    bool pending; /* entry was read and not given yet */
    struct engine_entry entry;

    bool grouped;              /* entries come from groups, and `range` is the next range to ask */
    struct arena *group_arena; /* of the present group */
    struct slice name, group;  /* of it; what is left of it */
};

/* --- The view -------------------------------------------------------------------------------- */

struct view view_of(const struct item_scope *scope, struct engine_snapshot *snapshot)
{
    return (struct view){
        .scope = *scope, .snapshot = snapshot, .now_ms = clock_read_wall_ms(scope->clock)};
}

bool view_open(const struct item_scope *scope, struct view *ret_view, struct error *err)
{
    struct view view = view_of(scope, NULL);

    assert(scope->partition > 0);
    if (!item_scope_snapshot(scope, &view.snapshot, err))
        return false;
    *ret_view = view;
    return true;
}

void view_done(struct view *view)
{
    engine_snapshot_free(view->snapshot);
    view->snapshot = NULL;
}

static bool one_get(const struct view *view, struct slice key, enum engine_reach reach,
                    struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    const struct item_scope *scope = &view->scope;

    return view->snapshot ? engine_get(scope->engine, view->snapshot, scope->partition, key, reach,
                                       arena, ret_value, err)
                          : item_scope_get(scope, key, reach, arena, ret_value, err);
}

static bool many_get(const struct view *view, const struct slice *keys, size_t count,
                     enum engine_reach reach, struct arena *arena, struct engine_value *ret_values,
                     struct error *err)
{
    const struct item_scope *scope = &view->scope;

    assert(view->snapshot || reach == ENGINE_READ_ANY); /* loops have a snapshot, or read one */
    return (view->snapshot || item_scope_await(scope, PLEDGE_BEFORE_READING, err)) &&
           engine_multi_get(scope->engine, view->snapshot, scope->partition, keys, count, reach,
                            arena, ret_values, err) &&
           (view->snapshot || item_scope_await(scope, PLEDGE_AFTER_READING, err));
}

/* One key as the view sees it. */
static bool view_get(const struct view *view, struct slice key, struct arena *arena,
                     struct engine_value *ret_value, struct error *err)
{
    enum engine_reach reach = view->bound ? ENGINE_READ_CACHED : ENGINE_READ_ANY;

    if (!one_get(view, key, reach, arena, ret_value, err))
        return false;
    if (!view->bound)
        return true;
    return ret_value->found != ENGINE_COLD ? view_bound_take(view->bound, 1, 0, err)
                                           : view_bound_cold(err);
}

bool view_lsn(const struct view *view, uint64_t *ret_lsn, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    *ret_lsn = 0;
    if (!view_get(view, commit_meta_key(), arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND || commit_meta_lsn(value.bytes, ret_lsn) ||
           error_set(err, ERROR_STORE_CORRUPT, "the numbering of partition %u is damaged",
                     view->scope.partition);
}

bool view_count(const struct view *view, struct slice logical, uint64_t *ret_items,
                uint64_t *ret_bytes, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t *key = arena_alloc(arena, 2 + logical.len);
    int64_t numbers[COUNTER_NUMBERS] = {0};
    struct engine_value value;

    key[0] = PARTITION_FAMILY_COUNTER;
    key[1] = logical.len ? 'l' : 't';
    if (logical.len)
        memcpy(key + 2, logical.data, logical.len);
    if (!view_get(view, slice_of(key, 2 + logical.len), arena, &value, err))
        return false;
    if (value.found == ENGINE_FOUND && !counter_decode(value.bytes, numbers, err))
        return false;
    for (size_t i = 0; view->planned && i < view->planned->delta_count; i++)
        if (slice_equal(view->planned->deltas[i].key, slice_of(key, 2 + logical.len)))
            for (size_t n = 0; n < COUNTER_NUMBERS; n++)
                numbers[n] += view->planned->deltas[i].amounts[n];
    *ret_bytes = (uint64_t)MAX(numbers[0], (int64_t)0);
    *ret_items = (uint64_t)MAX(numbers[1], (int64_t)0);
    return true;
}

/* Is all of it there, and no more than the bound allows? */
static bool fetched_check(const struct view *view, const struct engine_value *values, size_t count,
                          struct error *err)
{
    for (size_t i = 0; view->bound && i < count; i++)
        if (values[i].found == ENGINE_COLD ||
            !view_bound_take(view->bound, VIEW_ITEM_STEPS, values[i].bytes.len, err))
            return view_bound_cold(err);
    return true;
}

bool view_fetch(const struct view *view, const struct slice *keys, size_t count,
                struct arena *arena, struct item *ret_items, struct error *err)
{
    struct slice *full = ARENA_ARRAY(arena, struct slice, count);
    struct engine_value *values = ARENA_ARRAY(arena, struct engine_value, count);
    enum engine_reach reach = view->bound ? ENGINE_READ_CACHED : ENGINE_READ_ANY;

    if (view->bound && count * VIEW_ITEM_STEPS > view->bound->steps)
        return view_bound_cold(err);
    for (size_t i = 0; i < count; i++)
        full[i] = item_family_key(arena, PARTITION_FAMILY_ITEM, keys[i]);
    if (count == 1 ? !one_get(view, full[0], reach, arena, values, err)
                   : !many_get(view, full, count, reach, arena, values, err))
        return false;
    if (!fetched_check(view, values, count, err))
        return false;
    for (size_t i = 0; view->planned && i < count; i++) {
        const struct engine_op *op = view_section_get(view->planned, full[i]);

        if (op)
            values[i] = (struct engine_value){op->kind == ENGINE_PUT ? ENGINE_FOUND : ENGINE_ABSENT,
                                              op->value};
    }
    for (size_t i = 0; i < count; i++) {
        ret_items[i] = (struct item){.key = keys[i]};
        if (values[i].found == ENGINE_FOUND &&
            !item_decode(keys[i], values[i].bytes, &ret_items[i], err))
            return false;
        if (ret_items[i].document.data && view_is_over(view, &ret_items[i].header))
            ret_items[i].document = SLICE_NONE;
    }
    return true;
}

/* --- Opening --------------------------------------------------------------------------------- */

struct slice cursor_prefix_end(struct arena *arena, struct slice prefix)
{
    size_t len = prefix.len;
    uint8_t *end;

    while (len && prefix.data[len - 1] == 0xFF)
        len--;
    if (!len)
        return SLICE_NONE;
    end = (uint8_t *)arena_copy(arena, slice_first(prefix, len)).data;
    end[len - 1]++;
    return slice_of(end, len);
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

static struct engine_range keys_range(const struct cursor_request *request, struct arena *arena)
{
    struct slice family = joined(arena, PARTITION_FAMILY_ITEM, SLICE_NONE, SLICE_NONE);
    struct engine_range range = {.min = family, .max = cursor_prefix_end(arena, family)};

    if (request->logical.len) {
        range.min = joined(arena, PARTITION_FAMILY_ITEM, request->logical, SLICE_NONE);
        range.max = cursor_prefix_end(arena, range.min);
    }
    if (request->routing_min.data && slice_compare(request->routing_min, request->logical) > 0)
        range.min = joined(arena, PARTITION_FAMILY_ITEM, request->routing_min, SLICE_NONE);
    if (request->routing_max.data &&
        (!request->logical.len || slice_starts_with(request->routing_max, request->logical)))
        range.max = joined(arena, PARTITION_FAMILY_ITEM, request->routing_max, SLICE_NONE);
    if (slice_compare(range.min, range.max) > 0) /* a part of another key with this routing key */
        range.max = range.min;
    return range;
}

static struct engine_range cursor_bounds(const struct cursor_request *request, struct arena *arena)
{
    struct slice family;

    switch (request->kind) {
    case CURSOR_KEYS:
        return keys_range(request, arena);
    case CURSOR_NUMBERS:
        family = joined(arena, PARTITION_FAMILY_NUMBER, SLICE_NONE, SLICE_NONE);
        return (struct engine_range){.min = family, .max = cursor_prefix_end(arena, family)};
    case CURSOR_INDEX:
        break;
    }
    assert(request->range_count > 0 && request->path.len > 0);
    return (struct engine_range){
        .min = joined(arena, PARTITION_FAMILY_INDEX, request->path, request->ranges[0].min),
        .max = joined(arena, PARTITION_FAMILY_INDEX, request->path,
                      request->ranges[request->range_count - 1].max)};
}

/* A walk over all items of a large partition would push everything else out of the cache, and
 * find nothing there the next time. */
static bool reach_choose(const struct view *view, const struct cursor_request *request,
                         enum engine_reach *ret_reach, struct error *err)
{
    uint64_t items, bytes = 0;

    if (request->kind == CURSOR_KEYS && !request->logical.len &&
        !view_count(view, SLICE_NONE, &items, &bytes, err))
        return false;
    *ret_reach = bytes > KEPT_BYTES_MAX ? ENGINE_READ_ONCE : ENGINE_READ_ANY;
    return true;
}

/* A logical partition is named by its routing key and its key; entries of the index have the former
 * alone, and the number behind it. */
static bool logical_routing(const struct view *view, struct slice logical,
                            struct slice *ret_routing, struct error *err)
{
    struct slice rest = logical;

    if (!partition_route_skip(&view->scope.definition->key, &rest, err))
        return false;
    *ret_routing = slice_first(logical, logical.len - rest.len);
    return true;
}

/* Length of the first value of a range; 0: it is not whole, so that there is no group of it. */
static size_t first_length(const struct cursor_request *request, struct slice bytes)
{
    struct slice rest = bytes;
    struct error ignored;
    bool cut;

    return document_key_skip_cut(request->order, INDEX_VALUE_MAX, &rest, &cut, &ignored) && !cut
               ? bytes.len - rest.len
               : 0;
}

/* Groups are walked whole, so that the walk has to reach to the end of the last. */
static struct engine_range walk_bounds(const struct cursor *cursor, struct arena *arena)
{
    const struct cursor_request *request = &cursor->request;
    struct engine_range range = cursor_bounds(request, arena);
    const struct cursor_range *last;

    if (cursor->grouped) {
        last = &request->ranges[request->range_count - 1];
        range.min = joined(
            arena, PARTITION_FAMILY_INDEX, request->path,
            slice_first(request->ranges[0].min, first_length(request, request->ranges[0].min)));
        range.max = cursor_prefix_end(
            arena, joined(arena, PARTITION_FAMILY_INDEX, request->path,
                          slice_first(last->min, first_length(request, last->min))));
    }
    return range;
}

static bool walk_open(struct cursor *cursor, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct view *view = &cursor->view;
    enum engine_reach reach;

    return cursor->walk.iterator ||
           (reach_choose(view, &cursor->request, &reach, err) &&
            view_walk_open(&cursor->walk,
                           &(struct view_walk_options){.engine = view->scope.engine,
                                                       .snapshot = view->snapshot,
                                                       .partition = view->scope.partition,
                                                       .range = walk_bounds(cursor, arena),
                                                       .backwards = cursor->request.backwards,
                                                       .reach = reach,
                                                       .section = view->planned,
                                                       .bound = view->bound},
                           err));
}

bool cursor_open(const struct view *view, const struct cursor_request *request,
                 struct cursor **ret_cursor, struct error *err)
{
    CLEANUP(cursor_free) struct cursor *cursor = MEMORY_NEW(struct cursor);

    assert(!request->backwards || request->kind == CURSOR_INDEX);
    assert(request->kind != CURSOR_INDEX || request->value_count > 0);
    cursor->request = *request;
    cursor->view = *view;
    buf_init(&cursor->seek, BUF_DEFAULT_MAX);
    buf_init(&cursor->place, BUF_DEFAULT_MAX);
    buf_init(&cursor->key, BUF_DEFAULT_MAX);
    if (request->kind == CURSOR_INDEX && request->backwards)
        cursor->range = request->range_count - 1;
    if (request->logical.len && !logical_routing(view, request->logical, &cursor->routing, err))
        return false;
    cursor->grouped = request->grouped && view->snapshot && !view->planned;
    if (!cursor->grouped && !walk_open(cursor, err))
        return false;
    *ret_cursor = TAKE(cursor);
    return true;
}

void cursor_free(struct cursor *cursor)
{
    if (!cursor)
        return;
    view_walk_done(&cursor->walk);
    arena_free(cursor->arena);
    arena_free(cursor->group_arena);
    buf_done(&cursor->seek);
    buf_done(&cursor->place);
    buf_done(&cursor->key);
    memory_free(cursor);
}

uint64_t cursor_entries(const struct cursor *cursor)
{
    return cursor->entries;
}

bool cursor_seek_behind(struct cursor *cursor, struct slice value, struct slice routing,
                        uint64_t number, struct error *err)
{
    struct buf *place = &cursor->place;

    buf_clear(place);
    if (cursor->request.kind == CURSOR_KEYS) {
        buf_append_byte(place, PARTITION_FAMILY_ITEM);
        buf_append_slice(place, value);
    } else if (cursor->request.kind == CURSOR_NUMBERS) {
        buf_append_byte(place, PARTITION_FAMILY_NUMBER);
        buf_append_be64(place, number);
    } else {
        buf_append_byte(place, PARTITION_FAMILY_INDEX);
        buf_append_slice(place, cursor->request.path);
        buf_append_slice(place, value);
        buf_append_slice(place, routing);
        buf_append_be64(place, number);
    }
    cursor->at_place = true;
    cursor->pending = false;
    if (!walk_open(cursor, err))
        return false;
    if (cursor->grouped) {
        cursor->grouped = false;
        cursor->range = 0;
    }
    return view_walk_seek(&cursor->walk, buf_slice(place), err);
}

/* --- Walking --------------------------------------------------------------------------------- */

static bool routing_is_wanted(const struct cursor_request *request, struct slice key)
{
    if (request->logical.len && !slice_starts_with(key, request->logical))
        return false;
    return (!request->routing_min.data || slice_compare(key, request->routing_min) >= 0) &&
           (!request->routing_max.data || slice_compare(key, request->routing_max) < 0);
}

/* Is a bound within the key that has this routing key, for parts of it are (or were) partitions of
 * their own? Then the routing key alone does not tell. */
static bool is_within(struct slice bound, struct slice routing)
{
    return bound.data && bound.len > routing.len && slice_starts_with(bound, routing) &&
           bound.data[routing.len] != 0xFF;
}

static bool key_is_cut(const struct cursor_request *request, struct slice routing)
{
    return is_within(request->routing_min, routing) || is_within(request->routing_max, routing);
}

/* May an item with this routing key be wanted? */
static bool routing_may_be_wanted(const struct cursor *cursor, struct slice routing)
{
    const struct cursor_request *request = &cursor->request;

    if (request->logical.len)
        return slice_equal(routing, cursor->routing);
    return is_within(request->routing_min, routing) || routing_is_wanted(request, routing);
}

static bool entry_seek(struct cursor *cursor, struct slice a, struct slice b, struct error *err)
{
    assert(cursor->request.kind == CURSOR_INDEX && !cursor->pending);
    buf_clear(&cursor->seek);
    buf_append_byte(&cursor->seek, PARTITION_FAMILY_INDEX);
    buf_append_slice(&cursor->seek, cursor->request.path);
    buf_append_slice(&cursor->seek, a);
    buf_append_slice(&cursor->seek, b);
    cursor->passed = 0;
    return view_walk_seek(&cursor->walk, buf_slice(&cursor->seek), err);
}

/* Length of the values at the start of bytes. */
static bool values_length(const struct cursor_request *request, struct slice bytes,
                          size_t *ret_length, size_t *ret_kept, bool *ret_cut, struct error *err)
{
    struct slice rest = bytes;
    bool cut;

    *ret_kept = 0;
    *ret_cut = false;
    if (request->raw) {
        if (!index_vector_length(bytes, ret_length))
            return error_set(err, ERROR_STORE_CORRUPT, "bytes of an index entry are broken");
        *ret_kept = *ret_length;
        return true;
    }
    for (size_t i = 0; i < request->value_count; i++) {
        uint8_t inverted[INDEX_VALUE_MAX];
        struct slice value = rest, behind;

        if (request->descending && request->descending[i]) {
            value = slice_of(inverted, MIN(rest.len, sizeof inverted));
            for (size_t at = 0; at < value.len; at++)
                inverted[at] = (uint8_t)~rest.data[at];
        }
        behind = value;
        if (!document_key_skip_cut(request->order, INDEX_VALUE_MAX, &behind, &cut, err))
            return false;
        *ret_cut |= cut;
        rest = slice_skip(rest, value.len - behind.len);
        if (i + 1 == request->kept_count)
            *ret_kept = bytes.len - rest.len;
    }
    *ret_length = bytes.len - rest.len;
    if (!request->kept_count)
        *ret_kept = *ret_length;
    return true;
}

/* Is value in the present range? If it is behind it, the cursor moves on to another, by a seek if
 * that lies further on. */
static bool range_check(struct cursor *cursor, struct slice value, bool *ret_in, bool *ret_ended,
                        struct error *err)
{
    const struct cursor_request *request = &cursor->request;
    const struct cursor_range *range = &request->ranges[cursor->range];

    assert(cursor->range < request->range_count);
    *ret_in = *ret_ended = false;
    if (!request->backwards) {
        while (slice_compare(value, range->max) >= 0) {
            if (++cursor->range == request->range_count) {
                *ret_ended = true;
                return true;
            }
            range = &request->ranges[cursor->range];
        }
        *ret_in = slice_compare(value, range->min) >= 0;
        if (!*ret_in && ++cursor->passed > 1)
            return entry_seek(cursor, range->min, SLICE_NONE, err);
        return true;
    }
    while (slice_compare(value, range->min) < 0) {
        if (cursor->range-- == 0) {
            *ret_ended = true;
            return true;
        }
        range = &request->ranges[cursor->range];
    }
    *ret_in = slice_compare(value, range->max) < 0;
    if (!*ret_in && ++cursor->passed > 1)
        return entry_seek(cursor, range->max, SLICE_NONE, err);
    return true;
}

/* An entry whose item is not wanted: after a few of them the cursor goes to where wanted ones of
 * this value, or those of the next value, can be. */
static bool routing_pass(struct cursor *cursor, struct slice value, struct slice routing,
                         struct error *err)
{
    const struct cursor_request *request = &cursor->request;
    struct slice min = request->logical.len ? cursor->routing : request->routing_min;
    bool below = min.data && slice_compare(routing, min) < 0;
    uint8_t *last;

    if (++cursor->passed <= STEPS_BEFORE_SEEK || cursor->grouped || key_is_cut(request, routing))
        return true;
    if (!request->backwards && below)
        return entry_seek(cursor, value, min, err);
    if (request->backwards && !below && !request->logical.len && request->routing_max.data)
        return entry_seek(cursor, value, request->routing_max, err);
    if (request->backwards && below)
        return entry_seek(cursor, value, SLICE_NONE, err);
    if (request->backwards)
        return true;
    /* Behind all entries of the value: no routing key begins with FF. */
    last = (uint8_t[]){0xFF};
    return entry_seek(cursor, value, slice_of(last, 1), err);
}

/* The key of the item with this number, where an entry does not have it. Without a snapshot the
 * item may be gone by now. */
static bool key_look_up(struct cursor *cursor, uint64_t number, bool *ret_found, struct error *err)
{
    const struct view *view = &cursor->view;
    uint8_t key[1 + NUMBER_SIZE] = {PARTITION_FAMILY_NUMBER};
    const struct engine_op *op;
    struct engine_value value;

    if (!cursor->arena)
        cursor->arena = arena_new();
    arena_reset(cursor->arena);
    bytes_put_be64(key + 1, number);
    op = view_section_get(view->planned, slice_of(key, sizeof key));
    if (op)
        value =
            (struct engine_value){op->kind == ENGINE_PUT ? ENGINE_FOUND : ENGINE_ABSENT, op->value};
    else if (!view_get(view, slice_of(key, sizeof key), cursor->arena, &value, err))
        return false;
    *ret_found = value.found == ENGINE_FOUND;
    if (!*ret_found)
        return !view->snapshot ||
               error_set(err, ERROR_STORE_CORRUPT, "an index entry is of no item");
    buf_append_slice(&cursor->key, value.bytes);
    return true;
}

/* What became of an entry. */
enum verdict { WANTED, PASSED, ENDED };

static bool index_look(struct cursor *cursor, const struct engine_entry *entry,
                       struct cursor_hit *hit, enum verdict *ret_verdict, struct error *err)
{
    const struct cursor_request *request = &cursor->request;
    struct slice bytes = slice_skip(entry->key, 1 + request->path.len), value, routing;
    bool in = true, ended = false, found, cut;
    uint64_t number;
    size_t length, kept;

    *ret_verdict = PASSED;
    if (!cursor->grouped && !range_check(cursor, bytes, &in, &ended, err))
        return false;
    if (ended)
        *ret_verdict = ENDED;
    if (!in)
        return true;
    if (!values_length(request, bytes, &length, &kept, &cut, err))
        return false;
    if (bytes.len < length + NUMBER_SIZE)
        return error_set(err, ERROR_STORE_CORRUPT, "an index entry is cut short");
    value = slice_first(bytes, length);
    routing = slice_of(bytes.data + length, bytes.len - length - NUMBER_SIZE);
    number = bytes_get_be64(bytes.data + bytes.len - NUMBER_SIZE);
    buf_clear(&cursor->key);
    buf_append_slice(&cursor->key, routing);
    if (entry->value.len < request->said)
        return error_set(err, ERROR_STORE_CORRUPT, "what an index entry says is cut short");
    if (entry->value.len) {
        buf_append_slice(&cursor->key, slice_first(entry->value, entry->value.len - request->said));
    } else {
        if (!routing_may_be_wanted(cursor, routing))
            return routing_pass(cursor, value, routing, err);
        buf_clear(&cursor->key);
        if (request->values_alone && !cut && !key_is_cut(request, routing)) {
            *ret_verdict = WANTED;
            *hit = (struct cursor_hit){
                .value = slice_first(value, kept), .routing = routing, .number = number};
            return true;
        }
        if (!key_look_up(cursor, number, &found, err))
            return false;
        if (!found)
            return true;
    }
    if (!routing_is_wanted(request, buf_slice(&cursor->key)))
        return routing_pass(cursor, value, routing, err);
    *ret_verdict = WANTED;
    *hit = (struct cursor_hit){
        .value = slice_first(value, kept),
        .routing = routing,
        .number = number,
        .key = buf_slice(&cursor->key),
        .said = slice_skip(entry->value, entry->value.len - request->said),
    };
    return true;
}

static bool entry_look(struct cursor *cursor, const struct engine_entry *entry,
                       struct cursor_hit *hit, enum verdict *ret_verdict, struct error *err)
{
    switch (cursor->request.kind) {
    case CURSOR_KEYS:
        *hit = (struct cursor_hit){.key = slice_skip(entry->key, 1), .stored = entry->value};
        *ret_verdict = WANTED;
        return true;
    case CURSOR_NUMBERS:
        if (entry->key.len != 1 + NUMBER_SIZE)
            return error_set(err, ERROR_STORE_CORRUPT, "the number of an item is cut short");
        *hit =
            (struct cursor_hit){.number = bytes_get_be64(entry->key.data + 1), .key = entry->value};
        *ret_verdict = routing_is_wanted(&cursor->request, entry->value) ? WANTED : PASSED;
        return true;
    case CURSOR_INDEX:
        break;
    }
    return index_look(cursor, entry, hit, ret_verdict, err);
}

/* --- Groups ---------------------------------------------------------------------------------- */

enum { LENGTHS_SIZE = 8, LARGE_SIZE = 1 };

size_t cursor_group(struct slice key)
{
    size_t len = key.len && key.data[0] == PARTITION_FAMILY_INDEX
                     ? index_entry_group(slice_skip(key, 1))
                     : 0;

    return len ? 1 + len : 0;
}

/* Reads all of the group by the iterator, into a form to be offered. */
static bool group_read(struct cursor *cursor, struct buf *ret_bytes, struct error *err)
{
    struct engine_entry entry;

    if (!walk_open(cursor, err) || !view_walk_seek(&cursor->walk, cursor->name, err))
        return false;
    for (;;) {
        if (!view_walk_next(&cursor->walk, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND || !slice_starts_with(entry.key, cursor->name))
            return true;
        if (ret_bytes->len + LENGTHS_SIZE + entry.key.len + entry.value.len > ENGINE_GROUP_MAX) {
            buf_clear(ret_bytes);
            buf_append_byte(ret_bytes, 0);
            assert(ret_bytes->len == LARGE_SIZE);
            return true;
        }
        buf_append_le32(ret_bytes, (uint32_t)entry.key.len);
        buf_append_le32(ret_bytes, (uint32_t)entry.value.len);
        buf_append_slice(ret_bytes, entry.key);
        buf_append_slice(ret_bytes, entry.value);
    }
}

/* The group of the present range. *ret_served false: there is none, or it is too large. */
static bool group_load(struct cursor *cursor, bool *ret_served, struct error *err)
{
    const struct view *view = &cursor->view;
    struct slice min = cursor->request.ranges[cursor->range].min;
    size_t length = first_length(&cursor->request, min);
    CLEANUP(buf_done) struct buf bytes;
    struct engine_group group;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!cursor->group_arena)
        cursor->group_arena = arena_new();
    arena_reset(cursor->group_arena);
    cursor->name = joined(cursor->group_arena, PARTITION_FAMILY_INDEX, cursor->request.path,
                          slice_first(min, length));
    *ret_served = false;
    if (!length)
        return true;
    if (!engine_group_find(view->snapshot, view->scope.partition, cursor->name, cursor->group_arena,
                           &group)) {
        if (!group.served)
            return true;
        if (!group_read(cursor, &bytes, err))
            return false;
        engine_group_offer(view->snapshot, view->scope.partition, cursor->name, buf_slice(&bytes),
                           &group);
        group.bytes = arena_copy(cursor->group_arena, buf_slice(&bytes));
    }
    cursor->group = group.bytes;
    *ret_served = group.bytes.len != LARGE_SIZE;
    return true;
}

/* Takes the next entry of the group that is in the range. */
static bool group_take(struct cursor *cursor, const struct cursor_range *range,
                       struct engine_entry *ret_entry)
{
    size_t before = 1 + cursor->request.path.len;

    while (cursor->group.len >= LENGTHS_SIZE) {
        size_t key = bytes_get_le32(cursor->group.data);
        size_t value = bytes_get_le32(cursor->group.data + LENGTHS_SIZE / 2);
        const uint8_t *at = cursor->group.data + LENGTHS_SIZE;
        struct slice bytes = slice_of(at + before, key - before);

        assert(key > before && LENGTHS_SIZE + key + value <= cursor->group.len);
        cursor->group = slice_skip(cursor->group, LENGTHS_SIZE + key + value);
        if (slice_compare(bytes, range->max) >= 0)
            break;
        if (slice_compare(bytes, range->min) < 0)
            continue;
        *ret_entry = (struct engine_entry){
            .found = ENGINE_FOUND, .key = slice_of(at, key), .value = slice_of(at + key, value)};
        return true;
    }
    cursor->group = SLICE_NONE;
    return false;
}

/* The next entry of any range. Behind the first range that has no group the cursor walks. */
static bool group_next(struct cursor *cursor, struct engine_entry *ret_entry, struct error *err)
{
    const struct cursor_request *request = &cursor->request;
    struct view_bound *bound = cursor->view.bound;
    bool served;

    for (;;) {
        if (cursor->group.len && group_take(cursor, &request->ranges[cursor->range - 1], ret_entry))
            return !bound || view_bound_take(bound, 1, 0, err);
        if (cursor->range == request->range_count) {
            *ret_entry = (struct engine_entry){.found = ENGINE_ABSENT};
            return true;
        }
        if (!group_load(cursor, &served, err))
            return false;
        if (!served) {
            cursor->group = SLICE_NONE;
            if (!walk_open(cursor, err))
                return false;
            cursor->grouped = false;
            return entry_seek(cursor, request->ranges[cursor->range].min, SLICE_NONE, err) &&
                   view_walk_next(&cursor->walk, ret_entry, err);
        }
        cursor->range++;
    }
}

static bool entry_next(struct cursor *cursor, struct engine_entry *ret_entry, struct error *err)
{
    return UNLIKELY(cursor->grouped) ? group_next(cursor, ret_entry, err)
                                     : view_walk_next(&cursor->walk, ret_entry, err);
}

bool cursor_next(struct cursor *cursor, struct cursor_hit *ret_hit, bool *ret_more,
                 struct error *err)
{
    struct engine_entry entry;
    enum verdict verdict = PASSED;

    while (verdict == PASSED) {
        if (UNLIKELY(cursor->pending)) {
            cursor->pending = false;
            entry = cursor->entry;
        } else if (!entry_next(cursor, &entry, err)) {
            return false;
        }
        if (entry.found != ENGINE_FOUND)
            break;
        if (UNLIKELY(cursor->at_place)) {
            cursor->at_place = false;
            if (slice_equal(entry.key, buf_slice(&cursor->place)))
                continue;
        }
        cursor->entries++;
        if (!entry_look(cursor, &entry, ret_hit, &verdict, err))
            return false;
    }
    *ret_more = verdict == WANTED;
    if (*ret_more)
        cursor->passed = 0;
    return true;
}

/* --- Counting -------------------------------------------------------------------------------- */

static bool is_whole(const struct cursor_request *request)
{
    return request->kind == CURSOR_INDEX && request->range_count == 1 && !request->logical.len &&
           !request->routing_min.data && !request->routing_max.data;
}

/* Takes the entry apart that is kept in key. */
static bool last_decode(const struct cursor *cursor, struct cursor_hit *hit, struct error *err)
{
    struct slice bytes = slice_skip(buf_slice(&cursor->key), 1 + cursor->request.path.len);
    size_t length, kept;
    bool cut;

    if (!values_length(&cursor->request, bytes, &length, &kept, &cut, err))
        return false;
    if (bytes.len < length + NUMBER_SIZE)
        return error_set(err, ERROR_STORE_CORRUPT, "an index entry is cut short");
    *hit = (struct cursor_hit){.value = slice_first(bytes, kept),
                               .routing =
                                   slice_of(bytes.data + length, bytes.len - length - NUMBER_SIZE),
                               .number = bytes_get_be64(bytes.data + bytes.len - NUMBER_SIZE)};
    return true;
}

/* The bounds of the engine's iterator are those of the range, and no value is the beginning of
 * another, so that nothing of an entry need be looked at but its first bytes. */
bool cursor_pass(struct cursor *cursor, struct slice value, uint64_t max,
                 struct cursor_hit *ret_last, uint64_t *ret_count, struct error *err)
{
    size_t before = 1 + cursor->request.path.len;
    uint64_t count = 0;

    *ret_count = 0;
    if (!is_whole(&cursor->request) || cursor->grouped || cursor->pending || cursor->at_place)
        return true;
    while (count < max) {
        struct engine_entry *entry = &cursor->entry;

        if (!view_walk_next(&cursor->walk, entry, err))
            return false;
        if (entry->found != ENGINE_FOUND ||
            (value.data && !slice_starts_with(slice_skip(entry->key, before), value))) {
            cursor->pending = true;
            break;
        }
        buf_clear(&cursor->key);
        buf_append_slice(&cursor->key, entry->key);
        count++;
    }
    cursor->entries += count;
    *ret_count = count;
    return !count || last_decode(cursor, ret_last, err);
}
