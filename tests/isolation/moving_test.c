/* Concurrent clients on a container about which everything changes: its partitions split, merge,
 * move and are isolated, keys are placed elsewhere by its directory, or spread over several
 * partitions and gathered, it gets another strategy, a node fails and comes back, writes are left
 * unknown, and the server crashes. What the clients saw goes to the checker, and what is stored in
 * the end is accounted for. */
#include "isolation/clients.h"
#include "isolation/disturber.h"
#include "support/check.h"

#include <stdlib.h>

/* All runs together. */
struct totals {
    uint64_t migrations[MIGRATION_KINDS];
    unsigned runs, crashes, crashes_behind_fence, failures, faults;
    size_t over_nodes;
};

enum { RUNS = 10, KIND_MIN = 20, MIGRATIONS_MIN = 200, CRASHES_MIN = 100, OVER_NODES_MIN = 20 };

static bool is_over(void *context)
{
    return atomic_load(&((struct world *)context)->is_over);
}

static void counts_print(const struct world *world, const struct disturber *disturber)
{
    const uint64_t *done = world->migrations;

    print_message(
        "# %llu splits, %llu merges, %llu moves, %llu isolations, %llu edits of the directory, "
        "%llu "
        "re-keys, %llu spreads, %llu gatherings, %llu cancelled, of %u begun\n",
        (unsigned long long)done[MIGRATION_SPLIT], (unsigned long long)done[MIGRATION_MERGE],
        (unsigned long long)done[MIGRATION_MOVE], (unsigned long long)done[MIGRATION_ISOLATE],
        (unsigned long long)done[MIGRATION_REROUTE], (unsigned long long)done[MIGRATION_REKEY],
        (unsigned long long)done[MIGRATION_SPREAD], (unsigned long long)done[MIGRATION_GATHER],
        (unsigned long long)world->cancelled, disturber->begun);
    print_message(
        "# %u crashes, %u of them behind a fence, %u without the second node; it failed %u "
        "times; %u writes were left unknown\n",
        world->crashes, world->crashes_behind_fence, world->starts_without_node, world->failures,
        world->faults);
}

static void totals_add(struct totals *totals, const struct world *world)
{
    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        totals->migrations[i] += world->migrations[i];
    totals->runs++;
    totals->crashes += world->crashes;
    totals->crashes_behind_fence += world->crashes_behind_fence;
    totals->failures += world->failures;
    totals->faults += world->faults;
}

static void run_moving(struct totals *totals, const char *what, enum world_stores stores,
                       const struct disturber_plan *plan, size_t operations)
{
    struct checker_report report;
    struct disturber disturber;
    struct clients clients;
    struct world world;
    size_t over_nodes = 0;
    bool wide = plan->still || plan->spreads;

    world_init(&world, stores, wide ? DISTURBER_SPREAD : DISTURBER_CONTAINER,
               wide ? DISTURBER_SPREAD_RU : 0);
    world.calm = plan->failures + plan->faults + plan->crashes == 0;
    clients_init(&clients,
                 &(struct clients_place){.enter = world_enter,
                                         .leave = world_leave,
                                         .disturbed = world.calm ? NULL : world_disturbed,
                                         .moves = true,
                                         .agreements = world_agreements,
                                         .is_over = is_over,
                                         .context = &world},
                 operations);
    clients_start(&clients);
    disturber_run(&disturber, &world, plan, clients_seed());
    clients_join(&clients);
    for (size_t i = 0; i < CLIENTS; i++)
        over_nodes += clients.all[i].over_nodes;
    world_crash(&world, &disturber.random);
    world_verify(&world);
    clients_look(&clients);
    clients_check(&clients, what, world.moments, world.moment_count, &report);
    world_done(&world);
    clients_done(&clients);
    counts_print(&world, &disturber);
    totals_add(totals, &world);
    totals->over_nodes += over_nodes;
    print_message("# %zu transactions were committed over both nodes\n", over_nodes);
    clients_expect_fine(&report);
    for (size_t i = 0; i < DISTURBER_KINDS; i++)
        assert_true(world.migrations[i] >= plan->migrations);
    assert_true(world.failures >= plan->failures);
    assert_true(world.faults >= plan->faults);
    assert_true(world.crashes >= plan->crashes);
}

static struct disturber_plan plan_of(unsigned migrations, unsigned failures, unsigned crashes)
{
    unsigned factor = (unsigned)clients_factor();

    return (struct disturber_plan){.migrations = migrations * factor,
                                   .failures = failures * factor,
                                   .faults = failures * factor,
                                   .crashes = crashes * factor};
}

/* Where nothing fails clients notice a pause and no error. */
static void clients_notice_no_migration(void **state)
{
    struct disturber_plan plan = plan_of(20, 0, 0);

    run_moving(*state, "moving, nothing fails", WORLD_MEMORY, &plan, 2000 * clients_factor());
}

static void clients_stay_isolated_in_memory(void **state)
{
    struct disturber_plan plan = plan_of(20, 20, 70);

    run_moving(*state, "moving, memory", WORLD_MEMORY, &plan, 2000 * clients_factor());
}

static void clients_stay_isolated_on_disks(void **state)
{
    struct disturber_plan plan = plan_of(8, 8, 20);

    run_moving(*state, "moving, rocksdb", WORLD_ROCKSDB, &plan, 500 * clients_factor());
}

static void clients_stay_isolated_between_a_disk_and_a_postgresql_server(void **state)
{
    struct disturber_plan plan = plan_of(5, 5, 12);

    run_moving(*state, "moving, rocksdb and postgresql", WORLD_ROCKSDB_POSTGRESQL, &plan,
               300 * clients_factor());
}

/* What was acknowledged or read before a failover is there behind it. */
static void clients_stay_isolated_while_standbys_take_over(void **state)
{
    struct disturber_plan plan = plan_of(2, 4, 2);

    run_moving(*state, "moving, rocksdb and a replicated postgresql", WORLD_ROCKSDB_REPLICATED,
               &plan, 300 * clients_factor());
}

/* Transactions mostly go over both nodes, which fail and crash as before. */
static void run_spread(struct totals *totals, const char *what, enum world_stores stores)
{
    unsigned factor = (unsigned)clients_factor();
    struct disturber_plan plan = {
        .still = true, .failures = 4 * factor, .faults = 6 * factor, .crashes = 8 * factor};

    run_moving(totals, what, stores, &plan, 300 * factor);
}

static void transactions_over_nodes_are_whole_in_memory(void **state)
{
    run_spread(*state, "over nodes, memory", WORLD_MEMORY);
}

static void transactions_over_nodes_are_whole_on_disks(void **state)
{
    run_spread(*state, "over nodes, rocksdb", WORLD_ROCKSDB);
}

static void transactions_over_nodes_are_whole_between_a_disk_and_postgresql(void **state)
{
    run_spread(*state, "over nodes, rocksdb and postgresql", WORLD_ROCKSDB_POSTGRESQL);
}

/* Transactions go over the parts of keys and over both nodes, while keys are spread and gathered.
 */
static void run_cut(struct totals *totals, const char *what, enum world_stores stores,
                    unsigned spreads)
{
    unsigned factor = (unsigned)clients_factor();
    struct disturber_plan plan = {.spreads = spreads * factor,
                                  .failures = 4 * factor,
                                  .faults = 4 * factor,
                                  .crashes = 8 * factor};

    run_moving(totals, what, stores, &plan, 500 * factor);
}

static void clients_stay_isolated_while_keys_are_spread_in_memory(void **state)
{
    run_cut(*state, "keys spread, memory", WORLD_MEMORY, 30);
}

static void clients_stay_isolated_while_keys_are_spread_on_disks(void **state)
{
    run_cut(*state, "keys spread, rocksdb", WORLD_ROCKSDB, 10);
}

static void everything_happened_often_enough(void **state)
{
    const struct totals *totals = *state;
    uint64_t sum = 0;

    if (totals->runs < RUNS)
        skip();
    for (size_t i = 0; i < DISTURBER_KINDS; i++) {
        assert_true(totals->migrations[i] >= KIND_MIN);
        sum += totals->migrations[i];
    }
    assert_true(sum >= MIGRATIONS_MIN);
    assert_true(totals->migrations[MIGRATION_SPREAD] >= KIND_MIN);
    assert_true(totals->migrations[MIGRATION_GATHER] >= KIND_MIN);
    assert_true(totals->crashes >= CRASHES_MIN);
    assert_true(totals->crashes_behind_fence > 0);
    assert_true(totals->failures >= KIND_MIN);
    assert_true(totals->faults >= KIND_MIN);
    assert_true(totals->over_nodes >= OVER_NODES_MIN);
}

int main(void)
{
    struct totals totals = {0};
    struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_notice_no_migration),
        cmocka_unit_test(clients_stay_isolated_in_memory),
        cmocka_unit_test(clients_stay_isolated_on_disks),
        cmocka_unit_test(clients_stay_isolated_between_a_disk_and_a_postgresql_server),
        cmocka_unit_test(clients_stay_isolated_while_standbys_take_over),
        cmocka_unit_test(transactions_over_nodes_are_whole_in_memory),
        cmocka_unit_test(transactions_over_nodes_are_whole_on_disks),
        cmocka_unit_test(transactions_over_nodes_are_whole_between_a_disk_and_postgresql),
        cmocka_unit_test(clients_stay_isolated_while_keys_are_spread_in_memory),
        cmocka_unit_test(clients_stay_isolated_while_keys_are_spread_on_disks),
        cmocka_unit_test(everything_happened_often_enough),
    };

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tests[i].initial_state = &totals;

    if (getenv("HISTORY_ONLY"))
        cmocka_set_test_filter(getenv("HISTORY_ONLY"));
    return cmocka_run_group_tests_name("partitions that move under clients", tests, NULL, NULL);
}
