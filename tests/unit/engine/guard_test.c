/* The guard before an engine that fails, hangs and comes back; time is turned by hand. */
#include "engine/guard.h"

#include "base/thread.h"
#include "support/check.h"
#include "support/fault_engine.h"
#include "support/scratch.h"

#include <sched.h>
#include <stdatomic.h>

struct bench {
    struct engine *fault; /* owned by the guard */
    struct engine *guard;
    struct clock clock;
    atomic_int_fast64_t now_ms;
    unsigned rejoined, opened;
    bool refuse_rejoin, refuse_open;
    struct arena *arena;
};

static int64_t now(void *context)
{
    return atomic_load(&((struct bench *)context)->now_ms);
}

static struct engine *store_new(struct bench *bench)
{
    struct engine *memory;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &memory, &err), &err);
    bench->fault = fault_engine_new(memory);
    return bench->fault;
}

/* Another store each time, as if the directory had been given to somebody else. */
static bool store_open(void *context, struct slice url UNUSED,
                       const struct engine_options *options UNUSED, struct engine **ret_engine,
                       struct error *err)
{
    struct bench *bench = context;

    if (bench->refuse_open)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "nobody is there");
    *ret_engine = store_new(bench);
    bench->opened++;
    return true;
}

static bool on_rejoin(void *context, struct error *err)
{
    struct bench *bench = context;
    struct engine_value value;

    /* the node is open to this thread already */
    if (!engine_get(bench->guard, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, err))
        return false;
    bench->rejoined++;
    return !bench->refuse_rejoin || error_set(err, ERROR_BUSY, "not yet");
}

static struct engine_guard_options options_of(struct bench *bench)
{
    return (struct engine_guard_options){.name = "west",
                                         .inner = {.clock = &bench->clock},
                                         .unpaused_partition = 1,
                                         .probe_ms = 10,
                                         .hang_ms = 50,
                                         .suspect_ms = 20,
                                         .suspect_calls = 2,
                                         .open = store_open,
                                         .open_context = bench};
}

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct engine_guard_options options;
    struct error err;

    bench->arena = arena_new();
    bench->now_ms = 1000;
    bench->clock = (struct clock){.wall_ms = now, .monotonic_ms = now, .context = bench};
    options = options_of(bench);
    bench->guard = engine_guard_around(&options, store_new(bench));
    assert_ok(engine_partition_create(bench->guard, 1, 1, &err), &err);
    assert_ok(engine_partition_create(bench->guard, 7, 1, &err), &err);
    engine_guard_keep(bench->guard, &(struct engine_guard_hooks){on_rejoin, bench}, true);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    engine_close(bench->guard);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

static bool get(struct bench *bench, uint32_t partition, struct error *err)
{
    struct engine_value value;

    return engine_get(bench->guard, NULL, partition, SLICE("k"), ENGINE_READ_ANY, bench->arena,
                      &value, err);
}

static bool put(struct bench *bench, uint32_t partition, struct error *err)
{
    struct engine_op op = {ENGINE_PUT, SLICE("k"), SLICE("v")};
    struct engine_section section = {.partition = partition, .epoch = 1, .ops = &op, .count = 1};

    return engine_write(bench->guard, &section, 1, err);
}

static struct engine_guard_status status_of(const struct bench *bench)
{
    struct engine_guard_status status;

    assert_true(engine_guard_status(bench->guard, &status));
    return status;
}

static void wait_ms(struct bench *bench, int64_t ms)
{
    atomic_fetch_add(&bench->now_ms, ms);
}

static void a_node_that_serves_is_handed_every_call(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_ok(put(bench, 7, &err), &err);
    assert_ok(get(bench, 7, &err), &err);
    engine_guard_tend(bench->guard);
    assert_true(engine_serves(bench->guard, &err));
    assert_int_equal(status_of(bench).inside, 0);
}

static void a_node_that_gives_no_sign_of_life_turns_calls_away_and_names_the_partition(void **state)
{
    struct bench *bench = *state;
    struct error err;
    unsigned before;

    fault_engine_unplug(bench->fault, true);
    engine_guard_tend(bench->guard);
    before = fault_engine_count(bench->fault, FAULT_ALL);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "node \"west\" is down");
    assert_contains(err.message, "partition 7 does not serve");
    assert_int_equal(err.status, 503);
    assert_fails(put(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_fails(engine_serves(bench->guard, &err), &err, ERROR_NODE_DOWN);
    assert_int_equal(fault_engine_count(bench->fault, FAULT_ALL), before);
    assert_int_equal(status_of(bench).downs, 1);
}

static void
a_call_that_cannot_reach_the_store_is_told_so_before_the_node_is_known_to_be_down(void **state)
{
    struct bench *bench = *state;
    struct error err;

    fault_engine_unplug(bench->fault, true);
    assert_fails(put(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "partition 7");
    assert_int_equal(status_of(bench).state, ENGINE_GUARD_SERVING);
    engine_guard_tend(bench->guard);
    assert_int_equal(status_of(bench).state, ENGINE_GUARD_DOWN);
}

static void a_node_rejoins_after_whoever_keeps_it_has_put_things_in_order(void **state)
{
    struct bench *bench = *state;
    struct error err;

    fault_engine_unplug(bench->fault, true);
    engine_guard_tend(bench->guard);
    fault_engine_unplug(bench->fault, false);
    engine_guard_tend(bench->guard); /* not due yet */
    assert_int_equal(bench->rejoined, 0);
    bench->refuse_rejoin = true;
    wait_ms(bench, 10);
    engine_guard_tend(bench->guard);
    assert_int_equal(bench->rejoined, 1);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    bench->refuse_rejoin = false;
    wait_ms(bench, 10);
    engine_guard_tend(bench->guard);
    assert_int_equal(bench->rejoined, 2);
    assert_ok(get(bench, 7, &err), &err);
    assert_int_equal(bench->opened, 0); /* the same store, asked again */
}

static void attempts_come_less_and_less_often(void **state)
{
    struct bench *bench = *state;
    unsigned before, first, rest;

    fault_engine_unplug(bench->fault, true);
    engine_guard_tend(bench->guard);
    before = fault_engine_pings(bench->fault);
    for (int i = 0; i < 16; i++) { /* 160 ms: at 10, 30, 70 and 150 */
        wait_ms(bench, 10);
        engine_guard_tend(bench->guard);
    }
    first = fault_engine_pings(bench->fault) - before;
    for (int i = 0; i < 1000; i++) { /* 10 s, at most 1 s apart */
        wait_ms(bench, 10);
        engine_guard_tend(bench->guard);
    }
    rest = fault_engine_pings(bench->fault) - before - first;
    assert_int_equal(first, 4);
    assert_in_range(rest, 10, 15);
    assert_int_equal(status_of(bench).downs, 1);
}

static void a_write_of_unknown_outcome_has_the_store_opened_anew(void **state)
{
    struct bench *bench = *state;
    struct engine_guard_options options = options_of(bench);
    struct engine_snapshot *snapshot;
    struct error err;

    /* one with a URL; the store behind it keeps its id by being the same each time */
    engine_close(bench->guard);
    options.url = SLICE("rocksdb:/nowhere");
    bench->guard = engine_guard_new(&options);
    assert_ok(engine_guard_open(bench->guard, &err), &err);
    assert_ok(engine_partition_create(bench->guard, 7, 1, &err), &err);
    engine_guard_keep(bench->guard, NULL, true);
    assert_ok(engine_snapshot_new(bench->guard, &snapshot, &err), &err);
    fault_engine_fail_nth(bench->fault, FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_WRITTEN);
    assert_fails(put(bench, 7, &err), &err, ERROR_STORE_IO);
    assert_contains(err.message, "node \"west\"");
    engine_guard_tend(bench->guard);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    wait_ms(bench, 10);
    engine_guard_tend(bench->guard); /* somebody is inside: it is not closed under them */
    assert_int_equal(bench->opened, 1);
    engine_snapshot_free(snapshot);
    wait_ms(bench, 10);
    engine_guard_tend(bench->guard);
    assert_int_equal(bench->opened, 2);
    /* what the test opened has another identity, which is seen */
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "the node of this name was");
}

static void a_node_that_is_away_at_the_start_comes_later(void **state)
{
    struct bench *bench = *state;
    struct engine_guard_options options = options_of(bench);
    struct error err;

    engine_close(bench->guard);
    options.url = SLICE("postgresql://u:secret@far/db");
    bench->guard = engine_guard_new(&options);
    bench->refuse_open = true;
    assert_fails(engine_guard_open(bench->guard, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_slice_equal(engine_name(bench->guard), SLICE("postgresql://u:***@far/db"));
    engine_guard_keep(bench->guard, NULL, true);
    engine_guard_tend(bench->guard);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "nobody is there");
    bench->refuse_open = false;
    wait_ms(bench, 100);
    engine_guard_tend(bench->guard);
    assert_ok(engine_partition_create(bench->guard, 7, 1, &err), &err);
    assert_ok(put(bench, 7, &err), &err);
}

static void a_paused_node_keeps_its_catalogue_open(void **state)
{
    struct bench *bench = *state;
    struct engine_snapshot *snapshot;
    struct error err;

    engine_guard_pause(bench->guard, true);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_PAUSED);
    assert_contains(err.message, "paused by the operator");
    assert_fails(put(bench, 7, &err), &err, ERROR_NODE_PAUSED);
    assert_fails(engine_snapshot_new(bench->guard, &snapshot, &err), &err, ERROR_NODE_PAUSED);
    assert_fails(engine_serves(bench->guard, &err), &err, ERROR_NODE_PAUSED);
    assert_ok(get(bench, 1, &err), &err);
    assert_ok(put(bench, 1, &err), &err);
    engine_guard_tend(bench->guard); /* and is watched as before */
    engine_guard_pause(bench->guard, false);
    assert_ok(get(bench, 7, &err), &err);
}

/* --- Hanging --------------------------------------------------------------------------------- */

struct reader {
    struct bench *bench;
    struct thread thread;
    struct error err;
    bool done;
};

static void reader_main(void *context)
{
    struct reader *reader = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    reader->done = engine_get(reader->bench->guard, NULL, 7, SLICE("k"), ENGINE_READ_ANY, arena,
                              &value, &reader->err);
}

static void tend_main(void *context)
{
    engine_guard_tend(((struct bench *)context)->guard);
}

static void a_node_that_hangs_holds_few_callers_and_lets_go_of_them(void **state)
{
    struct bench *bench = *state;
    struct reader readers[3] = {{bench}, {bench}, {bench}};
    struct thread keeper;
    struct error err;

    fault_engine_hang(bench->fault, true);
    for (size_t i = 0; i < 3; i++)
        thread_start(&readers[i].thread, "reader", reader_main, &readers[i]);
    while (status_of(bench).inside < 3)
        ;
    thread_start(&keeper, "keeper", tend_main, bench);
    /* The ping is under way, and its answer overdue: those inside wait, others are not let in. */
    do
        wait_ms(bench, 30);
    while (status_of(bench).state == ENGINE_GUARD_SERVING);
    if (status_of(bench).state == ENGINE_GUARD_SUSPECT) {
        assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    }
    thread_join(&keeper);
    for (size_t i = 0; i < 3; i++) {
        thread_join(&readers[i].thread);
        assert_false(readers[i].done);
        assert_int_equal(readers[i].err.code, ERROR_NODE_DOWN);
    }
    assert_int_equal(status_of(bench).state, ENGINE_GUARD_DOWN);
    fault_engine_hang(bench->fault, false);
    wait_ms(bench, 100);
    engine_guard_tend(bench->guard);
    assert_ok(get(bench, 7, &err), &err);
}

static void writer_main(void *context)
{
    struct bench *bench = context;
    struct error err;

    assert_ok(put(bench, 7, &err), &err);
}

static void a_write_that_never_returns_takes_the_node_down_until_it_does(void **state)
{
    struct bench *bench = *state;
    struct thread writer;
    struct error err;

    fault_engine_hold_writes(bench->fault);
    thread_start(&writer, "writer", writer_main, bench);
    fault_engine_wait_held(bench->fault);
    engine_guard_tend(bench->guard);
    assert_true(engine_serves(bench->guard, &err));
    wait_ms(bench, 11000);
    engine_guard_tend(bench->guard);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "a write has not returned");
    wait_ms(bench, 11000);
    engine_guard_tend(bench->guard);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    fault_engine_release_writes(bench->fault);
    thread_join(&writer);
    wait_ms(bench, 11000);
    engine_guard_tend(bench->guard);
    assert_ok(get(bench, 7, &err), &err);
}

/* --- Letting go ------------------------------------------------------------------------------ */

/* A RocksDB store behind the faults, watched by a keeper of its own, in real time: it would be down
 * after ten minutes, and calls are let go long before. */
struct watched {
    struct bench bench;
    struct scratch scratch;
};

static bool rocks_open(void *context, struct slice url, const struct engine_options *options,
                       struct engine **ret_engine, struct error *err)
{
    struct watched *watched = context;
    struct engine *rocks;

    if (!engine_open(url, &(struct engine_options){0}, &rocks, err))
        return false;
    *ret_engine = watched->bench.fault = fault_engine_new(rocks);
    fault_engine_watch(*ret_engine, options->watch);
    return true;
}

static void watched_init(struct watched *watched, int64_t answer_ms)
{
    char url[256];
    struct error err;

    *watched = (struct watched){0};
    scratch_init(&watched->scratch);
    snprintf(url, sizeof url, "rocksdb:%s/node", watched->scratch.path);
    watched->bench.arena = arena_new();
    watched->bench.guard = engine_guard_new(&(struct engine_guard_options){
        .name = "west",
        .url = slice_of_text(url),
        .answer_ms = answer_ms,
        .probe_ms = 10,
        .hang_ms = 600000,
        .suspect_ms = 600000,
        .open = rocks_open,
        .open_context = watched,
    });
    assert_ok(engine_guard_open(watched->bench.guard, &err), &err);
    assert_ok(engine_partition_create(watched->bench.guard, 7, 1, &err), &err);
    engine_guard_keep(watched->bench.guard, NULL, false);
}

static void watched_done(struct watched *watched)
{
    engine_close(watched->bench.guard);
    arena_free(watched->bench.arena);
    scratch_done(&watched->scratch);
}

static void pings_await(struct bench *bench, unsigned more)
{
    unsigned until = fault_engine_pings(bench->fault) + more;

    while (fault_engine_pings(bench->fault) < until)
        sched_yield();
}

static void
a_read_is_let_go_when_no_sign_of_life_comes_either_and_nobody_waits_after_it(void **state UNUSED)
{
    struct watched watched;
    struct bench *bench = &watched.bench;
    struct error err;

    watched_init(&watched, 40);
    fault_engine_hang(bench->fault, true);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_contains(err.message, "does not answer");
    assert_int_equal(status_of(bench).state, ENGINE_GUARD_SUSPECT);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_string_equal(err.message, "node \"west\" is not answering: partition 7 does not serve");
    assert_fails(put(bench, 7, &err), &err, ERROR_NODE_DOWN); /* nothing was done */
    /* It was not taken down for that, and serves as soon as it answers. */
    assert_int_equal(status_of(bench).downs, 0);
    fault_engine_hang(bench->fault, false);
    pings_await(bench, 2);
    assert_ok(put(bench, 7, &err), &err);
    assert_ok(get(bench, 7, &err), &err);
    watched_done(&watched);
}

static void a_write_that_is_let_go_is_in_doubt_and_the_store_opened_anew(void **state UNUSED)
{
    struct watched watched;
    struct bench *bench = &watched.bench;
    struct error err;

    watched_init(&watched, 40);
    fault_engine_hang(bench->fault, true);
    assert_fails(put(bench, 7, &err), &err, ERROR_STORE_POISONED);
    assert_contains(err.message, "node \"west\"");
    fault_engine_hang(bench->fault, false);
    while (!put(bench, 7, &err))
        assert_true(err.code == ERROR_STORE_POISONED || err.code == ERROR_NODE_DOWN);
    assert_int_equal(status_of(bench).downs, 1);
    watched_done(&watched);
}

static void a_slow_call_waits_as_long_as_signs_of_life_come(void **state UNUSED)
{
    struct watched watched;
    struct bench *bench = &watched.bench;
    struct reader reader = {bench};

    watched_init(&watched, 300);
    fault_engine_stall(bench->fault, true);
    thread_start(&reader.thread, "reader", reader_main, &reader);
    pings_await(bench, 50); /* 10 ms apart */
    assert_int_equal(status_of(bench).inside, 1);
    fault_engine_stall(bench->fault, false);
    thread_join(&reader.thread);
    assert_ok(reader.done, &reader.err);
    watched_done(&watched);
}

static void a_call_that_waits_asks_for_a_sign_of_life_at_once(void **state)
{
    struct bench *bench = *state;
    struct engine_guard_options options = options_of(bench);
    struct engine *store;
    struct engine *guard;
    struct error err;

    options.probe_ms = 600000; /* the next one by itself is far off */
    options.answer_ms = 40;
    options.hang_ms = 600000;
    guard = engine_guard_around(&options, store = store_new(bench));
    fault_engine_watch(store, engine_guard_watch(guard));
    assert_ok(engine_partition_create(guard, 7, 1, &err), &err);
    engine_guard_keep(guard, NULL, false);
    fault_engine_hang(store, true);
    assert_fails(engine_partition_list(guard, bench->arena, &(struct engine_partition *){NULL},
                                       &(size_t){0}, &err),
                 &err, ERROR_NODE_DOWN);
    assert_int_equal(fault_engine_pings(store), 1);
    fault_engine_hang(store, false);
    engine_close(guard);
}

/* --- A node whose place another server can take ---------------------------------------------- */

struct held_call {
    struct bench *bench;
    struct thread thread;
    atomic_bool begun;
    bool done;
    struct error err;
};

static void held_run(void *context)
{
    struct held_call *call = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    atomic_store(&call->begun, true);
    call->done = engine_get(call->bench->guard, NULL, 7, SLICE("k"), ENGINE_READ_ANY, arena, &value,
                            &call->err);
}

static uint64_t held_back(const struct bench *bench)
{
    struct engine_guard_status status;

    assert_true(engine_guard_status(bench->guard, &status));
    return status.waited;
}

/* The guard with patience, before a node that is down. */
static void bench_hold(struct bench *bench, int64_t failover_ms)
{
    struct engine_guard_options options = options_of(bench);
    struct error err;

    engine_close(bench->guard);
    options.failover_ms = failover_ms;
    options.failover_calls = 2;
    bench->guard = engine_guard_around(&options, store_new(bench));
    fault_engine_fail_over(bench->fault, true);
    assert_ok(engine_partition_create(bench->guard, 1, 1, &err), &err);
    assert_ok(engine_partition_create(bench->guard, 7, 1, &err), &err);
    engine_guard_keep(bench->guard, &(struct engine_guard_hooks){on_rejoin, bench}, true);
    engine_guard_tend(bench->guard); /* it learns that the node can fail over */
    fault_engine_unplug(bench->fault, true);
    engine_guard_tend(bench->guard);
}

static bool get_cached(struct bench *bench, struct engine_value *ret_value, struct error *err)
{
    return engine_get(bench->guard, NULL, 7, SLICE("k"), ENGINE_READ_CACHED, bench->arena,
                      ret_value, err);
}

static void calls_wait_for_another_server_to_take_over(void **state)
{
    enum { HOUR_MS = 3600 * 1000 };
    struct bench *bench = *state;
    struct held_call calls[2] = {{.bench = bench}, {.bench = bench}};
    struct engine_value value;
    struct error err;

    bench_hold(bench, HOUR_MS);
    assert_ok(get_cached(bench, &value, &err), &err); /* who may not block is sent to who may */
    assert_int_equal(value.found, ENGINE_COLD);
    for (size_t i = 0; i < 2; i++)
        thread_start(&calls[i].thread, "held", held_run, &calls[i]);
    while (held_back(bench) < 2)
        sched_yield();
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN); /* one too many does not wait */
    assert_fails(get_cached(bench, &value, &err), &err, ERROR_NODE_DOWN);
    assert_int_equal(held_back(bench), 2);
    fault_engine_unplug(bench->fault, false);
    bench->now_ms += 10000;
    engine_guard_tend(bench->guard);
    for (size_t i = 0; i < 2; i++) {
        thread_join(&calls[i].thread);
        assert_ok(calls[i].done, &calls[i].err);
    }
}

static void nobody_waits_for_a_node_that_does_not_come_back(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench_hold(bench, 1);
    nanosleep(&(struct timespec){0, 5 * 1000 * 1000}, NULL); /* longer than it is waited for */
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
}

static void a_node_without_another_server_is_not_waited_for(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench_hold(bench, 3600 * 1000);
    fault_engine_unplug(bench->fault, false);
    bench->now_ms += 10000;
    fault_engine_fail_over(bench->fault, false);
    engine_guard_tend(bench->guard);
    fault_engine_unplug(bench->fault, true);
    engine_guard_tend(bench->guard);
    assert_fails(get(bench, 7, &err), &err, ERROR_NODE_DOWN);
    assert_int_equal(held_back(bench), 0);
    assert_fails(engine_guard_accept_loss(bench->guard, &err), &err, ERROR_BAD_REQUEST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_that_serves_is_handed_every_call),
        TEST(a_node_that_gives_no_sign_of_life_turns_calls_away_and_names_the_partition),
        TEST(a_call_that_cannot_reach_the_store_is_told_so_before_the_node_is_known_to_be_down),
        TEST(a_node_rejoins_after_whoever_keeps_it_has_put_things_in_order),
        TEST(attempts_come_less_and_less_often),
        TEST(a_write_of_unknown_outcome_has_the_store_opened_anew),
        TEST(a_node_that_is_away_at_the_start_comes_later),
        TEST(a_paused_node_keeps_its_catalogue_open),
        TEST(a_node_that_hangs_holds_few_callers_and_lets_go_of_them),
        TEST(calls_wait_for_another_server_to_take_over),
        TEST(nobody_waits_for_a_node_that_does_not_come_back),
        TEST(a_node_without_another_server_is_not_waited_for),
        TEST(a_write_that_never_returns_takes_the_node_down_until_it_does),
        cmocka_unit_test(
            a_read_is_let_go_when_no_sign_of_life_comes_either_and_nobody_waits_after_it),
        cmocka_unit_test(a_write_that_is_let_go_is_in_doubt_and_the_store_opened_anew),
        cmocka_unit_test(a_slow_call_waits_as_long_as_signs_of_life_come),
        TEST(a_call_that_waits_asks_for_a_sign_of_life_at_once),
    };

    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
