#include "throughput/shared.h"

#include "base/memory.h"
#include "simulation.h"

enum { RU = 100, SECONDS = 10 };

static struct shared_throughput *shared_of(int64_t ru, int64_t partition_max_ru)
{
    struct budget_options options = {.rate_cru = ru * RU, .rate_max_cru = partition_max_ru * RU};
    struct shared_throughput *shared = NULL;
    struct error err;

    assert_ok(shared_throughput_new(&options, &shared, &err), &err);
    return shared;
}

static void partitions_are_as_many_as_the_throughput_needs(void **state UNUSED)
{
    assert_int_equal(throughput_partitions(400 * RU, 10000 * RU), 1);
    assert_int_equal(throughput_partitions(10000 * RU, 10000 * RU), 1);
    assert_int_equal(throughput_partitions(10100 * RU, 10000 * RU), 2);
    assert_int_equal(throughput_partitions(0, 10000 * RU), 1);
    assert_int_equal(throughput_partitions(INT64_MAX, 1), UINT32_MAX);
    assert_int_equal(throughput_partitions(INT64_MAX, INT64_MAX), 1);
}

static void containers_draw_from_the_same_budgets(void **state UNUSED)
{
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = shared_of(20000, 10000);

    assert_int_equal(shared_throughput_count(shared), 2);
    assert_ptr_equal(shared_throughput_budget(shared, 0), shared_throughput_budget(shared, 2));
    assert_ptr_not_equal(shared_throughput_budget(shared, 0), shared_throughput_budget(shared, 1));
}

/* Two containers press on one budget, a third is quiet: together they get it all, and no more. */
static void busy_containers_use_what_quiet_ones_leave(void **state UNUSED)
{
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = shared_of(1000, 10000);
    struct crowd crowds[3] = {
        {.clients = 60, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2},
        {.clients = 60, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2},
        {.clients = 1, .price_cru = 100, .charge_cru = 100, .pause_ms = 1000},
    };
    int64_t sum_cru;

    simulate(shared_throughput_budget(shared, 0), crowds, 3, 0, SECONDS * 1000, 1);
    sum_cru = crowds[0].delivered_cru + crowds[1].delivered_cru + crowds[2].delivered_cru;
    assert_true(sum_cru * 100 >= 1000 * RU * SECONDS * 97);
    assert_true(sum_cru * 100 <= 1000 * RU * SECONDS * 103);
    assert_true(crowds[0].delivered_cru * 100 >= crowds[1].delivered_cru * 80);
    assert_true(crowds[1].delivered_cru * 100 >= crowds[0].delivered_cru * 80);
}

static void a_raise_adds_partitions_and_keeps_those_there(void **state UNUSED)
{
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = shared_of(1000, 1000);
    struct budget *first = shared_throughput_budget(shared, 0);
    struct budget_state sum;
    struct error err;

    assert_ok(shared_throughput_set(shared, 2500 * RU, true, false, 5, &err), &err);
    assert_int_equal(shared_throughput_count(shared), 3);
    assert_ptr_equal(shared_throughput_budget(shared, 0), first);
    shared_throughput_get_state(shared, 5, &sum);
    assert_in_range(sum.rate_cru, 2500 * RU - 3, 2500 * RU);
    assert_in_range(sum.current_cru, 250 * RU, 250 * RU + 3); /* autoscale, idle */
    assert_ok(shared_throughput_set(shared, 400 * RU, false, false, 6, &err), &err);
    assert_int_equal(shared_throughput_count(shared), 3);
}

static void too_many_partitions_are_refused(void **state UNUSED)
{
    CLEANUP(shared_throughput_unref) struct shared_throughput *shared = shared_of(1000, 1);
    CLEANUP(shared_throughput_unref) struct shared_throughput *none = NULL;
    struct budget_options options = {.rate_cru = INT64_MAX, .rate_max_cru = 1};
    struct error err;

    assert_int_equal(shared_throughput_count(shared), 1000);
    assert_fails(shared_throughput_set(shared, 1025 * RU, false, false, 0, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(shared_throughput_new(&options, &none, &err), &err, ERROR_BAD_REQUEST);
    assert_int_equal(shared_throughput_count(shared), 1000);
}

static void it_lives_until_the_last_reference_goes(void **state UNUSED)
{
    struct shared_throughput *shared = shared_of(1000, 1000);
    struct shared_throughput *second = shared_throughput_ref(shared);

    assert_null(shared_throughput_unref(shared));
    assert_int_equal(shared_throughput_count(second), 1);
    assert_null(shared_throughput_unref(second));
    assert_null(shared_throughput_unref(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_as_many_as_the_throughput_needs),
        cmocka_unit_test(containers_draw_from_the_same_budgets),
        cmocka_unit_test(busy_containers_use_what_quiet_ones_leave),
        cmocka_unit_test(a_raise_adds_partitions_and_keeps_those_there),
        cmocka_unit_test(too_many_partitions_are_refused),
        cmocka_unit_test(it_lives_until_the_last_reference_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
