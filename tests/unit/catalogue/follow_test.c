/* The catalogue as a server loads it that does not own the nodes: it changes nothing; and how the
 * one that does asks the others to stop reading by what it is about to change. */
#include "catalogue/catalogue.h"

#include "catalogue/migration.h"
#include "catalogue/notes.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

enum { ORPHAN = 5000 };

/* A server that follows, beside the one of the bench. */
struct beside {
    struct cluster *cluster;
    struct catalogue *catalogue;
};

static void beside_open(struct beside *beside, struct bench *bench)
{
    struct error err;

    beside->cluster = cluster_new(NULL);
    assert_ok(cluster_follow(beside->cluster, "a", bench->engine, &err), &err);
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = beside->cluster,
                                                         .limits = &bench->limits,
                                                         .follows = true},
                             &beside->catalogue, &err),
              &err);
}

static void beside_close(struct beside *beside)
{
    catalogue_close(beside->catalogue);
    cluster_free(beside->cluster);
}

static bool has_container(struct catalogue *catalogue, const char *id)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    return catalogue_container_open(catalogue, SLICE("acme"), SLICE("shop"), slice_of_text(id),
                                    &container, &err);
}

static void drop_container(struct bench *bench, const char *id)
{
    struct error err;

    assert_ok(catalogue_container_drop(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       slice_of_text(id), SLICE_NONE, &err),
              &err);
}

static uint64_t writes(struct bench *bench)
{
    struct engine_statistics statistics;
    struct error err;

    assert_ok(engine_statistics(bench->engine, &statistics, &err), &err);
    return statistics.writes;
}

static void shop_make(struct bench *bench)
{
    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 400);
    bench_container(bench, "acme", "shop", BENCH_BODY("gone"), 400);
}

/* As a mover would begin with it: its source is journalled from then on. */
static void split_begin(struct bench *bench, const char *id)
{
    CLEANUP(container_unref) struct container *container = NULL, *split = NULL;
    const struct slice bounds[] = {SLICE("\x1f")};
    const struct partition_span *spans;
    struct error err;
    size_t count;

    assert_ok(catalogue_container_open(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       slice_of_text(id), &container, &err),
              &err);
    spans = partition_map_spans(container_map(container), &count);
    assert_ok(catalogue_migration_begin(bench->catalogue, container,
                                        &(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                    .sources = &spans[0].id,
                                                                    .source_count = 1,
                                                                    .target_count = 2,
                                                                    .bounds = bounds},
                                        &split, &err),
              &err);
}

/* A tombstone waits to be purged, a migration is under way, and a partition has no owner yet: its
 * container is just being made. */
static void following_leaves_the_store_as_it_is(void **state)
{
    struct bench *bench = *state;
    struct engine_partition *before, *after;
    size_t before_count, after_count;
    struct beside beside;
    struct error err;
    uint64_t written;

    shop_make(bench);
    drop_container(bench, "gone");
    assert_int_equal(catalogue_purges_left(bench->catalogue), 1);
    split_begin(bench, "orders");
    assert_ok(engine_partition_create(bench->engine, ORPHAN, 1, &err), &err);
    assert_ok(engine_partition_list(bench->engine, bench->arena, &before, &before_count, &err),
              &err);
    written = writes(bench);

    beside_open(&beside, bench);
    assert_true(has_container(beside.catalogue, "orders"));
    assert_false(has_container(beside.catalogue, "gone"));
    assert_ok(catalogue_follow(beside.catalogue, &err), &err);
    assert_int_equal(catalogue_purges_left(beside.catalogue), 0);
    assert_int_equal(writes(bench), written);
    assert_ok(engine_partition_list(bench->engine, bench->arena, &after, &after_count, &err), &err);
    assert_int_equal(after_count, before_count);
    assert_memory_equal(after, before, before_count * sizeof *before);
    for (size_t i = 0; i < after_count; i++)
        assert_false(commit_partition_is_open(cluster_at(beside.cluster, 0)->commit, after[i].id,
                                              after[i].epoch));
    beside_close(&beside);
    assert_int_equal(writes(bench), written);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 1);
}

static void what_the_owner_changes_is_seen_when_it_is_followed(void **state)
{
    struct bench *bench = *state;
    struct beside beside;
    struct error err;

    shop_make(bench);
    beside_open(&beside, bench);
    bench_container(bench, "acme", "shop", BENCH_BODY("new"), 400);
    drop_container(bench, "gone");
    assert_false(has_container(beside.catalogue, "new"));
    assert_true(has_container(beside.catalogue, "gone"));
    assert_ok(catalogue_follow(beside.catalogue, &err), &err);
    assert_true(has_container(beside.catalogue, "new"));
    assert_false(has_container(beside.catalogue, "gone"));
    beside_close(&beside);
}

static void a_pause_or_what_is_withheld_reserves_all_to_the_owner(void **state)
{
    static const uint8_t pause[] = {CATALOGUE_NOTES_SERVER, CATALOGUE_NOTES_SERVER_PAUSE, 'x'};
    struct bench *bench = *state;
    struct engine_op op = {ENGINE_PUT, slice_of(pause, sizeof pause), SLICE("v")};
    struct beside beside;
    struct error err;

    shop_make(bench);
    beside_open(&beside, bench);
    assert_false(catalogue_is_reserved(beside.catalogue));
    assert_ok(catalogue_notes_write(bench->catalogue, &op, 1, &err), &err);
    assert_ok(catalogue_follow(beside.catalogue, &err), &err);
    assert_true(catalogue_is_reserved(beside.catalogue));
    op.kind = ENGINE_DELETE;
    assert_ok(catalogue_notes_write(bench->catalogue, &op, 1, &err), &err);
    assert_ok(catalogue_follow(beside.catalogue, &err), &err);
    assert_false(catalogue_is_reserved(beside.catalogue));
    beside_close(&beside);
}

static void there_is_nothing_to_follow_where_no_catalogue_is(void **state UNUSED)
{
    struct cluster *cluster = cluster_new(NULL);
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    assert_false(cluster_follow(cluster, "a", engine, &err));
    assert_int_equal(err.code, ERROR_STORE_FOREIGN);
    cluster_free(cluster);
    engine_close(engine);
}

/* --- Calling back ----------------------------------------------------------------------------- */

struct calls {
    struct bench *bench;
    uint64_t writes_at_recall, writes_at_end;
    int recalls, open;
};

static void on_recall(void *context)
{
    struct calls *calls = context;

    calls->recalls++;
    calls->open++;
    calls->writes_at_recall = writes(calls->bench);
}

static void on_recalled(void *context)
{
    struct calls *calls = context;

    calls->open--;
    calls->writes_at_end = writes(calls->bench);
}

static void calls_begin(struct calls *calls, struct bench *bench)
{
    struct error err;

    *calls = (struct calls){.bench = bench};
    catalogue_close(TAKE(bench->catalogue));
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = bench->cluster,
                                                         .limits = &bench->limits,
                                                         .purge_by_hand = true,
                                                         .recall = on_recall,
                                                         .recalled = on_recalled,
                                                         .recall_context = calls},
                             &bench->catalogue, &err),
              &err);
    calls->recalls = 0;
}

static void a_change_calls_back_once_before_it_is_committed(void **state)
{
    struct bench *bench = *state;
    struct calls calls;
    uint64_t before;

    shop_make(bench);
    calls_begin(&calls, bench);
    before = writes(bench);
    drop_container(bench, "gone");
    assert_int_equal(calls.recalls, 1);
    assert_int_equal(calls.open, 0);
    assert_int_equal(calls.writes_at_recall, before);
    assert_true(calls.writes_at_end > before);
}

/* What fails before there is anything to commit asks nobody. */
static void a_change_that_is_refused_calls_nothing_back(void **state)
{
    struct bench *bench = *state;
    struct calls calls;
    struct error err;

    shop_make(bench);
    calls_begin(&calls, bench);
    assert_false(catalogue_container_drop(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("nobody"), SLICE_NONE, &err));
    assert_int_equal(calls.recalls, 0);
    assert_int_equal(calls.open, 0);
}

static void of_notes_only_those_that_requests_are_judged_by_call_back(void **state)
{
    static const uint8_t heat[] = {CATALOGUE_NOTES_HEAT, 'x'},
                         pause[] = {CATALOGUE_NOTES_SERVER, CATALOGUE_NOTES_SERVER_PAUSE, 'x'},
                         withheld[] = {CATALOGUE_NOTES_WITHHELD, 'x'};
    struct bench *bench = *state;
    struct calls calls;
    struct error err;

    shop_make(bench);
    calls_begin(&calls, bench);
    assert_ok(catalogue_notes_write(
                  bench->catalogue,
                  &(struct engine_op){ENGINE_PUT, slice_of(heat, sizeof heat), SLICE("v")}, 1,
                  &err),
              &err);
    assert_int_equal(calls.recalls, 0);
    assert_ok(catalogue_notes_write(
                  bench->catalogue,
                  &(struct engine_op){ENGINE_PUT, slice_of(pause, sizeof pause), SLICE("v")}, 1,
                  &err),
              &err);
    assert_int_equal(calls.recalls, 1);
    assert_ok(catalogue_notes_write(
                  bench->catalogue,
                  &(struct engine_op){ENGINE_PUT, slice_of(withheld, sizeof withheld), SLICE("v")},
                  1, &err),
              &err);
    assert_int_equal(calls.recalls, 2);
    assert_int_equal(calls.open, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(memory, following_leaves_the_store_as_it_is),
        ON(memory, what_the_owner_changes_is_seen_when_it_is_followed),
        ON(memory, a_pause_or_what_is_withheld_reserves_all_to_the_owner),
        cmocka_unit_test(there_is_nothing_to_follow_where_no_catalogue_is),
        ON(memory, a_change_calls_back_once_before_it_is_committed),
        ON(memory, a_change_that_is_refused_calls_nothing_back),
        ON(memory, of_notes_only_those_that_requests_are_judged_by_call_back),
    };

    return cmocka_run_group_tests_name("catalogue/follow", tests, NULL, NULL);
}
