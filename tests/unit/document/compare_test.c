#include "document/order.h"

#include "document/extended.h"
#include "support/check.h"
#include "support/documents.h"

#include <bson/bson.h>
#include <math.h>

static struct document_value decimal(const char *text)
{
    bson_decimal128_t theirs;

    assert_true(bson_decimal128_from_string(text, &theirs));
    return (struct document_value){.type = DOCUMENT_DECIMAL128,
                                   .decimal = {theirs.low, theirs.high}};
}

/* Each value is less than the next, and so are their keys, in this order. */
static void assert_ascending(enum document_order order, const struct document_value *values,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            CLEANUP(buf_done) struct buf left, right;
            int compared = document_compare(order, &values[i], &values[j]), keys;
            int expected = (i > j) - (i < j);

            buf_init(&left, BUF_DEFAULT_MAX);
            buf_init(&right, BUF_DEFAULT_MAX);
            document_key_append(order, &values[i], &left);
            document_key_append(order, &values[j], &right);
            keys = slice_compare(buf_slice(&left), buf_slice(&right));
            if ((compared > 0) - (compared < 0) != expected)
                fail_msg("values %zu and %zu compare as %d", i, j, compared);
            if ((keys > 0) - (keys < 0) != expected)
                fail_msg("keys of values %zu and %zu compare as %d", i, j, keys);
        }
    }
}

static void assert_same(const struct document_value *values, size_t count)
{
    for (int order = DOCUMENT_ORDER_SQL; order <= DOCUMENT_ORDER_MONGO; order++) {
        CLEANUP(buf_done) struct buf first, key;

        buf_init(&first, BUF_DEFAULT_MAX);
        buf_init(&key, BUF_DEFAULT_MAX);
        document_key_append(order, &values[0], &first);
        for (size_t i = 0; i < count; i++) {
            buf_clear(&key);
            document_key_append(order, &values[i], &key);
            assert_int_equal(document_compare(order, &values[0], &values[i]), 0);
            assert_slice_equal(buf_slice(&key), buf_slice(&first));
        }
    }
}

static void types_have_the_order_of_sql(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value values[] = {
        document_value_of_type(DOCUMENT_MIN_KEY),
        document_undefined(),
        document_null(),
        document_bool(false),
        document_bool(true),
        document_double(NAN),
        document_int32(-1),
        document_int32(0),
        document_string(SLICE("")),
        document_string(SLICE("A")),
        value_of(arena, "[]"),
        value_of(arena, "{}"),
        {.type = DOCUMENT_BINARY, .binary = {SLICE(""), 0}},
        {.type = DOCUMENT_OBJECT_ID, .id = (const uint8_t *)"abcdefghijkl"},
        document_date(-5),
        document_date(5),
        {.type = DOCUMENT_TIMESTAMP, .timestamp = 1},
        {.type = DOCUMENT_TIMESTAMP, .timestamp = UINT64_MAX},
        {.type = DOCUMENT_REGEX, .regex = {SLICE("a"), SLICE("")}},
        {.type = DOCUMENT_DB_POINTER, .pointer = {SLICE("c"), (const uint8_t *)"abcdefghijkl"}},
        {.type = DOCUMENT_CODE, .text = SLICE("f")},
        {.type = DOCUMENT_CODE_WITH_SCOPE, .scoped = {SLICE("f"), SLICE("\5\0\0\0\0")}},
        document_value_of_type(DOCUMENT_MAX_KEY),
    };

    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
}

static void types_have_the_order_of_mongodb(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value values[] = {
        document_value_of_type(DOCUMENT_MIN_KEY),
        document_undefined(),
        document_null(),
        document_double(NAN),
        document_double(-INFINITY),
        document_int32(0),
        document_string(SLICE("")),
        {.type = DOCUMENT_SYMBOL, .text = SLICE("a")},
        document_string(SLICE("b")),
        value_of(arena, "{}"),
        value_of(arena, "[]"),
        {.type = DOCUMENT_BINARY, .binary = {SLICE("z"), 9}},
        {.type = DOCUMENT_BINARY, .binary = {SLICE("aa"), 0}},
        {.type = DOCUMENT_BINARY, .binary = {SLICE("aa"), 1}},
        {.type = DOCUMENT_BINARY, .binary = {SLICE("ab"), 1}},
        {.type = DOCUMENT_OBJECT_ID, .id = (const uint8_t *)"abcdefghijkl"},
        document_bool(false),
        document_bool(true),
        document_date(-5),
        {.type = DOCUMENT_TIMESTAMP, .timestamp = 1},
        {.type = DOCUMENT_REGEX, .regex = {SLICE("a"), SLICE("")}},
        {.type = DOCUMENT_REGEX, .regex = {SLICE("a"), SLICE("i")}},
        {.type = DOCUMENT_REGEX, .regex = {SLICE("aa"), SLICE("")}},
        {.type = DOCUMENT_DB_POINTER, .pointer = {SLICE("c"), (const uint8_t *)"abcdefghijkl"}},
        {.type = DOCUMENT_CODE, .text = SLICE("f")},
        {.type = DOCUMENT_CODE_WITH_SCOPE, .scoped = {SLICE("f"), SLICE("\5\0\0\0\0")}},
        document_value_of_type(DOCUMENT_MAX_KEY),
    };

    assert_ascending(DOCUMENT_ORDER_MONGO, values, ARRAY_LEN(values));
}

static void numbers_of_all_types_stand_in_one_exact_line(void **state UNUSED)
{
    const struct document_value values[] = {
        document_double(NAN),
        document_double(-INFINITY),
        decimal("-1E+6144"),
        decimal("-1.797693134862315708145274237317044E+308"), /* a little below -DBL_MAX */
        document_double(-1.7976931348623157e308),
        document_double(-9223372036854775808.0 * 2),
        document_int64(INT64_MIN),
        document_int64(INT64_MIN + 1),
        document_int64(-9007199254740993),
        document_double(-9007199254740992),
        document_double(-0.1),
        decimal("-0.1"),
        document_double(-5e-324),
        decimal("-1E-6176"),
        document_int32(0),
        decimal("1E-6176"),
        document_double(5e-324),
        decimal("0.09999999999999999999999999999999999"),
        decimal("0.1"),
        decimal("0.1000000000000000055511151231257827"),
        document_double(0.1), /* 0.1000000000000000055511151231257827021... */
        decimal("0.1000000000000000055511151231257828"),
        decimal("0.9999999999999999999999999999999999"),
        document_int32(1),
        decimal("1.000000000000000000000000000000001"),
        document_double(1.0000000000000002),
        document_double(1.5),
        document_int64(9007199254740991),
        document_double(9007199254740992),
        document_int64(9007199254740993),
        decimal("9007199254740993.5"),
        document_double(9007199254740994),
        document_double(9223372036854774784.0), /* the last double below 2^63 */
        document_int64(INT64_MAX - 1),
        document_int64(INT64_MAX),
        decimal("9223372036854775807.5"),
        document_double(9223372036854775808.0),
        decimal("9223372036854775809"),
        document_double(1e23), /* 99999999999999991611392 */
        decimal("1E+23"),
        document_double(1.7976931348623157e308),
        decimal("1.797693134862315708145274237317044E+308"),
        decimal("9.999999999999999999999999999999999E+6144"),
        document_double(INFINITY),
    };

    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
    assert_ascending(DOCUMENT_ORDER_MONGO, values, ARRAY_LEN(values));
}

static void equal_numbers_are_equal_whatever_their_type(void **state UNUSED)
{
    const struct document_value ones[] = {
        document_int32(1), document_int64(1), document_double(1),
        decimal("1"),      decimal("1.00"),   decimal("1000E-3"),
    };
    const struct document_value zeros[] = {
        document_int32(0), document_int64(0), document_double(0), document_double(-0.0),
        decimal("0"),      decimal("-0.000"), decimal("0E+6000"), decimal("0E-6000"),
    };
    const struct document_value nans[] = {document_double(NAN), document_double(-NAN),
                                          decimal("NaN")};
    const struct document_value infinite[] = {document_double(INFINITY), decimal("Infinity")};
    const struct document_value large[] = {decimal("1E+22"), document_double(1e22),
                                           decimal("10000000000000000000000")};
    const struct document_value past[] = {document_int64(9007199254740993),
                                          decimal("9007199254740993"),
                                          decimal("9007199254740993.000")};
    const struct document_value halves[] = {document_double(0.5), decimal("0.5"), decimal("0.50")};

    assert_same(ones, ARRAY_LEN(ones));
    assert_same(zeros, ARRAY_LEN(zeros));
    assert_same(nans, ARRAY_LEN(nans));
    assert_same(infinite, ARRAY_LEN(infinite));
    assert_same(large, ARRAY_LEN(large));
    assert_same(past, ARRAY_LEN(past));
    assert_same(halves, ARRAY_LEN(halves));
}

static void sql_orders_text_by_utf16_unit(void **state UNUSED)
{
    const struct document_value values[] = {
        document_string(SLICE("")),
        document_string(SLICE("\0")),
        document_string(SLICE("\0\0")),
        document_string(SLICE("\1")),
        document_string(SLICE("a")),
        document_string(SLICE("a\0")),
        document_string(SLICE("a\1")),
        document_string(SLICE("ab")),
        document_string(SLICE("b")),
        document_string(SLICE("\xC3\xA9")),
        document_string(SLICE("\xED\x9F\xBF")),             /* U+D7FF */
        document_string(SLICE("\xED\xA0\x80")),             /* U+D800 alone */
        document_string(SLICE("\xED\xA0\x80z")),            /* and before z */
        document_string(SLICE("\xF0\x90\x80\x80")),         /* D800 DC00 */
        document_string(SLICE("\xF0\x90\x80\x80z")),        /* D800 DC00 z */
        document_string(SLICE("\xF0\x90\x80\x81")),         /* D800 DC01 */
        document_string(SLICE("\xED\xA0\x80\xEE\x80\x80")), /* D800 E000 */
        document_string(SLICE("\xF4\x8F\xBF\xBF")),         /* DBFF DFFF */
        document_string(SLICE("\xED\xB0\x80")),             /* U+DC00 alone */
        document_string(SLICE("\xEE\x80\x80")),             /* U+E000 */
        document_string(SLICE("\xEF\xBF\xBF")),             /* U+FFFF */
    };

    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
}

static void mongodb_orders_text_by_byte(void **state UNUSED)
{
    const struct document_value values[] = {
        document_string(SLICE("")),
        document_string(SLICE("\0")),
        document_string(SLICE("a")),
        document_string(SLICE("a\0")),
        document_string(SLICE("ab")),
        document_string(SLICE("\xED\xA0\x80")),
        document_string(SLICE("\xEE\x80\x80")),
        document_string(SLICE("\xF0\x90\x80\x80")),
    };

    assert_ascending(DOCUMENT_ORDER_MONGO, values, ARRAY_LEN(values));
}

/* Nobody should hand it in, but an order that contradicts its keys would lose entries. */
static void text_that_is_not_utf8_still_sorts_like_its_keys(void **state UNUSED)
{
    const struct document_value values[] = {
        document_string(SLICE("\xF0\x90\x80\x80")), /* a whole character, sorted as ED A0 .. */
        document_string(SLICE("\xF0\x90z")),
        document_string(SLICE("\xF0\x90\x80")),
        document_string(SLICE("\xF0\x90\x80z")),
        document_string(SLICE("\xF5\x80\x80\x80")),
        document_string(SLICE("\xFF")),
    };

    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
}

static void sql_compares_objects_by_name(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value same[] = {
        value_of(arena, "{\"a\":1,\"b\":[{\"x\":1,\"y\":2}]}"),
        value_of(arena, "{\"b\":[{\"y\":2.0,\"x\":1}],\"a\":1}"),
    };
    const struct document_value values[] = {
        value_of(arena, "{}"),
        value_of(arena, "{\"a\":null}"),
        value_of(arena, "{\"z\":9,\"a\":1}"),
        value_of(arena, "{\"a\":2}"),
        value_of(arena, "{\"b\":0,\"a\":2}"),
        value_of(arena, "{\"aa\":0}"),
        value_of(arena, "{\"b\":0}"),
    };
    CLEANUP(buf_done) struct buf left, right;

    buf_init(&left, BUF_DEFAULT_MAX);
    buf_init(&right, BUF_DEFAULT_MAX);
    document_key_append(DOCUMENT_ORDER_SQL, &same[0], &left);
    document_key_append(DOCUMENT_ORDER_SQL, &same[1], &right);
    assert_int_equal(document_compare(DOCUMENT_ORDER_SQL, &same[0], &same[1]), 0);
    assert_slice_equal(buf_slice(&left), buf_slice(&right));
    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
}

static void mongodb_compares_objects_as_stored(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value values[] = {
        value_of(arena, "{}"),
        value_of(arena, "{\"z\":null}"), /* the type comes before the name */
        value_of(arena, "{\"a\":1}"),
        value_of(arena, "{\"a\":1,\"b\":1}"),
        value_of(arena, "{\"a\":2}"),
        value_of(arena, "{\"b\":0}"),
        value_of(arena, "{\"b\":0,\"a\":0}"),
        value_of(arena, "{\"a\":\"x\"}"),
        value_of(arena, "{\"a\":false}"),
        value_of(arena, "{\"a\":true}"),
        value_of(arena, "{\"b\":false}"),
    };

    assert_ascending(DOCUMENT_ORDER_MONGO, values, ARRAY_LEN(values));
}

static void arrays_compare_element_by_element(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value values[] = {
        value_of(arena, "[]"),        value_of(arena, "[null]"),
        value_of(arena, "[1]"),       value_of(arena, "[1,null]"),
        value_of(arena, "[1,[]]"),    value_of(arena, "[1,[2]]"),
        value_of(arena, "[1,[2],0]"), value_of(arena, "[1,[2,0]]"),
        value_of(arena, "[2]"),       value_of(arena, "[\"\"]"),
        value_of(arena, "[\"a\",0]"), value_of(arena, "[\"a\\u0000\"]"),
        value_of(arena, "[\"b\"]"),
    };

    assert_ascending(DOCUMENT_ORDER_SQL, values, ARRAY_LEN(values));
    assert_ascending(DOCUMENT_ORDER_MONGO, values, ARRAY_LEN(values));
}

static void large_objects_are_sorted_too(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf up, down;
    struct document_value a, b;

    buf_init(&up, BUF_DEFAULT_MAX);
    buf_init(&down, BUF_DEFAULT_MAX);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&up, "%s\"n%d\":%d", i ? "," : "{", i, i);
        buf_printf(&down, "%s\"n%d\":%d", i ? "," : "{", 999 - i, 999 - i);
    }
    BUF_APPEND(&up, "}");
    BUF_APPEND(&down, "}");
    a = value_of(arena, arena_text(arena, buf_slice(&up)));
    b = value_of(arena, arena_text(arena, buf_slice(&down)));
    assert_int_equal(document_compare(DOCUMENT_ORDER_SQL, &a, &b), 0);
    assert_true(document_compare(DOCUMENT_ORDER_MONGO, &a, &b) < 0);
}

/* MongoDB's comparison order, row by row: the canonical types in their order, then what decides
 * within a type. */
static void mongodbs_order_is_that_of_its_manual(void **state UNUSED)
{
    static const struct {
        const char *left, *right;
        int sign;
    } rows[] = {
        {"{\"$minKey\":1}", "{\"$undefined\":true}", -1},
        {"{\"$undefined\":true}", "null", -1},
        {"null", "{\"$numberDouble\":\"NaN\"}", -1},
        {"{\"$numberDouble\":\"NaN\"}", "{\"$numberDouble\":\"-Infinity\"}", -1},
        {"{\"$numberDecimal\":\"NaN\"}", "{\"$numberDouble\":\"NaN\"}", 0},
        {"1", "{\"$numberLong\":\"1\"}", 0},
        {"1", "{\"$numberDouble\":\"1.0\"}", 0},
        {"1", "{\"$numberDecimal\":\"1.000\"}", 0},
        {"{\"$numberDouble\":\"-0.0\"}", "0", 0},
        {"{\"$numberLong\":\"9007199254740993\"}", "{\"$numberDouble\":\"9007199254740992.0\"}", 1},
        {"0.1", "{\"$numberDecimal\":\"0.1\"}", 1},
        {"{\"$numberDouble\":\"Infinity\"}", "\"\"", -1},
        {"\"a\"", "{\"$symbol\":\"a\"}", 0},
        {"{\"$symbol\":\"a\"}", "\"b\"", -1},
        {"\"\xEF\xBF\xBD\"", "\"\xF0\x9F\x98\x80\"", -1},
        {"\"a\"", "\"a\\u0000\"", -1},
        {"\"z\"", "{}", -1},
        {"{}", "{\"a\":1}", -1},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", -1},
        {"{\"b\":1}", "{\"a\":\"x\"}", -1},             /* the type before the name */
        {"{\"a\":2}", "{\"b\":1}", -1},                 /* the name before the value */
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", -1}, /* as stored */
        {"{\"a\":1}", "{\"a\":{\"$numberLong\":\"1\"}}", 0},
        {"{\"z\":1}", "[]", -1},
        {"[]", "[null]", -1},
        {"[1,2]", "[1,3]", -1},
        {"[1,2]", "[1,2,{\"$minKey\":1}]", -1},
        {"[2]", "[1,9]", 1},
        {"[9]", "{\"$binary\":{\"base64\":\"\",\"subType\":\"00\"}}", -1},
        {"{\"$binary\":{\"base64\":\"/w==\",\"subType\":\"80\"}}",
         "{\"$binary\":{\"base64\":\"AAA=\",\"subType\":\"00\"}}", -1}, /* length */
        {"{\"$binary\":{\"base64\":\"/w==\",\"subType\":\"00\"}}",
         "{\"$binary\":{\"base64\":\"AA==\",\"subType\":\"80\"}}", -1}, /* subtype, unsigned */
        {"{\"$binary\":{\"base64\":\"AA==\",\"subType\":\"00\"}}",
         "{\"$binary\":{\"base64\":\"/w==\",\"subType\":\"00\"}}", -1}, /* bytes, unsigned */
        {"{\"$binary\":{\"base64\":\"/////w==\",\"subType\":\"ff\"}}",
         "{\"$oid\":\"000000000000000000000000\"}", -1},
        {"{\"$oid\":\"7f0000000000000000000000\"}", "{\"$oid\":\"800000000000000000000000\"}", -1},
        {"{\"$oid\":\"ffffffffffffffffffffffff\"}", "false", -1},
        {"false", "true", -1},
        {"true", "{\"$date\":{\"$numberLong\":\"-9223372036854775808\"}}", -1},
        {"{\"$date\":{\"$numberLong\":\"-1\"}}", "{\"$date\":{\"$numberLong\":\"0\"}}", -1},
        {"{\"$date\":{\"$numberLong\":\"9223372036854775807\"}}",
         "{\"$timestamp\":{\"t\":0,\"i\":0}}", -1},
        {"{\"$timestamp\":{\"t\":2147483647,\"i\":9}}",
         "{\"$timestamp\":{\"t\":4294967295,\"i\":1}}", -1}, /* unsigned */
        {"{\"$timestamp\":{\"t\":1,\"i\":1}}", "{\"$timestamp\":{\"t\":1,\"i\":4294967295}}", -1},
        {"{\"$timestamp\":{\"t\":4294967295,\"i\":4294967295}}",
         "{\"$regularExpression\":{\"pattern\":\"\",\"options\":\"\"}}", -1},
        {"{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"x\"}}",
         "{\"$regularExpression\":{\"pattern\":\"b\",\"options\":\"i\"}}", -1},
        {"{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}}",
         "{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"x\"}}", -1},
        {"{\"$regularExpression\":{\"pattern\":\"z\",\"options\":\"x\"}}",
         "{\"$dbPointer\":{\"$ref\":\"a\",\"$id\":{\"$oid\":\"000000000000000000000000\"}}}", -1},
        {"{\"$dbPointer\":{\"$ref\":\"z\",\"$id\":{\"$oid\":\"000000000000000000000000\"}}}",
         "{\"$code\":\"\"}", -1},
        {"{\"$code\":\"z\"}", "{\"$code\":\"a\",\"$scope\":{}}", -1},
        {"{\"$code\":\"a\",\"$scope\":{}}", "{\"$code\":\"a\",\"$scope\":{\"x\":1}}", -1},
        {"{\"$code\":\"z\",\"$scope\":{\"x\":1}}", "{\"$maxKey\":1}", -1},
        {"{\"$maxKey\":1}", "{\"$maxKey\":1}", 0},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf left, right;
        struct document_value a = value_of(arena, rows[i].left), b = value_of(arena, rows[i].right);
        struct error err;
        int compared, keys;

        buf_init(&left, BUF_DEFAULT_MAX);
        buf_init(&right, BUF_DEFAULT_MAX);
        assert_ok(document_extended_read(&a, arena, &a, &err), &err);
        assert_ok(document_extended_read(&b, arena, &b, &err), &err);
        document_key_append(DOCUMENT_ORDER_MONGO, &a, &left);
        document_key_append(DOCUMENT_ORDER_MONGO, &b, &right);
        compared = document_compare(DOCUMENT_ORDER_MONGO, &a, &b);
        keys = slice_compare(buf_slice(&left), buf_slice(&right));
        if ((compared > 0) - (compared < 0) != rows[i].sign ||
            (keys > 0) - (keys < 0) != rows[i].sign)
            fail_msg("%s and %s: %d, their keys %d, not %d", rows[i].left, rows[i].right, compared,
                     keys, rows[i].sign);
        assert_int_equal((document_compare(DOCUMENT_ORDER_MONGO, &b, &a) < 0) -
                             (document_compare(DOCUMENT_ORDER_MONGO, &b, &a) > 0),
                         rows[i].sign);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mongodbs_order_is_that_of_its_manual),
        cmocka_unit_test(types_have_the_order_of_sql),
        cmocka_unit_test(types_have_the_order_of_mongodb),
        cmocka_unit_test(numbers_of_all_types_stand_in_one_exact_line),
        cmocka_unit_test(equal_numbers_are_equal_whatever_their_type),
        cmocka_unit_test(sql_orders_text_by_utf16_unit),
        cmocka_unit_test(mongodb_orders_text_by_byte),
        cmocka_unit_test(text_that_is_not_utf8_still_sorts_like_its_keys),
        cmocka_unit_test(sql_compares_objects_by_name),
        cmocka_unit_test(mongodb_compares_objects_as_stored),
        cmocka_unit_test(arrays_compare_element_by_element),
        cmocka_unit_test(large_objects_are_sorted_too),
    };
    return cmocka_run_group_tests_name("document/compare", tests, NULL, NULL);
}
