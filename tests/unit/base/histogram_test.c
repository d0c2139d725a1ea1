#include "base/histogram.h"

#include "support/check.h"

static void small_values_are_exact(void **state UNUSED)
{
    struct histogram histogram = {0};

    for (uint64_t value = 0; value < 16; value++)
        histogram_record(&histogram, value);
    assert_int_equal(histogram_count(&histogram), 16);
    assert_int_equal(histogram_sum(&histogram), 120);
    assert_int_equal(histogram_count_up_to(&histogram, 3), 4);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 7);
    assert_int_equal(histogram_quantile(&histogram, 1), 15);
}

static void a_quantile_is_off_by_at_most_a_sixteenth(void **state UNUSED)
{
    for (uint64_t value = 1; value < (uint64_t)1 << 39; value = value * 3 + 1) {
        struct histogram histogram = {0};
        uint64_t got;

        histogram_record(&histogram, value);
        got = histogram_quantile(&histogram, 0.5);
        assert_true(got >= value);
        assert_true(got - value <= value / 16);
    }
}

static void counts_below_a_power_of_two_are_exact(void **state UNUSED)
{
    struct histogram histogram = {0};

    histogram_record(&histogram, 1023);
    histogram_record(&histogram, 1024);
    assert_int_equal(histogram_count_up_to(&histogram, 1023), 1);
    assert_int_equal(histogram_count_up_to(&histogram, 2047), 2);
}

static void what_is_too_large_lands_in_the_last_bucket(void **state UNUSED)
{
    struct histogram histogram = {0};

    histogram_record(&histogram, UINT64_MAX);
    assert_int_equal(histogram_count(&histogram), 1);
    assert_int_equal(histogram_quantile(&histogram, 0.5), ((uint64_t)1 << 40) - 1);
}

static void adding_joins_two_writers(void **state UNUSED)
{
    struct histogram one = {0}, two = {0};

    histogram_record(&one, 5);
    histogram_record(&two, 500);
    histogram_add(&one, &two);
    assert_int_equal(histogram_count(&one), 2);
    assert_int_equal(histogram_sum(&one), 505);
    histogram_clear(&one);
    assert_int_equal(histogram_count(&one), 0);
    assert_int_equal(histogram_quantile(&one, 0.99), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(a_quantile_is_off_by_at_most_a_sixteenth),
        cmocka_unit_test(counts_below_a_power_of_two_are_exact),
        cmocka_unit_test(what_is_too_large_lands_in_the_last_bucket),
        cmocka_unit_test(adding_joins_two_writers),
    };
    return cmocka_run_group_tests_name("base/histogram", tests, NULL, NULL);
}
