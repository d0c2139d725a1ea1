/* Concurrent clients on a container that stays where it is; what they saw goes to the checker. */
#include "isolation/clients.h"
#include "support/check.h"
#include "support/scratch.h"
#include "support/space.h"

#include <stdio.h>

static struct item_space space_enter(void *context, struct note *note, bool plain,
                                     void **ret_visit UNUSED)
{
    const struct test_space *test = context;

    note_begin(note, plain);
    return test->space;
}

static void space_leave(void *context UNUSED, void *visit UNUSED)
{
}

/* A container with the committer a test wants in place of the usual one. */
static void space_init(struct test_space *test, const char *url,
                       const struct commit_options *commit)
{
    struct commit_options options = *commit;
    const struct partition_span *spans;
    struct engine *engine;
    struct error err;
    size_t count;

    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(test, engine, &(struct test_space_options){.partitions = 2});
    commit_free(test->commit);
    options.engine = engine;
    options.clock = &test->clock;
    test->commit = commit_new(&options);
    spans = partition_map_spans(test->space.map, &count);
    for (size_t i = 0; i < count; i++)
        assert_ok(commit_partition_open(test->commit, spans[i].id, spans[i].epoch, &err), &err);
}

/* Runs clients on a node and lets the checker look at all of it. */
static void run_on(const char *what, const char *url, const struct commit_options *commit,
                   size_t operations, bool only_updates, struct checker_report *ret_report)
{
    struct test_space test;
    struct clients clients;

    space_init(&test, url, commit);
    clients_init(
        &clients,
        &(struct clients_place){.enter = space_enter, .leave = space_leave, .context = &test},
        operations);
    clients.only_updates = only_updates;
    clients_start(&clients);
    clients_join(&clients);
    clients_check(&clients, what, NULL, 0, ret_report);
    clients_done(&clients);
    test_space_done(&test);
}

static void clients_on_a_memory_node_are_snapshot_isolated(void **state UNUSED)
{
    struct checker_report report;

    run_on("memory", "memory:", &(struct commit_options){0}, 2000 * clients_factor(), false,
           &report);
    clients_expect_fine(&report);
}

static void clients_on_a_rocksdb_node_are_snapshot_isolated(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct checker_report report;
    char url[200];

    scratch_init(&scratch);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&scratch, "node"));
    run_on("rocksdb", url, &(struct commit_options){0}, 400 * clients_factor(), false, &report);
    clients_expect_fine(&report);
}

/* What the committer remembers is so little that snapshots are too old all the time. */
static void a_short_memory_of_commits_costs_retries_and_nothing_else(void **state UNUSED)
{
    struct checker_report report;

    run_on("short memory", "memory:", &(struct commit_options){.recent_keys_max = 8},
           500 * clients_factor(), false, &report);
    clients_expect_fine(&report);
}

static void without_validation_the_checker_objects(void **state UNUSED)
{
    struct checker_report report;

    run_on("validation off", "memory:", &(struct commit_options){.validation_off = true}, 500, true,
           &report);
    print_message("# %zu violations, the first: %s\n", report.violations, report.first);
    assert_true(report.counts[CHECKER_LOST_UPDATE] > 0);
}

static void the_same_clients_with_validation_are_fine(void **state UNUSED)
{
    struct checker_report report;

    run_on("validation on", "memory:", &(struct commit_options){0}, 500, true, &report);
    clients_expect_fine(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_on_a_memory_node_are_snapshot_isolated),
        cmocka_unit_test(clients_on_a_rocksdb_node_are_snapshot_isolated),
        cmocka_unit_test(a_short_memory_of_commits_costs_retries_and_nothing_else),
        cmocka_unit_test(without_validation_the_checker_objects),
        cmocka_unit_test(the_same_clients_with_validation_are_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
