/* Pages of stages: what they cost, who may stop them, and what is told of them. Their rows are
 * checked by property/stages. */
#include "query/stage/rest.h"

#include "query/stage/chain.h"
#include "support/faulty_disk.h"
#include "support/queries.h"
#include "throughput/cost.h"

enum { ELEMENTS = 20, MEMORY = 256 * 1024 };

/* --- Chains ----------------------------------------------------------------------------------- */

static const struct query_expression *slot_of(struct queries *f, uint32_t slot)
{
    return query_variable(&f->build, slot);
}

/* An unwind that is not pushed down: behind it rows go through stages. */
static struct query_stage unwound(struct queries *f)
{
    return (struct query_stage){
        .kind = QUERY_STAGE_UNWIND,
        .unwind = {.array = queries_path(f, "t"), .slot = 1, .indexed = true, .index_slot = 2}};
}

static struct query_plan chain_plan(struct queries *f, const struct query_stage *stages,
                                    size_t count, const struct query_expression *select)
{
    struct query_plan plan = {.slot_count = 16, .order_free = true, .fingerprint = 77};
    struct query_chain chain = {stages, count, select};

    query_chain_plan(&f->build, &chain, &plan);
    assert_false(f->build.failed);
    return plan;
}

/* All items of the other container, which is the same. */
static struct query_plan *others(struct queries *f, const struct query_expression *filter)
{
    struct query_plan *plan = ARENA_NEW(f->arena, struct query_plan);

    *plan = queries_plan(queries_path(f, "id"), filter);
    plan->slot_count = 16;
    return plan;
}

struct bench {
    struct queries *f;
    struct query_request request;
    struct queries_rows rows;
    struct metered_call call;
    struct faulty_disk disk;
    struct query_spill *spill;
    struct meters *others; /* of the other container */
    struct clock clock;
    int64_t now_ms;
    atomic_bool cancelled;
};

static int64_t bench_ms(void *context)
{
    return *(const int64_t *)context;
}

static bool other_find(void *self, struct slice container UNUSED, struct query_request *request,
                       struct error *err UNUSED)
{
    request->meters = ((struct bench *)self)->others;
    return true;
}

static bool row_drop(void *self UNUSED, const struct document_value *value UNUSED,
                     struct error *err UNUSED)
{
    return true;
}

static void bench_open(struct bench *bench, struct queries *f, size_t documents, size_t partitions)
{
    *bench = (struct bench){.f = f, .rows = {.arena = f->arena}, .now_ms = 1000};
    for (size_t i = 0; i < documents; i++) {
        char json[200];
        int at = snprintf(json, sizeof json, "{\"id\":\"%05zu\",\"pk\":%zu,\"n\":%zu,\"t\":[0", i,
                          i % 50, i % 20);

        for (int e = 1; e < ELEMENTS; e++)
            at += snprintf(json + at, sizeof json - (size_t)at, ",%d", e);
        snprintf(json + at, sizeof json - (size_t)at, "]}");
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){.partitions = partitions});
    queries_put(f);
    bench->clock = f->test.clock;
    bench->clock.monotonic_ms = bench->clock.wall_ms = bench_ms;
    bench->clock.context = &bench->now_ms;
    f->test.space.clock = &bench->clock;
    faulty_disk_init(&bench->disk);
    bench->spill = faulty_disk_spill(&bench->disk, 1 << 30);
    bench->request = (struct query_request){.space = &f->test.space,
                                            .container = rid_of_container(1, 2),
                                            .call = &bench->call,
                                            .limits = {.memory_max = MEMORY},
                                            .spill = bench->spill,
                                            .order_unindexed = true,
                                            .arena = f->arena,
                                            .other = other_find,
                                            .other_self = bench,
                                            .row = queries_row,
                                            .self = &bench->rows};
}

static void bench_done(struct bench *bench)
{
    query_spill_free(bench->spill);
    meters_free(bench->others);
    bench->f->test.space.clock = &bench->f->test.clock;
}
CLEANUP_VALUE_FN(struct bench, bench_done)

/* --- What pages cost -------------------------------------------------------------------------- */

static struct query_plan groups_plan(struct queries *f)
{
    struct query_group_key *key = ARENA_NEW(f->arena, struct query_group_key);
    struct query_aggregate_call *call = ARENA_NEW(f->arena, struct query_aggregate_call);
    struct query_order *order = ARENA_NEW(f->arena, struct query_order);
    struct query_stage stages[2] = {
        {.kind = QUERY_STAGE_GROUP,
         .group = {.keys = key, .key_count = 1, .aggregates = call, .aggregate_count = 1}},
        {.kind = QUERY_STAGE_SORT, .sort = {.order = order, .count = 1}},
    };

    *key = (struct query_group_key){queries_path(f, "n"), 1};
    *call = (struct query_aggregate_call){QUERY_COUNT, queries_value(f, "1"), 2};
    *order = (struct query_order){slot_of(f, 1), true};
    return chain_plan(f, stages, ARRAY_LEN(stages), slot_of(f, 1));
}

static void pages_behind_the_first_cost_a_page_kept_or_not(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    int64_t charges[2][8] = {{0}};
    size_t pages = 0;
    struct cost_query least = {.partitions_resumed = 1};
    struct query_plan plan;

    bench_open(&bench, f, 200, 4);
    f->cache = query_cache_new(1 << 20, UINT64_MAX);
    plan = groups_plan(f);
    bench.request.limits.rows_max = 5;
    for (int kept = 0; kept < 2; kept++) {
        bench.request.cache = kept ? f->cache : NULL;
        bench.request.continuation = SLICE_NONE;
        for (pages = 0;; pages++) {
            struct query_page page;
            struct error err;

            assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
            assert_int_equal(bench.call.charge_cru, page.charge_cru);
            charges[kept][pages] = page.charge_cru;
            bench.request.continuation = page.continuation;
            if (!page.continuation.len)
                break;
        }
    }
    assert_int_equal(pages, 3);
    assert_int_equal(bench.rows.count, 40);
    for (size_t i = 0; i <= pages; i++) {
        assert_int_equal(charges[0][i], charges[1][i]);
        assert_true(charges[0][i] >= cost_query(&least));
        assert_true(i == 0 || charges[0][i] < charges[0][0]);
    }
}

static void owe(struct meters *meters, uint32_t partition, int64_t now_ms)
{
    struct budget *budget = meter_budget(meters_find(meters, partition));
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &(struct budget_request){.price_cru = 1}, now_ms, &grant,
                           &wait_ms, &err),
              &err);
    budget_settle(budget, &grant, 100000, now_ms);
}

static void a_page_waits_for_its_budget_though_it_reads_nothing(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    CLEANUP(meters_free) struct meters *meters = NULL;
    struct query_plan plan;
    struct query_page page;
    struct error err;

    bench_open(&bench, f, 200, 1);
    f->cache = query_cache_new(1 << 20, UINT64_MAX);
    plan = groups_plan(f);
    meters = meters_new(&bench.clock);
    meters_set_own(meters, 1, &(struct budget_options){.rate_cru = 30000});
    bench.request.meters = meters;
    bench.request.cache = f->cache;
    bench.request.limits.rows_max = 15;
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    owe(meters, 1, bench.now_ms);
    bench.request.continuation = page.continuation;
    assert_fails(query_run(&plan, &bench.request, &page, &err), &err, ERROR_TOO_MANY_REQUESTS);
    assert_true(bench.call.wait_ms > 0);
    assert_int_equal(bench.call.charge_cru, 0);
    assert_int_equal(bench.rows.count, 15);
    bench.now_ms += 3600 * 1000;
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    assert_int_equal(bench.rows.count, 20);
    assert_int_equal(page.metrics.items_loaded, 0); /* it was kept */
}

static struct query_plan lookup_plan(struct queries *f)
{
    struct query_stage stages[1] = {
        {.kind = QUERY_STAGE_LOOKUP,
         .lookup = {.container = SLICE("others"),
                    .plan = others(f, NULL),
                    .local = queries_path(f, "id"),
                    .foreign = queries_path(f, "id"),
                    .slot = 1}},
    };

    return chain_plan(f, stages, ARRAY_LEN(stages), slot_of(f, 1));
}

static void what_a_lookup_reads_is_paid_by_the_other_container(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    struct query_plan plain, looking;
    struct query_page page;
    int64_t without;
    struct error err;

    bench_open(&bench, f, 30, 1);
    plain = queries_plan(queries_path(f, "id"), NULL);
    looking = lookup_plan(f);
    assert_ok(query_run(&plain, &bench.request, &page, &err), &err);
    without = page.charge_cru;
    bench.others = meters_new(&bench.clock);
    meters_set_own(bench.others, 1, &(struct budget_options){.rate_cru = 100000});
    assert_ok(query_run(&looking, &bench.request, &page, &err), &err);
    assert_true(page.charge_cru > 2 * without - 100);
    assert_int_equal(bench.call.charge_cru, page.charge_cru);
    owe(bench.others, 1, bench.now_ms);
    assert_fails(query_run(&looking, &bench.request, &page, &err), &err, ERROR_TOO_MANY_REQUESTS);
    assert_true(bench.call.wait_ms > 0);
    assert_true(bench.call.charge_cru > 0); /* its own container has been read */
}

/* --- Who may stop them ------------------------------------------------------------------------ */

/* Gives what its child gives, and stops the query when it has been asked so often: its client goes,
 * or its time is over. */
struct stopper {
    struct query_expression head;
    struct stopping *stopping;
};

struct stopping {
    struct bench *bench;
    uint64_t seen, stop_at;
    bool by_clock;
};

static bool stopper_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct stopping *stopping = ((const struct stopper *)expression)->stopping;

    if (++stopping->seen == stopping->stop_at) {
        if (stopping->by_clock)
            stopping->bench->now_ms = 1000000;
        else
            atomic_store(&stopping->bench->cancelled, true);
    }
    return query_evaluate(expression->children[0], context, ret_value, err);
}

static const struct query_kind stopper_kind = {"stopper", stopper_evaluate, QUERY_UNSTABLE, NULL};

static const struct query_expression *stop_in(struct queries *f, struct stopping *stopping,
                                              const struct query_expression *child)
{
    struct stopper *node = query_node(&f->build, &stopper_kind, sizeof *node, &child, 1);

    node->stopping = stopping;
    return query_fold(&f->build, &node->head);
}

/* The stage with the stopper in it, behind an unwind. ret_select: what is given in the end. */
struct stopped_case {
    const char *name;
    void (*make)(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                 const struct query_expression **ret_select);
};

static const struct query_expression *truth(struct queries *f, struct stopping *stopping)
{
    return query_compare(&f->build, QUERY_GREATER_EQUAL, stop_in(f, stopping, slot_of(f, 2)),
                         queries_value(f, "0"));
}

static void make_match(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       const struct query_expression **ret_select UNUSED)
{
    *stage = (struct query_stage){.kind = QUERY_STAGE_MATCH, .match = truth(f, stopping)};
}

static void make_unwind(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                        const struct query_expression **ret_select UNUSED)
{
    *stage = (struct query_stage){
        .kind = QUERY_STAGE_UNWIND,
        .unwind = {.array = stop_in(f, stopping, queries_path(f, "t")), .slot = 3}};
}

static void make_project(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                         const struct query_expression **ret_select)
{
    *stage =
        (struct query_stage){.kind = QUERY_STAGE_PROJECT,
                             .project = {.select = stop_in(f, stopping, slot_of(f, 2)), .slot = 3}};
    *ret_select = slot_of(f, 3);
}

static void group_with(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       size_t key_count, const struct query_expression **ret_select)
{
    struct query_group_key *key = ARENA_NEW(f->arena, struct query_group_key);
    struct query_aggregate_call *call = ARENA_NEW(f->arena, struct query_aggregate_call);

    *key = (struct query_group_key){queries_path(f, "id"), 3};
    *call = (struct query_aggregate_call){QUERY_SUM, stop_in(f, stopping, slot_of(f, 2)), 4};
    *stage = (struct query_stage){.kind = QUERY_STAGE_GROUP, .group = {key, key_count, call, 1}};
    *ret_select = slot_of(f, 4);
}

static void make_group(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       const struct query_expression **ret_select)
{
    group_with(f, stopping, stage, 1, ret_select);
}

static void make_total(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       const struct query_expression **ret_select)
{
    group_with(f, stopping, stage, 0, ret_select);
}

static void sort_by(struct queries *f, const struct query_expression *by, struct query_stage *stage)
{
    struct query_order *order = ARENA_NEW(f->arena, struct query_order);

    *order = (struct query_order){by, false};
    *stage = (struct query_stage){.kind = QUERY_STAGE_SORT, .sort = {order, 1}};
}

static void make_sort(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                      const struct query_expression **ret_select UNUSED)
{
    sort_by(f, stop_in(f, stopping, slot_of(f, 2)), stage);
}

/* While sorted rows, which have spilled, are given out. */
static void make_sorted(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                        const struct query_expression **ret_select)
{
    sort_by(f, slot_of(f, 2), stage);
    *ret_select = stop_in(f, stopping, slot_of(f, 2));
}

static void make_skip(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                      const struct query_expression **ret_select)
{
    *stage = (struct query_stage){.kind = QUERY_STAGE_SKIP, .amount = 100};
    *ret_select = stop_in(f, stopping, slot_of(f, 2));
}

static void make_limit(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       const struct query_expression **ret_select)
{
    *stage = (struct query_stage){.kind = QUERY_STAGE_LIMIT, .amount = 1000000};
    *ret_select = stop_in(f, stopping, slot_of(f, 2));
}

static void make_distinct(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                          const struct query_expression **ret_select UNUSED)
{
    const struct query_expression **keys =
        ARENA_ARRAY(f->arena, const struct query_expression *, 2);

    keys[0] = queries_path(f, "id");
    keys[1] = stop_in(f, stopping, slot_of(f, 2));
    *stage = (struct query_stage){.kind = QUERY_STAGE_DISTINCT, .distinct = {keys, 2}};
}

static void lookup_with(struct queries *f, const struct query_expression *local,
                        const struct query_expression *filter, struct query_let *let,
                        struct query_stage *stage)
{
    *stage = (struct query_stage){.kind = QUERY_STAGE_LOOKUP,
                                  .lookup = {.container = SLICE("others"),
                                             .plan = others(f, filter),
                                             .local = local,
                                             .foreign = queries_path(f, "id"),
                                             .lets = let,
                                             .let_count = let != NULL,
                                             .slot = 3}};
}

/* A batch of rows at once, in the row; and one by one, in the plan of the other container. */
static void make_lookup(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                        const struct query_expression **ret_select UNUSED)
{
    lookup_with(f, stop_in(f, stopping, queries_path(f, "id")), NULL, NULL, stage);
}

static void make_lookup_alone(struct queries *f, struct stopping *stopping,
                              struct query_stage *stage,
                              const struct query_expression **ret_select UNUSED)
{
    struct query_let *let = ARENA_NEW(f->arena, struct query_let);

    *let = (struct query_let){queries_path(f, "id"), 5};
    lookup_with(f, NULL,
                query_compare(&f->build, QUERY_EQUAL, stop_in(f, stopping, queries_path(f, "id")),
                              slot_of(f, 5)),
                let, stage);
}

static void make_facet(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                       const struct query_expression **ret_select)
{
    struct query_stage *inner = ARENA_ARRAY(f->arena, struct query_stage, 2);
    struct query_chain *chains = ARENA_ARRAY(f->arena, struct query_chain, 2);
    uint32_t *slots = ARENA_ARRAY(f->arena, uint32_t, 2);

    sort_by(f, stop_in(f, stopping, slot_of(f, 2)), &inner[0]);
    inner[1] = (struct query_stage){.kind = QUERY_STAGE_LIMIT, .amount = 3};
    chains[0] = (struct query_chain){inner, 2, slot_of(f, 2)};
    chains[1] = (struct query_chain){inner + 1, 1, slot_of(f, 2)};
    slots[0] = 3;
    slots[1] = 4;
    *stage = (struct query_stage){.kind = QUERY_STAGE_FACET, .facet = {chains, slots, 2}};
    *ret_select = slot_of(f, 3);
}

/* In the rows of the other plan. */
static void make_union(struct queries *f, struct stopping *stopping, struct query_stage *stages,
                       const struct query_expression **ret_select)
{
    struct query_source *source = ARENA_NEW(f->arena, struct query_source);
    struct query_plan *plan = others(f, NULL);

    *source = (struct query_source){
        .kind = QUERY_SOURCE_EACH, .expression = queries_path(f, "t"), .slot = 1};
    plan->query.sources = source;
    plan->query.source_count = 1;
    plan->query.select = stop_in(f, stopping, queries_path(f, "id"));
    stages[0] = (struct query_stage){.kind = QUERY_STAGE_PROJECT,
                                     .project = {.select = slot_of(f, 2), .slot = 3}};
    stages[1] =
        (struct query_stage){.kind = QUERY_STAGE_UNION, .unite = {SLICE("others"), plan, 3}};
    *ret_select = slot_of(f, 3);
}

static void window_with(struct queries *f, const struct query_expression *argument,
                        struct query_stage *stage, const struct query_expression **ret_select)
{
    struct query_window_output *output = ARENA_NEW(f->arena, struct query_window_output);
    struct query_order *order = ARENA_NEW(f->arena, struct query_order);

    *order = (struct query_order){slot_of(f, 2), false};
    *output = (struct query_window_output){.kind = QUERY_WINDOW_AGGREGATE,
                                           .aggregate = QUERY_SUM,
                                           .argument = argument,
                                           .from = {QUERY_BOUND_OFFSET, -3},
                                           .to = {QUERY_BOUND_UNBOUNDED, 0},
                                           .slot = 3};
    *stage = (struct query_stage){
        .kind = QUERY_STAGE_WINDOW,
        .window = {.order = order, .order_count = 1, .outputs = output, .output_count = 1}};
    *ret_select = slot_of(f, 3);
}

static void make_window(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                        const struct query_expression **ret_select)
{
    window_with(f, stop_in(f, stopping, slot_of(f, 2)), stage, ret_select);
}

static void make_windowed(struct queries *f, struct stopping *stopping, struct query_stage *stage,
                          const struct query_expression **ret_select)
{
    window_with(f, slot_of(f, 2), stage, ret_select);
    *ret_select = stop_in(f, stopping, slot_of(f, 3));
}

/* Between two looks at the limits lie 16384 units of work, of which each row takes some. */
static void every_stage_stops_soon(void **state)
{
    static const struct stopped_case cases[] = {
        {"match", make_match},       {"unwind", make_unwind}, {"project", make_project},
        {"group", make_group},       {"total", make_total},   {"sort", make_sort},
        {"sorted", make_sorted},     {"skip", make_skip},     {"limit", make_limit},
        {"distinct", make_distinct}, {"lookup", make_lookup}, {"lookup alone", make_lookup_alone},
        {"facet", make_facet},       {"union", make_union},   {"window", make_window},
        {"windowed", make_windowed},
    };
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;

    bench_open(&bench, f, 1500, 2);
    bench.request.limits.cancelled = &bench.cancelled;
    bench.request.limits.deadline_ms = 100000;
    bench.request.limits.rows_max = UINT64_MAX;
    bench.request.limits.bytes_max = UINT64_MAX;
    bench.request.row = row_drop;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        const struct stopped_case *one = &cases[i / 2];
        struct stopping stopping = {.bench = &bench, .stop_at = 500, .by_clock = i % 2};
        struct query_stage stages[3] = {unwound(f)};
        const struct query_expression *select = slot_of(f, 2);
        bool two = one->make == make_union;
        struct query_spill_metrics spilled;
        struct query_plan plan;
        struct query_page page;
        struct error err = {0};

        f->build.nodes = 0;
        bench.now_ms = 1000;
        atomic_store(&bench.cancelled, false);
        one->make(f, &stopping, &stages[1], &select);
        plan = chain_plan(f, stages, two ? 3 : 2, select);
        assert_non_null(plan.rest);
        if (query_run(&plan, &bench.request, &page, &err) || err.code != ERROR_TIMED_OUT)
            fail_msg("%s: not stopped: %s", one->name, err.message);
        if (stopping.seen < 500 || stopping.seen > 500 + 16384)
            fail_msg("%s: stopped after %llu rows", one->name, (unsigned long long)stopping.seen);
        query_spill_metrics(bench.spill, &spilled);
        assert_int_equal(spilled.bytes, 0); /* nothing stays on disk */
    }
}

/* Pages that are short, one for each row, must look as well: not only long ones. */
static void many_short_lookups_stop_at_once(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    struct query_let *let;
    struct stopping stopping;
    struct query_stage stage;
    struct query_plan plan;
    struct query_page page;
    struct error err;

    bench_open(&bench, f, 400, 1);
    stopping = (struct stopping){.bench = &bench, .stop_at = 150};
    let = ARENA_NEW(f->arena, struct query_let);
    *let = (struct query_let){queries_path(f, "id"), 5};
    lookup_with(f, NULL,
                query_compare(&f->build, QUERY_EQUAL, queries_path(f, "id"), slot_of(f, 5)), let,
                &stage);
    plan = chain_plan(f, &stage, 1, stop_in(f, &stopping, slot_of(f, 3)));
    bench.request.limits.cancelled = &bench.cancelled;
    bench.request.limits.rows_max = UINT64_MAX;
    bench.request.row = row_drop;
    assert_fails(query_run(&plan, &bench.request, &page, &err), &err, ERROR_TIMED_OUT);
    assert_int_equal(stopping.seen, 150);
}

static void work_of_other_plans_counts_to_the_limit(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    struct query_let *let;
    struct query_stage stage;
    struct query_plan plan;
    struct query_page page;
    struct error err;

    bench_open(&bench, f, 200, 1);
    let = ARENA_NEW(f->arena, struct query_let);
    *let = (struct query_let){queries_path(f, "n"), 5};
    lookup_with(f, NULL, query_compare(&f->build, QUERY_EQUAL, queries_path(f, "n"), slot_of(f, 5)),
                let, &stage);
    plan = chain_plan(f, &stage, 1, slot_of(f, 3));
    bench.request.row = row_drop;
    bench.request.limits.rows_max = UINT64_MAX;
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    bench.request.limits.work_max = page.metrics.work / 2;
    assert_fails(query_run(&plan, &bench.request, &page, &err), &err, ERROR_QUERY_LIMIT);
}

/* --- What is told of them --------------------------------------------------------------------- */

static struct document_value found(struct slice document, const char *path)
{
    struct document_value value = document_object(document);
    struct slice rest = slice_of_text(path), name;

    for (bool more = true; more;) {
        more = slice_split(rest, '.', &name, &rest);
        if (!document_find(value.document, more ? name : rest, &value))
            fail_msg("the explanation has no %s", path);
    }
    return value;
}

static void is_stage(struct slice explain, const char *list, size_t nth, const char *name,
                     int64_t rows_in, int64_t rows_out)
{
    char path[80];

    snprintf(path, sizeof path, "%s.%zu.stage", list, nth);
    assert_slice_equal(found(explain, path).text, slice_of_text(name));
    snprintf(path, sizeof path, "%s.%zu.rowsIn", list, nth);
    assert_int_equal(found(explain, path).int64, rows_in);
    snprintf(path, sizeof path, "%s.%zu.rowsOut", list, nth);
    assert_int_equal(found(explain, path).int64, rows_out);
}

static void stages_tell_what_they_did(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    struct query_stage stages[7], inner;
    struct query_chain chain;
    uint32_t slot = 4;
    struct query_plan plan;
    struct query_page page;
    struct error err;

    bench_open(&bench, f, 100, 4);
    stages[0] = (struct query_stage){.kind = QUERY_STAGE_MATCH,
                                     .match = queries_compare(f, "n", QUERY_LESS, "10")};
    stages[1] = unwound(f);
    stages[2] = (struct query_stage){
        .kind = QUERY_STAGE_MATCH,
        .match = query_compare(&f->build, QUERY_LESS, slot_of(f, 2), queries_value(f, "2"))};
    sort_by(f, slot_of(f, 2), &stages[3]);
    lookup_with(f, queries_path(f, "id"), NULL, NULL, &stages[4]);
    inner = (struct query_stage){.kind = QUERY_STAGE_LIMIT, .amount = 7};
    chain = (struct query_chain){&inner, 1, slot_of(f, 3)};
    stages[5] = (struct query_stage){.kind = QUERY_STAGE_FACET, .facet = {&chain, &slot, 1}};
    stages[6] = (struct query_stage){
        .kind = QUERY_STAGE_UNWIND,
        .unwind = {.array = slot_of(f, 4), .slot = 5, .indexed = true, .index_slot = 6}};
    plan = chain_plan(f, stages, ARRAY_LEN(stages), slot_of(f, 6));
    bench.request.explain = true;
    bench.request.limits.memory_max = 2000;
    bench.request.limits.rows_max = 5;
    f->cache = query_cache_new(1 << 20, UINT64_MAX);
    bench.request.cache = f->cache;
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    assert_slice_equal(found(page.explain, "pushed.0.stage").text, SLICE("match"));
    assert_slice_equal(found(page.explain, "access.kind").text, SLICE("index"));
    is_stage(page.explain, "stages", 0, "unwind", 50, 50 * ELEMENTS);
    is_stage(page.explain, "stages", 1, "match", 50 * ELEMENTS, 100);
    is_stage(page.explain, "stages", 2, "sort", 100, 100);
    is_stage(page.explain, "stages", 3, "lookup", 100, 100);
    is_stage(page.explain, "stages", 4, "facet", 100, 1);
    is_stage(page.explain, "stages.4.chains.0", 0, "limit", 7, 7);
    is_stage(page.explain, "stages", 5, "keep", 1, 1);
    is_stage(page.explain, "stages", 6, "unwind", 1, 6);
    assert_true(found(page.explain, "stages.2.spilledBytes").int64 > 0);
    assert_int_equal(found(page.explain, "stages.1.spilledBytes").int64, 0);
    assert_true(found(page.explain, "stages.3.indexEntries").int64 >= 50);
    assert_true(found(page.explain, "stages.3.charge").number > 1);
    assert_slice_equal(found(page.explain, "stages.3.container").text, SLICE("others"));
    assert_true(found(page.explain, "stages.2.ms").number > 0);
    assert_false(found(page.explain, "kept").boolean);
    assert_int_equal(found(page.explain, "actual.rows").int64, 5);
    assert_true(found(page.explain, "charge.total").number == (double)page.charge_cru / 100);

    bench.request.continuation = page.continuation;
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    assert_true(found(page.explain, "kept").boolean);
    assert_slice_equal(found(page.explain, "pushed.0.stage").text, SLICE("match"));
    is_stage(page.explain, "stages", 3, "lookup", 0, 0);
    is_stage(page.explain, "stages", 5, "keep", 0, 1);
    assert_true(found(page.explain, "charge.total").number == (double)page.charge_cru / 100);
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* The batch of a lookup waits for more rows; that there are none is said to it. */
static void the_last_batch_of_a_lookup_behind_an_order_is_not_forgotten(void **state)
{
    struct queries *f = *state;
    CLEANUP(bench_done) struct bench bench;
    struct query_stage stages[3];
    struct query_plan plan;
    struct query_page page;
    struct error err;

    bench_open(&bench, f, 40, 4);
    sort_by(f, queries_path(f, "id"), &stages[0]);
    stages[1] = (struct query_stage){.kind = QUERY_STAGE_LIMIT, .amount = 15};
    lookup_with(f, queries_path(f, "id"), NULL, NULL, &stages[2]);
    plan = chain_plan(f, stages, ARRAY_LEN(stages), slot_of(f, 3));
    assert_ok(query_run(&plan, &bench.request, &page, &err), &err);
    assert_int_equal(bench.rows.count, 15);
    assert_string_equal(bench.rows.texts[14], "[\"00014\"]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, queries_setup, queries_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages_behind_the_first_cost_a_page_kept_or_not),
        TEST(a_page_waits_for_its_budget_though_it_reads_nothing),
        TEST(what_a_lookup_reads_is_paid_by_the_other_container),
        TEST(every_stage_stops_soon),
        TEST(many_short_lookups_stop_at_once),
        TEST(work_of_other_plans_counts_to_the_limit),
        TEST(stages_tell_what_they_did),
        TEST(the_last_batch_of_a_lookup_behind_an_order_is_not_forgotten),
    };
    return cmocka_run_group_tests_name("query/stage/rest", tests, NULL, NULL);
}
