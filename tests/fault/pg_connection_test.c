/* A postgresql: node whose connections are cut: whatever the moment, every acknowledged batch is
 * there, none is there by half or twice, and what is said about the last one is true. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "engine/pg/pg_private.h"
#include "support/check.h"
#include "support/postgres.h"
#include "support/proxy.h"

#include <sched.h>
#include <unistd.h>

static struct postgres *server;

/* One node behind a proxy. */
struct store {
    struct proxy *proxy;
    struct engine *engine;
    struct arena *arena;
    char url[256], direct_url[256];
};

static struct engine *engine_at(const char *url, int64_t connect_ms)
{
    struct engine_options options = {.connect_ms_max = connect_ms};
    struct engine *engine;
    struct error err;

    while (!engine_open(slice_of_text(url), &options, &engine, &err)) /* the machine is busy */
        assert_int_equal(err.code, ERROR_STORE_UNAVAILABLE);
    return engine;
}

static void store_make(struct store *store, int64_t connect_ms)
{
    struct error err;

    snprintf(store->direct_url, sizeof store->direct_url, "%s", postgres_fresh_url(server));
    store->proxy = proxy_start(postgres_socket(server));
    snprintf(store->url, sizeof store->url, "postgresql://orrery:secret@127.0.0.1:%d/%s",
             proxy_port(store->proxy), postgres_database(server));
    store->arena = arena_new();
    store->engine = engine_at(store->url, connect_ms);
    assert_ok(engine_partition_create(store->engine, 1, 1, &err), &err);
}

static int setup(void **state)
{
    struct store *store = MEMORY_NEW(struct store);

    store_make(store, 3000);
    *state = store;
    return 0;
}

static int setup_impatient(void **state)
{
    struct store *store = MEMORY_NEW(struct store);

    store_make(store, 400);
    *state = store;
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;

    engine_close(store->engine);
    proxy_free(store->proxy);
    arena_free(store->arena);
    memory_free(store);
    return 0;
}

/* Batch number i: a key of its own at both ends of the partition and one that all share. */
static bool batch_write(struct store *store, unsigned i, size_t size, struct error *err)
{
    struct slice value = slice_of(arena_alloc_zero(store->arena, size), size);
    struct engine_op ops[] = {
        {ENGINE_PUT, arena_printf(store->arena, "a%06u", i), value},
        {ENGINE_PUT, SLICE("last"), arena_printf(store->arena, "%u", i)},
        {ENGINE_PUT, arena_printf(store->arena, "z%06u", i), value},
    };
    struct engine_section section = {
        .partition = 1, .epoch = 1, .ops = ops, .count = ARRAY_LEN(ops)};

    return engine_write(store->engine, &section, 1, err);
}

static bool is_there(struct store *store, const char *prefix, unsigned i)
{
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(store->engine, NULL, 1, arena_printf(store->arena, "%s%06u", prefix, i),
                         ENGINE_READ_ANY, store->arena, &value, &err),
              &err);
    return value.found == ENGINE_FOUND;
}

/* All of batch i or nothing of it; which? */
static bool batch_is_there(struct store *store, unsigned i)
{
    bool first = is_there(store, "a", i);

    assert_int_equal(first, is_there(store, "z", i));
    return first;
}

static uint64_t sequence(void)
{
    uint64_t value;

    assert_true(slice_to_uint64(
        slice_of_text(postgres_query(server, "SELECT sequence FROM orrery.owner")), &value));
    return value;
}

static struct engine_statistics statistics(struct store *store)
{
    struct engine_statistics statistics;
    struct error err;

    assert_ok(engine_statistics(store->engine, &statistics, &err), &err);
    return statistics;
}

/* --- Cuts ------------------------------------------------------------------------------------ */

/* Cuts at random places of the request and of the answer; the server comes back at once, so every
 * write must be acknowledged, and committed exactly once. */
static void writes_ride_over_cuts(struct store *store, uint64_t seed, bool silent)
{
    enum { ROUNDS = 60, SIZE_MAX_BYTES = 20000 };
    struct random random;
    unsigned cuts = 0;
    struct error err;

    random_seed(&random, seed);
    assert_ok(batch_write(store, 0, 10, &err), &err);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        size_t size = random_below(&random, SIZE_MAX_BYTES);
        bool up = random_below(&random, 3) > 0;
        uint64_t before = sequence();

        proxy_cut_after(store->proxy, up ? PROXY_TO_SERVER : PROXY_TO_CLIENT,
                        random_below(&random, up ? 2 * size + 1500 : 400), silent);
        assert_ok(batch_write(store, i, size, &err), &err);
        cuts += proxy_cut_cancel(store->proxy);
        assert_int_equal(sequence(), before + 1);
        assert_true(batch_is_there(store, i));
        arena_reset(store->arena);
    }
    assert_true(cuts > ROUNDS / 2);
    for (unsigned i = 0; i <= ROUNDS; i++)
        assert_true(batch_is_there(store, i));
    assert_false(statistics(store).poisoned);
    assert_true(statistics(store).reconnects >= cuts);
}

static void a_write_cut_anywhere_is_committed_exactly_once(void **state)
{
    writes_ride_over_cuts(*state, 1, false);
}

static void a_session_the_server_still_believes_in_does_not_hold_the_node(void **state)
{
    writes_ride_over_cuts(*state, 2, true);
}

/* The server can be reached again: waits until the driver has noticed, reading and writing. */
static void node_settle(struct store *store)
{
    struct slice id;
    struct error err;

    proxy_refuse(store->proxy, false);
    while (!engine_cluster_id(store->engine, store->arena, &id, &err))
        assert_int_equal(err.code, ERROR_STORE_UNAVAILABLE);
    while (!engine_cluster_join(store->engine, SLICE("c"), &err))
        assert_true(err.code == ERROR_STORE_UNAVAILABLE || err.code == ERROR_STORE_POISONED);
    assert_false(statistics(store).poisoned);
}

/* The server stays away after the cut: now the driver cannot find out in time. */
static void what_is_said_about_a_write_cut_off_for_good_is_true(void **state)
{
    enum { ROUNDS = 12 };
    struct store *store = *state;
    unsigned there = 0, absent = 0;
    struct random random;
    struct error err;

    random_seed(&random, 3);
    assert_ok(batch_write(store, 0, 10, &err), &err);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        bool up = i % 2;

        proxy_cut_after(store->proxy, up ? PROXY_TO_SERVER : PROXY_TO_CLIENT,
                        up ? random_below(&random, 1200) : 0, false);
        proxy_refuse(store->proxy, true);
        assert_false(batch_write(store, i, 600, &err));
        assert_true(proxy_cut_cancel(store->proxy));
        assert_true(err.code == ERROR_STORE_POISONED || err.code == ERROR_STORE_UNAVAILABLE);
        assert_int_equal(statistics(store).poisoned, err.code == ERROR_STORE_POISONED);
        node_settle(store);
        if (err.code == ERROR_STORE_UNAVAILABLE)
            assert_false(batch_is_there(store, i));
        if (batch_is_there(store, i))
            there++;
        else
            absent++;
        arena_reset(store->arena);
    }
    assert_true(there > 0 && absent > 0);
    assert_ok(batch_write(store, 999, 10, &err), &err);
    assert_true(batch_is_there(store, 999));
}

static void a_poisoned_node_refuses_writes_until_it_knows(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(batch_write(store, 0, 10, &err), &err);
    proxy_cut_after(store->proxy, PROXY_TO_CLIENT, 0, false);
    proxy_refuse(store->proxy, true);
    assert_fails(batch_write(store, 1, 10, &err), &err, ERROR_STORE_POISONED);
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_POISONED);
    proxy_refuse(store->proxy, false);
    while (!batch_write(store, 3, 10, &err)) /* the first to get through finds out */
        assert_int_equal(err.code, ERROR_STORE_POISONED);
    assert_false(statistics(store).poisoned);
    assert_true(batch_is_there(store, 1));
    assert_false(batch_is_there(store, 2));
    assert_true(batch_is_there(store, 3));
}

/* --- Owners ---------------------------------------------------------------------------------- */

static void a_second_process_is_refused_by_name(void **state)
{
    struct store *store = *state;
    struct engine *second;
    struct error err;
    char pid[32];

    assert_fails(
        engine_open(slice_of_text(store->direct_url), &(struct engine_options){0}, &second, &err),
        &err, ERROR_STORE_IN_USE);
    snprintf(pid, sizeof pid, "process %d on host", getpid());
    assert_contains(err.message, pid);
}

static void a_node_taken_over_is_lost_to_its_former_owner_for_good(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_close) struct engine *second = NULL;
    struct error err;

    assert_ok(batch_write(store, 1, 10, &err), &err);
    proxy_refuse(store->proxy, true);
    proxy_cut_after(store->proxy, PROXY_TO_SERVER, 0, false);
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_POISONED);
    second = engine_at(store->direct_url, 3000);
    proxy_refuse(store->proxy, false);
    do
        assert_false(batch_write(store, 3, 10, &err));
    while (err.code == ERROR_STORE_POISONED); /* until it has reached the server again */
    assert_int_equal(err.code, ERROR_STORE_IN_USE);
    engine_close(TAKE(second));
    assert_fails(batch_write(store, 4, 10, &err), &err, ERROR_STORE_IN_USE);
    assert_fails(engine_partition_create(store->engine, 7, 1, &err), &err, ERROR_STORE_IN_USE);
    assert_true(statistics(store).poisoned);
    assert_true(batch_is_there(store, 1));
    assert_false(batch_is_there(store, 3));
}

static void an_epoch_raised_behind_our_back_stops_the_next_write(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(batch_write(store, 1, 10, &err), &err);
    postgres_query(server, "UPDATE orrery.owner SET epoch = epoch + 1");
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_IN_USE);
    assert_false(batch_is_there(store, 2));
}

static void a_server_that_lost_acknowledged_writes_is_not_written_to(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(batch_write(store, 1, 10, &err), &err);
    postgres_query(server, "UPDATE orrery.owner SET sequence = sequence - 1");
    postgres_query(server, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                           " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_LOST);
    assert_contains(err.message, "acknowledged");
    assert_fails(batch_write(store, 3, 10, &err), &err, ERROR_STORE_LOST);
}

static void sessions_ended_by_the_server_are_replaced(void **state)
{
    struct store *store = *state;
    struct error err;

    for (unsigned i = 0; i < 5; i++) {
        assert_ok(batch_write(store, i, 10, &err), &err);
        assert_true(batch_is_there(store, i));
        postgres_query(server, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                               " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }
    assert_true(statistics(store).reconnects >= 5);
}

/* --- The server ------------------------------------------------------------------------------ */

struct load {
    struct store *store;
    atomic_bool stop;
    atomic_uint acknowledged; /* batches 1.. */
};

static void load_run(void *context)
{
    struct load *load = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct store store = *load->store;
    struct error err;

    store.arena = arena;
    for (unsigned i = 1; !load->stop; i++) {
        assert_ok(batch_write(&store, i, 200, &err), &err);
        load->acknowledged = i;
        arena_reset(arena);
    }
}

static void a_restart_under_load(struct store *store, enum postgres_stop how)
{
    struct load load = {.store = store};
    struct thread thread;
    unsigned at;

    thread_start(&thread, "load", load_run, &load);
    while (load.acknowledged < 20)
        sched_yield();
    postgres_stop(server, how);
    postgres_restart(server);
    at = load.acknowledged;
    while (load.acknowledged < at + 20)
        sched_yield();
    load.stop = true;
    thread_join(&thread);
    for (unsigned i = 1; i <= load.acknowledged; i++)
        assert_true(batch_is_there(store, i));
}

static int setup_patient(void **state)
{
    struct store *store = MEMORY_NEW(struct store);

    store_make(store, 30000);
    *state = store;
    return 0;
}

static void a_clean_restart_loses_nothing_acknowledged(void **state)
{
    a_restart_under_load(*state, POSTGRES_STOP_FAST);
}

static void an_immediate_stop_loses_nothing_acknowledged(void **state)
{
    a_restart_under_load(*state, POSTGRES_STOP_IMMEDIATE);
}

static void kill_9_of_the_server_loses_nothing_acknowledged(void **state)
{
    a_restart_under_load(*state, POSTGRES_STOP_KILL);
}

static void a_write_after_the_server_went_away_is_known_not_to_be_there(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(batch_write(store, 1, 10, &err), &err);
    postgres_stop(server, POSTGRES_STOP_FAST);
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_fails(batch_write(store, 3, 10, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_false(statistics(store).poisoned);
    postgres_restart(server);
    node_settle(store);
    assert_true(batch_is_there(store, 1));
    assert_false(batch_is_there(store, 2));
    assert_ok(batch_write(store, 4, 10, &err), &err);
}

static void a_full_disk_writes_nothing_and_passes(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(batch_write(store, 1, 10, &err), &err);
    postgres_query(server,
                   "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS"
                   " $$BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'full'; END$$;"
                   "CREATE TRIGGER full_disk AFTER INSERT ON orrery.p_1 EXECUTE FUNCTION"
                   " public.full()");
    assert_fails(batch_write(store, 2, 10, &err), &err, ERROR_STORE_FULL);
    assert_false(batch_is_there(store, 2));
    assert_false(statistics(store).poisoned);
    postgres_query(server, "DROP TRIGGER full_disk ON orrery.p_1");
    assert_ok(batch_write(store, 3, 10, &err), &err);
    assert_true(batch_is_there(store, 3));
}

/* A stopped server still acknowledges packets: only a deadline of our own helps. */
static void a_server_that_hangs_does_not_hang_us(void **state)
{
    struct store *store = *state;
    struct pg_settings settings = {
        .url = store->url,
        .connect_ms_max = 100,
        .snapshot_ms_max = 100,
        .statement_ms_max = 100,
        .clock = &clock_system,
    };
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL, *second = NULL;
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct error err;

    assert_ok(pg_connection_open_at(&settings, &(struct pg_host){0}, clock_monotonic_ms() + 5000,
                                    &connection, &err),
              &err);
    assert_fails(pg_query(connection, "SELECT pg_sleep(10)", NULL, 0, &answer, &err), &err,
                 ERROR_TIMED_OUT);
    assert_false(pg_connection_is_broken(connection));
    proxy_freeze(store->proxy, true);
    assert_fails(pg_query(connection, "SELECT 1", NULL, 0, &answer, &err), &err,
                 ERROR_STORE_UNAVAILABLE);
    assert_true(pg_connection_is_broken(connection));
    assert_fails(pg_connection_open_at(&settings, &(struct pg_host){0}, clock_monotonic_ms() + 100,
                                       &second, &err),
                 &err, ERROR_STORE_UNAVAILABLE);
    proxy_freeze(store->proxy, false);
}

#define WITH(test, with) cmocka_unit_test_setup_teardown(test, with, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_write_cut_anywhere_is_committed_exactly_once, setup),
        WITH(a_session_the_server_still_believes_in_does_not_hold_the_node, setup),
        WITH(what_is_said_about_a_write_cut_off_for_good_is_true, setup_impatient),
        WITH(a_poisoned_node_refuses_writes_until_it_knows, setup_impatient),
        WITH(a_second_process_is_refused_by_name, setup),
        WITH(a_node_taken_over_is_lost_to_its_former_owner_for_good, setup_impatient),
        WITH(an_epoch_raised_behind_our_back_stops_the_next_write, setup),
        WITH(a_server_that_lost_acknowledged_writes_is_not_written_to, setup),
        WITH(sessions_ended_by_the_server_are_replaced, setup),
        WITH(a_clean_restart_loses_nothing_acknowledged, setup_patient),
        WITH(an_immediate_stop_loses_nothing_acknowledged, setup_patient),
        WITH(kill_9_of_the_server_loses_nothing_acknowledged, setup_patient),
        WITH(a_write_after_the_server_went_away_is_known_not_to_be_there, setup_impatient),
        WITH(a_full_disk_writes_nothing_and_passes, setup),
        WITH(a_server_that_hangs_does_not_hang_us, setup),
    };
    int failed;

    server = postgres_start(false);
    failed = cmocka_run_group_tests_name("fault/pg_connection", tests, NULL, NULL);
    postgres_free(server);
    return failed;
}
