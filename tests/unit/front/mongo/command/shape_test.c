#include "front/mongo/command/shape.h"

#include "support/check.h"
#include "support/documents.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static bool is_plain(struct arena *arena, const char *json)
{
    uint64_t hash = 0;

    return mongo_shape_filter(document_of(arena, json), &hash);
}

static uint64_t hash_of(struct arena *arena, const char *json)
{
    uint64_t hash = 0;

    assert_true(mongo_shape_filter(document_of(arena, json), &hash));
    return hash;
}

static void fields_compared_with_scalars_are_plain(void **state)
{
    assert_true(is_plain(*state, "{}"));
    assert_true(is_plain(*state, "{\"a\": 5, \"b.c\": \"x\", \"d\": null}"));
    assert_true(is_plain(*state, "{\"a\": {\"$gt\": 5, \"$lte\": 7}, \"b\": {\"$in\": [1, 2]}}"));
    assert_true(is_plain(*state, "{\"$or\": [{\"a\": 1}, {\"$and\": [{\"b\": 1}, {\"c\": 2}]}]}"));
}

static void what_may_take_long_is_not(void **state)
{
    assert_false(is_plain(*state, "{\"a\": {\"$regex\": \"^x\"}}"));
    assert_false(is_plain(*state, "{\"$where\": \"true\"}"));
    assert_false(is_plain(*state, "{\"$expr\": {\"$eq\": [1, 1]}}"));
    assert_false(is_plain(*state, "{\"a\": {\"x\": 1}}"));
    assert_false(is_plain(*state, "{\"a\": [1, 2]}"));
    assert_false(is_plain(*state, "{\"a\": {\"$elemMatch\": {\"b\": 1}}}"));
    assert_false(
        is_plain(*state, "{\"a\": {\"$in\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}}"));
    assert_false(
        is_plain(*state, "{\"$and\": [{\"$and\": [{\"$and\": [{\"$and\": [{\"a\": 1}]}]}]}]}"));
    assert_false(is_plain(*state, "{\"$or\": 5}"));
}

static void values_make_no_difference_and_all_else_does(void **state)
{
    assert_int_equal(hash_of(*state, "{\"a\": 5}"), hash_of(*state, "{\"a\": 6}"));
    assert_int_not_equal(hash_of(*state, "{\"a\": 5}"), hash_of(*state, "{\"b\": 5}"));
    assert_int_not_equal(hash_of(*state, "{\"a\": 5}"), hash_of(*state, "{\"a\": \"5\"}"));
    assert_int_not_equal(hash_of(*state, "{\"a\": {\"$gt\": 5}}"),
                         hash_of(*state, "{\"a\": {\"$lt\": 5}}"));
}

static void orders_and_projections_are_lists_of_numbers(void **state)
{
    uint64_t hash = 0;

    assert_true(mongo_shape_list(SLICE_NONE, &hash));
    assert_true(mongo_shape_list(document_of(*state, "{\"a\": 1, \"b\": -1, \"c\": true}"), &hash));
    assert_false(mongo_shape_list(document_of(*state, "{\"a\": {\"$slice\": 1}}"), &hash));
    assert_false(mongo_shape_list(document_of(*state, "{\"a.$\": 1}"), &hash));
    assert_false(mongo_shape_list(document_of(*state, "{\"$natural\": -1}"), &hash));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_compared_with_scalars_are_plain, setup, teardown),
        cmocka_unit_test_setup_teardown(what_may_take_long_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(values_make_no_difference_and_all_else_does, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(orders_and_projections_are_lists_of_numbers, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
