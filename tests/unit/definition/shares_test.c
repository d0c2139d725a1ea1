#include "definition/shares.h"

#include "base/random.h"
#include "support/check.h"

static void assert_near(double got, double wanted)
{
    if (!(got > wanted - 1e-6 && got < wanted + 1e-6))
        fail_msg("%g is not %g", got, wanted);
}

static void what_one_may_not_give_goes_to_the_others_evenly(void **state UNUSED)
{
    const struct shares_demand claims[] = {
        {.wish = 2, .most = 200}, {.wish = 1, .most = 200}, {.wish = 1, .most = 200}};
    double parts[3];

    shares_level(claims, 3, 600, parts);
    for (size_t i = 0; i < 3; i++)
        assert_near(parts[i], 200);
}

static void the_least_of_one_comes_from_those_with_more_than_theirs(void **state UNUSED)
{
    const struct shares_demand claims[] = {{.wish = 1, .least = 500, .most = 1000},
                                           {.wish = 1, .least = 200, .most = 1000},
                                           {.wish = 1, .most = 1000}};
    double parts[3];

    shares_level(claims, 3, 900, parts);
    assert_near(parts[0], 500);
    assert_near(parts[1], 300 - 200 * 100.0 / 400);
    assert_near(parts[2], 300 - 200 * 300.0 / 400);
}

static void who_may_have_nothing_gets_nothing(void **state UNUSED)
{
    const struct shares_demand claims[] = {{.wish = 5}, {.wish = 0, .most = 100}};
    double parts[2];

    shares_level(claims, 2, 80, parts);
    assert_near(parts[0], 0);
    assert_near(parts[1], 80);
}

static void leasts_above_the_whole_are_cut_in_proportion(void **state UNUSED)
{
    const struct shares_demand claims[] = {{.wish = 1, .least = 300, .most = 900},
                                           {.wish = 1, .least = 600, .most = 900}};
    double parts[2];

    shares_level(claims, 2, 450, parts);
    assert_near(parts[0], 150);
    assert_near(parts[1], 300);
}

static void the_sum_is_the_whole_whatever_is_claimed(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 15);
    for (int round = 0; round < 20000; round++) {
        struct shares_demand claims[12];
        size_t count = 1 + random_below(&random, 12);
        double ru = 1 + (double)random_below(&random, 5000), parts[12], sum = 0, most = 0,
               least = 0;

        for (size_t i = 0; i < count; i++) {
            claims[i] = (struct shares_demand){
                .wish = random_below(&random, 4) ? (double)random_below(&random, 1000) : 0,
                .least = random_below(&random, 2) ? (double)random_below(&random, 400) : 0,
                .most = random_below(&random, 8) ? (double)random_below(&random, 1000) : 0};
            most += claims[i].most;
            least += MIN(claims[i].least, claims[i].most);
        }
        shares_level(claims, count, ru, parts);
        for (size_t i = 0; i < count; i++) {
            sum += parts[i];
            assert_true(parts[i] >= 0 && parts[i] <= claims[i].most + 1e-9);
            if (least <= ru)
                assert_true(parts[i] >= MIN(claims[i].least, claims[i].most) - 1e-6);
        }
        assert_near(sum, MIN(ru, most));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_may_not_give_goes_to_the_others_evenly),
        cmocka_unit_test(the_least_of_one_comes_from_those_with_more_than_theirs),
        cmocka_unit_test(who_may_have_nothing_gets_nothing),
        cmocka_unit_test(leasts_above_the_whole_are_cut_in_proportion),
        cmocka_unit_test(the_sum_is_the_whole_whatever_is_claimed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
