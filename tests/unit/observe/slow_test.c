#include "observe/slow.h"

#include "support/check.h"

static void add(struct slow *slow, const char *account, uint64_t ms)
{
    struct observed_request request = {.front = "rest",
                                       .account = slice_of_text(account),
                                       .status = 200,
                                       .time_us = ms * 1000,
                                       .ended_ms = 1700000000000};

    slow_add(slow, &request);
}

static size_t shown(struct slow *slow, const char *account, size_t max, const char *first)
{
    CLEANUP(buf_done) struct buf out;
    size_t count = 0;

    buf_init(&out, BUF_DEFAULT_MAX);
    slow_print(slow, slice_of_text(account), max, &out);
    for (size_t i = 0; i + 8 < out.len; i++)
        count += memcmp(out.data + i, "{\"time\":", 8) == 0;
    if (first) {
        buf_append_byte(&out, '\0');
        assert_non_null(strstr((const char *)out.data, first));
    }
    return count;
}

static void the_last_are_kept_the_newest_first(void **state UNUSED)
{
    CLEANUP(slow_free) struct slow *slow = slow_new(3);

    assert_int_equal(shown(slow, "", 10, NULL), 0);
    for (uint64_t i = 1; i <= 5; i++)
        add(slow, i % 2 ? "a" : "b", i);
    assert_int_equal(slow_count(slow), 5);
    assert_int_equal(shown(slow, "", 10, "\"ms\":5.000"), 3);
    assert_int_equal(shown(slow, "", 1, "\"ms\":5.000"), 1);
    assert_int_equal(shown(slow, "b", 10, "\"ms\":4.000"), 1);
    assert_int_equal(shown(slow, "c", 10, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_are_kept_the_newest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
