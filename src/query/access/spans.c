#include "query/access/spans.h"

#include "engine/reader.h"
#include "partition/pledge_pass.h"

#include <xxhash.h>

void query_spans_init(struct query_spans *spans, const struct query_request *request,
                      struct metered_call *call)
{
    const struct partition_span *list;

    *spans = (struct query_spans){
        .request = request, .call = call, .bound = {QUERY_SHORT_STEPS, QUERY_SHORT_BYTES}};
    list = partition_map_spans(request->space->map, &spans->count);
    spans->list = memory_alloc_zero(memory_array_size(spans->count, sizeof *spans->list));
    for (size_t i = 0; i < spans->count; i++)
        spans->list[i].span = &list[i];
}

static void cost_sum(struct cost_query *total, const struct cost_query *cost)
{
    total->partitions_begun += cost->partitions_begun;
    total->partitions_resumed += cost->partitions_resumed;
    total->index_lookups += cost->index_lookups;
    total->index_entries += cost->index_entries;
    total->items_loaded += cost->items_loaded;
    total->loaded_bytes += cost->loaded_bytes;
    total->output_bytes += cost->output_bytes;
    total->function_bytes += cost->function_bytes;
    total->joined_items += cost->joined_items;
    total->joined_bytes += cost->joined_bytes;
    total->work += cost->work;
    total->strong = cost->strong;
}

static struct cost_query spans_total(const struct query_spans *spans)
{
    struct cost_query total = {.strong = spans->call->strong};

    for (size_t i = 0; i < spans->count; i++) {
        if (spans->list[i].admitted)
            cost_sum(&total, &spans->list[i].cost);
    }
    return total;
}

int64_t query_spans_charge(const struct query_spans *spans)
{
    struct cost_query total = spans_total(spans);

    return cost_query(&total);
}

static void span_settle(struct query_spans *spans, struct query_span *span, int64_t cru)
{
    const struct clock *clock = spans->request->space->clock;
    struct statistics_event event = {.cru = cru, .bytes_out = span->cost.output_bytes};

    if (!span->meter)
        return;
    spans->call->minute_used |= span->grant.minute_used;
    if (span->budget)
        budget_settle(span->budget, &span->grant, cru, clock_read_monotonic_ms(clock));
    statistics_record(meter_statistics(span->meter), &event, clock_read_wall_ms(clock));
}

/* What a page costs that only hands out more of what was paid for: the same, kept or read again. */
static void cost_reduce(struct query_spans *spans, enum query_pay pay)
{
    bool first = true;

    for (size_t i = 0; i < spans->count; i++) {
        struct query_span *span = &spans->list[i];
        struct cost_query all = span->cost;

        if (!span->admitted)
            continue;
        span->cost = (struct cost_query){.work = all.work, .strong = all.strong};
        if (pay == QUERY_PAY_PAGE) {
            span->cost.partitions_resumed = first;
            span->cost.output_bytes = all.output_bytes;
        }
        first = false;
    }
}

/* A page never costs nothing; what is no page of its own may. */
static int64_t cost_paid(const struct cost_query *cost, enum query_pay pay)
{
    return pay == QUERY_PAY_WORK && !cost->work ? 0 : cost_query(cost);
}

static void spans_close(struct query_spans *spans)
{
    for (size_t i = 0; i < spans->snapshot_count; i++)
        engine_snapshot_free(spans->snapshots[i].snapshot);
    memory_free(spans->snapshots);
    memory_free(spans->list);
    spans->list = NULL;
    spans->count = 0;
}

void query_spans_drop(struct query_spans *spans)
{
    int64_t now_ms = clock_read_monotonic_ms(spans->request->space->clock);

    for (size_t i = 0; i < spans->count; i++) {
        struct query_span *span = &spans->list[i];

        if (span->admitted && span->budget)
            budget_drop(span->budget, &span->grant, now_ms);
    }
    spans_close(spans);
}

int64_t query_spans_done(struct query_spans *spans, enum query_pay pay,
                         struct cost_query *ret_total)
{
    struct cost_query paid;
    int64_t charge;

    *ret_total = spans_total(spans);
    if (pay != QUERY_PAY_ALL)
        cost_reduce(spans, pay);
    paid = spans_total(spans);
    charge = spans->admitted ? cost_paid(&paid, pay) : 0;
    for (size_t i = 0; i < spans->count; i++) {
        if (spans->list[i].admitted)
            span_settle(spans, &spans->list[i], cost_paid(&spans->list[i].cost, pay));
    }
    spans_close(spans);
    return charge;
}

/* What the query reads on the node of a span: the snapshot is for all of it. */
static uint64_t partitions_beside(const struct query_spans *spans, uint32_t node)
{
    uint64_t partitions = 0;

    for (size_t i = 0; i < spans->count; i++)
        if (spans->list[i].span->node == node)
            partitions |= pledge_bit(spans->list[i].span->id);
    return partitions;
}

/* Beside transactions over several nodes (item/scope.h). A query on a loop does not wait. */
static bool snapshot_new(const struct query_spans *spans, const struct item_scope *scope,
                         struct engine_snapshot **ret_snapshot, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct pledges *pledges = commit_pledges(scope->commit);
    uint64_t partitions = partitions_beside(spans, scope->node);
    bool may_wait = !spans->request->is_short, cold;

    if (!pledges_pass(pledges, partitions, PLEDGE_BEFORE_READING, may_wait, &cold, err))
        return false;
    if (cold)
        return view_bound_cold(err);
    if (!engine_snapshot_new(scope->engine, &snapshot, err) ||
        !pledges_pass(pledges, partitions, PLEDGE_AFTER_READING, may_wait, &cold, err))
        return false;
    if (cold)
        return view_bound_cold(err);
    *ret_snapshot = TAKE(snapshot);
    return true;
}

/* The snapshot of a node, for one thread. There are few nodes and fewer threads. */
static bool snapshot_get(struct query_spans *spans, const struct item_scope *scope, uint32_t thread,
                         struct engine_snapshot **ret_snapshot, struct error *err)
{
    struct query_snapshot *list = spans->snapshots;
    size_t count = spans->snapshot_count;

    for (size_t i = 0; i < count; i++) {
        if (list[i].engine == scope->engine && list[i].thread == thread) {
            *ret_snapshot = list[i].snapshot;
            return true;
        }
    }
    if (!snapshot_new(spans, scope, ret_snapshot, err))
        return false;
    list = memory_realloc(list, memory_array_size(count + 1, sizeof *list));
    list[count] = (struct query_snapshot){scope->engine, thread, *ret_snapshot};
    spans->snapshots = list;
    spans->snapshot_count++;
    return true;
}

bool query_spans_hand_over(struct query_spans *spans, size_t span, uint32_t thread,
                           struct error *err)
{
    struct view *view;

    spans->list[span].viewed = false;
    spans->list[span].thread = thread;
    return query_spans_view(spans, span, &view, err);
}

/* What is read of the node of a span instead of now; none: snapshot is NULL. */
static bool moment_find(const struct query_request *request, const struct item_scope *scope,
                        struct query_moment *ret_moment, struct error *err)
{
    const struct engine *engine = engine_reader_behind(scope->engine);

    *ret_moment = (struct query_moment){engine, request->snapshot, request->overlay};
    for (size_t i = 0; i < request->moment_count; i++)
        if (request->moments[i].engine == engine) {
            *ret_moment = request->moments[i];
            return true;
        }
    if (request->moment_count) /* it did not serve when the others were met */
        return engine_serves(engine, err) &&
               error_set(err, ERROR_CONFLICT,
                         "a partition is on a node that the transaction has not met");
    return !request->snapshot || !request->snapshot_of || request->snapshot_of == scope->engine ||
           error_set(err, ERROR_NOT_SUPPORTED,
                     "a transaction cannot read partitions on different nodes");
}

bool query_spans_view(struct query_spans *spans, size_t span, struct view **ret_view,
                      struct error *err)
{
    struct query_span *self = &spans->list[span];

    if (!self->viewed) {
        struct item_scope scope = item_space_span_scope(spans->request->space, self->span);
        struct engine_snapshot *snapshot;
        struct query_moment moment;

        if (!moment_find(spans->request, &scope, &moment, err))
            return false;
        snapshot = moment.snapshot;
        if (spans->request->is_short && !engine_is_here(scope.engine))
            return view_bound_cold(err);
        if (!snapshot && !spans->now && !snapshot_get(spans, &scope, self->thread, &snapshot, err))
            return false;
        self->view = view_of(&scope, snapshot);
        if (spans->request->is_short)
            self->view.bound = spans->request->bound ? spans->request->bound : &spans->bound;
        self->view.planned = view_overlay_find(moment.overlay, scope.partition);
        self->viewed = true;
    }
    *ret_view = &self->view;
    return true;
}

/* A query of one key value is paid from that one's throughput, if it has some of its own. */
static struct slice pk_of(const struct query_request *request, struct buf *bytes)
{
    const struct partition_key *key = &request->scope.key;

    if (request->scope.kind != QUERY_SCOPE_KEY ||
        key->count < request->space->definition->key.path_count || key->open)
        return SLICE_NONE;
    partition_key_append(key, bytes);
    return buf_slice(bytes);
}

static bool span_pay(struct query_spans *spans, struct query_span *span, struct error *err)
{
    CLEANUP(buf_done) struct buf pk;
    const struct clock *clock = spans->request->space->clock;
    const struct metered_call *call = spans->call;
    struct budget_request request = {.price_cru = cost_query(&span->cost),
                                     .bucket = call->bucket,
                                     .low_priority = call->low_priority,
                                     .minute_pool_off = call->minute_pool_off};

    buf_init(&pk, BUF_DEFAULT_MAX);
    span->meter =
        spans->request->meters ? meters_find(spans->request->meters, span->span->id) : NULL;
    span->budget = span->meter ? meter_budget(span->meter) : NULL;
    if (!span->budget)
        return true;
    request.key = pk_of(spans->request, &pk);
    if (budget_admit(span->budget, &request, clock_read_monotonic_ms(clock), &span->grant,
                     &spans->call->wait_ms, err))
        return true;
    statistics_record(meter_statistics(span->meter), &(struct statistics_event){.throttled = true},
                      clock_read_wall_ms(clock));
    return false;
}

bool query_spans_bill(struct query_spans *spans, size_t span, bool resumed, struct error *err)
{
    struct query_span *self = &spans->list[span];

    if (self->admitted)
        return true;
    self->cost = (struct cost_query){
        .partitions_begun = !resumed, .partitions_resumed = resumed, .strong = spans->call->strong};
    if (!span_pay(spans, self, err))
        return false;
    self->admitted = true;
    spans->admitted++;
    return true;
}

bool query_spans_admit(struct query_spans *spans, size_t span, bool resumed, struct error *err)
{
    struct view *view;

    return query_spans_bill(spans, span, resumed, err) && query_spans_view(spans, span, &view, err);
}

size_t query_spans_first(const struct query_spans *spans, struct arena *arena)
{
    const struct query_request *request = spans->request;
    const struct query_scope *scope = &request->scope;
    struct partition_range range = scope->range;
    size_t first = 0;

    if (scope->kind == QUERY_SCOPE_KEY)
        range = partition_route_range(&request->space->definition->key, &scope->key, arena);
    if (scope->kind == QUERY_SCOPE_KEY || scope->kind == QUERY_SCOPE_RANGE)
        (void)query_spans_overlap(spans, range, &first);
    return first;
}

bool query_spans_work(struct query_spans *spans, uint64_t units, struct error *err)
{
    struct cost_query total = spans_total(spans);
    uint64_t surplus = cost_work_surplus(&total, units);
    size_t payer = 0;

    if (!surplus || !spans->count)
        return true;
    while (payer + 1 < spans->count && !spans->list[payer].admitted)
        payer++;
    if (!spans->list[payer].admitted && !query_spans_bill(spans, payer, false, err))
        return false;
    spans->list[payer].cost.work += surplus;
    return true;
}

size_t query_spans_overlap(const struct query_spans *spans, struct partition_range range,
                           size_t *ret_first)
{
    const struct partition_span *first;
    size_t count;

    first = partition_map_overlap(spans->request->space->map, range, &count);
    *ret_first = count ? (size_t)(first - spans->list[0].span) : 0;
    return count;
}
