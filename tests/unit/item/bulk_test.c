#include "item/bulk.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"
#include "throughput/cost.h"

enum { MANY = 100 };

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

static void open_with(struct fixture *fixture, const struct test_space_options *options)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&fixture->test, engine, options);
}

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    fixture->clock = (struct clock){
        .wall_ms = test_wall_ms, .monotonic_ms = test_monotonic_ms, .context = fixture};
    fixture->monotonic_ms = 5000;
    fixture->meters = meters_new(&fixture->clock);
    fixture->arena = arena_new();
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

static struct item_operation operation_of(struct fixture *fixture, enum item_verb verb,
                                          const char *id, const char *json)
{
    return (struct item_operation){
        .space = &fixture->test.space,
        .arena = fixture->arena,
        .key = test_space_key(&fixture->test, "[\"a\"]"),
        .id = document_string(arena_copy(fixture->arena, slice_of_text(id))),
        .verb = verb,
        .document = json ? document_of(fixture->arena, json) : SLICE_NONE,
    };
}

static void create_many(struct fixture *fixture, struct item_operation operations[MANY])
{
    for (int i = 0; i < MANY; i++) {
        char id[8];

        snprintf(id, sizeof id, "%d", i);
        operations[i] = operation_of(fixture, ITEM_CREATE, id, "{\"n\":1}");
    }
}

static void a_hundred_creates_share_their_groups(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[MANY];
    struct commit_statistics statistics;

    open_with(fixture, &(struct test_space_options){0});
    create_many(fixture, operations);
    bulk_run(operations, MANY, &(struct bulk_options){0});
    statistics = commit_statistics(fixture->test.commit);
    assert_int_equal(statistics.batches, MANY);
    assert_true(statistics.groups < MANY);
    for (int i = 0; i < MANY; i++) {
        assert_true(operations[i].ended);
        assert_ok(operations[i].err.code == ERROR_NONE, &operations[i].err);
        assert_true(operations[i].result.created);
        assert_true(operations[i].metered.charge_cru >= 529);
    }
}

static void operations_on_one_item_keep_their_order(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[6];
    struct error *last = &operations[5].err;

    open_with(fixture, &(struct test_space_options){0});
    operations[0] = operation_of(fixture, ITEM_CREATE, "x", "{\"n\":1}");
    operations[1] = operation_of(fixture, ITEM_REPLACE, "x", "{\"n\":2}");
    operations[2] = operation_of(fixture, ITEM_READ, "x", NULL);
    operations[3] = operation_of(fixture, ITEM_DELETE, "x", NULL);
    operations[4] = operation_of(fixture, ITEM_CREATE, "x", "{\"n\":3}");
    operations[5] = operation_of(fixture, ITEM_CREATE, "x", "{\"n\":4}");
    bulk_run(operations, ARRAY_LEN(operations), &(struct bulk_options){0});
    assert_slice_equal(operations[2].result.item.document,
                       document_of(fixture->arena, "{\"n\":2}"));
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(operations[i].err.code, ERROR_NONE);
    assert_int_equal(last->code, ERROR_ITEM_EXISTS);
}

static void a_failure_stops_only_what_is_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[3];

    open_with(fixture, &(struct test_space_options){0});
    for (int in_order = 1; in_order >= 0; in_order--) {
        operations[0] = operation_of(fixture, ITEM_UPSERT, "a", "{}");
        operations[1] = operation_of(fixture, ITEM_DELETE, "none", NULL);
        operations[2] = operation_of(fixture, ITEM_UPSERT, "b", "{}");
        bulk_run(operations, 3, &(struct bulk_options){.in_order = in_order});
        assert_int_equal(operations[1].err.code, ERROR_ITEM_MISSING);
        assert_int_equal(operations[1].metered.charge_cru, cost_write_refused(0));
        assert_int_equal(operations[2].ended, !in_order);
    }
}

static void what_ended_before_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[2];

    open_with(fixture, &(struct test_space_options){0});
    operations[0] = (struct item_operation){.ended = true, .err = {.code = ERROR_RANGE_GONE}};
    operations[1] = operation_of(fixture, ITEM_CREATE, "a", "{}");
    bulk_run(operations, 2, &(struct bulk_options){0});
    assert_int_equal(operations[0].err.code, ERROR_RANGE_GONE);
    assert_int_equal(operations[1].err.code, ERROR_NONE);
}

/* How much is owed of what the partition has. */
static int64_t owed_ms(struct fixture *fixture, uint32_t partition)
{
    struct budget_state state;

    assert_true(meters_state(fixture->meters, partition, &state));
    return state.owed_ms;
}

static void metered_run(struct fixture *fixture, struct item_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        operations[i].meters = fixture->meters;
    bulk_run(operations, count, &(struct bulk_options){0});
}

static void all_are_let_in_or_none(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[MANY];

    open_with(fixture, &(struct test_space_options){0});
    meters_set_own(fixture->meters, 1, &(struct budget_options){.rate_cru = 100 * 100});
    create_many(fixture, operations);
    metered_run(fixture, operations, MANY);
    for (int i = 0; i < MANY; i++)
        assert_ok(operations[i].err.code == ERROR_NONE, &operations[i].err);
    assert_true(owed_ms(fixture, 1) > 1000 * 5 * MANY / 100 - 1000);

    operations[0] = operation_of(fixture, ITEM_CREATE, "other", "{}");
    operations[1] = operation_of(fixture, ITEM_CREATE, "one more", "{}");
    operations[2] = (struct item_operation){.ended = true, .err = {.code = ERROR_BAD_REQUEST}};
    metered_run(fixture, operations, 3);
    for (int i = 0; i < 2; i++) {
        assert_true(operations[i].ended);
        assert_int_equal(operations[i].err.code, ERROR_TOO_MANY_REQUESTS);
        assert_int_equal(operations[i].metered.wait_ms, operations[0].metered.wait_ms);
        assert_int_equal(operations[i].metered.charge_cru, 0);
    }
    assert_int_equal(operations[2].err.code, ERROR_BAD_REQUEST);
    assert_int_equal(commit_statistics(fixture->test.commit).batches, MANY);
}

/* Two physical partitions, cut at "m": "a" is in the first, "z" in the second. */
static void one_budget_that_refuses_is_enough(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[2];
    struct item_operation spender;

    open_with(fixture, &(struct test_space_options){.partitions = 2, .bounds = {"m"}});
    meters_set_own(fixture->meters, 1, &(struct budget_options){.rate_cru = 100 * 100});
    meters_set_own(fixture->meters, 2, &(struct budget_options){.rate_cru = 100});
    spender = operation_of(fixture, ITEM_CREATE, "z", "{\"pk\":\"z\"}");
    spender.key = test_space_key(&fixture->test, "[\"z\"]");
    operations[1] = spender;
    metered_run(fixture, &spender, 1);
    assert_ok(spender.err.code == ERROR_NONE, &spender.err);
    assert_true(owed_ms(fixture, 2) > 1000);

    operations[0] = operation_of(fixture, ITEM_CREATE, "a", "{}");
    metered_run(fixture, operations, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(operations[i].err.code, ERROR_TOO_MANY_REQUESTS);
        assert_true(operations[i].metered.wait_ms > 1000);
    }
    assert_int_equal(owed_ms(fixture, 1), 0); /* it had agreed, and has everything back */
    assert_int_equal(commit_statistics(fixture->test.commit).batches, 1);
}

static void what_comes_when_memory_is_used_up_is_not_run(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[3];

    open_with(fixture, &(struct test_space_options){0});
    operations[0] = operation_of(fixture, ITEM_CREATE, "a", "{\"t\":\"some text\"}");
    operations[1] = operation_of(fixture, ITEM_READ, "a", NULL);
    operations[2] = operations[1];
    bulk_run(operations, 3, &(struct bulk_options){.bytes_max = 10});
    assert_int_equal(operations[0].err.code, ERROR_NONE);
    assert_int_equal(operations[1].err.code, ERROR_NONE);
    assert_int_equal(operations[2].err.code, ERROR_BATCH_ANSWER_TOO_LARGE);
}

static void unique_keys_hold_between_operations_of_one_wave(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[2];

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}});
    operations[0] = operation_of(fixture, ITEM_CREATE, "a", "{\"mail\":\"x\"}");
    operations[1] = operation_of(fixture, ITEM_CREATE, "b", "{\"mail\":\"x\"}");
    bulk_run(operations, 2, &(struct bulk_options){0});
    assert_int_equal((operations[0].err.code == ERROR_UNIQUE_KEY) +
                         (operations[1].err.code == ERROR_UNIQUE_KEY),
                     1);
}

#define BULK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BULK_TEST(a_hundred_creates_share_their_groups),
        BULK_TEST(operations_on_one_item_keep_their_order),
        BULK_TEST(a_failure_stops_only_what_is_in_order),
        BULK_TEST(what_ended_before_is_left_alone),
        BULK_TEST(all_are_let_in_or_none),
        BULK_TEST(one_budget_that_refuses_is_enough),
        BULK_TEST(what_comes_when_memory_is_used_up_is_not_run),
        BULK_TEST(unique_keys_hold_between_operations_of_one_wave),
    };
    return cmocka_run_group_tests_name("item/bulk", tests, NULL, NULL);
}
