/* One cursor for each physical partition, with all ranges: between them it seeks. Entries of format
 * 2 have no key of their item, and none is looked up here, which is most of what a walk by other
 * queries costs. */
#include "query/run/entries.h"

#include "index/policy.h"
#include "query/access/access.h"
#include "query/access/spans.h"

enum { ROWS_DEFAULT = 1000, LOOK_EVERY = 64 };

struct walking {
    const struct query_request *request;
    struct query_entries *entries;
    struct query_spans spans;
    struct arena *arena; /* of one entry */
    struct arena *whole; /* of the page */
    struct slice logical;
    struct partition_range range;
    uint64_t rows, rows_max;
    bool full;
};

bool query_entries_serve(const struct item_space *space, const struct index_definition *index)
{
    return index->kind == &index_kind_ordered && index->order == DOCUMENT_ORDER_SQL &&
           !index->multikey && !index->collator && !index->stale && index->state == INDEX_READY &&
           query_definition_is_whole(space, index) && space->definition->default_ttl == 0;
}

/* Where the scope leads. */
static void scope_find(struct walking *w)
{
    const struct query_scope *scope = &w->request->scope;
    const struct partition_definition *key = &w->request->space->definition->key;

    w->range = scope->range;
    if (scope->kind == QUERY_SCOPE_CONTAINER) {
        w->range = (struct partition_range){PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
    } else if (scope->kind == QUERY_SCOPE_KEY) {
        w->range = partition_route_range(key, &scope->key, w->whole);
        if (scope->key.count == key->path_count && !scope->key.open)
            w->logical = item_logical(key, &scope->key, w->whole);
    }
}

static bool goes_on(const struct walking *w, struct error *err)
{
    const struct query_page_limits *limits = &w->request->limits;

    if (limits->cancelled && atomic_load_explicit(limits->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_CANCELLED, "the client has gone");
    if (limits->deadline_ms &&
        clock_read_monotonic_ms(w->request->space->clock) >= limits->deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the query takes longer than it may");
    return true;
}

/* The item of an entry whose values are not whole. */
static bool item_read(struct walking *w, struct query_span *span, const struct cursor_hit *hit,
                      struct query_entry *entry, struct error *err)
{
    struct slice key = arena_copy(w->arena, hit->key);
    struct item item;

    if (!view_fetch(&span->view, &key, 1, w->arena, &item, err))
        return false;
    span->cost.items_loaded++;
    span->cost.loaded_bytes += item.document.len;
    entry->document = item.document;
    return true;
}

static bool values_read(struct walking *w, struct slice bytes, struct document_value *values,
                        struct error *err)
{
    const struct index_definition *index = w->entries->index;
    struct arena *arena = w->entries->arena ? w->entries->arena : w->arena;

    for (size_t i = 0; i < index->part_count; i++)
        if (!document_key_read(index->order, &bytes, arena, &values[i], err))
            return false;
    return true;
}

static bool hit_give(struct walking *w, size_t number, const struct cursor_hit *hit,
                     struct error *err)
{
    struct query_span *span = &w->spans.list[number];
    struct document_value values[INDEX_PARTS_MAX];
    struct query_entry entry = {.values = values, .span = number, .number = hit->number};
    bool given = true;

    if (hit->key.len) {
        if (!item_read(w, span, hit, &entry, err))
            return false;
        given = entry.document.data != NULL; /* gone meanwhile */
    } else if (!values_read(w, hit->value, values, err)) {
        return false;
    }
    span->cost.output_bytes += hit->value.len;
    if (given && !w->entries->take(w->entries->self, &entry, err))
        return false;
    arena_reset(w->arena);
    w->rows += given;
    return true;
}

static void place_keep(struct walking *w, size_t span, const struct cursor_hit *hit)
{
    w->entries->place =
        (struct query_entries_place){.begun = true,
                                     .span = span,
                                     .value = arena_copy(w->request->arena, hit->value),
                                     .routing = arena_copy(w->request->arena, hit->routing),
                                     .number = hit->number};
}

static bool cursor_walk(struct walking *w, size_t number, struct cursor *cursor, struct error *err)
{
    for (uint64_t seen = 1;; seen++) {
        struct cursor_hit hit;
        bool more;

        if ((seen % LOOK_EVERY == 0 && !goes_on(w, err)) ||
            !cursor_next(cursor, &hit, &more, err) || (more && !hit_give(w, number, &hit, err)))
            return false;
        if (!more)
            return true;
        if (w->rows >= w->rows_max) {
            place_keep(w, number, &hit);
            w->full = true;
            return true;
        }
    }
}

static bool span_walk(struct walking *w, size_t number, struct error *err)
{
    const struct query_entries *entries = w->entries;
    const struct query_entries_place *place = &entries->place;
    bool resumed = place->begun && place->span == number;
    struct query_span *span = &w->spans.list[number];
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_request asked = {.kind = CURSOR_INDEX,
                                   .logical = w->logical,
                                   .path = entries->index->prefix,
                                   .value_count = entries->index->part_count,
                                   .order = entries->index->order,
                                   .values_alone = true,
                                   .grouped = entries->grouped,
                                   .ranges = entries->ranges,
                                   .range_count = entries->range_count};
    bool fine;

    if (!w->logical.len) {
        if (slice_compare(w->range.min, span->span->min) > 0)
            asked.routing_min = w->range.min;
        if (slice_compare(w->range.max, span->span->max) < 0)
            asked.routing_max = w->range.max;
    }
    if (!query_spans_admit(&w->spans, number, resumed, err) ||
        !cursor_open(&span->view, &asked, &cursor, err))
        return false;
    span->cost.index_lookups++;
    fine = (!resumed ||
            cursor_seek_behind(cursor, place->value, place->routing, place->number, err)) &&
           cursor_walk(w, number, cursor, err);
    span->cost.index_entries += cursor_entries(cursor);
    return fine;
}

static bool spans_walk(struct walking *w, struct error *err)
{
    size_t first, count;

    struct query_target target;
    struct query_targets targets = {.list = &target, .count = 1};

    scope_find(w);
    target = (struct query_target){.range = w->range, .logical = w->logical};
    /* a loop waits for no node: one that is away is cold */
    if (w->request->is_short
            ? w->logical.len && !item_space_admits(w->request->space, w->logical, err)
            : !query_targets_serve(&w->spans, &targets, w->whole, err))
        return false;
    count = query_spans_overlap(&w->spans, w->range, &first);
    for (size_t i = first; i < first + count && !w->full; i++) {
        if (w->entries->place.begun && i < w->entries->place.span)
            continue;
        if (!goes_on(w, err) || !span_walk(w, i, err))
            return false;
    }
    w->entries->ended = !w->full;
    return true;
}

bool query_entries_run(const struct query_request *request, struct query_entries *entries,
                       struct query_page *ret_page, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(arena_free) struct arena *whole = arena_new();
    struct metered_call none = {0}, *call = request->call ? request->call : &none;
    struct walking w = {.request = request,
                        .entries = entries,
                        .arena = arena,
                        .whole = whole,
                        .rows_max =
                            request->limits.rows_max ? request->limits.rows_max : ROWS_DEFAULT};
    struct cost_query cost;
    size_t admitted;
    bool fine;

    assert(request->scope.kind != QUERY_SCOPE_KEYS);
    *ret_page = (struct query_page){0};
    query_spans_init(&w.spans, request, call);
    fine = spans_walk(&w, err);
    if (!fine && request->is_short && err->code == ERROR_COLD) {
        query_spans_drop(&w.spans);
        return false;
    }
    admitted = w.spans.admitted;
    ret_page->charge_cru =
        query_spans_done(&w.spans, request->paid ? QUERY_PAY_WORK : QUERY_PAY_ALL, &cost);
    call->charge_cru = ret_page->charge_cru;
    ret_page->metrics = (struct query_metrics){.items_loaded = cost.items_loaded,
                                               .loaded_bytes = cost.loaded_bytes,
                                               .rows = w.rows,
                                               .row_bytes = cost.output_bytes,
                                               .index_entries = cost.index_entries,
                                               .index_lookups = cost.index_lookups,
                                               .partitions = (uint32_t)admitted};
    return fine;
}
