#include "document/bson.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/check.h"
#include "support/documents.h"

#include <bson/bson.h>

static void a_document_written_by_hand_is_byte_for_byte_libbsons(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    char text[DOCUMENT_INDEX_SIZE];
    bson_t *theirs = BCON_NEW("id", "a", "n", BCON_INT32(-7), "big", BCON_INT64(1ll << 40), "half",
                              BCON_DOUBLE(0.5), "yes", BCON_BOOL(true), "none", BCON_NULL, "when",
                              BCON_DATE_TIME(12345), "tags", "[", "x", "y", "]", "in", "{", "deep",
                              "{", "}", "}");
    size_t item, tags, in;

    buf_init(&buf, BUF_DEFAULT_MAX);
    item = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), SLICE("a"));
    document_append_int32(&buf, SLICE("n"), -7);
    document_append_int64(&buf, SLICE("big"), (int64_t)1 << 40);
    document_append_double(&buf, SLICE("half"), 0.5);
    document_append_bool(&buf, SLICE("yes"), true);
    document_append_null(&buf, SLICE("none"));
    document_append_date(&buf, SLICE("when"), 12345);
    tags = document_append_array_begin(&buf, SLICE("tags"));
    document_append_string(&buf, document_index_key(0, text), SLICE("x"));
    document_append_string(&buf, document_index_key(1, text), SLICE("y"));
    document_end(&buf, tags);
    in = document_append_object_begin(&buf, SLICE("in"));
    document_end(&buf, document_append_object_begin(&buf, SLICE("deep")));
    document_end(&buf, in);
    document_end(&buf, item);
    assert_slice_equal(buf_slice(&buf), slice_of(bson_get_data(theirs), theirs->len));
    bson_destroy(theirs);
}

static void index_keys_are_decimal(void **state UNUSED)
{
    char text[DOCUMENT_INDEX_SIZE];

    assert_slice_equal(document_index_key(0, text), SLICE("0"));
    assert_slice_equal(document_index_key(109, text), SLICE("109"));
    assert_slice_equal(document_index_key(UINT32_MAX, text), SLICE("4294967295"));
}

static void find_gives_the_first_of_that_name(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_int32(&buf, SLICE("a"), 1);
    document_append_int32(&buf, SLICE("ab"), 2);
    document_append_int32(&buf, SLICE("a"), 3);
    document_end(&buf, begin);
    assert_true(document_find(buf_slice(&buf), SLICE("a"), &value));
    assert_int_equal(value.int32, 1);
    assert_true(document_find(buf_slice(&buf), SLICE("ab"), &value));
    assert_int_equal(value.int32, 2);
    assert_false(document_find(buf_slice(&buf), SLICE("b"), &value));
    assert_true(document_find_index(buf_slice(&buf), 2, &value));
    assert_int_equal(value.int32, 3);
    assert_false(document_find_index(buf_slice(&buf), 3, &value));
    assert_int_equal(document_count(buf_slice(&buf)), 3);
}

static void a_full_buffer_is_seen_at_the_end(void **state UNUSED)
{
    for (size_t max = 0; max < 40; max++) {
        CLEANUP(buf_done) struct buf buf;
        size_t item, list;

        buf_init(&buf, max);
        item = document_begin(&buf);
        document_append_string(&buf, SLICE("id"), SLICE("some text"));
        list = document_append_array_begin(&buf, SLICE("list"));
        document_append_int32(&buf, SLICE("0"), 1);
        document_end(&buf, list);
        document_end(&buf, item);
        assert_true(buf_overflowed(&buf));
    }
}

static void numbers_convert_only_when_they_stay_the_same(void **state UNUSED)
{
    struct document_value value = document_double(3);
    double number;
    int64_t whole;

    assert_true(document_to_int64(&value, &whole));
    assert_int_equal(whole, 3);
    value = document_double(3.5);
    assert_false(document_to_int64(&value, &whole));
    value = document_double(9223372036854775808.0);
    assert_false(document_to_int64(&value, &whole));
    value = document_double(-9223372036854775808.0);
    assert_true(document_to_int64(&value, &whole));
    assert_true(whole == INT64_MIN);
    value = document_string(SLICE("3"));
    assert_false(document_to_int64(&value, &whole));
    assert_false(document_to_double(&value, &number));
}

static void decimals_convert_only_when_they_stay_the_same(void **state UNUSED)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t number;
        double nearest;
    } samples[] = {
        {"3.00", true, 3, 3},
        {"1E+3", true, 1000, 1000},
        {"-9223372036854775808", true, INT64_MIN, -9223372036854775808.0},
        {"9223372036854775808", false, 0, 9223372036854775808.0},
        {"9223372036854775807", true, INT64_MAX, 9223372036854775808.0},
        {"0.1", false, 0, 0.1},
        {"-0", true, 0, 0},
        {"1E+19", false, 0, 1e19},
        {"1E+6000", false, 0, __builtin_inf()},
        {"1E-6000", false, 0, 0},
        {"-Infinity", false, 0, -__builtin_inf()},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        bson_decimal128_t theirs;
        struct document_value value = {.type = DOCUMENT_DECIMAL128};
        int64_t whole = 0;
        double nearest;

        assert_true(bson_decimal128_from_string(samples[i].text, &theirs));
        value.decimal = (struct document_decimal){theirs.low, theirs.high};
        if (document_to_int64(&value, &whole) != samples[i].whole || whole != samples[i].number)
            fail_msg("%s as an int64 is %lld", samples[i].text, (long long)whole);
        assert_true(document_to_double(&value, &nearest));
        if (nearest != samples[i].nearest)
            fail_msg("%s as a double is %.17g", samples[i].text, nearest);
    }
}

/* Arrays of doubles with others among them, and cut short anywhere: what comes in runs is what
 * comes one by one, and nothing beyond the end is looked at (the bytes are a block of their own).
 */
static void doubles_come_in_runs(void **state UNUSED)
{
    enum { MOST = 1200 };
    struct random random;

    random_seed(&random, 5);
    for (int round = 0; round < 300; round++) {
        uint32_t elements = (uint32_t)random_below(&random, round < 100 ? 12 : MOST);
        unsigned others = (unsigned)random_below(&random, 3) * 16; /* of 256 */
        CLEANUP(buf_done) struct buf buf;
        CLEANUP(memory_free) uint8_t *bytes = NULL;
        struct document_iter one, run;
        double numbers[64];
        size_t begin, len;

        buf_init(&buf, BUF_DEFAULT_MAX);
        begin = document_begin(&buf);
        for (uint32_t i = 0; i < elements; i++) {
            char text[DOCUMENT_INDEX_SIZE];
            struct slice key = document_index_key(i, text);

            if (random_below(&random, 256) < others)
                document_append_int64(&buf, key, (int64_t)i);
            else
                document_append_double(&buf, key, (double)i / 3);
        }
        document_end(&buf, begin);
        len = buf.len;
        if (round % 3 == 2 && len > 5) { /* broken off: the length and the end say otherwise */
            len = 5 + (size_t)random_below(&random, len - 5);
            bytes_put_le32(buf.data, (uint32_t)len);
            buf.data[len - 1] = 0;
        }
        bytes = memory_alloc(len);
        memcpy(bytes, buf.data, len);
        document_iter_init(&one, slice_of(bytes, len));
        document_iter_init(&run, slice_of(bytes, len));
        for (;;) {
            size_t max = 1 + (size_t)random_below(&random, ARRAY_LEN(numbers));
            size_t count = document_iter_doubles(&run, numbers, max);
            bool more;

            assert_true(count <= max);
            for (size_t i = 0; i < count; i++) {
                assert_true(document_iter_next(&one));
                assert_int_equal(one.value.type, DOCUMENT_DOUBLE);
                assert_true(one.value.number == numbers[i]);
            }
            more = document_iter_next(&run);
            assert_int_equal(document_iter_next(&one), more);
            assert_int_equal(one.broken, run.broken);
            if (!more)
                break;
            assert_int_equal(one.value.type, run.value.type);
            assert_true(slice_equal(one.key, run.key));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_written_by_hand_is_byte_for_byte_libbsons),
        cmocka_unit_test(index_keys_are_decimal),
        cmocka_unit_test(find_gives_the_first_of_that_name),
        cmocka_unit_test(doubles_come_in_runs),
        cmocka_unit_test(a_full_buffer_is_seen_at_the_end),
        cmocka_unit_test(numbers_convert_only_when_they_stay_the_same),
        cmocka_unit_test(decimals_convert_only_when_they_stay_the_same),
    };
    return cmocka_run_group_tests_name("document/bson", tests, NULL, NULL);
}
