#include "script/script.h"

#include "base/thread.h"
#include "support/check.h"
#include "support/script_bench.h"

#include <stdatomic.h>
#include <unistd.h>

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
    assert_ok(script_bench_run(&bench, empty, NULL), &bench.err); /* the one worker is started */
    bench.before = run_inside;
    bench.before_context = &bench;
    assert_ok(script_bench_run(&bench, "function () { __.readDocuments(__.getSelfLink()) }", NULL),
              &bench.err);
    assert_int_equal(bench.batches, 1);
}

/* What is waited for is others' scripts, not the machine. */
static void a_run_whose_worker_is_being_started_is_not_turned_away(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 1, .wait_ms = 1};

    script_bench_init(&bench, &options);
    assert_ok(script_bench_run(&bench, empty, NULL), &bench.err);
}

/* While an account holds what it may and more of it wait, another account's runs go through. */
struct holder {
    struct thread thread;
    struct script_bench *bench; /* its pool */
    struct script_bench own;
    _Atomic bool *release;
    atomic_uint *holding;
    bool fine;
};

static void hold(void *context)
{
    struct holder *holder = context;

    atomic_fetch_add(holder->holding, 1);
    while (!*holder->release)
        usleep(1000);
}

static void holder_run(void *context)
{
    struct holder *holder = context;
    struct script_request request = script_bench_make(
        &holder->own, SCRIPT_PROCEDURE, "function () { __.readDocuments(__.getSelfLink()) }");
    struct script_host host;
    struct script_result result;
    struct error err;

    holder->fine = script_run(holder->bench->pool, &request, script_bench_host(&holder->own, &host),
                              &result, &err);
}

static void one_account_cannot_hold_all_workers(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 4, .time_ms = 60000, .wait_ms = 60000};
    struct script_request request;
    struct holder holders[7];
    _Atomic bool release = false;
    atomic_uint holding = 0;

    script_bench_init(&bench, &options);
    for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
        holders[i] = (struct holder){.bench = &bench, .release = &release, .holding = &holding};
        holders[i].own = (struct script_bench){.arena = arena_new(),
                                               .domain = i % 2 ? "a" : "b",
                                               .before = hold,
                                               .before_context = &holders[i]};
        thread_start(&holders[i].thread, "holder", holder_run, &holders[i]);
    }
    while (atomic_load(&holding) < 3)
        usleep(1000);
    request = script_bench_make(&bench, SCRIPT_PROCEDURE, empty);
    request.who = (struct script_party){.account = SLICE("other"), .database = SLICE("o")};
    for (int i = 0; i < 20; i++)
        assert_ok(script_bench_request(&bench, &request), &bench.err);
    assert_int_equal(atomic_load(&holding), 3); /* three quarters, whoever waits */
    release = true;
    for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
        thread_join(&holders[i].thread);
        assert_true(holders[i].fine);
        arena_free(holders[i].own.arena);
    }
}

static void places_are_shared_too(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.places_max = 8};
    struct script_party one = {.account = SLICE("one"), .database = SLICE("d")},
                        other = {.account = SLICE("other"), .database = SLICE("e")};
    struct script_place *places[8], *last;
    struct error err;
    size_t count = 0;

    script_bench_init(&bench, &options);
    while (count < ARRAY_LEN(places) && script_place_take(bench.pool, &one, &places[count], &err))
        count++;
    assert_int_equal(count, 5);
    assert_int_equal(err.code, ERROR_BUSY);
    assert_ok(script_place_take(bench.pool, &other, &last, &err), &err);
    script_place_give(bench.pool, last);
    while (count)
        script_place_give(bench.pool, places[--count]);
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
        cmocka_unit_test(a_run_whose_worker_is_being_started_is_not_turned_away),
        cmocka_unit_test(many_threads_share_few_workers),
        cmocka_unit_test(one_account_cannot_hold_all_workers),
        cmocka_unit_test(places_are_shared_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
