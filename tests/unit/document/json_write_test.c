#include "document/json.h"

#include "support/check.h"
#include "support/documents.h"

#include <bson/bson.h>
#include <math.h>

static const uint8_t object_id[] = "\x50\x7f\x1f\x77\xbc\xf8\x6c\xd7\x99\x43\x90\x11";

static void assert_printed(const struct document_value *value, const char *expected)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write_value(value, &text);
    assert_slice_equal(buf_slice(&text), slice_of_text(expected));
}

static void types_that_json_lacks_print_as_canonical_extended_json(void **state UNUSED)
{
    static const uint8_t scope[] = {5, 0, 0, 0, 0};
    const struct {
        struct document_value value;
        const char *expected;
    } samples[] = {
        {document_undefined(), "{\"$undefined\":true}"},
        {document_value_of_type(DOCUMENT_MIN_KEY), "{\"$minKey\":1}"},
        {document_value_of_type(DOCUMENT_MAX_KEY), "{\"$maxKey\":1}"},
        {document_date(-1), "{\"$date\":{\"$numberLong\":\"-1\"}}"},
        {document_date(1600789292000), "{\"$date\":{\"$numberLong\":\"1600789292000\"}}"},
        {{.type = DOCUMENT_OBJECT_ID, .id = object_id}, "{\"$oid\":\"507f1f77bcf86cd799439011\"}"},
        {{.type = DOCUMENT_TIMESTAMP, .timestamp = (uint64_t)5 << 32 | 7},
         "{\"$timestamp\":{\"t\":5,\"i\":7}}"},
        {{.type = DOCUMENT_BINARY, .binary = {SLICE("ab"), 0x80}},
         "{\"$binary\":{\"base64\":\"YWI=\",\"subType\":\"80\"}}"},
        {{.type = DOCUMENT_BINARY, .binary = {SLICE(""), 0}},
         "{\"$binary\":{\"base64\":\"\",\"subType\":\"00\"}}"},
        {{.type = DOCUMENT_BINARY, .binary = {SLICE("\xff\xfe\xfd\x01"), 4}},
         "{\"$binary\":{\"base64\":\"//79AQ==\",\"subType\":\"04\"}}"},
        {{.type = DOCUMENT_REGEX, .regex = {SLICE("^a\""), SLICE("im")}},
         "{\"$regularExpression\":{\"pattern\":\"^a\\\"\",\"options\":\"im\"}}"},
        {{.type = DOCUMENT_DB_POINTER, .pointer = {SLICE("db.c"), object_id}},
         "{\"$dbPointer\":{\"$ref\":\"db.c\",\"$id\":{\"$oid\":\"507f1f77bcf86cd799439011\"}}}"},
        {{.type = DOCUMENT_CODE, .text = SLICE("f()")}, "{\"$code\":\"f()\"}"},
        {{.type = DOCUMENT_SYMBOL, .text = SLICE("s")}, "{\"$symbol\":\"s\"}"},
        {{.type = DOCUMENT_CODE_WITH_SCOPE, .scoped = {SLICE("f()"), {scope, sizeof scope}}},
         "{\"$code\":\"f()\",\"$scope\":{}}"},
        {document_double(NAN), "{\"$numberDouble\":\"NaN\"}"},
        {document_double(INFINITY), "{\"$numberDouble\":\"Infinity\"}"},
        {document_double(-INFINITY), "{\"$numberDouble\":\"-Infinity\"}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        assert_printed(&samples[i].value, samples[i].expected);
}

static void decimals_print_as_libbson_prints_them(void **state UNUSED)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.00",
        "1",
        "1.10",
        "-1.5",
        "1E+3",
        "1.0E+3",
        "0.001",
        "1E-6",
        "0.00000012",
        "1.2E-7",
        "Infinity",
        "-Infinity",
        "NaN",
        "9.999999999999999999999999999999999E+6144",
        "1E-6176",
        "1E+6144",
        "1234567890123456789012345678901234",
        "0.1000000000000000055511151231257827",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char expected[BSON_DECIMAL128_STRING], wrapped[80];
        bson_decimal128_t theirs;
        struct document_value value = {.type = DOCUMENT_DECIMAL128};

        assert_true(bson_decimal128_from_string(texts[i], &theirs));
        bson_decimal128_to_string(&theirs, expected);
        value.decimal = (struct document_decimal){theirs.low, theirs.high};
        snprintf(wrapped, sizeof wrapped, "{\"$numberDecimal\":\"%s\"}", expected);
        assert_printed(&value, wrapped);
    }
}

static void whole_doubles_print_without_fraction(void **state UNUSED)
{
    const struct {
        double number;
        const char *expected;
    } samples[] = {
        {1, "1"},
        {-1, "-1"},
        {0, "0"},
        {-0.0, "-0"},
        {1e15, "1000000000000000"},
        {1152921504606846976.0, "1152921504606846976"},
        {18446744073709551616.0, "18446744073709551616"},
        {-18446744073709551616.0, "-18446744073709551616"},
        {1e20, "100000000000000000000"},
        {999999999999999868928.0, "999999999999999868928"},
        {1e21, "1e+21"},
        {1.5, "1.5"},
        {0.1, "0.1"},
        {1e-7, "1e-7"},
        {1.5e-10, "1.5e-10"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct document_value value = document_double(samples[i].number);

        assert_printed(&value, samples[i].expected);
    }
}

static void integers_print_to_the_last_digit(void **state UNUSED)
{
    struct document_value value = document_int64(INT64_MIN);

    assert_printed(&value, "-9223372036854775808");
    value = document_int64(9007199254740993);
    assert_printed(&value, "9007199254740993");
    value = document_int32(INT32_MIN);
    assert_printed(&value, "-2147483648");
    for (int64_t power = 1; power < 1000000000000000000; power *= 10) {
        char expected[32];

        for (int64_t number = power - 1; number <= power + 1; number++) {
            value = document_int64(number);
            snprintf(expected, sizeof expected, "%lld", (long long)number);
            assert_printed(&value, expected);
        }
    }
}

/* Whatever the alignment of what must be escaped, and at the end of the memory there is. */
static void escapes_are_found_at_every_position(void **state UNUSED)
{
    for (size_t len = 1; len < 50; len++) {
        for (size_t at = 0; at < len; at++) {
            CLEANUP(buf_done) struct buf text, expected;
            uint8_t *exact = malloc(len);

            buf_init(&text, 1000);
            buf_init(&expected, 1000);
            memset(exact, 'a', len);
            exact[at] = '"';
            document_json_write_string(slice_of(exact, len), &text);
            buf_printf(&expected, "\"%.*s\\\"%.*s\"", (int)at, (char *)exact, (int)(len - at - 1),
                       (char *)exact + at + 1);
            assert_slice_equal(buf_slice(&text), buf_slice(&expected));
            free(exact);
        }
    }
}

static void a_buffer_that_is_full_says_so(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice document = document_of(
        arena, "{\"a\":[1,2.5,1e20,true,null,\"0123456789abcdef0123\\n\"],\"b\":{\"c\":\"d\"}}");
    CLEANUP(buf_done) struct buf whole;

    buf_init(&whole, BUF_DEFAULT_MAX);
    document_json_write(document, &whole);
    assert_false(buf_overflowed(&whole));
    for (size_t max = 0; max < whole.len; max++) {
        CLEANUP(buf_done) struct buf text;

        buf_init(&text, max);
        document_json_write(document, &text);
        assert_true(buf_overflowed(&text));
        assert_true(text.len <= max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_that_json_lacks_print_as_canonical_extended_json),
        cmocka_unit_test(decimals_print_as_libbson_prints_them),
        cmocka_unit_test(whole_doubles_print_without_fraction),
        cmocka_unit_test(integers_print_to_the_last_digit),
        cmocka_unit_test(escapes_are_found_at_every_position),
        cmocka_unit_test(a_buffer_that_is_full_says_so),
    };
    return cmocka_run_group_tests_name("document/json_write", tests, NULL, NULL);
}
