#include "front/date.h"

#include "base/clock.h"
#include "support/check.h"

static int64_t parsed(const char *text)
{
    int64_t wall_ms = -1;

    if (!front_date_parse(slice_of_text(text), &wall_ms))
        fail_msg("\"%s\" is refused", text);
    return wall_ms;
}

static void a_date_is_read_in_any_case(void **state UNUSED)
{
    assert_int_equal(parsed("Thu, 27 Apr 2017 00:51:12 GMT"), 1493254272000);
    assert_int_equal(parsed("thu, 27 apr 2017 00:51:12 gmt"), 1493254272000);
    assert_int_equal(parsed("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
}

static void leap_years_are_those_of_the_calendar(void **state UNUSED)
{
    assert_int_equal(parsed("Tue, 29 Feb 2000 23:59:59 GMT") + 1000,
                     parsed("Wed, 01 Mar 2000 00:00:00 GMT"));
    assert_int_equal(parsed("Sun, 28 Feb 2100 23:59:59 GMT") + 1000,
                     parsed("Mon, 01 Mar 2100 00:00:00 GMT"));
    assert_int_equal(parsed("Sun, 31 Dec 2023 23:59:59 GMT") + 1000,
                     parsed("Mon, 01 Jan 2024 00:00:00 GMT"));
}

static void what_the_server_writes_is_read_back(void **state UNUSED)
{
    for (int64_t day = 0; day < 200 * 365; day++) {
        int64_t wall_ms = (day * 86400 + day % 86400) * 1000, back;
        char text[CLOCK_HTTP_DATE_LEN];

        clock_http_date(wall_ms, text);
        assert_true(front_date_parse(slice_of(text, sizeof text), &back));
        assert_int_equal(back, wall_ms);
    }
}

static void anything_else_is_refused(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "yesterday",
        "Thu, 27 Apr 2017 00:51:12 UTC",
        "Thu, 27 Apr 2017 00:51:12 GMT ",
        "Thu, 27 Apr 2017 24:51:12 GMT",
        "Thu, 27 Apr 2017 00:60:12 GMT",
        "Thu, 00 Apr 2017 00:51:12 GMT",
        "Thu, 32 Apr 2017 00:51:12 GMT",
        "Thu, 27 Foo 2017 00:51:12 GMT",
        "Thu, +7 Apr 2017 00:51:12 GMT",
        "Thu, 27 Apr 0000 00:51:12 GMT",
        "Thursday, 27-Apr-17 00:51:12 ",
        "2017-04-27T00:51:12.000000000",
    };
    int64_t wall_ms;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (front_date_parse(slice_of_text(wrong[i]), &wall_ms))
            fail_msg("\"%s\" is taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_is_read_in_any_case),
        cmocka_unit_test(leap_years_are_those_of_the_calendar),
        cmocka_unit_test(what_the_server_writes_is_read_back),
        cmocka_unit_test(anything_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
