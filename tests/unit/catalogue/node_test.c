/* Nodes that come, go, drain and are paused, and what a restart makes of it. */
#include "catalogue/node.h"

#include "balance/balancer.h"
#include "catalogue/container_space.h"
#include "engine/guard.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"

enum { ENGINES = 3 };

struct bench {
    struct arena *arena;
    struct engine *faults[ENGINES]; /* owned by the guards */
    struct engine *guards[ENGINES];
    size_t members; /* that the cluster begins with */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct balancer *balancer;
    struct clock clock; /* every look at it takes a while */
    int64_t now_ms;
};

static int64_t time_passes(void *context)
{
    return ((struct bench *)context)->now_ms += 5;
}

static bool on_rejoin(void *context, struct error *err)
{
    struct bench *bench = context;

    return catalogue_node_rejoin(bench->catalogue, 1, err);
}

static void start(struct bench *bench)
{
    static const char *const names[] = {"a", "b", "c"};
    struct error err;

    bench->cluster = cluster_new(NULL);
    for (size_t i = 0; i < bench->members; i++)
        assert_ok(cluster_add(bench->cluster, names[i], bench->guards[i], &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = bench->cluster, .purge_by_hand = true},
                  &bench->catalogue, &err),
              &err);
    catalogue_nodes_apply(bench->catalogue);
    engine_guard_keep(bench->guards[1], &(struct engine_guard_hooks){on_rejoin, bench}, true);
    bench->migrator = migrator_new(&(struct migrator_options){.catalogue = bench->catalogue,
                                                              .clock = &bench->clock,
                                                              .pause_ms = 1,
                                                              .splits_off = true,
                                                              .by_hand = true});
    bench->balancer = balancer_new(&(struct balancer_options){.catalogue = bench->catalogue,
                                                              .migrator = bench->migrator,
                                                              .clock = &bench->clock,
                                                              .pause_ms = 1,
                                                              .by_hand = true});
}

static void stop(struct bench *bench)
{
    engine_guard_leave(bench->guards[1]);
    balancer_free(bench->balancer);
    migrator_free(bench->migrator);
    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
}

static void restart(struct bench *bench)
{
    stop(bench);
    start(bench);
}

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    bench->arena = arena_new();
    bench->members = 2;
    bench->clock = (struct clock){
        .wall_ms = clock_system.wall_ms, .monotonic_ms = time_passes, .context = bench};
    for (size_t i = 0; i < ENGINES; i++) {
        struct engine *memory;

        assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &memory, &err), &err);
        bench->faults[i] = fault_engine_new(memory);
        bench->guards[i] =
            engine_guard_around(&(struct engine_guard_options){.name = "n",
                                                               .inner = {.clock = &bench->clock},
                                                               .probe_ms = 1,
                                                               .write_hang_ms = INT64_MAX / 2,
                                                               .unpaused_partition = i == 0},
                                bench->faults[i]);
    }
    start(bench);
    assert_ok(catalogue_account_create(bench->catalogue, SLICE("default"),
                                       document_of(bench->arena, "{}"), &account, &err),
              &err);
    assert_ok(catalogue_database_create(bench->catalogue, SLICE("default"), SLICE("d"), NULL,
                                        &database, &err),
              &err);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    stop(bench);
    for (size_t i = 0; i < ENGINES; i++)
        engine_close(bench->guards[i]);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

static struct container *container_make(struct bench *bench, const char *body, uint64_t ru)
{
    struct offer_request request = {.given = true, .ru = ru};
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_create(bench->catalogue, SLICE("default"), SLICE("d"),
                                         document_of(bench->arena, body), &request, &container,
                                         &err),
              &err);
    return container;
}

#define PLAIN "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}"

/* How many partitions of the container are on a node. */
static size_t spans_on(struct bench *bench, uint32_t node)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *spans;
    size_t count, on = 0;
    struct error err;

    assert_ok(catalogue_container_open(bench->catalogue, SLICE("default"), SLICE("d"), SLICE("c"),
                                       &container, &err),
              &err);
    spans = partition_map_spans(container_map(container), &count);
    for (size_t i = 0; i < count; i++)
        on += spans[i].node == node;
    return on;
}

/* Balancer and migrator, until there is nothing left to do. */
static void settle(struct bench *bench)
{
    for (int quiet = 0, rounds = 0; quiet < 20; rounds++) {
        struct error err;
        size_t begun;
        bool busy;

        assert_true(rounds < 20000);
        assert_ok(balancer_round(bench->balancer, &begun, &err), &err);
        assert_ok(migrator_round(bench->migrator, &busy, &err), &err);
        quiet = begun || busy ? 0 : quiet + 1;
    }
}

static void third_add(struct bench *bench, const char *attributes)
{
    struct node_info info = {.name = "c", .url = "memory:", .remembered = true};
    const struct cluster_node *node;
    struct error err;

    assert_ok(node_set(&info, SLICE("tags"), slice_of_text(attributes), &err), &err);
    assert_ok(catalogue_node_add(bench->catalogue, &info, bench->guards[2], &node, &err), &err);
    assert_int_equal(node->number, 2);
}

static void an_added_node_is_remembered_with_what_is_said_of_it(void **state)
{
    struct bench *bench = *state;
    struct node_table *table = MEMORY_NEW(struct node_table);
    const struct cluster_node *node;
    struct error err;

    third_add(bench, "ssd,big");
    assert_fails(catalogue_node_add(bench->catalogue, &(struct node_info){.name = "c"},
                                    bench->guards[2], &node, &err),
                 &err, ERROR_NAME_TAKEN);
    assert_fails(catalogue_node_add(bench->catalogue, &(struct node_info){.name = "d"},
                                    bench->guards[2], &node, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(catalogue_node_add(bench->catalogue, &(struct node_info){.name = "No Name"},
                                    bench->guards[2], &node, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_ok(catalogue_nodes_peek(bench->guards[0], table, &err), &err);
    assert_int_equal(table->count, 3);
    assert_true(table->list[2].remembered);
    assert_true(node_has_tag(&table->list[2], SLICE("big")));
    assert_string_equal(table->list[2].url, "memory:");
    catalogue_nodes_free(table);
}

static void a_container_is_made_on_nodes_that_take_partitions(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    bool yes = true;
    struct error err;

    third_add(bench, "");
    assert_ok(catalogue_node_change(bench->catalogue, SLICE("a"),
                                    &(struct catalogue_node_settings){.draining = &yes}, &err),
              &err);
    fault_engine_unplug(bench->faults[1], true);
    engine_guard_tend(bench->guards[1]);
    container = container_make(bench, PLAIN "}", 40000);
    assert_int_equal(spans_on(bench, 2), 4);
}

static void a_drained_node_is_emptied_and_can_be_removed_then(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_make(bench, PLAIN "}", 40000);
    const struct cluster_node *node;
    bool yes = true;
    struct error err;

    assert_int_equal(spans_on(bench, 1), 2);
    assert_fails(catalogue_node_remove(bench->catalogue, SLICE("b"), &node, &err), &err,
                 ERROR_BUSY);
    assert_contains(err.message, "holds 2 partitions");
    assert_fails(catalogue_node_remove(bench->catalogue, SLICE("a"), &node, &err), &err,
                 ERROR_FORBIDDEN);
    assert_ok(catalogue_node_change(bench->catalogue, SLICE("b"),
                                    &(struct catalogue_node_settings){.draining = &yes}, &err),
              &err);
    assert_fails(catalogue_node_change(bench->catalogue, SLICE("a"),
                                       &(struct catalogue_node_settings){.draining = &yes}, &err),
                 &err, ERROR_BAD_REQUEST);
    container_unref(TAKE(container)); /* readers of the old map would be waited for */
    settle(bench);
    assert_int_equal(spans_on(bench, 0), 4);
    assert_ok(catalogue_node_remove(bench->catalogue, SLICE("b"), &node, &err), &err);
    assert_false(cluster_node_is_member(node));
    assert_fails(catalogue_node_remove(bench->catalogue, SLICE("b"), &node, &err), &err,
                 ERROR_NOT_FOUND);
}

static void pauses_of_nodes_and_regions_survive_a_restart(void **state)
{
    struct bench *bench = *state;
    struct node_info eu = {.region = "eu"};
    struct error err;

    assert_ok(catalogue_node_change(bench->catalogue, SLICE("b"),
                                    &(struct catalogue_node_settings){.attributes = &eu}, &err),
              &err);
    assert_fails(catalogue_region_pause(bench->catalogue, SLICE("us"), true, &err), &err,
                 ERROR_NOT_FOUND);
    assert_ok(catalogue_region_pause(bench->catalogue, SLICE("eu"), true, &err), &err);
    assert_fails(engine_serves(bench->guards[1], &err), &err, ERROR_NODE_PAUSED);
    assert_true(engine_serves(bench->guards[0], &err));
    engine_guard_pause(bench->guards[1], false);
    restart(bench);
    assert_fails(engine_serves(bench->guards[1], &err), &err, ERROR_NODE_PAUSED);
    assert_ok(catalogue_region_pause(bench->catalogue, SLICE("eu"), false, &err), &err);
    assert_true(engine_serves(bench->guards[1], &err));
}

static void a_migration_waits_for_a_node_that_is_away(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_make(bench, PLAIN "}", 400);
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);
    uint32_t other = 1 - span->node, id = span->id;
    struct error err;

    assert_ok(migrator_move(bench->migrator, container, id, other, &err), &err);
    container_unref(TAKE(container));
    fault_engine_unplug(bench->faults[1], true);
    engine_guard_tend(bench->guards[1]);
    settle(bench);
    assert_int_equal(spans_on(bench, other), 0);
    fault_engine_unplug(bench->faults[1], false);
    for (int i = 0; i < 1000 && !engine_serves(bench->guards[1], &err); i++)
        engine_guard_tend(bench->guards[1]);
    settle(bench);
    assert_int_equal(spans_on(bench, other), 1);
}

static void a_node_that_was_away_when_the_catalogue_was_read_is_read_when_it_comes(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_make(bench, PLAIN "}", 40000);
    struct error err;
    uint64_t lsn;
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);
    uint32_t id = span->node == 1 ? span->id : span[1].id;

    container_unref(TAKE(container));
    fault_engine_unplug(bench->faults[1], true);
    engine_guard_tend(bench->guards[1]);
    restart(bench);
    assert_fails(commit_partition_lsn(cluster_find(bench->cluster, 1)->commit, id, &lsn, &err),
                 &err, ERROR_PARTITION_UNKNOWN);
    fault_engine_unplug(bench->faults[1], false);
    for (int i = 0; i < 1000 && !engine_serves(bench->guards[1], &err); i++)
        engine_guard_tend(bench->guards[1]);
    assert_ok(commit_partition_lsn(cluster_find(bench->cluster, 1)->commit, id, &lsn, &err), &err);
}

static void rules_are_carried_out_and_what_cannot_be_is_told(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(memory_free) struct balancer_status *status = NULL;

    third_add(bench, "quiet");
    container = container_make(bench,
                               PLAIN ",\"orrery\":{\"placement\":["
                                     "{\"key\":[\"acme\"],\"tags\":[\"quiet\"]},"
                                     "{\"key\":[\"lost\"],\"region\":\"mars\"},"
                                     "{\"nodes\":[\"a\"]}]}}",
                               400);
    container_unref(TAKE(container));
    assert_int_equal(spans_on(bench, 0), 1);
    settle(bench);
    assert_int_equal(spans_on(bench, 2), 1); /* acme */
    assert_int_equal(spans_on(bench, 0), 4); /* lost, and what is around the two */
    status = balancer_status(bench->balancer);
    assert_int_equal(status->problem_count, 1);
    assert_contains(status->problems[0].text, "no node is as its placement rule wants it");
}

static void a_rebalance_goes_on_after_a_restart_and_ends_by_itself(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_make(bench, PLAIN "}", 60000);
    struct error err;

    container_unref(TAKE(container));
    third_add(bench, "");
    bench->members = 3;
    assert_ok(balancer_rebalance(bench->balancer, true, &err), &err);
    restart(bench);
    settle(bench);
    for (uint32_t node = 0; node < 3; node++)
        assert_int_equal(spans_on(bench, node), 2);

    CLEANUP(memory_free) struct balancer_status *status = balancer_status(bench->balancer);

    assert_false(status->rebalancing);
}

static void a_store_that_was_opened_here_is_of_this_format(void **state)
{
    struct bench *bench = *state;
    CLEANUP(memory_free) struct node_table *table = MEMORY_NEW(struct node_table);
    struct error err;

    assert_ok(catalogue_nodes_peek(bench->guards[0], table, &err), &err);
    assert_int_equal(table->format, NODE_TABLE_FORMAT);
}

static void a_table_of_a_newer_format_is_refused_by_name(void **state UNUSED)
{
    CLEANUP(memory_free) struct node_table *table = MEMORY_NEW(struct node_table);
    CLEANUP(buf_done) struct buf document;
    struct error err;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    document_append_int64(&document, SLICE("format"), NODE_TABLE_FORMAT + 1);
    document_end(&document, begin);
    assert_false(node_table_parse(buf_slice(&document), table, &err));
    assert_int_equal(err.code, ERROR_STORE_VERSION);
    assert_contains(err.message, "newer than");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_added_node_is_remembered_with_what_is_said_of_it),
        TEST(a_container_is_made_on_nodes_that_take_partitions),
        TEST(a_drained_node_is_emptied_and_can_be_removed_then),
        TEST(pauses_of_nodes_and_regions_survive_a_restart),
        TEST(a_migration_waits_for_a_node_that_is_away),
        TEST(a_node_that_was_away_when_the_catalogue_was_read_is_read_when_it_comes),
        TEST(rules_are_carried_out_and_what_cannot_be_is_told),
        TEST(a_rebalance_goes_on_after_a_restart_and_ends_by_itself),
        TEST(a_store_that_was_opened_here_is_of_this_format),
        cmocka_unit_test(a_table_of_a_newer_format_is_refused_by_name),
    };

    return cmocka_run_group_tests_name("catalogue/node", tests, NULL, NULL);
}
