#include "front/kit/plans.h"

#include "support/check.h"

/* A plan of about so many bytes. */
static struct front_plan *plan_new(size_t bytes)
{
    struct arena *arena = arena_new();
    struct front_plan *plan = ARENA_NEW(arena, struct front_plan);

    plan->arena = arena;
    (void)arena_alloc(arena, bytes);
    return plan;
}

static bool is_there(struct front_plans *plans, uint64_t account, struct slice key)
{
    struct front_plan *plan = front_plans_take(plans, account, key);

    if (plan)
        front_plans_give(plans, account, key, plan);
    return plan != NULL;
}

static void a_plan_is_found_by_its_account_and_key_alone(void **state UNUSED)
{
    CLEANUP(front_plans_free) struct front_plans *plans = front_plans_new(1 << 20);

    front_plans_give(plans, 1, SLICE("a"), plan_new(100));
    assert_true(is_there(plans, 1, SLICE("a")));
    assert_false(is_there(plans, 2, SLICE("a")));
    assert_false(is_there(plans, 1, SLICE("b")));
}

static void a_plan_that_is_taken_is_nobody_elses(void **state UNUSED)
{
    CLEANUP(front_plans_free) struct front_plans *plans = front_plans_new(1 << 20);
    struct front_plan *plan;

    front_plans_give(plans, 1, SLICE("a"), plan_new(100));
    plan = front_plans_take(plans, 1, SLICE("a"));
    assert_non_null(plan);
    assert_null(front_plans_take(plans, 1, SLICE("a")));
    front_plans_give(plans, 1, SLICE("a"), plan_new(100));
    front_plans_give(plans, 1, SLICE("a"), plan);
    assert_ptr_equal(front_plans_take(plans, 1, SLICE("a")), plan);
    arena_free(plan->arena);
    assert_true(is_there(plans, 1, SLICE("a")));
}

static void what_is_kept_never_has_more_bytes_than_it_may(void **state UNUSED)
{
    enum { BYTES_MAX = 1 << 20 };
    CLEANUP(front_plans_free) struct front_plans *plans = front_plans_new(BYTES_MAX);
    struct front_plans_metrics metrics;

    for (int i = 0; i < 2000; i++) {
        char key[16];

        snprintf(key, sizeof key, "q%d", i);
        front_plans_give(plans, 1, slice_of_text(key), plan_new(i % 50 * 1000));
        front_plans_metrics(plans, &metrics);
        assert_true(metrics.bytes <= BYTES_MAX);
    }
    assert_true(metrics.count > 10);
}

static void an_account_with_many_plans_leaves_others_theirs(void **state UNUSED)
{
    CLEANUP(front_plans_free) struct front_plans *plans = front_plans_new(1 << 20);
    unsigned kept = 0;

    for (int i = 0; i < 20; i++) {
        char key[16];

        snprintf(key, sizeof key, "own%d", i);
        front_plans_give(plans, 1, slice_of_text(key), plan_new(4000));
    }
    for (int i = 0; i < 5000; i++) {
        char key[16];

        snprintf(key, sizeof key, "other%d", i);
        front_plans_give(plans, 2, slice_of_text(key), plan_new(4000));
    }
    for (int i = 0; i < 20; i++) {
        char key[16];

        snprintf(key, sizeof key, "own%d", i);
        kept += is_there(plans, 1, slice_of_text(key));
    }
    assert_int_equal(kept, 20);
}

static void without_room_nothing_is_kept(void **state UNUSED)
{
    CLEANUP(front_plans_free) struct front_plans *plans = front_plans_new(0);

    front_plans_give(plans, 1, SLICE("a"), plan_new(100));
    assert_false(is_there(plans, 1, SLICE("a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_found_by_its_account_and_key_alone),
        cmocka_unit_test(a_plan_that_is_taken_is_nobody_elses),
        cmocka_unit_test(what_is_kept_never_has_more_bytes_than_it_may),
        cmocka_unit_test(an_account_with_many_plans_leaves_others_theirs),
        cmocka_unit_test(without_room_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
