#include "front/rest/item/read_feed.h"

#include "support/check.h"

static const struct partition_range all = {{(const uint8_t *)"", 0}, {(const uint8_t *)"\xFF", 1}};

/* "a-m@7 m-z@0": the parts in words. */
static const char *text_of(const struct rest_read_feed *feed, char ret_text[256])
{
    size_t at = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < feed->count; i++)
        at += (size_t)snprintf(ret_text + at, 256 - at, "%s%.*s-%.*s@%llu", i ? " " : "",
                               SLICE_ARG(feed->parts[i].range.min),
                               SLICE_ARG(feed->parts[i].range.max),
                               (unsigned long long)feed->parts[i].after);
    return ret_text;
}

static void start(struct rest_read_feed *feed)
{
    rest_read_feed_init(feed, (struct partition_range){SLICE("a"), SLICE("z")});
}

static void partitions_are_read_one_after_the_other(void **state UNUSED)
{
    struct rest_read_feed feed;
    char text[256];

    start(&feed);
    assert_true(rest_read_feed_advance(&feed, SLICE("m"), 7));
    assert_string_equal(text_of(&feed, text), "a-m@7 m-z@0");
    assert_true(rest_read_feed_advance(&feed, SLICE("m"), 9));
    assert_string_equal(text_of(&feed, text), "a-m@9 m-z@0");
    rest_read_feed_finish(&feed, SLICE("m"));
    assert_string_equal(text_of(&feed, text), "m-z@0");
    rest_read_feed_finish(&feed, SLICE("zz"));
    assert_int_equal(feed.count, 0);
}

static void a_split_between_pages_loses_and_repeats_nothing(void **state UNUSED)
{
    struct rest_read_feed feed;
    char text[256];

    start(&feed);
    assert_true(rest_read_feed_advance(&feed, SLICE("m"), 7));
    /* a-m has become a-f and f-m. */
    assert_true(rest_read_feed_advance(&feed, SLICE("f"), 8));
    assert_string_equal(text_of(&feed, text), "a-f@8 f-m@7 m-z@0");
    rest_read_feed_finish(&feed, SLICE("f"));
    assert_string_equal(text_of(&feed, text), "f-m@7 m-z@0");
    /* f-m and m-z have become one: each part of it is read for itself. */
    rest_read_feed_finish(&feed, SLICE("z"));
    assert_string_equal(text_of(&feed, text), "m-z@0");
}

static void a_partition_without_items_is_passed_over(void **state UNUSED)
{
    struct rest_read_feed feed;
    char text[256];

    start(&feed);
    rest_read_feed_finish(&feed, SLICE("m"));
    assert_string_equal(text_of(&feed, text), "m-z@0");
}

static void too_many_parts_are_refused(void **state UNUSED)
{
    static const char bounds[] = "yxwvutsrqponmlkjih";
    struct rest_read_feed feed;

    static_assert(sizeof bounds > REST_READ_FEED_PARTS_MAX, "enough of them");
    start(&feed);
    for (size_t i = 0; i + 1 < REST_READ_FEED_PARTS_MAX; i++)
        assert_true(rest_read_feed_advance(&feed, slice_of(&bounds[i], 1), i));
    assert_int_equal(feed.count, REST_READ_FEED_PARTS_MAX);
    assert_false(rest_read_feed_advance(&feed, SLICE("b"), 99));
    assert_int_equal(feed.count, REST_READ_FEED_PARTS_MAX);
}

static void bytes_and_back(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rest_read_feed feed, back;
    char text[256], again[256];
    struct slice bytes;

    start(&feed);
    assert_true(rest_read_feed_advance(&feed, SLICE("m"), 7));
    assert_true(rest_read_feed_advance(&feed, SLICE("f"), UINT64_MAX));
    bytes = rest_read_feed_encode(&feed, arena);
    assert_true(rest_read_feed_decode(bytes, &back));
    assert_string_equal(text_of(&feed, text), text_of(&back, again));
    for (size_t len = 0; len < bytes.len; len++) {
        /* What is cut where a part ends is a feed that ends there. */
        if (rest_read_feed_decode(slice_first(bytes, len), &back))
            assert_true(back.count < feed.count);
    }
    rest_read_feed_init(&feed, all);
    assert_true(rest_read_feed_decode(rest_read_feed_encode(&feed, arena), &back));
    assert_false(rest_read_feed_decode(SLICE("\x02"), &back));
    assert_false(rest_read_feed_decode(SLICE("\x01\x00\x01z\0\0\0\0\0\0\0\0\x00\x01a"), &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_read_one_after_the_other),
        cmocka_unit_test(a_split_between_pages_loses_and_repeats_nothing),
        cmocka_unit_test(a_partition_without_items_is_passed_over),
        cmocka_unit_test(too_many_parts_are_refused),
        cmocka_unit_test(bytes_and_back),
    };
    return cmocka_run_group_tests_name("front/rest/item/read_feed", tests, NULL, NULL);
}
