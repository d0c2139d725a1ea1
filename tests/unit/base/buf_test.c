#include "base/buf.h"

#include "base/memory.h"
#include "support/check.h"

static void appending_past_the_maximum_marks_and_keeps(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 10);
    BUF_APPEND(&buf, "12345678");
    BUF_APPEND(&buf, "abc");
    assert_true(buf_overflowed(&buf));
    assert_slice_equal(buf_slice(&buf), SLICE("12345678"));
    BUF_APPEND(&buf, "ab");
    assert_slice_equal(buf_slice(&buf), SLICE("12345678ab"));
    assert_true(buf_overflowed(&buf));
    buf_clear(&buf);
    assert_false(buf_overflowed(&buf));
}

static void numbers_print_at_their_extremes(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    buf_append_uint64(&buf, 0);
    buf_append_byte(&buf, ' ');
    buf_append_uint64(&buf, UINT64_MAX);
    buf_append_byte(&buf, ' ');
    buf_append_int64(&buf, INT64_MIN);
    assert_slice_equal(buf_slice(&buf), SLICE("0 18446744073709551615 -9223372036854775808"));
}

static void fixed_width_numbers_have_the_order_they_name(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    buf_append_be32(&buf, 0x01020304);
    buf_append_le32(&buf, 0x01020304);
    buf_append_be64(&buf, 0x0102030405060708);
    buf_append_le64(&buf, 0x0102030405060708);
    assert_slice_equal(buf_slice(&buf),
                       SLICE("\1\2\3\4\4\3\2\1\1\2\3\4\5\6\7\x8\x8\7\6\5\4\3\2\1"));
}

static void consume_drops_from_the_front(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    BUF_APPEND(&buf, "GET / HTTP/1.1");
    buf_consume(&buf, 4);
    assert_slice_equal(buf_slice(&buf), SLICE("/ HTTP/1.1"));
    buf_consume(&buf, buf.len);
    assert_int_equal(buf.len, 0);
}

static void take_gives_the_bytes_away(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    CLEANUP(memory_free) uint8_t *bytes = NULL;
    size_t len;

    buf_init(&buf, 1000);
    buf_printf(&buf, "%s %d", "answer", 42);
    bytes = buf_take(&buf, &len);
    assert_slice_equal(slice_of(bytes, len), SLICE("answer 42"));
    assert_int_equal(buf.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_past_the_maximum_marks_and_keeps),
        cmocka_unit_test(numbers_print_at_their_extremes),
        cmocka_unit_test(fixed_width_numbers_have_the_order_they_name),
        cmocka_unit_test(consume_drops_from_the_front),
        cmocka_unit_test(take_gives_the_bytes_away),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
