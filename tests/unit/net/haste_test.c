/* Time and use are handed in. */
#include "net/haste.h"

#include "support/check.h"

enum { MS = 1000000 };

static void a_loop_that_is_seldom_busy_stays_first(void **state UNUSED)
{
    struct net_haste haste = {.first = true};

    assert_false(net_haste_is_due(&haste, NET_HASTE_LOOK_MS - 1));
    assert_true(net_haste_is_due(&haste, NET_HASTE_LOOK_MS));
    assert_false(net_haste_look(&haste, 10, 6 * MS)); /* 60 % */
    assert_true(haste.first);
    assert_false(net_haste_look(&haste, 1010, 7 * MS));
    assert_true(haste.first);
}

static void a_busy_one_makes_way_and_comes_back_when_it_is_not(void **state UNUSED)
{
    struct net_haste haste = {.first = true};

    assert_true(net_haste_look(&haste, 10, 9 * MS));
    assert_false(haste.first);
    assert_false(net_haste_look(&haste, 20, 14 * MS)); /* 50 %: between the marks */
    assert_false(haste.first);
    assert_true(net_haste_look(&haste, 30, 17 * MS));
    assert_true(haste.first);
}

/* It slept, and nobody looked meanwhile: the first work after that finds it idle. */
static void a_long_sleep_makes_it_first(void **state UNUSED)
{
    struct net_haste haste = {.first = false, .looked_ms = 100, .looked_cpu_ns = 90 * MS};

    assert_true(net_haste_look(&haste, 100000, 90 * MS));
    assert_true(haste.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_is_seldom_busy_stays_first),
        cmocka_unit_test(a_busy_one_makes_way_and_comes_back_when_it_is_not),
        cmocka_unit_test(a_long_sleep_makes_it_first),
    };
    return cmocka_run_group_tests_name("net/haste", tests, NULL, NULL);
}
