#include "query/run/sums.h"

#include "item/view_overlay.h"
#include "partition/counters.h"
#include "query/access/access.h"

enum { LOOK_EVERY = 1024 }; /* counters between two looks at the clock */

struct summing {
    const struct query_request *request;
    struct query_spans spans;
    struct arena *arena;
    struct slice tail; /* of the keys of the counters: number of the index, name */
    int64_t amounts[INDEX_SUM_NUMBERS];
};

const struct index_definition *query_text_index(const struct item_space *space,
                                                const struct document_path *path)
{
    return space->definition->default_ttl == 0 ? query_text_at(space, path) : NULL;
}

static bool goes_on(const struct summing *s, struct error *err)
{
    const struct query_page_limits *limits = &s->request->limits;

    if (limits->cancelled && atomic_load_explicit(limits->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_CANCELLED, "the client has gone");
    if (limits->deadline_ms &&
        clock_read_monotonic_ms(s->request->space->clock) >= limits->deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the query takes longer than it may");
    return true;
}

static bool counter_add(struct summing *s, const struct engine_entry *entry, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];

    static_assert((int)INDEX_SUM_NUMBERS == (int)COUNTER_NUMBERS, "sums are kept as counters");
    if (entry->key.len < s->tail.len ||
        memcmp(entry->key.data + entry->key.len - s->tail.len, s->tail.data, s->tail.len) != 0)
        return true;
    if (!counter_decode(entry->value, numbers, err))
        return false;
    for (size_t i = 0; i < INDEX_SUM_NUMBERS; i++)
        s->amounts[i] += numbers[i];
    return true;
}

/* c | k | routing key | pk | number of the index | name (item/write_set.c) */
static bool span_add(struct summing *s, size_t number, struct error *err)
{
    struct query_span *span = &s->spans.list[number];
    CLEANUP(view_walk_done) struct view_walk walk = {0};
    struct slice min = SLICE("ck");
    struct engine_entry entry;

    if (!query_spans_admit(&s->spans, number, false, err) ||
        !view_walk_open(
            &walk,
            &(struct view_walk_options){.engine = span->view.scope.engine,
                                        .snapshot = span->view.snapshot,
                                        .partition = span->view.scope.partition,
                                        .range = {min, cursor_prefix_end(s->arena, min)},
                                        .bound = span->view.bound},
            err))
        return false;
    span->cost.index_lookups++;
    for (uint64_t seen = 1;; seen++) {
        if ((seen % LOOK_EVERY == 0 && !goes_on(s, err)) || !view_walk_next(&walk, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        span->cost.index_entries++;
        if (!counter_add(s, &entry, err))
            return false;
    }
}

static bool spans_add(struct summing *s, struct error *err)
{
    const struct partition_range all = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};
    struct query_target target = {.range = all};
    struct query_targets targets = {.list = &target, .count = 1};

    if (!query_targets_serve(&s->spans, &targets, s->arena, err))
        return false;
    for (size_t i = 0; i < s->spans.count; i++)
        if (!s->spans.list[i].missing && (!goes_on(s, err) || !span_add(s, i, err)))
            return false;
    return true;
}

bool query_sums_run(const struct query_request *request, const struct index_definition *definition,
                    struct slice name, int64_t ret_amounts[INDEX_SUM_NUMBERS],
                    struct query_page *ret_page, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct metered_call none = {0}, *call = request->call ? request->call : &none;
    struct summing s = {.request = request, .arena = arena};
    struct cost_query cost;
    bool fine;

    s.tail = arena_join(arena, (struct slice[]){slice_of(&definition->number, 1), name}, 2);
    *ret_page = (struct query_page){0};
    query_spans_init(&s.spans, request, call);
    fine = spans_add(&s, err);
    ret_page->charge_cru =
        query_spans_done(&s.spans, request->paid ? QUERY_PAY_WORK : QUERY_PAY_ALL, &cost);
    call->charge_cru = ret_page->charge_cru;
    ret_page->metrics = (struct query_metrics){.index_entries = cost.index_entries,
                                               .index_lookups = cost.index_lookups,
                                               .partitions = cost.partitions_begun};
    if (fine)
        memcpy(ret_amounts, s.amounts, sizeof s.amounts);
    return fine;
}
