/* Random views, aggregates and joins with reference containers beside a container that moves,
 * through writes, faults, restarts, migrations and re-keys: at each quiet point they are what their
 * queries say. ORRERY_TEST_SEED repeats a run, ORRERY_TEST_STEPS sets its length,
 * ORRERY_TEST_ONLY names the tests to run. */
#include "property/beside.h"
#include "property/stores.h"
#include "support/check.h"

#include <stdlib.h>

enum { STEPS_MEMORY = 3000, STEPS_FAILING = 2000, STEPS_ROCKSDB = 600, STEPS_POSTGRESQL = 400 };
enum { CRASHES_MIN = 100, REKEYS_MIN = 20, KIND_MIN = 10, COMPARED_MIN = 50, JOINS_MIN = 100 };

struct fixture {
    uint64_t seed;
    unsigned steps;
    unsigned crashes;
    struct beside_counts counts; /* of all runs */
};

#define PLAIN "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}"
#define POLICY                                                                                     \
    ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/n/?\"}],"                                \
    "\"excludedPaths\":[{\"path\":\"/*\"}]}"
#define LOOKUP ",\"orrery\":{\"strategy\":{\"kind\":\"lookup\",\"shards\":8}}"
#define VERSIONS ",\"changeFeedPolicy\":{\"retentionDuration\":60}"

static const char *const plain[] = {PLAIN "}", PLAIN POLICY "}"};
static const char *const lookup[] = {PLAIN LOOKUP VERSIONS "}", PLAIN POLICY VERSIONS "}"};

static void run(struct fixture *fixture, const struct moving_store *store,
                const char *const *bodies, unsigned steps)
{
    struct beside_counts *all = &fixture->counts;
    const struct beside_counts *counts;
    struct moving moving;

    print_message("# seed %llu\n", (unsigned long long)fixture->seed);
    moving_init(&moving, store, bodies, fixture->seed);
    moving_keep_beside(&moving);
    while (moving.step < (fixture->steps ? fixture->steps : steps))
        moving_step(&moving);
    moving_check(&moving);
    counts = beside_counts(moving.beside);
    print_message("# %u steps, %u crashes, %u failures of a node, %u re-keys of the source; beside "
                  "it %u writes, %u rounds of views, %u joins with %u rows, %u other queries, %u "
                  "views made, %u dropped, %u histories cut, %u splits, %u merges, %u moves, %u "
                  "isolations, %u re-keys; %u views compared\n",
                  moving.step, moving.crashes, moving.failures, moving.migrations[MIGRATION_REKEY],
                  counts->writes, counts->rounds, counts->joins, counts->joined, counts->queries,
                  counts->made, counts->dropped, counts->trims, counts->migrations[MIGRATION_SPLIT],
                  counts->migrations[MIGRATION_MERGE], counts->migrations[MIGRATION_MOVE],
                  counts->migrations[MIGRATION_ISOLATE], counts->migrations[MIGRATION_REKEY],
                  counts->checked);
    fixture->crashes += moving.crashes;
    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        all->migrations[i] += counts->migrations[i];
    all->joins += counts->joins;
    all->checked += counts->checked;
    all->queries += counts->queries;
    all->dropped += counts->dropped;
    moving_done(&moving);
}

static void views_of_a_container_that_moves_in_memory_are_what_their_queries_say(void **state)
{
    run(*state, &stores_memory, plain, STEPS_MEMORY);
}

static void views_of_a_container_with_a_directory_are_what_their_queries_say(void **state)
{
    run(*state, &stores_memory, lookup, STEPS_MEMORY);
}

static void views_outlive_a_node_that_fails_and_comes_back(void **state)
{
    run(*state, &stores_memory_failing, plain, STEPS_FAILING);
}

static void views_on_disks_are_what_their_queries_say(void **state)
{
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, NULL);

    run(*state, &store, plain, STEPS_ROCKSDB);
}

static void views_between_a_disk_and_a_postgresql_server_are_what_their_queries_say(void **state)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    CLEANUP(stores_done) struct stores stores;
    struct moving_store store = stores_on_disk(&stores, postgres);

    run(*state, &store, plain, STEPS_POSTGRESQL);
}

static void the_runs_did_everything_often_enough(void **state)
{
    const struct fixture *fixture = *state;

    if (fixture->steps)
        skip();
    assert_true(fixture->crashes >= CRASHES_MIN);
    assert_true(fixture->counts.migrations[MIGRATION_REKEY] >= REKEYS_MIN);
    assert_true(fixture->counts.migrations[MIGRATION_SPLIT] >= KIND_MIN);
    assert_true(fixture->counts.migrations[MIGRATION_MERGE] >= KIND_MIN);
    assert_true(fixture->counts.migrations[MIGRATION_MOVE] >= KIND_MIN);
    assert_true(fixture->counts.queries >= KIND_MIN);
    assert_true(fixture->counts.dropped >= 10);
    assert_true(fixture->counts.checked >= COMPARED_MIN);
    assert_true(fixture->counts.joins >= JOINS_MIN);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_a_container_that_moves_in_memory_are_what_their_queries_say),
        cmocka_unit_test(views_of_a_container_with_a_directory_are_what_their_queries_say),
        cmocka_unit_test(views_outlive_a_node_that_fails_and_comes_back),
        cmocka_unit_test(views_on_disks_are_what_their_queries_say),
        cmocka_unit_test(views_between_a_disk_and_a_postgresql_server_are_what_their_queries_say),
        cmocka_unit_test(the_runs_did_everything_often_enough),
    };
    struct fixture fixture = {.steps = (unsigned)stores_number("ORRERY_TEST_STEPS", 0)};
    uint64_t random;

    random_secret(&random, sizeof random);
    fixture.seed = stores_number("ORRERY_TEST_SEED", random % 1000000000);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tests[i].initial_state = &fixture;
    if (getenv("ORRERY_TEST_ONLY"))
        cmocka_set_test_filter(getenv("ORRERY_TEST_ONLY"));
    return cmocka_run_group_tests_name("views beside partitions that move", tests, NULL, NULL);
}
