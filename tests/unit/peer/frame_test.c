#include "peer/frame.h"

#include "base/memory.h"
#include "support/check.h"

/* What was appended, in one piece. */
static void output_flatten(struct net_output *output, struct buf *out)
{
    struct iovec pieces[16];
    size_t count;

    while ((count = net_output_pieces(output, pieces, ARRAY_LEN(pieces))) > 0) {
        for (size_t i = 0; i < count; i++) {
            buf_append(out, pieces[i].iov_base, pieces[i].iov_len);
            net_output_consume(output, pieces[i].iov_len);
        }
    }
}

static void frames_example(struct buf *out)
{
    struct net_chunk_pool pool = {0};
    struct net_output output;

    net_output_init(&output, &pool);
    peer_frame_append(&output, &(struct peer_frame){.kind = PEER_FRAME_REQUEST,
                                                    .flags = PEER_FRAME_FLAG,
                                                    .number = 3,
                                                    .id = 0x1234567890ABCDEF,
                                                    .len = 5});
    net_output_append(&output, SLICE("abcde"));
    peer_frame_append(&output, &(struct peer_frame){.kind = PEER_FRAME_LEAVING, .id = 7});
    output_flatten(&output, out);
    net_output_done(&output);
    net_chunk_pool_done(&pool);
}

static void example_check(struct peer_frame_reader *reader, struct slice bytes, size_t piece)
{
    struct peer_frame frame, frames[2] = {{0}};
    char payload[5] = "";
    size_t at = 0, given = 0, count = 0, taken;
    struct error err;
    bool done;

    while (count < 2) {
        given = MIN(given + piece, bytes.len);
        do {
            assert_ok(peer_frame_read(reader, slice_of(bytes.data + at, given - at), &taken, &done,
                                      &frame, &err),
                      &err);
            at += taken;
            if (!done)
                continue;
            if (frame.payload.len)
                memcpy(payload, frame.payload.data, MIN(frame.payload.len, sizeof payload));
            frames[count++] = frame;
        } while (done);
    }
    assert_int_equal(at, bytes.len);
    assert_int_equal(frames[0].kind, PEER_FRAME_REQUEST);
    assert_int_equal(frames[0].flags, PEER_FRAME_FLAG);
    assert_int_equal(frames[0].number, 3);
    assert_true(frames[0].id == 0x1234567890ABCDEF);
    assert_int_equal(frames[0].len, 5);
    assert_memory_equal(payload, "abcde", 5);
    assert_int_equal(frames[1].kind, PEER_FRAME_LEAVING);
    assert_int_equal(frames[1].len, 0);
    assert_int_equal(frames[1].id, 7);
}

static void frames_are_read_as_they_were_written_from_any_pieces(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, 1024);
    frames_example(&bytes);
    for (size_t piece = 1; piece <= bytes.len; piece++) {
        struct peer_frame_reader reader;

        peer_frame_reader_init(&reader, 5);
        example_check(&reader, buf_slice(&bytes), piece);
        peer_frame_reader_done(&reader);
    }
}

static void the_memory_of_a_payload_can_be_taken(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bytes;
    struct peer_frame_reader reader;
    struct peer_frame frame;
    struct error err;
    uint8_t *memory;
    size_t taken;
    bool done;

    buf_init(&bytes, 1024);
    frames_example(&bytes);
    peer_frame_reader_init(&reader, 5);
    assert_ok(peer_frame_read(&reader, slice_of(bytes.data, 18), &taken, &done, &frame, &err),
              &err);
    assert_false(done);
    assert_int_equal(taken, 18);
    assert_ok(peer_frame_read(&reader, slice_of(bytes.data + 18, bytes.len - 18), &taken, &done,
                              &frame, &err),
              &err);
    assert_true(done);
    memory = peer_frame_payload_take(&reader);
    assert_ptr_equal(memory, frame.payload.data);
    assert_null(peer_frame_payload_take(&reader));
    peer_frame_reader_done(&reader);
    memory_free(memory);
}

static void what_is_no_frame_or_too_long_is_refused(void **state UNUSED)
{
    uint8_t bytes[PEER_FRAME_HEAD_BYTES] = {0, 0, 0, 6, PEER_FRAME_ANSWER};
    struct peer_frame_reader reader;
    struct peer_frame frame;
    struct error err;
    size_t taken;
    bool done;

    peer_frame_reader_init(&reader, 5);
    assert_fails(
        peer_frame_read(&reader, slice_of(bytes, sizeof bytes), &taken, &done, &frame, &err), &err,
        ERROR_BAD_REQUEST);
    bytes[3] = 0;
    bytes[4] = PEER_FRAME_LEASE_RETURN + 1;
    assert_fails(
        peer_frame_read(&reader, slice_of(bytes, sizeof bytes), &taken, &done, &frame, &err), &err,
        ERROR_BAD_REQUEST);
    bytes[4] = 0;
    assert_fails(
        peer_frame_read(&reader, slice_of(bytes, sizeof bytes), &taken, &done, &frame, &err), &err,
        ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read_as_they_were_written_from_any_pieces),
        cmocka_unit_test(the_memory_of_a_payload_can_be_taken),
        cmocka_unit_test(what_is_no_frame_or_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
