#include "catalogue/catalogue.h"

#include "support/check.h"
#include "support/documents.h"

struct bench {
    struct arena *arena;
    struct engine *a, *b;
    struct cluster *cluster;
};

static struct engine *memory_node(void)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    return engine;
}

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);

    bench->arena = arena_new();
    bench->a = memory_node();
    bench->b = memory_node();
    bench->cluster = cluster_new(NULL);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    cluster_free(bench->cluster);
    engine_close(bench->a);
    engine_close(bench->b);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

static void bench_restart(struct bench *bench)
{
    cluster_free(bench->cluster);
    bench->cluster = cluster_new(NULL);
}

static void add(struct bench *bench, const char *name, struct engine *engine)
{
    struct error err;

    assert_ok(cluster_add(bench->cluster, name, engine, &err), &err);
}

static struct catalogue *catalogue_of(struct bench *bench)
{
    struct catalogue *catalogue;
    struct error err;

    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = bench->cluster, .purge_by_hand = true},
                  &catalogue, &err),
              &err);
    return catalogue;
}

static void the_root_brings_the_id_that_all_nodes_share(void **state)
{
    struct bench *bench = *state;
    struct slice id, first;
    struct error err;

    add(bench, "a", bench->a);
    first = arena_copy(bench->arena, cluster_id(bench->cluster));
    assert_int_equal(first.len, 36);
    add(bench, "b", bench->b);
    assert_ok(engine_cluster_id(bench->b, bench->arena, &id, &err), &err);
    assert_slice_equal(id, first);
    bench_restart(bench);
    add(bench, "a", bench->a);
    assert_slice_equal(cluster_id(bench->cluster), first);
}

static void a_node_of_another_cluster_is_refused(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_ok(engine_cluster_join(bench->b, SLICE("0ddba11"), &err), &err);
    add(bench, "a", bench->a);
    assert_fails(cluster_add(bench->cluster, "b", bench->b, &err), &err, ERROR_STORE_FOREIGN);
    assert_contains(err.message, "node \"b\"");
    assert_int_equal(cluster_count(bench->cluster), 1);
}

static void a_node_is_added_once(void **state)
{
    struct bench *bench = *state;
    struct error err;

    add(bench, "a", bench->a);
    assert_fails(cluster_add(bench->cluster, "again", bench->a, &err), &err, ERROR_CONFIGURATION);
}

static void partitions_there_are_open_after_adding(void **state)
{
    struct bench *bench = *state;
    struct error err;
    uint64_t lsn;

    assert_ok(engine_partition_create(bench->a, 5, 3, &err), &err);
    add(bench, "a", bench->a);
    assert_ok(commit_partition_lsn(cluster_at(bench->cluster, 0)->commit, 5, &lsn, &err), &err);
    assert_int_equal(lsn, 0);
}

static struct container *make_container(struct bench *bench, struct catalogue *catalogue,
                                        const char *json, int64_t ru)
{
    struct offer_request request = {.given = true, .ru = ru};
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_create(catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(bench->arena, json), &request, &container,
                                         &err),
              &err);
    return container;
}

static void make_shop(struct catalogue *catalogue)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    assert_ok(catalogue_account_create(catalogue, SLICE("acme"), SLICE_NONE, &account, &err), &err);
    assert_ok(
        catalogue_database_create(catalogue, SLICE("acme"), SLICE("shop"), NULL, &database, &err),
        &err);
}

static size_t partition_count(struct bench *bench, struct engine *engine)
{
    struct engine_partition *partitions;
    struct error err;
    size_t count;

    assert_ok(engine_partition_list(engine, bench->arena, &partitions, &count, &err), &err);
    return history_others(partitions, count);
}

static void containers_are_spread_over_the_nodes(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_close) struct catalogue *catalogue = NULL;
    CLEANUP(container_unref) struct container *wide = NULL, *one = NULL, *two = NULL;
    struct error err;

    add(bench, "a", bench->a);
    add(bench, "b", bench->b);
    catalogue = catalogue_of(bench);
    make_shop(catalogue);
    wide = make_container(bench, catalogue, "{\"id\":\"w\",\"partitionKey\":{\"paths\":[\"/k\"]}}",
                          40000);
    assert_int_equal(partition_count(bench, bench->a), 1 + 2);
    assert_int_equal(partition_count(bench, bench->b), 2);
    one = make_container(bench, catalogue, "{\"id\":\"1\"}", 400);
    two = make_container(bench, catalogue, "{\"id\":\"2\"}", 400);
    assert_int_equal(partition_count(bench, bench->a), 1 + 3);
    assert_int_equal(partition_count(bench, bench->b), 3);
    assert_ok(catalogue_container_drop(catalogue, SLICE("acme"), SLICE("shop"), SLICE("w"),
                                       SLICE_NONE, &err),
              &err);
    assert_ok(catalogue_purge(catalogue, &err), &err);
    assert_int_equal(partition_count(bench, bench->a), 1 + 1);
    assert_int_equal(partition_count(bench, bench->b), 1);
}

/* Nodes keep their numbers whatever order they are named in, behind the root. */
static void a_node_that_is_needed_is_missed_by_name(void **state)
{
    struct bench *bench = *state;
    struct engine *c = memory_node();
    struct catalogue *catalogue;
    struct error err;

    add(bench, "a", bench->a);
    add(bench, "b", bench->b);
    catalogue = catalogue_of(bench);
    make_shop(catalogue);
    container_unref(make_container(bench, catalogue,
                                   "{\"id\":\"w\",\"partitionKey\":{\"paths\":[\"/k\"]}}", 20000));
    catalogue_close(catalogue);

    bench_restart(bench);
    add(bench, "a", bench->a);
    assert_fails(
        catalogue_open(&(struct catalogue_options){.cluster = bench->cluster}, &catalogue, &err),
        &err, ERROR_CONFIGURATION);
    assert_contains(err.message, engine_node_id(bench->b));

    bench_restart(bench);
    add(bench, "a", bench->a);
    add(bench, "c", c);
    add(bench, "b", bench->b);
    catalogue = catalogue_of(bench);
    assert_ptr_equal(cluster_find(bench->cluster, 1)->engine, bench->b);
    assert_ptr_equal(cluster_find(bench->cluster, 2)->engine, c);
    catalogue_close(catalogue);
    cluster_free(TAKE(bench->cluster));
    engine_close(c);
}

/* Otherwise the new catalogue would drop everything the real one owns. */
static void another_node_named_first_is_refused(void **state)
{
    struct bench *bench = *state;
    struct catalogue *catalogue;
    struct error err;

    add(bench, "a", bench->a);
    add(bench, "b", bench->b);
    catalogue = catalogue_of(bench);
    make_shop(catalogue);
    container_unref(make_container(bench, catalogue,
                                   "{\"id\":\"w\",\"partitionKey\":{\"paths\":[\"/k\"]}}", 20000));
    catalogue_close(catalogue);
    for (int i = 0; i < 2; i++) {
        bench_restart(bench);
        add(bench, "b", bench->b);
        add(bench, "a", bench->a);
        assert_fails(catalogue_open(&(struct catalogue_options){.cluster = bench->cluster},
                                    &catalogue, &err),
                     &err, ERROR_CONFIGURATION);
        assert_int_equal(partition_count(bench, bench->a), 2);
        assert_int_equal(partition_count(bench, bench->b), 1);
    }
    bench_restart(bench);
    add(bench, "a", bench->a);
    add(bench, "b", bench->b);
    catalogue_close(catalogue_of(bench));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_root_brings_the_id_that_all_nodes_share, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_of_another_cluster_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_is_added_once, setup, teardown),
        cmocka_unit_test_setup_teardown(partitions_there_are_open_after_adding, setup, teardown),
        cmocka_unit_test_setup_teardown(containers_are_spread_over_the_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_is_needed_is_missed_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(another_node_named_first_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
