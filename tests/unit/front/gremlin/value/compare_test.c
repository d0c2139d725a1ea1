#include "front/gremlin/value/compare.h"

#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "support/check.h"
#include "support/gremlin_values.h"

#include <math.h>

static struct gremlin_value text(struct gremlin_heap *heap, const char *s)
{
    return gremlin_string(heap, slice_of_text(s));
}

static struct gremlin_value decimal(struct gremlin_heap *heap, const char *s)
{
    struct gremlin_value value;

    assert_true(gremlin_big_decimal(heap, slice_of_text(s), &value));
    return value;
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static void laws_hold_for_random_values(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value v[120];
    struct random random;

    random_seed(&random, 11);
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = gremlin_random_value(heap, &random, GREMLIN_RANDOM_DATA, 2);
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        assert_true(gremlin_equivalent(v[i], v[i]));
        assert_int_equal(gremlin_order(v[i], v[i]), 0);
        for (size_t j = 0; j < ARRAY_LEN(v); j++) {
            int order = gremlin_order(v[i], v[j]), compared;

            assert_int_equal(sign(order), -sign(gremlin_order(v[j], v[i])));
            assert_int_equal(gremlin_equal(v[i], v[j]), gremlin_equal(v[j], v[i]));
            assert_int_equal(gremlin_equivalent(v[i], v[j]), gremlin_equivalent(v[j], v[i]));
            if (gremlin_equivalent(v[i], v[j]))
                assert_true(gremlin_hash(v[i], 5) == gremlin_hash(v[j], 5));
            if (gremlin_comparable(v[i], v[j], &compared))
                assert_int_equal(sign(compared), sign(order));
            for (size_t k = 0; k < ARRAY_LEN(v); k++)
                if (order <= 0 && gremlin_order(v[j], v[k]) <= 0)
                    assert_true(gremlin_order(v[i], v[k]) <= 0);
        }
    }
}

static void numbers_are_equal_across_types_and_not_equivalent(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value ones[] = {
        gremlin_integer(GREMLIN_BYTE, 1),
        gremlin_integer(GREMLIN_SHORT, 1),
        gremlin_int(1),
        gremlin_long(1),
        gremlin_float(1),
        gremlin_double(1),
        decimal(heap, "1.000"),
    };

    for (size_t i = 0; i < ARRAY_LEN(ones); i++)
        for (size_t j = 0; j < ARRAY_LEN(ones); j++) {
            assert_true(gremlin_equal(ones[i], ones[j]));
            assert_int_equal(gremlin_equivalent(ones[i], ones[j]), i == j);
        }
    assert_true(gremlin_equivalent(decimal(heap, "1.0"), decimal(heap, "1.00")));
}

static void numbers_compare_exactly(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    assert_true(gremlin_order(gremlin_long(9007199254740993), gremlin_double(9007199254740992)) >
                0);
    assert_true(gremlin_order(gremlin_long(INT64_MAX), gremlin_double(0x1p63)) < 0);
    assert_true(gremlin_order(gremlin_long(INT64_MIN), gremlin_double(-0x1p63)) == 0);
    assert_true(gremlin_order(gremlin_long(-1), gremlin_double(-1.5)) > 0);
    assert_true(gremlin_order(gremlin_double(0.1), decimal(heap, "0.1")) > 0);
    assert_true(gremlin_order(decimal(heap, "1E+1000000000"), gremlin_double(1e308)) > 0);
    assert_true(gremlin_order(decimal(heap, "-1E+1000000000"), gremlin_int(0)) < 0);
    assert_true(gremlin_order(decimal(heap, "1E-1000000000"), gremlin_int(0)) > 0);
    assert_true(gremlin_order(decimal(heap, "5"), gremlin_double((double)INFINITY)) < 0);
}

static void nan_is_itself_only_by_equivalence_and_last_in_order(void **state UNUSED)
{
    struct gremlin_value nan = gremlin_double((double)NAN);
    int order;

    assert_false(gremlin_equal(nan, nan));
    assert_true(gremlin_equivalent(nan, nan));
    assert_false(gremlin_comparable(nan, gremlin_int(1), &order));
    assert_true(gremlin_order(nan, gremlin_double((double)INFINITY)) > 0);
    assert_true(gremlin_equal(gremlin_double(0.0), gremlin_double(-0.0)));
    assert_false(gremlin_equivalent(gremlin_double(0.0), gremlin_double(-0.0)));
}

static void families_are_ordered_and_do_not_compare(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    uint8_t uuid[16] = {1};
    struct gremlin_value families[] = {
        GREMLIN_NOTHING,
        gremlin_boolean(true),
        gremlin_int(1),
        gremlin_date(1),
        text(heap, "a"),
        gremlin_bytes_new(heap, GREMLIN_UUID, slice_of(uuid, 16)),
        gremlin_test_vertex(heap, "1", "x"),
        gremlin_set_new(heap),
        gremlin_list_new(heap, 0),
        gremlin_map_new(heap),
    };
    int order;

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        for (size_t j = 0; j < ARRAY_LEN(families); j++) {
            assert_int_equal(sign(gremlin_order(families[i], families[j])), sign((int)i - (int)j));
            assert_int_equal(gremlin_comparable(families[i], families[j], &order), i == j);
            assert_int_equal(gremlin_equal(families[i], families[j]), i == j);
        }
}

static void strings_are_ordered_by_utf16(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    assert_true(gremlin_order(text(heap, "\xF0\x9F\x98\x80"), text(heap, "\xEF\xBF\xBD")) < 0);
    assert_true(gremlin_order(text(heap, "a"), text(heap, "ab")) < 0);
}

static void sets_and_maps_do_not_mind_their_order(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value a = gremlin_map_new(heap), b = gremlin_map_new(heap);
    struct gremlin_value c = gremlin_map_new(heap);

    for (int i = 0; i < 50; i++) {
        gremlin_map_put(a, gremlin_int(i), gremlin_int(i));
        gremlin_map_put(b, gremlin_int(49 - i), gremlin_int(49 - i));
        gremlin_map_put(c, gremlin_long(49 - i), gremlin_double(49 - i));
    }
    assert_true(gremlin_equivalent(a, b));
    assert_true(gremlin_equal(a, c)); /* the numbers are the same */
    assert_false(gremlin_equivalent(a, c));
    assert_int_equal(gremlin_order(a, b), 0);
    gremlin_map_put(b, gremlin_int(3), gremlin_int(-3));
    assert_false(gremlin_equal(a, b));
    assert_true(gremlin_order(a, b) > 0);
}

static void dates_compare_by_instant(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    assert_true(gremlin_equal(gremlin_date(-1500), gremlin_date_time_new(heap, -2, 500000000, 0)));
    assert_true(gremlin_equal(gremlin_date_time_new(heap, 5, 0, 3600),
                              gremlin_date_time_new(heap, 5, 0, 0)));
    assert_true(gremlin_order(gremlin_date(1), gremlin_date_time_new(heap, 0, 0, 0)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws_hold_for_random_values),
        cmocka_unit_test(numbers_are_equal_across_types_and_not_equivalent),
        cmocka_unit_test(numbers_compare_exactly),
        cmocka_unit_test(nan_is_itself_only_by_equivalence_and_last_in_order),
        cmocka_unit_test(families_are_ordered_and_do_not_compare),
        cmocka_unit_test(strings_are_ordered_by_utf16),
        cmocka_unit_test(sets_and_maps_do_not_mind_their_order),
        cmocka_unit_test(dates_compare_by_instant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
