#include "front/table/edm.h"

#include "query/function/date.h"
#include "support/check.h"
#include "support/documents.h"

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

static struct edm_value read(struct arena *arena, const char *json, enum edm_type type)
{
    struct document_value value = value_of(arena, json);
    struct edm_value read;
    struct error err;

    assert_ok(edm_value_read(&value, type, arena, &read, &err), &err);
    return read;
}

static void refused(struct arena *arena, const char *json, enum edm_type type, enum error_code code)
{
    struct document_value value = value_of(arena, json);
    struct edm_value read;
    struct error err;

    assert_fails(edm_value_read(&value, type, arena, &read, &err), &err, code);
}

static const char *shown(struct arena *arena, const struct edm_value *value,
                         enum edm_type *ret_type)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    *ret_type = edm_value_append(&value->value, value->below_ms, false, &out);
    return arena_text(arena, buf_slice(&out));
}

static void every_type_is_written_as_it_was_read(void **state)
{
    static const struct {
        const char *json;
        enum edm_type type, told;
        enum document_type stored;
        const char *shown; /* NULL: as it was */
    } cases[] = {
        {"\"text\"", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_STRING, NULL},
        {"\"5\"", EDM_STRING, EDM_UNKNOWN, DOCUMENT_STRING, NULL},
        {"true", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_BOOL, NULL},
        {"\"false\"", EDM_BOOLEAN, EDM_UNKNOWN, DOCUMENT_BOOL, "false"},
        {"-2147483648", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_INT32, NULL},
        {"7", EDM_INT32, EDM_UNKNOWN, DOCUMENT_INT32, NULL},
        {"\"7\"", EDM_INT32, EDM_UNKNOWN, DOCUMENT_INT32, "7"},
        {"\"9223372036854775807\"", EDM_INT64, EDM_INT64, DOCUMENT_INT64, NULL},
        {"5", EDM_INT64, EDM_INT64, DOCUMENT_INT64, "\"5\""},
        {"2", EDM_DOUBLE, EDM_UNKNOWN, DOCUMENT_DOUBLE, "2.0"},
        {"2.5", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_DOUBLE, NULL},
        {"1e+300", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_DOUBLE, NULL},
        {"5000000000", EDM_UNKNOWN, EDM_UNKNOWN, DOCUMENT_DOUBLE, "5000000000.0"},
        {"\"NaN\"", EDM_DOUBLE, EDM_DOUBLE, DOCUMENT_DOUBLE, NULL},
        {"\"-Infinity\"", EDM_DOUBLE, EDM_DOUBLE, DOCUMENT_DOUBLE, NULL},
        {"\"2024-02-29T23:59:59.1234567Z\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE, NULL},
        {"\"2024-02-29T23:59:59.12Z\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE, NULL},
        {"\"1601-01-01T00:00:00Z\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE, NULL},
        {"\"1969-12-31T23:59:59.9999999Z\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE, NULL},
        {"\"2024-01-01T01:30:00+01:30\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE,
         "\"2024-01-01T00:00:00Z\""},
        {"\"2024-01-01T01:30Z\"", EDM_DATETIME, EDM_DATETIME, DOCUMENT_DATE,
         "\"2024-01-01T01:30:00Z\""},
        {"\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\"", EDM_GUID, EDM_GUID, DOCUMENT_BINARY, NULL},
        {"\"AAH+/w==\"", EDM_BINARY, EDM_BINARY, DOCUMENT_BINARY, NULL},
        {"\"\"", EDM_BINARY, EDM_BINARY, DOCUMENT_BINARY, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct edm_value value = read(*state, cases[i].json, cases[i].type);
        enum edm_type told;

        assert_int_equal(value.value.type, cases[i].stored);
        assert_string_equal(shown(*state, &value, &told),
                            cases[i].shown ? cases[i].shown : cases[i].json);
        assert_int_equal(told, cases[i].told);
    }
}

static void null_is_no_value(void **state)
{
    assert_int_equal(read(*state, "null", EDM_UNKNOWN).value.type, DOCUMENT_UNDEFINED);
}

static void what_is_not_of_its_type_is_refused(void **state)
{
    for (enum edm_type type = EDM_STRING; type <= EDM_BINARY; type++)
        refused(*state, "null", type, ERROR_TABLE_VALUE);
    refused(*state, "{}", EDM_UNKNOWN, ERROR_TABLE_VALUE);
    refused(*state, "[1]", EDM_STRING, ERROR_TABLE_VALUE);
    refused(*state, "5", EDM_STRING, ERROR_TABLE_VALUE);
    refused(*state, "2147483648", EDM_INT32, ERROR_TABLE_VALUE);
    refused(*state, "1.5", EDM_INT32, ERROR_TABLE_VALUE);
    refused(*state, "\"\"", EDM_INT64, ERROR_TABLE_VALUE);
    refused(*state, "\"9223372036854775808\"", EDM_INT64, ERROR_TABLE_VALUE);
    refused(*state, "\"5 \"", EDM_INT64, ERROR_TABLE_VALUE);
    refused(*state, "\"nan\"", EDM_DOUBLE, ERROR_TABLE_VALUE);
    refused(*state, "1", EDM_BOOLEAN, ERROR_TABLE_VALUE);
    refused(*state, "\"2024-02-30T00:00:00Z\"", EDM_DATETIME, ERROR_TABLE_VALUE);
    refused(*state, "\"2024-01-01T00:00:00.12345678Z\"", EDM_DATETIME, ERROR_TABLE_VALUE);
    refused(*state, "\"2024-01-01 00:00:00\"", EDM_DATETIME, ERROR_TABLE_VALUE);
    refused(*state, "\"2024-01-01T00:00:00+99:00\"", EDM_DATETIME, ERROR_TABLE_VALUE);
    refused(*state, "\"1600-12-31T23:59:59.9999999Z\"", EDM_DATETIME, ERROR_TABLE_OUT_OF_RANGE);
    refused(*state, "\"6ba7b810-9dad-11d1-80b4-00c04fd430cg\"", EDM_GUID, ERROR_TABLE_VALUE);
    refused(*state, "\"abc\"", EDM_BINARY, ERROR_TABLE_VALUE);
    refused(*state, "\" AAA\"", EDM_BINARY, ERROR_TABLE_VALUE);
}

static void every_tick_of_a_millisecond_is_kept(void **state UNUSED)
{
    static const int64_t moments[] = {0, 1, 9999, 10000, -1, -9999, -10000, -10001};

    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        struct edm_value date = edm_date(moments[i]);

        assert_in_range(date.below_ms, 0, 9999);
        assert_int_equal(edm_ticks_of_ms(date.value.int64) + date.below_ms, moments[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_type_is_written_as_it_was_read, setup, teardown),
        cmocka_unit_test_setup_teardown(null_is_no_value, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_of_its_type_is_refused, setup, teardown),
        cmocka_unit_test(every_tick_of_a_millisecond_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
