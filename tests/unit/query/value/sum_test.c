#include "query/value/sum.h"

#include "base/random.h"
#include "support/check.h"

#include <math.h>

static struct document_value total(const double *numbers, size_t count)
{
    struct query_sum sum = {0};
    struct document_value value;

    for (size_t i = 0; i < count; i++) {
        value = document_double(numbers[i]);
        assert_true(query_sum_add(&sum, &value, false));
    }
    value = query_sum_value(&sum);
    query_sum_done(&sum);
    return value;
}

static void nothing_is_lost_on_the_way(void **state UNUSED)
{
    static const struct {
        double numbers[5];
        double sum;
    } cases[] = {
        {{1e100, 1, -1e100}, 1},
        {{1e16, 1, 1, -1e16}, 2},
        {{0.1, 0.2, 0.3, -0.6}, 2.7755575615628914e-17},
        {{1e308, 1, -1e308}, 1},
        {{5e-324, 5e-324}, 1e-323},
        /* half a step, rounded by what is below it */
        {{9007199254740992.0, 1, 1e-300}, 9007199254740994.0},
        {{9007199254740992.0, 1, -1e-300}, 9007199254740992.0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct document_value value = total(cases[i].numbers, 5);

        assert_int_equal(value.type, DOCUMENT_DOUBLE);
        if (value.number != cases[i].sum)
            fail_msg("sum %zu is %.17g", i, value.number);
    }
}

static void integers_are_exact_past_64_bits(void **state UNUSED)
{
    struct document_value large = document_int64(INT64_MAX), small = document_int64(-INT64_MAX),
                          one = document_int32(1), half = document_double(0.5), value;
    struct query_sum sum = {0};

    query_sum_add(&sum, &large, false);
    query_sum_add(&sum, &large, false);
    value = query_sum_value(&sum);
    assert_int_equal(value.type, DOCUMENT_DOUBLE);
    assert_true(value.number == 18446744073709551614.0);
    query_sum_add(&sum, &small, false);
    query_sum_add(&sum, &small, false);
    query_sum_add(&sum, &one, false);
    value = query_sum_value(&sum);
    assert_int_equal(value.type, DOCUMENT_INT32);
    assert_int_equal(value.int32, 1);
    query_sum_add(&sum, &half, false);
    assert_true(query_sum_value(&sum).number == 1.5);
    query_sum_done(&sum);
}

/* Wild numbers, shuffled and cut in two parts that go through BSON: always the same sum. */
static void order_and_parts_make_no_difference(void **state UNUSED)
{
    enum { COUNT = 500, ROUNDS = 40 };
    double numbers[COUNT];
    struct random random;
    double expected;

    random_seed(&random, 5);
    for (int i = 0; i < COUNT; i++)
        numbers[i] =
            ldexp((double)random_next(&random) - 9.2e18, (int)random_below(&random, 1800) - 1000);
    expected = total(numbers, COUNT).number;
    for (int round = 0; round < ROUNDS; round++) {
        struct query_sum halves[2] = {{0}}, loaded;
        CLEANUP(buf_done) struct buf buf;
        struct document_value value;
        size_t begin;

        for (size_t i = COUNT - 1; i > 0; i--) {
            size_t j = random_below(&random, i + 1);
            double swap = numbers[i];

            numbers[i] = numbers[j];
            numbers[j] = swap;
        }
        for (int i = 0; i < COUNT; i++) {
            value = document_double(numbers[i]);
            query_sum_add(&halves[i < (int)random_below(&random, COUNT)], &value, false);
        }
        buf_init(&buf, BUF_DEFAULT_MAX);
        begin = document_begin(&buf);
        query_sum_save(&halves[1], SLICE("s"), &buf);
        document_end(&buf, begin);
        assert_true(document_find(buf_slice(&buf), SLICE("s"), &value));
        assert_true(query_sum_load(&loaded, &value));
        query_sum_merge(&loaded, &halves[0]);
        assert_true(query_sum_value(&loaded).number == expected);
        query_sum_done(&loaded);
        query_sum_done(&halves[0]);
        query_sum_done(&halves[1]);
    }
}

static void what_is_not_finite_stays_so(void **state UNUSED)
{
    static const double up[] = {1, INFINITY}, both[] = {INFINITY, -INFINITY},
                        over[] = {1e308, 1e308};

    assert_true(isinf(total(up, 2).number));
    assert_true(isnan(total(both, 2).number));
    assert_true(isinf(total(over, 2).number));
}

static void what_is_no_sum_is_not_loaded(void **state UNUSED)
{
    struct document_value value = document_int32(1);
    struct query_sum sum = {0};

    assert_false(query_sum_add(&sum, &(struct document_value){.type = DOCUMENT_NULL}, false));
    assert_false(query_sum_load(&sum, &value));
}

static struct document_value decimal_of(const char *text)
{
    struct document_decimal decimal;

    assert_true(decimal_from_text(slice_of_text(text), &decimal, NULL));
    return document_decimal_value(decimal);
}

static void sum_is(struct query_sum *sum, const char *expected)
{
    struct document_value value = query_sum_value(sum);
    char text[DECIMAL_TEXT_MAX + 1];

    assert_int_equal(value.type, DOCUMENT_DECIMAL128);
    text[decimal_to_text(value.decimal, text)] = 0;
    assert_string_equal(text, expected);
    query_sum_done(sum);
}

static void decimals_are_exact_and_keep_their_places(void **state UNUSED)
{
    static const char *const cases[][6] = {
        {"3.30", "1.10", "2.20"},
        {"0.00", "1.10", "-1.10"},
        {"-0.05", "1", "-1.05"},
        {"1E-6000", "1E+6000", "1E-6000", "-1E+6000"},
        {"3E+3", "1E+3", "2E+3"},
        {"1.000000000000000000000000000000000E+34", "9999999999999999999999999999999999", "0.6"},
        {"9999999999999999999999999999999999", "9999999999999999999999999999999999", "0.4"},
        {"1234567890123456789012345678901234", "1234567890123456789012345678901234", "0.5"},
        {"1234567890123456789012345678901235", "1234567890123456789012345678901234", "0.5",
         "1E-6176"},
        {"Infinity", "9.999999999999999999999999999999999E+6144",
         "9.999999999999999999999999999999999E+6144"},
        {"9.999999999999999999999999999999999E+6144", "9.999999999999999999999999999999999E+6144",
         "9.999999999999999999999999999999999E+6144", "-9.999999999999999999999999999999999E+6144"},
        {"Infinity", "1", "Infinity"},
        {"NaN", "-Infinity", "Infinity"},
        {"0", "0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct query_sum sum = {0};

        for (size_t j = 1; j < ARRAY_LEN(cases[i]) && cases[i][j]; j++) {
            struct document_value value = decimal_of(cases[i][j]);

            assert_true(query_sum_add(&sum, &value, true));
        }
        sum_is(&sum, cases[i][0]);
    }
}

static void decimals_meet_other_numbers(void **state UNUSED)
{
    struct document_value decimal = decimal_of("0.10"), integer = document_int64(INT64_MAX),
                          number = document_double(0.5), tenth = document_double(0.1),
                          infinite = document_double((double)INFINITY);
    struct query_sum sum = {0};

    query_sum_add(&sum, &decimal, true);
    query_sum_add(&sum, &integer, true);
    query_sum_add(&sum, &integer, true);
    sum_is(&sum, "18446744073709551614.10");
    query_sum_add(&sum, &number, true);
    query_sum_add(&sum, &decimal, true);
    sum_is(&sum, "0.60");
    query_sum_add(&sum, &tenth, true); /* all digits of the double */
    query_sum_add(&sum, &decimal, true);
    sum_is(&sum, "0.2000000000000000055511151231257827");
    query_sum_add(&sum, &decimal, true);
    query_sum_add(&sum, &infinite, true);
    sum_is(&sum, "Infinity");
    query_sum_add(&sum, &decimal, false); /* SQL has doubles and nothing else */
    assert_int_equal(query_sum_value(&sum).type, DOCUMENT_DOUBLE);
    query_sum_done(&sum);
}

/* Any order, any parts, saved and loaded in between: the same bits. */
static void decimals_do_not_depend_on_the_way(void **state UNUSED)
{
    struct document_value values[64];
    struct random random;

    random_seed(&random, 8);
    for (int round = 0; round < 300; round++) {
        struct query_sum whole = {0}, parts[3] = {0}, merged = {0};
        struct document_value expected, value;

        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
            struct decimal decimal = {.negative = random_below(&random, 2),
                                      .coefficient = random_next(&random),
                                      .exponent = (int32_t)random_below(&random, 80) - 40};

            decimal.coefficient = decimal.coefficient * 100000000000000 + random_below(&random, 9);
            values[i] = document_decimal_value(decimal_pack(&decimal));
            if (random_below(&random, 6) == 0)
                values[i] = document_double(ldexp((double)random_next(&random), -70));
            query_sum_add(&whole, &values[i], true);
        }
        for (size_t i = ARRAY_LEN(values); i-- > 0;)
            query_sum_add(&parts[random_below(&random, 3)], &values[i], true);
        for (int i = 0; i < 3; i++) {
            CLEANUP(buf_done) struct buf buf;
            struct query_sum loaded;
            size_t begin;

            buf_init(&buf, BUF_DEFAULT_MAX);
            begin = document_begin(&buf);
            query_sum_save(&parts[i], SLICE("s"), &buf);
            document_end(&buf, begin);
            assert_true(document_find(buf_slice(&buf), SLICE("s"), &value));
            assert_true(query_sum_load(&loaded, &value));
            query_sum_merge(&merged, &loaded);
            query_sum_done(&loaded);
            query_sum_done(&parts[i]);
        }
        expected = query_sum_value(&whole);
        value = query_sum_value(&merged);
        assert_int_equal(value.type, DOCUMENT_DECIMAL128);
        assert_true(value.decimal.low == expected.decimal.low &&
                    value.decimal.high == expected.decimal.high);
        query_sum_done(&whole);
        query_sum_done(&merged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_are_exact_and_keep_their_places),
        cmocka_unit_test(decimals_meet_other_numbers),
        cmocka_unit_test(decimals_do_not_depend_on_the_way),
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(integers_are_exact_past_64_bits),
        cmocka_unit_test(order_and_parts_make_no_difference),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(what_is_no_sum_is_not_loaded),
    };
    return cmocka_run_group_tests_name("query/value/sum", tests, NULL, NULL);
}
