#include "document/decimal_math.h"

#include "base/random.h"
#include "document/order.h"
#include "support/check.h"

#include <bson/bson.h>
#include <math.h>
#include <pthread.h>

static struct document_decimal of(const char *text)
{
    struct document_decimal decimal = {0};

    if (!decimal_from_text(slice_of_text(text), &decimal, NULL))
        fail_msg("\"%s\" is no number", text);
    return decimal;
}

static const char *text_of(struct document_decimal decimal)
{
    static char text[DECIMAL_TEXT_MAX + 1];

    text[decimal_to_text(decimal, text)] = 0;
    return text;
}

typedef struct document_decimal (*of_two)(struct document_decimal, struct document_decimal);
typedef struct document_decimal (*of_one)(struct document_decimal);

/* Results as IEEE 754-2008 and the test cases of the General Decimal Arithmetic have them. */
static void operations_round_once_half_to_even(void **state UNUSED)
{
    static const struct {
        of_two function;
        const char *a, *b, *result;
    } cases[] = {
        {decimal_add, "1.10", "2.20", "3.30"},
        {decimal_add, "0.1", "0.2", "0.3"},
        {decimal_add, "1234567890123456789012345678901234", "0.5",
         "1234567890123456789012345678901234"},
        {decimal_add, "1234567890123456789012345678901235", "0.5",
         "1234567890123456789012345678901236"},
        {decimal_add, "9.999999999999999999999999999999999E+6144", "1E+6144", "Infinity"},
        {decimal_add, "Infinity", "-Infinity", "NaN"},
        {decimal_add, "-0", "0", "0"},
        {decimal_subtract, "1.3", "1.07", "0.23"},
        {decimal_subtract, "1.3", "1.30", "0.00"},
        {decimal_multiply, "1.20", "3", "3.60"},
        {decimal_multiply, "654321", "654321", "428135971041"},
        {decimal_multiply, "-7", "0", "-0"},
        {decimal_multiply, "1E-6176", "0.5", "0E-6176"},
        {decimal_multiply, "3E-6176", "0.5", "2E-6176"},
        {decimal_divide, "1", "3", "0.3333333333333333333333333333333333"},
        {decimal_divide, "2", "3", "0.6666666666666666666666666666666667"},
        {decimal_divide, "2.400", "2.0", "1.20"},
        {decimal_divide, "1000", "1E2", "10.00"},
        {decimal_divide, "1", "0", "Infinity"},
        {decimal_divide, "0", "0", "NaN"},
        {decimal_modulo, "10", "3", "1"},
        {decimal_modulo, "-7.5", "2", "-1.5"},
        {decimal_modulo, "1E+6000", "7", "1"},
        {decimal_modulo, "1", "0", "NaN"},
        {decimal_power, "2", "0.5", "1.414213562373095048801688724209698"},
        {decimal_power, "0", "0", "1"},
        {decimal_power, "10", "6145", "Infinity"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(text_of(cases[i].function(of(cases[i].a), of(cases[i].b))),
                            cases[i].result);
}

static void functions_have_all_their_digits(void **state UNUSED)
{
    static const struct {
        of_one function;
        const char *a, *result;
    } cases[] = {
        {decimal_sqrt, "2", "1.414213562373095048801688724209698"},
        {decimal_sqrt, "1.00", "1.0"},
        {decimal_sqrt, "-1", "NaN"},
        {decimal_exp, "1", "2.718281828459045235360287471352662"},
        {decimal_exp, "0", "1"},
        {decimal_exp, "-Infinity", "0"},
        {decimal_ln, "10", "2.302585092994045684017991454684364"},
        {decimal_ln, "0", "-Infinity"},
        {decimal_log10, "2", "0.3010299956639811952137388947244930"},
        {decimal_log10, "1000", "3"},
        {decimal_abs, "-1.50", "1.50"},
        {decimal_negate, "1.50", "-1.50"},
        {decimal_ceil, "1.2", "2"},
        {decimal_ceil, "-1.2", "-1"},
        {decimal_floor, "-1.2", "-2"},
        {decimal_floor, "1E+10", "1E+10"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(text_of(cases[i].function(of(cases[i].a))), cases[i].result);
}

static void places_are_counted_from_the_point(void **state UNUSED)
{
    static const struct {
        const char *a;
        int64_t places;
        const char *rounded, *cut;
    } cases[] = {
        {"2.345", 2, "2.34", "2.34"},
        {"2.355", 2, "2.36", "2.35"},
        {"-2.349", 2, "-2.35", "-2.34"},
        {"1234.5", -2, "1.2E+3", "1.2E+3"},
        {"1.5", 5, "1.5", "1.5"},
        {"123", -40, "0E+40", "0E+40"},
        {"9.99", 1, "10.0", "9.9"},
        {"Infinity", 2, "Infinity", "Infinity"},
        {"1", INT64_MIN, "0E+6111", "0E+6111"},
        {"1", INT64_MAX, "1", "1"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(text_of(decimal_round(of(cases[i].a), cases[i].places)),
                            cases[i].rounded);
        assert_string_equal(text_of(decimal_trunc(of(cases[i].a), cases[i].places)), cases[i].cut);
    }
}

static void other_numbers_become_decimals(void **state UNUSED)
{
    assert_string_equal(text_of(decimal_from_int64(INT64_MIN)), "-9223372036854775808");
    assert_string_equal(text_of(decimal_from_double(0.1)), "0.100000000000000");
    assert_string_equal(text_of(decimal_from_double(-5)), "-5.00000000000000");
    assert_string_equal(text_of(decimal_from_double(999999999999999.9)), "1.00000000000000E+15");
    assert_string_equal(text_of(decimal_from_double(5e-324)), "4.94065645841247E-324");
    assert_string_equal(text_of(decimal_from_double(0)), "0");
    assert_string_equal(text_of(decimal_from_double(-HUGE_VAL)), "-Infinity");
    assert_string_equal(text_of(decimal_from_double_whole(0.1)),
                        "0.1000000000000000055511151231257827");
}

static void texts_are_those_of_libbson(void **state UNUSED)
{
    static const char *const exact[] = {
        "0",
        "-0.00",
        "1.10",
        "+7",
        ".5",
        "5.",
        "1E+6144",
        "1e-6176",
        "0E-9999",
        "0E+9999",
        "Infinity",
        "-inf",
        "NaN",
        "nan",
        "12345678901234567890",
        "9999999999999999999999999999999999E+6111",
        "10E-6177",
        "1.0000000000000000000000000000000000000000000000000000",
    };
    static const char *const inexact[] = {"12345678901234567890123456789012345", "1E-6177",
                                          "1.00000000000000000000000000000000001"};
    static const char *const wrong[] = {"",     "-",   ".",   "1.2.3", "1E",          "1E+",  "E5",
                                        "0x10", "1 ",  " 1",  "in",    "infinit",     "nano", "--1",
                                        "1_0",  "1,0", "+-1", "1E1.5", "1E9999999999"};
    struct document_decimal ours;
    bson_decimal128_t theirs;
    bool is_exact;

    for (size_t i = 0; i < ARRAY_LEN(exact); i++) {
        char text[BSON_DECIMAL128_STRING];

        assert_true(decimal_from_text(slice_of_text(exact[i]), &ours, &is_exact));
        if (!is_exact)
            fail_msg("%s has lost something", exact[i]);
        if (!bson_decimal128_from_string(exact[i], &theirs))
            fail_msg("libbson does not take %s", exact[i]);
        bson_decimal128_to_string(&theirs, text);
        assert_string_equal(text_of(ours), text);
    }
    for (size_t i = 0; i < ARRAY_LEN(inexact); i++) {
        assert_true(decimal_from_text(slice_of_text(inexact[i]), &ours, &is_exact));
        assert_false(is_exact);
        assert_false(bson_decimal128_from_string(inexact[i], &theirs));
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (decimal_from_text(slice_of_text(wrong[i]), &ours, NULL))
            fail_msg("\"%s\" is taken for %s", wrong[i], text_of(ours));
}

/* The digit that decides may be the last of many. */
static void every_digit_counts_in_rounding(void **state UNUSED)
{
    static const char half[] = "12345678901234567890123456789012345";
    char text[400];

    for (size_t zeros = 0; zeros < 300; zeros++) {
        size_t at = sizeof half - 1;
        struct decimal up, down;

        memset(text, '0', sizeof text);
        memcpy(text, half, at);
        text[33] = '4';
        down = decimal_unpack((text[at + zeros] = 0, of(text)));
        text[at + zeros] = '1';
        up = decimal_unpack((text[at + zeros + 1] = 0, of(text)));
        assert_int_equal(down.coefficient % 10, 4);
        assert_int_equal(up.coefficient % 10, 5);
    }
}

static struct document_decimal random_decimal(struct random *random, int64_t *ret_coefficient,
                                              int32_t *ret_exponent)
{
    struct decimal decimal;

    *ret_coefficient = (int64_t)random_below(random, 2000000000000000) - 1000000000000000;
    *ret_exponent = (int32_t)random_below(random, 4) - 2;
    decimal = (struct decimal){.negative = *ret_coefficient < 0,
                               .coefficient = (unsigned __int128)llabs(*ret_coefficient),
                               .exponent = *ret_exponent};
    return decimal_pack(&decimal);
}

/* What fits 34 digits is exact: the same as whole numbers give. */
static void results_that_fit_are_exact(void **state UNUSED)
{
    static const int64_t tens[] = {1, 10, 100, 1000};
    struct random random;

    random_seed(&random, 4);
    for (int i = 0; i < 20000; i++) {
        int64_t x, y;
        int32_t ex, ey;
        struct document_decimal a = random_decimal(&random, &x, &ex);
        struct document_decimal b = random_decimal(&random, &y, &ey);
        struct decimal sum = decimal_unpack(decimal_add(a, b));
        struct decimal product = decimal_unpack(decimal_multiply(a, b));
        int32_t least = MIN(ex, ey);
        __int128 total = (__int128)x * tens[ex - least] + (__int128)y * tens[ey - least];
        __int128 times = (__int128)x * y;
        struct document_value left = document_decimal_value(a), right = document_decimal_value(b);
        struct decimal difference = decimal_unpack(decimal_subtract(a, b));
        int order = document_compare(DOCUMENT_ORDER_MONGO, &left, &right);

        assert_int_equal(sum.exponent, least);
        assert_true((sum.negative ? -(__int128)sum.coefficient : (__int128)sum.coefficient) ==
                    total);
        assert_int_equal(product.exponent, ex + ey);
        assert_true((product.negative ? -(__int128)product.coefficient
                                      : (__int128)product.coefficient) == times);
        assert_true((order < 0) == (difference.negative && difference.coefficient) &&
                    (order == 0) == (difference.coefficient == 0));
    }
}

static void *many_divide(void *failed)
{
    struct document_decimal third = decimal_divide(of("1"), of("3"));

    for (int64_t i = 1; i < 20000; i++) {
        struct document_decimal again =
            decimal_divide(decimal_from_int64(i), decimal_from_int64(3 * i));

        if (again.low != third.low || again.high != third.high)
            *(bool *)failed = true;
        decimal_exp(decimal_from_int64(-i)); /* inexact, and below what there is: flags */
    }
    return NULL;
}

static void threads_do_not_meet(void **state UNUSED)
{
    bool failed[4] = {false};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_divide, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(failed[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_round_once_half_to_even),
        cmocka_unit_test(functions_have_all_their_digits),
        cmocka_unit_test(places_are_counted_from_the_point),
        cmocka_unit_test(other_numbers_become_decimals),
        cmocka_unit_test(texts_are_those_of_libbson),
        cmocka_unit_test(every_digit_counts_in_rounding),
        cmocka_unit_test(results_that_fit_are_exact),
        cmocka_unit_test(threads_do_not_meet),
    };
    return cmocka_run_group_tests_name("document/decimal_math", tests, NULL, NULL);
}
