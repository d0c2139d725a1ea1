/* Memory that stores share: equal parts, told at once, and what a store makes of its part. */
#include "engine/budget.h"
#include "engine/engine.h"
#include "engine/rocks/rocks_private.h"
#include "support/check.h"

enum { MEGABYTE = 1024 * 1024 };

struct store {
    struct engine_budget_share share;
    size_t told;
};

static void told(struct engine_budget_share *share, size_t bytes)
{
    CONTAINER_OF(share, struct store, share)->told = bytes;
}

static void parts_are_equal_and_change_when_a_store_comes_or_goes(void **state UNUSED)
{
    struct engine_budget *budget = engine_budget_new(900);
    struct store first = {.share.resize = told}, second = {.share.resize = told};

    assert_int_equal(engine_budget_join(budget, &first.share), 900);
    engine_budget_ready(budget, &first.share, 900);
    assert_int_equal(first.told, 0);
    assert_int_equal(engine_budget_join(budget, &second.share), 450);
    assert_int_equal(first.told, 450);
    engine_budget_ready(budget, &second.share, 450);
    assert_int_equal(second.told, 0);
    engine_budget_leave(budget, &first.share);
    assert_int_equal(second.told, 900);
    engine_budget_leave(budget, &second.share);
    engine_budget_free(budget);
}

static void a_store_that_is_being_opened_is_told_when_it_is_ready(void **state UNUSED)
{
    struct engine_budget *budget = engine_budget_new(900);
    struct store first = {.share.resize = told}, second = {.share.resize = told};

    assert_int_equal(engine_budget_join(budget, &first.share), 900);
    assert_int_equal(engine_budget_join(budget, &second.share), 450);
    assert_int_equal(first.told, 0);
    engine_budget_ready(budget, &first.share, 900);
    assert_int_equal(first.told, 450);
    engine_budget_leave(budget, &first.share);
    engine_budget_leave(budget, &second.share);
    engine_budget_free(budget);
}

static void what_a_store_has_adds_up_to_its_part(void **state UNUSED)
{
    static const size_t parts[] = {16 * MEGABYTE, 64 * MEGABYTE, 1000 * MEGABYTE,
                                   (size_t)6000 * MEGABYTE};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct rocks_sizes sizes = rocks_sizes_of(parts[i], &(struct rocks_sizes){0});

        assert_true(sizes.cache + sizes.recall + ROCKS_WRITE_BUFFERS * sizes.write_buffer <=
                    parts[i]);
        assert_true(sizes.cache >= parts[i] / 4);
    }
}

static void what_is_given_holds(void **state UNUSED)
{
    struct rocks_sizes sizes = rocks_sizes_of(
        64 * MEGABYTE, &(struct rocks_sizes){.cache = 1, .recall = 2, .write_buffer = 3});

    assert_int_equal(sizes.cache, 1);
    assert_int_equal(sizes.recall, 2);
    assert_int_equal(sizes.write_buffer, 3);
}

/* The first shrinks while it is in use. */
static void stores_share_while_they_are_used(void **state UNUSED)
{
    struct engine_budget *budget = engine_budget_new(64 * MEGABYTE);
    const struct engine_options options = {.budget = budget};
    struct engine_op op = {ENGINE_PUT, SLICE("key"), SLICE("value")};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine *first, *second;
    struct engine_value value;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &options, &first, &err), &err);
    assert_ok(engine_partition_create(first, 1, 1, &err), &err);
    assert_ok(engine_open(SLICE("memory:"), &options, &second, &err), &err);
    assert_int_equal(rocksdb_cache_get_capacity(rocks_of(first)->cache),
                     rocks_sizes_of(32 * MEGABYTE, &(struct rocks_sizes){0}).cache);
    assert_ok(engine_write(first, &section, 1, &err), &err);
    engine_close(second);
    assert_int_equal(rocksdb_cache_get_capacity(rocks_of(first)->cache),
                     rocks_sizes_of(64 * MEGABYTE, &(struct rocks_sizes){0}).cache);
    assert_ok(engine_get(first, NULL, 1, SLICE("key"), ENGINE_READ_ANY, arena, &value, &err), &err);
    assert_slice_equal(value.bytes, SLICE("value"));
    engine_close(first);
    engine_budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_equal_and_change_when_a_store_comes_or_goes),
        cmocka_unit_test(a_store_that_is_being_opened_is_told_when_it_is_ready),
        cmocka_unit_test(what_a_store_has_adds_up_to_its_part),
        cmocka_unit_test(what_is_given_holds),
        cmocka_unit_test(stores_share_while_they_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
