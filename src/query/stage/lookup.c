/* Rows of other containers. A lookup by equality gathers rows and asks once for all of them, by IN
 * over their values, so that an index of the other container serves a batch as it would one row;
 * where the other plan does more than filter and select, or looks at the row, it is run for each
 * row. */
#include "query/reference/copy.h"
#include "query/stage/flow_private.h"
#include "query/stage/tuple.h"
#include "query/value/compare.h"
#include "query/value/value.h"

enum {
    BATCH_ROWS = 100,
    BATCH_BYTES = 1 << 20,
    JOINED_ROW_WORK = 50, /* of 0.0001 RU */
    JOINED_BYTES_FOR_WORK = 10,
};

static bool batch_flush(struct query_looking *looking, struct error *err);

bool query_stages_ask(struct query_stages *run, struct query_request *ret_request,
                      struct error *err)
{
    uint64_t used = run->context.work + run->metrics.work;

    if (!query_work_check(&run->context, err))
        return false;
    *ret_request = *run->request;
    ret_request->paid = run->paid;
    ret_request->now_ticks = run->context.now_ticks;
    ret_request->limits.bytes_max = UINT64_MAX;
    ret_request->limits.row_bytes_max = 0;
    ret_request->limits.memory_max = run->memory_max;
    if (ret_request->limits.work_max)
        ret_request->limits.work_max -= MIN(used, ret_request->limits.work_max - 1);
    return true;
}

/* Documents at hand are nobody's budget: looking at them is work of this query, and what is found
 * costs as it does where it is joined (cost_query.joined_items), in units of work. */
static bool documents_pay(struct query_stages *run, struct query_metrics *metrics,
                          struct error *err)
{
    uint64_t units = metrics->work + metrics->rows * JOINED_ROW_WORK +
                     metrics->row_bytes / JOINED_BYTES_FOR_WORK;

    metrics->work = 0; /* it is counted here */
    return query_work(&run->context, units, err);
}

bool query_other_run(struct query_stages *run, struct slice container,
                     const struct query_plan *plan, const struct query_binding *bindings,
                     size_t binding_count,
                     bool (*row)(void *self, const struct document_value *value, struct error *err),
                     void *self, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct metered_call call = {0}, *payer = run->request->call;
    struct query_binding *all;
    struct query_request request;
    struct query_page page;

    if (!query_stages_ask(run, &request, err))
        return false;
    if (!request.other)
        return error_set(err, ERROR_QUERY_NOT_SUPPORTED,
                         "container \"%.*s\": no other container "
                         "can be read here",
                         SLICE_ARG(container));
    if (payer) /* buckets are each container's own */
        call = (struct metered_call){.strong = payer->strong,
                                     .low_priority = payer->low_priority,
                                     .minute_pool_off = payer->minute_pool_off};
    request.call = &call;
    request.scope = (struct query_scope){0};
    request.continuation = SLICE_NONE;
    if (!request.snapshot_of) /* else its node is looked at, wherever the other one is */
        request.snapshot = NULL;
    request.cache = NULL;
    request.explain = false;
    request.wanted = run->wanted;
    run->wanted = NULL;
    request.limits.rows_max = UINT64_MAX;
    request.limits.rendered = NULL;
    request.limits.cru_max = request.limits.pause_ms = 0;
    /* What was bound around stays bound: plans within plans see all of it. */
    all = ARENA_ARRAY(arena, struct query_binding, request.binding_count + binding_count + 1);
    for (size_t i = 0; i < request.binding_count; i++)
        all[i] = request.bindings[i];
    for (size_t i = 0; i < binding_count; i++)
        all[request.binding_count + i] = bindings[i];
    request.bindings = all;
    request.binding_count += binding_count;
    request.arena = arena;
    request.row = row;
    request.self = self;
    if (!request.other(request.other_self, container, &request, err))
        return false;
    do {
        call.charge_cru = 0;
        if (!query_run(plan, &request, &page, err)) {
            run->charge_cru = cost_add(run->charge_cru, call.charge_cru);
            if (payer)
                payer->wait_ms = call.wait_ms;
            return false;
        }
        if (payer)
            payer->minute_used |= call.minute_used;
        run->charge_cru = cost_add(run->charge_cru, page.charge_cru);
        if (request.document_count && !documents_pay(run, &page.metrics, err))
            return false;
        query_metrics_add(&run->metrics, &page.metrics);
        request.continuation = page.continuation;
    } while (page.continuation.len);
    return true;
}

/* --- Batches --------------------------------------------------------------------------------- */

struct waiting {
    struct slice tuple; /* of the slots that are looked at later */
    struct document_value local;
    struct query_binding *lets;
    const void *pair; /* of a pairing */
    uint64_t number;  /* where it came from */
    struct buf found; /* an array that is not closed yet */
    uint32_t count;
};

struct query_looking {
    struct query_flow *flow;
    const struct query_lookup *lookup;
    const struct query_stage *stage;
    size_t nth, at; /* segment and number of the stage */
    bool together;
    uint32_t *kept; /* owned: slots of the row that are looked at later */
    size_t kept_count;
    struct arena *arena; /* of the batch; the rows of the other container are not in it */
    struct waiting rows[BATCH_ROWS];
    size_t count, found_bytes;
    struct waiting *asking; /* the row that is asked for, alone */
    uint64_t number, given; /* where the row that went on last came from, and what came of that */
};

/* Is the plan one that gives the same for each item, whichever others there are? */
static bool is_of_items(const struct query_plan *plan)
{
    const struct query_subquery *query = &plan->query;

    return !plan->rest && !plan->constant && !query->key_count && !query->aggregate_count &&
           !query->order_count && !query->distinct && !query->offset && query->limit == UINT64_MAX;
}

struct query_looking *query_looking_new(struct query_flow *flow, size_t nth, size_t stage)
{
    struct query_looking *looking = MEMORY_NEW(struct query_looking);

    looking->flow = flow;
    looking->stage = &flow->chain->stages[stage];
    looking->lookup = &looking->stage->lookup;
    looking->nth = nth;
    looking->at = stage;
    looking->arena = arena_new();
    looking->kept =
        memory_alloc(memory_array_size(looking->stage->kept_count + 1, sizeof(uint32_t)));
    for (size_t i = 0; i < looking->stage->kept_count; i++)
        if (looking->stage->kept[i] != looking->lookup->slot)
            looking->kept[looking->kept_count++] = looking->stage->kept[i];
    looking->together = looking->lookup->local && !looking->lookup->let_count &&
                        !looking->lookup->graph && is_of_items(looking->lookup->plan);
    return looking;
}

static void batch_clear(struct query_looking *looking)
{
    for (size_t i = 0; i < looking->count; i++)
        buf_done(&looking->rows[i].found);
    looking->count = 0;
    looking->found_bytes = 0;
    arena_reset(looking->arena);
}

void query_looking_free(struct query_looking *looking)
{
    if (!looking)
        return;
    batch_clear(looking);
    arena_free(looking->arena);
    memory_free(looking->kept);
    memory_free(looking);
}

bool query_looking_take(struct query_looking *looking, struct error *err)
{
    CLEANUP(buf_done) struct buf tuple;
    struct query_context *context = &looking->flow->run->context;
    const struct query_lookup *lookup = looking->lookup;
    struct waiting *row = &looking->rows[looking->count];
    struct document_value value;

    buf_init(&tuple, SIZE_MAX / 2);
    *row = (struct waiting){.number = looking->flow->number, .local = document_undefined()};
    if (lookup->local) {
        if (!query_evaluate(lookup->local, context, &value, err))
            return false;
        row->local = query_value_copy(&value, looking->arena);
    }
    row->lets = ARENA_ARRAY(looking->arena, struct query_binding, lookup->let_count + 1);
    for (size_t i = 0; i < lookup->let_count; i++) {
        if (!query_evaluate(lookup->lets[i].expression, context, &value, err))
            return false;
        row->lets[i] =
            (struct query_binding){lookup->lets[i].slot, query_value_copy(&value, looking->arena)};
    }
    query_tuple_write(context, looking->kept, looking->kept_count, &tuple);
    row->tuple = arena_copy(looking->arena, buf_slice(&tuple));
    buf_init(&row->found, SIZE_MAX / 2);
    document_begin(&row->found);
    looking->count++;
    if (looking->count < BATCH_ROWS && arena_used(looking->arena) < BATCH_BYTES)
        return query_memory_check(context, arena_used(looking->arena), err);
    return batch_flush(looking, err);
}

/* --- Asking ---------------------------------------------------------------------------------- */

static bool found_add(struct query_looking *looking, struct waiting *row,
                      const struct document_value *value, struct error *err)
{
    struct query_context *context = &looking->flow->run->context;
    char text[DOCUMENT_INDEX_SIZE];
    size_t before = row->found.len;

    if (!query_value_nests_within(value, QUERY_VALUE_DEPTH_MAX - 2))
        return error_set(err, ERROR_TOO_DEEP, "a value would be nested deeper than %d levels",
                         QUERY_VALUE_DEPTH_MAX);
    document_append(&row->found, document_index_key(row->count++, text), value);
    looking->found_bytes += row->found.len - before;
    return query_work(context, 1, err) && query_memory_check(context, looking->found_bytes, err);
}

static bool found_alone(void *self, const struct document_value *value, struct error *err)
{
    struct query_looking *looking = self;

    return found_add(looking, looking->asking, value, err);
}

static bool row_belongs(struct query_looking *looking, const struct waiting *row,
                        const struct document_value *foreign, bool *ret_belongs, struct error *err)
{
    const struct query_pairing *pairing = looking->lookup->pairing;

    *ret_belongs = false;
    if (pairing)
        return !row->pair ||
               pairing->belongs(row->pair, foreign, &looking->flow->run->context, ret_belongs, err);
    *ret_belongs = row->local.type != DOCUMENT_UNDEFINED &&
                   query_values_same(looking->flow->run->plan->order, &row->local, foreign);
    return true;
}

/* The tuple of foreign and the row: it is for all rows whose local is equal. */
static bool found_together(void *self, const struct document_value *tuple, struct error *err)
{
    struct query_looking *looking = self;
    struct document_value foreign = document_undefined(), value = document_undefined();
    struct document_iter iter;

    document_iter_init(&iter, tuple->document);
    if (document_iter_next(&iter))
        foreign = iter.value;
    if (document_iter_next(&iter))
        value = iter.value;
    if (!query_value_shows(&value))
        return true;
    for (size_t i = 0; i < looking->count; i++) {
        struct waiting *row = &looking->rows[i];
        bool belongs;

        if (!row_belongs(looking, row, &foreign, &belongs, err) ||
            (belongs && !found_add(looking, row, &value, err)))
            return false;
    }
    return true;
}

/* The plan with one more condition. */
static bool narrowed_run(struct query_looking *looking, struct query_build *build,
                         const struct query_expression *condition,
                         const struct query_expression *select, const struct query_binding *lets,
                         bool (*row)(void *self, const struct document_value *value,
                                     struct error *err),
                         struct error *err)
{
    const struct query_lookup *lookup = looking->lookup;
    const struct document_value *arrays[BATCH_ROWS];
    struct query_wanted wanted = {.arrays = arrays, .arena = build->arena};
    struct query_plan plan = *lookup->plan;

    if (lookup->pairing && lookup->pairing->path.data) {
        wanted.path = lookup->pairing->path;
        if (looking->together)
            while (wanted.count < looking->count) {
                arrays[wanted.count] = &looking->rows[wanted.count].local;
                wanted.count++;
            }
        else
            arrays[wanted.count++] = &looking->asking->local;
        looking->flow->run->wanted = &wanted;
    }
    if (condition)
        plan.query.filter =
            plan.query.filter ? query_and(build, condition, plan.query.filter) : condition;
    plan.query.select = select;
    if (build->failed) {
        looking->flow->run->wanted = NULL;
        *err = build->error;
        return false;
    }
    return query_other_run(looking->flow->run, lookup->container, &plan, lets, lookup->let_count,
                           row, looking, err);
}

/* What items must be like that belong to some row. *ret_condition NULL: there are none. */
static bool any_equals(struct query_looking *looking, struct query_build *build,
                       const struct query_expression **ret_condition)
{
    const struct query_expression *values[BATCH_ROWS];
    size_t count = 0;

    for (size_t i = 0; i < looking->count; i++)
        if (looking->rows[i].local.type != DOCUMENT_UNDEFINED)
            values[count++] = query_constant_borrowed(build, looking->rows[i].local);
    *ret_condition = count ? query_in(build, looking->lookup->foreign, values, count) : NULL;
    return true;
}

static bool any_pairs(struct query_looking *looking, struct query_build *build,
                      const struct query_expression **ret_condition, struct error *err)
{
    const struct query_pairing *pairing = looking->lookup->pairing;
    const struct query_expression *any = NULL, *one;

    for (size_t i = 0; i < looking->count; i++) {
        struct waiting *row = &looking->rows[i];

        if (!pairing->condition(pairing, build, &row->local, &one, &row->pair, err))
            return false;
        if (one)
            any = any ? query_or(build, any, one) : one;
    }
    *ret_condition = any;
    return true;
}

static struct query_build looking_build(const struct query_looking *looking, struct arena *arena)
{
    enum document_order order = looking->lookup->plan->order;

    return (struct query_build){
        .arena = arena, .order = order, .keep_nonfinite = order == DOCUMENT_ORDER_MONGO};
}

static bool ask_together(struct query_looking *looking, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = looking_build(looking, arena);
    const struct query_lookup *lookup = looking->lookup;
    const struct query_expression *condition, *pair[2];

    if (!(lookup->pairing ? any_pairs(looking, &build, &condition, err)
                          : any_equals(looking, &build, &condition)))
        return false;
    if (!condition)
        return true;
    pair[0] = lookup->foreign;
    pair[1] = lookup->plan->query.select;
    return narrowed_run(looking, &build, condition, query_tuple_of(&build, pair, 2), NULL,
                        found_together, err);
}

static bool ask_alone(struct query_looking *looking, struct waiting *row, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = looking_build(looking, arena);
    const struct query_lookup *lookup = looking->lookup;
    const struct query_expression *condition = NULL;

    looking->asking = row;
    if (lookup->graph)
        return query_graph_search(looking->flow->run, lookup, &row->local, row->lets, found_alone,
                                  looking, err);
    if (lookup->pairing) {
        if (!lookup->pairing->condition(lookup->pairing, &build, &row->local, &condition,
                                        &row->pair, err))
            return false;
        if (!condition)
            return true;
    } else if (lookup->local && row->local.type == DOCUMENT_UNDEFINED) {
        return true;
    } else if (lookup->local) {
        condition = query_compare(&build, QUERY_EQUAL, lookup->foreign,
                                  query_constant_borrowed(&build, row->local));
    }
    return narrowed_run(looking, &build, condition, lookup->plan->query.select, row->lets,
                        found_alone, err);
}

/* Several rows, of one batch or two, may have come from one: what came of it is counted on. */
static void row_begin(struct query_looking *looking, const struct waiting *row)
{
    query_flow_row_begin(looking->flow, row->number);
    if (row->number == looking->number)
        looking->flow->given = looking->given;
}

static void row_end(struct query_looking *looking, const struct waiting *row)
{
    looking->number = row->number;
    looking->given = looking->flow->given;
}

/* --- Going on -------------------------------------------------------------------------------- */

static bool rows_push(struct query_looking *looking, struct error *err)
{
    struct query_flow *flow = looking->flow;
    struct query_context *context = &flow->run->context;

    for (size_t i = 0; i < looking->count && !flow->stop; i++) {
        struct waiting *row = &looking->rows[i];

        if (!looking->together && !ask_alone(looking, row, err))
            return false;
        document_end(&row->found, 0);
        query_tuple_bind(context, looking->kept, looking->kept_count, row->tuple);
        context->slots[looking->lookup->slot] =
            (struct query_slot){.value = document_array(buf_slice(&row->found))};
        if (flow->figures)
            flow->figures[looking->at].rows_out++;
        row_begin(looking, row);
        if (!query_flow_push_from(flow, looking->nth, looking->at + 1, err))
            return false;
        row_end(looking, row);
        if (!looking->together) {
            looking->found_bytes -= MIN(looking->found_bytes, row->found.len);
            buf_done(&row->found);
            buf_init(&row->found, SIZE_MAX / 2);
        }
    }
    return true;
}

/* The slots go back to what they were: others may have the same row before them. */
static bool batch_flush(struct query_looking *looking, struct error *err)
{
    struct query_context *context = &looking->flow->run->context;
    size_t size = memory_array_size(context->slot_count, sizeof *context->slots);
    struct query_stage_figures *outer, *figures = looking->flow->figures;
    struct query_slot *slots;
    bool pushed;

    if (!looking->count)
        return true;
    outer = query_figures_enter(looking->flow->run, figures ? &figures[looking->at] : NULL);
    slots = memory_alloc(size);
    memcpy(slots, context->slots, size);
    pushed = (!looking->together || ask_together(looking, err)) && rows_push(looking, err);
    batch_clear(looking);
    memcpy(context->slots, slots, size);
    memory_free(slots);
    query_figures_enter(looking->flow->run, outer);
    return pushed;
}

/* The rows that come next may have numbers of their own, which begin anew. */
bool query_looking_flush(struct query_looking *looking, struct error *err)
{
    bool flushed = batch_flush(looking, err);

    looking->number = looking->given = 0;
    return flushed;
}
