/* Transactions over several partitions with every call of the store cut: the nth read fails, the
 * nth write is not done, or is done and nobody is told. Then the process starts again from the same
 * store. Nothing is half there, nothing that was acknowledged is lost, and what the node tells is
 * what there is. */
#include "fault/transfers.h"
#include "support/check.h"
#include "support/fault_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 6, CALLS_MAX = 2000, CLIENT = 3 };

/* A process on a store that outlives it. */
struct process {
    struct engine *store;
    struct test_space test;
};

static struct engine *store_open(void)
{
    struct engine *store;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &store, &err), &err);
    return store;
}

static void process_start(struct process *process, struct engine *store)
{
    process->store = store;
    test_space_init(&process->test, fault_engine_around(store), &transfer_options);
}

static void process_end(struct process *process)
{
    test_space_done(&process->test);
}

/* Runs batches from `from` on; returns the number of the first that failed, or BATCHES. */
static uint32_t batches_run(struct process *process, uint32_t from, struct error *ret_err)
{
    uint32_t n = from;

    while (n < BATCHES && transfer_run(&process->test, CLIENT, n, ret_err))
        n++;
    return n;
}

/* Starts again, expects just these batches, and does the others. */
static void recover(struct engine *store, uint32_t expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct process process;
    struct transfer *transfers;
    struct error err;
    size_t count;

    process_start(&process, store);
    transfers = transfers_check(&process.test, arena, &count);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(transfers[i].n, i);
    assert_int_equal(batches_run(&process, expected, &err), BATCHES);
    (void)transfers_check(&process.test, arena, &count);
    assert_int_equal(count, BATCHES);
    process_end(&process);
    engine_close(store);
}

/* The nth call of a kind is spoilt. False: there are not so many. */
static bool cut_at(enum fault_calls calls, unsigned nth, enum fault_outcome outcome,
                   enum error_code code)
{
    struct engine *store = store_open();
    struct process process;
    struct error err;
    uint32_t done;

    process_start(&process, store);
    fault_engine_fail_nth(process.test.engine, calls, nth, code, outcome);
    done = batches_run(&process, 0, &err);
    if (done == BATCHES) {
        process_end(&process);
        engine_close(store);
        return false;
    }
    if (calls == FAULT_WRITES)
        assert_int_equal(err.code, code);
    /* As long as it is not known what became of a write, nothing may follow it. */
    if (calls == FAULT_WRITES && code == ERROR_STORE_IO)
        assert_false(transfer_run(&process.test, CLIENT, done, &err));
    process_end(&process);
    recover(store, done + (calls == FAULT_WRITES && outcome == FAULT_WRITTEN));
    return true;
}

static void cut_everywhere(enum fault_calls calls, enum fault_outcome outcome, enum error_code code,
                           unsigned at_least)
{
    unsigned nth = 1;

    while (nth < CALLS_MAX && cut_at(calls, nth, outcome, code))
        nth++;
    print_message("# cut at %u calls\n", nth - 1);
    assert_true(nth > at_least && nth < CALLS_MAX);
}

static void a_write_that_is_not_done_leaves_nothing_behind(void **state UNUSED)
{
    cut_everywhere(FAULT_WRITES, FAULT_NOT_WRITTEN, ERROR_STORE_IO, BATCHES);
}

static void a_write_whose_answer_is_lost_is_there_whole(void **state UNUSED)
{
    cut_everywhere(FAULT_WRITES, FAULT_WRITTEN, ERROR_STORE_IO, BATCHES);
}

static void a_full_store_refuses_whole_transactions(void **state UNUSED)
{
    cut_everywhere(FAULT_WRITES, FAULT_NOT_WRITTEN, ERROR_STORE_FULL, BATCHES);
}

static void a_read_that_fails_leaves_nothing_behind(void **state UNUSED)
{
    cut_everywhere(FAULT_READS, FAULT_NOT_WRITTEN, ERROR_STORE_IO, BATCHES * TRANSFER_PARTITIONS);
}

/* A store that does what none may. This fails: a_torn_write_is_noticed runs it. */
static void a_torn_write(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine *store = store_open();
    struct process process;
    struct error err;
    size_t count;

    process_start(&process, store);
    assert_true(transfer_run(&process.test, CLIENT, 0, &err));
    fault_engine_fail_nth(process.test.engine, FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_TORN);
    assert_false(transfer_run(&process.test, CLIENT, 1, &err));
    process_end(&process);
    process_start(&process, store);
    (void)transfers_check(&process.test, arena, &count);
    process_end(&process);
    engine_close(store);
}

static const char *program;

static void a_torn_write_is_noticed(void **state UNUSED)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        assert_non_null(freopen("/dev/null", "w", stdout));
        assert_non_null(freopen("/dev/null", "w", stderr));
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* of what a failed test leaves */
        execl(program, program, "torn", (char *)NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* A store that was full and has room again, without a start in between. */
static void after_a_full_store_it_goes_on(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine *store = store_open();
    struct process process;
    struct error err;
    size_t count;

    process_start(&process, store);
    assert_true(transfer_run(&process.test, CLIENT, 0, &err));
    fault_engine_fill(process.test.engine, true);
    assert_false(transfer_run(&process.test, CLIENT, 1, &err));
    assert_int_equal(err.code, ERROR_STORE_FULL);
    fault_engine_fill(process.test.engine, false);
    assert_int_equal(batches_run(&process, 1, &err), BATCHES);
    (void)transfers_check(&process.test, arena, &count);
    assert_int_equal(count, BATCHES);
    process_end(&process);
    engine_close(store);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest torn[] = {cmocka_unit_test(a_torn_write)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_is_not_done_leaves_nothing_behind),
        cmocka_unit_test(a_write_whose_answer_is_lost_is_there_whole),
        cmocka_unit_test(a_full_store_refuses_whole_transactions),
        cmocka_unit_test(a_read_that_fails_leaves_nothing_behind),
        cmocka_unit_test(after_a_full_store_it_goes_on),
        cmocka_unit_test(a_torn_write_is_noticed),
    };

    program = argv[0];
    if (argc > 1)
        _exit(cmocka_run_group_tests_name("torn", torn, NULL, NULL)); /* threads are left */
    return cmocka_run_group_tests_name("transactions", tests, NULL, NULL);
}
