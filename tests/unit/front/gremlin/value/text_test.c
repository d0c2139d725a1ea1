#include "front/gremlin/value/text.h"

#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "support/check.h"
#include "support/gremlin_values.h"

#include <math.h>

static struct gremlin_value text(struct gremlin_heap *heap, const char *s)
{
    return gremlin_string(heap, slice_of_text(s));
}

static void shows(struct gremlin_heap *heap, struct gremlin_value value, const char *expected)
{
    assert_slice_equal(gremlin_bytes(gremlin_value_text(heap, value)), slice_of_text(expected));
}

static void numbers_show_as_in_java(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    shows(heap, gremlin_double(1), "1.0");
    shows(heap, gremlin_double(-0.0), "-0.0");
    shows(heap, gremlin_double(0.1), "0.1");
    shows(heap, gremlin_double(1234567.5), "1234567.5");
    shows(heap, gremlin_double(12345678), "1.2345678E7");
    shows(heap, gremlin_double(1e10), "1.0E10");
    shows(heap, gremlin_double(0.001), "0.001");
    shows(heap, gremlin_double(0.00012), "1.2E-4");
    shows(heap, gremlin_double(100), "100.0");
    shows(heap, gremlin_float(0.1F), "0.1");
    shows(heap, gremlin_float(3.4028235e38F), "3.4028235E38");
    shows(heap, gremlin_double((double)NAN), "NaN");
    shows(heap, gremlin_double(-(double)INFINITY), "-Infinity");
    shows(heap, gremlin_long(INT64_MIN), "-9223372036854775808");
}

static void elements_and_containers_show(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value a = gremlin_test_vertex(heap, "1", "person");
    struct gremlin_end out = {text(heap, "1")}, in = {text(heap, "2")};
    struct gremlin_value edge =
        gremlin_edge_new(heap, text(heap, "7"), text(heap, "knows"), GREMLIN_NOTHING, &out, &in);
    struct gremlin_slot slot = {.key = text(heap, "name"), .value = text(heap, "marko")};
    struct gremlin_value list = gremlin_list_new(heap, 0), map = gremlin_map_new(heap);

    shows(heap, a, "v[1]");
    shows(heap, edge, "e[7][1-knows->2]");
    shows(heap, gremlin_vertex_property_new(heap, &slot, a), "vp[name->marko]");
    shows(heap, gremlin_property_new(heap, slot.key, gremlin_double(0.5), edge), "p[name->0.5]");
    shows(
        heap,
        gremlin_property_new(heap, slot.key, text(heap, "123456789012345678901"), GREMLIN_NOTHING),
        "p[name->12345678901234567...]");
    gremlin_list_add(list, gremlin_int(1));
    gremlin_list_add(list, GREMLIN_NOTHING);
    shows(heap, list, "[1, null]");
    gremlin_map_put(map, slot.key, list);
    gremlin_map_put(map, gremlin_word(GREMLIN_T_ID), a);
    shows(heap, map, "{name=[1, null], id=v[1]}");
    shows(heap,
          gremlin_value_of_take(gremlin_path_extend(
              heap, gremlin_path_extend(heap, NULL, a, GREMLIN_NOTHING), list, GREMLIN_NOTHING)),
          "path[v[1], [1, null]]");
    shows(heap, gremlin_date(0), "1970-01-01T00:00:00Z");
    shows(heap, text(heap, "itself"), "itself");
}

static void dates_are_read_and_written(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int32_t nanoseconds, offset;
        const char *written; /* NULL: the same */
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0, 0},
        {"2024-02-29T12:30:45.5+02:00", 1709202645, 500000000, 7200,
         "2024-02-29T12:30:45.500+02:00"},
        {"2024-02-29", 1709164800, 0, 0, "2024-02-29T00:00:00Z"},
        {"2018-03-22T00:35:44.741-16:00", 1521736544, 741000000, -57600},
        {"20180322T003544741Z", 0, -1},
        {"20180322T003544Z", 1521678944, 0, 0, "2018-03-22T00:35:44Z"},
        {"2018-03-22T00:35", 1521678900, 0, 0, "2018-03-22T00:35:00Z"},
        {"0000-01-01T00:00:00Z", -62167219200, 0, 0},
        {"-0001-12-31T23:59:59Z", -62167219201, 0, 0},
        {"+12345-01-01T00:00:00Z", 327403382400, 0, 0},
        {"1969-12-31T23:59:59.999999999Z", -1, 999999999, 0},
        {"2023-02-29", 0, -1},
        {"2023-13-01", 0, -1},
        {"2023-01-01T24:00", 0, -1},
        {"2023-01-01T10:00+19:00", 0, -1},
        {"2023-01-01T10:00Zx", 0, -1},
        {"", 0, -1},
        {"yesterday", 0, -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf buf;
        int64_t seconds;
        int32_t nanoseconds, offset;
        bool read =
            gremlin_date_time_parse(slice_of_text(rows[i].text), &seconds, &nanoseconds, &offset);

        if (read != (rows[i].nanoseconds >= 0))
            fail_msg("%s", rows[i].text);
        if (!read)
            continue;
        buf_init(&buf, BUF_DEFAULT_MAX);
        assert_int_equal(seconds, rows[i].seconds);
        assert_int_equal(nanoseconds, rows[i].nanoseconds);
        assert_int_equal(offset, rows[i].offset);
        gremlin_date_time_write(seconds, nanoseconds, offset, &buf);
        assert_slice_equal(buf_slice(&buf),
                           slice_of_text(rows[i].written ? rows[i].written : rows[i].text));
    }
}

static void days_are_counted_both_ways(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 1);
    for (int i = 0; i < 20000; i++) {
        int64_t days = (int64_t)random_below(&random, 2000000000) - 1000000000, year;
        int month, day;

        gremlin_days_split(days, &year, &month, &day);
        assert_in_range(month, 1, 12);
        assert_in_range(day, 1, 31);
        assert_int_equal(gremlin_days_of(year, month, day), days);
    }
}

static void durations_are_read_and_written(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int32_t nanoseconds;
        const char *written;
    } rows[] = {
        {"PT0S", 0, 0},
        {"PT1H2M3.5S", 3723, 500000000},
        {"P1DT1H", 90000, 0, "PT25H"},
        {"-PT1.5S", -2, 500000000, "PT-1.5S"},
        {"PT-0.25S", -1, 750000000},
        {"PT-6H+3M", -21420, 0, "PT-5H-57M"},
        {"PT1M", 60, 0},
        {"P", 0, -1},
        {"PT", 0, -1},
        {"1S", 0, -1},
        {"PT1.5H", 0, -1},
        {"PT99999999999999999999S", 0, -1},
        {"P1Y", 0, -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf buf;
        int64_t seconds;
        int32_t nanoseconds;
        bool read = gremlin_duration_parse(slice_of_text(rows[i].text), &seconds, &nanoseconds);

        if (read != (rows[i].nanoseconds >= 0))
            fail_msg("%s", rows[i].text);
        if (!read)
            continue;
        buf_init(&buf, BUF_DEFAULT_MAX);
        assert_int_equal(seconds, rows[i].seconds);
        assert_int_equal(nanoseconds, rows[i].nanoseconds);
        gremlin_duration_write(seconds, nanoseconds, &buf);
        assert_slice_equal(buf_slice(&buf),
                           slice_of_text(rows[i].written ? rows[i].written : rows[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_show_as_in_java),
        cmocka_unit_test(elements_and_containers_show),
        cmocka_unit_test(dates_are_read_and_written),
        cmocka_unit_test(days_are_counted_both_ways),
        cmocka_unit_test(durations_are_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
