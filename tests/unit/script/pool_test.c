#include "script/script.h"

#include "base/thread.h"
#include "support/check.h"
#include "support/script_bench.h"

static const char empty[] = "function () {}";

static void nothing_is_started_before_the_first_run(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_statistics statistics;

    script_bench_init(&bench, NULL);
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers_started, 0);
    assert_ok(script_bench_run(&bench, empty, NULL), &bench.err);
    script_pool_statistics(bench.pool, &statistics);
    assert_true(statistics.workers_started >= 1);
    assert_int_equal(statistics.runs, 1);
}

static void a_program_that_is_not_there_is_named(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.program = "/nonexistent/orrery-js"};

    script_bench_init(&bench, &options);
    assert_fails(script_bench_run(&bench, empty, NULL), &bench.err, ERROR_SCRIPT_UNAVAILABLE);
    assert_int_equal(bench.err.status, 503);
    assert_contains(bench.err.message, "/nonexistent/orrery-js");
}

static void a_program_that_is_another_is_refused(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.program = "/bin/true"};

    script_bench_init(&bench, &options);
    assert_fails(script_bench_run(&bench, empty, NULL), &bench.err, ERROR_SCRIPT_UNAVAILABLE);
}

static void one_worker_serves_run_after_run(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 1};
    struct script_statistics statistics;

    script_bench_init(&bench, &options);
    for (int i = 0; i < 50; i++)
        assert_ok(script_bench_run(&bench, empty, NULL), &bench.err);
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers_started, 1);
    assert_int_equal(statistics.workers, 1);
    assert_int_equal(statistics.workers_busy, 0);
}

static void a_worker_is_replaced_after_its_calls(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 1, .calls_per_worker = 3};
    struct script_statistics statistics;

    script_bench_init(&bench, &options);
    for (int i = 0; i < 9; i++)
        assert_ok(script_bench_run(&bench, empty, NULL), &bench.err);
    script_pool_statistics(bench.pool, &statistics);
    assert_true(statistics.workers_started >= 3);
    assert_int_equal(statistics.workers_killed, 0);
}

static void a_worker_that_has_computed_for_long_is_replaced(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 1, .time_ms = 60000};
    struct script_statistics statistics;

    script_bench_init(&bench, &options);
    assert_ok(script_bench_run(&bench,
                               "function () { let n = 0; const end = Date.now() + 20000;"
                               " for (let i = 0; i < 2e7 && Date.now() < end; i++) n += i;"
                               " __.response.setBody(n > 0) }",
                               NULL),
              &bench.err);
    assert_ok(script_bench_run(&bench, empty, NULL), &bench.err);
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.workers_started, 2);
}

/* Runs a script within a run's batch, when the only worker is taken. */
static void run_inside(void *context)
{
    struct script_bench *outer = context;
    struct script_request request = script_bench_make(outer, SCRIPT_PROCEDURE, empty);
    struct script_host host = {0};
    struct script_result result;
    struct error err = {0};

    assert_fails(script_run(outer->pool, &request, &host, &result, &err), &err, ERROR_BUSY);
}

static void where_all_are_busy_the_wait_is_bounded(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 1, .wait_ms = 400};

    script_bench_init(&bench, &options);
    while (!script_bench_run(&bench, empty, NULL)) /* until the one worker has been started */
        assert_int_equal(bench.err.code, ERROR_BUSY);
    bench.before = run_inside;
    bench.before_context = &bench;
    assert_ok(script_bench_run(&bench, "function () { __.readDocuments(__.getSelfLink()) }", NULL),
              &bench.err);
    assert_int_equal(bench.batches, 1);
}

struct runner {
    struct thread thread;
    struct script_pool *pool;
    unsigned number, good;
};

static void runner_run(void *context)
{
    struct runner *runner = context;
    char domain[2] = {(char)('a' + runner->number % 3), 0};

    for (int i = 0; i < 40; i++) {
        CLEANUP(script_bench_done) struct script_bench bench = {.arena = arena_new()};
        struct script_request request;

        bench.pool = NULL;
        bench.domain = domain;
        request = script_bench_make(&bench, SCRIPT_PROCEDURE,
                                    "function (n) { __.createDocument(__.getSelfLink(), {id: 'x', "
                                    "n}, (e, d) => __.response.setBody(d.n)) }");
        request.arguments = arena_printf(bench.arena, "[%u]", runner->number * 1000 + i);
        bench.pool = runner->pool;
        if (script_bench_request(&bench, &request) &&
            slice_equal(bench.result.response_body,
                        arena_printf(bench.arena, "%u", runner->number * 1000 + i)))
            runner->good++;
        bench.pool = NULL;
    }
}

static void many_threads_share_few_workers(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 3};
    struct runner runners[6];
    struct script_statistics statistics;

    script_bench_init(&bench, &options);
    for (unsigned i = 0; i < ARRAY_LEN(runners); i++) {
        runners[i] = (struct runner){.pool = bench.pool, .number = i};
        thread_start(&runners[i].thread, "runner", runner_run, &runners[i]);
    }
    for (unsigned i = 0; i < ARRAY_LEN(runners); i++) {
        thread_join(&runners[i].thread);
        assert_int_equal(runners[i].good, 40);
    }
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.runs, 240);
    assert_true(statistics.workers <= 3);
    assert_int_equal(statistics.workers_busy, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_started_before_the_first_run),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(a_program_that_is_another_is_refused),
        cmocka_unit_test(one_worker_serves_run_after_run),
        cmocka_unit_test(a_worker_is_replaced_after_its_calls),
        cmocka_unit_test(a_worker_that_has_computed_for_long_is_replaced),
        cmocka_unit_test(where_all_are_busy_the_wait_is_bounded),
        cmocka_unit_test(many_threads_share_few_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
