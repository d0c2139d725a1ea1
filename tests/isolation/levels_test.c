/* Consistency levels on a node with a standby: clients that write and read at every level while the
 * standby stops replaying, primaries are killed and standbys take over. What they saw goes to the
 * checker of levels, which is held to account by histories by hand, and by standbys that are
 * believed without their proofs. */
#include "engine/guard.h"
#include "isolation/levels.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/postgres.h"
#include "support/space.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    STALENESS_MS = 400,
    STALENESS_LSNS = 6,
    BEAT_MS = 20,
    FAILOVER_MS = 60000,
    ROUNDS = 3,
    SERVED = 100, /* reads of a level by the standby, before anything is disturbed */
    LOOK_NS = 2 * 1000 * 1000,
    EVENTS_MAX = 200000,
};

/* --- Histories by hand ------------------------------------------------------------------------ */

static const struct levels_write hand_writes[] = {
    {.client = 0, .item = 0, .version = 1, .lsn = 1, .acked_ms = 100},
    {.client = 1, .item = 1, .version = 1, .lsn = 2, .acked_ms = 200},
    {.client = 0, .item = 0, .version = 2, .lsn = 3, .acked_ms = 300},
    {.client = 1, .item = 1, .version = 2, .lsn = 4, .acked_ms = 400},
};

static struct levels_report hand_check(const struct levels_read *reads, size_t count)
{
    struct levels_history history = {.writes = hand_writes,
                                     .write_count = ARRAY_LEN(hand_writes),
                                     .reads = reads,
                                     .read_count = count,
                                     .staleness_ms = 250,
                                     .staleness_lsns = 2};
    struct levels_report report;

    levels_check(&history, &report);
    return report;
}

static struct levels_report hand_read(uint32_t client, enum item_level level, int64_t began_ms,
                                      uint64_t first, uint64_t second)
{
    struct levels_read read = {
        .client = client, .level = level, .began_ms = began_ms, .versions = {first, second}};

    return hand_check(&read, 1);
}

static void good_reads_of_every_level_pass(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_STRONG, 500, 2, 2).faults, 0);
    assert_int_equal(hand_read(2, ITEM_BOUNDED, 500, 2, 1).faults, 0);
    assert_int_equal(hand_read(1, ITEM_SESSION, 350, 1, 1).faults, 0);
    assert_int_equal(hand_read(2, ITEM_PREFIX, 500, 1, 0).faults, 0);
    assert_int_equal(hand_read(2, ITEM_EVENTUAL, 500, 0, 0).faults, 0);
}

static void a_version_that_is_not_there_is_named(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_EVENTUAL, 500, 3, 2).counts[LEVELS_UNWRITTEN], 1);
}

static void a_read_of_no_one_moment_is_named(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_PREFIX, 500, 2, 0).counts[LEVELS_TORN], 1);
}

static void a_strong_read_that_missed_an_acknowledged_write_is_named(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_STRONG, 500, 2, 1).counts[LEVELS_STALE], 1);
}

static void a_bounded_read_that_is_too_old_is_named(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_BOUNDED, 600, 1, 1).counts[LEVELS_OLD], 1);
    assert_int_equal(hand_read(2, ITEM_BOUNDED, 500, 1, 1).counts[LEVELS_OLD], 0);
}

static void a_bounded_read_that_is_too_many_commits_behind_is_named(void **state UNUSED)
{
    assert_int_equal(hand_read(2, ITEM_BOUNDED, 410, 1, 1).counts[LEVELS_BEHIND], 0);
    assert_int_equal(hand_read(2, ITEM_BOUNDED, 410, 1, 0).counts[LEVELS_BEHIND], 1);
}

static void a_session_that_missed_its_own_write_or_went_back_is_named(void **state UNUSED)
{
    const struct levels_read back[] = {
        {.client = 2, .level = ITEM_SESSION, .began_ms = 500, .versions = {2, 2}},
        {.client = 2, .level = ITEM_SESSION, .began_ms = 600, .versions = {2, 1}},
    };

    assert_int_equal(hand_read(0, ITEM_SESSION, 350, 1, 1).counts[LEVELS_FORGOT], 1);
    assert_int_equal(hand_check(back, ARRAY_LEN(back)).counts[LEVELS_FORGOT], 1);
}

/* --- A node with a standby -------------------------------------------------------------------- */

struct world {
    struct postgres *primary, *standby;
    struct engine_standbys *standbys; /* borrowed from the guard */
    struct test_space test;
    char url[900];
    struct partition_key key;
    struct items_reference references[LEVELS_ITEMS];
    char ids[LEVELS_ITEMS][8];

    struct mutex lock; /* under it: */
    struct levels_write *writes;
    struct levels_read *reads;
    size_t write_count, read_count;

    atomic_bool is_over;
    atomic_uint_fast64_t done;                          /* operations of clients */
    atomic_uint_fast64_t by_standby[ITEM_EVENTUAL + 1]; /* reads, by level */
    unsigned failovers;
};

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

static struct engine *guard_start(struct world *world)
{
    struct engine_guard_options options = {
        .name = "a",
        .url = slice_of_text(world->url),
        .inner = {.connections_max = 8},
        .answer_ms = 1000,
        .failover_ms = FAILOVER_MS,
        .failover_calls = 64,
    };
    struct engine *guard;
    struct error err;

    world->standbys = engine_standbys_new(&options, BEAT_MS);
    assert_non_null(world->standbys);
    options.inner.beats = engine_standbys_beats(world->standbys);
    guard = engine_guard_new(&options);
    engine_guard_hang(guard, world->standbys);
    assert_ok(engine_guard_open(guard, &err), &err);
    engine_guard_keep(guard, NULL, false);
    return guard;
}

static void world_init(struct world *world)
{
    struct postgres *both[2];

    *world = (struct world){.primary = postgres_start(false)};
    (void)postgres_fresh_url(world->primary);
    world->standby = postgres_start_standby(world->primary, "s0");
    postgres_synchronous(world->primary, "s0");
    both[0] = world->primary;
    both[1] = world->standby;
    (void)snprintf(world->url, sizeof world->url, "%s", postgres_url_of(both, 2));
    test_space_init(&world->test, guard_start(world), &(struct test_space_options){0});
    world->test.space.clock = &clock_system;
    world->key = test_space_key(&world->test, "[\"p\"]");
    for (size_t i = 0; i < LEVELS_ITEMS; i++) {
        (void)snprintf(world->ids[i], sizeof world->ids[i], "i%zu", i);
        world->references[i] =
            (struct items_reference){world->key, document_string(slice_of_text(world->ids[i]))};
    }
    mutex_init(&world->lock);
    world->writes = memory_alloc(sizeof *world->writes * EVENTS_MAX);
    world->reads = memory_alloc(sizeof *world->reads * EVENTS_MAX);
}

static void world_done(struct world *world)
{
    test_space_done(&world->test);
    mutex_done(&world->lock);
    memory_free(world->writes);
    memory_free(world->reads);
    postgres_free(world->standby);
    postgres_free(world->primary);
}

static struct levels_report world_check(const struct world *world)
{
    struct levels_history history = {.writes = world->writes,
                                     .write_count = world->write_count,
                                     .reads = world->reads,
                                     .read_count = world->read_count,
                                     .staleness_ms = STALENESS_MS,
                                     .staleness_lsns = STALENESS_LSNS};
    struct levels_report report;

    levels_check(&history, &report);
    return report;
}

/* The standby takes what comes, and shows nothing of it. */
static void freeze(struct world *world)
{
    (void)postgres_query(world->standby, "SELECT pg_wal_replay_pause()");
    while (strcmp(postgres_query(world->standby, "SELECT pg_get_wal_replay_pause_state()"),
                  "paused") != 0)
        pause_briefly();
}

static void thaw(struct world *world)
{
    (void)postgres_query(world->standby, "SELECT pg_wal_replay_resume()");
}

static void fail_over(struct world *world)
{
    struct postgres *before = world->primary;
    char name[16];

    (void)snprintf(name, sizeof name, "s%u", ++world->failovers);
    postgres_stop(before, world->failovers % 2 ? POSTGRES_STOP_KILL : POSTGRES_STOP_IMMEDIATE);
    postgres_promote(world->standby);
    world->primary = world->standby;
    world->standby = before;
    postgres_restart_standby(world->standby, world->primary, name);
    postgres_synchronous(world->primary, name);
}

/* --- Clients ---------------------------------------------------------------------------------- */

struct client {
    struct world *world;
    struct thread thread;
    uint32_t index; /* also of its item */
    uint64_t version;
    uint64_t token; /* LSN that its session has seen */
    size_t refused;
};

static void write_note(struct client *client, uint64_t lsn)
{
    struct world *world = client->world;

    client->token = MAX(client->token, lsn);
    WITH_LOCK (&world->lock) {
        assert_true(world->write_count < EVENTS_MAX);
        world->writes[world->write_count++] =
            (struct levels_write){.client = client->index,
                                  .item = client->index,
                                  .version = client->version,
                                  .lsn = lsn,
                                  .acked_ms = clock_monotonic_ms()};
    }
}

static uint64_t version_of(const struct item *item)
{
    struct document_value value;
    int64_t version = 0;

    if (!item->document.data)
        return 0;
    assert_true(document_find(item->document, SLICE("v"), &value) &&
                document_to_int64(&value, &version));
    return (uint64_t)version;
}

/* All items as they are at some moment that the level allows. False: it was turned away. */
static bool look(struct client *client, enum item_level level, struct arena *arena,
                 struct item *ret_items, bool *ret_standby)
{
    struct world *world = client->world;
    struct item_space space = world->test.space;
    struct item_token token = {1, client->token};
    struct item_reading_options options = {.level = level,
                                           .staleness_ms = STALENESS_MS,
                                           .staleness_lsns = STALENESS_LSNS,
                                           .tokens = &token,
                                           .token_count = level == ITEM_SESSION};
    CLEANUP(item_reading_end) struct item_reading *reading = item_reading_begin(&space, &options);
    struct item_served served;
    struct error err;
    uint64_t lsn;
    bool fine = false;

    for (int i = 0; i < 2 && !fine; i++) { /* again where a standby was lost in the middle */
        fine = items_read_many(&space, world->references, LEVELS_ITEMS, arena, ret_items, &err);
        if (!fine && !engine_reader_may_repeat(&err))
            break;
    }
    if (!fine) {
        assert_true(err.code == ERROR_NODE_DOWN || err.code == ERROR_STORE_UNAVAILABLE);
        client->refused++;
        return false;
    }
    *ret_standby = item_reading_served(reading, 1, &served);
    if (level == ITEM_SESSION) {
        if (*ret_standby)
            lsn = served.lsn;
        else
            assert_ok(commit_partition_lsn(world->test.commit, 1, &lsn, &err), &err);
        client->token = MAX(client->token, lsn);
    }
    return true;
}

static bool client_read(struct client *client, enum item_level level, struct arena *arena)
{
    struct world *world = client->world;
    struct levels_read read = {
        .client = client->index, .level = level, .began_ms = clock_monotonic_ms()};
    struct item items[LEVELS_ITEMS];
    bool standby = false;

    if (!look(client, level, arena, items, &standby))
        return false;
    read.ended_ms = clock_monotonic_ms();
    for (size_t i = 0; i < LEVELS_ITEMS; i++)
        read.versions[i] = version_of(&items[i]);
    if (standby)
        world->by_standby[level]++;
    WITH_LOCK (&world->lock) {
        assert_true(world->read_count < EVENTS_MAX);
        world->reads[world->read_count++] = read;
    }
    return standby;
}

/* What became of a write that nobody was told of: its item says so, as soon as it can be read. */
static void write_find_out(struct client *client, struct arena *arena)
{
    struct item items[LEVELS_ITEMS];
    bool standby;

    while (!look(client, ITEM_STRONG, arena, items, &standby))
        pause_briefly();
    if (version_of(&items[client->index]) == client->version)
        write_note(client, items[client->index].header.lsn);
    else
        client->version--; /* it never was */
}

static void client_write(struct client *client, struct arena *arena)
{
    struct world *world = client->world;
    struct item_operation op = {.space = &world->test.space,
                                .arena = arena,
                                .verb = ITEM_UPSERT,
                                .key = world->key,
                                .id = world->references[client->index].id};
    char json[64];
    struct error err;

    (void)snprintf(json, sizeof json, "{\"id\":\"%s\",\"pk\":\"p\",\"v\":%llu}",
                   world->ids[client->index], (unsigned long long)++client->version);
    op.document = document_of(arena, json);
    if (item_operation_run(&op, &err))
        write_note(client, op.result.lsn);
    else
        write_find_out(client, arena);
}

static void client_main(void *context)
{
    struct client *client = context;
    struct world *world = client->world;

    for (unsigned i = 0; !atomic_load(&world->is_over); i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();

        if (i % 3 == 0)
            client_write(client, arena);
        (void)client_read(client, (enum item_level)(i % (ITEM_EVENTUAL + 1)), arena);
        atomic_fetch_add(&world->done, 1);
    }
}

/* --- Runs ------------------------------------------------------------------------------------- */

static void until_done(struct world *world, uint64_t more)
{
    uint64_t wanted = atomic_load(&world->done) + more;

    while (atomic_load(&world->done) < wanted)
        pause_briefly();
}

/* The standby is good enough for this level, that many times more. */
static void until_served(struct world *world, enum item_level level, uint64_t more)
{
    uint64_t wanted = atomic_load(&world->by_standby[level]) + more;

    while (atomic_load(&world->by_standby[level]) < wanted)
        pause_briefly();
}

static void levels_hold_while_standbys_lag_and_take_over(void **state UNUSED)
{
    size_t factor = getenv("HISTORY_FACTOR") ? strtoul(getenv("HISTORY_FACTOR"), NULL, 10) : 1;
    struct client clients[LEVELS_ITEMS];
    struct levels_report report;
    struct world world;

    world_init(&world);
    for (uint32_t i = 0; i < LEVELS_ITEMS; i++) {
        clients[i] = (struct client){.world = &world, .index = i};
        thread_start(&clients[i].thread, "client", client_main, &clients[i]);
    }
    for (size_t round = 0; round < ROUNDS * factor; round++) {
        for (enum item_level level = ITEM_BOUNDED; level <= ITEM_EVENTUAL; level++)
            until_served(&world, level, SERVED);
        freeze(&world);
        until_done(&world, 200);
        until_served(&world, ITEM_EVENTUAL, SERVED);
        thaw(&world);
        until_served(&world, ITEM_SESSION, SERVED);
        fail_over(&world);
        until_done(&world, 100);
    }
    atomic_store(&world.is_over, true);
    for (size_t i = 0; i < LEVELS_ITEMS; i++)
        thread_join(&clients[i].thread);
    report = world_check(&world);
    print_message(
        "# %zu writes, %zu reads, of them by a standby: %llu bounded, %llu session, %llu "
        "prefix, %llu eventual; %u failovers; %zu objections\n",
        world.write_count, world.read_count, (unsigned long long)world.by_standby[ITEM_BOUNDED],
        (unsigned long long)world.by_standby[ITEM_SESSION],
        (unsigned long long)world.by_standby[ITEM_PREFIX],
        (unsigned long long)world.by_standby[ITEM_EVENTUAL], world.failovers, report.faults);
    for (enum engine_fallback why = 0; why < ENGINE_FALLBACKS; why++)
        print_message("# answered by the primary, %s: %llu\n", engine_fallback_name(why),
                      (unsigned long long)engine_standbys_fallbacks(world.standbys, why));
    world_done(&world);
    if (report.faults)
        fail_msg("%s", report.first);
}

/* The same reads, with proofs and without. */
static void the_checker_objects_when_standbys_are_believed_without_proof(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct levels_report report;
    struct client client;
    struct world world;
    int64_t frozen_ms;

    world_init(&world);
    client = (struct client){.world = &world};
    client_write(&client, arena);
    while (!client_read(&client, ITEM_SESSION, arena))
        pause_briefly();
    freeze(&world);
    for (int i = 0; i < STALENESS_LSNS + 2; i++)
        client_write(&client, arena);
    frozen_ms = clock_monotonic_ms();
    while (clock_monotonic_ms() <= frozen_ms + STALENESS_MS)
        pause_briefly();
    assert_false(client_read(&client, ITEM_SESSION, arena));
    assert_false(client_read(&client, ITEM_BOUNDED, arena));
    report = world_check(&world);
    assert_int_equal(report.faults, 0);

    engine_standbys_trust(world.standbys, true);
    while (!client_read(&client, ITEM_SESSION, arena))
        pause_briefly();
    while (!client_read(&client, ITEM_BOUNDED, arena))
        pause_briefly();
    report = world_check(&world);
    assert_true(report.counts[LEVELS_FORGOT] > 0);
    assert_true(report.counts[LEVELS_OLD] > 0);
    assert_true(report.counts[LEVELS_BEHIND] > 0);
    thaw(&world);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_reads_of_every_level_pass),
        cmocka_unit_test(a_version_that_is_not_there_is_named),
        cmocka_unit_test(a_read_of_no_one_moment_is_named),
        cmocka_unit_test(a_strong_read_that_missed_an_acknowledged_write_is_named),
        cmocka_unit_test(a_bounded_read_that_is_too_old_is_named),
        cmocka_unit_test(a_bounded_read_that_is_too_many_commits_behind_is_named),
        cmocka_unit_test(a_session_that_missed_its_own_write_or_went_back_is_named),
        cmocka_unit_test(the_checker_objects_when_standbys_are_believed_without_proof),
        cmocka_unit_test(levels_hold_while_standbys_lag_and_take_over),
    };

    if (getenv("HISTORY_ONLY"))
        cmocka_set_test_filter(getenv("HISTORY_ONLY"));
    return cmocka_run_group_tests_name("consistency levels", tests, NULL, NULL);
}
