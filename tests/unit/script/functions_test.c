#include "script/script.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/script_bench.h"

static const struct script_party who = {.account = SLICE("acme"), .database = SLICE("a")};

static const struct script_function tax = {SLICE("k1"), SLICE("tax"),
                                           SLICE("function (x) { return x * 2 }")};

/* Calls a function of that source over rows, and gives the results as JSON. */
static struct slice results_of(struct script_bench *bench, const char *source,
                               const struct document_value *values, size_t width, size_t rows)
{
    struct script_function function = {slice_of_text(source), SLICE("f"), slice_of_text(source)};
    CLEANUP(script_functions_free)
    struct script_functions *functions = script_functions_new(bench->pool, &who, &function, 1);
    struct document_value *results = ARENA_ARRAY(bench->arena, struct document_value, rows);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    bench->err = (struct error){0};
    if (!script_functions_call(functions, 0, values, width, rows, 0, bench->arena, results,
                               &bench->err))
        return SLICE("failed");
    for (size_t i = 0; i < rows; i++) {
        if (i)
            BUF_APPEND(&text, " ");
        if (results[i].type == DOCUMENT_UNDEFINED)
            BUF_APPEND(&text, "undefined");
        else
            document_json_write_value(&results[i], &text);
    }
    return arena_copy(bench->arena, buf_slice(&text));
}

static void a_function_is_called_once_for_each_row(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct document_value values[] = {document_int32(1), document_int32(2), document_double(2.5)};

    script_bench_init(&bench, NULL);
    assert_slice_equal(results_of(&bench, "function (x) { return x * 2 }", values, 1, 3),
                       SLICE("2 4 5"));
}

static void arguments_and_results_may_be_of_any_kind(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct document_value values[] = {
        document_undefined(), document_null(),      document_string(SLICE("\xc3\xa4")),
        document_bool(true),  document_undefined(), document_undefined(),
    };

    script_bench_init(&bench, NULL);
    values[5] = value_of(bench.arena, "{\"a\":[1,{\"b\":null}]}");
    assert_slice_equal(
        results_of(&bench, "function (x) { return x }", values, 1, 6),
        SLICE("undefined null \"\xc3\xa4\" true undefined {\"a\":[1,{\"b\":null}]}"));
    assert_slice_equal(
        results_of(&bench, "function (x, y) { return [typeof x, typeof y, arguments.length] }",
                   values, 2, 3),
        SLICE("[\"undefined\",\"object\",2] [\"string\",\"boolean\",2] "
              "[\"undefined\",\"object\",2]"));
    assert_slice_equal(results_of(&bench, "() => () => 1", values, 1, 1), SLICE("undefined"));
    assert_slice_equal(results_of(&bench, "() => NaN", values, 1, 1), SLICE("null"));
    assert_slice_equal(results_of(&bench, "() => 7", values, 0, 2), SLICE("7 7"));
}

static void functions_see_neither_context_nor_collection(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_slice_equal(
        results_of(&bench, "() => [typeof getContext, typeof __, typeof ErrorCodes]", NULL, 0, 1),
        SLICE("[\"undefined\",\"undefined\",\"undefined\"]"));
}

static void a_row_that_throws_fails_the_call_by_name(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct document_value values[] = {document_int32(1), document_null()};

    script_bench_init(&bench, NULL);
    assert_slice_equal(results_of(&bench, "function (x) { return x.y.z }", values, 1, 2),
                       SLICE("failed"));
    assert_int_equal(bench.err.code, ERROR_SCRIPT_FAILED);
    assert_contains(bench.err.message, "\"f\"");
    assert_contains(bench.err.message, "TypeError");
    assert_slice_equal(results_of(&bench, "async (x) => x", values, 1, 2), SLICE("failed"));
    assert_contains(bench.err.message, "asynchronous");
    assert_slice_equal(results_of(&bench, "(x) => x", values, 1, 2), SLICE("1 null"));
}

static void one_worker_serves_all_calls_until_it_rests(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct document_value value = document_int32(21), result;
    struct script_statistics statistics;
    CLEANUP(script_functions_free) struct script_functions *functions = NULL;
    size_t number = 9;

    script_bench_init(&bench, NULL);
    functions = script_functions_new(bench.pool, &who, &tax, 1);
    assert_true(script_functions_find(functions, SLICE("tax"), &number));
    assert_false(script_functions_find(functions, SLICE("Tax"), &number));
    assert_int_equal(number, 0);
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers, 0);
    for (int i = 0; i < 5; i++) {
        assert_ok(
            script_functions_call(functions, 0, &value, 1, 1, 0, bench.arena, &result, &bench.err),
            &bench.err);
        assert_int_equal(result.int32, 42);
    }
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers_busy, 1);
    script_functions_rest(functions);
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers_busy, 0);
    script_functions_free(TAKE(functions));
}

static void a_function_that_never_returns_costs_its_query_alone(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.time_ms = 300, .output_bytes = 10000};
    struct document_value value = document_int32(1);

    script_bench_init(&bench, &options);
    assert_slice_equal(results_of(&bench, "() => { for (;;); }", &value, 1, 1), SLICE("failed"));
    assert_int_equal(bench.err.code, ERROR_SCRIPT_TIMED_OUT);
    assert_slice_equal(results_of(&bench, "() => 'x'.repeat(20000)", &value, 1, 1),
                       SLICE("failed"));
    assert_int_equal(bench.err.code, ERROR_SCRIPT_LIMIT);
    assert_slice_equal(results_of(&bench, "x => x + 1", &value, 1, 1), SLICE("2"));
}

static void a_whole_batch_of_rows_travels_at_once(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct document_value *values, *results;
    CLEANUP(script_functions_free) struct script_functions *functions = NULL;

    script_bench_init(&bench, NULL);
    values = ARENA_ARRAY(bench.arena, struct document_value, SCRIPT_ROWS_MAX);
    results = ARENA_ARRAY(bench.arena, struct document_value, SCRIPT_ROWS_MAX);
    for (int i = 0; i < SCRIPT_ROWS_MAX; i++)
        values[i] = document_int32(i);
    functions = script_functions_new(bench.pool, &who, &tax, 1);
    assert_ok(script_functions_call(functions, 0, values, 1, SCRIPT_ROWS_MAX, 0, bench.arena,
                                    results, &bench.err),
              &bench.err);
    for (int i = 0; i < SCRIPT_ROWS_MAX; i++)
        assert_int_equal(results[i].int32, 2 * i);
    assert_fails(script_functions_call(functions, 0, values, SCRIPT_ARGUMENTS_MAX + 1, 1, 0,
                                       bench.arena, results, &bench.err),
                 &bench.err, ERROR_SCRIPT_LIMIT);
    script_functions_free(TAKE(functions));
}

static void a_function_can_be_added_between_two_calls(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    CLEANUP(script_functions_free) struct script_functions *functions = NULL;
    const struct document_value value = document_int32(3);
    struct document_value result;

    script_bench_init(&bench, NULL);
    functions = script_functions_new(bench.pool, &who, NULL, 0);
    for (size_t i = 0; i < 6; i++) {
        struct slice source = arena_printf(bench.arena, "function (x) { return x + %zu }", i);
        struct script_function added = {source, source, source};
        int64_t number;

        assert_int_equal(script_functions_add(functions, &added), i);
        assert_true(
            script_functions_call(functions, i, &value, 1, 1, 0, bench.arena, &result, &bench.err));
        assert_true(document_to_int64(&result, &number));
        assert_int_equal(number, 3 + (int64_t)i);
    }
    assert_true(
        script_functions_call(functions, 0, &value, 1, 1, 0, bench.arena, &result, &bench.err));
    assert_int_equal(result.int32, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_can_be_added_between_two_calls),
        cmocka_unit_test(a_function_is_called_once_for_each_row),
        cmocka_unit_test(arguments_and_results_may_be_of_any_kind),
        cmocka_unit_test(functions_see_neither_context_nor_collection),
        cmocka_unit_test(a_row_that_throws_fails_the_call_by_name),
        cmocka_unit_test(one_worker_serves_all_calls_until_it_rests),
        cmocka_unit_test(a_function_that_never_returns_costs_its_query_alone),
        cmocka_unit_test(a_whole_batch_of_rows_travels_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
