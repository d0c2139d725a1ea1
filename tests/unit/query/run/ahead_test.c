#include "support/queries.h"

/* A host of three functions: "twice" of a number, "odd", and "picky", which fails for 7. */
struct host {
    size_t ones, batches, rows;
};

static bool answer(struct slice name, const struct document_value *argument,
                   struct document_value *ret_value, struct error *err)
{
    int64_t number = -1;

    if (argument->type == DOCUMENT_UNDEFINED || !document_to_int64(argument, &number)) {
        *ret_value = document_undefined();
        return true;
    }
    if (slice_equal(name, SLICE("picky")) && number == 7)
        return error_set(err, ERROR_SCRIPT_FAILED, "not seven");
    if (slice_equal(name, SLICE("twice")))
        *ret_value = document_int64(2 * number);
    else
        *ret_value = document_bool(slice_equal(name, SLICE("odd")) ? number % 2 != 0 : true);
    return true;
}

static bool call_one(void *self, struct slice name, const struct document_value *arguments,
                     size_t count, struct query_context *context UNUSED,
                     struct document_value *ret_value, struct error *err)
{
    ((struct host *)self)->ones++;
    assert_int_equal(count, 1);
    return answer(name, arguments, ret_value, err);
}

static bool call_many(void *self, struct slice name, const struct document_value *arguments,
                      size_t width, size_t rows, struct query_context *context UNUSED,
                      struct document_value *ret_values, bool *ret_made, struct error *err UNUSED)
{
    struct host *host = self;
    struct error ignored;

    host->batches++;
    host->rows += rows;
    assert_int_equal(width, 1);
    *ret_made = true;
    for (size_t i = 0; i < rows && *ret_made; i++)
        *ret_made = answer(name, &arguments[i], &ret_values[i], &ignored);
    return true;
}

static struct query_udf_host ahead(struct host *host)
{
    return (struct query_udf_host){.call = call_one, .self = host, .call_many = call_many};
}

static struct query_udf_host one_by_one(struct host *host)
{
    return (struct query_udf_host){.call = call_one, .self = host};
}

static const struct query_expression *udf(struct queries *f, const char *name,
                                          const struct query_expression *argument)
{
    return query_udf_call(&f->build, slice_of_text(name), &argument, 1);
}

/* Ahead and one by one give the same, everywhere. */
static void check_both(struct queries *f, void *plan)
{
    struct host fast = {0}, slow = {0};
    struct queries_how ahead_how = {.udf = ahead(&fast)}, slow_how = {.udf = one_by_one(&slow)};

    queries_same(queries_run(f, plan, &ahead_how), queries_run(f, plan, &slow_how));
    assert_int_equal(fast.ones, 0);
    assert_true(fast.batches < slow.ones || slow.ones < 10);
}

static void calls_made_ahead_change_no_result(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(udf(f, "twice", queries_path(f, "a")), udf(f, "odd", queries_path(f, "a")));

    queries_add_numbered(f, 60);
    queries_add(f, "{\"id\":\"without\",\"pk\":\"p1\"}");
    queries_everywhere(f, check_both, &plan);
    plan.query.filter = query_and(&f->build, queries_compare(f, "b", QUERY_LESS, "40"),
                                  udf(f, "odd", udf(f, "twice", queries_path(f, "a"))));
    queries_everywhere(f, check_both, &plan);
    plan.query.filter = query_or(&f->build, queries_compare(f, "a", QUERY_LESS, "3"),
                                 udf(f, "odd", queries_path(f, "b")));
    queries_everywhere(f, check_both, &plan);
}

static void aggregates_orders_and_joins_find_their_calls(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call sum = {QUERY_SUM, udf(f, "twice", queries_path(f, "a")), 1};
    struct query_source source = {QUERY_SOURCE_EACH, queries_path(f, "tags"), NULL, 1};
    struct query_order order = {queries_path(f, "a"), true};
    struct query_plan plan =
        queries_plan(query_variable(&f->build, 1), udf(f, "odd", queries_path(f, "a")));

    queries_add_numbered(f, 60);
    plan.query.aggregates = &sum;
    plan.query.aggregate_count = 1;
    queries_everywhere(f, check_both, &plan);
    plan = queries_plan(udf(f, "twice", queries_path(f, "b")), NULL);
    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_everywhere(f, check_both, &plan);
    plan = queries_plan(udf(f, "twice", queries_path(f, "a")), NULL);
    plan.query.sources = &source;
    plan.query.source_count = 1;
    queries_everywhere(f, check_both, &plan);
}

static void rows_turned_away_are_not_asked_about(void **state)
{
    struct queries *f = *state;
    struct host host = {0};
    struct queries_how how = {.page = 1000, .udf = ahead(&host)};
    struct query_plan plan = queries_plan(
        udf(f, "twice", queries_path(f, "a")),
        query_and(&f->build, udf(f, "odd", queries_path(f, "n")),
                  query_compare(&f->build, QUERY_EQUAL,
                                query_binary(&f->build, QUERY_MODULO, queries_path(f, "n"),
                                             queries_value(f, "10")),
                                queries_value(f, "1"))));

    for (int i = 0; i < 200; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":\"p\",\"n\":%d,\"a\":%d}", i, i, i);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    assert_int_equal(queries_run(f, &plan, &how)->count, 20);
    assert_int_equal(host.ones, 0);
    assert_int_equal(host.rows, 40); /* 20 by the filter, the same 20 by the select */
}

static void a_call_that_fails_ahead_counts_only_where_its_row_asks(void **state)
{
    struct queries *f = *state;
    struct host host = {0};
    struct queries_how how = {.page = 1000, .udf = ahead(&host)};
    struct query_plan plan = queries_plan(
        query_conditional(&f->build, queries_compare(f, "n", QUERY_EQUAL, "7"),
                          queries_value(f, "0"), udf(f, "picky", queries_path(f, "n"))),
        NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.rows_max = 100},
                                    .udf = ahead(&host),
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    for (int i = 0; i < 12; i++) {
        char json[80];

        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":\"p\",\"n\":%d}", i, i);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    assert_int_equal(queries_run(f, &plan, &how)->count, 12);
    assert_int_equal(host.ones, 11);
    plan.query.select = udf(f, "picky", queries_path(f, "n"));
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_SCRIPT_FAILED);
    assert_int_equal(rows.count, 7); /* those before it were given */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_made_ahead_change_no_result, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(aggregates_orders_and_joins_find_their_calls, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(rows_turned_away_are_not_asked_about, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_call_that_fails_ahead_counts_only_where_its_row_asks,
                                        queries_setup, queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
