#include "query/value/compare.h"

#include "query/value/set.h"
#include "support/check.h"
#include "support/documents.h"

#include <math.h>

static void equal_values_have_equal_hashes(void **state UNUSED)
{
    static const char *const pairs[][2] = {
        {"1", "1.0"},
        {"0", "-0.0"},
        {"4611686018427387904", "4611686018427387904.0"},
        {"{\"a\":1,\"b\":[2,{\"c\":3}]}", "{\"b\":[2.0,{\"c\":3}],\"a\":1}"},
        {"[]", "[]"},
        {"\"\"", "\"\""},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value nan = document_double(NAN), other = document_double(-NAN);

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct document_value a = value_of(arena, pairs[i][0]), b = value_of(arena, pairs[i][1]);

        assert_true(query_values_same(DOCUMENT_ORDER_SQL, &a, &b));
        assert_true(query_value_hash(&a) == query_value_hash(&b));
    }
    assert_true(query_value_hash(&nan) == query_value_hash(&other));
}

/* Over random values of every type: what is the same hashes the same, and the three answers of
 * equality agree with the total order. */
static void comparison_hash_and_order_agree(void **state UNUSED)
{
    enum { COUNT = 400 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value *values = ARENA_ARRAY(arena, struct document_value, COUNT);
    struct random random;
    size_t same = 0;

    random_seed(&random, 11);
    for (int i = 0; i < COUNT; i++)
        values[i] = value_random(&random, arena, 3);
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            const struct document_value *a = &values[i], *b = &values[j];
            enum query_truth equal = query_values_equal(DOCUMENT_ORDER_SQL, a, b);
            int total = document_compare(DOCUMENT_ORDER_SQL, a, b), order;

            if (query_class_of(a) != query_class_of(b) || a->type == DOCUMENT_UNDEFINED)
                assert_int_equal(equal, QUERY_UNKNOWN);
            else
                assert_int_equal(equal, total == 0 ? QUERY_TRUE : QUERY_FALSE);
            if (query_values_order(DOCUMENT_ORDER_SQL, a, b, &order))
                assert_int_equal((order > 0) - (order < 0), (total > 0) - (total < 0));
            if (total == 0) {
                assert_true(query_value_hash(a) == query_value_hash(b));
                same++;
            }
        }
    }
    assert_true(same > COUNT);
}

static void different_values_mostly_hash_differently(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_set hashes;

    query_set_init(&hashes, DOCUMENT_ORDER_SQL, arena, 0);
    for (int i = 0; i < 10000; i++) {
        struct document_value number = document_int32(i), hash;
        bool is_new;

        hash = document_int64((int64_t)query_value_hash(&number));
        query_set_add(&hashes, &hash, &is_new);
        assert_true(is_new);
    }
}

static void what_json_cannot_hold_does_not_show(void **state UNUSED)
{
    struct document_value nan = document_double(NAN), infinite = document_double(-INFINITY),
                          number = document_double(1), undefined = document_undefined(),
                          null = document_null();

    assert_false(query_value_shows(&nan));
    assert_false(query_value_shows(&infinite));
    assert_false(query_value_shows(&undefined));
    assert_true(query_value_shows(&number));
    assert_true(query_value_shows(&null));
}

static void dates_have_an_order_and_are_no_numbers(void **state UNUSED)
{
    struct document_value early = document_date(-1), late = document_date(5);
    struct document_value number = document_int64(5);
    int order;

    assert_true(query_values_order(DOCUMENT_ORDER_SQL, &early, &late, &order));
    assert_true(order < 0);
    assert_false(query_values_order(DOCUMENT_ORDER_SQL, &late, &number, &order));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_values_have_equal_hashes),
        cmocka_unit_test(comparison_hash_and_order_agree),
        cmocka_unit_test(dates_have_an_order_and_are_no_numbers),
        cmocka_unit_test(different_values_mostly_hash_differently),
        cmocka_unit_test(what_json_cannot_hold_does_not_show),
    };
    return cmocka_run_group_tests_name("query/value/compare", tests, NULL, NULL);
}
