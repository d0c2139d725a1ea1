#include "heat/record.h"

#include "base/random.h"
#include "support/check.h"

static struct heat_span span_of(uint32_t partition, int64_t cru)
{
    struct heat_span span = {.partition = partition,
                             .numbers = {.cru = cru,
                                         .requests = 10,
                                         .throttled = 1,
                                         .bytes_in = 100,
                                         .bytes_out = 1000,
                                         .time_us = 5000,
                                         .time_us_max = 900}};

    span.times.counts[3] = 9;
    span.times.counts[47] = 1;
    return span;
}

static void put_key(struct heat_record *record, uint32_t partition, struct slice key, int64_t cru)
{
    heat_record_put_key(record,
                        &(struct heat_key){.partition = partition,
                                           .key = key,
                                           .numbers = {.cru = cru, .requests = 1}},
                        HEAT_SUM);
}

static void a_record_is_read_back_as_it_was(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf bytes;
    struct heat_record record, back;
    struct heat_span b = span_of(70000, INT64_MAX), a = span_of(2, 5);
    struct error err;

    buf_init(&bytes, 1 << 20);
    heat_record_init(&record, arena);
    heat_record_init(&back, arena);
    heat_record_put_span(&record, &b, HEAT_SUM);
    heat_record_put_span(&record, &a, HEAT_SUM);
    put_key(&record, 2, SLICE("tenant-1"), 400);
    put_key(&record, 2, SLICE(""), 1);
    heat_record_append(&record, &bytes);
    assert_ok(heat_record_parse(buf_slice(&bytes), &back, &err), &err);
    assert_int_equal(back.span_count, 2);
    assert_memory_equal(&back.spans[0], &a, sizeof a);
    assert_memory_equal(&back.spans[1], &b, sizeof b);
    assert_int_equal(back.key_count, 2);
    assert_slice_equal(back.keys[1].key, SLICE("tenant-1"));
    assert_int_equal(back.keys[1].numbers.cru, 400);
    assert_false(back.keys[1].cut);
}

static void records_of_different_times_add_up(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record record, other;
    struct heat_span span = span_of(2, 5);

    heat_record_init(&record, arena);
    heat_record_init(&other, arena);
    heat_record_put_span(&record, &span, HEAT_SUM);
    span.numbers.time_us_max = 7;
    heat_record_put_span(&other, &span, HEAT_SUM);
    put_key(&other, 2, SLICE("a"), 3);
    heat_record_put_all(&record, &other, HEAT_SUM);
    assert_int_equal(record.spans[0].numbers.cru, 10);
    assert_int_equal(record.spans[0].numbers.time_us, 10000);
    assert_int_equal(record.spans[0].numbers.time_us_max, 900);
    assert_int_equal(record.spans[0].times.counts[3], 18);
    assert_int_equal(record.key_count, 1);
}

static void counters_that_are_read_twice_count_once(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record record;
    struct heat_span early = span_of(2, 5), late = span_of(2, 8);

    late.times.counts[3] = 20;
    heat_record_init(&record, arena);
    heat_record_put_span(&record, &late, HEAT_AGAIN);
    heat_record_put_span(&record, &early, HEAT_AGAIN);
    assert_int_equal(record.spans[0].numbers.cru, 8);
    assert_int_equal(record.spans[0].numbers.requests, 10);
    assert_int_equal(record.spans[0].times.counts[3], 20);
}

static void only_the_hottest_keys_stay(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record record;

    heat_record_init(&record, arena);
    for (int i = 0; i < 100; i++)
        put_key(&record, (uint32_t)(2 + i % 3), arena_printf(arena, "key-%d", i), i);
    heat_record_trim(&record);
    assert_int_equal(record.key_count, HEAT_KEYS_MAX);
    for (size_t i = 0; i < record.key_count; i++)
        assert_true(record.keys[i].numbers.cru >= 100 - HEAT_KEYS_MAX);
}

static void a_long_key_is_kept_cut_and_says_so(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    char text[HEAT_KEY_BYTES_MAX + 1];
    struct heat_record record;

    memset(text, 'k', sizeof text);
    heat_record_init(&record, arena);
    put_key(&record, 2, slice_of(text, sizeof text), 1);
    assert_int_equal(record.keys[0].key.len, HEAT_KEY_BYTES_MAX);
    assert_true(record.keys[0].cut);
}

/* 16 keys of full length and one partition, every number as large as it gets. */
static void a_record_is_as_small_as_it_is_said_to_be(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf bytes;
    struct statistics_numbers most = {INT64_MAX,  UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                      UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct heat_span span = {.partition = UINT32_MAX, .numbers = most};
    char text[HEAT_KEY_BYTES_MAX];
    struct heat_record record;
    size_t without;

    buf_init(&bytes, 1 << 20);
    heat_record_init(&record, arena);
    memset(&span.times, 0xFF, sizeof span.times);
    heat_record_put_span(&record, &span, HEAT_SUM);
    heat_record_append(&record, &bytes);
    without = bytes.len;
    assert_true(without <= 400);
    for (int i = 0; i < 40; i++) {
        memset(text, 'a' + i, sizeof text);
        heat_record_put_key(&record,
                            &(struct heat_key){.partition = UINT32_MAX,
                                               .key = slice_of(text, sizeof text),
                                               .numbers = most},
                            HEAT_SUM);
    }
    heat_record_trim(&record);
    buf_clear(&bytes);
    heat_record_append(&record, &bytes);
    assert_true(bytes.len - without <= 3400);
}

static void damaged_bytes_are_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf bytes;
    struct heat_span span = span_of(300, 12345);
    struct heat_record record;
    struct error err;

    buf_init(&bytes, 1 << 20);
    heat_record_init(&record, arena);
    heat_record_put_span(&record, &span, HEAT_SUM);
    put_key(&record, 2, SLICE("tenant"), 400);
    heat_record_append(&record, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        struct heat_record back;

        heat_record_init(&back, arena);
        assert_fails(heat_record_parse(slice_first(buf_slice(&bytes), len), &back, &err), &err,
                     ERROR_STORE_CORRUPT);
    }
    bytes.data[0] = 9;
    assert_fails(heat_record_parse(buf_slice(&bytes), &record, &err), &err, ERROR_STORE_VERSION);
}

static void random_bytes_never_do_harm(void **state UNUSED)
{
    struct random random;
    uint8_t bytes[64];

    random_seed(&random, 7);
    for (int i = 0; i < 20000; i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct heat_record record;
        struct error err;

        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)random_next(&random);
        bytes[0] = 1;
        bytes[1] &= 3;
        heat_record_init(&record, arena);
        if (!heat_record_parse(slice_of(bytes, sizeof bytes), &record, &err))
            assert_int_equal(err.code, ERROR_STORE_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_back_as_it_was),
        cmocka_unit_test(records_of_different_times_add_up),
        cmocka_unit_test(counters_that_are_read_twice_count_once),
        cmocka_unit_test(only_the_hottest_keys_stay),
        cmocka_unit_test(a_long_key_is_kept_cut_and_says_so),
        cmocka_unit_test(a_record_is_as_small_as_it_is_said_to_be),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(random_bytes_never_do_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
