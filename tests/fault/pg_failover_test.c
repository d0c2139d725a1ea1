/* A postgresql: node with a standby: what is acknowledged or shown is on the standby, whatever
 * happens to the primary; an old primary is not used again; and what a standby that lagged has lost
 * is said. Every test has a pair of servers of its own, since it breaks them. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "support/check.h"
#include "support/postgres.h"
#include "support/proxy.h"

#include <signal.h>
#include <stdatomic.h>

enum { FAILOVER_MS = 60000, LOOK_NS = 5 * 1000 * 1000 };

struct pair {
    struct postgres *primary, *standby;
    struct engine *engine;
    struct arena *arena;
    char url[900];
};

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

static bool engine_try(const char *url, bool accept_loss, struct engine **ret_engine,
                       struct error *err)
{
    struct engine_options options = {
        .connect_ms_max = 3000, .failover_ms = FAILOVER_MS, .accept_loss = accept_loss};

    return engine_open(slice_of_text(url), &options, ret_engine, err);
}

static void pair_open(struct pair *pair)
{
    struct error err;

    assert_ok(engine_try(pair->url, false, &pair->engine, &err), &err);
}

static void pair_make(struct pair *pair, const char *synchronous)
{
    struct postgres *servers[2];
    struct error err;

    pair->primary = servers[0] = postgres_start(false);
    (void)postgres_fresh_url(pair->primary);
    pair->standby = servers[1] = postgres_start_standby(pair->primary, "s1");
    snprintf(pair->url, sizeof pair->url, "%s", postgres_url_of(servers, 2));
    postgres_synchronous(pair->primary, synchronous);
    pair->arena = arena_new();
    pair_open(pair);
    assert_ok(engine_partition_create(pair->engine, 1, 1, &err), &err);
}

static int setup(void **state)
{
    struct pair *pair = MEMORY_NEW(struct pair);

    pair_make(pair, "s1");
    *state = pair;
    return 0;
}

static int setup_asynchronous(void **state)
{
    struct pair *pair = MEMORY_NEW(struct pair);

    pair_make(pair, "");
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    engine_close(pair->engine);
    postgres_free(pair->standby);
    postgres_free(pair->primary);
    arena_free(pair->arena);
    memory_free(pair);
    return 0;
}

static bool write_number(struct engine *engine, unsigned i, struct error *err)
{
    char key[16], value[16];
    struct engine_op op = {ENGINE_PUT, SLICE_NONE, SLICE_NONE};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};

    snprintf(key, sizeof key, "k%08u", i);
    snprintf(value, sizeof value, "%u", i);
    op.key = slice_of_text(key);
    op.value = slice_of_text(value);
    return engine_write(engine, &section, 1, err);
}

/* Fails as long as no primary serves. */
static bool number_look(struct pair *pair, unsigned i, bool *ret_there, struct error *err)
{
    struct engine_value value;

    if (!engine_get(pair->engine, NULL, 1, arena_printf(pair->arena, "k%08u", i), ENGINE_READ_ANY,
                    pair->arena, &value, err))
        return false;
    *ret_there = value.found == ENGINE_FOUND;
    return true;
}

static bool number_is_there(struct pair *pair, unsigned i)
{
    struct error err;
    bool there;

    while (!number_look(pair, i, &there, &err)) {
        assert_int_equal(err.code, ERROR_STORE_UNAVAILABLE);
        pause_briefly();
    }
    return there;
}

/* What nobody has been told of must not be seen either: it is refused, or absent. */
static void number_is_not_shown(struct pair *pair, unsigned i)
{
    struct error err;
    bool there;

    if (number_look(pair, i, &there, &err))
        assert_false(there);
    else
        assert_int_equal(err.code, ERROR_STORE_UNAVAILABLE);
}

/* --- One write beside the test --------------------------------------------------------------- */

struct writing {
    struct pair *pair;
    unsigned number;
    struct thread thread;
    atomic_bool over;
    bool written;
    struct error err;
};

static void writing_run(void *context)
{
    struct writing *writing = context;

    writing->written = write_number(writing->pair->engine, writing->number, &writing->err);
    atomic_store(&writing->over, true);
}

static void writing_begin(struct writing *writing, struct pair *pair, unsigned number)
{
    *writing = (struct writing){.pair = pair, .number = number};
    thread_start(&writing->thread, "writing", writing_run, writing);
}

static void writing_end(struct writing *writing)
{
    thread_join(&writing->thread);
    assert_ok(writing->written, &writing->err);
}

/* Sessions of ours that wait for the standby, but for beats. */
#define WAITING                                                                                    \
    "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'orrery'"           \
    " AND query NOT LIKE '%orrery.beat%'"

static void until(struct postgres *server, const char *condition)
{
    while (strcmp(postgres_query(server, condition), "t") != 0)
        pause_briefly();
}

static void standby_stop(struct pair *pair, bool stop)
{
    postgres_follow(pair->standby, !stop);
}

/* --- What is acknowledged or shown ----------------------------------------------------------- */

static void a_write_is_neither_acknowledged_nor_shown_before_the_standby_has_it(void **state)
{
    struct pair *pair = *state;
    struct writing writing;
    struct error err;

    assert_ok(write_number(pair->engine, 1, &err), &err);
    standby_stop(pair, true);
    writing_begin(&writing, pair, 2);
    until(pair->primary, "SELECT count(*) = 1 " WAITING);
    assert_true(number_is_there(pair, 1));
    assert_false(number_is_there(pair, 2));
    assert_false(atomic_load(&writing.over));
    standby_stop(pair, false);
    writing_end(&writing);
    assert_true(number_is_there(pair, 2));
}

/* PostgreSQL answers COMMIT, with a warning, and shows the row to everybody. */
static void a_cancelled_wait_for_the_standby_is_no_success(void **state)
{
    struct pair *pair = *state;
    struct writing writing;

    standby_stop(pair, true);
    writing_begin(&writing, pair, 1);
    until(pair->primary, "SELECT count(*) = 1 " WAITING);
    (void)postgres_query(pair->primary, "SELECT pg_cancel_backend(pid) " WAITING);
    /* The new session waits with its barrier. */
    until(pair->primary, "SELECT count(*) = 1 " WAITING " AND query LIKE '%SET backend%'");
    assert_string_equal(postgres_query(pair->primary, "SELECT count(*) FROM orrery.p_1"), "1");
    number_is_not_shown(pair, 1);
    assert_false(atomic_load(&writing.over));
    standby_stop(pair, false);
    writing_end(&writing);
    assert_true(number_is_there(pair, 1));
}

/* The session of before would show its commit if it were ended. */
static void a_session_that_waits_for_the_standby_is_left_alone(void **state)
{
    struct pair *pair = *state;
    struct proxy *proxy = proxy_start(postgres_socket(pair->primary));
    struct writing writing;
    char direct[sizeof pair->url], session[32];
    struct error err;

    memcpy(direct, pair->url, sizeof direct);
    engine_close(pair->engine);
    snprintf(pair->url, sizeof pair->url, "postgresql://orrery:secret@127.0.0.1:%d/%s",
             proxy_port(proxy), postgres_database(pair->primary));
    pair_open(pair);
    assert_ok(write_number(pair->engine, 1, &err), &err);
    standby_stop(pair, true);
    writing_begin(&writing, pair, 2);
    until(pair->primary, "SELECT count(*) = 1 " WAITING);
    snprintf(session, sizeof session, "%s", postgres_query(pair->primary, "SELECT pid " WAITING));
    proxy_cut_after(proxy, PROXY_TO_CLIENT, 0, false);
    (void)!number_look(pair, 1, &(bool){false}, &err); /* its answer is what is cut */
    /* Another session of the process asks for the lock that the old one holds. */
    until(pair->primary, "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE"
                         " '%pg_try_advisory_lock%' AND application_name = 'orrery'"
                         " AND pid NOT IN (SELECT pid " WAITING ")");
    assert_string_equal(postgres_query(pair->primary, "SELECT pid " WAITING), session);
    number_is_not_shown(pair, 2);
    standby_stop(pair, false);
    writing_end(&writing);
    assert_true(number_is_there(pair, 2));
    engine_close(pair->engine);
    proxy_free(proxy);
    memcpy(pair->url, direct, sizeof direct);
    pair_open(pair);
}

/* Recovery makes visible whatever is in the log of the primary. */
static void what_a_restarted_primary_alone_has_is_not_shown(void **state)
{
    struct pair *pair = *state;
    struct writing writing;
    struct error err;

    assert_ok(write_number(pair->engine, 1, &err), &err);
    standby_stop(pair, true);
    writing_begin(&writing, pair, 2);
    until(pair->primary, "SELECT count(*) = 1 " WAITING);
    postgres_stop(pair->primary, POSTGRES_STOP_KILL);
    postgres_restart(pair->primary);
    until(pair->primary, "SELECT count(*) = 2 FROM orrery.p_1");
    number_is_not_shown(pair, 2);
    assert_false(atomic_load(&writing.over));
    standby_stop(pair, false);
    writing_end(&writing);
    assert_true(number_is_there(pair, 2));
}

/* --- Failing over ---------------------------------------------------------------------------- */

struct loading {
    struct pair *pair;
    struct thread thread;
    atomic_uint acknowledged; /* 1 to this */
    atomic_bool stop;
};

static void loading_run(void *context)
{
    struct loading *loading = context;
    struct error err;

    while (!atomic_load(&loading->stop)) {
        unsigned next = atomic_load(&loading->acknowledged) + 1;

        assert_ok(write_number(loading->pair->engine, next, &err), &err);
        atomic_store(&loading->acknowledged, next);
    }
}

static void loading_reach(struct loading *loading, unsigned more)
{
    unsigned wanted = atomic_load(&loading->acknowledged) + more;

    while (atomic_load(&loading->acknowledged) < wanted)
        pause_briefly();
}

static void loading_end(struct loading *loading)
{
    atomic_store(&loading->stop, true);
    thread_join(&loading->thread);
    for (unsigned i = 1; i <= atomic_load(&loading->acknowledged); i++)
        assert_true(number_is_there(loading->pair, i));
}

static uint32_t timeline(struct pair *pair)
{
    struct engine_statistics statistics;
    struct error err;

    assert_ok(engine_statistics(pair->engine, &statistics, &err), &err);
    return statistics.timeline;
}

/* The roles of the two are changed. */
static void roles_change(struct pair *pair)
{
    struct postgres *old = pair->primary;

    pair->primary = pair->standby;
    pair->standby = old;
}

static void a_promotion_under_load_loses_nothing(void **state)
{
    enum { ROUNDS = 4 };
    struct pair *pair = *state;
    struct loading loading = {.pair = pair};

    thread_start(&loading.thread, "loading", loading_run, &loading);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        char name[8];

        loading_reach(&loading, 20);
        postgres_stop(pair->primary, round % 2 ? POSTGRES_STOP_KILL : POSTGRES_STOP_IMMEDIATE);
        postgres_promote(pair->standby);
        roles_change(pair);
        loading_reach(&loading, 20);
        assert_int_equal(timeline(pair), round + 1);
        snprintf(name, sizeof name, "r%u", round);
        postgres_restart_standby(pair->standby, pair->primary, name);
        postgres_synchronous(pair->primary, name);
    }
    loading_end(&loading);
}

/* It answers, and it takes writes: only its timeline is old. */
static void a_primary_that_was_cut_off_is_left_for_the_new_one(void **state)
{
    struct pair *pair = *state;
    struct loading loading = {.pair = pair};
    struct error err;

    thread_start(&loading.thread, "loading", loading_run, &loading);
    loading_reach(&loading, 20);
    kill(postgres_process(pair->primary), SIGSTOP); /* it takes no new sessions */
    postgres_promote(pair->standby);
    loading_reach(&loading, 20);
    kill(postgres_process(pair->primary), SIGCONT);
    loading_reach(&loading, 20);
    loading_end(&loading);
    assert_int_equal(timeline(pair), 2);

    /* Nor at another start, though it stands first in the URL. */
    engine_close(pair->engine);
    postgres_synchronous(pair->primary, "");
    pair_open(pair);
    assert_int_equal(timeline(pair), 2);
    assert_ok(write_number(pair->engine, 900000, &err), &err);
    assert_string_equal(postgres_query(pair->standby, "SELECT count(*) FROM orrery.p_1 WHERE k ="
                                                      " '\\x00'::bytea || 'k00900000'"),
                        "1");
}

/* Nobody writes: who reads must leave it as well, and so must a sign of life. */
static void an_old_primary_that_lives_is_noticed(void **state)
{
    struct pair *pair = *state;
    struct error err;

    assert_ok(write_number(pair->engine, 1, &err), &err);
    postgres_promote(pair->standby);
    while (timeline(pair) != 2) {
        (void)!engine_ping(pair->engine, 1000, &err);
        pause_briefly();
    }
    assert_true(number_is_there(pair, 1));
    assert_ok(write_number(pair->engine, 2, &err), &err);
    assert_true(number_is_there(pair, 2));
    assert_string_equal(postgres_query(pair->primary, "SELECT count(*) FROM orrery.p_1"), "1");
}

/* A snapshot of the old primary and a commit on the new one would make a lost update. */
static void a_snapshot_does_not_outlive_its_primary(void **state)
{
    struct pair *pair = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct engine_value value;
    struct error err;

    assert_ok(write_number(pair->engine, 1, &err), &err);
    assert_ok(engine_snapshot_new(pair->engine, &snapshot, &err), &err);
    postgres_promote(pair->standby);
    while (timeline(pair) != 2) {
        (void)!engine_ping(pair->engine, 1000, &err);
        pause_briefly();
    }
    assert_fails(engine_get(pair->engine, snapshot, 1, SLICE("k00000001"), ENGINE_READ_ANY,
                            pair->arena, &value, &err),
                 &err, ERROR_STORE_UNAVAILABLE);
}

static void a_standby_alone_is_refused_by_name(void **state)
{
    struct pair *pair = *state;
    struct engine *engine;
    struct error err;
    char url[sizeof pair->url];

    snprintf(url, sizeof url, "%s", postgres_url_of(&pair->standby, 1));
    assert_fails(engine_try(url, false, &engine, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.message, "standby"));
}

/* --- Losing ---------------------------------------------------------------------------------- */

static void what_a_standby_that_lagged_has_lost_is_said(void **state)
{
    struct pair *pair = *state;
    struct engine *engine;
    struct error err;

    for (unsigned i = 1; i <= 3; i++)
        assert_ok(write_number(pair->engine, i, &err), &err);
    until(pair->standby, "SELECT to_regclass('orrery.p_1') IS NOT NULL");
    until(pair->standby, "SELECT count(*) = 3 FROM orrery.p_1");
    standby_stop(pair, true);
    for (unsigned i = 4; i <= 8; i++)
        assert_ok(write_number(pair->engine, i, &err), &err);
    postgres_stop(pair->primary, POSTGRES_STOP_KILL);
    postgres_promote(pair->standby);
    assert_fails(write_number(pair->engine, 9, &err), &err, ERROR_STORE_LOST);
    assert_non_null(strstr(err.message, "5 transactions that were acknowledged"));
    assert_fails(write_number(pair->engine, 9, &err), &err, ERROR_STORE_LOST);
    assert_fails(engine_ping(pair->engine, 1000, &err), &err, ERROR_STORE_LOST);

    /* It is not forgotten by opening the node again. */
    engine_close(TAKE(pair->engine));
    assert_fails(engine_try(pair->url, false, &engine, &err), &err, ERROR_STORE_LOST);
    assert_ok(engine_try(pair->url, true, &pair->engine, &err), &err);
    assert_true(engine_has_lost(pair->engine));
    assert_ok(engine_loss_accept(pair->engine, &err), &err);
    assert_false(engine_has_lost(pair->engine));
    engine_close(pair->engine);
    pair_open(pair);
    assert_true(number_is_there(pair, 3));
    assert_false(number_is_there(pair, 4));
    assert_ok(write_number(pair->engine, 9, &err), &err);
}

static void what_is_required_to_be_replicated_is_not_written_alone(void **state)
{
    struct pair *pair = *state;
    struct error err;
    size_t len;

    engine_close(pair->engine);
    len = strlen(pair->url);
    snprintf(pair->url + len, sizeof pair->url - len, "&replicated=require");
    pair_open(pair);
    assert_fails(write_number(pair->engine, 1, &err), &err, ERROR_STORE_UNREPLICATED);
    assert_false(number_is_there(pair, 1));
    postgres_synchronous(pair->primary, "s1");
    while (!write_number(pair->engine, 1, &err)) /* its session reads the setting now and then */
        assert_int_equal(err.code, ERROR_STORE_UNREPLICATED);
    assert_true(number_is_there(pair, 1));
    postgres_synchronous(pair->primary, "");
    while (write_number(pair->engine, 2, &err))
        pause_briefly();
    assert_int_equal(err.code, ERROR_STORE_UNREPLICATED);
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(a_write_is_neither_acknowledged_nor_shown_before_the_standby_has_it),
        PAIR(a_cancelled_wait_for_the_standby_is_no_success),
        PAIR(a_session_that_waits_for_the_standby_is_left_alone),
        PAIR(what_a_restarted_primary_alone_has_is_not_shown),
        PAIR(a_promotion_under_load_loses_nothing),
        PAIR(a_primary_that_was_cut_off_is_left_for_the_new_one),
        PAIR(an_old_primary_that_lives_is_noticed),
        PAIR(a_snapshot_does_not_outlive_its_primary),
        PAIR(a_standby_alone_is_refused_by_name),
        cmocka_unit_test_setup_teardown(what_a_standby_that_lagged_has_lost_is_said,
                                        setup_asynchronous, teardown),
        cmocka_unit_test_setup_teardown(what_is_required_to_be_replicated_is_not_written_alone,
                                        setup_asynchronous, teardown),
    };

    return cmocka_run_group_tests_name("pg_failover", tests, NULL, NULL);
}
