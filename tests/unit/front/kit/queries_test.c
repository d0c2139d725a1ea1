#include "front/kit/queries.h"

#include "support/check.h"

/* How many of a kind are left to workers before the next is tried. */
static size_t passes(struct front_queries *queries, uint64_t kind)
{
    size_t count = 0;

    while (!front_queries_may_try(queries, kind))
        count++;
    return count;
}

static void kinds_that_were_cold_wait_longer_each_time_but_not_for_good(void **state UNUSED)
{
    const struct front_query_limits limits = {.spill_directory = "."};
    CLEANUP(front_queries_free) struct front_queries *queries = front_queries_new(&limits);

    assert_int_equal(passes(queries, 7), 0);
    for (size_t expected = 1; expected < 63; expected = 2 * expected + 1) {
        front_queries_was_cold(queries, 7);
        assert_int_equal(passes(queries, 7), expected);
    }
    for (size_t i = 0; i < 3; i++) {
        front_queries_was_cold(queries, 7);
        assert_int_equal(passes(queries, 7), 63);
    }
    assert_int_equal(passes(queries, 8), 0);
}

static void kinds_that_a_loop_has_done_wait_half_as_long_the_next_time(void **state UNUSED)
{
    const struct front_query_limits limits = {.spill_directory = "."};
    CLEANUP(front_queries_free) struct front_queries *queries = front_queries_new(&limits);

    for (size_t i = 0; i < 10; i++)
        front_queries_was_cold(queries, 7);
    assert_int_equal(passes(queries, 7), 63);
    front_queries_was_short(queries, 7);
    assert_int_equal(passes(queries, 7), 0);
    front_queries_was_cold(queries, 7);
    assert_int_equal(passes(queries, 7), 63);
    for (size_t i = 0; i < 6; i++)
        front_queries_was_short(queries, 7);
    front_queries_was_cold(queries, 7);
    assert_int_equal(passes(queries, 7), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_that_were_cold_wait_longer_each_time_but_not_for_good),
        cmocka_unit_test(kinds_that_a_loop_has_done_wait_half_as_long_the_next_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
