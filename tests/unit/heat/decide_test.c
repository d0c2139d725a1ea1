#include "heat/decide.h"

#include "support/check.h"

static const struct heat_bounds bounds = {
    .bytes_max = 1000, .ru_max = 10000, .count_needed = 1, .count_max = 8};

static struct heat_figures hot(double rate)
{
    return (struct heat_figures){.rate = rate, .used = rate, .hot_minutes = 5, .calm_ms = -1};
}

static struct heat_figures calm(uint64_t bytes)
{
    return (struct heat_figures){.rate = 1000, .used = 1, .bytes = bytes, .calm_ms = 86400000};
}

static void a_minute_is_hot_that_spent_its_budget_or_refused(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct statistics_numbers minute = {.cru = 100 * 60 * 90, .requests = 100};

    assert_true(heat_minute_is_hot(&minute, 100, &limits));
    assert_false(heat_minute_is_hot(&minute, 101, &limits));
    minute.throttled = 5;
    assert_true(heat_minute_is_hot(&minute, 1000, &limits));
    minute.throttled = 4;
    assert_false(heat_minute_is_hot(&minute, 1000, &limits));
    assert_false(heat_minute_is_hot(&(struct statistics_numbers){0}, 1000, &limits));
}

static void the_hottest_for_long_enough_is_split(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_figures figures[] = {hot(9000), hot(10000), hot(9500)};

    assert_int_equal(heat_decide_split(figures, 3, &limits, &bounds), 1);
    figures[1].hot_minutes = 4;
    assert_int_equal(heat_decide_split(figures, 3, &limits, &bounds), 2);
}

static void heat_of_one_key_splits_nothing(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_figures figures[] = {hot(10000)};

    figures[0].key_share = 0.51;
    assert_int_equal(heat_decide_split(figures, 1, &limits, &bounds), 1);
    figures[0].key_share = 0.49;
    assert_int_equal(heat_decide_split(figures, 1, &limits, &bounds), 0);
    figures[0].whole = true;
    assert_int_equal(heat_decide_split(figures, 1, &limits, &bounds), 1);
}

/* Halving what is small would go on for ever. */
static void a_span_of_little_throughput_is_not_split(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_figures figures[] = {hot(4999)};

    assert_int_equal(heat_decide_split(figures, 1, &limits, &bounds), 1);
}

static void splitting_ends_at_the_most_there_may_be_and_when_it_is_off(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_bounds full = bounds;
    struct heat_figures figures[] = {hot(10000), hot(10000)};

    full.count_max = 2;
    assert_int_equal(heat_decide_split(figures, 2, &limits, &full), 2);
    limits.split_minutes = 0;
    assert_int_equal(heat_decide_split(figures, 2, &limits, &bounds), 2);
}

static void two_are_calm_that_would_fit_into_one_with_room(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_figures a = calm(200), b = calm(200);

    assert_true(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b.bytes = 201; /* more than 40 % of what one may hold */
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b = calm(200);
    b.used = 801; /* more than 40 % of what both are given */
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b = calm(200);
    b.refused = true;
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b = calm(200);
    b.rate = 9001; /* together more than one may give */
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b = calm(200);
    b.node = 1;
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
    b = calm(200);
    b.whole = true; /* somebody isolated it */
    assert_false(heat_pair_is_calm(&a, &b, &limits, &bounds));
}

static void the_smallest_pair_that_was_calm_for_long_is_merged(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_figures figures[] = {calm(100), calm(90), calm(10), calm(20)};

    figures[3].calm_ms = -1; /* it has no next */
    assert_int_equal(heat_decide_merge(figures, 4, &limits, &bounds), 2);
    figures[2].calm_ms = 86399999;
    assert_int_equal(heat_decide_merge(figures, 4, &limits, &bounds), 1);
    limits.merge_ms = 0;
    assert_int_equal(heat_decide_merge(figures, 4, &limits, &bounds), 4);
}

static void as_many_stay_as_the_throughput_needs(void **state UNUSED)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;
    struct heat_bounds needed = bounds;
    struct heat_figures figures[] = {calm(1), calm(1), calm(1)};

    needed.count_needed = 3;
    assert_int_equal(heat_decide_merge(figures, 3, &limits, &needed), 3);
    needed.count_needed = 2;
    assert_int_equal(heat_decide_merge(figures, 3, &limits, &needed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_is_hot_that_spent_its_budget_or_refused),
        cmocka_unit_test(the_hottest_for_long_enough_is_split),
        cmocka_unit_test(heat_of_one_key_splits_nothing),
        cmocka_unit_test(a_span_of_little_throughput_is_not_split),
        cmocka_unit_test(splitting_ends_at_the_most_there_may_be_and_when_it_is_off),
        cmocka_unit_test(two_are_calm_that_would_fit_into_one_with_room),
        cmocka_unit_test(the_smallest_pair_that_was_calm_for_long_is_merged),
        cmocka_unit_test(as_many_stay_as_the_throughput_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
