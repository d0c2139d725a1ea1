#include "advise/workload.h"

#include "support/check.h"

static void lines_of_documents_become_items(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_item *items;
    struct error err;
    size_t count;
    int city;

    assert_ok(advise_workload_read_items(
                  workload,
                  SLICE("{\"id\":\"a\",\"address\":{\"city\":\"Ulm\"},\"_ts\":2}\n\n"
                        "{\"id\":\"b\",\"address\":{\"city\":\"Ulm\"},\"_ts\":1,"
                        "\"tags\":[1]}\r\n"),
                  &err),
              &err);
    advise_workload_finish(workload);
    items = advise_workload_items(workload, &count);
    assert_int_equal(count, 2);
    assert_int_equal(items[0].time_ms, 1000); /* by time */
    city = advise_workload_path(workload, SLICE("/address/city"));
    assert_true(city >= 0);
    assert_int_equal(items[0].values[city], items[1].values[city]);
    assert_int_equal(advise_workload_path(workload, SLICE("/_ts")), -1);
    assert_int_equal(
        advise_workload_paths(workload, &count)[advise_workload_path(workload, SLICE("/tags"))]
            .nested,
        1);
}

static void equal_numbers_of_other_types_are_one_value(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_item *items;
    struct error err;
    size_t count;

    assert_ok(
        advise_workload_read_items(workload, SLICE("{\"n\":1}\n{\"n\":1.0}\n{\"n\":\"1\"}"), &err),
        &err);
    advise_workload_finish(workload);
    items = advise_workload_items(workload, &count);
    assert_int_equal(items[0].values[0], items[1].values[0]);
    assert_int_not_equal(items[0].values[0], items[2].values[0]);
}

static void an_operation_says_what_was_named_and_what_changed(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    struct error err;
    size_t count;
    int status;

    assert_ok(advise_workload_read_operations(
                  workload,
                  SLICE("{\"t\":\"2018-08-09T10:00:00.5Z\",\"op\":\"replace\",\"ru\":10.29,"
                        "\"item\":{\"id\":\"a\",\"status\":\"done\"},\"before\":{\"id\":\"a\","
                        "\"status\":\"new\"},\"where\":{\"/id\":\"a\"}}\n"
                        "{\"t\":1533808801000,\"op\":\"query\",\"ranges\":[\"/price\"]}"),
                  &err),
              &err);
    advise_workload_finish(workload);
    operations = advise_workload_operations(workload, &count);
    assert_int_equal(count, 2);
    assert_int_equal(operations[0].time_ms, 1533808800500);
    assert_int_equal(operations[0].cru, 1029);
    assert_int_not_equal(operations[1].ranges, 0);
    status = advise_workload_path(workload, SLICE("/status"));
    assert_int_equal(advise_workload_paths(workload, &count)[status].changed, 1);
}

static void a_property_that_differs_between_two_looks_has_changed(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    struct error err;
    size_t count;

    assert_ok(
        advise_workload_read_operations(
            workload,
            SLICE("{\"t\":1,\"op\":\"create\",\"identity\":\"x\",\"item\":{\"a\":1,\"b\":1}}\n"
                  "{\"t\":2,\"op\":\"read\",\"identity\":\"x\",\"item\":{\"a\":1,\"b\":2}}\n"
                  "{\"t\":3,\"op\":\"create\",\"identity\":\"x\",\"item\":{\"a\":2,\"b\":2}}\n"
                  "{\"t\":4,\"op\":\"read\",\"identity\":\"y\",\"item\":{\"a\":3,\"b\":2}}"),
            &err),
        &err);
    advise_workload_finish(workload);
    assert_int_equal(advise_workload_paths(workload, &count)[0].changed, 0);
    assert_int_equal(advise_workload_paths(workload, &count)[1].changed, 1);
}

static void a_bad_line_is_named(void **state UNUSED)
{
    static const char *const lines[] = {
        "{\"t\":1,\"op\":\"read\",\"where\":{\"/id\":1}}\n{\"t\":1,\"op\":\"fly\"}",
        "\n{\"op\":\"query\"}",
        "\n{\"t\":\"soon\",\"op\":\"query\"}",
        "\n{\"t\":1,\"op\":\"query\",\"ru\":-1}",
        "\n{\"t\":1,\"op\":\"read\"}",
        "\n{\"t\":1,\"op\":\"query\",\"where\":[]}",
        "\n{\"t\":1,",
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
        struct error err;

        assert_false(advise_workload_read_operations(workload, slice_of_text(lines[i]), &err));
        assert_non_null(strstr(err.message, "line 2"));
    }
}

static void many_properties_and_items_stay_within_bounds(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    CLEANUP(buf_done) struct buf lines;
    struct error err;
    size_t count;

    buf_init(&lines, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ADVISE_ITEMS_MAX + 1000; i++)
        buf_printf(&lines, "{\"id\":%zu,\"p%zu\":1}\n", i, i % 500);
    assert_ok(advise_workload_read_items(workload, buf_slice(&lines), &err), &err);
    advise_workload_finish(workload);
    (void)advise_workload_items(workload, &count);
    assert_int_equal(count, ADVISE_ITEMS_MAX);
    assert_int_equal(advise_workload_items_seen(workload), ADVISE_ITEMS_MAX + 1000);
    (void)advise_workload_paths(workload, &count);
    assert_int_equal(count, ADVISE_PATHS_MAX);
}

/* A night, or a restart, says nothing of how busy the days are. */
static void times_in_which_nothing_came_are_cut_short(void **state UNUSED)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    struct error err;
    size_t count;

    assert_ok(advise_workload_read_operations(
                  workload,
                  SLICE("{\"t\":1000,\"op\":\"query\",\"failed\":true,\"due\":1500}\n"
                        "{\"t\":3000,\"op\":\"query\"}\n"
                        "{\"t\":90000000,\"op\":\"query\"}\n"
                        "{\"t\":90070000,\"op\":\"query\"}\n"),
                  &err),
              &err);
    advise_workload_finish(workload);
    advise_workload_close_gaps(workload, 60000);
    operations = advise_workload_operations(workload, &count);
    assert_int_equal(operations[3].time_ms, 90070000);
    assert_int_equal(operations[2].time_ms, 90010000);
    assert_int_equal(operations[1].time_ms, 89950000);
    assert_int_equal(operations[0].time_ms, 89948000);
    assert_int_equal(operations[0].due_ms, 89948500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_documents_become_items),
        cmocka_unit_test(equal_numbers_of_other_types_are_one_value),
        cmocka_unit_test(an_operation_says_what_was_named_and_what_changed),
        cmocka_unit_test(a_property_that_differs_between_two_looks_has_changed),
        cmocka_unit_test(a_bad_line_is_named),
        cmocka_unit_test(many_properties_and_items_stay_within_bounds),
        cmocka_unit_test(times_in_which_nothing_came_are_cut_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
