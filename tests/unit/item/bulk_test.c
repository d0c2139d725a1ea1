#include "item/bulk.h"

#include "item/cursor.h"

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
        char id[16];

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

/* Those in order are one commit, and each sees the ones before it. */
static void what_is_in_order_shares_a_commit(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation operations[MANY];
    struct commit_statistics before, after;

    open_with(fixture, &(struct test_space_options){0});
    create_many(fixture, operations);
    before = commit_statistics(fixture->test.commit);
    bulk_run(operations, MANY, &(struct bulk_options){.in_order = true});
    after = commit_statistics(fixture->test.commit);
    assert_int_equal(after.batches - before.batches, 1);
    for (int i = 0; i < MANY; i++) {
        assert_true(operations[i].ended);
        assert_int_equal(operations[i].err.code, ERROR_NONE);
        assert_true(operations[i].result.created && operations[i].metered.charge_cru > 0);
        assert_true(i == 0 || operations[i].result.item.header.number >
                                  operations[i - 1].result.item.header.number);
    }
    operations[0] = operation_of(fixture, ITEM_CREATE, "new", "{}");
    operations[1] = operation_of(fixture, ITEM_CREATE, "new", "{}");
    operations[2] = operation_of(fixture, ITEM_CREATE, "never", "{}");
    bulk_run(operations, 3, &(struct bulk_options){.in_order = true});
    assert_int_equal(operations[0].err.code, ERROR_NONE);
    assert_int_equal(operations[1].err.code, ERROR_ITEM_EXISTS);
    assert_false(operations[2].ended);
    operations[0] = operation_of(fixture, ITEM_READ, "never", NULL);
    bulk_run(operations, 1, &(struct bulk_options){.in_order = true});
    assert_int_equal(operations[0].err.code, ERROR_ITEM_MISSING);
}

/* --- Bounded containers ---------------------------------------------------------------------- */

static bool is_there(struct fixture *fixture, const char *id)
{
    struct item_operation op = operation_of(fixture, ITEM_READ, id, NULL);
    struct error err;
    bool found = item_operation_run(&op, &err);

    assert_true(found || err.code == ERROR_ITEM_MISSING);
    return found;
}

/* Creates the items from `from` on, each alone or all in one go. */
static void create_some(struct fixture *fixture, int from, int count, bool together, bool in_order)
{
    struct item_operation operations[MANY];

    for (int i = 0; i < count; i++) {
        char id[16];

        snprintf(id, sizeof id, "%d", from + i);
        operations[i] = operation_of(fixture, ITEM_CREATE, id, "{\"n\":1}");
        if (!together)
            bulk_run(&operations[i], 1, &(struct bulk_options){.in_order = in_order});
    }
    if (together)
        bulk_run(operations, (size_t)count, &(struct bulk_options){.in_order = in_order});
    for (int i = 0; i < count; i++)
        assert_int_equal(operations[i].err.code, ERROR_NONE);
}

static void assert_newest(struct fixture *fixture, int last, int count)
{
    for (int i = MAX(last - 2 * count, 0); i <= last; i++) {
        char id[16];

        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(is_there(fixture, id), i > last - count);
    }
}

static void a_bounded_container_keeps_the_newest(void **state)
{
    struct fixture *fixture = *state;

    open_with(fixture, &(struct test_space_options){0});
    fixture->test.definition.bound = (struct definition_bound){.bytes = 1 << 20, .items = 7};
    create_some(fixture, 0, 10, false, false);
    assert_newest(fixture, 9, 7);
    create_some(fixture, 10, 3, true, true);
    assert_newest(fixture, 12, 7);
    create_some(fixture, 13, 4, true, false);
    assert_newest(fixture, 16, 7);
    test_space_restart(&fixture->test);
    create_some(fixture, 17, 20, true, true); /* more than it holds */
    assert_newest(fixture, 36, 7);
}

static void bytes_bound_as_items_do(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation op;
    struct error err;
    struct view view;
    uint64_t items, bytes;
    size_t count;
    const struct partition_span *spans;
    struct item_scope scope;

    open_with(fixture, &(struct test_space_options){0});
    fixture->test.definition.bound = (struct definition_bound){.bytes = 1000};
    create_some(fixture, 0, 50, false, true);
    spans = partition_map_spans(fixture->test.space.map, &count);
    scope = item_space_span_scope(&fixture->test.space, &spans[0]);
    view = view_of(&scope, NULL);
    assert_ok(view_count(&view, SLICE_NONE, &items, &bytes, &err), &err);
    assert_true(bytes <= 1000 && items > 5 && items < 20);
    assert_newest(fixture, 49, (int)items);
    /* one that takes all of it, and an update that grows: never the item itself goes */
    op = operation_of(fixture, ITEM_REPLACE, "49",
                      "{\"text\":\"0123456789012345678901234567890123456789\"}");
    assert_ok(item_operation_run(&op, &err), &err);
    assert_true(is_there(fixture, "49"));
    assert_ok(view_count(&view, SLICE_NONE, &items, &bytes, &err), &err);
    assert_true(bytes <= 1000);
}

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
        BULK_TEST(what_is_in_order_shares_a_commit),
        BULK_TEST(a_bounded_container_keeps_the_newest),
        BULK_TEST(bytes_bound_as_items_do),
    };
    return cmocka_run_group_tests_name("item/bulk", tests, NULL, NULL);
}
