#include "front/gremlin/value/arithmetic.h"

#include "front/gremlin/value/big.h"
#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/text.h"
#include "support/check.h"
#include "support/gremlin_values.h"

#include <math.h>

static struct gremlin_value decimal(struct gremlin_heap *heap, const char *s)
{
    struct gremlin_value value;

    assert_true(gremlin_big_decimal(heap, slice_of_text(s), &value));
    return value;
}

static struct gremlin_value integer(struct gremlin_heap *heap, const char *s)
{
    struct gremlin_value value;

    assert_true(gremlin_big_integer(heap, slice_of_text(s), &value));
    return value;
}

static void gives(struct gremlin_heap *heap, enum gremlin_operation operation,
                  struct gremlin_value a, struct gremlin_value b, enum gremlin_type type,
                  const char *expected)
{
    struct gremlin_value value;
    struct error err = {};

    assert_ok(gremlin_number_compute(heap, operation, a, b, &value, &err), &err);
    assert_string_equal(gremlin_type_name(value.type), gremlin_type_name(type));
    assert_slice_equal(gremlin_bytes(gremlin_value_text(heap, value)), slice_of_text(expected));
}

static void the_wider_type_wins(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    gives(heap, GREMLIN_ADD, gremlin_integer(GREMLIN_BYTE, 1), gremlin_integer(GREMLIN_SHORT, 2),
          GREMLIN_SHORT, "3");
    gives(heap, GREMLIN_ADD, gremlin_int(1), gremlin_long(2), GREMLIN_LONG, "3");
    gives(heap, GREMLIN_ADD, gremlin_int(1), gremlin_float(2.5F), GREMLIN_FLOAT, "3.5");
    gives(heap, GREMLIN_ADD, gremlin_long(1), gremlin_float(2.5F), GREMLIN_DOUBLE, "3.5");
    gives(heap, GREMLIN_ADD, gremlin_double(0.1), decimal(heap, "0.2"), GREMLIN_BIG_DECIMAL, "0.3");
    gives(heap, GREMLIN_MULTIPLY, integer(heap, "100000000000000000000"), gremlin_int(-3),
          GREMLIN_BIG_INTEGER, "-300000000000000000000");
    gives(heap, GREMLIN_ADD, integer(heap, "1"), gremlin_double(0.5), GREMLIN_BIG_DECIMAL, "1.5");
}

static void whole_results_that_do_not_fit_widen(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    gives(heap, GREMLIN_ADD, gremlin_integer(GREMLIN_BYTE, 127), gremlin_integer(GREMLIN_BYTE, 1),
          GREMLIN_SHORT, "128");
    gives(heap, GREMLIN_ADD, gremlin_int(INT32_MAX), gremlin_int(1), GREMLIN_LONG, "2147483648");
    gives(heap, GREMLIN_MULTIPLY, gremlin_long(INT64_MAX), gremlin_int(2), GREMLIN_BIG_INTEGER,
          "18446744073709551614");
    gives(heap, GREMLIN_SUBTRACT, gremlin_long(INT64_MIN), gremlin_int(1), GREMLIN_BIG_INTEGER,
          "-9223372036854775809");
    gives(heap, GREMLIN_DIVIDE, gremlin_long(INT64_MIN), gremlin_int(-1), GREMLIN_BIG_INTEGER,
          "9223372036854775808");
}

static void division_cuts_whole_numbers_and_rounds_decimals(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value value;
    struct error err = {};

    gives(heap, GREMLIN_DIVIDE, gremlin_int(7), gremlin_int(-2), GREMLIN_INT, "-3");
    gives(heap, GREMLIN_DIVIDE, gremlin_double(1), gremlin_int(0), GREMLIN_DOUBLE, "Infinity");
    gives(heap, GREMLIN_DIVIDE, decimal(heap, "1"), decimal(heap, "8"), GREMLIN_BIG_DECIMAL,
          "0.125");
    gives(heap, GREMLIN_DIVIDE, decimal(heap, "1"), decimal(heap, "3"), GREMLIN_BIG_DECIMAL,
          "0.3333333333");
    gives(heap, GREMLIN_DIVIDE, decimal(heap, "-2"), decimal(heap, "3"), GREMLIN_BIG_DECIMAL,
          "-0.6666666667");
    gives(heap, GREMLIN_DIVIDE, decimal(heap, "1.00"), decimal(heap, "2"), GREMLIN_BIG_DECIMAL,
          "0.50");
    assert_fails(
        gremlin_number_compute(heap, GREMLIN_DIVIDE, gremlin_int(1), gremlin_int(0), &value, &err),
        &err, ERROR_GREMLIN_RUN);
    assert_fails(gremlin_number_compute(heap, GREMLIN_DIVIDE, decimal(heap, "1"),
                                        decimal(heap, "0.0"), &value, &err),
                 &err, ERROR_GREMLIN_RUN);
}

static void numbers_do_not_grow_without_end(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value value = integer(heap, "99999999999999999999999999");
    struct error err = {};
    int rounds = 0;

    while (gremlin_number_compute(heap, GREMLIN_MULTIPLY, value, value, &value, &err))
        assert_true(++rounds < 20);
    assert_int_equal(err.code, ERROR_GREMLIN_RUN);
    assert_false(gremlin_number_compute(heap, GREMLIN_ADD, decimal(heap, "1E+1000000000"),
                                        decimal(heap, "1E-1000000000"), &value, &err));
}

static void random_results_agree_with_those_of_the_machine(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct random random;
    struct error err = {};

    random_seed(&random, 5);
    for (int i = 0; i < 2000; i++) {
        int64_t a = (int64_t)random_next(&random) >> random_below(&random, 63);
        int64_t b = (int64_t)random_next(&random) >> random_below(&random, 63);
        enum gremlin_operation operation = (enum gremlin_operation)random_below(&random, 4);
        struct gremlin_value big_a, big_b, small, big;

        if (operation == GREMLIN_DIVIDE && !b)
            continue;
        assert_ok(gremlin_number_cast(heap, GREMLIN_BIG_INTEGER, gremlin_long(a), &big_a, &err),
                  &err);
        assert_ok(gremlin_number_cast(heap, GREMLIN_BIG_INTEGER, gremlin_long(b), &big_b, &err),
                  &err);
        assert_ok(
            gremlin_number_compute(heap, operation, gremlin_long(a), gremlin_long(b), &small, &err),
            &err);
        assert_ok(gremlin_number_compute(heap, operation, big_a, big_b, &big, &err), &err);
        assert_true(gremlin_equal(small, big));
        assert_int_equal(gremlin_order(gremlin_long(a), gremlin_long(b)) < 0,
                         gremlin_order(gremlin_long(a), big_b) < 0);
        assert_int_equal(gremlin_order(gremlin_long(a), gremlin_long(b)) > 0,
                         gremlin_order(big_a, gremlin_long(b)) > 0);
    }
}

static void least_and_greatest_of_any_family(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value a = gremlin_string(heap, SLICE("a")), b = gremlin_string(heap, SLICE("b"));
    struct gremlin_value value;
    struct error err = {};

    assert_ok(gremlin_value_min(a, b, &value, &err), &err);
    assert_ptr_equal(value.object, a.object);
    assert_ok(gremlin_value_max(gremlin_int(1), gremlin_double(1.5), &value, &err), &err);
    assert_int_equal(value.type, GREMLIN_DOUBLE);
    assert_ok(gremlin_value_max(GREMLIN_NOTHING, gremlin_int(1), &value, &err), &err);
    assert_int_equal(value.type, GREMLIN_INT);
    assert_ok(gremlin_value_min(gremlin_double((double)NAN), gremlin_int(1), &value, &err), &err);
    assert_int_equal(value.type, GREMLIN_INT);
    assert_fails(gremlin_value_min(a, gremlin_int(1), &value, &err), &err, ERROR_GREMLIN_RUN);
}

static void operators_apply(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value list = gremlin_list_new(heap, 0), more = gremlin_list_new(heap, 0), value;
    struct error err = {};

    gremlin_list_add(list, gremlin_int(1));
    gremlin_list_add(more, gremlin_int(2));
    assert_ok(gremlin_operator_apply(heap, GREMLIN_OPERATOR_ADD_ALL, list, more, &value, &err),
              &err);
    assert_ptr_equal(value.object, list.object); /* nobody else held it */
    assert_int_equal(gremlin_list(value)->count, 2);
    assert_ok(gremlin_operator_apply(heap, GREMLIN_OPERATOR_ADD_ALL, list, more, &value, &err),
              &err);
    assert_ptr_not_equal(value.object, list.object);
    assert_ok(gremlin_operator_apply(heap, GREMLIN_OPERATOR_SUM_LONG, gremlin_long(1),
                                     gremlin_long(2), &value, &err),
              &err);
    assert_int_equal(value.integer, 3);
    assert_ok(gremlin_operator_apply(heap, GREMLIN_OPERATOR_OR, gremlin_boolean(false),
                                     gremlin_boolean(true), &value, &err),
              &err);
    assert_true(value.boolean);
    assert_fails(gremlin_operator_apply(heap, GREMLIN_OPERATOR_SUM, list, more, &value, &err), &err,
                 ERROR_GREMLIN_RUN);
}

static void numbers_are_cast_where_they_fit(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value value;
    struct error err = {};

    assert_ok(gremlin_number_cast(heap, GREMLIN_INT, gremlin_double(3.9), &value, &err), &err);
    assert_int_equal(value.integer, 3);
    assert_ok(gremlin_number_cast(heap, GREMLIN_LONG, decimal(heap, "-12.5E+2"), &value, &err),
              &err);
    assert_int_equal(value.integer, -1250);
    assert_fails(gremlin_number_cast(heap, GREMLIN_BYTE, gremlin_int(128), &value, &err), &err,
                 ERROR_GREMLIN_RUN);
    assert_fails(gremlin_number_cast(heap, GREMLIN_LONG, gremlin_double((double)NAN), &value, &err),
                 &err, ERROR_GREMLIN_RUN);
    assert_fails(
        gremlin_number_cast(heap, GREMLIN_BIG_INTEGER, decimal(heap, "1E+99999"), &value, &err),
        &err, ERROR_GREMLIN_RUN);
    assert_fails(gremlin_number_cast(heap, GREMLIN_FLOAT, gremlin_double(1e300), &value, &err),
                 &err, ERROR_GREMLIN_RUN);
}

static void big_numbers_pass_through_bytes(void **state UNUSED)
{
    static const struct {
        const char *text;
        const char *bytes;
        size_t len;
    } rows[] = {
        {"0", "\0\0\0\1\0", 5},     {"127", "\0\0\0\1\x7f", 5},  {"128", "\0\0\0\2\0\x80", 6},
        {"-1", "\0\0\0\1\xff", 5},  {"-128", "\0\0\0\1\x80", 5}, {"-129", "\0\0\0\2\xff\x7f", 6},
        {"256", "\0\0\0\2\1\0", 6},
    };
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf buf;
        struct gremlin_value back;

        buf_init(&buf, BUF_DEFAULT_MAX);
        gremlin_big_write_bytes(integer(heap, rows[i].text), &buf);
        assert_int_equal(buf.len, rows[i].len);
        assert_memory_equal(buf.data, rows[i].bytes, buf.len);
        assert_true(gremlin_big_from_bytes(heap, slice_skip(buf_slice(&buf), 4), &back));
        assert_slice_equal(gremlin_bytes(back), slice_of_text(rows[i].text));
    }
}

static void decimals_print_as_in_java(void **state UNUSED)
{
    static const char *const rows[][2] = {
        {"1.10", "1.10"},      {"100E-2", "1.00"},       {"1E3", "1E+3"},  {"12.5e10", "1.25E+11"},
        {"0.0000001", "1E-7"}, {"0.000001", "0.000001"}, {"-0.5", "-0.5"}, {"0.00", "0.00"},
        {"+7", "7"},           {"1.5E-10", "1.5E-10"},
    };
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value value;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_slice_equal(gremlin_bytes(decimal(heap, rows[i][0])), slice_of_text(rows[i][1]));
    assert_false(gremlin_big_decimal(heap, SLICE(""), &value));
    assert_false(gremlin_big_decimal(heap, SLICE("."), &value));
    assert_false(gremlin_big_decimal(heap, SLICE("1e"), &value));
    assert_false(gremlin_big_decimal(heap, SLICE("1E99999999999"), &value));
    assert_false(gremlin_big_integer(heap, SLICE("1.5"), &value));
    assert_false(gremlin_big_integer(heap, SLICE("-"), &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wider_type_wins),
        cmocka_unit_test(whole_results_that_do_not_fit_widen),
        cmocka_unit_test(division_cuts_whole_numbers_and_rounds_decimals),
        cmocka_unit_test(numbers_do_not_grow_without_end),
        cmocka_unit_test(random_results_agree_with_those_of_the_machine),
        cmocka_unit_test(least_and_greatest_of_any_family),
        cmocka_unit_test(operators_apply),
        cmocka_unit_test(numbers_are_cast_where_they_fit),
        cmocka_unit_test(big_numbers_pass_through_bytes),
        cmocka_unit_test(decimals_print_as_in_java),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
