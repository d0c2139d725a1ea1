/* A query around a query: the inner one is run as it stands, and its rows are taken here instead of
 * by the caller. Without aggregates they go through filter and select one by one, and the inner
 * continuation is the outer one. With them the inner query is run to its end, page after page. */
#include "query/run/run_private.h"

#include "query/value/compare.h"
#include "query/value/value.h"

struct outer {
    const struct query_plan *plan;
    const struct query_request *request;
    struct arena *arena; /* of the row */
    struct query_context context;
    struct query_aggregate *states; /* owned */
    size_t count;
    uint64_t rows, row_bytes;
};

static void outer_init(struct outer *outer, const struct query_plan *plan,
                       const struct query_request *request)
{
    struct query_limits limits = {.work_max = request->limits.work_max,
                                  .deadline_ms = request->limits.deadline_ms};

    *outer = (struct outer){.plan = plan, .request = request, .arena = arena_new()};
    query_context_init(&outer->context, outer->arena, &limits, request->space->clock);
    outer->context.cancelled = request->limits.cancelled;
    outer->context.breath = request->limits.breath;
    outer->context.memory = request->limits.memory;
    outer->context.udf = request->udf;
    outer->context.order = plan->order;
    outer->context.slot_count = MAX(plan->slot_count, plan->outer_slot + 1);
    outer->context.slots = memory_alloc_zero(
        memory_array_size(outer->context.slot_count, sizeof *outer->context.slots));
    for (size_t i = 0; i < outer->context.slot_count; i++)
        outer->context.slots[i].value = document_undefined();
    outer->count = plan->outer->aggregate_count;
    outer->states = memory_alloc(memory_array_size(outer->count + 1, sizeof *outer->states));
    for (size_t i = 0; i < outer->count; i++)
        query_aggregate_init(&outer->states[i], plan->outer->aggregates[i].kind, plan->order,
                             outer->context.limits.bytes_max);
}

static void outer_done(struct outer *outer)
{
    for (size_t i = 0; i < outer->count; i++)
        query_aggregate_done(&outer->states[i]);
    memory_free(outer->states);
    memory_free(outer->context.slots);
    query_context_done(&outer->context);
    arena_free(outer->arena);
}
CLEANUP_VALUE_FN(struct outer, outer_done)

static bool outer_give(struct outer *outer, struct error *err)
{
    struct document_value value;

    if (!query_evaluate(outer->plan->outer->select, &outer->context, &value, err))
        return false;
    if (!query_value_shows(&value))
        return true;
    outer->rows++;
    outer->row_bytes += query_value_bytes(&value) + 1;
    return outer->request->row(outer->request->self, &value, err);
}

/* A row of the inner query. */
static bool outer_take(void *self, const struct document_value *row, struct error *err)
{
    struct outer *outer = self;
    const struct query_subquery *query = outer->plan->outer;
    bool holds = true;

    arena_reset(outer->arena);
    outer->context.slots[outer->plan->outer_slot] = (struct query_slot){.value = *row};
    if (query->filter && !query_holds(query->filter, &outer->context, &holds, err))
        return false;
    if (!holds)
        return true;
    if (!outer->count)
        return outer_give(outer, err);
    for (size_t i = 0; i < outer->count; i++) {
        struct document_value value;

        if (!query_evaluate(query->aggregates[i].argument, &outer->context, &value, err) ||
            !query_aggregate_add(&outer->states[i], &value, err))
            return false;
    }
    return true;
}

static bool outer_finish(struct outer *outer, struct error *err)
{
    const struct query_subquery *query = outer->plan->outer;

    arena_reset(outer->arena);
    for (size_t i = 0; i < outer->count; i++)
        outer->context.slots[query->aggregates[i].slot] =
            (struct query_slot){.value = query_aggregate_finish(&outer->states[i])};
    return outer_give(outer, err);
}

static void metrics_add(struct query_metrics *to, const struct query_metrics *from)
{
    to->items_loaded += from->items_loaded;
    to->loaded_bytes += from->loaded_bytes;
    to->index_entries += from->index_entries;
    to->index_lookups += from->index_lookups;
    to->spilled_bytes += from->spilled_bytes;
    to->work += from->work;
    to->partitions = MAX(to->partitions, from->partitions);
    to->total_ns += from->total_ns;
    to->plan_ns += from->plan_ns;
    to->index_ns += from->index_ns;
    to->load_ns += from->load_ns;
    to->run_ns += from->run_ns;
    to->output_ns += from->output_ns;
}

/* Pages of the inner query: one, or with aggregates all. */
static bool inner_run(struct outer *outer, struct query_page *page, struct error *err)
{
    struct query_plan plan = *outer->plan;
    struct query_request request = *outer->request;
    struct query_page inner = {0};

    plan.outer = NULL;
    request.row = outer_take;
    request.self = outer;
    if (outer->count)
        request.limits.rows_max = request.limits.bytes_max = UINT64_MAX;
    do {
        if (!query_run(&plan, &request, &inner, err))
            return false;
        page->charge_cru = cost_add(page->charge_cru, inner.charge_cru);
        metrics_add(&page->metrics, &inner.metrics);
        page->explain = inner.explain;
        page->missing = inner.missing;
        page->missing_count = inner.missing_count;
        request.continuation = inner.continuation;
    } while (outer->count && inner.continuation.len);
    page->continuation = inner.continuation;
    return true;
}

/* What was evaluated out here; the pages of the inner query are settled. */
static int64_t outer_charge(const struct outer *outer)
{
    const struct query_request *request = outer->request;
    int64_t cru = cost_work(outer->context.work);
    const struct partition_span *spans;
    size_t count;

    spans = partition_map_spans(request->space->map, &count);
    if (cru && count && request->meters)
        metering_charge(request->meters, spans[0].id, cru);
    return cru;
}

bool query_outer_run(const struct query_plan *plan, const struct query_request *request,
                     struct query_page *ret_page, struct error *err)
{
    CLEANUP(outer_done) struct outer outer;
    const struct query_subquery *query = plan->outer;
    struct query_page page = {0};
    bool done;

    outer_init(&outer, plan, request);
    if (query->source_count || query->key_count || query->order_count || query->distinct ||
        query->offset || query->limit != UINT64_MAX)
        return error_set(err, ERROR_QUERY_NOT_SUPPORTED,
                         "a query around a query with more than a filter, aggregates and a select");
    done = inner_run(&outer, &page, err) && (!outer.count || outer_finish(&outer, err));
    page.charge_cru = cost_add(page.charge_cru, outer_charge(&outer));
    if (!done)
        return false;
    page.metrics.work += outer.context.work;
    page.metrics.rows = outer.rows;
    page.metrics.row_bytes = outer.row_bytes;
    if (request->call)
        request->call->charge_cru = page.charge_cru;
    *ret_page = page;
    return true;
}
