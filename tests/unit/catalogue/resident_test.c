/* Resident rules: where keys go is decided before they come, and nothing that would send them
 * elsewhere is let through. Node a is in America, node b in Europe. */
#include "catalogue/resident.h"

#include "balance/balancer.h"
#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "catalogue/node.h"
#include "catalogue/promotion.h"
#include "support/check.h"
#include "support/documents.h"

enum { US, EU, NODES };

struct bench {
    struct arena *arena;
    struct engine *engines[NODES];
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

static void start(struct bench *bench)
{
    static const char *const names[] = {"a", "b"};
    struct error err;

    bench->cluster = cluster_new(NULL);
    for (size_t i = 0; i < NODES; i++)
        assert_ok(cluster_add(bench->cluster, names[i], bench->engines[i], &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = bench->cluster, .purge_by_hand = true},
                  &bench->catalogue, &err),
              &err);
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
    balancer_free(bench->balancer);
    migrator_free(bench->migrator);
    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
}

static bool region_set(struct bench *bench, const char *node, const char *region, struct error *err)
{
    struct node_info info = {.name = ""};

    (void)snprintf(info.region, sizeof info.region, "%s", region);
    return catalogue_node_change(bench->catalogue, slice_of_text(node),
                                 &(struct catalogue_node_settings){.attributes = &info}, err);
}

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    bench->arena = arena_new();
    bench->clock = (struct clock){
        .wall_ms = clock_system.wall_ms, .monotonic_ms = time_passes, .context = bench};
    for (size_t i = 0; i < NODES; i++)
        assert_ok(
            engine_open(SLICE("memory:"), &(struct engine_options){0}, &bench->engines[i], &err),
            &err);
    start(bench);
    assert_ok(region_set(bench, "a", "us", &err), &err);
    assert_ok(region_set(bench, "b", "eu", &err), &err);
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
    for (size_t i = 0; i < NODES; i++)
        engine_close(bench->engines[i]);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

/* --- What the tests say ---------------------------------------------------------------------- */

#define KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}"
#define RANGE "{\"id\":\"c\"," KEY ",\"orrery\":{\"strategy\":\"range\",\"placement\":["
#define EUROPE "{\"keyLike\":[\"eu-*\"],\"region\":\"eu\",\"resident\":true}"
#define AMERICA "{\"region\":\"us\"}"
#define END "]}}"

static bool make(struct bench *bench, const char *body, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = 400};

    return catalogue_container_create(bench->catalogue, SLICE("default"), SLICE("d"),
                                      document_of(bench->arena, body), &request, &container, err);
}

static bool replace(struct bench *bench, const char *body, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    return catalogue_container_replace(bench->catalogue, SLICE("default"), SLICE("d"), SLICE("c"),
                                       document_of(bench->arena, body), SLICE_NONE, &container,
                                       err);
}

static struct container *opened(struct bench *bench, const char *id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(bench->catalogue, SLICE("default"), SLICE("d"),
                                       slice_of_text(id), &container, &err),
              &err);
    return container;
}

/* Where a key goes by the map of now. */
static struct partition_span span_of(struct bench *bench, const char *key)
{
    CLEANUP(container_unref) struct container *container = opened(bench, "c");
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct document_value value = document_string(slice_of_text(key));
    struct partition_key of = partition_key_of(definition, &value, 1);

    return *partition_map_find(container_map(container),
                               partition_route_range(definition, &of, bench->arena).min);
}

static void assert_nodes(struct bench *bench)
{
    static const char *const europe[] = {"eu-", "eu-1", "eu-zz", "eu-\xf4\x8f\xbf\xbf"};
    static const char *const america[] = {"", "a", "eu", "eu,", "eu.", "us-1", "\xf4\x8f\xbf\xbf"};
    char longer[400];

    for (size_t i = 0; i < ARRAY_LEN(europe); i++)
        assert_int_equal(span_of(bench, europe[i]).node, EU);
    for (size_t i = 0; i < ARRAY_LEN(america); i++)
        assert_int_equal(span_of(bench, america[i]).node, US);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(span_of(bench, longer).node, US);
    memcpy(longer, "eu-", 3);
    assert_int_equal(span_of(bench, longer).node, EU);
}

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

/* --- Tests ----------------------------------------------------------------------------------- */

static void a_key_goes_where_its_rule_says_before_it_is_written(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_ok(make(bench, RANGE EUROPE "," AMERICA END, &err), &err);
    assert_nodes(bench);
    assert_int_equal(span_of(bench, "eu-1").cut, PARTITION_CUT_PLACED);
    stop(bench);
    start(bench);
    assert_nodes(bench);
}

static void zones_of_a_directory_do_the_same_with_a_hash(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct definition_directory_change edit = {.value = document_string(SLICE("eu-7")), .shard = 2};
    struct error err;

    assert_ok(make(bench,
                   "{\"id\":\"c\"," KEY ",\"orrery\":{\"strategy\":{\"kind\":\"lookup\","
                   "\"shards\":16,\"zones\":[{\"keyLike\":\"eu-*\",\"first\":4,\"last\":9}]},"
                   "\"placement\":[" EUROPE "," AMERICA END,
                   &err),
              &err);
    assert_nodes(bench);
    /* A line puts no key outside of its zone, and none of another key into it. */
    container = opened(bench, "c");
    assert_fails(migrator_reroute(bench->migrator, container, &edit, 1, &err), &err,
                 ERROR_BAD_REQUEST);
    edit =
        (struct definition_directory_change){.value = document_string(SLICE("us-7")), .shard = 4};
    assert_fails(migrator_reroute(bench->migrator, container, &edit, 1, &err), &err,
                 ERROR_BAD_REQUEST);
    edit.shard = 3;
    assert_ok(migrator_reroute(bench->migrator, container, &edit, 1, &err), &err);
    container_unref(TAKE(container));
    settle(bench);
    assert_nodes(bench);
}

static void first_components_lie_together_under_any_hash(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_ok(make(bench,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/region\",\"/tenant\"],"
                   "\"kind\":\"MultiHash\",\"version\":2},\"orrery\":{\"placement\":["
                   "{\"key\":[\"eu-\"],\"region\":\"eu\",\"resident\":true}," AMERICA END,
                   &err),
              &err);
    assert_int_equal(span_of(bench, "eu-").node, EU);
    assert_int_equal(span_of(bench, "us").node, US);
}

static void what_would_send_keys_elsewhere_is_refused(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct partition_key key = {.components = {document_string(SLICE("eu-1"))}, .count = 1};
    uint32_t both[2];
    struct error err;

    assert_ok(make(bench, RANGE EUROPE "," AMERICA END, &err), &err);
    container = opened(bench, "c");
    both[0] = span_of(bench, "a").id;
    both[1] = span_of(bench, "eu-1").id;
    assert_fails(migrator_move(bench->migrator, container, both[1], US, &err), &err,
                 ERROR_RESIDENCE);
    assert_contains(err.message, "rule 1 of orrery.placement");
    assert_contains(err.message, "node \"a\"");
    assert_fails(migrator_merge(bench->migrator, container, both, 2, &err), &err, ERROR_RESIDENCE);
    assert_fails(region_set(bench, "b", "us", &err), &err, ERROR_RESIDENCE);
    assert_fails(replace(bench,
                         RANGE "{\"keyLike\":[\"eu-*\"],\"region\":\"us\",\"resident\":true}" END,
                         &err),
                 &err, ERROR_RESIDENCE);
    /* What keeps them where they are is not. */
    assert_ok(migrator_isolate(bench->migrator, container, &key, 0, &err), &err);
    assert_fails(replace(bench, RANGE EUROPE ",{\"nodes\":[\"a\"],\"resident\":true}" END, &err),
                 &err, ERROR_BUSY);
    container_unref(TAKE(container));
    settle(bench);
    assert_nodes(bench);
    assert_ok(replace(bench, RANGE AMERICA END, &err), &err); /* and rules may go */
    assert_ok(region_set(bench, "b", "us", &err), &err);
}

static void a_rule_becomes_resident_when_it_holds(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_ok(make(bench, RANGE AMERICA END, &err), &err);
    assert_int_equal(span_of(bench, "eu-1").node, US);
    assert_fails(replace(bench, RANGE EUROPE "," AMERICA END, &err), &err, ERROR_RESIDENCE);
    assert_contains(err.message, "without \"resident\" first");
    assert_ok(replace(bench, RANGE "{\"keyLike\":[\"eu-*\"],\"region\":\"eu\"}," AMERICA END, &err),
              &err);
    settle(bench);
    assert_nodes(bench);
    assert_ok(replace(bench, RANGE EUROPE "," AMERICA END, &err), &err);
    settle(bench);
    assert_nodes(bench);
}

static void items_that_would_lie_elsewhere_too_are_refused(void **state)
{
    struct bench *bench = *state;
    static const char view[] = "{\"id\":\"v\",\"partitionKey\":{\"paths\":[\"/x\"],\"version\":2},"
                               "\"orrery\":{\"view\":{\"sources\":[\"c\"],\"query\":"
                               "\"SELECT c.x FROM c\"}%s}}";
    CLEANUP(container_unref) struct container *container = NULL;
    struct document_value value = document_string(SLICE("eu-1"));
    struct partition_key key = {.components = {value}, .count = 1};
    struct error err;

    assert_ok(make(bench, RANGE EUROPE "," AMERICA END, &err), &err);
    assert_fails(make(bench, arena_text(bench->arena, arena_printf(bench->arena, view, "")), &err),
                 &err, ERROR_VIEW_UNFIT);
    assert_contains(err.message, "its items are resident");
    container = opened(bench, "c");
    assert_false(definition_fields(container_definition(container))->followed);
    assert_fails(catalogue_promotion_check(bench->catalogue, container, NULL, &key, &err), &err,
                 ERROR_PROMOTION_UNFIT);
    assert_fails(make(bench,
                      "{\"id\":\"g\"," KEY ",\"orrery\":{\"strategy\":\"range\",\"graph\":"
                      "{\"reverse\":true},\"placement\":[" EUROPE END,
                      &err),
                 &err, ERROR_RESIDENCE);
    assert_contains(err.message, "\"placed\"");
}

static void a_view_of_a_container_that_is_resident_as_a_whole_has_the_same_rule(void **state)
{
    struct bench *bench = *state;
    static const char rule[] = ",\"placement\":[{\"region\":\"eu\",\"resident\":true}]";
    static const char view[] = "{\"id\":\"v\",\"partitionKey\":{\"paths\":[\"/x\"],\"version\":2},"
                               "\"orrery\":{\"view\":{\"sources\":[\"c\"],\"query\":"
                               "\"SELECT c.x FROM c\"}%s}}";
    CLEANUP(container_unref) struct container *made = NULL;
    const struct partition_span *spans;
    size_t count;
    struct error err;

    assert_ok(make(bench, RANGE "{\"region\":\"eu\",\"resident\":true}" END, &err), &err);
    assert_fails(make(bench, arena_text(bench->arena, arena_printf(bench->arena, view, "")), &err),
                 &err, ERROR_VIEW_UNFIT);
    assert_ok(make(bench, arena_text(bench->arena, arena_printf(bench->arena, view, rule)), &err),
              &err);
    made = opened(bench, "v");
    spans = partition_map_spans(container_map(made), &count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(spans[i].node, EU);
    /* Neither of the two changes while the other is there. */
    assert_fails(replace(bench, RANGE AMERICA END, &err), &err, ERROR_VIEW_BOUND);
}

static void a_container_without_a_node_that_may_hold_it_is_not_made(void **state)
{
    struct bench *bench = *state;
    struct error err;

    assert_fails(make(bench, RANGE "{\"region\":\"mars\",\"resident\":true}" END, &err), &err,
                 ERROR_NODE_DOWN);
    assert_fails(make(bench,
                      RANGE "{\"keyLike\":[\"m-*\"],\"region\":\"mars\",\"resident\":true}" END,
                      &err),
                 &err, ERROR_NODE_DOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_key_goes_where_its_rule_says_before_it_is_written),
        TEST(zones_of_a_directory_do_the_same_with_a_hash),
        TEST(first_components_lie_together_under_any_hash),
        TEST(what_would_send_keys_elsewhere_is_refused),
        TEST(a_rule_becomes_resident_when_it_holds),
        TEST(items_that_would_lie_elsewhere_too_are_refused),
        TEST(a_view_of_a_container_that_is_resident_as_a_whole_has_the_same_rule),
        TEST(a_container_without_a_node_that_may_hold_it_is_not_made),
    };

    return cmocka_run_group_tests_name("catalogue/resident", tests, NULL, NULL);
}
