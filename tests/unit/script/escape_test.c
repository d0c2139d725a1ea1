/* What a hostile script can do, seen from the server: nothing but cost its own request. The system
 * calls behind it are sandbox_test.c's. */
#include "script/script.h"

#include "support/check.h"
#include "support/script_bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A short life: no script here is meant to end by itself. */
static const struct script_options brief = {.time_ms = 300, .memory_bytes = 64 << 20};

/* The next run is served as if nothing had been. */
static void assert_alive(struct script_bench *bench)
{
    assert_ok(script_bench_run(bench, "function () { __.response.setBody('alive') }", NULL),
              &bench->err);
    assert_slice_equal(bench->result.response_body, SLICE("\"alive\""));
}

static void assert_ends_with(struct script_bench *bench, const char *source, enum error_code code)
{
    assert_fails(script_bench_run(bench, source, NULL), &bench->err, code);
    assert_alive(bench);
}

static void nothing_of_the_outside_has_a_name(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ok(script_bench_run(
                  &bench,
                  "function () { const found = []; for (const name of ['require', 'process', "
                  "'module', 'load', 'read', 'readFile', 'print', 'quit', 'gc', 'fetch', "
                  "'XMLHttpRequest', 'WebSocket', 'Worker', 'importScripts', 'setTimeout', "
                  "'setInterval', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'Deno', 'Bun', "
                  "'imports', 'window', 'document', 'native', '$vm', 'edenGC', 'runString'])"
                  " if (name in globalThis) found.push(name); __.response.setBody(found) }",
                  NULL),
              &bench.err);
    assert_slice_equal(bench.result.response_body, SLICE("[]"));
}

static void a_module_cannot_be_imported(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ends_with(&bench, "async function () { await import('/etc/passwd') }",
                     ERROR_SCRIPT_FAILED);
    assert_ends_with(&bench, "async function () { await import('file:///proc/self/mem') }",
                     ERROR_SCRIPT_FAILED);
}

static void the_natives_are_out_of_reach(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ok(script_bench_run(
                  &bench,
                  "function () { const seen = new Set(), found = []; const walk = (o, depth) => {"
                  " if (depth > 6 || o === null || (typeof o !== 'object' && typeof o !== "
                  "'function') || seen.has(o)) return; seen.add(o);"
                  " for (const k of Reflect.ownKeys(o)) { const d = "
                  "Reflect.getOwnPropertyDescriptor(o, k); for (const v of [d.value, d.get, d.set])"
                  " if (v) { if (k === 'enqueue' || k === 'answer') found.push(k); walk(v, depth + "
                  "1) } } walk(Reflect.getPrototypeOf(o), depth + 1) };"
                  " walk(globalThis, 0); walk(getContext(), 0); __.response.setBody(found) }",
                  NULL),
              &bench.err);
    assert_slice_equal(bench.result.response_body, SLICE("[]"));
}

static void a_loop_ends_at_the_time_limit(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, &brief);
    assert_ends_with(&bench, "function () { for (;;); }", ERROR_SCRIPT_TIMED_OUT);
    assert_ends_with(&bench, "function () { for (;;) try { for (;;); } catch (e) {} finally {} }",
                     ERROR_SCRIPT_TIMED_OUT);
    assert_ends_with(&bench, "function () { try { for (;;); } finally { for (;;); } }",
                     ERROR_SCRIPT_TIMED_OUT);
}

static void a_chain_of_promises_without_end_is_killed(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, &brief);
    assert_ends_with(&bench,
                     "function () { const again = () => Promise.resolve().then(again); again() }",
                     ERROR_SCRIPT_TIMED_OUT);
    assert_ends_with(&bench, "async function () { for (;;) await 0 }", ERROR_SCRIPT_TIMED_OUT);
}

static void what_the_engine_cannot_interrupt_is_killed(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, &brief);
    assert_ends_with(&bench,
                     "function () { /(a+)+$/.test('a'.repeat(60) + 'b') || (() => { for "
                     "(;;); })() }",
                     ERROR_SCRIPT_TIMED_OUT);
    assert_ends_with(&bench, "function () { for (;;) new Array(1e6).fill('x').sort().join() }",
                     ERROR_SCRIPT_TIMED_OUT);
}

static void operations_without_end_meet_the_time_limit(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, &brief);
    assert_ok(script_bench_run(&bench,
                               "function () { let n = 0; const next = () => { if "
                               "(!__.readDocuments(__.getSelfLink(), () => { n++; next() }))"
                               " __.response.setBody(n > 0) }; next() }",
                               NULL),
              &bench.err);
    assert_slice_equal(bench.result.response_body, SLICE("true"));
    assert_alive(&bench);
}

static void memory_is_bounded(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.time_ms = 20000, .memory_bytes = 64 << 20};

    script_bench_init(&bench, &options);
    assert_ends_with(&bench, "function () { const a = []; for (;;) a.push({x: a.length}) }",
                     ERROR_SCRIPT_CRASHED);
    assert_ends_with(&bench,
                     "function () { const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"
                     " }",
                     ERROR_SCRIPT_CRASHED);
}

/* The engine throws where it notices by itself, and is ended where it does not: both are fine. */
static void a_single_huge_piece_is_refused_or_ends_the_run(void **state UNUSED)
{
    static const char *const sources[] = {
        "function () { 'x'.repeat(2 ** 30).split('') }",
        "function () { new ArrayBuffer(2 ** 40) }",
        "function () { let s = 'x'; for (;;) s += s }",
        "function () { JSON.stringify(new Array(2 ** 26).fill(0)) }",
        "function () { new Array(2 ** 28).fill(0) }",
        "function () { 2n ** (2n ** 40n) }",
    };
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.time_ms = 4000, .memory_bytes = 64 << 20};

    script_bench_init(&bench, &options);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        assert_false(script_bench_run(&bench, sources[i], NULL));
        assert_true(bench.err.code == ERROR_SCRIPT_FAILED ||
                    bench.err.code == ERROR_SCRIPT_CRASHED ||
                    bench.err.code == ERROR_SCRIPT_TIMED_OUT);
        assert_alive(&bench);
    }
}

static void recursion_is_an_exception(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.time_ms = 30000};

    script_bench_init(&bench, &options);
    assert_ends_with(&bench, "function f() { f() }", ERROR_SCRIPT_FAILED);
    assert_ok(script_bench_run(&bench,
                               "function () { const f = () => f(); try { f() } catch (e) "
                               "{ __.response.setBody(e.name) } }",
                               NULL),
              &bench.err);
    assert_slice_equal(bench.result.response_body, SLICE("\"RangeError\""));
    assert_ends_with(&bench, "function () { JSON.parse('['.repeat(1e6)) }", ERROR_SCRIPT_FAILED);
}

static void a_body_nested_too_deep_is_refused(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ends_with(&bench,
                     "function () { let a = []; for (let i = 0; i < 1000; i++) a = [a]; "
                     "__.response.setBody(a) }",
                     ERROR_TOO_DEEP);
}

static void a_flood_of_log_is_cut(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ok(script_bench_run(&bench,
                               "function () { for (let i = 0; i < 1e5; i++) console.log('x'.repeat("
                               "100), i) }",
                               NULL),
              &bench.err);
    assert_true(bench.result.log_cut);
    assert_true(bench.result.log.len <= 16 * 1024);
    assert_alive(&bench);
}

static void an_operation_that_is_too_large_is_thrown_back(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench,
                                  "function () { __.createDocument(__.getSelfLink(), {id: 'a', x: "
                                  "'x'.repeat(5e6)}) }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 413);
    assert_fails(script_bench_run(&bench, "function () { __.readDocument('x'.repeat(1e5)) }", NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 413);
    assert_int_equal(bench.operations, 0);
    assert_alive(&bench);
}

/* One script, asked what it sees, after another has tried to change it. */
static void assert_unpoisoned(struct script_bench *bench)
{
    assert_ok(script_bench_run(bench,
                               "function () { __.response.setBody([[1, 2].map(x => x * 2), "
                               "typeof [].evil, typeof ({}).evil, typeof evil, JSON.stringify(1), "
                               "typeof getContext().evil, ''.evil === undefined]) }",
                               NULL),
              &bench->err);
    assert_slice_equal(bench->result.response_body,
                       SLICE("[[2,4],\"undefined\",\"undefined\",\"undefined\",\"1\","
                             "\"undefined\",true]"));
}

static void prototypes_poisoned_by_one_script_do_not_reach_another(void **state UNUSED)
{
    static const char *const poisons[] = {
        "function () { Array.prototype.evil = 1; Object.prototype.evil = 2; evil = 3; }",
        "function () { Array.prototype.map = () => 'stolen'; JSON.stringify = () => '\"stolen\"' }",
        "function () { 'use strict'; getContext().evil = 1 }",
        "function () { __.readDocument = null; getContext = null; __ = null; console.log = 0 }",
        "function () { Object.defineProperty(globalThis, 'evil', {value: 1}) }",
        "function () { Object.defineProperty(Array.prototype, 0, {set() {}, get: () => 1}) }",
        "function () { Object.freeze(Array.prototype); Promise.prototype.then = null }",
    };
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_unpoisoned(&bench);
    for (size_t i = 0; i < ARRAY_LEN(poisons); i++) {
        if (!script_bench_run(&bench, poisons[i], NULL))
            assert_true(bench.err.code == ERROR_SCRIPT_FAILED);
        assert_unpoisoned(&bench);
        bench.domain = "b";
        assert_unpoisoned(&bench);
        bench.domain = "a";
    }
}

static void what_a_run_leaves_in_the_global_object_is_gone_in_the_next(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    const char *const sources[] = {
        "function () { __.response.setBody(typeof left); left = 1 }",
        "function () { __.response.setBody(typeof left); globalThis.left = function () {} }",
        "function () { __.response.setBody(typeof [].left); Array.prototype.left = 1 }",
        "function () { __.response.setBody(typeof ({}).left); Object.prototype.left = 1 }",
        "function () { __.response.setBody(typeof left); (0, eval)('var left = 1') }",
        "function () { __.response.setBody(typeof left); getContext = null; __ = console = 0 }",
    };

    script_bench_init(&bench, NULL);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        for (int run = 0; run < 3; run++) {
            assert_ok(script_bench_run(&bench, sources[i], NULL), &bench.err);
            assert_slice_equal(bench.result.response_body, SLICE("\"undefined\""));
        }
    }
}

static void two_domains_never_share_a_process(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.workers_max = 2};
    struct script_statistics statistics;

    script_bench_init(&bench, &options);
    for (int i = 0; i < 3; i++) {
        bench.domain = "a";
        assert_alive(&bench);
        bench.domain = "b";
        assert_alive(&bench);
        bench.domain = "c";
        assert_alive(&bench);
    }
    script_pool_statistics(bench.pool, &statistics);
    assert_int_equal(statistics.runs, 9);
    assert_true(statistics.workers_started >= 3);
    assert_true(statistics.workers <= 2);
}

/* The state of a process of that name that is a child of ours: 'R', 'S', 'Z'; 0: it is none. */
static char worker_state(uint64_t pid)
{
    char path[64], text[512] = "", *at, state = 0;
    int parent = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%lu/stat", (unsigned long)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(text, sizeof text, file))
        text[0] = 0;
    fclose(file);
    at = strrchr(text, ')');
    if (!strstr(text, "(orrery-js)") || !at || sscanf(at + 2, "%c %d", &state, &parent) != 2)
        return 0;
    return parent == getpid() ? state : 0;
}

/* Sends a signal to all our workers. One that kills has done so when this returns. */
static void workers_signal(void *context)
{
    int sent = *(int *)context;
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    siginfo_t ended;
    uint64_t pid;

    assert_non_null(processes);
    while ((entry = readdir(processes))) {
        if (!slice_to_uint64(slice_of_text(entry->d_name), &pid) || !worker_state(pid))
            continue;
        kill((pid_t)pid, sent);
        /* A zombie's other threads may still be ending, and hold its socket open until then. */
        while (sent == SIGKILL && waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) != 0 &&
               errno == EINTR)
            ;
    }
    closedir(processes);
}

static void a_worker_killed_in_the_middle_costs_its_own_run(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    int signal_sent = SIGKILL;

    script_bench_init(&bench, NULL);
    bench.before = workers_signal;
    bench.before_context = &signal_sent;
    assert_fails(script_bench_run(&bench,
                                  "function () { __.readDocuments(__.getSelfLink(), () => "
                                  "__.readDocuments(__.getSelfLink())) }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_CRASHED);
    bench.before = NULL;
    assert_alive(&bench);
}

static void a_worker_killed_while_idle_costs_nobody_anything(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    int signal_sent = SIGKILL;

    script_bench_init(&bench, NULL);
    for (int i = 0; i < 3; i++) {
        assert_alive(&bench);
        workers_signal(&signal_sent);
    }
    assert_alive(&bench);
}

static void a_worker_that_stands_still_is_killed(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    int signal_sent = SIGSTOP;

    script_bench_init(&bench, &brief);
    bench.before = workers_signal;
    bench.before_context = &signal_sent;
    assert_fails(
        script_bench_run(&bench, "function () { __.readDocuments(__.getSelfLink()) }", NULL),
        &bench.err, ERROR_SCRIPT_TIMED_OUT);
}

static void no_descriptor_of_the_server_is_open_in_a_worker(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    int leaked = open("/dev/zero", O_RDONLY); /* without close-on-exec */
    size_t wrong = 0;
    DIR *processes;
    struct dirent *entry;

    assert_true(leaked >= 0);
    script_bench_init(&bench, NULL);
    assert_alive(&bench);
    processes = opendir("/proc");
    while ((entry = readdir(processes))) {
        char path[340], target[64] = "";

        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        if (!fgets(target, sizeof target, file))
            target[0] = 0;
        fclose(file);
        if (strcmp(target, "orrery-js\n") != 0)
            continue;
        for (int descriptor = 0; descriptor < 64; descriptor++) {
            char link[64] = "";

            snprintf(path, sizeof path, "/proc/%s/fd/%d", entry->d_name, descriptor);
            wrong += readlink(path, link, sizeof link - 1) > 0 && !strcmp(link, "/dev/zero");
        }
    }
    closedir(processes);
    close(leaked);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_the_outside_has_a_name),
        cmocka_unit_test(a_module_cannot_be_imported),
        cmocka_unit_test(the_natives_are_out_of_reach),
        cmocka_unit_test(a_loop_ends_at_the_time_limit),
        cmocka_unit_test(a_chain_of_promises_without_end_is_killed),
        cmocka_unit_test(what_the_engine_cannot_interrupt_is_killed),
        cmocka_unit_test(operations_without_end_meet_the_time_limit),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_single_huge_piece_is_refused_or_ends_the_run),
        cmocka_unit_test(recursion_is_an_exception),
        cmocka_unit_test(a_body_nested_too_deep_is_refused),
        cmocka_unit_test(a_flood_of_log_is_cut),
        cmocka_unit_test(an_operation_that_is_too_large_is_thrown_back),
        cmocka_unit_test(prototypes_poisoned_by_one_script_do_not_reach_another),
        cmocka_unit_test(what_a_run_leaves_in_the_global_object_is_gone_in_the_next),
        cmocka_unit_test(two_domains_never_share_a_process),
        cmocka_unit_test(a_worker_killed_in_the_middle_costs_its_own_run),
        cmocka_unit_test(a_worker_killed_while_idle_costs_nobody_anything),
        cmocka_unit_test(a_worker_that_stands_still_is_killed),
        cmocka_unit_test(no_descriptor_of_the_server_is_open_in_a_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
