/* One page: read the continuation, choose the access, let the mode of the query do its work, write
 * the next continuation, settle.
 *
 * There are few modes, and this file has the two that need no memory for rows: a stream gives each
 * row as it comes and its continuation is the place of the last one; aggregates keep one state per
 * call, which is part of the continuation if the page ends before all is seen. Sorts, groups and
 * distinct rows gather first, in a spool (run_spool.c).
 *
 * Nothing of a query lives between pages unless it must. The continuation says where to go on in
 * terms of keys, not of partitions or snapshots, so that a split, a restart of the server or a
 * client that comes back tomorrow make no difference; the price is that pages see the items as they
 * are by then, which is what the service promises as well. A cursor held by the server would be
 * cheaper per page, and would have to be bounded, expired and moved along with partitions.
 *
 * A page ends when it has the rows or bytes asked for, when its time or the throughput of a
 * partition is used up, or at the end of the data. Only a page that knows whether another row
 * follows may give a continuation that clients take for one, so a full page looks on.
 *
 * Charges are settled once, at the end and also after a failure: what was read was read. */
#include "query/run/run_private.h"

#include "query/run/sums.h"

#include "query/stage/rest.h"
#include "query/value/compare.h"

#include <math.h>
#include <xxhash.h>

/* --- Streaming ------------------------------------------------------------------------------- */

/* Which indexes a query that begins has come to use. */
static void index_tell(const struct query_request *request, const struct query_index_use *use)
{
    if (!use || !request->index_used)
        return;
    if (use->definition)
        request->index_used(request->index_used_self, &request->container, use->definition);
    for (size_t i = 0; i < use->member_count; i++)
        index_tell(request, &use->members[i]);
}

static void indexes_tell(const struct query_run_state *run)
{
    if (run->access.kind == QUERY_ACCESS_INDEX) {
        index_tell(run->request, run->access.index);
        for (size_t i = 0; i < run->access.with_count; i++)
            index_tell(run->request, run->access.with[i]);
        index_tell(run->request, run->access.without);
    }
}

static bool access_choose(struct query_run_state *run, struct error *err);
static void feed_open(struct query_run_state *run);

/* Calls of functions of the user are made for many rows at once, where that can be. */
static void ahead_make(struct query_run_state *run)
{
    run->ahead = query_ahead_new(run->plan, &run->request->udf, query_run_names(run),
                                 run->request->container);
    run->context.ahead =
        (struct query_made_ahead){.self = run->ahead, .find = run->ahead ? query_ahead_find : NULL};
}

/* Was the row given by the page before, which ended within its item? That item comes first, if it
 * is still there. */
static bool was_given(const struct query_run_state *run)
{
    return run->from.begun && run->hits == 0 && run->row <= run->from.place.rows &&
           run->hit->place.number == run->from.place.number;
}

/* Documents at hand are feeds of metadata, whose pages end as those of lists do. */
static bool looks_ahead(const struct query_run_state *run)
{
    return run->feed || run->plan->constant;
}

static bool stream_take(struct query_run_state *run, bool *ret_stop, struct error *err)
{
    bool joins = run->plan->query.source_count > 0;
    struct document_value value;
    struct query_place place;

    if (was_given(run))
        return true;
    if (!query_evaluate(run->plan->query.select, &run->context, &value, err))
        return false;
    if (run->output.full) {
        *ret_stop = query_row_shows(run, &value) || (joins && query_run_should_pause(run));
        return true;
    }
    if (!query_row_give(run, &value, err))
        return false;
    *ret_stop = run->finished || (run->output.full && !looks_ahead(run)) ||
                (joins && run->output.rows && query_run_should_pause(run));
    if (!*ret_stop && !run->output.full)
        return true;
    place = run->hit->place;
    place.rows = joins ? run->row : 0;
    query_place_keep(run, &place, run->hit->window);
    if (!*ret_stop && run->feed)
        query_hits_expect(run->feed, 1);
    return true;
}

bool query_run_again(struct query_run_state *run, struct error *err)
{
    run->hits = run->looked_at = 0;
    query_hits_free(TAKE(run->feed));
    query_ahead_free(run->ahead);
    ahead_make(run);
    run->judged = false;
    if (!access_choose(run, err))
        return false;
    feed_open(run);
    return true;
}

/* The index cannot tell apart the values that come next: what is behind this place is sorted, and
 * the page goes on with it. To leave that to the next page would be to send it a continuation
 * without knowing whether there is a row. If it cannot be done now and rows were given, it is left
 * to the next page after all. */
static bool stream_sort(struct query_run_state *run, bool *ret_more, struct error *err)
{
    struct query_position at = run->at;
    uint64_t rows = run->output.rows;

    at.place.key = arena_copy(run->arena, at.place.key);
    at.place.routing = arena_copy(run->arena, at.place.routing);
    at.place.cut = at.place.key.len >= INDEX_VALUE_MAX;
    run->from = run->at = at;
    run->mode = QUERY_MODE_SORT;
    if (!query_run_again(run, err))
        return false;
    if (query_spool_run(run, ret_more, err))
        return true;
    if (!rows || run->output.rows > rows || err->code == ERROR_COLD)
        return false;
    *err = (struct error){0};
    run->at = at;
    *ret_more = true;
    return true;
}

/* A page that is full goes on until it has seen one more row, the end, or its time is up: only then
 * is it known whether there is anything to go on for. What lies between was looked at and need not
 * be again: the place is the last hit that is done. A fault behind the last row is told to the page
 * that needs the row. */
static bool stream_run(struct query_run_state *run, bool *ret_more, struct error *err)
{
    bool ended;

    if (!query_rows_take(run, stream_take, true, &ended, err)) {
        if (!run->output.full || err->code == ERROR_COLD)
            return false;
        *err = (struct error){0};
        ended = false;
    }
    *ret_more = !ended && !run->finished;
    if (run->feed && query_hits_is_unsure(run->feed))
        run->at.sorted = true;
    if (!run->drained || !run->at.sorted || run->held || query_run_is_over(run))
        return true;
    return stream_sort(run, ret_more, err);
}

/* --- Aggregates ------------------------------------------------------------------------------ */

struct aggregating {
    struct query_aggregate *states;
    size_t count;
    bool counts; /* every row counts the same: nothing needs to be evaluated */
};

static void aggregating_done(struct aggregating *a)
{
    for (size_t i = 0; i < a->count; i++)
        query_aggregate_done(&a->states[i]);
}
CLEANUP_VALUE_FN(struct aggregating, aggregating_done)

/* COUNT(1) and its like, of items as they are. */
static bool counts_rows(const struct query_run_state *run)
{
    const struct query_subquery *query = &run->plan->query;

    if (run->mode != QUERY_MODE_AGGREGATE || query->source_count || run->plan->constant)
        return false;
    for (size_t i = 0; i < query->aggregate_count; i++) {
        const struct query_expression *argument = query->aggregates[i].argument;

        if (query->aggregates[i].kind != QUERY_COUNT || !query_is_constant(argument) ||
            query_constant_value(argument)->type == DOCUMENT_UNDEFINED)
            return false;
    }
    return true;
}

/* The same of rows that the access alone decides on. */
static bool only_counts(const struct query_run_state *run)
{
    return counts_rows(run) && (!run->plan->query.filter || run->access.exact);
}

static bool aggregate_take(struct query_run_state *run, bool *ret_stop UNUSED, struct error *err)
{
    struct aggregating *a = run->taking;

    for (size_t i = 0; i < a->count; i++) {
        struct document_value value;

        if (a->counts) {
            a->states[i].count += run->hit->times;
            continue;
        }
        a->states[i].at = query_hit_number(run);
        if (!query_evaluate(run->plan->query.aggregates[i].argument, &run->context, &value, err) ||
            !query_run_aggregate_add(run, &a->states[i], &value, err))
            return false;
    }
    return true;
}

static bool states_load(struct query_run_state *run, struct aggregating *a, size_t bytes_max,
                        struct error *err)
{
    const struct query_aggregate_call *calls = run->plan->query.aggregates;
    struct document_iter iter;

    if (run->from.states.len && !document_validate(run->from.states, NULL, err))
        return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
    if (run->from.states.len)
        document_iter_init(&iter, run->from.states);
    for (; a->count < run->plan->query.aggregate_count; a->count++) {
        struct query_aggregate *state = &a->states[a->count];
        bool loaded = true;

        if (!run->from.states.len)
            query_aggregate_init(state, calls[a->count].kind, run->plan->order, bytes_max);
        else if (document_iter_next(&iter))
            loaded = query_aggregate_load(state, calls[a->count].kind, run->plan->order,
                                          &iter.value, bytes_max, err);
        else
            return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
        if (!loaded) {
            a->count++;
            return false;
        }
    }
    return true;
}

/* The states as they stand in a continuation. */
static struct slice states_save(const struct query_run_state *run, const struct aggregating *a)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = 0; i < a->count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        query_aggregate_save(&a->states[i], document_index_key((uint32_t)i, text), &buf);
    }
    document_end(&buf, begin);
    return arena_copy(run->arena, buf_slice(&buf));
}

static bool aggregate_give(struct query_run_state *run, struct aggregating *a, struct error *err)
{
    const struct query_subquery *query = &run->plan->query;
    struct document_value value;

    arena_reset(run->row_arena);
    run->context.slots[0] = (struct query_slot){.value = document_undefined()};
    for (size_t i = 0; i < a->count; i++)
        run->context.slots[query->aggregates[i].slot] =
            (struct query_slot){.value = query_aggregate_finish(&a->states[i])};
    return query_evaluate(query->select, &run->context, &value, err) &&
           query_row_give(run, &value, err);
}

/* A page may end before all is seen only where the states so far fit the continuation. */
static bool aggregate_rows(struct query_run_state *run, struct aggregating *a, bool *ret_ended,
                           struct error *err)
{
    do {
        if (!query_rows_take(run, aggregate_take, true, ret_ended, err))
            return false;
        if (*ret_ended)
            return true;
        run->at.states = states_save(run, a);
        if (query_position_save(&run->at, query_plan_binding(run->plan), run->arena).data)
            return true;
        run->hits++;
    } while (!run->held);
    return error_set(err, ERROR_TOO_MANY_REQUESTS,
                     "the throughput of a partition that the query needs is used up");
}

/* --- In parts --------------------------------------------------------------------------------- */

static void *part_open(struct query_run_state *part, size_t part_count UNUSED)
{
    const struct aggregating *whole = part->taking;
    struct aggregating *a = MEMORY_NEW(struct aggregating);

    a->counts = whole->counts;
    a->count = whole->count;
    a->states = memory_alloc(memory_array_size(a->count, sizeof *a->states));
    for (size_t i = 0; i < a->count; i++)
        query_aggregate_init(&a->states[i], part->plan->query.aggregates[i].kind, part->plan->order,
                             part->context.limits.bytes_max);
    return a;
}

static bool part_merge(void *whole, void *part, struct error *err)
{
    struct aggregating *to = whole, *from = part;

    for (size_t i = 0; i < to->count; i++) {
        if (!query_aggregate_merge(&to->states[i], &from->states[i], err))
            return false;
    }
    return true;
}

static void part_close(void *part)
{
    struct aggregating *a = part;

    aggregating_done(a);
    memory_free(a->states);
    memory_free(a);
}

/* All of it at once, if that can be done. */
static bool aggregate_parts(struct query_run_state *run, bool *ret_done, struct error *err)
{
    static const struct query_taking taking = {aggregate_take, part_open, part_merge, part_close};

    *ret_done = false;
    if (run->from.begun)
        return true;
    if (!query_parallel_wanted(run, ret_done, err))
        return false;
    return !*ret_done || query_parallel_take(run, &taking, err);
}

/* The least and the greatest value stand at the ends of an index; so do the arrays and objects that
 * spoil either. */
static bool only_ends(const struct query_run_state *run)
{
    const struct query_subquery *query = &run->plan->query;

    for (size_t i = 0; i < query->aggregate_count; i++) {
        if ((query->aggregates[i].kind != QUERY_MIN && query->aggregates[i].kind != QUERY_MAX) ||
            query->aggregates[i].argument->kind != &query_kind_property)
            return false;
    }
    return run->covered && !run->from.begun && run->plan->order == run->access.index->order;
}

/* Goes on while there is nothing but undefined. */
static bool end_take(struct query_run_state *run, bool *ret_stop, struct error *err)
{
    struct document_value value;

    if (!query_evaluate(run->plan->query.aggregates[0].argument, &run->context, &value, err))
        return false;
    *ret_stop = value.type != DOCUMENT_UNDEFINED;
    return aggregate_take(run, ret_stop, err);
}

/* *ret_sure false: long values stand there together, and all have to be looked at. */
static bool ends_take(struct query_run_state *run, bool *ret_sure, struct error *err)
{
    struct query_hits_options options = {
        .order = QUERY_HITS_MERGED, .first_batch = 1, .timed = run->request->timed};
    struct query_position nowhere = {0};
    bool ended;

    *ret_sure = true;
    for (int backwards = 0; backwards < 2 && *ret_sure; backwards++) {
        query_hits_free(run->feed);
        run->access.backwards = backwards;
        run->feed = query_hits_new(&run->spans, &run->access, &options, &nowhere);
        if (!query_rows_take(run, end_take, false, &ended, err))
            return false;
        *ret_sure = !query_hits_is_unsure(run->feed);
    }
    query_hits_free(TAKE(run->feed));
    run->access.backwards = false;
    feed_open(run);
    return true;
}

static bool aggregate_run(struct query_run_state *run, bool *ret_more, struct error *err)
{
    CLEANUP(aggregating_done) struct aggregating a = {0};
    uint64_t counted;
    bool ended = false, known = false;

    a.states = ARENA_ARRAY(run->arena, struct query_aggregate, run->plan->query.aggregate_count);
    a.counts = only_counts(run);
    if (!states_load(run, &a, run->context.limits.bytes_max, err))
        return false;
    run->taking = &a;
    if (a.counts && run->feed && !run->from.begun && run->access.kind == QUERY_ACCESS_SCAN &&
        !query_hits_count(&run->spans, &run->access, &known, &counted, err))
        return false;
    for (size_t i = 0; known && i < a.count; i++)
        a.states[i].count += counted;
    if (!known && !query_sums_take(run, a.states, &known, err))
        return false;
    if (!known && only_ends(run)) {
        if (!ends_take(run, &known, err))
            return false;
    }
    if (!known && !aggregate_parts(run, &known, err))
        return false;
    if (!known && !aggregate_rows(run, &a, &ended, err))
        return false;
    *ret_more = !known && !ended;
    return *ret_more || aggregate_give(run, &a, err);
}

/* --- The page -------------------------------------------------------------------------------- */

static enum query_mode mode_of(const struct query_plan *plan)
{
    const struct query_subquery *query = &plan->query;

    if (query->key_count)
        return QUERY_MODE_GROUP;
    if (query->aggregate_count)
        return QUERY_MODE_AGGREGATE;
    if (query->distinct)
        return QUERY_MODE_DISTINCT;
    return query->order_count ? QUERY_MODE_SORT : QUERY_MODE_STREAM;
}

static bool run_mode(struct query_run_state *run, bool *ret_more, struct error *err)
{
    switch (run->mode) {
    case QUERY_MODE_STREAM:
        return stream_run(run, ret_more, err);
    case QUERY_MODE_AGGREGATE:
        return aggregate_run(run, ret_more, err);
    default:
        return query_spool_run(run, ret_more, err);
    }
}

/* MongoDB's documents have up to 16 MiB: room to make another of one. */
enum { LARGE_DOCUMENT_BYTES = 33 * 1024 * 1024 };

void query_run_context_init(struct query_run_state *run)
{
    const struct query_page_limits *limits = &run->request->limits;
    struct query_limits evaluation = {.work_max = limits->work_max,
                                      .deadline_ms = limits->deadline_ms};

    if (run->request->is_short)
        evaluation = (struct query_limits){
            .work_max = QUERY_SHORT_WORK, .bytes_max = 4 * QUERY_SHORT_BYTES, .brief = true};

    if (run->plan->order == DOCUMENT_ORDER_MONGO)
        evaluation.bytes_max = LARGE_DOCUMENT_BYTES;
    run->row_arena = arena_new();
    query_context_init(&run->context, run->row_arena, &evaluation, run->clock);
    run->context.slot_count = MAX(run->plan->slot_count, 1u);
    run->context.slots =
        memory_alloc_zero(memory_array_size(run->context.slot_count, sizeof(struct query_slot)));
    for (size_t i = 0; i < run->context.slot_count; i++)
        run->context.slots[i].value = document_undefined();
    run->context.cancelled = limits->cancelled;
    run->context.breath = limits->breath;
    run->context.memory = limits->memory;
    run->context.rendered = limits->rendered;
    if (run->request->now_ticks)
        run->context.now_ticks = run->request->now_ticks;
    for (size_t i = 0; i < run->request->binding_count; i++) {
        const struct query_binding *binding = &run->request->bindings[i];

        assert(binding->slot < run->context.slot_count);
        run->context.slots[binding->slot] = (struct query_slot){.value = binding->value};
    }
    run->context.udf = run->request->udf;
    run->context.reference = run->request->reference;
    run->context.order = run->plan->order;
    run->context.keep_nonfinite = run->plan->order == DOCUMENT_ORDER_MONGO;
}

/* A logical partition may have been placed elsewhere since: where the page before ended is the same
 * place under its present routing key. */
static void position_reroute(struct query_run_state *run)
{
    const struct query_scope *scope = &run->request->scope;
    const struct partition_definition *key;
    struct query_position *from = &run->from;
    struct partition_range range;
    struct slice rest = from->place.key;
    CLEANUP(buf_done) struct buf bytes;
    struct error ignored;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!from->begun || scope->kind != QUERY_SCOPE_KEY || scope->key.partial)
        return;
    key = &run->request->space->definition->key;
    range = partition_route_range(key, &scope->key, run->arena);
    if (slice_compare(from->window.max, PARTITION_ROUTING_MAX) < 0 &&
        (slice_compare(from->window.min, range.min) < 0 ||
         slice_compare(from->window.max, range.max) > 0)) /* else it is a part of the key */
        from->window = range;
    if (from->place.routing.len) {
        from->place.routing = range.min;
    } else if (run->mode == QUERY_MODE_AGGREGATE && rest.len &&
               partition_route_skip(key, &rest, &ignored)) { /* the key of an item */
        buf_append_slice(&bytes, range.min);
        buf_append_slice(&bytes, rest);
        from->place.key = arena_copy(run->arena, buf_slice(&bytes));
    }
}

static bool run_init(struct query_run_state *run, const struct query_plan *plan,
                     const struct query_request *request, const struct clock *clock,
                     struct error *err)
{
    *run = (struct query_run_state){.plan = plan,
                                    .request = request,
                                    .arena = request->arena,
                                    .mode = mode_of(plan),
                                    .output = {.request = request}};
    buf_init(&run->place_bytes, BUF_DEFAULT_MAX);
    run->clock = clock;
    query_run_context_init(run);
    run->from = query_position_first(plan, run->context.now_ticks);
    if (request->continuation.len &&
        !query_position_load(request->continuation, query_plan_binding(plan), &run->from, err))
        return false;
    /* Only an order can have met values that an index cannot tell apart; nothing else is sorted. */
    if (run->from.sorted && !plan->query.order_count)
        return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
    position_reroute(run);
    run->context.now_ticks = run->from.now_ticks;
    run->at = run->from;
    if (plan->query.key_count && plan->query.order_count)
        return error_set(err, ERROR_QUERY_NOT_SUPPORTED, "ORDER BY together with GROUP BY");
    return true;
}

void query_run_done(struct query_run_state *run)
{
    query_hits_free(run->feed);
    query_ahead_free(run->ahead);
    memory_free(run->context.slots);
    query_context_done(&run->context);
    arena_free(run->row_arena);
    buf_done(&run->place_bytes);
}

/* The continuation of an unfinished query. A place that does not fit is an order key of many long
 * values: those have no other end than an error. */
static bool page_end(struct query_run_state *run, bool more, struct query_page *page,
                     struct error *err)
{
    page->metrics.rows = run->output.rows;
    page->metrics.row_bytes = run->output.row_bytes;
    page->metrics.output_ns = run->output.given_ns;
    page->metrics.work = run->context.work;
    if (!more && !(run->request->tail && run->at.begun && run->at.limit))
        return true;
    page->continuation = query_position_save(&run->at, query_plan_binding(run->plan), run->arena);
    return page->continuation.data ||
           error_set(err, ERROR_QUERY_LIMIT,
                     "the place where the page ends takes more than the %d bytes of a continuation",
                     QUERY_CONTINUATION_MAX);
}

/* --- Documents ------------------------------------------------------------------------------- */

struct at_hand {
    const struct slice *documents;
    size_t count;
};

static bool documents_page(void *self, const struct query_plan *plan,
                           const struct query_request *request, struct query_page *ret_page,
                           struct error *err)
{
    struct at_hand *at_hand = self;

    return query_run_documents(plan, at_hand->documents, at_hand->count, request, ret_page, err);
}

bool query_run_documents(const struct query_plan *plan, const struct slice *documents, size_t count,
                         const struct query_request *request, struct query_page *ret_page,
                         struct error *err)
{
    CLEANUP(query_run_done) struct query_run_state run = {0};
    struct at_hand at_hand = {documents, count};
    struct query_page page = {0};
    bool more = false;

    if (plan->rest)
        return query_rest_run(plan, request, (struct query_head){documents_page, &at_hand},
                              ret_page, err);
    if (!run_init(&run, plan, request, NULL, err))
        return false;
    run.documents = documents;
    run.document_count = count;
    run.rules =
        (struct query_order_rules){.keeps_undefined = plan->order_free, .keeps_nested = true};
    if (run.mode == QUERY_MODE_STREAM && run.from.begun)
        run.document_at =
            (size_t)MIN(run.from.place.number - (run.from.place.rows != 0), (uint64_t)count);
    if (run.at.limit && !run_mode(&run, &more, err))
        return false;
    if (!page_end(&run, more, &page, err))
        return false;
    *ret_page = page;
    return true;
}

/* --- Containers ------------------------------------------------------------------------------ */

enum {
    /* What a continuation says instead of an access: items are read by key and sorted by number. */
    SORTED_SCAN_MARK = 1,
    SORTED_SCAN_ITEMS_MAX = 100000,
};

bool query_targets_count(struct query_run_state *run, uint64_t max, uint64_t *ret_items,
                         struct error *err)
{
    *ret_items = 0;
    for (size_t t = 0; t < run->access.target_count; t++) {
        const struct query_target *target = &run->access.targets[t];
        size_t first, count = query_spans_overlap(&run->spans, target->range, &first);

        for (size_t i = first; i < first + count && *ret_items <= max; i++) {
            uint64_t items, bytes;
            struct view *view;

            if (!query_spans_view(&run->spans, i, &view, err) ||
                !view_count(view, target->logical, &items, &bytes, err))
                return false;
            *ret_items += items;
        }
    }
    return true;
}

/* A scan in order of creation looks up each item by its number. Where a filter passes over most of
 * them it is far cheaper to read them by key, as they are stored, and to sort what is left; if
 * there are not too many, and the rest of the result can be kept for the next page. Items of
 * logical partitions that no index leads to are always read so, and those of a partial key if there
 * are few: by number, all items of their partition would have to be passed over. */
static bool sorted_scan_wanted(struct query_run_state *run, bool *ret_wanted, struct error *err)
{
    const struct query_access *access = &run->access;
    uint64_t items;

    *ret_wanted = run->from.begun && run->from.access == SORTED_SCAN_MARK;
    if (run->request->tail)
        return true;
    if (*ret_wanted || access->kind != QUERY_ACCESS_SCAN || run->from.begun)
        return true;
    *ret_wanted = access->target_count && access->targets[0].logical.len;
    if (*ret_wanted || !run->request->cache)
        return true;
    if (run->request->scope.kind != QUERY_SCOPE_KEY && (!run->plan->query.filter || access->exact))
        return true;
    if (!query_targets_count(run, SORTED_SCAN_ITEMS_MAX, &items, err))
        return false;
    *ret_wanted = items <= SORTED_SCAN_ITEMS_MAX;
    return true;
}

/* Is the order that of the item alone, whichever of its rows it is? */
static bool order_is_of_item(const struct query_subquery *query)
{
    for (size_t i = 0; i < query->order_count; i++)
        if (query->order[i].expression->slots_used & ~(uint64_t)1)
            return false;
    return true;
}

/* Does the key that was kept say the same as that of the item, whole or as an index has it? */
static bool is_key_of(struct query_run_state *run, struct slice kept, struct slice whole,
                      bool *ret_is, struct error *err)
{
    CLEANUP(buf_done) struct buf cut;
    bool in_order;

    buf_init(&cut, BUF_DEFAULT_MAX);
    if (!query_order_key(run, true, &cut, &in_order, err))
        return false;
    *ret_is = slice_starts_with(whole, kept) || slice_starts_with(buf_slice(&cut), kept);
    return true;
}

/* The whole order key of the place where the page before ended, from its item. If that is gone, as
 * much of it counts as is sure to be its beginning: where several values were cut by an index the
 * first cut is not before INDEX_VALUE_MAX. */
static bool key_complete(struct query_run_state *run, struct error *err)
{
    CLEANUP(buf_done) struct buf key;
    const struct query_subquery *query = &run->plan->query;
    struct query_place *place = &run->from.place;
    struct item item;
    bool in_order, is;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (!run->from.begun || !place->cut || query_order_is_cut(run->plan) ||
        !order_is_of_item(query))
        return true;
    if (!items_read_number(run->request->space, place->number, run->arena, &item, err)) {
        if (query->order_count > 1)
            place->key = slice_first(place->key, INDEX_VALUE_MAX);
        return err->code == ERROR_ITEM_MISSING;
    }
    query_item_bind(&run->item, &item, query_run_names(run), run->request->container,
                    &run->context.slots[0]);
    if (!query_order_key(run, false, &key, &in_order, err) ||
        !is_key_of(run, place->key, buf_slice(&key), &is, err))
        return false;
    if (in_order && is) {
        place->key = arena_copy(run->arena, buf_slice(&key));
        place->cut = false;
    }
    return true;
}

/* Did the page before end at a value that an index would have cut? It does not know that place. */
static bool is_beyond_index(const struct query_run_state *run)
{
    return run->from.begun && !query_order_is_cut(run->plan) &&
           run->from.place.key.len > INDEX_VALUE_MAX;
}

/* An order by vectors is had from their index where all items would be read. */
static void vectors_choose(struct query_run_state *run)
{
    const struct query_index_use *use =
        query_vectors_use(run->plan, run->request->space, &run->access, run->arena);

    if (!use)
        return;
    run->access.kind = QUERY_ACCESS_INDEX;
    run->access.index = use;
    run->access.exact = run->plan->query.filter == NULL;
}

/* So is one by scores of texts, and where the filter asks for nothing but their terms. */
static void scores_choose(struct query_run_state *run)
{
    const struct query_index_use *use =
        query_scores_use(run->plan, run->request->space, &run->access, run->arena);

    if (!use)
        return;
    run->access.exact = run->access.kind == QUERY_ACCESS_INDEX ? run->access.exact
                                                               : run->plan->query.filter == NULL;
    run->access.kind = QUERY_ACCESS_INDEX;
    run->access.index = use;
}

static bool access_choose(struct query_run_state *run, struct error *err)
{
    bool streams = run->mode == QUERY_MODE_STREAM, known = true;
    struct query_access_wish wish = {
        .order = run->mode == QUERY_MODE_SORT,
        .order_sorted = run->from.sorted || is_beyond_index(run),
        .cover = run->cover.alone ? &run->cover.path : NULL,
        .number_order = streams,
        .counts = counts_rows(run) && !run->request->space->definition->default_ttl,
        .rows = streams ? MIN(run->request->limits.rows_max ? run->request->limits.rows_max : 100,
                              run->plan->query.limit)
                        : 0,
        .resumed = run->from.begun && (streams || run->mode == QUERY_MODE_AGGREGATE) &&
                   run->from.access != SORTED_SCAN_MARK,
        .mark = run->from.access,
        .within = run->within,
        .near_rows = run->near_rows,
        .counted = run->request->explain,
        .context = &run->context,
    };

    if (!query_order_check(run->plan, run->request, run->arena, &run->rules, err) ||
        !query_access_choose(run->plan, &run->spans, &wish, run->arena, &run->access, err) ||
        !query_work(&run->context, run->access.work, err))
        return false;
    if (run->near_rows && isfinite(run->access.within))
        run->within = run->access.within;
    run->near_rows = 0;
    if (run->mode == QUERY_MODE_SORT && run->plan->order_defined)
        vectors_choose(run);
    if (run->mode == QUERY_MODE_SORT && !run->unscored)
        scores_choose(run);
    if (!run->request->continuation.len && !run->request->is_short)
        indexes_tell(run);
    run->covered = query_cover_holds(&run->cover, run->plan, &run->access, run->request->space);
    run->keyed = query_cover_is_key(&run->cover, &run->access, run->request->space);
    if (run->covered && run->cover.counts_missing && run->plan->query.filter == NULL &&
        !query_hits_count(&run->spans, &run->access, &known, &run->items_count, err))
        return false;
    if (!known) {
        /* How many have no value cannot be told: all items are read. */
        run->cover = (struct query_cover){0};
        return access_choose(run, err);
    }
    if (streams && !sorted_scan_wanted(run, &run->by_number, err))
        return false;
    if (run->mode == QUERY_MODE_SORT && !run->access.ordered && !key_complete(run, err))
        return false;
    if (run->access.ordered) {
        run->mode = QUERY_MODE_STREAM;
    } else if (run->by_number) {
        run->mode = QUERY_MODE_SORT;
    }
    run->at.access = run->by_number ? SORTED_SCAN_MARK
                     : streams || run->mode == QUERY_MODE_AGGREGATE
                         ? query_access_mark(&run->access)
                         : 0;
    return true;
}

/* May hits be taken several at once? Not where rows are given one by one, or differ by chance. */
static enum query_hits_runs runs_of(const struct query_run_state *run)
{
    const struct query_subquery *query = &run->plan->query;

    if (run->access.index && run->access.index->repeats)
        return QUERY_RUNS_NONE;
    if (only_counts(run))
        return QUERY_RUNS_ANY;
    if (!run->covered || run->mode == QUERY_MODE_STREAM || run->mode == QUERY_MODE_SORT)
        return QUERY_RUNS_NONE;
    for (size_t i = 0; i < query->aggregate_count; i++)
        if (query->aggregates[i].argument->stability == QUERY_UNSTABLE)
            return QUERY_RUNS_NONE;
    for (size_t i = 0; i < query->key_count; i++)
        if (query->keys[i].expression->stability == QUERY_UNSTABLE)
            return QUERY_RUNS_NONE;
    return query->select->stability == QUERY_UNSTABLE ? QUERY_RUNS_NONE : QUERY_RUNS_EQUAL;
}

/* Does a page hand out part of a result that was worked out as a whole? */
static bool mode_is_spooled(const struct query_run_state *run)
{
    return run->mode != QUERY_MODE_STREAM && run->mode != QUERY_MODE_AGGREGATE;
}

static void feed_open(struct query_run_state *run)
{
    const struct query_page_limits *limits = &run->request->limits;
    struct query_hits_options options = {.order = QUERY_HITS_ANY,
                                         .load = true,
                                         .timed = run->request->timed,
                                         .resumed = run->from.begun};
    struct query_position nowhere = {0};
    bool streams = run->mode == QUERY_MODE_STREAM;

    if (streams)
        options.order = run->access.ordered ? QUERY_HITS_MERGED : QUERY_HITS_WINDOWS;
    options.ties = streams && run->access.ordered;
    options.whole = !query_order_is_cut(run->plan);
    if (streams || run->mode == QUERY_MODE_AGGREGATE)
        options.resumed = false;
    if (run->covered || run->keyed)
        options.load = false;
    if (only_counts(run))
        options.load = run->request->space->definition->default_ttl != 0;
    if (run->access.index && run->access.index->repeats)
        options.load = true;
    options.runs = runs_of(run);
    run->feed_loads = options.load;
    run->feed_runs = options.runs;
    if (streams && (!run->plan->query.filter || run->access.exact)) {
        options.first_batch = (limits->rows_max ? limits->rows_max : 100) + 1; /* one to look at */
        options.first_batch = MIN(options.first_batch, run->at.limit);
    }
    run->feed =
        query_hits_new(&run->spans, &run->access, &options,
                       streams || run->mode == QUERY_MODE_AGGREGATE ? &run->from : &nowhere);
}

/* A page from the cache has read nothing: it is charged to the first partition of the query. */
static bool output_charge(struct query_run_state *run, struct error *err)
{
    size_t first = 0;

    if (!run->spans.admitted) {
        if (run->access.target_count)
            (void)query_spans_overlap(&run->spans, run->access.targets[0].range, &first);
        while (first < run->spans.count && run->spans.list[first].missing)
            first++;
        if (first == run->spans.count) /* nobody is there to charge it to */
            return true;
        if (!query_spans_admit(&run->spans, first, run->from.begun, err))
            return false;
    }
    for (size_t i = 0; i < run->spans.count; i++) {
        if (!run->spans.list[i].admitted)
            continue;
        run->spans.list[i].cost.output_bytes += run->output.row_bytes;
        run->spans.list[i].cost.function_bytes += run->context.udf_bytes;
        run->spans.list[i].cost.joined_items += run->context.joined_items;
        run->spans.list[i].cost.joined_bytes += run->context.joined_bytes;
        break;
    }
    return true;
}

/* A query that reads nothing is paid for as well: by the partition its scope begins in. */
static bool run_constant(struct query_run_state *run, bool *ret_more, struct error *err)
{
    size_t first = query_spans_first(&run->spans, run->arena);

    return query_spans_bill(&run->spans, first, run->from.begun, err) &&
           (!run->at.limit || run_mode(run, ret_more, err)) && output_charge(run, err);
}

/* Is the order of values part of the result? */
static bool collects(const struct query_plan *plan)
{
    for (size_t i = 0; i < plan->query.aggregate_count; i++)
        if (plan->query.aggregates[i].kind == QUERY_MAKE_LIST ||
            plan->query.aggregates[i].kind == QUERY_MAKE_SET)
            return true;
    return false;
}

/* Who follows a container that loses its oldest items has to stand at one that is there: else it is
 * not known what was missed. */
static bool tail_check(const struct query_run_state *run, struct error *err)
{
    struct item item;

    if (!run->request->tail || !run->from.begun ||
        items_read_number(run->request->space, run->from.place.number, run->arena, &item, err))
        return true;
    return err->code == ERROR_ITEM_MISSING
               ? error_set(err, ERROR_POSITION_LOST,
                           "the position in the collection was deleted: last seen was record %llu",
                           (unsigned long long)run->from.place.number)
               : false;
}

/* Is the page a walk of an index, a get or a look at a counter? What is sorted or scanned takes
 * longer; how long a walk is turns out on the way. */
static bool access_is_short(const struct query_run_state *run)
{
    if (run->mode != QUERY_MODE_STREAM && run->mode != QUERY_MODE_AGGREGATE)
        return false;
    return run->access.kind != QUERY_ACCESS_SCAN || only_counts(run);
}

/* What is read by one call is of one moment anyway. */
static bool is_one_get(const struct query_run_state *run)
{
    return run->access.kind == QUERY_ACCESS_POINT && run->access.target_count == 1 &&
           run->mode == QUERY_MODE_STREAM && !run->spans.snapshot_count;
}

static bool run_container(struct query_run_state *run, bool *ret_more, uint64_t *ret_plan_ns,
                          struct error *err)
{
    uint64_t begin = run->request->timed ? clock_monotonic_ns() : 0;

    if (!tail_check(run, err))
        return false;
    ahead_make(run);
    /* Calls that are made ahead want whole items; lists want to know which item a value is of. In
     * MongoDB's languages a number's type is seen in the result, and entries do not have it. */
    if (!run->ahead && !collects(run->plan) && run->plan->order == DOCUMENT_ORDER_SQL)
        run->cover = query_cover_find(run->plan, run->arena);
    query_rings_begin(run);
    if (!access_choose(run, err))
        return false;
    if (run->request->is_short && !access_is_short(run))
        return view_bound_cold(err);
    run->spans.now = is_one_get(run);
    feed_open(run);
    if (run->request->timed)
        *ret_plan_ns = clock_monotonic_ns() - begin;
    *ret_more = false;
    return (!run->at.limit || run_mode(run, ret_more, err)) && output_charge(run, err);
}

static void metrics_fill(struct query_run_state *run, const struct cost_query *cost, uint64_t begin,
                         struct query_metrics *metrics)
{
    struct query_hits_times times =
        run->feed ? query_hits_times(run->feed) : (struct query_hits_times){0};
    uint64_t known;

    metrics->items_loaded = cost->items_loaded;
    metrics->loaded_bytes = cost->loaded_bytes;
    metrics->index_entries = cost->index_entries;
    metrics->index_lookups = cost->index_lookups;
    metrics->partitions = cost->partitions_begun + cost->partitions_resumed;
    metrics->spilled_bytes = run->spilled_bytes;
    if (!run->request->timed)
        return;
    metrics->index_ns = times.index_ns;
    metrics->load_ns = times.load_ns;
    metrics->total_ns = clock_monotonic_ns() - begin;
    known = metrics->plan_ns + times.index_ns + times.load_ns + run->output.given_ns;
    metrics->run_ns = metrics->total_ns > known ? metrics->total_ns - known : 0;
}

static void missing_keep(const struct query_run_state *run, struct query_page *page)
{
    uint32_t *list;

    if (!run->spans.missing)
        return;
    list = ARENA_ARRAY(run->request->arena, uint32_t, run->spans.missing);
    for (size_t i = 0; i < run->spans.count; i++)
        if (run->spans.list[i].missing)
            list[page->missing_count++] = run->spans.list[i].span->id;
    page->missing = list;
}

static bool container_page(void *self UNUSED, const struct query_plan *plan,
                           const struct query_request *request, struct query_page *ret_page,
                           struct error *err)
{
    return query_run(plan, request, ret_page, err);
}

static enum query_pay pay_of(const struct query_run_state *run, bool resumed)
{
    if (run->request->paid)
        return QUERY_PAY_WORK;
    return resumed && mode_is_spooled(run) ? QUERY_PAY_PAGE : QUERY_PAY_ALL;
}

/* What a short page may not do a worker's page may. */
static bool is_cold(const struct error *err)
{
    return err->code == ERROR_COLD || err->code == ERROR_QUERY_LIMIT;
}

bool query_run(const struct query_plan *plan, const struct query_request *request,
               struct query_page *ret_page, struct error *err)
{
    CLEANUP(query_run_done) struct query_run_state run = {0};
    struct metered_call standing = {0}, *call = request->call ? request->call : &standing;
    uint64_t begin = request->timed ? clock_monotonic_ns() : 0;
    struct query_page page = {0};
    struct cost_query cost;
    struct error ignored;
    bool more = false, resumed, done;

    if (!request->space)
        return query_run_documents(plan, request->documents, request->document_count, request,
                                   ret_page, err);
    if (plan->rest)
        return query_rest_run(plan, request, (struct query_head){container_page, NULL}, ret_page,
                              err);
    if (!run_init(&run, plan, request, request->space->clock, err))
        return false;
    resumed = run.from.begun;
    assert(!request->is_short || !resumed);
    query_spans_init(&run.spans, request, call);
    run.spans_owner = &run.spans;
    if (plan->constant)
        done = run_constant(&run, &more, err);
    else
        done = run_container(&run, &more, &page.metrics.plan_ns, err);
    if (request->is_short && !done && is_cold(err)) {
        query_hits_free(TAKE(run.feed));
        query_spans_drop(&run.spans);
        return view_bound_cold(err);
    }
    if (request->is_short)
        indexes_tell(&run);
    /* also of a query that came to nothing */
    done = query_spans_work(&run.spans, run.context.work, done ? err : &ignored) && done;
    query_hits_free(TAKE(run.feed));
    missing_keep(&run, &page);
    page.charge_cru = query_spans_done(&run.spans, pay_of(&run, resumed), &cost);
    call->charge_cru = page.charge_cru = MAX(page.charge_cru, (int64_t)!request->paid);
    if (!done || !page_end(&run, more, &page, err))
        return false;
    metrics_fill(&run, &cost, begin, &page.metrics);
    if (request->explain)
        page.explain = query_explain(&run, &page, &cost, request->arena);
    *ret_page = page;
    return true;
}
