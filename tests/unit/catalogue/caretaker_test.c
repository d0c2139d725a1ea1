/* Catalogue, items, meters and the caretaker together, as the fronts will use them. */
#include "catalogue/caretaker.h"

#include "catalogue/container_space.h"
#include "item/operation.h"
#include "load/offer_meters.h"
#include "support/check.h"
#include "support/documents.h"

struct fixture {
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct caretaker *caretaker;
    struct arena *arena;
    int64_t wall_ms;
    struct clock clock;
};

static int64_t test_wall_ms(void *context)
{
    return ((struct fixture *)context)->wall_ms;
}

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    struct account *account;
    struct database *database;
    struct error err;

    fixture->wall_ms = 1000000;
    fixture->clock = (struct clock){
        .wall_ms = test_wall_ms, .monotonic_ms = clock_system.monotonic_ms, .context = fixture};
    fixture->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &fixture->engine, &err),
              &err);
    fixture->cluster = cluster_new(&(struct commit_options){.clock = &fixture->clock});
    assert_ok(cluster_add(fixture->cluster, "local", fixture->engine, &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = fixture->cluster, .purge_by_hand = true},
                  &fixture->catalogue, &err),
              &err);
    assert_ok(catalogue_account_create(fixture->catalogue, SLICE("acme"),
                                       document_of(fixture->arena, "{}"), &account, &err),
              &err);
    account_unref(account);
    assert_ok(catalogue_database_create(fixture->catalogue, SLICE("acme"), SLICE("shop"), NULL,
                                        &database, &err),
              &err);
    database_unref(database);
    fixture->caretaker = caretaker_new(&(struct caretaker_options){
        .catalogue = fixture->catalogue, .clock = &fixture->clock, .slice = 3, .by_hand = true});
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    caretaker_free(fixture->caretaker);
    catalogue_close(fixture->catalogue);
    cluster_free(fixture->cluster);
    engine_close(fixture->engine);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

static struct container *container_make(struct fixture *fixture, const char *body, int64_t ru)
{
    struct offer_request request = {.given = true, .ru = ru};
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_create(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(fixture->arena, body), &request, &container,
                                         &err),
              &err);
    return container;
}

static void items_make(struct fixture *fixture, struct container *container, int count)
{
    struct item_space space = container_space(container, &fixture->clock, NULL);

    for (int i = 0; i < count; i++) {
        struct slice text = arena_printf(
            fixture->arena, "{\"id\":\"%d\",\"pk\":\"k%d\",\"x\":%d,\"y\":1}", i, i % 7, i);
        struct slice document = document_of(fixture->arena, arena_text(fixture->arena, text));
        struct partition_key key = partition_key_extract(&space.definition->key, document);
        struct document_value id = document_string(arena_printf(fixture->arena, "%d", i));
        struct error err;

        assert_ok(item_operation_run(&(struct item_operation){.space = &space,
                                                              .arena = fixture->arena,
                                                              .verb = ITEM_CREATE,
                                                              .key = key,
                                                              .id = id,
                                                              .document = document},
                                     &err),
                  &err);
    }
}

/* Entries of a family over all partitions of a container. */
static size_t family_count(struct fixture *fixture, struct container *container, uint8_t family)
{
    struct item_space space = container_space(container, &fixture->clock, NULL);
    uint8_t min = family, max = (uint8_t)(family + 1);
    struct engine_range range = {.min = slice_of(&min, 1), .max = slice_of(&max, 1)};
    size_t spans_count, count = 0;
    const struct partition_span *spans = partition_map_spans(space.map, &spans_count);
    struct error err;

    for (size_t i = 0; i < spans_count; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct engine_entry entry;

        assert_ok(engine_iterator_new(fixture->engine, NULL, spans[i].id, range, false,
                                      ENGINE_READ_ANY, &iterator, &err),
                  &err);
        for (;; count++) {
            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            if (entry.found != ENGINE_FOUND)
                break;
        }
    }
    return count;
}

static size_t round_run(struct fixture *fixture)
{
    struct error err;
    size_t done;

    assert_ok(caretaker_round(fixture->caretaker, &done, &err), &err);
    return done;
}

static void expired_items_are_removed_in_the_background(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref)
    struct container *container = container_make(
        fixture, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"defaultTtl\":60}", 20000);

    items_make(fixture, container, 30);
    assert_int_equal(round_run(fixture), 0);
    fixture->wall_ms += 61 * 1000;
    assert_int_equal(round_run(fixture), 30);
    assert_int_equal(family_count(fixture, container, 'd'), 0);
    assert_int_equal(family_count(fixture, container, 'i'), 0);
}

static void a_changed_policy_is_carried_out_in_the_background_with_progress(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref)
    struct container *before =
        container_make(fixture, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}", 25000);
    CLEANUP(container_unref) struct container *after = NULL;
    CLEANUP(container_unref) struct container *done = NULL;
    struct definition *const *policies;
    struct error err;

    items_make(fixture, before, 40);
    assert_int_equal(family_count(fixture, before, 'i'), 4 * 40);
    assert_ok(catalogue_container_replace(
                  fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                  document_of(fixture->arena,
                              "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                              "\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/x/?\"}],"
                              "\"excludedPaths\":[{\"path\":\"/*\"}]}}"),
                  SLICE_NONE, &after, &err),
              &err);
    assert_int_equal(container_policy_version(after), 2);
    assert_int_equal(caretaker_progress(fixture->caretaker, after), 0);
    /* Meanwhile items are changed by their new policy, and read as ever. */
    for (int round = 0; round < 100; round++) {
        round_run(fixture);
        container_unref(TAKE(done));
        assert_ok(catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                           SLICE("c"), &done, &err),
                  &err);
        if (container_policies_before(done, &policies) == 0)
            break;
    }
    assert_int_equal(container_policies_before(done, &policies), 0);
    assert_int_equal(caretaker_progress(fixture->caretaker, done), 100);
    assert_int_equal(family_count(fixture, done, 'i'), 2 * 40);
    assert_int_equal(family_count(fixture, done, 'f'), 40);
}

static void an_offer_reaches_every_partition_by_its_share(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref)
    struct container *container =
        container_make(fixture, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}", 25000);
    CLEANUP(meters_free) struct meters *meters = meters_new(&fixture->clock);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct error err;

    assert_int_equal(count, 3);
    assert_ok(load_meters_apply(meters, container, 0, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct budget_state budget;

        budget_get_state(meter_budget(meters_find(meters, spans[i].id)), clock_monotonic_ms(),
                         &budget);
        assert_in_range(budget.rate_cru, 833300, 833400);
    }
}

#define CARETAKER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CARETAKER_TEST(expired_items_are_removed_in_the_background),
        CARETAKER_TEST(a_changed_policy_is_carried_out_in_the_background_with_progress),
        CARETAKER_TEST(an_offer_reaches_every_partition_by_its_share),
    };
    return cmocka_run_group_tests_name("catalogue/caretaker", tests, NULL, NULL);
}
