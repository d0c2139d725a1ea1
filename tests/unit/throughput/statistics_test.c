#include "throughput/statistics.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/check.h"

enum { RU = 100, MINUTE = 60000 };

static void record(struct statistics *statistics, const char *key, int64_t ru, int64_t now_ms)
{
    struct statistics_event event = {.key = key ? slice_of_text(key) : SLICE_NONE,
                                     .cru = ru * RU,
                                     .bytes_in = 10,
                                     .bytes_out = 20};

    statistics_record(statistics, &event, now_ms);
}

static void record_throttled(struct statistics *statistics, const char *key, int64_t now_ms)
{
    struct statistics_event event = {.key = slice_of_text(key), .throttled = true};

    statistics_record(statistics, &event, now_ms);
}

static void requests_are_counted_in_their_minute(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    struct statistics_totals totals;
    int64_t now_ms = INT64_C(1000) * MINUTE;

    record(statistics, "a", 5, now_ms);
    record(statistics, NULL, 7, now_ms + 59999);
    record_throttled(statistics, "a", now_ms + MINUTE);
    statistics_get_totals(statistics, now_ms + 3 * MINUTE, &totals);
    assert_int_equal(totals.minute, 1003);
    assert_int_equal(totals.minutes[3].cru, 12 * RU);
    assert_int_equal(totals.minutes[3].requests, 2);
    assert_int_equal(totals.minutes[3].bytes_in, 20);
    assert_int_equal(totals.minutes[3].bytes_out, 40);
    assert_int_equal(totals.minutes[2].throttled, 1);
    assert_int_equal(totals.minutes[2].requests, 1);
    assert_int_equal(totals.minutes[0].requests, 0);
    assert_int_equal(totals.hour.requests, 3);
}

static void an_hour_is_remembered_and_no_more(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    struct statistics_totals totals;

    for (int64_t minute = 0; minute < 200; minute++)
        record(statistics, "a", minute, minute * MINUTE);
    statistics_get_totals(statistics, 199 * MINUTE, &totals);
    assert_int_equal(totals.hour.requests, 60);
    for (int ago = 0; ago < 60; ago++)
        assert_int_equal(totals.minutes[ago].cru, (199 - ago) * RU);
    statistics_get_totals(statistics, (199 + 59) * MINUTE, &totals);
    assert_int_equal(totals.hour.requests, 1);
    statistics_get_totals(statistics, (199 + 60) * MINUTE, &totals);
    assert_int_equal(totals.hour.requests, 0);
}

static void time_running_backwards_counts_into_the_current_minute(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    struct statistics_totals totals;

    record(statistics, "a", 1, 100 * MINUTE);
    record(statistics, "a", 1, 10 * MINUTE);
    record(statistics, "a", 1, INT64_MIN);
    statistics_get_totals(statistics, 0, &totals);
    assert_int_equal(totals.minutes[0].requests, 3);
    statistics_get_totals(statistics, INT64_MAX, &totals);
    assert_int_equal(totals.hour.requests, 0);
}

static void the_hottest_come_first_with_their_share(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;

    record(statistics, "cold", 10, 0);
    record(statistics, "hot", 60, 0);
    record(statistics, "warm", 30, 0);
    assert_int_equal(statistics_hottest(statistics, 1, 2, 0, arena, &keys), 2);
    assert_slice_equal(keys[0].key, SLICE("hot"));
    assert_int_equal(keys[0].share_bp, 6000);
    assert_int_equal(keys[0].hour.requests, 1);
    assert_int_equal(keys[0].missed_cru, 0);
    assert_slice_equal(keys[1].key, SLICE("warm"));
    assert_int_equal(keys[1].share_bp, 3000);
}

static void a_key_has_its_own_hour(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;

    for (int64_t minute = 0; minute < 100; minute += 2) {
        record(statistics, "a", minute, minute * MINUTE);
        record(statistics, "b", 1, minute * MINUTE);
    }
    assert_int_equal(statistics_hottest(statistics, 60, 9, 99 * MINUTE, arena, &keys), 2);
    assert_slice_equal(keys[0].key, SLICE("a"));
    assert_int_equal(keys[0].hour.requests, 30);
    for (int ago = 0; ago < 60; ago++)
        assert_int_equal(keys[0].minutes[ago].cru, ago % 2 ? (99 - ago) * RU : 0);
}

static void a_key_that_is_always_refused_is_seen(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(8);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;
    size_t count;
    bool seen = false;

    for (int i = 0; i < 1000; i++) {
        char name[16];

        record_throttled(statistics, "refused", i);
        snprintf(name, sizeof name, "other %d", i);
        record(statistics, name, 1, i);
    }
    count = statistics_hottest(statistics, 1, 8, 1000, arena, &keys);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i].key, SLICE("refused")))
            seen = keys[i].hour.throttled == 1000;
    assert_true(seen);
}

/* Many keys, few positions: whoever takes more than its part must be found, with honest bounds. */
static void heavy_keys_are_found_among_very_many(void **state UNUSED)
{
    enum { STEPS = 200000, HEAVY = 5 };
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(64);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;
    int64_t spent[HEAVY] = {0};
    struct random random;
    size_t count;
    int found = 0;

    random_seed(&random, 3);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        uint64_t dice = random_below(&random, 100);

        if (dice < 30) { /* five keys with 6 % each; the rest over a million */
            spent[dice % HEAVY] += 3;
            snprintf(name, sizeof name, "heavy %d", (int)(dice % HEAVY));
        } else {
            snprintf(name, sizeof name, "light %d", (int)random_below(&random, 1000000));
        }
        record(statistics, name, 3, 1000);
    }
    count = statistics_hottest(statistics, 1, 64, 1000, arena, &keys);
    assert_int_equal(count, 64);
    for (size_t i = 0; i < HEAVY; i++) {
        int64_t real;

        assert_true(slice_starts_with(keys[i].key, SLICE("heavy ")));
        real = spent[keys[i].key.data[6] - '0'] * RU;
        assert_true(keys[i].recent_cru <= real);
        assert_true(keys[i].recent_cru + keys[i].missed_cru >= real);
        assert_in_range(keys[i].share_bp, 500, 700);
        found++;
    }
    assert_int_equal(found, HEAVY);
}

static void those_hot_long_ago_give_way_to_those_hot_now(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(4);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;

    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "old %d", i);
        record(statistics, name, 1000000, 0);
    }
    for (int i = 0; i < 100; i++)
        record(statistics, "new", 100, 300 * MINUTE);
    assert_int_equal(statistics_hottest(statistics, 60, 4, 300 * MINUTE, arena, &keys), 4);
    assert_slice_equal(keys[0].key, SLICE("new"));
    assert_int_equal(keys[0].hour.requests, 100);
    assert_int_equal(keys[0].share_bp, 10000);
}

static void extreme_numbers_saturate(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(1);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_event event = {.key = SLICE("a"), .cru = INT64_MAX, .throttled = true};
    struct statistics_totals totals;
    struct statistics_key *keys;
    char *long_key = memory_alloc_zero(10000);

    for (int i = 0; i < 3; i++)
        statistics_record(statistics, &event, i * MINUTE);
    event.key = slice_of(long_key, 10000);
    statistics_record(statistics, &event, 3 * MINUTE);
    statistics_get_totals(statistics, 3 * MINUTE, &totals);
    assert_true(totals.hour.cru == INT64_MAX);
    assert_int_equal(statistics_hottest(statistics, 99, 9, 3 * MINUTE, arena, &keys), 1);
    assert_int_equal(keys[0].key.len, STATISTICS_KEY_LEN_MAX);
    assert_int_equal(keys[0].share_bp, 10000);
    memory_free(long_key);
}

enum { THREADS = 4, EVENTS = 10000 };

static void record_many(void *context)
{
    struct statistics *statistics = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key *keys;

    for (int i = 0; i < EVENTS; i++) {
        char name[16];

        snprintf(name, sizeof name, "%d", i % 50);
        record(statistics, name, 1, i * 10);
        if (i % 1000 == 0)
            statistics_hottest(statistics, 5, 10, i * 10, arena, &keys);
    }
}

static void threads_lose_nothing(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(16);
    struct thread threads[THREADS];
    struct statistics_totals totals;

    for (int i = 0; i < THREADS; i++)
        thread_start(&threads[i], "record", record_many, statistics);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    statistics_get_totals(statistics, EVENTS * 10, &totals);
    assert_int_equal(totals.hour.requests, THREADS * EVENTS);
    assert_int_equal(totals.hour.cru, THREADS * EVENTS * RU);
}

static void times_are_kept_by_class_for_the_last_minutes(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    struct statistics_event event = {.key = SLICE("a"), .cru = RU};
    struct statistics_numbers numbers;
    struct statistics_times times;

    for (int i = 0; i < 1000; i++) {
        event.time_us = i < 980 ? 100 : 50000;
        statistics_record(statistics, &event, 100 * MINUTE);
    }
    record_throttled(statistics, "a", 100 * MINUTE);
    assert_true(statistics_minute(statistics, 100, 101 * MINUTE, &numbers, &times));
    assert_int_equal(numbers.time_us, 980 * 100 + 20 * 50000);
    assert_int_equal(numbers.time_us_max, 50000);
    assert_in_range(statistics_times_quantile(&times, 0.5), 75, 125);
    assert_in_range(statistics_times_quantile(&times, 0.99), 37500, 62500);
    assert_true(statistics_minute(statistics, 100, 110 * MINUTE, &numbers, &times));
    assert_int_equal(numbers.requests, 1001);
    assert_int_equal(statistics_times_quantile(&times, 0.5), 0); /* too long ago */
    assert_false(statistics_minute(statistics, 100, 160 * MINUTE, &numbers, &times));
    assert_false(statistics_minute(statistics, 170, 160 * MINUTE, &numbers, &times));
}

static void every_time_has_a_class(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);

    int64_t minute = 1000;
    unsigned before = 0;

    for (uint64_t us = 0; us < UINT64_MAX / 3; us = us * 3 + 1, minute++) {
        struct statistics_event event = {.time_us = us};
        struct statistics_numbers numbers;
        struct statistics_times times;
        unsigned at = 0, count = 0;

        statistics_record(statistics, &event, minute * MINUTE);
        assert_true(statistics_minute(statistics, minute, minute * MINUTE, &numbers, &times));
        assert_true(numbers.time_us_max == us);
        for (unsigned i = 0; i < STATISTICS_TIMES; i++) {
            count += times.counts[i];
            at = times.counts[i] ? i : at;
        }
        assert_int_equal(count, 1);
        assert_true(at >= before); /* a longer time is in no shorter class */
        before = at;
    }
    assert_int_equal(before, STATISTICS_TIMES - 1);
}

static void the_hottest_between_two_minutes_are_found(void **state UNUSED)
{
    CLEANUP(statistics_free) struct statistics *statistics = statistics_new(0);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct statistics_key_minutes *keys;

    record(statistics, "early", 9, 100 * MINUTE);
    record(statistics, "both", 3, 100 * MINUTE);
    record(statistics, "late", 5, 101 * MINUTE);
    record(statistics, "both", 4, 101 * MINUTE);
    assert_int_equal(
        statistics_hottest_between(statistics, 100, 101, 9, 102 * MINUTE, arena, &keys), 3);
    assert_slice_equal(keys[0].key, SLICE("early"));
    assert_slice_equal(keys[1].key, SLICE("both"));
    assert_int_equal(keys[1].numbers.cru, 7 * RU);
    assert_int_equal(
        statistics_hottest_between(statistics, 101, 101, 1, 102 * MINUTE, arena, &keys), 1);
    assert_slice_equal(keys[0].key, SLICE("late"));
    assert_int_equal(
        statistics_hottest_between(statistics, 102, 105, 9, 105 * MINUTE, arena, &keys), 0);
    assert_int_equal(statistics_since_ms(statistics, 105 * MINUTE), 100 * MINUTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted_in_their_minute),
        cmocka_unit_test(an_hour_is_remembered_and_no_more),
        cmocka_unit_test(time_running_backwards_counts_into_the_current_minute),
        cmocka_unit_test(the_hottest_come_first_with_their_share),
        cmocka_unit_test(a_key_has_its_own_hour),
        cmocka_unit_test(a_key_that_is_always_refused_is_seen),
        cmocka_unit_test(heavy_keys_are_found_among_very_many),
        cmocka_unit_test(those_hot_long_ago_give_way_to_those_hot_now),
        cmocka_unit_test(extreme_numbers_saturate),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(times_are_kept_by_class_for_the_last_minutes),
        cmocka_unit_test(every_time_has_a_class),
        cmocka_unit_test(the_hottest_between_two_minutes_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
