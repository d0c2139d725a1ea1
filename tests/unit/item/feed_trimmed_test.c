#include "item/feed_trimmed.h"

#include "item/feed.h"
#include "support/check.h"

static struct feed_trimmed of_one(uint64_t lsn)
{
    return (struct feed_trimmed){.ranges = {{SLICE(""), lsn}}, .count = 1};
}

static struct feed_trimmed read_back(const struct feed_trimmed *trimmed, struct arena *arena)
{
    struct feed_trimmed again;
    struct error err;

    assert_ok(feed_trimmed_decode(feed_trimmed_encode(trimmed, arena), &again, &err), &err);
    return again;
}

static void a_partition_nobody_merged_has_the_mark_it_always_had(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct feed_trimmed trimmed = {.count = 0};

    assert_int_equal(feed_trimmed_encode(&trimmed, arena).len, 0);
    feed_trimmed_note(&trimmed, SLICE("k"), 7);
    feed_trimmed_note(&trimmed, SLICE("a"), 5);
    assert_int_equal(feed_trimmed_encode(&trimmed, arena).len, FEED_MARK_LEN);
    trimmed = read_back(&trimmed, arena);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE_NONE, SLICE_NONE), 7);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("x"), SLICE("y")), 7);
}

static void a_merge_keeps_a_mark_for_each_range(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct feed_trimmed trimmed = {.count = 0}, high = of_one(90), none = {.count = 0};

    feed_trimmed_join(&trimmed, &high, SLICE("c"), SLICE("h"));
    feed_trimmed_join(&trimmed, &none, SLICE("h"), SLICE("m"));
    trimmed = read_back(&trimmed, arena);
    assert_int_equal(trimmed.count, 2);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("c"), SLICE("h")), 90);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("h"), SLICE("m")), 0);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("g"), SLICE("i")), 90);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE_NONE, SLICE_NONE), 90);
    feed_trimmed_note(&trimmed, SLICE("k"), 12);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("h"), SLICE_NONE), 12);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE_NONE, SLICE("h")), 90);
}

static void a_split_takes_along_what_lies_in_it(void **state UNUSED)
{
    const struct feed_trimmed whole = {.ranges = {{SLICE(""), 1}, {SLICE("d"), 0}, {SLICE("g"), 3}},
                                       .count = 3};
    struct feed_trimmed left = {.count = 0}, right = {.count = 0};

    feed_trimmed_join(&left, &whole, SLICE("b"), SLICE("e"));
    assert_int_equal(left.count, 2);
    assert_int_equal(feed_trimmed_within(&left, SLICE("b"), SLICE("d")), 1);
    assert_int_equal(feed_trimmed_within(&left, SLICE("d"), SLICE_NONE), 0);
    feed_trimmed_join(&right, &whole, SLICE("g"), SLICE("m"));
    assert_int_equal(right.count, 1);
    assert_int_equal(feed_trimmed_within(&right, SLICE_NONE, SLICE_NONE), 3);
}

static void more_ranges_than_there_is_room_for_become_one(void **state UNUSED)
{
    struct feed_trimmed trimmed = {.count = 0};
    uint8_t keys[2 * FEED_TRIMMED_RANGES_MAX];

    for (size_t i = 0; i < sizeof keys; i++) {
        struct feed_trimmed one = of_one(i + 1);

        keys[i] = (uint8_t)i;
        feed_trimmed_join(&trimmed, &one, slice_of(&keys[i], 1), SLICE("\xFF"));
    }
    assert_int_equal(trimmed.count, FEED_TRIMMED_RANGES_MAX);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE_NONE, slice_of(&keys[1], 1)), 1);
    assert_int_equal(feed_trimmed_within(&trimmed, SLICE("\xF0"), SLICE_NONE), sizeof keys);
}

static void what_is_damaged_is_told(void **state UNUSED)
{
    static const struct slice values[] = {
        SLICE(""),
        SLICE("\x02"),
        SLICE("\x03\0\0\0\0\0\0\0\0"),
        SLICE("\x02\0\x05"),
        SLICE("\x02\0\1x\0\0\0\0\0\0\0\1"), /* the first has a key */
        SLICE("\x02\0\0\0\0\0\0\0\0\0\1\0\1b\0\0\0\0\0\0\0\1\0\1a\0\0\0\0\0\0\0\1"), /* order */
    };
    struct feed_trimmed trimmed;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        assert_fails(feed_trimmed_decode(values[i], &trimmed, &err), &err, ERROR_STORE_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_nobody_merged_has_the_mark_it_always_had),
        cmocka_unit_test(a_merge_keeps_a_mark_for_each_range),
        cmocka_unit_test(a_split_takes_along_what_lies_in_it),
        cmocka_unit_test(more_ranges_than_there_is_room_for_become_one),
        cmocka_unit_test(what_is_damaged_is_told),
    };

    return cmocka_run_group_tests_name("item/feed_trimmed", tests, NULL, NULL);
}
