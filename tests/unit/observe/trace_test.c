#include "observe/trace.h"

#include "support/check.h"

static void a_traceparent_is_read_as_w3c_has_it(void **state UNUSED)
{
    struct trace_parent parent;

    assert_true(trace_parent_read(SLICE("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                                  &parent));
    assert_string_equal(parent.trace, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(parent.span, "b7ad6b7169203331");
    assert_true(parent.sampled);
    assert_true(trace_parent_read(SLICE("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"),
                                  &parent));
    assert_false(parent.sampled);
}

static void what_is_none_is_not_taken(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-zz",
    };
    struct trace_parent parent;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(trace_parent_read(slice_of_text(wrong[i]), &parent));
}

static void an_endpoint_that_is_no_url_is_refused(void **state UNUSED)
{
    struct trace *trace;
    struct error err;

    assert_fails(trace_new(&(struct trace_options){.endpoint = "collector:4318"}, &trace, &err),
                 &err, ERROR_CONFIGURATION);
}

/* Nobody listens there: spans are lost, and nobody waits. */
static void a_collector_that_is_away_costs_spans_and_nothing_else(void **state UNUSED)
{
    struct observed_request request = {.front = "rest", .status = 200};
    struct trace_figures figures;
    struct trace *trace;
    struct error err;

    assert_ok(trace_new(&(struct trace_options){.endpoint = "http://127.0.0.1:1/v1/traces",
                                                .per_million = 1000000,
                                                .waiting_bytes_max = 2000,
                                                .pause_ms = 3600000,
                                                .timeout_ms = 1000},
                        &trace, &err),
              &err);
    for (int i = 0; i < 100; i++)
        trace_tell(trace, &request);
    trace_figures(trace, &figures);
    assert_true(figures.lost > 0 && figures.lost < 100);
    trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read_as_w3c_has_it),
        cmocka_unit_test(what_is_none_is_not_taken),
        cmocka_unit_test(an_endpoint_that_is_no_url_is_refused),
        cmocka_unit_test(a_collector_that_is_away_costs_spans_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
