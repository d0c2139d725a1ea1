/* Concurrent clients on a container that stays where it is; what they saw goes to the checker. */
#include "document/bson.h"
#include "isolation/clients.h"
#include "support/changes.h"
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

/* A container with the committer a test wants in place of the usual one. Its three logical
 * partitions are in three physical ones, so that transactions are over several. */
static void space_init(struct test_space *test, const char *url,
                       const struct commit_options *commit)
{
    const struct test_space_options options = {
        .bounds = {"p1", "p2"}, .partitions = 3, .tells = true, .commit = commit};
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(test, engine, &options);
}

/* --- Changes that are told --------------------------------------------------------------------
 */

static uint32_t number_behind(struct slice document, struct slice name, size_t skip)
{
    struct document_value value;
    uint64_t number;

    assert_true(document_find(document, name, &value));
    assert_true(slice_to_uint64(slice_skip(value.text, skip), &number));
    return (uint32_t)number;
}

/* What the node tells of the items of clients: {id: "item1", pk: "p2"}. */
static struct history_change *told(struct engine *engine, struct arena *arena, size_t *ret_count)
{
    struct test_change *changes = test_changes_read(engine, arena, ret_count);
    struct history_change *list = ARENA_ARRAY(arena, struct history_change, *ret_count + 1);

    for (size_t i = 0; i < *ret_count; i++) {
        struct document_value version = document_int64(0);

        if (changes[i].kind != HISTORY_DELETE)
            assert_true(document_find(changes[i].document, SLICE("version"), &version));
        list[i] = (struct history_change){.time = changes[i].place.time,
                                          .item = number_behind(changes[i].key, SLICE("pk"), 1) *
                                                      CLIENT_IDS +
                                                  number_behind(changes[i].key, SLICE("id"), 4),
                                          .version = (uint64_t)version.int64};
    }
    return list;
}

/* How many committed transactions wrote into several physical partitions. */
static size_t spanning(const struct history *history)
{
    size_t count = 0;

    for (size_t t = 0; t < history->count; t++) {
        const struct history_transaction *transaction = &history->transactions[t];
        uint32_t logicals = 0;

        for (size_t i = 0; transaction->outcome == CHECKED_COMMITTED && i < transaction->op_count;
             i++)
            if (transaction->ops[i].kind == CHECKED_WRITE ||
                transaction->ops[i].kind == CHECKED_DELETE)
                logicals |= 1u << transaction->ops[i].item / CLIENT_IDS;
        count += __builtin_popcount(logicals) > 1;
    }
    return count;
}

static void changes_check(const struct clients *clients, struct engine *engine, bool several,
                          struct checker_report *report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct history history =
        recorders_history(clients->recorders, CLIENTS, CLIENT_ITEMS, NULL, 0, arena);
    size_t count, wide = spanning(&history);
    struct history_change *changes = told(engine, arena, &count);

    print_message("# %zu changes told, %zu transactions over several partitions\n", count, wide);
    assert_true(!several || wide > 20);
    checker_changes(&history, changes, count, report);
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
    if (!commit->validation_off)
        changes_check(&clients, test.engine, !only_updates, ret_report);
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
