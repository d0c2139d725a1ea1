#include "front/rest/item/hybrid_row.h"

#include "base/bytes.h"
#include "support/check.h"

#include <stdlib.h>

/* Bytes written by hand, as the layout in hybrid_row.h says. */
static void append_hex(struct buf *buf, const char *hex)
{
    for (; *hex; hex += *hex == ' ' ? 1 : 2) {
        char digits[3] = {hex[0], hex[0] == ' ' ? '\0' : hex[1], '\0'};

        if (*hex != ' ')
            buf_append_byte(buf, (uint8_t)strtoul(digits, NULL, 16));
    }
}

/* 2147473648 is 7FFFD8F0, 2147473649 7FFFD8F1, 2145473648 7FE15470. */
static const char segment[] = "81 F0D8FF7F 01 0A000000";

static void append_record(struct buf *body, const struct buf *row)
{
    append_hex(body, "81 F1D8FF7F");
    buf_append_le32(body, (uint32_t)row->len);
    buf_append_le32(body, hybrid_row_crc32(buf_slice(row)));
    buf_append_slice(body, buf_slice(row));
}

/* A body of one operation whose row is given. */
static void body_of(struct buf *body, const char *row_hex)
{
    CLEANUP(buf_done) struct buf row;

    buf_init(&row, 1024);
    buf_init(body, 4096);
    append_hex(&row, row_hex);
    append_hex(body, segment);
    append_record(body, &row);
}

static bool read_one(const struct buf *body, struct hybrid_operation *ret_operation,
                     struct error *err)
{
    struct hybrid_reader reader;
    bool end;

    return hybrid_reader_init(&reader, buf_slice(body), err) &&
           hybrid_reader_next(&reader, ret_operation, &end, err) && !end;
}

static void the_checksum_is_the_standard_one(void **state UNUSED)
{
    assert_int_equal(hybrid_row_crc32(SLICE("123456789")), 0xCBF43926);
    assert_int_equal(hybrid_row_crc32(SLICE("")), 0);
}

static void an_operation_is_read_field_by_field(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf body;
    struct hybrid_operation operation;
    struct error err;

    /* operationType 20, resourceType 2, partitionKey ["a"], id "i", resourceBody {}; ifMatch "e",
     * minimalReturnPreference true. Present: bits 0, 1, 2, 4 and 6. */
    body_of(&body, "81 7054E17F 57 14000000 02000000 05 5B2261225D 01 69 02 7B7D "
                   "14 09 01 65 03 0C");
    assert_ok(read_one(&body, &operation, &err), &err);
    assert_int_equal(operation.operation_type, 20);
    assert_int_equal(operation.resource_type, 2);
    assert_slice_equal(operation.partition_key, SLICE("[\"a\"]"));
    assert_slice_equal(operation.id, SLICE("i"));
    assert_slice_equal(operation.resource_body, SLICE("{}"));
    assert_slice_equal(operation.if_match, SLICE("e"));
    assert_true(operation.minimal);
    assert_null(operation.effective_partition_key.data);
    assert_null(operation.if_none_match.data);
}

static void all_sparse_fields_are_known(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf body;
    struct hybrid_operation operation;
    struct error err;

    body_of(&body, "81 7054E17F 03 00000000 02000000 "
                   "14 08 07 4578636C756465 14 0A 01 2A 07 0B 3C000000 02 0C");
    assert_ok(read_one(&body, &operation, &err), &err);
    assert_slice_equal(operation.indexing_directive, SLICE("Exclude"));
    assert_slice_equal(operation.if_none_match, SLICE("*"));
    assert_int_equal(operation.ttl_seconds, 60);
    assert_false(operation.minimal);
}

static void a_body_may_hold_several_operations_or_none(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf body, row;
    struct hybrid_operation operation;
    struct hybrid_reader reader;
    struct error err;
    bool end;

    buf_init(&row, 1024);
    buf_init(&body, 4096);
    append_hex(&row, "81 7054E17F 03 02000000 02000000");
    append_hex(&body, segment);
    assert_ok(hybrid_reader_init(&reader, buf_slice(&body), &err), &err);
    assert_ok(hybrid_reader_next(&reader, &operation, &end, &err), &err);
    assert_true(end);
    append_record(&body, &row);
    append_record(&body, &row);
    assert_ok(hybrid_reader_init(&reader, buf_slice(&body), &err), &err);
    for (int i = 0; i < 3; i++) {
        assert_ok(hybrid_reader_next(&reader, &operation, &end, &err), &err);
        assert_int_equal(end, i == 2);
    }
}

static void a_segment_may_carry_more_than_its_length(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf body;
    struct hybrid_reader reader;
    struct error err;
    struct hybrid_operation operation;
    bool end;

    /* A comment, "hi", is the second name of the segment's schema. */
    buf_init(&body, 100);
    append_hex(&body, "81 F0D8FF7F 01 0F000000 14 02 02 6869");
    assert_ok(hybrid_reader_init(&reader, buf_slice(&body), &err), &err);
    assert_ok(hybrid_reader_next(&reader, &operation, &end, &err), &err);
    assert_true(end);
}

static void malformed_bodies_are_refused(void **state UNUSED)
{
    static const char *const segments[] = {"",
                                           "81",
                                           "80 F0D8FF7F 01 0A000000",
                                           "81 F1D8FF7F 01 0A000000",
                                           "81 F0D8FF7F 00 0A000000",
                                           "81 F0D8FF7F 01 09000000",
                                           "81 F0D8FF7F 01 0B000000",
                                           "81 F0D8FF7F 01 FFFFFFFF"};
    static const char *const rows[] = {
        "",
        "81 7054E17F",
        "81 7154E17F 03 00000000 02000000",                /* another schema */
        "81 7054E17F 01 00000000 02000000",                /* no resource type */
        "81 7054E17F 03 00000000 0200",                    /* cut short */
        "81 7054E17F 07 00000000 02000000 05 5B22",        /* a text that ends too soon */
        "81 7054E17F 07 00000000 02000000 FFFFFFFFFFFF",   /* a length that does not end */
        "81 7054E17F 03 00000000 02000000 14",             /* a field without a path */
        "81 7054E17F 03 00000000 02000000 14 07 00",       /* a name that is not sparse */
        "81 7054E17F 03 00000000 02000000 07 09 00000000", /* a text of the wrong type */
        "81 7054E17F 03 00000000 02000000 14 0F 6162",     /* a name of its own */
        "81 7054E17F 03 00000000 02000000 01 0C",          /* a bool that is null */
    };
    struct hybrid_operation operation;
    struct hybrid_reader reader;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(segments); i++) {
        CLEANUP(buf_done) struct buf body;

        buf_init(&body, 100);
        append_hex(&body, segments[i]);
        assert_fails(hybrid_reader_init(&reader, buf_slice(&body), &err), &err, ERROR_BAD_REQUEST);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_done) struct buf body;

        body_of(&body, rows[i]);
        assert_fails(read_one(&body, &operation, &err), &err, ERROR_BAD_REQUEST);
    }
}

static void every_byte_of_a_record_is_under_its_checksum(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf body;
    struct hybrid_operation operation;
    struct error err;

    body_of(&body, "81 7054E17F 13 02000000 02000000 01 69");
    for (size_t i = 10; i < body.len; i++) {
        body.data[i] ^= 1;
        assert_fails(read_one(&body, &operation, &err), &err, ERROR_BAD_REQUEST);
        body.data[i] ^= 1;
    }
    for (size_t len = 10; len < body.len; len++) {
        struct buf cut = {.data = body.data, .len = len};

        if (len > 10)
            assert_fails(read_one(&cut, &operation, &err), &err, ERROR_BAD_REQUEST);
    }
}

static void a_result_is_written_as_the_schema_says(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf answer, expected, row;
    struct hybrid_result result = {.status = 429,
                                   .substatus = 3200,
                                   .etag = SLICE("\"e\""),
                                   .resource_body = SLICE("{}"),
                                   .retry_after_ms = 7,
                                   .charge = 1.5};

    buf_init(&answer, 1024);
    buf_init(&expected, 1024);
    buf_init(&row, 1024);
    hybrid_row_append_segment(&answer);
    hybrid_row_append_result(&answer, &result);
    append_hex(&row, "81 7154E17F 0F AD010000 800C0000 03 226522 02 7B7D 0B 05 07000000 "
                     "10 06 000000000000F83F");
    append_hex(&expected, segment);
    append_record(&expected, &row);
    assert_slice_equal(buf_slice(&answer), buf_slice(&expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_the_standard_one),
        cmocka_unit_test(an_operation_is_read_field_by_field),
        cmocka_unit_test(all_sparse_fields_are_known),
        cmocka_unit_test(a_body_may_hold_several_operations_or_none),
        cmocka_unit_test(a_segment_may_carry_more_than_its_length),
        cmocka_unit_test(malformed_bodies_are_refused),
        cmocka_unit_test(every_byte_of_a_record_is_under_its_checksum),
        cmocka_unit_test(a_result_is_written_as_the_schema_says),
    };
    return cmocka_run_group_tests_name("front/rest/item/hybrid_row", tests, NULL, NULL);
}
