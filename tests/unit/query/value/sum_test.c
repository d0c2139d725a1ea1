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
        assert_true(query_sum_add(&sum, &value));
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

    query_sum_add(&sum, &large);
    query_sum_add(&sum, &large);
    value = query_sum_value(&sum);
    assert_int_equal(value.type, DOCUMENT_DOUBLE);
    assert_true(value.number == 18446744073709551614.0);
    query_sum_add(&sum, &small);
    query_sum_add(&sum, &small);
    query_sum_add(&sum, &one);
    value = query_sum_value(&sum);
    assert_int_equal(value.type, DOCUMENT_INT32);
    assert_int_equal(value.int32, 1);
    query_sum_add(&sum, &half);
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
            query_sum_add(&halves[i < (int)random_below(&random, COUNT)], &value);
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

    assert_false(query_sum_add(&sum, &(struct document_value){.type = DOCUMENT_NULL}));
    assert_false(query_sum_load(&sum, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(integers_are_exact_past_64_bits),
        cmocka_unit_test(order_and_parts_make_no_difference),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(what_is_no_sum_is_not_loaded),
    };
    return cmocka_run_group_tests_name("query/value/sum", tests, NULL, NULL);
}
