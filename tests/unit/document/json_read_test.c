#include "document/json.h"

#include "document/scan.h"
#include "support/check.h"
#include "support/documents.h"

#include <math.h>

/* In the manner of the well-known suites: y is accepted and printed as shown (NULL: unchanged), n
 * is refused. What other readers may decide either way (i) stands under y or n, as we decide. */
struct sample {
    const char *name;
    struct slice text;
    const char *printed;
};

#define TEXT(literal) SLICE(literal)

static const struct sample accepted[] = {
    {"y_array_empty", TEXT("[]"), NULL},
    {"y_array_blanks", TEXT("[ \t\r\n]"), "[]"},
    {"y_array_nested", TEXT("[[[]],[],{}]"), NULL},
    {"y_array_of_all", TEXT("[null,1,\"1\",{},true,false]"), NULL},
    {"y_array_leading_blank", TEXT(" [1]"), "[1]"},
    {"y_array_trailing_blank", TEXT("[1] "), "[1]"},
    {"y_array_trailing_newline", TEXT("[1]\n"), "[1]"},
    {"y_array_of_empty_string", TEXT("[\"\"]"), NULL},
    {"y_array_eleven", TEXT("[0,1,2,3,4,5,6,7,8,9,10]"), NULL},
    {"y_object_empty", TEXT("{}"), NULL},
    {"y_object_one", TEXT("{\"a\":1}"), NULL},
    {"y_object_two", TEXT("{\"a\":1,\"b\":2}"), NULL},
    {"y_object_blanks", TEXT(" { \"a\" : 1 , \"b\" : [ ] } "), "{\"a\":1,\"b\":[]}"},
    {"y_object_empty_key", TEXT("{\"\":0}"), NULL},
    {"y_object_same_key_nested", TEXT("{\"a\":{\"a\":{\"a\":1}}}"), NULL},
    {"y_object_same_key_siblings", TEXT("[{\"a\":1},{\"a\":2}]"), NULL},
    {"y_object_prefix_keys", TEXT("{\"a\":1,\"aa\":2,\"aaa\":3}"), NULL},
    {"y_object_case_differs", TEXT("{\"a\":1,\"A\":2}"), NULL},
    {"y_object_dollar_oid", TEXT("{\"$oid\":\"507f1f77bcf86cd799439011\"}"), NULL},
    {"y_object_dollar_date", TEXT("{\"$date\":{\"$numberLong\":\"0\"}}"), NULL},
    {"y_object_dotted_key", TEXT("{\"a.b\":1}"), NULL},
    {"y_object_long_key", TEXT("{\"abcdefghijklmnopqrstuvwxyz0123456789\":1}"), NULL},
    {"y_object_key_escaped", TEXT("{\"\\u0061\\n\":1}"), "{\"a\\n\":1}"},
    {"y_object_proto_key", TEXT("{\"__proto__\":1,\"constructor\":2}"), NULL},
    {"y_word_true", TEXT("true"), NULL},
    {"y_word_false", TEXT("false"), NULL},
    {"y_word_null", TEXT("null"), NULL},
    {"y_number_zero", TEXT("0"), NULL},
    {"y_number_minus_zero", TEXT("-0"), NULL},
    {"y_number_minus_zero_real", TEXT("-0.0"), "-0"},
    {"y_number_minus_zero_exponent", TEXT("-0e5"), "-0"},
    {"y_number_zero_exponent", TEXT("0e+1"), "0"},
    {"y_number_zero_huge_exponent", TEXT("0e99999999999"), "0"},
    {"y_number_one", TEXT("1"), NULL},
    {"y_number_minus_one", TEXT("-1"), NULL},
    {"y_number_int32_max", TEXT("2147483647"), NULL},
    {"y_number_int32_min", TEXT("-2147483648"), NULL},
    {"y_number_int32_over", TEXT("2147483648"), NULL},
    {"y_number_int64_max", TEXT("9223372036854775807"), NULL},
    {"y_number_int64_min", TEXT("-9223372036854775808"), NULL},
    {"y_number_int64_over", TEXT("9223372036854775808"), NULL},
    {"y_number_int64_under", TEXT("-9223372036854775809"), "-9223372036854775808"},
    {"y_number_uint64_max", TEXT("18446744073709551615"), "18446744073709551616"},
    {"y_number_past_2_53", TEXT("9007199254740993"), NULL},
    {"y_number_twenty_digits", TEXT("99999999999999999999"), "100000000000000000000"},
    {"y_number_many_digits", TEXT("123456789012345678901234567890"), "1.2345678901234568e+29"},
    {"y_number_1e21", TEXT("1e21"), "1e+21"},
    {"y_number_1e20", TEXT("1E20"), "100000000000000000000"},
    {"y_number_1e400_digits", TEXT("0.0000000000000000000000000000000000000000000000001e50"), "10"},
    {"y_number_tenth", TEXT("0.1"), NULL},
    {"y_number_whole_real", TEXT("1.0"), "1"},
    {"y_number_exponent", TEXT("1e2"), "100"},
    {"y_number_exponent_capital", TEXT("1E2"), "100"},
    {"y_number_exponent_plus", TEXT("1e+2"), "100"},
    {"y_number_exponent_minus", TEXT("1e-2"), "0.01"},
    {"y_number_exponent_zeros", TEXT("1e0002"), "100"},
    {"y_number_fraction_exponent", TEXT("123.456e78"), "1.23456e+80"},
    {"y_number_small", TEXT("1e-7"), NULL},
    {"y_number_largest", TEXT("1.7976931348623157e308"), "1.7976931348623157e+308"},
    {"y_number_least", TEXT("5e-324"), NULL},
    {"y_number_least_normal", TEXT("2.2250738585072014e-308"), NULL},
    {"y_number_hard_to_round", TEXT("2.2250738585072011e-308"), "2.225073858507201e-308"},
    {"y_number_half_way", TEXT("9007199254740993.0"), "9007199254740992"},
    {"y_number_seventeen_digits", TEXT("0.30000000000000004"), NULL},
    {"y_number_pi", TEXT("3.141592653589793"), NULL},
    {"i_number_underflow", TEXT("1e-400"), "0"},
    {"i_number_underflow_minus", TEXT("-1e-400"), "-0"},
    {"i_number_underflow_half", TEXT("2e-324"), "0"},
    {"i_number_underflow_far", TEXT("1e-99999999999999"), "0"},
    {"y_string_empty", TEXT("\"\""), NULL},
    {"y_string_simple", TEXT("\"asd\""), NULL},
    {"y_string_sixteen", TEXT("\"0123456789abcdef\""), NULL},
    {"y_string_seventeen", TEXT("\"0123456789abcdef0\""), NULL},
    {"y_string_escapes", TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
    {"y_string_escape_late", TEXT("\"0123456789abcdef\\n0123456789abcdef\""), NULL},
    {"y_string_unicode_ascii", TEXT("\"\\u0041\""), "\"A\""},
    {"y_string_unicode_control", TEXT("\"\\u0012\""), NULL},
    {"y_string_unicode_quote", TEXT("\"\\u0022\""), "\"\\\"\""},
    {"y_string_unicode_nul", TEXT("\"a\\u0000b\""), NULL},
    {"y_string_unicode_two", TEXT("\"\\u00e9\""), "\"\xC3\xA9\""},
    {"y_string_unicode_capitals", TEXT("\"\\u00E9\""), "\"\xC3\xA9\""},
    {"y_string_unicode_three", TEXT("\"\\u20ac\""), "\"\xE2\x82\xAC\""},
    {"y_string_unicode_pair", TEXT("\"\\ud83d\\ude00\""), "\"\xF0\x9F\x98\x80\""},
    {"y_string_unicode_last", TEXT("\"\\udbff\\udfff\""), "\"\xF4\x8F\xBF\xBF\""},
    {"y_string_noncharacter", TEXT("\"\\uffff\""), "\"\xEF\xBF\xBF\""},
    {"y_string_raw_two", TEXT("\"\xC3\xA9\""), NULL},
    {"y_string_raw_three", TEXT("\"\xE2\x82\xAC\""), NULL},
    {"y_string_raw_four", TEXT("\"\xF0\x9F\x98\x80\""), NULL},
    {"y_string_raw_2028", TEXT("\"\xE2\x80\xA8\""), NULL},
    {"y_string_raw_del", TEXT("\"\x7F\""), NULL},
    {"y_string_raw_d7ff", TEXT("\"\xED\x9F\xBF\""), NULL},
    {"y_string_raw_bom_inside", TEXT("\"\xEF\xBB\xBF\""), NULL},
    {"y_string_raw_across_steps", TEXT("\"0123456789abcd\xE2\x82\xAC\x65\""), NULL},
    {"i_string_lone_high", TEXT("\"\\ud800\""), NULL},
    {"i_string_lone_low", TEXT("\"\\udfff\""), NULL},
    {"i_string_lone_high_then_text", TEXT("\"\\ud800abc\""), NULL},
    {"i_string_two_highs", TEXT("\"\\ud800\\ud800\""), NULL},
    {"i_string_high_high_low", TEXT("\"\\ud800\\ud83d\\ude00\""), "\"\\ud800\xF0\x9F\x98\x80\""},
    {"i_string_reversed_pair", TEXT("\"\\udc00\\ud800\""), NULL},
    {"i_string_high_then_escape", TEXT("\"\\ud800\\n\""), NULL},
};

static const struct sample refused[] = {
    {"n_nothing", TEXT(""), "byte 0"},
    {"n_blank", TEXT(" "), "byte 1"},
    {"n_bom", TEXT("\xEF\xBB\xBF{}"), "byte 0"},
    {"n_word_incomplete", TEXT("tru"), "byte 0"},
    {"n_word_capital", TEXT("True"), "byte 0"},
    {"n_word_longer", TEXT("nulll"), "byte 4"},
    {"n_word_nan", TEXT("NaN"), "byte 0"},
    {"n_word_infinity", TEXT("Infinity"), "byte 0"},
    {"n_word_minus_infinity", TEXT("-Infinity"), "byte 1"},
    {"n_word_undefined", TEXT("undefined"), "byte 0"},
    {"n_two_values", TEXT("1 2"), "byte 2"},
    {"n_two_objects", TEXT("{}{}"), "byte 2"},
    {"n_trailing_comma_after", TEXT("{},"), "byte 2"},
    {"n_trailing_nul", TEXT("{}\0"), "byte 2"},
    {"n_array_open", TEXT("["), "byte 1"},
    {"n_array_unclosed", TEXT("[1"), "byte 2"},
    {"n_array_unclosed_comma", TEXT("[1,"), "byte 3"},
    {"n_array_trailing_comma", TEXT("[1,]"), "byte 3"},
    {"n_array_leading_comma", TEXT("[,1]"), "byte 1"},
    {"n_array_two_commas", TEXT("[1,,2]"), "byte 3"},
    {"n_array_no_comma", TEXT("[1 2]"), "byte 3"},
    {"n_array_colon", TEXT("[1:2]"), "byte 2"},
    {"n_array_closed_as_object", TEXT("[1}"), "byte 2"},
    {"n_array_extra_close", TEXT("[1]]"), "byte 3"},
    {"n_array_comment", TEXT("[1/**/]"), "byte 2"},
    {"n_array_form_feed", TEXT("[\f]"), "byte 1"},
    {"n_object_open", TEXT("{"), "byte 1"},
    {"n_object_key_only", TEXT("{\"a\"}"), "byte 4"},
    {"n_object_no_value", TEXT("{\"a\":}"), "byte 5"},
    {"n_object_unclosed", TEXT("{\"a\":1"), "byte 6"},
    {"n_object_trailing_comma", TEXT("{\"a\":1,}"), "byte 7"},
    {"n_object_two_commas", TEXT("{\"a\":1,,\"b\":2}"), "byte 7"},
    {"n_object_comma_for_colon", TEXT("{\"a\",1}"), "byte 4"},
    {"n_object_two_colons", TEXT("{\"a\"::1}"), "byte 5"},
    {"n_object_bare_key", TEXT("{a:1}"), "byte 1"},
    {"n_object_number_key", TEXT("{1:1}"), "byte 1"},
    {"n_object_single_quotes", TEXT("{'a':1}"), "byte 1"},
    {"n_object_nul_in_key", TEXT("{\"a\\u0000b\":1}"), "byte 10"},
    {"n_object_closed_as_array", TEXT("{\"a\":1]"), "byte 6"},
    {"n_number_plus", TEXT("+1"), "byte 0"},
    {"n_number_minus", TEXT("-"), "byte 1"},
    {"n_number_minus_minus", TEXT("--1"), "byte 1"},
    {"n_number_leading_zero", TEXT("01"), "byte 0"},
    {"n_number_minus_leading_zero", TEXT("-012"), "byte 1"},
    {"n_number_no_whole", TEXT(".5"), "byte 0"},
    {"n_number_no_fraction", TEXT("1."), "byte 2"},
    {"n_number_no_fraction_exponent", TEXT("1.e1"), "byte 2"},
    {"n_number_no_exponent", TEXT("1e"), "byte 2"},
    {"n_number_no_exponent_sign", TEXT("1e+"), "byte 3"},
    {"n_number_two_exponents", TEXT("1e1e1"), "byte 3"},
    {"n_number_two_points", TEXT("1.1.1"), "byte 3"},
    {"n_number_hex", TEXT("0x1"), "byte 1"},
    {"n_number_underscore", TEXT("1_000"), "byte 1"},
    {"n_number_letter", TEXT("1a"), "byte 1"},
    {"n_number_full_width", TEXT("\xEF\xBC\x91"), "byte 0"},
    {"n_number_overflow", TEXT("1e999"), "byte 0"},
    {"n_number_overflow_minus", TEXT("[-1e999]"), "byte 1"},
    {"n_number_overflow_just", TEXT("1.7976931348623159e308"), "byte 0"},
    {"n_number_overflow_far", TEXT("1e99999999999999999999"), "byte 0"},
    {"n_string_open", TEXT("\""), "byte 1"},
    {"n_string_unclosed", TEXT("\"abc"), "byte 4"},
    {"n_string_unclosed_long", TEXT("\"0123456789abcdef0123456789abcdef"), "byte 33"},
    {"n_string_escape_end", TEXT("\"\\"), "byte 2"},
    {"n_string_escape_quote_end", TEXT("\"\\\""), "byte 3"},
    {"n_string_escape_unknown", TEXT("\"\\x41\""), "byte 2"},
    {"n_string_escape_apostrophe", TEXT("\"\\'\""), "byte 2"},
    {"n_string_escape_capital_u", TEXT("\"\\U0041\""), "byte 2"},
    {"n_string_unicode_short", TEXT("\"\\u00\""), "byte 3"},
    {"n_string_unicode_end", TEXT("\"\\u00"), "byte"},
    {"n_string_unicode_letter", TEXT("\"\\u00g0\""), "byte 3"},
    {"n_string_unicode_sign", TEXT("\"\\u+041\""), "byte 3"},
    {"n_string_newline", TEXT("\"a\nb\""), "byte 2"},
    {"n_string_tab", TEXT("\"\t\""), "byte 1"},
    {"n_string_nul", TEXT("\"a\0b\""), "byte 2"},
    {"n_string_1f_late", TEXT("\"0123456789abcdef0\x1F\""), "byte 18"},
    {"n_utf8_continuation", TEXT("\"a\x80\""), "byte 2"},
    {"n_utf8_truncated_two", TEXT("\"\xC3\""), "byte 1"},
    {"n_utf8_truncated_three", TEXT("\"\xE2\x82\""), "byte 1"},
    {"n_utf8_truncated_four", TEXT("\"\xF0\x9F\x98\""), "byte 1"},
    {"n_utf8_truncated_end", TEXT("\"\xE2\x82"), "byte 1"},
    {"n_utf8_overlong_two", TEXT("\"\xC0\xAF\""), "byte 1"},
    {"n_utf8_overlong_three", TEXT("\"\xE0\x80\xAF\""), "byte 1"},
    {"n_utf8_overlong_four", TEXT("\"\xF0\x80\x80\xAF\""), "byte 1"},
    {"n_utf8_surrogate", TEXT("\"\xED\xA0\x80\""), "byte 1"},
    {"n_utf8_too_high", TEXT("\"\xF4\x90\x80\x80\""), "byte 1"},
    {"n_utf8_f5", TEXT("\"\xF5\x80\x80\x80\""), "byte 1"},
    {"n_utf8_ff", TEXT("\"\xFF\""), "byte 1"},
    {"n_utf8_latin1", TEXT("{\"caf\xE9\":1}"), "byte 5"},
    {"n_utf8_outside_string", TEXT("[\xE2\x82\xAC]"), "byte 1"},
    {"n_utf16", TEXT("\xFF\xFE{\0}\0"), "byte 0"},
};

static void what_is_json_is_taken_and_printed_the_same(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
        CLEANUP(buf_done) struct buf bson, text;
        struct document_value value;
        struct slice expected = accepted[i].text;
        struct error err;

        if (accepted[i].printed)
            expected = slice_of_text(accepted[i].printed);
        buf_init(&bson, BUF_DEFAULT_MAX);
        buf_init(&text, BUF_DEFAULT_MAX);
        if (!document_json_read_value(accepted[i].text, NULL, &bson, &value, &err))
            fail_msg("%s: %s", accepted[i].name, err.message);
        if (!document_validate(buf_slice(&bson), NULL, &err))
            fail_msg("%s: %s", accepted[i].name, err.message);
        document_json_write_value(&value, &text);
        if (!slice_equal(buf_slice(&text), expected))
            fail_msg("%s: printed as %.*s", accepted[i].name, SLICE_ARG(buf_slice(&text)));
    }
}

static void what_is_not_json_is_refused_at_the_byte(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CLEANUP(buf_done) struct buf bson;
        struct document_value value;
        struct error err;

        buf_init(&bson, BUF_DEFAULT_MAX);
        BUF_APPEND(&bson, "kept");
        if (document_json_read_value(refused[i].text, NULL, &bson, &value, &err))
            fail_msg("%s: was taken", refused[i].name);
        assert_int_equal(err.code, ERROR_BAD_JSON);
        if (!strstr(err.message, refused[i].printed))
            fail_msg("%s: \"%s\" does not say %s", refused[i].name, err.message,
                     refused[i].printed);
        assert_slice_equal(buf_slice(&bson), SLICE("kept"));
    }
}

/* Reads from memory that ends with the text, so that the sanitizer sees a step too far. */
static void no_cut_of_a_text_is_taken_or_read_past(void **state UNUSED)
{
    struct slice whole = SLICE("{\"id\":\"a\\u00e9\\ud83d\\ude00\xE2\x82\xAC\",\"list\":[1,-2.5e3,"
                               "true,false,null,{\"deep\":[[]]}],\"text\":\"0123456789abcdef01\"}");

    for (size_t len = 0; len <= whole.len; len++) {
        CLEANUP(buf_done) struct buf bson;
        uint8_t *exact = malloc(len ? len : 1);
        struct error err;
        bool taken;

        buf_init(&bson, BUF_DEFAULT_MAX);
        memcpy(exact, whole.data, len);
        taken = document_json_read(slice_of(exact, len), NULL, &bson, &err);
        free(exact);
        assert_int_equal(taken, len == whole.len);
    }
}

static void types_follow_the_number(void **state UNUSED)
{
    static const struct {
        const char *text;
        enum document_type type;
    } samples[] = {
        {"1", DOCUMENT_INT32},
        {"2147483648", DOCUMENT_INT64},
        {"9223372036854775808", DOCUMENT_DOUBLE},
        {"1.0", DOCUMENT_DOUBLE},
        {"1e2", DOCUMENT_DOUBLE},
        {"-0", DOCUMENT_DOUBLE},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        assert_int_equal(value_of(arena, samples[i].text).type, samples[i].type);
    assert_true(signbit(value_of(arena, "-0").number));
}

static void every_double_comes_back_bit_for_bit(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text, bson;
    struct random random;

    buf_init(&text, 1000);
    buf_init(&bson, 1000);
    random_seed(&random, 7);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_next(&random);
        struct document_value value, back;
        struct error err;
        double number;

        if (i % 2) /* the everyday ones: some decimals and a point */
            value = document_double((double)random_below(&random, 1000000000) / 1000);
        else
            value = (struct document_value){.type = DOCUMENT_DOUBLE, .timestamp = bits};
        if (!isfinite(value.number))
            continue;
        buf_clear(&text);
        buf_clear(&bson);
        document_json_write_value(&value, &text);
        assert_ok(document_json_read_value(buf_slice(&text), NULL, &bson, &back, &err), &err);
        assert_true(document_to_double(&back, &number));
        assert_memory_equal(&number, &value.number, sizeof number);
    }
}

static void a_property_named_twice_is_refused_by_name(void **state UNUSED)
{
    static const char *const texts[] = {
        "{\"a\":1,\"name\":2,\"name\":3}",
        "{\"name\":{},\"b\":[{\"name\":1}],\"na\\u006de\":0}",
        "[{\"x\":{\"name\":1,\"y\":{\"name\":2},\"name\":3}}]",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(buf_done) struct buf bson;
        struct document_value value;
        struct error err;

        buf_init(&bson, BUF_DEFAULT_MAX);
        assert_fails(document_json_read_value(slice_of_text(texts[i]), NULL, &bson, &value, &err),
                     &err, ERROR_DUPLICATE_PROPERTY);
        assert_contains(err.message, "\"name\"");
    }
}

static void print_object(struct buf *text, int count, int twice)
{
    buf_append_byte(text, '{');
    for (int i = 0; i < count; i++)
        buf_printf(text, "%s\"property %d of many\":%d", i ? "," : "", i == count - 1 ? twice : i,
                   i);
    buf_append_byte(text, '}');
}

static void duplicates_are_found_among_any_number_of_names(void **state UNUSED)
{
    static const int counts[] = {2, 31, 32, 33, 34, 65, 300, 5000};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        for (int twice = -1; twice < counts[i] - 1; twice += counts[i] / 7 + 1) {
            CLEANUP(buf_done) struct buf text, bson;
            struct error err;

            buf_init(&text, BUF_DEFAULT_MAX);
            buf_init(&bson, BUF_DEFAULT_MAX);
            print_object(&text, counts[i], twice);
            if (document_json_read(buf_slice(&text), NULL, &bson, &err) != (twice < 0))
                fail_msg("%d names, the last like number %d: %s", counts[i], twice,
                         twice < 0 ? err.message : "was taken");
        }
    }
}

static void large_objects_inside_each_other_keep_their_names_apart(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text, bson;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    for (int level = 0; level < 20; level++) {
        BUF_APPEND(&text, "{");
        for (int i = 0; i < 50; i++)
            buf_printf(&text, "\"n%d\":%d,", i, i);
        BUF_APPEND(&text, "\"inner\":");
    }
    BUF_APPEND(&text, "{}");
    for (int level = 0; level < 20; level++)
        buf_printf(&text, ",\"n%d\":0}", level == 0 ? 49 : 50);
    assert_fails(document_json_read(buf_slice(&text), NULL, &bson, &err), &err,
                 ERROR_DUPLICATE_PROPERTY);
    assert_contains(err.message, "\"n49\"");
}

static void print_nested(struct buf *text, int depth)
{
    buf_clear(text);
    for (int i = 1; i < depth; i++)
        buf_append_text(text, i % 2 ? "{\"a\":" : "[");
    BUF_APPEND(text, "{}");
    for (int i = depth - 1; i > 0; i--)
        buf_append_text(text, i % 2 ? "}" : "]");
}

static void nesting_is_taken_to_the_limit_and_not_beyond(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text, bson;
    struct document_limits limits = {.depth_max = 3};
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    print_nested(&text, DOCUMENT_DEPTH_DEFAULT);
    assert_ok(document_json_read(buf_slice(&text), NULL, &bson, &err), &err);
    print_nested(&text, DOCUMENT_DEPTH_DEFAULT + 1);
    assert_fails(document_json_read(buf_slice(&text), NULL, &bson, &err), &err, ERROR_TOO_DEEP);
    print_nested(&text, 3);
    assert_ok(document_json_read(buf_slice(&text), &limits, &bson, &err), &err);
    print_nested(&text, 4);
    assert_fails(document_json_read(buf_slice(&text), &limits, &bson, &err), &err, ERROR_TOO_DEEP);
}

static void size_is_taken_to_the_limit_and_not_beyond(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bson;
    struct slice text = SLICE("{\"a\":\"0123456789\",\"b\":[1,2,3],\"c\":\"0123456789abcdef012\"}");
    struct document_limits limits = {0};
    struct error err;
    size_t size;

    buf_init(&bson, BUF_DEFAULT_MAX);
    assert_ok(document_json_read(text, NULL, &bson, &err), &err);
    size = bson.len;
    for (limits.bytes_max = 5; limits.bytes_max < size + 5; limits.bytes_max++) {
        buf_done(&bson);
        if (document_json_read(text, &limits, &bson, &err) != (limits.bytes_max >= size))
            fail_msg("%zu bytes with a limit of %zu", size, limits.bytes_max);
        if (limits.bytes_max < size)
            assert_int_equal(err.code, ERROR_TOO_LARGE);
    }
}

static void only_objects_are_documents(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bson;
    struct error err;

    buf_init(&bson, BUF_DEFAULT_MAX);
    assert_fails(document_json_read(SLICE("[1]"), NULL, &bson, &err), &err, ERROR_BAD_JSON);
    assert_fails(document_json_read(SLICE("1"), NULL, &bson, &err), &err, ERROR_BAD_JSON);
}

static void both_scanners_stop_at_the_same_byte(void **state UNUSED)
{
    struct random random;
    uint8_t bytes[SCAN_STEP];

    random_seed(&random, 3);
    for (int i = 0; i < 300000; i++) {
        memset(bytes, 'a', sizeof bytes);
        for (uint64_t count = random_below(&random, 4); count > 0; count--)
            bytes[random_below(&random, sizeof bytes)] = (uint8_t)random_next(&random);
        assert_int_equal(scan_read(bytes), scan_read_portable(bytes));
        assert_int_equal(scan_write(bytes), scan_write_portable(bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_json_is_taken_and_printed_the_same),
        cmocka_unit_test(what_is_not_json_is_refused_at_the_byte),
        cmocka_unit_test(no_cut_of_a_text_is_taken_or_read_past),
        cmocka_unit_test(types_follow_the_number),
        cmocka_unit_test(every_double_comes_back_bit_for_bit),
        cmocka_unit_test(a_property_named_twice_is_refused_by_name),
        cmocka_unit_test(duplicates_are_found_among_any_number_of_names),
        cmocka_unit_test(large_objects_inside_each_other_keep_their_names_apart),
        cmocka_unit_test(nesting_is_taken_to_the_limit_and_not_beyond),
        cmocka_unit_test(size_is_taken_to_the_limit_and_not_beyond),
        cmocka_unit_test(only_objects_are_documents),
        cmocka_unit_test(both_scanners_stop_at_the_same_byte),
    };
    return cmocka_run_group_tests_name("document/json_read", tests, NULL, NULL);
}
