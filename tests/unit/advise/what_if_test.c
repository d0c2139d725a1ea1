#include "advise/what_if.h"

#include "base/random.h"
#include "partition/strategy.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/workloads.h"

#include <math.h>

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static struct advise_key property(const struct advise_workload *workload, const char *path)
{
    int at = advise_workload_path(workload, slice_of_text(path));

    assert_true(at >= 0);
    return (struct advise_key){.kind = ADVISE_PROPERTY, .path_count = 1, .paths = {(uint8_t)at}};
}

static struct what_if_result run(const struct advise_workload *workload,
                                 const struct what_if_plan *plan, struct arena *arena)
{
    struct what_if_result result;
    struct error err;

    assert_ok(what_if_run(workload, plan, arena, &result, &err), &err);
    return result;
}

/* 30 days of events within 150 seconds: 80 a second, 480 RU/s. */
#define SPEED (30 * 24 * 60 * 60 / 150.0)

static void a_date_is_throttled_where_an_id_is_not(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_EVENTS, 1, &names);
    struct advise_key day = property(workload, names.a), id = property(workload, "/id");
    struct what_if_plan plan = {
        .key = &day, .partitions = 16, .ru_per_second = 16 * 100, .speed = SPEED};
    struct what_if_result by_day = run(workload, &plan, *state), by_id;

    plan.key = &id;
    by_id = run(workload, &plan, *state);
    assert_true(what_if_throttled_share(&by_day) > 0.7); /* 100 of 480 RU/s fit */
    assert_true(what_if_throttled_share(&by_day) < 0.85);
    assert_true(what_if_throttled_share(&by_id) < 0.02);
    assert_true(by_id.ru > 4 * by_day.ru);
}

static void who_comes_again_gets_through_later(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_EVENTS, 2, &names);
    struct advise_key day = property(workload, names.a);
    struct what_if_plan plan = {
        .key = &day, .partitions = 4, .ru_per_second = 4 * 600, .retries_max = 9, .speed = SPEED};
    struct what_if_result result = run(workload, &plan, *state);

    assert_int_equal(result.given_up, 0);
    assert_true(result.wait_ms_p99 >= result.wait_ms_mean);
}

static void more_throughput_is_never_throttled_more(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_TENANTS, 1, &names);
    struct advise_key tenant = property(workload, names.a);
    double last = 1;

    for (uint64_t ru = 100; ru <= 6400; ru *= 2) {
        struct what_if_plan plan = {
            .key = &tenant, .partitions = 8, .ru_per_second = ru, .speed = SPEED};
        struct what_if_result result = run(workload, &plan, *state);

        assert_true(what_if_throttled_share(&result) <= last);
        last = what_if_throttled_share(&result);
    }
    assert_true(last < 0.01);
}

/* Dates in their order: all writes of a day are in one place, as with hashing, and yesterday's
 * neighbour is the same place. */
static void a_range_of_dates_is_hot_at_its_end(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_EVENTS, 3, &names);
    struct advise_key day = property(workload, names.a);
    struct what_if_plan plan = {
        .key = &day, .partitions = 10, .ru_per_second = 10 * 100, .range = true, .speed = SPEED};
    struct what_if_result result = run(workload, &plan, *state);

    assert_true(what_if_throttled_share(&result) > 0.7);
    assert_true(result.cells[0].requests > 0);     /* the first days are in the first partition */
    assert_int_equal(result.cells[9].requests, 0); /* and nothing is in the last one yet */
}

static void cells_sum_up_to_the_figures(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_CATALOGUE, 1, &names);
    struct advise_key brand = property(workload, names.b);
    struct what_if_plan plan = {
        .key = &brand, .partitions = 7, .ru_per_second = 2000, .retries_max = 3, .speed = SPEED};
    struct what_if_result result = run(workload, &plan, *state);
    uint64_t requests = 0, throttled = 0;

    for (size_t i = 0; i < result.windows * result.partitions; i++) {
        requests += result.cells[i].requests;
        throttled += result.cells[i].throttled;
    }
    assert_int_equal(requests + throttled, result.attempts);
    assert_int_equal(throttled, result.throttled);
    assert_int_equal(requests + result.given_up, result.requests);
}

static void plans_that_make_no_sense_are_refused(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_BY_ID, 1, &names);
    CLEANUP(advise_workload_free) struct advise_workload *empty = advise_workload_new();
    struct advise_key id = property(workload, "/id"), one = {.kind = ADVISE_ONE_KEY};
    struct what_if_plan none = {.key = &id, .partitions = 0, .ru_per_second = 400};
    struct what_if_plan poor = {.key = &id, .partitions = 10, .ru_per_second = 1};
    struct what_if_plan range = {.key = &one, .partitions = 1, .ru_per_second = 400, .range = true};
    struct what_if_plan fine = {.key = &id, .partitions = 1, .ru_per_second = 400};
    struct what_if_result result;
    struct error err;

    advise_workload_finish(empty);
    assert_fails(what_if_run(workload, &none, *state, &result, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(what_if_run(workload, &poor, *state, &result, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(what_if_run(workload, &range, *state, &result, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(what_if_run(empty, &fine, *state, &result, &err), &err, ERROR_BAD_REQUEST);
}

/* 200 creates a second for ten seconds, a record for each of weight of them; every third one of the
 * records as the server refused it. */
static struct advise_workload *steady(struct arena *arena, uint32_t weight, uint32_t refused)
{
    struct advise_workload *workload = advise_workload_new();
    struct random random;

    random_seed(&random, 5);
    for (uint32_t i = weight - 1; i < 2000; i += weight) {
        bool failed = refused && i / weight % 3 == 0;
        char item[32];

        (void)snprintf(item, sizeof item, "{\"k\":%u}", (unsigned)random_below(&random, 500));
        advise_workload_operation(
            workload, &(struct advise_operation_parts){.kind = ADVISE_CREATE,
                                                       .time_ms = i * INT64_C(5),
                                                       .cru = failed ? 0 : 700,
                                                       .bytes = 500,
                                                       .weight = weight,
                                                       .refused = failed ? refused : 0,
                                                       .failed = failed,
                                                       .item = document_of(arena, item)});
    }
    advise_workload_finish(workload);
    return workload;
}

/* 1,400 RU/s are asked for, 1,200 given. */
static void a_sample_is_refused_as_much_as_what_it_stands_for(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *whole = steady(*state, 1, 0);
    CLEANUP(advise_workload_free) struct advise_workload *sample = steady(*state, 8, 0);
    struct advise_key key = property(whole, "/k"), same = property(sample, "/k");
    struct what_if_plan plan = {.key = &key, .partitions = 2, .ru_per_second = 1200};
    struct what_if_result all = run(whole, &plan, *state), some;

    plan.key = &same;
    some = run(sample, &plan, *state);
    assert_int_equal(all.requests, 2000);
    assert_int_equal(some.requests, 2000);
    assert_true(what_if_throttled_share(&all) > 0.1);
    assert_true(fabs(what_if_throttled_share(&some) / what_if_throttled_share(&all) - 1) < 0.25);
}

static void what_was_refused_is_offered_again(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *calm = steady(*state, 1, 0);
    CLEANUP(advise_workload_free) struct advise_workload *refused = steady(*state, 1, 1);
    struct advise_key key = property(calm, "/k"), same = property(refused, "/k");
    struct what_if_plan plan = {.key = &key, .partitions = 2, .ru_per_second = 1000};
    struct what_if_result a = run(calm, &plan, *state), b;

    plan.key = &same;
    b = run(refused, &plan, *state);
    assert_int_equal(a.throttled, b.throttled); /* the same load, whatever came of it before */
    assert_true(fabs(a.ru - b.ru) < 0.01);
}

/* Three answers 429 and then no more: clients come again twice. */
static void clients_come_again_as_often_as_the_record_shows(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *seen = steady(*state, 1, 3);
    CLEANUP(advise_workload_free) struct advise_workload *unseen = steady(*state, 1, 0);
    struct advise_key key = property(seen, "/k"), same = property(unseen, "/k");
    struct what_if_plan plan = {
        .key = &key, .partitions = 1, .ru_per_second = 100, .retries_recorded = true};
    struct what_if_result recorded = run(seen, &plan, *state), twice, preset, nine;

    plan.retries_recorded = false;
    plan.retries_max = 2;
    twice = run(seen, &plan, *state);
    assert_int_equal(recorded.attempts, twice.attempts);
    plan.key = &same;
    plan.retries_max = WHAT_IF_RETRIES;
    nine = run(unseen, &plan, *state);
    plan.retries_recorded = true;
    preset = run(unseen, &plan, *state);
    assert_int_equal(preset.attempts, nine.attempts);
    assert_true(preset.attempts > twice.attempts);
}

/* Nobody's wait is put into a time that was over before. */
static void the_plot_goes_on_until_the_last_has_come_through(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = steady(*state, 1, 0);
    struct advise_key key = property(workload, "/k");
    struct what_if_plan plan = {
        .key = &key, .partitions = 1, .ru_per_second = 500, .retries_max = 20};
    struct what_if_result result = run(workload, &plan, *state);
    double cru = 0;

    assert_true(result.windows <= WHAT_IF_WINDOWS);
    assert_true(result.window_ms * (int64_t)result.windows > 20000); /* 14,000 RU */
    for (size_t w = 0; w < result.windows; w++) {
        assert_true(result.cells[w].cru <= 2 * 50000 * (double)result.window_ms / 1000);
        cru += result.cells[w].cru;
    }
    assert_true(fabs(cru / 100 - result.ru) < 1);
    assert_true(result.latency_ms_mean >= result.wait_ms_mean);
}

static void credit_saved_while_idle_is_spent(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = steady(*state, 1, 0);
    struct advise_key key = property(workload, "/k");
    struct what_if_plan plan = {.key = &key, .partitions = 2, .ru_per_second = 1450};
    struct what_if_result without = run(workload, &plan, *state), with;

    plan.burst_seconds = 300;
    with = run(workload, &plan, *state);
    assert_true(with.throttled < without.throttled);
}

/* As a container has them: spans and shares need not be even. */
static void a_map_says_where_keys_are_and_what_they_may_spend(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = steady(*state, 1, 0);
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    struct partition_definition definition = {.kind = PARTITION_HASH_V2, .path_count = 1};
    const struct partition_span spans[] = {
        {.id = 1, .epoch = 1, .share = 0.9, .min = PARTITION_ROUTING_MIN, .max = SLICE("\x10")},
        {.id = 2, .epoch = 1, .share = 0.1, .min = SLICE("\x10"), .max = PARTITION_ROUTING_MAX},
    };
    struct advise_key key = property(workload, "/k");
    struct what_if_plan plan = {.key = &key, .partitions = 2, .ru_per_second = 1600};
    struct what_if_result even = run(workload, &plan, *state), uneven;
    struct error err;

    assert_ok(partition_map_new(spans, 2, 1, &map, &err), &err);
    plan.map = map;
    plan.definition = &definition;
    uneven = run(workload, &plan, *state);
    assert_true(what_if_throttled_share(&even) < 0.05);
    assert_true(what_if_throttled_share(&uneven) > 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_is_throttled_where_an_id_is_not),
        cmocka_unit_test(who_comes_again_gets_through_later),
        cmocka_unit_test(more_throughput_is_never_throttled_more),
        cmocka_unit_test(a_range_of_dates_is_hot_at_its_end),
        cmocka_unit_test(cells_sum_up_to_the_figures),
        cmocka_unit_test(a_sample_is_refused_as_much_as_what_it_stands_for),
        cmocka_unit_test(what_was_refused_is_offered_again),
        cmocka_unit_test(clients_come_again_as_often_as_the_record_shows),
        cmocka_unit_test(the_plot_goes_on_until_the_last_has_come_through),
        cmocka_unit_test(credit_saved_while_idle_is_spent),
        cmocka_unit_test(a_map_says_where_keys_are_and_what_they_may_spend),
        cmocka_unit_test(plans_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
