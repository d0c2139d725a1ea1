/* The keys are sorted by physical partition, and each partition's keys are read in one go, which
 * engines answer with one look at each block. Partitions are read by several threads where there
 * are several of them and enough keys; every thread has an arena of its own, and nothing is handed
 * out before all have ended. */
#include "query/run/fetch.h"

#include "query/access/spans.h"

#include <stdlib.h>

enum { PARALLEL_MIN = 64, GROUPS_MAX = 64, CHUNK = 512 };

struct wanted {
    struct slice key;
    size_t span;  /* of the map */
    size_t place; /* in the caller's order */
};

/* The keys of one thread: of partitions that lie side by side. */
struct group {
    struct fetching *fetching;
    size_t begin, end; /* of wanted */
    struct arena *arena;
    uint64_t bytes;
    bool done;
    struct error err;
};

struct fetching {
    const struct query_request *request;
    const struct query_fetch *fetch;
    struct query_spans spans;
    struct wanted *wanted; /* by span and key */
    struct item *items;    /* in the caller's order */
    struct group *groups;  /* in the arena of the fetch */
    size_t group_count;
    _Atomic uint64_t bytes;
};

static int wanted_compare(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;

    if (a->span != b->span)
        return a->span < b->span ? -1 : 1;
    return slice_compare(a->key, b->key);
}

static bool wanted_find(struct fetching *f, struct arena *arena, struct error *err)
{
    const struct item_space *space = f->request->space;
    const struct document_names *names = definition_names_of(space->definition);

    for (size_t i = 0; i < f->fetch->count; i++) {
        const struct items_reference *reference = &f->fetch->references[i];
        struct slice logical = item_logical(&space->definition->key, &reference->key, arena);

        if (!item_space_admits(space, logical, err))
            return false;
        f->wanted[i] =
            (struct wanted){.key = item_key(names, logical, &reference->id, arena), .place = i};
        f->wanted[i].span =
            (size_t)(partition_map_find(space->map, f->wanted[i].key) - f->spans.list[0].span);
    }
    qsort(f->wanted, f->fetch->count, sizeof *f->wanted, wanted_compare);
    return true;
}

/* The keys of one span. */
static size_t span_end(const struct fetching *f, size_t begin)
{
    size_t end = begin + 1;

    while (end < f->fetch->count && f->wanted[end].span == f->wanted[begin].span)
        end++;
    return end;
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool over(struct fetching *f, uint64_t bytes, struct error *err)
{
    const struct query_page_limits *limits = &f->request->limits;

    if (limits->cancelled && atomic_load_explicit(limits->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_CANCELLED, "the client has gone");
    if (limits->bytes_max && atomic_fetch_add(&f->bytes, bytes) + bytes > limits->bytes_max)
        return error_set(err, ERROR_QUERY_LIMIT, "items asked for at once have over %llu bytes",
                         (unsigned long long)limits->bytes_max);
    return true;
}

static bool chunk_read(struct group *group, struct query_span *span, size_t begin, size_t count,
                       struct error *err)
{
    struct fetching *f = group->fetching;
    struct slice *keys = ARENA_ARRAY(group->arena, struct slice, count);
    struct item *items = ARENA_ARRAY(group->arena, struct item, count);
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        keys[i] = f->wanted[begin + i].key;
    if (!view_fetch(&span->view, keys, count, group->arena, items, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        f->items[f->wanted[begin + i].place] = items[i];
        bytes += items[i].document.len;
        span->cost.items_loaded += items[i].document.data != NULL;
    }
    span->cost.loaded_bytes += bytes;
    span->cost.output_bytes += bytes;
    span->cost.index_lookups++;
    return over(f, bytes, err);
}

static void group_read(void *context, size_t number)
{
    struct fetching *f = context;
    struct group *group = &f->groups[number];

    group->done = false;
    for (size_t begin = group->begin, end; begin < group->end; begin = end) {
        struct query_span *span = &f->spans.list[f->wanted[begin].span];

        end = span_end(f, begin);
        for (size_t at = begin; at < end; at += CHUNK)
            if (!chunk_read(group, span, at, MIN(end - at, (size_t)CHUNK), &group->err))
                return;
    }
    group->done = true;
}

/* --- Sharing out ----------------------------------------------------------------------------- */

static size_t groups_wanted(const struct fetching *f)
{
    const struct query_executor *executor = f->request->executor;
    size_t width = executor && !f->request->snapshot ? MIN(executor->width, (size_t)GROUPS_MAX) : 1;

    return f->fetch->count >= PARALLEL_MIN ? MAX(width, (size_t)1) : 1;
}

/* Is it in a span that goes on with the key of the one before? Threads share no snapshot, and items
 * of one logical partition are read at one moment. */
static bool goes_with_last(const struct fetching *f, size_t at)
{
    return at < f->fetch->count &&
           f->spans.list[f->wanted[at].span].span->cut == PARTITION_CUT_SPREAD;
}

/* Groups of about as many keys each; a partition is never in two, nor is a key. */
static void groups_make(struct fetching *f, struct arena *arena)
{
    size_t wanted = groups_wanted(f), each = f->fetch->count / wanted + 1, begin = 0;

    /* each has at least `each` keys but for the last */
    f->groups = ARENA_ARRAY(arena, struct group, MIN(wanted + 1, (size_t)GROUPS_MAX));

    while (begin < f->fetch->count) {
        size_t end = begin;

        while (end < f->fetch->count &&
               (end - begin < each || f->group_count == GROUPS_MAX - 1 || goes_with_last(f, end)))
            end = span_end(f, end);
        f->groups[f->group_count++] =
            (struct group){.fetching = f, .begin = begin, .end = end, .arena = arena_new()};
        begin = end;
    }
}

static bool spans_admit(struct fetching *f, struct error *err)
{
    for (size_t g = 0; g < f->group_count; g++) {
        const struct group *group = &f->groups[g];

        for (size_t at = group->begin; at < group->end; at = span_end(f, at)) {
            if (!query_spans_admit(&f->spans, f->wanted[at].span, false, err) ||
                (f->group_count > 1 &&
                 !query_spans_hand_over(&f->spans, f->wanted[at].span, (uint32_t)g + 1, err)))
                return false;
        }
    }
    return true;
}

static bool groups_read(struct fetching *f, struct error *err)
{
    if (f->group_count > 1)
        f->request->executor->run(f->request->executor->self, f->group_count, group_read, f);
    else
        group_read(f, 0);
    for (size_t i = 0; i < f->group_count; i++) {
        if (!f->groups[i].done) {
            *err = f->groups[i].err;
            return false;
        }
    }
    return true;
}

static void groups_free(struct fetching *f)
{
    for (size_t i = 0; i < f->group_count; i++)
        arena_free(f->groups[i].arena);
}

static bool items_give(const struct fetching *f, struct error *err)
{
    for (size_t i = 0; i < f->fetch->count; i++)
        if (f->items[i].document.data && !f->fetch->take(f->fetch->self, i, &f->items[i], err))
            return false;
    return true;
}

bool query_fetch_run(const struct query_request *request, const struct query_fetch *fetch,
                     struct query_page *ret_page, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct metered_call none = {0};
    struct metered_call *call = request->call ? request->call : &none;
    struct fetching f = {.request = request, .fetch = fetch};
    struct cost_query cost;
    size_t admitted;
    bool fine;

    *ret_page = (struct query_page){0};
    if (!fetch->count)
        return true;
    f.wanted = ARENA_ARRAY(arena, struct wanted, fetch->count);
    f.items = arena_alloc_zero(arena, memory_array_size(fetch->count, sizeof *f.items));
    query_spans_init(&f.spans, request, call);
    fine = wanted_find(&f, arena, err);
    if (fine)
        groups_make(&f, arena);
    fine = fine && spans_admit(&f, err) && groups_read(&f, err);
    if (!fine && request->is_short && err->code == ERROR_COLD) {
        query_spans_drop(&f.spans);
        groups_free(&f);
        return false;
    }
    admitted = f.spans.admitted;
    ret_page->charge_cru =
        query_spans_done(&f.spans, request->paid ? QUERY_PAY_WORK : QUERY_PAY_ALL, &cost);
    call->charge_cru = ret_page->charge_cru;
    ret_page->metrics = (struct query_metrics){.items_loaded = cost.items_loaded,
                                               .loaded_bytes = cost.loaded_bytes,
                                               .rows = cost.items_loaded,
                                               .row_bytes = cost.output_bytes,
                                               .partitions = (uint32_t)admitted};
    fine = fine && items_give(&f, err);
    groups_free(&f);
    return fine;
}
