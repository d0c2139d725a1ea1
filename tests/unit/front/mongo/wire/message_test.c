#include "support/check.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/wire/compress.h"
#include "front/mongo/wire/message.h"

struct fixture {
    struct arena *arena;
    struct buf bytes;
    struct mongo_message message;
    struct error err;
};

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    fixture->arena = arena_new();
    buf_init(&fixture->bytes, BUF_DEFAULT_MAX);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_free(fixture->arena);
    buf_done(&fixture->bytes);
    memory_free(fixture);
    return 0;
}

/* --- Making messages ------------------------------------------------------------------------- */

static void begin(struct fixture *fixture, uint32_t operation)
{
    buf_clear(&fixture->bytes);
    buf_append_le32(&fixture->bytes, 0);
    buf_append_le32(&fixture->bytes, 7);
    buf_append_le32(&fixture->bytes, 0);
    buf_append_le32(&fixture->bytes, operation);
}

static void end(struct fixture *fixture)
{
    bytes_put_le32(fixture->bytes.data, (uint32_t)fixture->bytes.len);
}

static void ping_append(struct buf *out, bool database)
{
    size_t document = document_begin(out);

    document_append_int32(out, SLICE("ping"), 1);
    if (database)
        document_append_string(out, SLICE("$db"), SLICE("shop"));
    document_end(out, document);
}

static void sequence_append(struct buf *out, const char *name, int count)
{
    size_t at;

    buf_append_byte(out, 1);
    at = out->len;
    buf_append_le32(out, 0);
    buf_append(out, name, strlen(name) + 1);
    for (int i = 0; i < count; i++) {
        size_t document = document_begin(out);

        document_append_int32(out, SLICE("n"), i);
        document_end(out, document);
    }
    bytes_put_le32(out->data + at, (uint32_t)(out->len - at));
}

static void msg_begin(struct fixture *fixture, uint32_t flags)
{
    begin(fixture, MONGO_OP_MSG);
    buf_append_le32(&fixture->bytes, flags);
}

static void ping(struct fixture *fixture, uint32_t flags)
{
    msg_begin(fixture, flags);
    buf_append_byte(&fixture->bytes, 0);
    ping_append(&fixture->bytes, true);
    end(fixture);
}

static enum mongo_read read_now(struct fixture *fixture)
{
    return mongo_message_read(buf_slice(&fixture->bytes), false, fixture->arena, &fixture->message,
                              &fixture->err);
}

/* --- Reading --------------------------------------------------------------------------------- */

static void a_command_is_read(void **state)
{
    struct fixture *fixture = *state;

    ping(fixture, MONGO_FLAG_EXHAUST_ALLOWED);
    assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
    assert_int_equal(fixture->message.id, 7);
    assert_int_equal(fixture->message.operation, MONGO_OP_MSG);
    assert_int_equal(fixture->message.flags, MONGO_FLAG_EXHAUST_ALLOWED);
    assert_slice_equal(fixture->message.database, SLICE("shop"));
    assert_int_equal(document_count(fixture->message.body), 2);
}

static void sequences_stand_before_or_behind_the_command(void **state)
{
    struct fixture *fixture = *state;

    for (int first = 0; first < 2; first++) {
        msg_begin(fixture, 0);
        if (first)
            sequence_append(&fixture->bytes, "documents", 3);
        buf_append_byte(&fixture->bytes, 0);
        ping_append(&fixture->bytes, true);
        if (!first)
            sequence_append(&fixture->bytes, "documents", 3);
        sequence_append(&fixture->bytes, "none", 0);
        end(fixture);
        assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
        assert_int_equal(fixture->message.sequence_count, 2);
        assert_slice_equal(fixture->message.sequences[0].name, SLICE("documents"));
        assert_int_equal(fixture->message.sequences[0].documents.len, 3 * 12);
        assert_int_equal(fixture->message.sequences[1].documents.len, 0);
    }
}

static void a_name_in_two_places_is_a_duplicate(void **state)
{
    struct fixture *fixture = *state;

    msg_begin(fixture, 0);
    buf_append_byte(&fixture->bytes, 0);
    ping_append(&fixture->bytes, true);
    sequence_append(&fixture->bytes, "ping", 1);
    end(fixture);
    assert_int_equal(read_now(fixture), MONGO_READ_REFUSED);
    assert_int_equal(mongo_error_code(&fixture->err), 40413);
}

static void a_checksum_is_verified(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(mongo_crc32c(SLICE("123456789")), 0xE3069283);
    ping(fixture, MONGO_FLAG_CHECKSUM);
    bytes_put_le32(fixture->bytes.data, (uint32_t)fixture->bytes.len + 4);
    buf_append_le32(&fixture->bytes, mongo_crc32c(buf_slice(&fixture->bytes)));
    assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
    fixture->bytes.data[fixture->bytes.len - 1] ^= 1;
    assert_int_equal(read_now(fixture), MONGO_READ_LAST);
    assert_int_equal(mongo_error_code(&fixture->err), 288);
}

static void an_unknown_flag_that_is_required_is_refused(void **state)
{
    struct fixture *fixture = *state;

    ping(fixture, 1 << 2);
    assert_int_equal(read_now(fixture), MONGO_READ_LAST);
    assert_int_equal(mongo_error_code(&fixture->err), 223);
    ping(fixture, 1u << 31);
    assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
}

static void bad_bson_is_refused_and_the_connection_goes_on(void **state)
{
    struct fixture *fixture = *state;

    ping(fixture, 0);
    fixture->bytes.data[MONGO_HEADER_LEN + 4 + 1 + 4] = 0x77; /* no type of BSON */
    assert_int_equal(read_now(fixture), MONGO_READ_REFUSED);
    assert_int_equal(mongo_error_code(&fixture->err), 22);
}

static void a_command_names_its_database(void **state)
{
    struct fixture *fixture = *state;

    msg_begin(fixture, 0);
    buf_append_byte(&fixture->bytes, 0);
    ping_append(&fixture->bytes, false);
    end(fixture);
    assert_int_equal(read_now(fixture), MONGO_READ_REFUSED);
    assert_int_equal(mongo_error_code(&fixture->err), 40414);
}

static void a_frame_that_does_not_hold_is_broken(void **state)
{
    struct fixture *fixture = *state;

    msg_begin(fixture, 0); /* without a command */
    end(fixture);
    assert_int_equal(read_now(fixture), MONGO_READ_BROKEN);
    begin(fixture, 2002); /* OP_INSERT */
    end(fixture);
    assert_int_equal(read_now(fixture), MONGO_READ_BROKEN);
    for (size_t cut = 1; cut < 25; cut++) { /* at any place */
        ping(fixture, 0);
        fixture->bytes.len -= cut;
        end(fixture);
        assert_int_not_equal(read_now(fixture), MONGO_READ_GOOD);
    }
    ping(fixture, 0); /* another length than the bytes have */
    bytes_put_le32(fixture->bytes.data, (uint32_t)fixture->bytes.len + 1);
    assert_int_equal(read_now(fixture), MONGO_READ_BROKEN);
}

static void a_query_on_cmd_is_a_command(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, MONGO_OP_QUERY);
    buf_append_le32(&fixture->bytes, 4);
    buf_append(&fixture->bytes, "admin.$cmd", 11);
    buf_append_le32(&fixture->bytes, 0);
    buf_append_le32(&fixture->bytes, (uint32_t)-1);
    ping_append(&fixture->bytes, false);
    end(fixture);
    assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
    assert_slice_equal(fixture->message.database, SLICE("admin"));
    fixture->bytes.data[20] = 'x';
    fixture->bytes.data[26] = 'x'; /* no longer .$cmd */
    assert_int_equal(read_now(fixture), MONGO_READ_REFUSED);
    assert_int_equal(mongo_error_code(&fixture->err), 352);
}

/* --- Compression ----------------------------------------------------------------------------- */

static void compressed(struct fixture *fixture, enum mongo_compressor compressor, uint32_t said)
{
    CLEANUP(buf_done) struct buf plain;

    buf_init(&plain, BUF_DEFAULT_MAX);
    ping(fixture, 0);
    buf_append_slice(&plain, slice_skip(buf_slice(&fixture->bytes), MONGO_HEADER_LEN));
    begin(fixture, MONGO_OP_COMPRESSED);
    buf_append_le32(&fixture->bytes, MONGO_OP_MSG);
    buf_append_le32(&fixture->bytes, said ? said : (uint32_t)plain.len);
    buf_append_byte(&fixture->bytes, (uint8_t)compressor);
    assert_true(mongo_compress(compressor, buf_slice(&plain), &fixture->bytes));
    end(fixture);
}

static void what_is_compressed_is_unpacked(void **state)
{
    struct fixture *fixture = *state;

    for (int i = MONGO_COMPRESSOR_NONE; i <= MONGO_COMPRESSOR_ZSTD; i++) {
        compressed(fixture, (enum mongo_compressor)i, 0);
        assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
        assert_int_equal(fixture->message.operation, MONGO_OP_MSG);
        assert_int_equal(fixture->message.compressor, i);
        assert_slice_equal(fixture->message.database, SLICE("shop"));
    }
}

static void a_wrong_size_of_what_is_compressed_is_broken(void **state)
{
    static const uint32_t sizes[] = {1, 10, 10000, 47999999, 0x7FFFFFFF, 0xFFFFFFFF};
    struct fixture *fixture = *state;

    for (int i = MONGO_COMPRESSOR_NONE; i <= MONGO_COMPRESSOR_ZSTD; i++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
            compressed(fixture, (enum mongo_compressor)i, sizes[s]);
            assert_int_equal(read_now(fixture), MONGO_READ_BROKEN);
        }
    compressed(fixture, MONGO_COMPRESSOR_ZLIB, 0);
    assert_true(mongo_message_unpacked_len(buf_slice(&fixture->bytes)) > MONGO_HEADER_LEN);
    bytes_put_le32(fixture->bytes.data + MONGO_HEADER_LEN + 4, 48000000);
    assert_int_equal(mongo_message_unpacked_len(buf_slice(&fixture->bytes)), 0);
}

/* --- Replies --------------------------------------------------------------------------------- */

static struct slice body_of(struct fixture *fixture, size_t len)
{
    CLEANUP(buf_done) struct buf body;
    size_t document;

    buf_init(&body, BUF_DEFAULT_MAX);
    document = document_begin(&body);
    document_append_string(&body, SLICE("text"),
                           slice_of(arena_alloc_zero(fixture->arena, len), len));
    document_end(&body, document);
    return arena_copy(fixture->arena, buf_slice(&body));
}

static void a_reply_names_its_request(void **state)
{
    struct fixture *fixture = *state;
    struct slice body = body_of(fixture, 5);
    CLEANUP(buf_done) struct buf out;
    struct mongo_header header;

    buf_init(&out, BUF_DEFAULT_MAX);
    ping(fixture, 0);
    assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
    assert_true(mongo_reply_append(&fixture->message, &(struct mongo_reply){.id = 99, .body = body},
                                   &out, &fixture->err));
    mongo_header_read(&header, out.data);
    assert_int_equal(header.length, out.len);
    assert_int_equal(header.id, 99);
    assert_int_equal(header.response_to, 7);
    assert_int_equal(header.operation, MONGO_OP_MSG);
    assert_slice_equal(slice_skip(buf_slice(&out), 21), body);
}

static void a_reply_is_compressed_as_its_request_was(void **state)
{
    struct fixture *fixture = *state;
    struct slice body = body_of(fixture, 100000);

    for (int i = MONGO_COMPRESSOR_SNAPPY; i <= MONGO_COMPRESSOR_ZSTD; i++) {
        CLEANUP(buf_done) struct buf out;
        struct mongo_message again;

        buf_init(&out, BUF_DEFAULT_MAX);
        compressed(fixture, (enum mongo_compressor)i, 0);
        assert_int_equal(read_now(fixture), MONGO_READ_GOOD);
        assert_true(mongo_reply_append(
            &fixture->message, &(struct mongo_reply){.id = 1, .body = body}, &out, &fixture->err));
        assert_true(out.len < 20000);
        /* as far as that it has no $db a reply is a message like others */
        assert_int_equal(
            mongo_message_read(buf_slice(&out), false, fixture->arena, &again, &fixture->err),
            MONGO_READ_REFUSED);
        assert_slice_equal(again.body, body);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_command_is_read),
        TEST(sequences_stand_before_or_behind_the_command),
        TEST(a_name_in_two_places_is_a_duplicate),
        TEST(a_checksum_is_verified),
        TEST(an_unknown_flag_that_is_required_is_refused),
        TEST(bad_bson_is_refused_and_the_connection_goes_on),
        TEST(a_command_names_its_database),
        TEST(a_frame_that_does_not_hold_is_broken),
        TEST(a_query_on_cmd_is_a_command),
        TEST(what_is_compressed_is_unpacked),
        TEST(a_wrong_size_of_what_is_compressed_is_broken),
        TEST(a_reply_names_its_request),
        TEST(a_reply_is_compressed_as_its_request_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
