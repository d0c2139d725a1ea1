#include "item/item.h"
#include "maintain/pauses.h"
#include "partition/strategy.h"

#include "../observe/audit_fixture.h"

static struct container *container_make(struct fixture *fixture, const char *database,
                                        const char *id)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *made = NULL;
    struct container *container;
    struct error err;

    (void)!catalogue_account_create(fixture->catalogue, SLICE("acme"),
                                    document_of(fixture->arena, "{}"), &account, &err);
    (void)!catalogue_database_create(fixture->catalogue, SLICE("acme"), slice_of_text(database),
                                     NULL, &made, &err);
    assert_ok(catalogue_container_create(
                  fixture->catalogue, SLICE("acme"), slice_of_text(database),
                  document_of(fixture->arena,
                              arena_text(fixture->arena,
                                         arena_printf(fixture->arena,
                                                      "{\"id\":\"%s\",\"partitionKey\":{\"paths\":"
                                                      "[\"/pk\"],\"version\":2}}",
                                                      id))),
                  NULL, &container, &err),
              &err);
    return container;
}

static struct pauses *opened(struct fixture *fixture)
{
    struct pauses *pauses;
    struct error err;

    assert_ok(pauses_new(fixture->catalogue, &fixture->clock, &pauses, &err), &err);
    return pauses;
}

static bool goes_on(struct pauses *pauses, struct container *container, bool changes)
{
    int64_t wait_ms;
    struct error err;
    bool fine = pauses_check(pauses, container, changes, &wait_ms, &err);

    if (!fine) {
        assert_true(pause_is_told(&err));
        assert_int_equal(err.status, 503);
        assert_contains(err.message, "we move house");
        assert_true(wait_ms >= 1);
    }
    return fine;
}

static void a_pause_is_of_what_it_names_and_outlives_restarts(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *orders = container_make(fixture, "shop", "orders");
    CLEANUP(container_unref) struct container *users = container_make(fixture, "shop", "users");
    struct pauses *pauses = opened(fixture);
    struct pause pause = {.name = "move",
                          .writes = true,
                          .container = container_info(orders)->number,
                          .message = "we move house"};
    struct error err;

    assert_true(goes_on(pauses, orders, true));
    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_false(goes_on(pauses, orders, true));
    assert_true(goes_on(pauses, orders, false));
    assert_true(goes_on(pauses, users, true));
    pauses_free(pauses);
    pauses = opened(fixture);
    assert_false(goes_on(pauses, orders, true));
    pause.writes = false;
    assert_ok(pauses_set(pauses, &pause, &err), &err); /* the same name: replaced */
    assert_false(goes_on(pauses, orders, false));
    assert_ok(pauses_end(pauses, SLICE("move"), &err), &err);
    assert_true(goes_on(pauses, orders, true));
    assert_fails(pauses_end(pauses, SLICE("move"), &err), &err, ERROR_NOT_FOUND);
    pauses_free(pauses);
}

static void a_planned_window_begins_and_ends_by_itself(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *orders = container_make(fixture, "shop", "orders");
    CLEANUP(pauses_free) struct pauses *pauses = opened(fixture);
    struct pause pause = {.name = "window",
                          .database = container_database_number(orders),
                          .message = "we move house",
                          .from_ms = fixture->now_ms + 1000,
                          .until_ms = fixture->now_ms + 3000};
    struct error err;

    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_true(goes_on(pauses, orders, true));
    fixture->now_ms += 1500;
    assert_false(goes_on(pauses, orders, false));
    fixture->now_ms += 1500;
    assert_true(goes_on(pauses, orders, true));
    pause.from_ms = 0;
    assert_fails(pauses_set(pauses, &pause, &err), &err, ERROR_BAD_REQUEST);
}

static void names_are_judged_and_a_failed_write_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *orders = container_make(fixture, "shop", "orders");
    CLEANUP(pauses_free) struct pauses *pauses = opened(fixture);
    struct pause pause = {.name = "Not This", .message = "we move house"};
    struct error err;

    assert_fails(pauses_set(pauses, &pause, &err), &err, ERROR_BAD_REQUEST);
    snprintf(pause.name, sizeof pause.name, "all");
    fault_engine_fill(fixture->engine, true);
    assert_false(pauses_set(pauses, &pause, &err));
    assert_true(goes_on(pauses, orders, true));
    fault_engine_fill(fixture->engine, false);
    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_false(goes_on(pauses, orders, false));
}

/* The routing keys of one key of the container. */
static struct slice logical_of(struct fixture *fixture, struct container *container,
                               const char *json)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct partition_key key;
    struct error err;

    assert_ok(partition_key_parse(definition, slice_of_text(json), PARTITION_KEY_WHOLE,
                                  fixture->arena, &key, &err),
              &err);
    return item_logical(definition, &key, fixture->arena);
}

static enum error_code asked(struct pauses *pauses, struct item_hold_question question)
{
    struct error err;

    return item_holds_admit(pauses_holds(pauses), &question, &err) ? ERROR_NONE : err.code;
}

static void keys_are_paused_alone_and_ranges_that_hold_them_too(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *orders = container_make(fixture, "shop", "orders");
    CLEANUP(container_unref) struct container *users = container_make(fixture, "shop", "users");
    struct pauses *pauses = opened(fixture);
    struct slice a = logical_of(fixture, orders, "[\"a\"]"),
                 b = logical_of(fixture, orders, "[\"b\"]");
    struct pause pause = {.name = "tenants",
                          .writes = true,
                          .container = container_info(orders)->number,
                          .keys = "[[\"a\"],[\"c\"]]",
                          .message = "we move house"};
    struct error err;

    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_true(goes_on(pauses, orders, true)); /* no key is known there */
    pauses_free(pauses);
    pauses = opened(fixture);
    assert_int_equal(asked(pauses, (struct item_hold_question){.nodes = orders, .min = a}),
                     ERROR_NONE);
    assert_int_equal(
        asked(pauses, (struct item_hold_question){.nodes = orders, .min = a, .changes = true}),
        ERROR_WRITES_PAUSED);
    assert_int_equal(
        asked(pauses, (struct item_hold_question){.nodes = orders, .min = b, .changes = true}),
        ERROR_NONE);
    assert_int_equal(
        asked(pauses, (struct item_hold_question){.nodes = users, .min = a, .changes = true}),
        ERROR_NONE);
    pause.writes = false;
    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_int_equal(asked(pauses, (struct item_hold_question){.nodes = orders, .min = a}),
                     ERROR_PAUSED);
    assert_int_equal(asked(pauses, (struct item_hold_question){.nodes = orders, .min = b}),
                     ERROR_NONE);
    assert_int_equal(asked(pauses, (struct item_hold_question){.nodes = orders,
                                                               .min = PARTITION_ROUTING_MIN,
                                                               .max = PARTITION_ROUTING_MAX}),
                     ERROR_PAUSED);
    assert_int_equal(
        asked(pauses, (struct item_hold_question){.nodes = orders,
                                                  .min = PARTITION_ROUTING_MIN,
                                                  .max = slice_compare(a, b) < 0 ? a : b}),
        slice_compare(logical_of(fixture, orders, "[\"c\"]"), slice_compare(a, b) < 0 ? a : b) < 0
            ? ERROR_PAUSED
            : ERROR_NONE);
    /* keys that are none of the container's any more, as after a re-key: better all than none */
    snprintf(pause.keys, sizeof pause.keys, "[[\"a\",\"b\"]]");
    assert_ok(pauses_set(pauses, &pause, &err), &err);
    assert_int_equal(asked(pauses, (struct item_hold_question){.nodes = orders, .min = b}),
                     ERROR_PAUSED);
    pause.container = 0;
    assert_fails(pauses_set(pauses, &pause, &err), &err, ERROR_BAD_REQUEST);
    pauses_free(pauses);
}

static void nodes_and_regions_must_be_there(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(pauses_free) struct pauses *pauses = opened(fixture);
    struct pause node = {.name = "node", .node = "nowhere", .message = "we move house"};
    struct pause region = {.name = "region", .region = "mars", .message = "we move house"};
    struct error err;

    assert_fails(pauses_set(pauses, &node, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(pauses_set(pauses, &region, &err), &err, ERROR_BAD_REQUEST);
}

static void a_drain_waits_for_those_who_began_before_it(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(pauses_free) struct pauses *pauses = opened(fixture);
    uint64_t under_way;
    uint8_t first = pauses_enter(pauses), second;
    atomic_bool cancelled = true;

    assert_false(pauses_drain(pauses, INT64_MAX, &cancelled, &under_way));
    assert_int_equal(under_way, 1);
    second = pauses_enter(pauses);
    assert_false(pauses_drain(pauses, INT64_MAX, &cancelled, &under_way));
    assert_int_equal(under_way, 2);
    pauses_leave(pauses, first);
    assert_false(pauses_drain(pauses, 0, NULL, &under_way));
    assert_int_equal(under_way, 1);
    pauses_leave(pauses, second);
    pauses_leave(pauses, 0); /* who never entered */
    assert_true(pauses_drain(pauses, 0, NULL, &under_way));
    assert_int_equal(under_way, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pause_is_of_what_it_names_and_outlives_restarts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_planned_window_begins_and_ends_by_itself, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_are_judged_and_a_failed_write_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_are_paused_alone_and_ranges_that_hold_them_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nodes_and_regions_must_be_there, setup, teardown),
        cmocka_unit_test_setup_teardown(a_drain_waits_for_those_who_began_before_it, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
