/* A page: rows of the plan below go into the flow until all of them have, or, where each can be
 * given at once, until the page is full. A full page goes on until one more row is about to be
 * given; that row's place is where the next page begins, with the counters that skips and limits
 * had when it came. */
#include "query/stage/rest.h"

#include "query/access/spans.h"
#include "query/spool/cache.h"
#include "query/spool/spill.h"
#include "query/stage/flow_private.h"
#include "query/stage/tuple.h"
#include "query/value/compare.h"

enum {
    MEMORY_DEFAULT = 64 * 1024 * 1024,
    LARGE_DOCUMENT_BYTES = 33 * 1024 * 1024, /* to make one of MongoDB's of another */
    HEAD_ROWS = 1000,                        /* asked for at once where not all may be wanted */
};

struct rest {
    struct query_stages run;
    struct query_head head;
    struct query_flow *flow; /* owned */
    size_t last;             /* segment */
    struct query_output output;
    struct query_position from, at;
    uint64_t passed;         /* rows of the last segment that came before from */
    bool more;               /* one more row was about to be given */
    struct query_page below; /* the last page of the plan below */
    bool billed;             /* spans are those that a page from the cache is paid from */
    struct metered_call standing, *call;
    struct query_spans spans;
};

/* --- Giving ---------------------------------------------------------------------------------- */

static bool rest_give(struct query_flow *flow, struct error *err)
{
    struct rest *rest = flow->self;
    struct query_context *context = &flow->run->context;
    struct document_value value;

    if (!query_evaluate(flow->chain->select, context, &value, err))
        return false;
    if (!query_value_shows(&value) &&
        (value.type == DOCUMENT_UNDEFINED || !context->keep_nonfinite))
        return true;
    if (flow->given < rest->from.place.rows && flow->number == rest->from.place.number + 1) {
        flow->given++; /* by the page before */
        return true;
    }
    if (rest->output.full) {
        rest->more = flow->stop = true;
        return true;
    }
    flow->given++;
    return query_output_give(&rest->output, context, &value, err);
}

/* --- Places ---------------------------------------------------------------------------------- */

/* The counters of the last segment, as BSON. */
static struct slice counters_save(const struct rest *rest, const uint64_t *counters)
{
    const struct query_segment *last = &rest->flow->segments[rest->last];
    CLEANUP(buf_done) struct buf buf;
    uint32_t count = 0;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = last->first; i < last->end; i++) {
        enum query_stage_kind kind = rest->flow->chain->stages[i].kind;
        char text[DOCUMENT_INDEX_SIZE];

        if (kind == QUERY_STAGE_SKIP || kind == QUERY_STAGE_LIMIT)
            document_append_int64(&buf, document_index_key(count++, text), (int64_t)counters[i]);
    }
    document_end(&buf, begin);
    return count ? arena_copy(rest->run.request->arena, buf_slice(&buf)) : SLICE_NONE;
}

static bool counters_load(struct rest *rest, struct error *err)
{
    const struct query_segment *last = &rest->flow->segments[rest->last];
    struct document_iter iter;

    if (!rest->from.states.len)
        return true;
    if (!document_validate(rest->from.states, NULL, err))
        return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
    document_iter_init(&iter, rest->from.states);
    for (size_t i = last->first; i < last->end; i++) {
        enum query_stage_kind kind = rest->flow->chain->stages[i].kind;

        if (kind != QUERY_STAGE_SKIP && kind != QUERY_STAGE_LIMIT)
            continue;
        if (!document_iter_next(&iter) || iter.value.type != DOCUMENT_INT64)
            return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
        rest->flow->counters[i] = (uint64_t)iter.value.int64;
    }
    return true;
}

/* The next page begins with the row that is before the flow, or where the plan below goes on. */
static void place_keep(struct rest *rest, struct slice head, bool at_row)
{
    const struct query_flow *flow = rest->flow;
    struct query_position *at = &rest->at;

    at->begun = true;
    at->place = (struct query_place){0};
    if (at_row) {
        at->place.number = flow->number - 1;
        at->place.rows = (uint32_t)MIN(flow->given, (uint64_t)UINT32_MAX);
    }
    at->window = (struct partition_range){PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
    at->head = head.data ? head : SLICE("");
    at->states = counters_save(rest, at_row ? flow->begun : flow->counters);
}

/* --- The plan below -------------------------------------------------------------------------- */

static bool head_row(void *self, const struct document_value *value, struct error *err)
{
    struct rest *rest = self;
    const struct query_rest *stages = rest->run.plan->rest;
    struct query_context *context = &rest->run.context;

    rest->passed++;
    if (query_flow_is_done(rest->flow, 0) ||
        (rest->last == 0 && rest->passed <= rest->from.place.number))
        return true;
    arena_reset(rest->run.arena);
    if (stages->single)
        context->slots[stages->slots[0]] = (struct query_slot){.value = *value};
    else
        query_tuple_bind(context, stages->slots, stages->slot_count, value->document);
    query_flow_row_begin(rest->flow, rest->passed);
    return query_work(context, 4, err) && query_flow_push(rest->flow, 0, err);
}

static bool head_page(struct rest *rest, struct slice continuation, uint64_t rows_max,
                      struct error *err)
{
    struct query_plan plan = *rest->run.plan;
    struct query_request request;

    if (!query_stages_ask(&rest->run, &request, err))
        return false;
    plan.rest = NULL;
    plan.binding = 0;
    request.continuation = continuation;
    request.limits.rows_max = rows_max;
    request.row = head_row;
    request.self = rest;
    request.call = rest->call;
    rest->call->charge_cru = 0;
    rest->passed = 0;
    if (!rest->head.page(rest->head.self, &plan, &request, &rest->below, err)) {
        rest->run.charge_cru = cost_add(rest->run.charge_cru, rest->call->charge_cru);
        return false;
    }
    rest->run.charge_cru = cost_add(rest->run.charge_cru, rest->below.charge_cru);
    query_metrics_add(&rest->run.metrics, &rest->below.metrics);
    return true;
}

static bool can_stop_early(const struct query_flow *flow)
{
    for (size_t i = flow->segments[0].first; i < flow->segments[0].end; i++)
        if (flow->chain->stages[i].kind == QUERY_STAGE_LIMIT)
            return true;
    return false;
}

/* All its rows, or as many as are wanted. */
static bool head_run(struct rest *rest, struct error *err)
{
    uint64_t rows_max = can_stop_early(rest->flow) ? HEAD_ROWS : UINT64_MAX;
    struct slice continuation = SLICE_NONE;

    do {
        if (!head_page(rest, continuation, rows_max, err))
            return false;
        continuation = rest->below.continuation;
    } while (continuation.len && !query_flow_is_done(rest->flow, 0));
    return true;
}

static bool should_pause(const struct rest *rest)
{
    const struct query_page_limits *limits = &rest->run.request->limits;

    return (limits->pause_ms &&
            clock_read_monotonic_ms(rest->run.context.clock) >= limits->pause_ms) ||
           (limits->cru_max && rest->run.charge_cru >= limits->cru_max);
}

/* How many rows are asked of the plan below: what the page has room for; where that was too little
 * for want of rows that pass, or one more row is looked for, twice as many each time. */
static uint64_t rows_to_ask(const struct rest *rest, uint64_t asked, uint64_t given_before)
{
    uint64_t rows_max = rest->run.request->limits.rows_max;
    uint64_t room = (rows_max ? rows_max : 100) - MIN(rows_max ? rows_max : 100, rest->output.rows);

    if (rest->output.rows > given_before || !asked)
        asked = MAX(room, (uint64_t)1);
    else
        asked *= 2;
    return MIN(MAX(asked, rest->from.place.number + 1),
               (uint64_t)HEAD_ROWS + rest->from.place.number);
}

/* Rows are given as they come. */
static bool stream_run(struct rest *rest, bool *ret_more, struct error *err)
{
    struct slice at = rest->from.head;
    uint64_t asked = 0, given = 0;

    for (;;) {
        bool first = !asked;

        asked = rows_to_ask(rest, asked, given);
        given = rest->output.rows;
        *ret_more = true;
        if (!head_page(rest, at, asked, err)) {
            if (first || err->code != ERROR_TOO_MANY_REQUESTS)
                return false;
            *err = (struct error){0}; /* the next page waits for it */
            place_keep(rest, at, false);
            return true;
        }
        if (!rest->more && !query_flow_flush(rest->flow, 0, err))
            return false;
        if (rest->more) {
            place_keep(rest, at, true);
            return true;
        }
        at = rest->below.continuation;
        rest->from.place = (struct query_place){0};
        if (!at.len || query_flow_is_done(rest->flow, 0)) {
            *ret_more = false;
            return true;
        }
        if (should_pause(rest)) {
            place_keep(rest, at, false);
            return true;
        }
    }
}

/* --- Spooled --------------------------------------------------------------------------------- */

/* The sink before the last segment gives its rows, from where the page before ended. */
static bool sink_run(struct rest *rest, struct query_sink *sink, uint64_t number, bool *ret_more,
                     struct error *err)
{
    bool more = true;

    while (more && !query_flow_is_done(rest->flow, rest->last)) {
        arena_reset(rest->run.arena);
        if (!query_work(&rest->run.context, 4, err) || !query_sink_next(sink, &more, err))
            return false;
        if (!more || number++ < rest->from.place.number)
            continue;
        query_flow_row_begin(rest->flow, number);
        if (!query_flow_push(rest->flow, rest->last, err))
            return false;
    }
    *ret_more = rest->more;
    if (*ret_more)
        place_keep(rest, SLICE_NONE, true);
    return true;
}

/* The first page has paid for all that is read. Later ones are admitted and paid as pages of any
 * query are, by the partition their scope begins in; it makes no difference to that whether the
 * spool was kept or has to be filled again. */
static bool page_bill(struct rest *rest, struct error *err)
{
    const struct query_request *request = rest->run.request;
    size_t first;

    rest->run.paid = true;
    if (!request->space || request->paid)
        return true;
    rest->billed = true;
    query_spans_init(&rest->spans, request, rest->call);
    first = query_spans_first(&rest->spans, rest->run.arena);
    return query_spans_bill(&rest->spans, first, true, err);
}

static bool spool_run(struct rest *rest, bool *ret_more, struct error *err)
{
    struct query_cache *cache = rest->run.request->cache;
    struct query_sink *sink = rest->flow->segments[rest->last - 1].sink;
    uint64_t fingerprint = rest->run.plan->fingerprint;
    struct query_spool *kept = NULL;

    if (rest->from.begun && !page_bill(rest, err))
        return false;
    if (rest->from.cached && cache)
        kept = query_cache_take(cache, fingerprint, rest->from.cached);
    rest->at.cached = 0;
    if (kept)
        query_sink_spool_put(sink, kept);
    else if (!head_run(rest, err) || !query_flow_end(rest->flow, err))
        return false;
    if (!counters_load(rest, err) ||
        !sink_run(rest, sink, kept ? rest->from.place.number : 0, ret_more, err))
        return false;
    if (*ret_more && cache)
        rest->at.cached = query_cache_put(cache, fingerprint, query_sink_spool_take(sink));
    return true;
}

/* --- The page -------------------------------------------------------------------------------- */

static bool rest_init(struct rest *rest, const struct query_plan *plan,
                      const struct query_request *request, struct query_head head,
                      struct error *err)
{
    struct query_limits limits = {.work_max = request->limits.work_max,
                                  .deadline_ms = request->limits.deadline_ms};
    struct query_context *context = &rest->run.context;
    size_t memory_max = request->limits.memory_max;

    if (plan->order == DOCUMENT_ORDER_MONGO)
        limits.bytes_max = LARGE_DOCUMENT_BYTES;
    rest->head = head;
    rest->call = request->call ? request->call : &rest->standing;
    rest->run.paid = request->paid;
    rest->output.request = request;
    rest->run.plan = plan;
    rest->run.request = request;
    rest->run.arena = arena_new();
    rest->run.memory_max = (memory_max ? memory_max : MEMORY_DEFAULT) / 2;
    rest->run.spill = query_spill_budget_new(request->spill);
    query_context_init(context, rest->run.arena, &limits,
                       request->space ? request->space->clock : NULL);
    context->order = plan->order;
    context->keep_nonfinite = plan->order == DOCUMENT_ORDER_MONGO;
    context->cancelled = request->limits.cancelled;
    context->breath = request->limits.breath;
    context->memory = request->limits.memory;
    context->rendered = request->limits.rendered;
    context->udf = request->udf;
    context->reference = request->reference;
    context->slot_count = MAX(plan->slot_count, 1u);
    context->slots =
        memory_alloc_zero(memory_array_size(context->slot_count, sizeof *context->slots));
    for (size_t i = 0; i < context->slot_count; i++)
        context->slots[i].value = document_undefined();
    for (size_t i = 0; i < request->binding_count; i++)
        context->slots[request->bindings[i].slot].value = request->bindings[i].value;
    if (request->now_ticks)
        context->now_ticks = request->now_ticks;
    rest->from = query_position_first(plan, context->now_ticks);
    rest->flow = query_flow_new(
        &rest->run, &plan->rest->chain, true,
        request->explain ? query_figures_new(&plan->rest->chain, request->arena) : NULL);
    rest->flow->give = rest_give;
    rest->flow->self = rest;
    rest->last = rest->flow->segment_count - 1;
    if (request->continuation.len &&
        !query_position_load(request->continuation, query_plan_binding(plan), &rest->from, err))
        return false;
    if (request->continuation.len && !rest->from.head.data)
        return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
    context->now_ticks = rest->from.now_ticks;
    rest->at = rest->from;
    return true;
}

static void rest_done(struct rest *rest)
{
    query_flow_free(rest->flow);
    query_spill_budget_unref(rest->run.spill);
    memory_free(rest->run.context.slots);
    query_context_done(&rest->run.context);
    arena_free(rest->run.arena);
}
CLEANUP_VALUE_FN(struct rest, rest_done)

/* What was evaluated up here, and for a page that was billed its rows; the pages below are settled.
 * Also of a page that came to nothing. */
static void page_settle(struct rest *rest)
{
    const struct query_request *request = rest->run.request;
    uint64_t work = rest->run.context.work;
    struct cost_query cost;
    struct error ignored;
    bool added;
    int64_t cru = cost_work(work);

    if (rest->billed) {
        for (size_t i = 0; i < rest->spans.count; i++)
            if (rest->spans.list[i].admitted)
                rest->spans.list[i].cost.output_bytes = rest->output.row_bytes;
        added = !rest->spans.admitted || query_spans_work(&rest->spans, work, &ignored);
        assert(added); /* whoever pays was admitted */
        cru = query_spans_done(&rest->spans, QUERY_PAY_ALL, &cost);
    } else if (cru && request->meters && request->space) {
        metering_charge(request->meters, partition_map_spans(request->space->map, &(size_t){0})->id,
                        cru);
    }
    if (request->space)
        rest->run.charge_cru = cost_add(rest->run.charge_cru, cru);
    rest->call->charge_cru = rest->run.charge_cru;
}

static bool page_end(struct rest *rest, bool more, struct query_page *ret_page, struct error *err)
{
    struct query_page page = rest->below;

    page.continuation = SLICE_NONE;
    page.charge_cru = rest->run.charge_cru;
    page.metrics = rest->run.metrics;
    page.metrics.work += rest->run.context.work;
    page.metrics.rows = rest->output.rows;
    page.metrics.row_bytes = rest->output.row_bytes;
    page.metrics.spilled_bytes += query_spill_budget_written(rest->run.spill);
    if (more) {
        page.continuation = query_position_save(&rest->at, query_plan_binding(rest->run.plan),
                                                rest->run.request->arena);
        if (!page.continuation.data)
            return error_set(err, ERROR_QUERY_LIMIT,
                             "the place where the page ends takes more than the %d bytes of a "
                             "continuation",
                             QUERY_CONTINUATION_MAX);
    }
    if (rest->run.request->explain)
        page.explain = query_stages_explain(rest->flow, rest->below.explain, &page);
    *ret_page = page;
    return true;
}

bool query_rest_run(const struct query_plan *plan, const struct query_request *request,
                    struct query_head head, struct query_page *ret_page, struct error *err)
{
    CLEANUP(rest_done) struct rest rest = {0};
    bool more = false, done;

    if (!rest_init(&rest, plan, request, head, err))
        return false;
    if (rest.last)
        done = spool_run(&rest, &more, err);
    else
        done = counters_load(&rest, err) && stream_run(&rest, &more, err);
    page_settle(&rest);
    return done && page_end(&rest, more, ret_page, err);
}
