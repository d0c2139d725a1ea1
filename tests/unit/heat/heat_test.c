/* Heat written down, read back, reported and acted on, on a clock the test turns. */
#include "load/split_points.h"
#include "unit/heat/heat_fixture.h"

/* --- The record ------------------------------------------------------------------------------ */

static void a_minute_is_written_down_with_its_keys_and_times(void **state)
{
    struct fixture *fixture = *state;
    struct heat_series series;

    container_make(fixture, 1000);
    ask(fixture, "a", 30, 3, 1);
    ask(fixture, "b", 5, 1, 0);
    fixture->now_ms += MINUTE;
    look(fixture);
    series = series_of(fixture, 60);
    assert_int_equal(series.step, 1);
    assert_int_equal(series.point_count, 1);
    assert_int_equal(series.points[0].minute, fixture->now_ms / MINUTE - 1);
    assert_int_equal(cru_of(&series), 3500);
    assert_int_equal(series.points[0].record.spans[0].numbers.throttled, 1);
    assert_int_equal(series.points[0].record.spans[0].numbers.time_us, 8000);
    assert_int_equal(series.points[0].record.spans[0].numbers.bytes_out, 400);
    assert_int_equal(series.points[0].record.key_count, 2);
    assert_int_equal(series.place_count, 1);
}

static void the_present_minute_is_shown_too_and_counted_once(void **state)
{
    struct fixture *fixture = *state;
    struct heat_series series;

    container_make(fixture, 1000);
    ask(fixture, "a", 30, 3, 0);
    series = series_of(fixture, 60);
    assert_int_equal(cru_of(&series), 3000);
    look(fixture);
    ask(fixture, "a", 10, 1, 0);
    series = series_of(fixture, 60);
    assert_int_equal(cru_of(&series), 4000);
    fixture->now_ms += 5 * MINUTE;
    for (int i = 0; i < 5; i++)
        look(fixture);
    series = series_of(fixture, 60);
    assert_int_equal(cru_of(&series), 4000);
}

static void what_was_counted_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct heat_series series;

    container_make(fixture, 1000);
    ask(fixture, "a", 30, 3, 0);
    fixture->now_ms += MINUTE;
    look(fixture);
    ask(fixture, "a", 20, 1, 0); /* of the minute the process ends in */
    restart(fixture);
    fixture->now_ms += MINUTE;
    ask(fixture, "a", 10, 1, 0);
    fixture->now_ms += MINUTE;
    look(fixture);
    series = series_of(fixture, 60);
    assert_int_equal(series.point_count, 3);
    assert_int_equal(cru_of(&series), 6000);
}

static void a_failed_write_is_made_up_for(void **state)
{
    struct fixture *fixture = *state;
    struct heat_series series;
    struct error err;

    container_make(fixture, 1000);
    ask(fixture, "a", 30, 3, 0);
    fixture->now_ms += MINUTE;
    fault_engine_fail_nth(fixture->engine, FAULT_WRITES, 1, ERROR_STORE_FULL, FAULT_NOT_WRITTEN);
    assert_false(heat_round(fixture->heat, &err));
    fault_engine_heal(fixture->engine);
    fixture->now_ms += MINUTE;
    look(fixture);
    series = series_of(fixture, 60);
    assert_int_equal(cru_of(&series), 3000);
}

/* Two days of a minute each: the first is folded into tens, nothing is lost. */
static void minutes_older_than_a_day_become_tens(void **state)
{
    struct fixture *fixture = *state;
    struct heat_series series;
    int64_t minutes = 2 * HEAT_DAY_MINUTES;

    container_make(fixture, 1000);
    for (int64_t i = 0; i < minutes; i++) {
        ask(fixture, "a", 1, 1, 0);
        fixture->now_ms += MINUTE;
        look(fixture);
    }
    series = series_of(fixture, minutes + 10);
    assert_int_equal(series.step, 10);
    assert_int_equal(cru_of(&series), minutes * 100);
    series = series_of(fixture, 100);
    assert_int_equal(series.step, 1);
    assert_int_equal(series.point_count, 99);
}

struct counted {
    size_t minutes, tens;
};

static bool count_visit(void *context, int64_t minute UNUSED, uint32_t minutes,
                        const struct heat_record *record UNUSED, struct error *err UNUSED)
{
    struct counted *counted = context;

    counted->minutes += minutes == 1;
    counted->tens += minutes == HEAT_FOLD_MINUTES;
    return true;
}

static struct counted stored(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct counted counted = {0};
    struct error err;

    assert_ok(heat_store_read(fixture->catalogue, container_info(container)->number, 0, UINT32_MAX,
                              count_visit, &counted, &err),
              &err);
    return counted;
}

/* Nine days, looked at every ten minutes. */
static void a_week_is_kept_and_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct counted counted;

    container_make(fixture, 1000);
    for (int64_t i = 0; i < 9 * HEAT_DAY_MINUTES; i++) {
        ask(fixture, "a", 1, 1, 0);
        fixture->now_ms += MINUTE;
        if (i % 10 == 0)
            look(fixture);
    }
    counted = stored(fixture);
    assert_true(counted.minutes >= HEAT_DAY_MINUTES - 10);
    assert_true(counted.minutes <= HEAT_DAY_MINUTES + 20);
    assert_true(counted.tens <= (HEAT_WEEK_MINUTES - HEAT_DAY_MINUTES) / 10 + 3);
    assert_true(counted.tens >= (HEAT_WEEK_MINUTES - HEAT_DAY_MINUTES) / 10 - 3);
}

static void nothing_is_written_of_idle_containers(void **state)
{
    struct fixture *fixture = *state;
    struct engine_statistics before, after;
    struct error err;

    container_make(fixture, 1000);
    look(fixture);
    assert_ok(engine_statistics(fixture->engine, &before, &err), &err);
    for (int i = 0; i < 50; i++) {
        fixture->now_ms += MINUTE;
        look(fixture);
    }
    assert_ok(engine_statistics(fixture->engine, &after, &err), &err);
    assert_int_equal(after.writes, before.writes);
}

static void a_dropped_container_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *numbers;
    struct error err;
    size_t count;

    container_make(fixture, 1000);
    ask(fixture, "a", 1, 1, 0);
    fixture->now_ms += MINUTE;
    look(fixture);
    assert_ok(heat_store_containers(fixture->catalogue, fixture->arena, &numbers, &count, &err),
              &err);
    assert_int_equal(count, 1);
    assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                       SLICE_NONE, &err),
              &err);
    fixture->now_ms += 11 * MINUTE;
    look(fixture);
    assert_ok(heat_store_containers(fixture->catalogue, fixture->arena, &numbers, &count, &err),
              &err);
    assert_int_equal(count, 0);
}

static void a_split_is_marked_and_its_parent_s_heat_stays(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct heat_series series;
    struct error err;
    uint32_t parent;

    container_make(fixture, 1000);
    ask(fixture, "a", 30, 3, 0);
    container = opened(fixture);
    parent = partition_map_spans(container_map(container), &(size_t){0})->id;
    assert_ok(migrator_split(fixture->migrator, container, parent, 2, NULL, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    restart(fixture);
    series = series_of(fixture, 60);
    assert_int_equal(cru_of(&series), 3000);
    assert_int_equal(series.event_count, 1);
    assert_int_equal(series.events[0].kind, MIGRATION_SPLIT);
    assert_int_equal(series.events[0].sources[0], parent);
    assert_int_equal(series.events[0].target_count, 2);
    assert_int_equal(series.place_count, 3);
    assert_int_equal(series.places[0].partition, parent);
    assert_true(series.places[0].until > 0);
    assert_true(series.places[1].until == 0);
}

/* --- The report ------------------------------------------------------------------------------ */

static size_t reports(struct fixture *fixture, struct heat_report **ret_reports)
{
    return heat_reports(fixture->heat, SLICE_NONE, 0, fixture->arena, ret_reports);
}

/* Ten seconds in which one key asks for this much. */
static void ten_seconds(struct fixture *fixture, const char *pk, double ru_per_second)
{
    ask(fixture, pk, ru_per_second * 10, 10, 0);
    fixture->now_ms += 10000;
    look(fixture);
}

static void a_hot_key_is_named_within_a_minute(void **state)
{
    struct fixture *fixture = *state;
    struct heat_report *report;
    size_t counts[HEAT_TROUBLES];
    int looks = 0;

    container_make(fixture, 1000);
    look(fixture);
    while (reports(fixture, &report) == 0 && looks++ < 10)
        ten_seconds(fixture, "hot", 800);
    assert_true(looks <= 6);
    assert_int_equal(reports(fixture, &report), 1);
    assert_int_equal(report->trouble, HEAT_HOT);
    assert_slice_equal(report->database, SLICE("shop"));
    assert_slice_equal(report->id, SLICE("c"));
    assert_true(report->used > 700 && report->used < 900);
    assert_true(report->rate == 1000);
    assert_int_equal(report->advice, HEAT_THROUGHPUT); /* the only partition, with all there is */
    heat_count(fixture->heat, counts);
    assert_int_equal(counts[HEAT_HOT], 1);
    assert_int_equal(heat_reports(fixture->heat, SLICE("other"), 0, fixture->arena, &report), 0);
}

static void a_report_ends_when_the_key_has_been_cool(void **state)
{
    struct fixture *fixture = *state;
    struct heat_report *report;

    container_make(fixture, 1000);
    for (int i = 0; i < 6; i++)
        ten_seconds(fixture, "hot", 800);
    assert_int_equal(reports(fixture, &report), 1);
    for (int i = 0; i < 6; i++)
        ten_seconds(fixture, "hot", 10);
    assert_int_equal(reports(fixture, &report), 1); /* it might come back */
    for (int i = 0; i < 14; i++)
        ten_seconds(fixture, "hot", 10);
    assert_int_equal(reports(fixture, &report), 0);
}

static void many_warm_keys_are_no_hot_key(void **state)
{
    struct fixture *fixture = *state;
    struct heat_report *report;

    container_make(fixture, 1000);
    for (int look_no = 0; look_no < 12; look_no++) {
        for (int i = 0; i < 100; i++) {
            char pk[16];

            snprintf(pk, sizeof pk, "k%d", i);
            ask(fixture, pk, 100, 1, 1);
        }
        fixture->now_ms += 10000;
        look(fixture);
    }
    assert_int_equal(reports(fixture, &report), 0);
}

/* A key of the same partition. */
static const char *neighbour_of(struct fixture *fixture, const char *pk)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);

    for (int i = 0; i < 1000; i++) {
        const char *other = arena_text(fixture->arena, arena_printf(fixture->arena, "n%d", i));

        if (span_of(fixture, container, other) == span_of(fixture, container, pk))
            return other;
    }
    return NULL;
}

static void a_key_that_has_all_a_partition_may_give_is_told_to_spread(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct partition_key key;
    struct heat_report *report;
    const char *neighbour;
    struct error err;

    fixture->catalogue_limits.partition_ru_max = 500;
    stop(fixture);
    start(fixture);
    container_make(fixture, 2000);
    neighbour = neighbour_of(fixture, "hot");
    for (int i = 0; i < 3; i++) {
        ask(fixture, neighbour, 400, 10, 0);
        ten_seconds(fixture, "hot", 450);
    }
    assert_int_equal(reports(fixture, &report), 1);
    assert_int_equal(report->advice, HEAT_ISOLATE);
    assert_false(report->alone);
    container = opened(fixture);
    key = key_of(fixture, "hot");
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    for (int i = 0; i < 3; i++)
        ten_seconds(fixture, "hot", 490);
    assert_int_equal(reports(fixture, &report), 1);
    assert_true(report->alone);
    assert_int_equal(report->advice, HEAT_SPREAD);
}

static void a_key_whose_neighbours_spend_nothing_is_not_told_to_be_isolated(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct catalogue_offer_change less = {.request = {.given = true, .ru = 1000}};
    struct heat_report *report;
    struct offer offer;
    const char *neighbour;
    struct error err;

    fixture->catalogue_limits.partition_ru_max = 500;
    stop(fixture);
    start(fixture);
    container_make(fixture, 2000);
    neighbour = neighbour_of(fixture, "hot");
    for (int i = 0; i < 3; i++) {
        ask(fixture, neighbour, 40, 10, 0); /* one in a hundred */
        ten_seconds(fixture, "hot", 490);
    }
    assert_int_equal(reports(fixture, &report), 1);
    assert_int_equal(report->advice, HEAT_SPREAD);
    assert_contains(heat_advice_text(report->advice), "orrery advise");

    /* One that could give more is short of throughput alone. */
    container = opened(fixture);
    assert_ok(catalogue_offer_replace(fixture->catalogue, SLICE("acme"),
                                      slice_of_text(container_offer(container)->rid), &less, &offer,
                                      &err),
              &err);
    container_unref(TAKE(container));
    meters_fill(fixture);
    fixture->now_ms += 4 * MINUTE - fixture->now_ms % MINUTE;
    look(fixture);
    for (int i = 0; i < 3; i++)
        ten_seconds(fixture, "hot", 240);
    assert_int_equal(reports(fixture, &report), 1);
    assert_false(report->alone);
    assert_int_equal(report->advice, HEAT_THROUGHPUT);
}

static void a_large_key_is_reported_until_it_is_not(void **state)
{
    struct fixture *fixture = *state;
    struct heat_report *report;

    fixture->catalogue_limits.logical_partition_bytes_max = 20000;
    stop(fixture);
    start(fixture);
    container_make(fixture, 1000);
    for (int i = 0; i < 5; i++)
        item_put(fixture, "big", i, 3000);
    item_put(fixture, "small", 1, 10);
    look(fixture);
    assert_int_equal(reports(fixture, &report), 0);
    item_put(fixture, "big", 5, 3000);
    ask(fixture, "big", 10, 1, 0); /* it was written to */
    fixture->now_ms += 10000;
    look(fixture);
    assert_int_equal(reports(fixture, &report), 1);
    assert_int_equal(report->trouble, HEAT_LARGE);
    assert_true(report->bytes > 16000);
    assert_int_equal(report->bytes_max, 20000);
    fixture->now_ms += 30 * MINUTE; /* nobody writes: it stays as large */
    look(fixture);
    assert_int_equal(reports(fixture, &report), 1);
    item_put(fixture, "big", 5, 10);
    ask(fixture, "big", 10, 1, 0);
    fixture->now_ms += 10000;
    look(fixture);
    assert_int_equal(reports(fixture, &report), 0);
}

/* --- Decisions ------------------------------------------------------------------------------- */

static void a_span_that_stays_hot_is_split_where_its_heat_is_halved(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *spans;
    double below = 0;
    size_t count;

    container_make(fixture, 8000);
    keys_put(fixture, 40);
    look(fixture);
    for (int i = 0; i < 4; i++)
        hot_minute(fixture, 8000, 40);
    assert_false(is_moving(fixture));
    hot_minute(fixture, 8000, 40);
    assert_true(is_moving(fixture));
    settle(fixture);
    container = opened(fixture);
    spans = partition_map_spans(container_map(container), &count);
    assert_int_equal(count, 2);
    for (int i = 0; i < 40; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        below += span_of(fixture, container, pk) == &spans[0];
    }
    assert_true(below >= 18 && below <= 22);
    assert_true(spans[0].share > 0.4 && spans[0].share < 0.6);
    container_unref(TAKE(container));

    /* each half has half the throughput: too little to be split again */
    for (int i = 0; i < 12; i++)
        hot_minute(fixture, 7000, 40);
    assert_false(is_moving(fixture));
}

static void a_span_that_one_key_makes_hot_is_not_split(void **state)
{
    struct fixture *fixture = *state;
    struct heat_report *report;

    container_make(fixture, 8000);
    keys_put(fixture, 40);
    look(fixture);
    for (int i = 0; i < 12; i++)
        hot_minute(fixture, 8000, 1);
    assert_false(is_moving(fixture));
    assert_int_equal(reports(fixture, &report), 1); /* but it is reported */
}

static void a_short_peak_splits_nothing(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, 8000);
    keys_put(fixture, 40);
    look(fixture);
    for (int i = 0; i < 20; i++)
        if (i % 5 == 4)
            fixture->now_ms += MINUTE; /* nobody asks */
        else
            hot_minute(fixture, 8000, 40);
    assert_int_equal(span_count(fixture), 1);
}

/* As the migrator does by itself. */
static void cut_for_throughput(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    CLEANUP(container_unref) struct container *begun = NULL;
    const struct partition_span *span = partition_map_spans(container_map(container), &(size_t){0});
    struct slice bound;
    struct error err;
    size_t count;

    split_points_even(container, span, 2, fixture->arena, &bound, &count);
    assert_int_equal(count, 1);
    assert_ok(catalogue_migration_begin(fixture->catalogue, container,
                                        &(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                    .sources = &span->id,
                                                                    .source_count = 1,
                                                                    .target_count = 2,
                                                                    .bounds = &bound},
                                        &begun, &err),
              &err);
    container_unref(TAKE(begun));
    container_unref(TAKE(container));
    settle(fixture);
}

static void neighbours_calm_for_a_day_are_merged(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, 1000);
    keys_put(fixture, 40);
    cut_for_throughput(fixture);
    fixture->now_ms += MINUTE;
    for (int64_t i = 0; i < HEAT_DAY_MINUTES; i += 10) {
        look(fixture);
        fixture->now_ms += 10 * MINUTE;
    }
    assert_false(is_moving(fixture));
    look(fixture);
    assert_true(is_moving(fixture));
    settle(fixture);
    assert_int_equal(span_count(fixture), 1);
}

static void activity_in_between_begins_the_day_anew(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, 1000);
    keys_put(fixture, 40);
    cut_for_throughput(fixture);
    for (int i = 0; i < 140; i++) {
        look(fixture);
        fixture->now_ms += 10 * MINUTE;
    }
    hot_minute(fixture, 1000, 40);
    for (int i = 0; i < 100; i++) {
        look(fixture);
        fixture->now_ms += 10 * MINUTE;
    }
    assert_false(is_moving(fixture));
    assert_int_equal(span_count(fixture), 2);
}

/* Four partitions of 500 RU/s; one key wants far more than its neighbours leave it. */
static void isolation_gives_a_key_what_a_partition_may_give(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *span;
    struct partition_key key;
    struct error err;
    double others = 0;
    size_t count;

    fixture->catalogue_limits.partition_ru_max = 500;
    stop(fixture);
    start(fixture);
    container_make(fixture, 2000);
    keys_put(fixture, 40);
    for (int i = 0; i < 40; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        ask(fixture, pk, 60, 6, 0); /* 1 RU/s each */
    }
    ask(fixture, "hot", 450 * 60, 100, 300);
    fixture->now_ms += MINUTE;
    look(fixture);
    container = opened(fixture);
    key = key_of(fixture, "hot");
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    container = opened(fixture);
    span = span_of(fixture, container, "hot");
    assert_true(span->share * 2000 >= 499.9);
    partition_map_spans(container_map(container), &count);
    assert_true(count >= 5);
    for (int i = 0; i < 40; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        others = span_of(fixture, container, pk)->share * 2000;
        assert_true(others >= 1); /* each has at least what it spent */
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_minute_is_written_down_with_its_keys_and_times),
        TEST(the_present_minute_is_shown_too_and_counted_once),
        TEST(what_was_counted_survives_a_restart),
        TEST(a_failed_write_is_made_up_for),
        TEST(minutes_older_than_a_day_become_tens),
        TEST(a_week_is_kept_and_no_more),
        TEST(nothing_is_written_of_idle_containers),
        TEST(a_dropped_container_is_forgotten),
        TEST(a_split_is_marked_and_its_parent_s_heat_stays),
        TEST(a_hot_key_is_named_within_a_minute),
        TEST(a_report_ends_when_the_key_has_been_cool),
        TEST(many_warm_keys_are_no_hot_key),
        TEST(a_key_that_has_all_a_partition_may_give_is_told_to_spread),
        TEST(a_key_whose_neighbours_spend_nothing_is_not_told_to_be_isolated),
        TEST(a_large_key_is_reported_until_it_is_not),
        TEST(a_span_that_stays_hot_is_split_where_its_heat_is_halved),
        TEST(a_span_that_one_key_makes_hot_is_not_split),
        TEST(a_short_peak_splits_nothing),
        TEST(neighbours_calm_for_a_day_are_merged),
        TEST(activity_in_between_begins_the_day_anew),
        TEST(isolation_gives_a_key_what_a_partition_may_give),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
