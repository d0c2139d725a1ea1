#include "base/memory_meter.h"

#include "support/check.h"

static void what_is_held_never_passes_the_maximum_where_one_asks(void **state UNUSED)
{
    struct memory_meter meter;

    memory_meter_init(&meter, NULL, 100);
    assert_true(memory_meter_change(&meter, 0, 60));
    assert_false(memory_meter_change(&meter, 0, 41));
    assert_int_equal(memory_meter_used(&meter), 60);
    assert_true(memory_meter_change(&meter, 60, 100));
    assert_true(memory_meter_is_full(&meter));
    assert_true(memory_meter_change(&meter, 100, 0));
    assert_int_equal(memory_meter_used(&meter), 0);
    assert_int_equal(meter.peak, 100);
}

static void a_part_is_held_by_the_whole_and_refused_by_either(void **state UNUSED)
{
    struct memory_meter server, one, other;

    memory_meter_init(&server, NULL, 100);
    memory_meter_init(&one, &server, 70);
    memory_meter_init(&other, &server, 70);
    assert_true(memory_meter_change(&one, 0, 50));
    assert_false(memory_meter_change(&one, 50, 80));
    assert_false(memory_meter_change(&other, 0, 60));
    assert_int_equal(memory_meter_used(&other), 0);
    assert_int_equal(memory_meter_used(&server), 50);
    assert_false(memory_meter_is_full(&other));
    assert_true(memory_meter_change(&other, 0, 50));
    assert_true(memory_meter_is_full(&other));
    assert_int_equal(memory_meter_used(&server), 100);
}

static void what_is_already_there_is_counted_whatever_the_maximum(void **state UNUSED)
{
    struct memory_meter server, one;

    memory_meter_init(&server, NULL, 10);
    memory_meter_init(&one, &server, 10);
    memory_meter_set(&one, 0, 25);
    assert_int_equal(memory_meter_used(&server), 25);
    assert_true(memory_meter_is_full(&one));
    assert_false(memory_meter_change(&one, 25, 26));
    assert_true(memory_meter_change(&one, 25, 24));
    memory_meter_set(&one, 24, 0);
    assert_int_equal(memory_meter_used(&server), 0);
    memory_meter_set(NULL, 0, 1);
    assert_true(memory_meter_change(NULL, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_never_passes_the_maximum_where_one_asks),
        cmocka_unit_test(a_part_is_held_by_the_whole_and_refused_by_either),
        cmocka_unit_test(what_is_already_there_is_counted_whatever_the_maximum),
    };
    return cmocka_run_group_tests_name("base/memory_meter", tests, NULL, NULL);
}
