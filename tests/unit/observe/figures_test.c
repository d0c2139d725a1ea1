#include "observe/figures.h"

#include "base/thread.h"
#include "support/check.h"

static struct observed_request request_of(uint32_t container, uint16_t status, uint64_t us)
{
    return (struct observed_request){
        .observed = {.operation = OBSERVED_READ, .container = container},
        .status = status,
        .charge_cru = 100,
        .bytes_in = 1,
        .bytes_out = 2,
        .time_us = us};
}

static size_t status_at(const char *name)
{
    size_t at = 0;

    while (strcmp(figures_status_name(at), name) != 0)
        at++;
    return at;
}

static void requests_are_counted_by_container_operation_and_status(void **state UNUSED)
{
    CLEANUP(figures_free) struct figures *figures = figures_new(10);
    struct observed_request good = request_of(7, 200, 100), refused = request_of(7, 429, 10);
    struct figures_counts counts;

    figures_count(figures, &good, ERROR_NONE);
    figures_count(figures, &good, ERROR_NONE);
    figures_count(figures, &refused, ERROR_TOO_MANY_REQUESTS);
    assert_true(figures_read(figures, 7, &counts));
    assert_int_equal(counts.requests[OBSERVED_READ][status_at("200")], 2);
    assert_int_equal(counts.requests[OBSERVED_READ][status_at("429")], 1);
    assert_int_equal(counts.cru, 300);
    assert_int_equal(counts.bytes_in, 3);
    assert_int_equal(counts.bytes_out, 6);
    assert_int_equal(counts.time_us, 210);
    assert_int_equal(counts.operation_us[OBSERVED_READ], 210);
    assert_int_equal(counts.operation_us[OBSERVED_QUERY], 0);
    assert_int_equal(figures_errors(figures, ERROR_TOO_MANY_REQUESTS), 1);
}

static void a_time_is_in_the_class_that_ends_after_it(void **state UNUSED)
{
    for (size_t i = 0; i <= FIGURES_TIMES; i++) {
        CLEANUP(figures_free) struct figures *figures = figures_new(1);
        uint64_t us = i == 0 ? 0 : figures_time_us(i - 1);
        struct observed_request first = request_of(1, 200, us);
        struct figures_counts counts;

        figures_count(figures, &first, ERROR_NONE);
        if (i < FIGURES_TIMES) {
            struct observed_request last = request_of(1, 200, figures_time_us(i) - 1);

            figures_count(figures, &last, ERROR_NONE);
        }
        assert_true(figures_read(figures, 1, &counts));
        assert_int_equal(counts.times[i], i < FIGURES_TIMES ? 2 : 1);
    }
}

static void containers_beyond_the_limit_are_counted_together(void **state UNUSED)
{
    CLEANUP(figures_free) struct figures *figures = figures_new(3);
    struct figures_counts counts;

    for (uint32_t i = 1; i <= 10; i++) {
        struct observed_request request = request_of(i, 200, 5);

        figures_count(figures, &request, ERROR_NONE);
    }
    assert_true(figures_read(figures, 3, &counts));
    assert_false(figures_read(figures, 4, &counts));
    figures_read_others(figures, &counts);
    assert_int_equal(counts.requests[OBSERVED_READ][status_at("200")], 7);
}

static void a_dropped_container_makes_room_for_another_that_counts_from_nothing(void **state UNUSED)
{
    CLEANUP(figures_free) struct figures *figures = figures_new(1);
    struct observed_request old = request_of(1, 200, 5), new = request_of(2, 201, 5);
    const uint32_t alive[] = {2};
    struct figures_counts counts;

    figures_count(figures, &old, ERROR_NONE);
    figures_keep_only(figures, alive, 1);
    figures_count(figures, &new, ERROR_NONE);
    assert_true(figures_read(figures, 2, &counts));
    assert_int_equal(counts.cru, 100);
    assert_int_equal(counts.requests[OBSERVED_READ][status_at("200")], 0);
    assert_false(figures_read(figures, 1, &counts));
}

enum { THREADS = 4, EACH = 20000 };

static void count_many(void *context)
{
    for (int i = 0; i < EACH; i++) {
        struct observed_request request = request_of((uint32_t)(i % 5) + 1, 200, 5);

        figures_count(context, &request, ERROR_NONE);
    }
}

static void nothing_is_lost_among_threads(void **state UNUSED)
{
    CLEANUP(figures_free) struct figures *figures = figures_new(5);
    struct thread threads[THREADS];
    uint64_t sum = 0;

    for (int i = 0; i < THREADS; i++)
        thread_start(&threads[i], "count", count_many, figures);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    for (uint32_t i = 1; i <= 5; i++) {
        struct figures_counts counts;

        assert_true(figures_read(figures, i, &counts));
        sum += counts.requests[OBSERVED_READ][status_at("200")];
    }
    assert_int_equal(sum, THREADS * EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted_by_container_operation_and_status),
        cmocka_unit_test(a_time_is_in_the_class_that_ends_after_it),
        cmocka_unit_test(containers_beyond_the_limit_are_counted_together),
        cmocka_unit_test(a_dropped_container_makes_room_for_another_that_counts_from_nothing),
        cmocka_unit_test(nothing_is_lost_among_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
