#include "maintain/pauses.h"

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

static bool goes_on(struct pauses *pauses, const struct container *container, bool changes)
{
    int64_t wait_ms;
    struct error err;
    bool fine = pauses_check(pauses, container, changes, &wait_ms, &err);

    if (!fine) {
        assert_int_equal(err.code, ERROR_BUSY);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pause_is_of_what_it_names_and_outlives_restarts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_planned_window_begins_and_ends_by_itself, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_are_judged_and_a_failed_write_changes_nothing, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
