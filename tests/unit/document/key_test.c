#include "document/order.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

static struct slice key_of(struct arena *arena, enum document_order order, const char *json)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value = value_of(arena, json);

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_key_append(order, &value, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

/* The layout is stored: these bytes change only together with DOCUMENT_KEY_VERSION. */
static void the_layout_is_what_version_1_says(void **state UNUSED)
{
    static const struct {
        const char *json;
        struct slice sql, mongo;
    } samples[] = {
        {"null", SLICE("\x0C"), SLICE("\x0C")},
        {"true", SLICE("\x10\x01"), SLICE("\x2A\x01")},
        {"0", SLICE("\x14\x80\x00"), SLICE("\x14\x80\x00")},
        {"1", SLICE("\x14\xBF\xF0"), SLICE("\x14\xBF\xF0")},
        {"-1", SLICE("\x14\x40\x10"), SLICE("\x14\x40\x10")},
        {"1000", SLICE("\x14\xC0\x8F\xA0"), SLICE("\x14\xC0\x8F\xA0")},
        {"9007199254740993",
         SLICE("\x14\xC3\x41\x01\x01\x01\x01\x01\x01\x01\x40\x10\x5B\x08\x14\x5D\x37\x4B\x0A\x5E"
               "\x00"),
         SLICE("\x14\xC3\x41\x01\x01\x01\x01\x01\x01\x01\x40\x10\x5B\x08\x14\x5D\x37\x4B\x0A\x5E"
               "\x00")},
        {"\"ab\"", SLICE("\x18\x61\x62\x00"), SLICE("\x18\x61\x62\x00")},
        {"\"a\\u0000\\u0001\"", SLICE("\x18\x61\x01\x01\x01\x02\x00"),
         SLICE("\x18\x61\x01\x01\x01\x02\x00")},
        {"\"\\ud83d\\ude00\"", SLICE("\x18\xED\xA0\xBD\xED\xB8\x80\x00"),
         SLICE("\x18\xF0\x9F\x98\x80\x00")},
        {"[1,\"a\"]", SLICE("\x1C\x14\xBF\xF0\x18\x61\x00\x00"),
         SLICE("\x20\x14\xBF\xF0\x18\x61\x00\x00")},
        {"{\"b\":null,\"a\":1}", SLICE("\x20\x01\x61\x00\x14\xBF\xF0\x01\x62\x00\x0C\x00"),
         SLICE("\x1C\x0C\x62\x00\x14\x61\x00\xBF\xF0\x00")},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_int_equal(DOCUMENT_KEY_VERSION, 1);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        if (!slice_equal(key_of(arena, DOCUMENT_ORDER_SQL, samples[i].json), samples[i].sql))
            fail_msg("the SQL key of %s has changed", samples[i].json);
        if (!slice_equal(key_of(arena, DOCUMENT_ORDER_MONGO, samples[i].json), samples[i].mongo))
            fail_msg("the MongoDB key of %s has changed", samples[i].json);
    }
}

static void keys_in_a_row_are_read_one_by_one(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct slice rest;
    struct error err;
    const char *const parts[] = {"\"a\\u0000b\"", "[1,{\"x\":[]}]", "-2.5", "null", "true"};

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        buf_append_slice(&buf, key_of(arena, DOCUMENT_ORDER_SQL, parts[i]));
    rest = buf_slice(&buf);
    assert_ok(document_key_read(DOCUMENT_ORDER_SQL, &rest, arena, &value, &err), &err);
    assert_int_equal(value.type, DOCUMENT_STRING);
    assert_slice_equal(value.text, SLICE("a\0b"));
    assert_ok(document_key_read(DOCUMENT_ORDER_SQL, &rest, arena, &value, &err), &err);
    assert_int_equal(value.type, DOCUMENT_ARRAY);
    assert_null(value.document.data);
    assert_ok(document_key_read(DOCUMENT_ORDER_SQL, &rest, arena, &value, &err), &err);
    assert_int_equal(value.type, DOCUMENT_DOUBLE);
    assert_true(value.number == -2.5);
    assert_ok(document_key_skip(DOCUMENT_ORDER_SQL, &rest, &err), &err);
    assert_ok(document_key_read(DOCUMENT_ORDER_SQL, &rest, arena, &value, &err), &err);
    assert_true(value.boolean);
    assert_int_equal(rest.len, 0);
}

static void a_number_comes_back_in_the_least_type_that_holds_it(void **state UNUSED)
{
    static const struct {
        const char *json;
        enum document_type type;
    } samples[] = {
        {"1.0", DOCUMENT_INT32},
        {"-2147483648", DOCUMENT_INT32},
        {"2147483648", DOCUMENT_INT64},
        {"9007199254740993", DOCUMENT_INT64},
        {"9223372036854775807", DOCUMENT_INT64},
        {"-9223372036854775807", DOCUMENT_INT64},
        {"1e300", DOCUMENT_DOUBLE},
        {"0.1", DOCUMENT_DOUBLE},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct slice key = key_of(arena, DOCUMENT_ORDER_MONGO, samples[i].json);
        struct document_value value, original = value_of(arena, samples[i].json);
        struct error err;

        assert_ok(document_key_read(DOCUMENT_ORDER_MONGO, &key, arena, &value, &err), &err);
        assert_int_equal(value.type, samples[i].type);
        assert_int_equal(document_compare(DOCUMENT_ORDER_MONGO, &value, &original), 0);
    }
}

static void a_long_text_is_cut_without_being_encoded_whole(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text, key;
    struct document_value value;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (int i = 0; i < 100000; i++)
        buf_append_byte(&text, 'x');
    value = document_string(buf_slice(&text));
    buf_init(&key, 200);
    assert_true(document_key_append_cut(DOCUMENT_ORDER_SQL, &value, 100, &key));
    assert_int_equal(key.len, 100);
    assert_false(buf_overflowed(&key));
}

/* A key that fits exactly is whole; one byte less cuts it. */
static void a_key_is_cut_only_when_it_is_longer(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const char *const texts[] = {"null",    "1",           "9007199254740993",
                                        "\"abc\"", "[[1],\"x\"]", "{\"a\":{\"b\":\"c\"}}"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct slice whole = key_of(arena, DOCUMENT_ORDER_SQL, texts[i]);
        struct document_value value = value_of(arena, texts[i]);

        for (size_t max = 1; max <= whole.len + 2; max++) {
            CLEANUP(buf_done) struct buf buf;
            bool cut;

            buf_init(&buf, BUF_DEFAULT_MAX);
            cut = document_key_append_cut(DOCUMENT_ORDER_SQL, &value, max, &buf);
            assert_int_equal(cut, max < whole.len);
            assert_slice_equal(buf_slice(&buf), slice_first(whole, MIN(max, whole.len)));
        }
    }
}

static void bytes_that_are_no_key_are_refused(void **state UNUSED)
{
    static const struct slice samples[] = {
        SLICE(""),
        SLICE("\x00"),
        SLICE("\xFF"),
        SLICE("\x15"),
        SLICE("\x14"),
        SLICE("\x14\x80"),
        SLICE("\x14\x80\x01"),
        SLICE("\x18\x61"),
        SLICE("\x10"),
        SLICE("\x24\xff\xff\xff\xff\x00"),
        SLICE("\x28\x61"),
        SLICE("\x1C\x0C"),
        SLICE("\x20\x01\x61\x00"),
        SLICE("\x14\xC3\x41\x01\x01\x01\x01\x01\x01\x01\xFF\xFF\x5B\x00"), /* a point too far */
        SLICE("\x14\xC3\x41\x01\x01\x01\x01\x01\x01\x01\x40\x10\x00"),     /* no digits */
        SLICE("\x20\x01\x61\x01\x01\x00\x0C\x00"), /* a name with a zero byte */
        SLICE("\x20\x01\x61\x01\x00\x0C\x00"),     /* half an escape */
        SLICE("\x34\x61\x01\x01\x00\x00"),         /* so in a pattern */
        SLICE("\x34\x61\x00\x01\x01\x00"),         /* and in options */
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct slice key = samples[i];
        struct document_value value;
        struct error err;

        assert_fails(document_key_read(DOCUMENT_ORDER_SQL, &key, arena, &value, &err), &err,
                     ERROR_STORE_CORRUPT);
    }
}

/* In MongoDB's order an object is made of its names again, and BSON has no name with a zero byte.
 */
static void a_name_with_a_zero_byte_is_no_key_in_mongodbs_order(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice bad = SLICE("\x1C\x0C\x61\x01\x01\x62\x00\x00");
    struct slice good = SLICE("\x1C\x0C\x61\x01\x02\x62\x00\x00");
    struct document_value value;
    struct error err;

    assert_fails(document_key_read(DOCUMENT_ORDER_MONGO, &bad, arena, &value, &err), &err,
                 ERROR_STORE_CORRUPT);
    assert_ok(document_key_read(DOCUMENT_ORDER_MONGO, &good, arena, &value, &err), &err);
    assert_int_equal(value.type, DOCUMENT_OBJECT);
    assert_true(value.document.data != NULL);
}

static void nesting_in_a_key_is_followed_only_so_far(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice key;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (int i = 0; i < 1000000; i++)
        buf_append_byte(&buf, 0x1C);
    key = buf_slice(&buf);
    assert_fails(document_key_skip(DOCUMENT_ORDER_SQL, &key, &err), &err, ERROR_STORE_CORRUPT);
}

static void an_object_comes_back_whole_in_its_order_of_fields(void **state UNUSED)
{
    static const char *const samples[] = {
        "{}", "{\"b\":1,\"a\":{\"x\":[1,\"two\",[],{\"y\":null}]}}", "{\"a\":true,\"b\":0.5}"};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CLEANUP(buf_done) struct buf key;
        CLEANUP(buf_done) struct buf json;
        struct document_value value = document_object(document_of(arena, samples[i]));
        struct slice rest;
        struct error err;

        buf_init(&key, BUF_DEFAULT_MAX);
        buf_init(&json, BUF_DEFAULT_MAX);
        document_key_append(DOCUMENT_ORDER_MONGO, &value, &key);
        buf_append_byte(&key, 7);
        rest = buf_slice(&key);
        assert_ok(document_key_read(DOCUMENT_ORDER_MONGO, &rest, arena, &value, &err), &err);
        assert_int_equal(rest.len, 1);
        document_json_write(value.document, &json);
        assert_slice_equal(buf_slice(&json), slice_of_text(samples[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_what_version_1_says),
        cmocka_unit_test(keys_in_a_row_are_read_one_by_one),
        cmocka_unit_test(an_object_comes_back_whole_in_its_order_of_fields),
        cmocka_unit_test(a_number_comes_back_in_the_least_type_that_holds_it),
        cmocka_unit_test(a_long_text_is_cut_without_being_encoded_whole),
        cmocka_unit_test(a_key_is_cut_only_when_it_is_longer),
        cmocka_unit_test(bytes_that_are_no_key_are_refused),
        cmocka_unit_test(a_name_with_a_zero_byte_is_no_key_in_mongodbs_order),
        cmocka_unit_test(nesting_in_a_key_is_followed_only_so_far),
    };
    return cmocka_run_group_tests_name("document/key", tests, NULL, NULL);
}
