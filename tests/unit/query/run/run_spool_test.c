#include "query/spool/spill.h"
#include "support/queries.h"
#include "support/scratch.h"

#include <pthread.h>

static void check_ordered(struct queries *f, void *context)
{
    struct query_plan *plan = context;
    struct queries_how how = {0}, cached = {.cached = true}, small = {.memory_max = 2000};
    struct queries_rows *expected = queries_expect(f, plan);

    queries_same(queries_run(f, plan, &how), expected);
    queries_same(queries_run(f, plan, &cached), expected);
    queries_same(queries_run(f, plan, &small), expected);
}

static void check_long(struct queries *f, void *plan)
{
    struct queries_how how = {0}, cached = {.cached = true};
    struct queries_rows *expected = queries_expect(f, plan);

    queries_same(queries_run(f, plan, &how), expected);
    queries_same(queries_run(f, plan, &cached), expected);
}

static void order_is_kept_across_pages_and_partitions(void **state)
{
    struct queries *f = *state;

    queries_add_numbered(f, 60);
    for (int descending = 0; descending < 2; descending++) {
        struct query_order order = {queries_path(f, "b"), descending};
        struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_everywhere(f, check_ordered, &plan);
        plan.query.filter = queries_compare(f, "b", QUERY_GREATER, "10");
        queries_everywhere(f, check_ordered, &plan);
        plan.query.filter = queries_compare(f, "a", QUERY_EQUAL, "2");
        queries_everywhere(f, check_ordered, &plan);
        plan.query.offset = 2;
        plan.query.limit = 7;
        queries_everywhere(f, check_ordered, &plan);
    }
}

/* Within a partition that is the order of _rid, in rising and falling orders alike. */
static void equal_order_values_come_in_the_order_of_creation(void **state)
{
    struct queries *f = *state;

    queries_add_numbered(f, 50);
    for (int i = 0; i < 2 * QUERIES_POLICIES; i++) {
        struct query_order order = {queries_path(f, "c"), i % 2};
        struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
        struct queries_how how = {0};

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_open(f, &(struct test_space_options){.policy = queries_policies[i / 2]});
        queries_put(f);
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        queries_everywhere(f, queries_check_set, &plan);
    }
}

/* More than are put in order at once. */
static void very_many_equal_values_come_in_that_order_too(void **state)
{
    struct queries *f = *state;

    for (size_t i = 0; i < 3000; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":%d}", i, i % 97, i % 10 == 0);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    for (int descending = 0; descending < 2; descending++) {
        struct query_order order = {queries_path(f, "b"), descending};
        struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
        struct queries_how how = {.page = 700, .explain_has = "\"/b/?\""};

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        assert_int_equal(how.pages, 5);
    }
}

static void a_stream_goes_on_behind_its_place_with_another_filter(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "b"), false};
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_page page;
    struct error err;

    for (size_t i = 0; i < 12; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":%zu}", i, i * 7 % 12, i / 4);
        queries_add(f, json);
    }
    for (int cached = 0; cached < 2; cached++) {
        struct query_request request = {.limits = {.rows_max = 6},
                                        .order_unindexed = true,
                                        .cache = cached ? f->cache : NULL,
                                        .arena = f->arena,
                                        .row = queries_row,
                                        .self = &rows};

        queries_open(f, &(struct test_space_options){.policy = queries_policies[cached]});
        queries_put(f);
        f->cache = f->cache ? f->cache : query_cache_new(1 << 20, UINT64_MAX);
        request.space = &f->test.space;
        plan = queries_plan(queries_path(f, "id"), NULL);
        plan.query.order = &order;
        plan.query.order_count = 1;
        plan.fingerprint = 1;
        plan.binding = 9;
        rows.count = 0;
        assert_ok(query_run(&plan, &request, &page, &err), &err);
        queries_are(&rows, "\"0\" \"1\" \"2\" \"3\" \"4\" \"5\"");

        rows.count = 0;
        plan.query.filter = queries_compare(f, "b", QUERY_GREATER_EQUAL, "1");
        plan.fingerprint = 2; /* what is kept of the first page is not of this query */
        request.continuation = page.continuation;
        assert_ok(query_run(&plan, &request, &page, &err), &err);
        queries_are(&rows, "\"6\" \"7\" \"8\" \"9\" \"10\" \"11\"");
        assert_int_equal(page.continuation.len, 0);
    }
}

static void long_values_are_ordered_to_their_end(void **state)
{
    struct queries *f = *state;

    for (size_t i = 0; i < 40; i++) {
        char json[1024];
        size_t turned = (i * 17) % 40;

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":\"%0*d%zu\"}", i, i,
                 turned % 3 ? 400 : 3, (int)(turned % 5), 100 + turned);
        queries_add(f, json);
    }
    for (int descending = 0; descending < 2; descending++) {
        struct query_order order = {queries_path(f, "b"), descending};
        struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_everywhere(f, check_long, &plan);
    }
}

/* What an index has cut at the same place is sorted, by the page that meets it. */
static void pages_go_on_where_an_index_cannot_tell_values_apart(void **state)
{
    struct queries *f = *state;

    for (size_t i = 0; i < 40; i++) {
        char json[1024];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"a\":%d,\"b\":\"%0*d%zu\"}", i, i,
                 i % 4 == 0, i % 4 ? 400 : 3, (int)(i % 5), 100 + i);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    for (int i = 0; i < 4; i++) {
        struct query_order order = {queries_path(f, "b"), i % 2};
        struct query_plan plan = queries_plan(
            queries_path(f, "b"), i / 2 ? queries_compare(f, "a", QUERY_EQUAL, "1") : NULL);
        struct queries_how how = {.page = 5};

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        assert_int_equal(how.pages, i / 2 ? 2 : 8);
    }
}

static void two_orders_need_their_composite_index(void **state)
{
    struct queries *f = *state;
    struct query_order order[] = {{queries_path(f, "a"), true}, {queries_path(f, "b"), false}};
    struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {
        .space = &f->test.space, .arena = f->arena, .row = queries_row, .self = &rows};
    struct query_page page;
    struct queries_how how = {.explain_has = "\"ordered\":true"};
    struct error err;

    plan.query.order = order;
    plan.query.order_count = 2;
    queries_add_numbered(f, 30);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[2], .partitions = 4});
    queries_put(f);
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    plan.query.filter = queries_compare(f, "a", QUERY_EQUAL, "2");
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    queries_open(f, &(struct test_space_options){0});
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_BAD_REQUEST);
    assert_string_equal(err.message, "The order by query does not have a corresponding composite "
                                     "index that it can be served from.");
}

static void items_without_the_value_are_ordered_only_where_the_path_is_named(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "a"), false};
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {0};

    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_add(f, "{\"id\":\"1\",\"pk\":\"x\",\"a\":2}");
    queries_add(f, "{\"id\":\"2\",\"pk\":\"y\"}");
    queries_add(f, "{\"id\":\"3\",\"pk\":\"z\",\"a\":1}");
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "\"3\" \"1\"");
    queries_open(f, &(struct test_space_options){.policy = queries_policies[2], .partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "\"2\" \"3\" \"1\"");
}

static void arrays_and_objects_come_last_in_an_order(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "a"), false};
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {0};

    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_add(f, "{\"id\":\"1\",\"pk\":\"x\",\"a\":{\"z\":1}}");
    queries_add(f, "{\"id\":\"2\",\"pk\":\"y\",\"a\":[1]}");
    queries_add(f, "{\"id\":\"3\",\"pk\":\"z\",\"a\":\"s\"}");
    queries_add(f, "{\"id\":\"4\",\"pk\":\"z\",\"a\":null}");
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "\"4\" \"3\" \"2\" \"1\"");
}

static void check_grouped(struct queries *f, void *context)
{
    struct query_plan *plan = context;
    struct queries_how how = {0}, cached = {.cached = true}, small = {.memory_max = 1500};
    struct queries_rows *expected = queries_expect(f, plan);

    queries_same(queries_run(f, plan, &how), expected);
    queries_same(queries_run(f, plan, &cached), expected);
    queries_same(queries_run(f, plan, &small), expected);
}

static void groups_are_whole_however_they_are_paged(void **state)
{
    struct queries *f = *state;
    struct query_group_key key = {queries_path(f, "a"), 1};
    struct query_aggregate_call calls[] = {{QUERY_COUNT, queries_value(f, "1"), 2},
                                           {QUERY_SUM, queries_path(f, "b"), 3}};
    const struct query_expression *select =
        query_object(&f->build, (struct slice[]){SLICE("a"), SLICE("n"), SLICE("s")},
                     (const struct query_expression *[]){query_variable(&f->build, 1),
                                                         query_variable(&f->build, 2),
                                                         query_variable(&f->build, 3)},
                     3);
    struct query_plan plan = queries_plan(select, NULL);

    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    queries_add_numbered(f, 61);
    queries_everywhere(f, check_grouped, &plan);
    plan.query.offset = 1;
    plan.query.limit = 3;
    queries_everywhere(f, check_grouped, &plan);
}

static void distinct_rows_come_once_over_all_pages(void **state)
{
    struct queries *f = *state;
    struct query_order by_value = {queries_path(f, "a"), true},
                       by_other = {queries_path(f, "b"), false};
    struct query_plan plan = queries_plan(queries_path(f, "a"), NULL);

    queries_add_numbered(f, 53);
    plan.query.distinct = true;
    queries_everywhere(f, check_grouped, &plan);
    plan.query.order = &by_value;
    plan.query.order_count = 1;
    queries_everywhere(f, check_grouped, &plan);
    plan.query.order = &by_other;
    for (size_t i = 0; i < 2; i++) {
        struct queries_how how = {0};

        queries_open(f, &(struct test_space_options){.partitions = i ? 16 : 1});
        queries_put(f);
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    }
}

/* A page that hands out what an earlier one worked out costs the same, kept or read again. */
static void a_cache_changes_no_charge(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "b"), false};
    struct query_plan plan = queries_plan(queries_path(f, "a"), NULL);

    queries_add_numbered(f, 53);
    for (size_t partitions = 1; partitions <= 16; partitions += 15)
        for (size_t sorted = 0; sorted < 2; sorted++) {
            struct queries_how read_again = {0}, kept = {.cached = true};

            plan.query.distinct = !sorted;
            plan.query.order = sorted ? &order : NULL;
            plan.query.order_count = sorted;
            queries_open(f, &(struct test_space_options){.policy = queries_policies[1],
                                                         .partitions = (uint32_t)partitions});
            queries_put(f);
            queries_same(queries_run(f, &plan, &read_again), queries_run(f, &plan, &kept));
            assert_true(read_again.pages > 1);
            assert_int_equal(read_again.charge_cru, kept.charge_cru);
        }
}

static void a_query_around_a_query_sees_its_rows(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 5};
    struct query_subquery outer = {.select = query_variable(&f->build, 5),
                                   .aggregates = &call,
                                   .aggregate_count = 1,
                                   .limit = UINT64_MAX};
    struct query_plan plan = queries_plan(queries_path(f, "a"), NULL);
    struct queries_how how = {0}, small = {.memory_max = 700};

    plan.query.distinct = true;
    plan.outer = &outer;
    plan.outer_slot = 4;
    queries_add_numbered(f, 40);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1], .partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "5");
    queries_are(queries_run(f, &plan, &small), "5");
    outer.aggregate_count = 0;
    outer.filter = query_compare(&f->build, QUERY_GREATER, query_variable(&f->build, 4),
                                 queries_value(f, "2"));
    outer.select = query_variable(&f->build, 4);
    queries_are(queries_run(f, &plan, &how), "3 4");
    outer.distinct = true;
    {
        struct queries_rows rows = {.arena = f->arena};
        struct query_request request = {
            .space = &f->test.space, .arena = f->arena, .row = queries_row, .self = &rows};
        struct query_page page;
        struct error err;

        assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_QUERY_NOT_SUPPORTED);
    }
}

static void memory_that_does_not_suffice_is_a_clear_error(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "b"), false};
    struct query_plan plan = queries_plan(queries_path(f, "a"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.memory_max = 300},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    plan.query.order = &order;
    plan.query.order_count = 1;
    plan.query.distinct = true;
    queries_add_numbered(f, 40);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_QUERY_LIMIT);
}

struct task {
    pthread_t thread;
    void (*run)(void *context, size_t number);
    void *context;
    size_t number;
};

static void *task_run(void *argument)
{
    struct task *task = argument;

    task->run(task->context, task->number);
    return NULL;
}

static void run_in_threads(void *self, size_t count, void (*run)(void *context, size_t number),
                           void *context)
{
    struct task tasks[8];

    assert_true(count <= ARRAY_LEN(tasks));
    *(size_t *)self += count;
    for (size_t i = 0; i < count; i++) {
        tasks[i] = (struct task){.run = run, .context = context, .number = i};
        assert_int_equal(pthread_create(&tasks[i].thread, NULL, task_run, &tasks[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(tasks[i].thread, NULL);
}

/* The same rows with and without threads, with much memory and with little, and with a disk. */
static void check_threads(struct queries *f, const struct query_plan *plan)
{
    CLEANUP(scratch_done) struct scratch scratch;
    size_t tasks = 0;
    struct query_executor executor = {run_in_threads, &tasks, 5};
    struct queries_rows *expected = queries_expect(f, plan);
    struct queries_how alone = {.page = 500}, threads = {.page = 500, .executor = &executor};
    struct queries_how small = {.page = 500, .executor = &executor, .memory_max = 60000};

    scratch_init(&scratch);
    CLEANUP(query_spill_free)
    struct query_spill *spill = query_spill_new(&(struct query_spill_options){
        .directory = scratch.path, .query_bytes_max = 1 << 30, .total_bytes_max = 1 << 30});
    struct queries_how spilled = {
        .page = 500, .executor = &executor, .memory_max = 60000, .cached = true, .spill = spill};

    queries_same(queries_run(f, plan, &alone), expected);
    queries_same(queries_run(f, plan, &threads), expected);
    assert_int_equal(tasks, 5 * threads.pages);
    assert_int_equal(alone.charge_cru, threads.charge_cru);
    if (!plan->query.distinct)
        queries_same(queries_run(f, plan, &small), expected);
    queries_same(queries_run(f, plan, &spilled), expected);
    assert_true(spilled.spilled_bytes > 0 || plan->query.key_count + plan->query.order_count == 0);
    query_cache_free(TAKE(f->cache));
}

static void threads_change_no_row_and_no_charge(void **state)
{
    struct queries *f = *state;
    struct query_group_key key = {queries_path(f, "b"), 1};
    struct query_aggregate_call calls[] = {{QUERY_COUNT, queries_value(f, "1"), 2},
                                           {QUERY_SUM, queries_path(f, "c"), 3}};
    const struct query_expression *results[] = {
        query_variable(&f->build, 1), query_variable(&f->build, 2), query_variable(&f->build, 3)};
    struct query_order order = {queries_path(f, "b"), true};
    struct query_plan plan = queries_plan(query_array(&f->build, results, 3), NULL);

    for (size_t i = 0; i < 2500; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":%zu,\"c\":%zu.1}", i, i,
                 i * 7919 % 2503 / 2, i);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1], .partitions = 16});
    queries_put(f);
    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    check_threads(f, &plan);
    plan.query.key_count = 0;
    check_threads(f, &plan);
    /* items that an index leads to, and an index that is enough by itself */
    queries_open(f, &(struct test_space_options){.partitions = 16});
    queries_put(f);
    plan.query.filter = queries_compare(f, "b", QUERY_GREATER, "10");
    plan.query.key_count = 1;
    check_threads(f, &plan);
    plan.query.filter = NULL;
    calls[1] = (struct query_aggregate_call){QUERY_SUM, queries_path(f, "b"), 3};
    check_threads(f, &plan);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1], .partitions = 16});
    queries_put(f);
    plan.query.key_count = 0;
    plan.query.aggregate_count = 0;
    plan.query.select = queries_path(f, "b");
    plan.query.order = &order;
    plan.query.order_count = 1;
    check_threads(f, &plan);
    plan.query.order_count = 0;
    plan.query.distinct = true;
    check_threads(f, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_query_around_a_query_sees_its_rows, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(order_is_kept_across_pages_and_partitions, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(equal_order_values_come_in_the_order_of_creation,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(very_many_equal_values_come_in_that_order_too,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(a_stream_goes_on_behind_its_place_with_another_filter,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(long_values_are_ordered_to_their_end, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(pages_go_on_where_an_index_cannot_tell_values_apart,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(two_orders_need_their_composite_index, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(
            items_without_the_value_are_ordered_only_where_the_path_is_named, queries_setup,
            queries_teardown),
        cmocka_unit_test_setup_teardown(arrays_and_objects_come_last_in_an_order, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(groups_are_whole_however_they_are_paged, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(distinct_rows_come_once_over_all_pages, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_cache_changes_no_charge, queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(memory_that_does_not_suffice_is_a_clear_error,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(threads_change_no_row_and_no_charge, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
