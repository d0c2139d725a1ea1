#include "support/queries.h"

static void every_item_comes_once_in_pages_of_three(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);

    queries_add_numbered(f, 50);
    queries_everywhere(f, queries_check_set, &plan);
}

static void one_partition_gives_items_as_they_were_created(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {0};

    queries_add_numbered(f, 40);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    assert_int_equal(how.pages, 14);
}

static void a_page_filled_exactly_has_no_continuation(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {.page = 2};

    queries_add_numbered(f, 4);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    (void)queries_run(f, &plan, &how);
    assert_int_equal(how.pages, 2);
}

/* Over several partitions, most of them empty or without a row. */
static void check_full_page_is_the_last(struct queries *f, void *plan)
{
    struct queries_how how = {.page = 6};

    queries_same(queries_run(f, plan, &how), queries_expect(f, plan));
    assert_int_equal(how.pages, 1);
}

static void a_full_page_is_the_last_if_no_partition_has_another_row(void **state)
{
    struct queries *f = *state;
    struct query_plan plan;

    for (int i = 0; i < 40; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\": \"i%d\", \"pk\": \"p%d\"%s}", i, i,
                 i % 7 == 0 ? ", \"a\": 1" : "");
        queries_add(f, json);
    }
    plan = queries_plan(queries_path(f, "a"), NULL); /* undefined is no row */
    queries_everywhere(f, check_full_page_is_the_last, &plan);
}

static void check_count(struct queries *f, void *plan)
{
    struct queries_how how = {0};

    queries_same(queries_run(f, plan, &how), queries_expect(f, plan));
    assert_int_equal(how.pages, 1);
}

static void aggregates_see_every_partition(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
    struct query_plan plan = queries_plan(query_variable(&f->build, 1), NULL);

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    queries_add_numbered(f, 60);
    queries_everywhere(f, check_count, &plan);
    plan.query.filter = queries_compare(f, "a", QUERY_EQUAL, "3");
    queries_everywhere(f, check_count, &plan);
    plan.query.filter = query_and(&f->build, queries_compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                                  queries_compare(f, "a", QUERY_LESS, "3"));
    queries_everywhere(f, check_count, &plan);
    call = (struct query_aggregate_call){QUERY_MAX, queries_path(f, "b"), 1};
    queries_everywhere(f, check_count, &plan);
}

/* A row, and 299 items that give none. */
static void one_row_put(struct queries *f)
{
    queries_add(f, "{\"id\": \"first\", \"pk\": \"p\", \"a\": 1}");
    for (int i = 0; i < 299; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\": \"i%d\", \"pk\": \"p\"}", i);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
}

static void a_full_page_goes_on_if_its_time_is_up_before_the_next_row_is_found(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "a"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.limits = {.rows_max = 1, .pause_ms = 1},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;
    size_t pages = 0;

    one_row_put(f);
    request.space = &f->test.space;
    do {
        assert_ok(query_run(&plan, &request, &page, &err), &err);
        request.continuation = page.continuation;
        assert_true(++pages < 20);
    } while (page.continuation.len);
    queries_are(&rows, "1");
    assert_true(pages > 2); /* what the page before passed over is not looked at again */
}

static void a_fault_behind_a_full_page_is_told_to_the_next(void **state)
{
    struct queries *f = *state;
    const struct query_expression *fault = query_udf_call(&f->build, SLICE("none"), NULL, 0);
    struct query_plan plan = queries_plan(
        query_conditional(&f->build, queries_compare(f, "id", QUERY_EQUAL, "\"first\""),
                          queries_path(f, "a"), fault),
        NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {
        .limits = {.rows_max = 1}, .arena = f->arena, .row = queries_row, .self = &rows};
    struct query_page page;
    struct error err;

    one_row_put(f);
    request.space = &f->test.space;
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    queries_are(&rows, "1");
    assert_true(page.continuation.len > 0);
    request.continuation = page.continuation;
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_QUERY_NOT_SUPPORTED);
}

/* Whatever the access, and the order that it has. */
static void lists_and_sets_are_in_the_order_of_creation(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call calls[] = {{QUERY_MAKE_LIST, queries_path(f, "id"), 1},
                                           {QUERY_MAKE_SET, queries_path(f, "c"), 2}};
    const struct query_expression *results[] = {query_variable(&f->build, 1),
                                                query_variable(&f->build, 2)};
    const struct query_expression *select = query_array(&f->build, results, 2);

    queries_add_numbered(f, 60);
    for (int i = 0; i < 2 * QUERIES_POLICIES; i++) {
        struct query_plan plan =
            queries_plan(select, i % 2 ? queries_compare(f, "a", QUERY_GREATER_EQUAL, "1") : NULL);
        struct queries_how how = {0};

        plan.query.aggregates = calls;
        plan.query.aggregate_count = 2;
        plan.slot_count = 3;
        queries_open(f, &(struct test_space_options){.policy = queries_policies[i / 2]});
        queries_put(f);
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    }
}

static void a_join_goes_on_within_an_item(void **state)
{
    struct queries *f = *state;
    struct query_source source = {QUERY_SOURCE_EACH, queries_path(f, "tags"), NULL, 1};
    const struct query_expression *select = query_array(
        &f->build,
        (const struct query_expression *[]){queries_path(f, "id"), query_variable(&f->build, 1)},
        2);
    struct query_plan plan = queries_plan(select, NULL);

    plan.query.sources = &source;
    plan.query.source_count = 1;
    queries_add_numbered(f, 31);
    queries_everywhere(f, queries_check_set, &plan);
    plan.query.filter =
        query_compare(&f->build, QUERY_EQUAL, query_variable(&f->build, 1), queries_value(f, "2"));
    queries_everywhere(f, queries_check_set, &plan);
}

static void a_continuation_of_another_query_is_refused(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.rows_max = 2},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    queries_add_numbered(f, 10);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    plan.fingerprint = 7;
    request.continuation = page.continuation;
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_BAD_REQUEST);
    plan.fingerprint = 0;
    for (size_t len = 1; len < request.continuation.len; len++) {
        struct query_request broken = request;

        broken.continuation.len = len;
        assert_fails(query_run(&plan, &broken, &page, &err), &err, ERROR_BAD_REQUEST);
    }
}

/* The flag says that an index could not tell the values of an order apart. */
static void a_continuation_that_sorts_a_query_without_an_order_is_refused(void **state)
{
    enum { FLAGS_AT = 9, FLAG_SORTED = 2 };
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.rows_max = 2},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;
    uint8_t *bytes;

    queries_add_numbered(f, 10);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    bytes = (uint8_t *)arena_copy(f->arena, page.continuation).data;
    bytes[FLAGS_AT] |= FLAG_SORTED;
    request.continuation = slice_of(bytes, page.continuation.len);
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(query_run_documents(&plan, NULL, 0, &request, &page, &err), &err,
                 ERROR_BAD_REQUEST);
}

static void no_from_is_one_row_whatever_there_is(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_value(f, "42"), NULL);
    struct queries_how how = {0};

    plan.constant = true;
    queries_open(f, &(struct test_space_options){.partitions = 16});
    queries_are(queries_run(f, &plan, &how), "42");
}

static int64_t ticking_ms(void *context)
{
    return ++*(int64_t *)context;
}

/* The clock moves on with every look, so each page has to end early. */
static void a_page_that_takes_too_long_ends_early_and_goes_on(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call calls[] = {{QUERY_SUM, queries_path(f, "b"), 1},
                                           {QUERY_COUNT, queries_value(f, "1"), 2}};
    struct query_plan plan =
        queries_plan(query_array(&f->build,
                                 (const struct query_expression *[]){query_variable(&f->build, 1),
                                                                     query_variable(&f->build, 2)},
                                 2),
                     NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct slice continuation = SLICE_NONE;
    struct clock clock;
    size_t pages = 0;
    int64_t now = 0;
    struct error err;

    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    queries_add_numbered(f, 900);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    clock = f->test.clock;
    clock.monotonic_ms = ticking_ms;
    clock.context = &now;
    clock.wall_ms = ticking_ms;
    f->test.space.clock = &clock;
    do {
        struct query_request request = {.space = &f->test.space,
                                        .continuation = continuation,
                                        .limits = {.pause_ms = now + 2},
                                        .arena = f->arena,
                                        .row = queries_row,
                                        .self = &rows};
        struct query_page page;

        assert_ok(query_run(&plan, &request, &page, &err), &err);
        continuation = page.continuation;
        assert_true(++pages < 100);
    } while (continuation.len);
    assert_true(pages > 3);
    queries_are(&rows, "[404550,900]");
}

static void a_page_ends_when_it_has_cost_enough(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), queries_compare(f, "c", QUERY_EQUAL, "\"none\""));
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.cru_max = 300},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    size_t pages = 0;
    struct error err;

    queries_add_numbered(f, 600);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1]});
    queries_put(f);
    do {
        assert_ok(query_run(&plan, &request, &page, &err), &err);
        assert_true(page.charge_cru < 600);
        request.continuation = page.continuation;
        assert_true(++pages < 100);
    } while (page.continuation.len);
    assert_true(pages > 2);
    assert_int_equal(rows.count, 0);
}

static void an_exhausted_budget_refuses_a_page_or_cuts_it(void **state)
{
    struct queries *f = *state;
    CLEANUP(meters_free) struct meters *meters = NULL;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct budget_options options = {.rate_cru = 300};
    struct metered_call call = {0};
    struct query_request request = {.space = &f->test.space,
                                    .call = &call,
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;
    int64_t now = 0;
    struct clock clock;
    struct budget *spent;
    struct budget_grant grant;
    int64_t wait_ms;
    size_t seen;

    queries_add_numbered(f, 40);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    clock = f->test.clock;
    clock.monotonic_ms = ticking_ms;
    clock.context = &now;
    f->test.space.clock = &clock;
    clock.wall_ms = ticking_ms;
    request.meters = meters = meters_new(&clock);
    meters_set_own(meters, 3, &options);
    spent = meter_budget(meters_find(meters, 3));
    assert_ok(
        budget_admit(spent, &(struct budget_request){.price_cru = 1}, now, &grant, &wait_ms, &err),
        &err);
    budget_settle(spent, &grant, 100000, now); /* the third partition owes */
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    assert_true(page.continuation.len > 0);
    seen = rows.count;
    assert_true(seen > 0 && seen < 40);
    request.continuation = page.continuation;
    assert_ok(query_run(&plan, &request, &page, &err) || err.code == ERROR_TOO_MANY_REQUESTS, &err);
    if (err.code == ERROR_TOO_MANY_REQUESTS)
        assert_true(call.wait_ms > 0);
    now += 10000000;
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    queries_same_set(&rows, queries_expect(f, &plan));
}

static void a_cancelled_query_stops(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), queries_compare(f, "a", QUERY_EQUAL, "\"none\""));
    atomic_bool cancelled = true;
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.cancelled = &cancelled},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    queries_add_numbered(f, 2000);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1]});
    queries_put(f);
    for (int i = 0; i < 3; i++)
        plan.query.filter = query_or(&f->build, plan.query.filter, plan.query.filter);
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_TIMED_OUT);
}

static void expired_items_are_not_there(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), queries_compare(f, "a", QUERY_EQUAL, "1"));
    struct queries_how how = {0};

    queries_add_numbered(f, 20);
    queries_open(f, &(struct test_space_options){.default_ttl = 10});
    queries_put(f);
    assert_int_equal(queries_run(f, &plan, &how)->count, 4);
    f->test.wall_ms += 20000;
    assert_int_equal(queries_run(f, &plan, &how)->count, 0);
    plan.query.select = query_variable(&f->build, 1);
    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    queries_are(queries_run(f, &plan, &how), "0");
    plan.query.filter = NULL;
    queries_are(queries_run(f, &plan, &how), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_exhausted_budget_refuses_a_page_or_cuts_it,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(every_item_comes_once_in_pages_of_three, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(one_partition_gives_items_as_they_were_created,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(a_page_filled_exactly_has_no_continuation, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_full_page_is_the_last_if_no_partition_has_another_row,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(aggregates_see_every_partition, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(
            a_full_page_goes_on_if_its_time_is_up_before_the_next_row_is_found, queries_setup,
            queries_teardown),
        cmocka_unit_test_setup_teardown(a_fault_behind_a_full_page_is_told_to_the_next,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(lists_and_sets_are_in_the_order_of_creation, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_join_goes_on_within_an_item, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_continuation_of_another_query_is_refused, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(
            a_continuation_that_sorts_a_query_without_an_order_is_refused, queries_setup,
            queries_teardown),
        cmocka_unit_test_setup_teardown(no_from_is_one_row_whatever_there_is, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_page_that_takes_too_long_ends_early_and_goes_on,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(a_page_ends_when_it_has_cost_enough, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_query_stops, queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(expired_items_are_not_there, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
