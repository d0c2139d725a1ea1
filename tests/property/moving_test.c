/* Random writes, splits, merges, moves, isolations, edits of directories, re-keys, cancellations,
 * faults and restarts, in containers of every strategy, and everything compared. ORRERY_TEST_SEED
 * repeats a run, ORRERY_TEST_STEPS sets its length, ORRERY_TEST_ONLY names the tests to run. */
#include "property/moving.h"
#include "property/stores.h"
#include "support/check.h"

#include <stdlib.h>

enum { STEPS_MEMORY = 6000, STEPS_ROCKSDB = 1500, STEPS_POSTGRESQL = 1000, KIND_MIN = 20 };
enum { STEPS_SPREAD = 3000, STEPS_SPREAD_ROCKSDB = 800 };
enum { STEPS_PLACED = 2000, STEPS_PLACED_ROCKSDB = 500 };
enum { STEPS_FAILING = 3000, STEPS_FAILING_ROCKSDB = 1500, STEPS_KILLED = 1500, FAILURES_MIN = 20 };

/* Where the nodes are. */
enum pair { PAIR_MEMORY, PAIR_ROCKSDB, PAIR_ROCKSDB_POSTGRESQL, PAIRS };

/* What all runs of a pair came to. */
struct tally {
    unsigned migrations[MIGRATION_KINDS], crashes, fenced_crashes, failures;
};

struct fixture {
    uint64_t seed;
    unsigned steps;
    struct tally tallies[PAIRS];
};

#define POLICY                                                                                     \
    ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/n/?\"}],"                                \
    "\"excludedPaths\":[{\"path\":\"/*\"}]}"
#define PLAIN "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}"
#define RICH                                                                                       \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":1},"                          \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\",\"/v\"]}]},\"defaultTtl\":-1,"    \
    "\"changeFeedPolicy\":{\"retentionDuration\":60}"

/* Another policy is one with indexes besides, which are built and dropped all the time. */
#define UNINDEXED ",\"orrery\":{\"indexes\":[]}"
#define INDEXED                                                                                    \
    ",\"orrery\":{\"indexes\":["                                                                   \
    "{\"name\":\"n\",\"key\":[{\"path\":\"/n\",\"order\":\"descending\"},{\"path\":\"/v\"}]},"     \
    "{\"name\":\"one\",\"unique\":\"logicalPartition\",\"key\":[{\"path\":\"/id\"}]},"             \
    "{\"name\":\"each\",\"order\":\"mongo\",\"multikey\":true,\"key\":[{\"path\":\"/tags\"}]}]}"

static const char *const plain[] = {PLAIN UNINDEXED "}", PLAIN POLICY INDEXED "}"};
static const char *const rich[] = {RICH "}", RICH POLICY "}"};

#define RANGE ",\"orrery\":{\"strategy\":{\"kind\":\"range\",\"bounds\":[\"k2\"]}}"
#define LOOKUP ",\"orrery\":{\"strategy\":{\"kind\":\"lookup\",\"shards\":8}}"

static const char *const range[] = {RICH RANGE "}", RICH POLICY "}"};
static const char *const lookup[] = {PLAIN LOOKUP "}", PLAIN POLICY "}"};
static const char *const lookup_rich[] = {RICH LOOKUP "}", RICH POLICY "}"};

/* Entries that lie with another key than their item: by one index or by two of them, so that such
 * entries come and go all the time and the container is always on one node. */
#define PLACED "{\"name\":\"to\",\"placed\":\"/to\",\"key\":[{\"path\":\"/n\"},{\"path\":\"/id\"}]}"
#define PLACED_SOME                                                                                \
    "{\"name\":\"some\",\"placed\":\"/to\",\"key\":[{\"path\":\"/id\"},{\"path\":\"/pk\"}],"       \
    "\"filter\":[{\"path\":\"/n\",\"comparison\":\"greater\",\"value\":4}]}"

static const char *const placed[] = {PLAIN ",\"orrery\":{\"indexes\":[" PLACED "]}}", PLAIN POLICY
                                     ",\"orrery\":{\"indexes\":[" PLACED_SOME "," PLACED "]}}"};
static const char *const placed_lookup[] = {
    PLAIN ",\"orrery\":{\"strategy\":{\"kind\":\"lookup\",\"shards\":8},\"indexes\":[" PLACED "]}}",
    PLAIN ",\"orrery\":{\"indexes\":[" PLACED_SOME "]}}"};

/* Without what takes whole keys, so that keys are spread and gathered. */
#define KEPT ",\"defaultTtl\":-1,\"changeFeedPolicy\":{\"retentionDuration\":60}"
static const char *const spread[] = {PLAIN "}", PLAIN POLICY "}"};
#define COMPOSITE                                                                                  \
    ",\"indexingPolicy\":{\"compositeIndexes\":[[{\"path\":\"/n\"},{\"path\":\"/id\","             \
    "\"order\":\"descending\"}]]}"
static const char *const spread_rich[] = {PLAIN KEPT COMPOSITE "}", PLAIN KEPT POLICY "}"};

static void tally_add(struct tally *tally, const struct moving *moving)
{
    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        tally->migrations[i] += moving->migrations[i];
    tally->crashes += moving->crashes;
    tally->fenced_crashes += moving->fenced_crashes;
    tally->failures += moving->failures;
}

/* Goes on beyond its steps until each of the kinds it is to complete was begun often enough, by all
 * runs of its pair. */
enum {
    COMPLETES_NOTHING = 0,
    COMPLETES_EDITS = 1 << MIGRATION_REROUTE,
    COMPLETES_CUTS = 1 << MIGRATION_SPLIT | 1 << MIGRATION_MERGE | 1 << MIGRATION_MOVE |
                     1 << MIGRATION_ISOLATE | 1 << MIGRATION_COPY,
    COMPLETES_SPREADS = 1 << MIGRATION_SPREAD | 1 << MIGRATION_GATHER,
};

static bool is_complete(const struct tally *tally, const struct moving *moving, unsigned kinds)
{
    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        if (kinds >> i & 1 && tally->migrations[i] + moving->migrations[i] < KIND_MIN)
            return false;
    return true;
}

static void run(struct fixture *fixture, enum pair pair, const struct moving_store *store,
                const char *const *bodies, unsigned steps, unsigned completes)
{
    struct moving moving;

    print_message("# seed %llu\n", (unsigned long long)fixture->seed);
    moving_init(&moving, store, bodies, fixture->seed);
    if (fixture->steps) {
        steps = fixture->steps;
        completes = COMPLETES_NOTHING;
    }
    while (moving.step < steps || !is_complete(&fixture->tallies[pair], &moving, completes))
        moving_step(&moving);
    moving_check(&moving);
    print_message(
        "# %u steps, %u splits, %u merges, %u moves, %u isolations, %u cancelled, %u "
        "crashes, %u of them behind a fence, %u policies, %u changes seen, %u edits, %u "
        "re-keys, %u spreads, %u gatherings, %u changes seen again\n",
        moving.step, moving.migrations[MIGRATION_SPLIT], moving.migrations[MIGRATION_MERGE],
        moving.migrations[MIGRATION_MOVE], moving.migrations[MIGRATION_ISOLATE], moving.cancelled,
        moving.crashes, moving.fenced_crashes, moving.policies, moving.changes_seen,
        moving.migrations[MIGRATION_REROUTE], moving.migrations[MIGRATION_REKEY],
        moving.migrations[MIGRATION_SPREAD], moving.migrations[MIGRATION_GATHER], moving.repeats);
    if (store->takes_away) {
        print_message("# the second node failed %u times, was away at %u starts, and %u calls were "
                      "refused\n",
                      moving.failures, moving.away_at_start, moving.refused);
        if (!fixture->steps) {
            assert_true(moving.failures >= FAILURES_MIN);
            assert_true(moving.refused > 0);
        }
    }
    tally_add(&fixture->tallies[pair], &moving);
    moving_done(&moving);
}

/* --- Memory ---------------------------------------------------------------------------------- */

static void a_plain_container_moves_about_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, plain, STEPS_MEMORY, COMPLETES_NOTHING);
}

static void a_container_that_keeps_versions_moves_about_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, rich, STEPS_MEMORY, COMPLETES_NOTHING);
}

static void a_container_moves_about_while_a_node_fails_and_comes_back(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory_failing, rich, STEPS_FAILING, COMPLETES_NOTHING);
}

static void a_container_of_ranges_moves_about_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, range, STEPS_MEMORY, COMPLETES_NOTHING);
}

static void a_directory_is_edited_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, lookup, STEPS_MEMORY, COMPLETES_NOTHING);
}

static void a_directory_is_edited_where_versions_are_kept(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, lookup_rich, STEPS_MEMORY, COMPLETES_NOTHING);
}

static void keys_are_spread_and_gathered_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, spread, STEPS_SPREAD, COMPLETES_SPREADS);
}

static void keys_are_spread_where_versions_are_kept(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, spread_rich, STEPS_SPREAD, COMPLETES_SPREADS);
}

static void entries_that_lie_elsewhere_move_about_in_memory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, placed, STEPS_PLACED, COMPLETES_NOTHING);
}

static void entries_that_lie_elsewhere_follow_a_directory(void **state)
{
    run(*state, PAIR_MEMORY, &stores_memory, placed_lookup, STEPS_PLACED, COMPLETES_NOTHING);
}

/* --- Disks and servers ----------------------------------------------------------------------- */

static void a_container_moves_about_on_disks(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, NULL);

    run(*state, PAIR_ROCKSDB, &store, rich, STEPS_ROCKSDB, COMPLETES_NOTHING);
}

static void keys_are_spread_and_gathered_on_a_disk(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, NULL);

    run(*state, PAIR_ROCKSDB, &store, spread_rich, STEPS_SPREAD_ROCKSDB, COMPLETES_SPREADS);
}

static void entries_that_lie_elsewhere_move_about_on_a_disk(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, NULL);

    run(*state, PAIR_ROCKSDB, &store, placed, STEPS_PLACED_ROCKSDB, COMPLETES_NOTHING);
}

static void a_directory_is_edited_on_disks(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, NULL);

    run(*state, PAIR_ROCKSDB, &store, lookup_rich, STEPS_ROCKSDB, COMPLETES_EDITS);
}

static void a_directory_is_edited_between_a_disk_and_a_postgresql_server(void **state)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, postgres);

    run(*state, PAIR_ROCKSDB_POSTGRESQL, &store, lookup, STEPS_POSTGRESQL, COMPLETES_EDITS);
}

/* --- Nodes that fail ------------------------------------------------------------------------- */

static void a_container_moves_about_on_disks_of_which_one_fails(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_failing(&stores, NULL);

    run(*state, PAIR_ROCKSDB, &store, plain, STEPS_FAILING_ROCKSDB, COMPLETES_CUTS);
}

static void a_container_moves_about_while_a_postgresql_server_is_killed_and_restarted(void **state)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_failing(&stores, postgres);

    run(*state, PAIR_ROCKSDB_POSTGRESQL, &store, plain, STEPS_KILLED, COMPLETES_CUTS);
}

/* --- All of them ----------------------------------------------------------------------------- */

/* Re-keys take long; to spread a key is of one node, whichever the other is. */
static unsigned kind_min(enum pair pair, enum migration_kind kind)
{
    bool spreads = kind == MIGRATION_SPREAD || kind == MIGRATION_GATHER;

    return (kind == MIGRATION_REKEY && pair != PAIR_MEMORY) ||
                   (spreads && pair == PAIR_ROCKSDB_POSTGRESQL)
               ? 1
               : KIND_MIN;
}

/* With every pair of nodes. The history checker (tests/isolation) adds as many crashes again. */
static void the_runs_did_everything_often_enough(void **state)
{
    static const char *const names[PAIRS] = {"memory", "rocksdb", "rocksdb and postgresql"};
    static const unsigned crashes_min[PAIRS] = {100, 50, 20};
    const struct fixture *fixture = *state;

    if (fixture->steps)
        skip();
    for (size_t pair = 0; pair < PAIRS; pair++) {
        const struct tally *tally = &fixture->tallies[pair];
        unsigned sum = 0;

        for (size_t i = 0; i < MIGRATION_KINDS; i++)
            sum += tally->migrations[i];
        print_message(
            "# %s: %u migrations (%u splits, %u merges, %u moves, %u isolations, %u edits, "
            "%u re-keys, %u copies, %u spreads, %u gatherings), %u crashes, %u failures of a "
            "node\n",
            names[pair], sum, tally->migrations[MIGRATION_SPLIT],
            tally->migrations[MIGRATION_MERGE], tally->migrations[MIGRATION_MOVE],
            tally->migrations[MIGRATION_ISOLATE], tally->migrations[MIGRATION_REROUTE],
            tally->migrations[MIGRATION_REKEY], tally->migrations[MIGRATION_COPY],
            tally->migrations[MIGRATION_SPREAD], tally->migrations[MIGRATION_GATHER],
            tally->crashes, tally->failures);
        for (size_t i = 0; i < MIGRATION_KINDS; i++)
            assert_true(tally->migrations[i] >= kind_min((enum pair)pair, (enum migration_kind)i));
        assert_true(pair != PAIR_MEMORY || sum >= 200);
        assert_true(tally->crashes >= crashes_min[pair]);
        assert_true(pair != PAIR_MEMORY || tally->fenced_crashes >= 1);
        assert_true(tally->failures >= FAILURES_MIN);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_container_moves_about_in_memory),
        cmocka_unit_test(a_container_that_keeps_versions_moves_about_in_memory),
        cmocka_unit_test(a_container_of_ranges_moves_about_in_memory),
        cmocka_unit_test(a_directory_is_edited_in_memory),
        cmocka_unit_test(a_directory_is_edited_where_versions_are_kept),
        cmocka_unit_test(keys_are_spread_and_gathered_in_memory),
        cmocka_unit_test(keys_are_spread_where_versions_are_kept),
        cmocka_unit_test(entries_that_lie_elsewhere_move_about_in_memory),
        cmocka_unit_test(entries_that_lie_elsewhere_follow_a_directory),
        cmocka_unit_test(a_container_moves_about_on_disks),
        cmocka_unit_test(keys_are_spread_and_gathered_on_a_disk),
        cmocka_unit_test(entries_that_lie_elsewhere_move_about_on_a_disk),
        cmocka_unit_test(a_directory_is_edited_on_disks),
        cmocka_unit_test(a_directory_is_edited_between_a_disk_and_a_postgresql_server),
        cmocka_unit_test(a_container_moves_about_while_a_node_fails_and_comes_back),
        cmocka_unit_test(a_container_moves_about_on_disks_of_which_one_fails),
        cmocka_unit_test(a_container_moves_about_while_a_postgresql_server_is_killed_and_restarted),
        cmocka_unit_test(the_runs_did_everything_often_enough),
    };
    struct fixture fixture = {.steps = (unsigned)stores_number("ORRERY_TEST_STEPS", 0)};
    uint64_t random;

    random_secret(&random, sizeof random);
    fixture.seed = stores_number("ORRERY_TEST_SEED", random % 1000000000);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tests[i].initial_state = &fixture;
    if (getenv("ORRERY_TEST_ONLY"))
        cmocka_set_test_filter(getenv("ORRERY_TEST_ONLY"));
    return cmocka_run_group_tests_name("partitions that move", tests, NULL, NULL);
}
