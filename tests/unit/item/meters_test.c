#include "item/operation.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"
#include "throughput/cost.h"

/* A container with 100 RU/s and no burst, on clocks the test turns. */
struct fixture {
    struct test_space test;
    struct meters *meters;
    struct clock clock;
    int64_t monotonic_ms;
    struct arena *arena;
};

static int64_t test_monotonic_ms(void *context)
{
    return ((struct fixture *)context)->monotonic_ms;
}

static int64_t test_wall_ms(void *context)
{
    return 1000000 + ((struct fixture *)context)->monotonic_ms;
}

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&fixture->test, engine, &(struct test_space_options){0});
    fixture->clock = (struct clock){
        .wall_ms = test_wall_ms, .monotonic_ms = test_monotonic_ms, .context = fixture};
    fixture->monotonic_ms = 5000;
    fixture->meters = meters_new(&fixture->clock);
    fixture->arena = arena_new();
    meters_set_own(fixture->meters, 1, &(struct budget_options){.rate_cru = 100 * 100});
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    test_space_done(&fixture->test);
    meters_free(fixture->meters);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

static bool create(struct fixture *fixture, const char *pk, const char *id,
                   struct metered_call *call, struct error *err)
{
    struct item_operation op = {
        .space = &fixture->test.space,
        .meters = fixture->meters,
        .arena = fixture->arena,
        .verb = ITEM_CREATE,
        .key = test_space_key(&fixture->test, pk),
        .id = document_string(slice_of_text(id)),
        .document = document_of(fixture->arena, "{\"a\":1,\"b\":2}"),
        .metered = *call,
    };
    bool fine = item_operation_run(&op, err);

    *call = op.metered;
    return fine;
}

static void the_same_write_costs_the_same(void **state)
{
    struct fixture *fixture = *state;
    struct metered_call first = {0}, second = {0};
    struct error err;

    assert_ok(create(fixture, "[\"a\"]", "1", &first, &err), &err);
    assert_ok(create(fixture, "[\"a\"]", "2", &second, &err), &err);
    assert_true(first.charge_cru > 500);
    assert_int_equal(first.charge_cru, second.charge_cru);
}

static void a_refused_write_costs_its_read(void **state)
{
    struct fixture *fixture = *state;
    struct metered_call call = {0};
    struct error err;

    assert_ok(create(fixture, "[\"a\"]", "1", &call, &err), &err);
    assert_fails(create(fixture, "[\"a\"]", "1", &call, &err), &err, ERROR_ITEM_EXISTS);
    assert_int_equal(call.charge_cru, cost_write_refused(0));
}

static void a_used_up_second_refuses_before_any_work_and_says_how_long(void **state)
{
    struct fixture *fixture = *state;
    struct partition_key key = test_space_key(&fixture->test, "[\"a\"]");
    struct metered_call call = {0};
    struct statistics_totals totals;
    struct error err;
    int written = 0;
    char id[16];

    for (; written < 100; written++) {
        snprintf(id, sizeof id, "%d", written);
        if (!create(fixture, "[\"a\"]", id, &call, &err))
            break;
    }
    assert_in_range(written, 10, 20);
    assert_int_equal(err.code, ERROR_TOO_MANY_REQUESTS);
    assert_in_range(call.wait_ms, 1, 2000);
    {
        struct item_operation read = {.space = &fixture->test.space,
                                      .arena = fixture->arena,
                                      .verb = ITEM_READ,
                                      .key = key,
                                      .id = document_string(slice_of_text(id))};

        assert_fails(item_operation_run(&read, &err), &err, ERROR_ITEM_MISSING);
    }
    fixture->monotonic_ms += call.wait_ms;
    assert_ok(create(fixture, "[\"a\"]", id, &call, &err), &err);
    statistics_get_totals(meter_statistics(meters_find(fixture->meters, 1)), test_wall_ms(fixture),
                          &totals);
    assert_int_equal(totals.hour.requests, written + 2);
    assert_int_equal(totals.hour.throttled, 1);
}

static void a_pool_goes_with_the_last_partition_that_draws_from_it(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = NULL;
    struct budget_options options = {.rate_cru = 40000, .rate_max_cru = 1000000};
    struct budget_state pool;
    struct error err;

    assert_ok(meters_shared(fixture->meters, 9, &options, &shared, &err), &err);
    meters_set_shared(fixture->meters, 21, shared, 0);
    meters_set_shared(fixture->meters, 22, shared, 0);
    meters_remove(fixture->meters, 21);
    assert_true(meters_shared_state(fixture->meters, 9, &pool));
    meters_remove(fixture->meters, 1); /* not one of them */
    assert_true(meters_shared_state(fixture->meters, 9, &pool));
    meters_remove(fixture->meters, 22);
    assert_false(meters_shared_state(fixture->meters, 9, &pool));
}

static void the_hottest_key_is_known(void **state)
{
    struct fixture *fixture = *state;
    struct statistics_key *keys;
    struct metered_call call = {0};
    struct error err;

    for (int i = 0; i < 30; i++) {
        char id[16];

        snprintf(id, sizeof id, "%d", i);
        fixture->monotonic_ms += 1000;
        assert_ok(create(fixture, i % 10 ? "[\"hot\"]" : "[\"cold\"]", id, &call, &err), &err);
    }
    assert_int_equal(statistics_hottest(meter_statistics(meters_find(fixture->meters, 1)), 60, 5,
                                        test_wall_ms(fixture), fixture->arena, &keys),
                     2);
    assert_in_range(keys[0].share_bp, 8500, 9500);
}

static void reads_are_priced_by_size(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation read = {.space = &fixture->test.space,
                                  .meters = fixture->meters,
                                  .arena = fixture->arena,
                                  .verb = ITEM_READ,
                                  .key = test_space_key(&fixture->test, "[\"a\"]"),
                                  .id = document_string(SLICE("1"))};
    struct metered_call call = {0};
    struct error err;

    assert_ok(create(fixture, "[\"a\"]", "1", &call, &err), &err);
    assert_ok(item_operation_run(&read, &err), &err);
    assert_int_equal(read.metered.charge_cru, 100);
    read.metered = (struct metered_call){.strong = true};
    assert_ok(item_operation_run(&read, &err), &err);
    assert_int_equal(read.metered.charge_cru, 200);
}

/* --- Transactions ----------------------------------------------------------------------------- */

/* Adds one to n of an item, and lets somebody else write it first as often as asked. */
struct increment {
    struct metered_transaction transaction;
    struct fixture *fixture;
    int interrupted, planned, done;
};

static bool increment_plan(struct metered_transaction *self, struct transaction *transaction,
                           struct error *err)
{
    struct increment *increment = CONTAINER_OF(self, struct increment, transaction);
    struct fixture *fixture = increment->fixture;
    struct partition_key key = test_space_key(&fixture->test, "[\"a\"]");
    struct document_value id = document_string(SLICE("1"));
    const struct item *item;
    struct document_value n;
    int64_t number = 0;

    increment->planned++;
    assert_ok(transaction_read(transaction, &id, &item, err), err);
    self->reads_cru += cost_read(item->document.len, false);
    assert_true(document_find(item->document, SLICE("n"), &n) && document_to_int64(&n, &number));
    if (increment->interrupted-- > 0)
        assert_ok(item_operation_run(&(struct item_operation){.space = &fixture->test.space,
                                                              .arena = fixture->arena,
                                                              .verb = ITEM_REPLACE,
                                                              .key = key,
                                                              .id = id,
                                                              .document = document_of(
                                                                  fixture->arena, "{\"n\":100}")},
                                     err),
                  err);
    return transaction_write(
        transaction, &id, TRANSACTION_REPLACE,
        document_of(fixture->arena,
                    arena_text(fixture->arena, arena_printf(fixture->arena, "{\"n\":%lld}",
                                                            (long long)number + 1))),
        NULL, err);
}

static void increment_done(struct metered_transaction *self, struct transaction *transaction)
{
    struct increment *increment = CONTAINER_OF(self, struct increment, transaction);

    increment->done++;
    assert_true(transaction_result(transaction, 0).charge_cru > 0);
}

static void a_transaction_runs_again_until_it_wins(void **state)
{
    struct fixture *fixture = *state;
    struct partition_key key = test_space_key(&fixture->test, "[\"a\"]");
    struct document_value id = document_string(SLICE("1"));
    struct increment increment = {
        .transaction = {.plan = increment_plan, .done = increment_done},
        .fixture = fixture,
        .interrupted = 3,
    };
    struct item_operation read = {.space = &fixture->test.space,
                                  .arena = fixture->arena,
                                  .verb = ITEM_READ,
                                  .key = key,
                                  .id = id};
    struct metered_call call = {0};
    struct error err;

    assert_ok(item_operation_run(
                  &(struct item_operation){.space = &fixture->test.space,
                                           .arena = fixture->arena,
                                           .verb = ITEM_CREATE,
                                           .key = key,
                                           .id = id,
                                           .document = document_of(fixture->arena, "{\"n\":1}")},
                  &err),
              &err);
    assert_ok(metered_transaction_run(fixture->meters, &fixture->test.space, &key,
                                      &increment.transaction, &call, fixture->arena, &err),
              &err);
    assert_int_equal(increment.planned, 4);
    assert_int_equal(increment.done, 1);
    assert_ok(item_operation_run(&read, &err), &err);
    assert_slice_equal(read.result.item.document, document_of(fixture->arena, "{\"n\":101}"));
    /* Attempts that lost are free. */
    assert_true(call.charge_cru > 1000 && call.charge_cru < 2000);
}

static void a_transaction_that_never_wins_ends(void **state)
{
    struct fixture *fixture = *state;
    struct partition_key key = test_space_key(&fixture->test, "[\"a\"]");
    struct document_value id = document_string(SLICE("1"));
    struct increment increment = {
        .transaction = {.plan = increment_plan}, .fixture = fixture, .interrupted = 1000000};
    struct metered_call call = {0};
    struct error err;

    assert_ok(item_operation_run(
                  &(struct item_operation){.space = &fixture->test.space,
                                           .arena = fixture->arena,
                                           .verb = ITEM_CREATE,
                                           .key = key,
                                           .id = id,
                                           .document = document_of(fixture->arena, "{\"n\":1}")},
                  &err),
              &err);
    assert_fails(metered_transaction_run(fixture->meters, &fixture->test.space, &key,
                                         &increment.transaction, &call, fixture->arena, &err),
                 &err, ERROR_CONFLICT);
    assert_true(increment.planned <= 1000);
}

#define METERS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        METERS_TEST(the_same_write_costs_the_same),
        METERS_TEST(a_refused_write_costs_its_read),
        METERS_TEST(a_used_up_second_refuses_before_any_work_and_says_how_long),
        METERS_TEST(the_hottest_key_is_known),
        METERS_TEST(a_pool_goes_with_the_last_partition_that_draws_from_it),
        METERS_TEST(reads_are_priced_by_size),
        METERS_TEST(a_transaction_runs_again_until_it_wins),
        METERS_TEST(a_transaction_that_never_wins_ends),
    };
    return cmocka_run_group_tests_name("item/meters", tests, NULL, NULL);
}
