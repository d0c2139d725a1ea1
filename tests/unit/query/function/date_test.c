#include "query/function/date.h"

#include "base/random.h"
#include "support/check.h"

#include <time.h>

static void texts_that_are_dates_are_read(void **state UNUSED)
{
    static const struct {
        const char *text;
        const char *written; /* NULL: no date */
    } cases[] = {
        {"2020-01-02", "2020-01-02T00:00:00.0000000Z"},
        {"2020-01-02T03:04:05", "2020-01-02T03:04:05.0000000Z"},
        {"2020-01-02 03:04:05Z", "2020-01-02T03:04:05.0000000Z"},
        {"2020-01-02T03:04:05.1", "2020-01-02T03:04:05.1000000Z"},
        {"2020-01-02T03:04:05.1234567Z", "2020-01-02T03:04:05.1234567Z"},
        {"0001-01-01", "0001-01-01T00:00:00.0000000Z"},
        {"9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"},
        {"2000-02-29", "2000-02-29T00:00:00.0000000Z"},
        {"1900-02-29", NULL},
        {"2020-01-02T", NULL},
        {"2020-01-02Z", NULL},
        {"2020-01-02T03:04", NULL},
        {"2020-01-02T03:04:05.", NULL},
        {"2020-01-02T03:04:05.12345678", NULL},
        {"2020-01-02T03:04:05+00:00", NULL},
        {"2020-01-02T24:00:00", NULL},
        {"2020-01-02T23:60:00", NULL},
        {"2020-01-02T23:59:60", NULL},
        {"2020-1-2", NULL},
        {"20200102", NULL},
        {"2020-00-01", NULL},
        {"2020-01-00", NULL},
        {"2020-01-32", NULL},
        {"0000-01-01", NULL},
        {"", NULL},
        {" 2020-01-02", NULL},
        {"2020-01-02 ", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[QUERY_DATE_LEN];
        int64_t ticks;
        bool read = query_date_parse(slice_of_text(cases[i].text), &ticks);

        if (read != (cases[i].written != NULL))
            fail_msg("\"%s\" is%s read", cases[i].text, read ? "" : " not");
        if (!read)
            continue;
        query_date_write(ticks, text);
        assert_slice_equal(slice_of(text, sizeof text), slice_of_text(cases[i].written));
    }
}

/* The library's calendar, over the whole range. */
static void dates_agree_with_the_library(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 7);
    for (int i = 0; i < 20000; i++) {
        int64_t seconds = -62135596800 + (int64_t)random_below(&random, 315537897600);
        int64_t ticks = seconds * QUERY_TICKS_PER_SECOND +
                        (int64_t)random_below(&random, QUERY_TICKS_PER_SECOND);
        struct query_date date = query_date_of_ticks(ticks);
        time_t time = seconds;
        struct tm tm;
        int64_t back;

        gmtime_r(&time, &tm);
        assert_int_equal(date.year, tm.tm_year + 1900);
        assert_int_equal(date.month, tm.tm_mon + 1);
        assert_int_equal(date.day, tm.tm_mday);
        assert_int_equal(date.hour, tm.tm_hour);
        assert_int_equal(date.minute, tm.tm_min);
        assert_int_equal(date.second, tm.tm_sec);
        assert_int_equal(date.weekday, tm.tm_wday);
        assert_true(query_date_to_ticks(&date, &back));
        assert_int_equal(back, ticks);
    }
}

static void parts_have_short_names(void **state UNUSED)
{
    enum query_date_part part;

    assert_true(query_date_part_find(SLICE("MI"), &part));
    assert_int_equal(part, QUERY_DATE_MINUTE);
    assert_true(query_date_part_find(SLICE("Month"), &part));
    assert_int_equal(part, QUERY_DATE_MONTH);
    assert_false(query_date_part_find(SLICE("quarter"), &part));
    assert_false(query_date_part_find(SLICE(""), &part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_are_dates_are_read),
        cmocka_unit_test(dates_agree_with_the_library),
        cmocka_unit_test(parts_have_short_names),
    };
    return cmocka_run_group_tests_name("query/function/date", tests, NULL, NULL);
}
