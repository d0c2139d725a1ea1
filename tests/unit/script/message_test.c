#include "script/message.h"

#include "base/bytes.h"
#include "support/check.h"
#include "support/script_bench.h"

/* A frame in the making, read without its length. */
struct frame {
    struct buf buf;
};

static void frame_done(struct frame *frame)
{
    buf_done(&frame->buf);
}
CLEANUP_VALUE_FN(struct frame, frame_done)

static void frame_begin(struct frame *frame, enum protocol_type type)
{
    buf_init(&frame->buf, BUF_DEFAULT_MAX);
    protocol_begin(&frame->buf, type);
}

static struct slice frame_end(struct frame *frame)
{
    protocol_end(&frame->buf, 0);
    assert_int_equal(bytes_get_le32(frame->buf.data), frame->buf.len - PROTOCOL_HEADER);
    return slice_skip(buf_slice(&frame->buf), PROTOCOL_HEADER);
}

static void put_operation(struct buf *buf, uint8_t verb, uint8_t flags, uint32_t page_size,
                          struct slice link, struct slice body)
{
    protocol_put_byte(buf, verb);
    protocol_put_byte(buf, flags);
    protocol_put_number(buf, page_size);
    protocol_put_text(buf, link);
    protocol_put_text(buf, body);
    protocol_put_text(buf, SLICE("etag"));
    protocol_put_text(buf, SLICE_NONE);
    protocol_put_text(buf, SLICE_NONE);
}

/* Is a frame with this one operation taken? */
static bool taken(uint8_t verb, uint8_t flags, uint32_t page_size, struct slice link,
                  struct slice body)
{
    CLEANUP(frame_done) struct frame frame;
    struct script_operation operations[SCRIPT_OPERATIONS_MAX];
    size_t count;

    frame_begin(&frame, PROTOCOL_OPERATIONS);
    protocol_put_number(&frame.buf, 1);
    put_operation(&frame.buf, verb, flags, page_size, link, body);
    return message_get_operations(frame_end(&frame), operations, &count);
}

static void operations_are_read_as_they_were_written(void **state UNUSED)
{
    CLEANUP(frame_done) struct frame frame;
    struct script_operation operations[SCRIPT_OPERATIONS_MAX];
    size_t count = 0;

    frame_begin(&frame, PROTOCOL_OPERATIONS);
    protocol_put_number(&frame.buf, 2);
    put_operation(&frame.buf, SCRIPT_CREATE, PROTOCOL_ID_GIVEN, 0, SLICE("c"), SLICE("{}"));
    put_operation(&frame.buf, SCRIPT_READ_FEED, 0, UINT32_MAX, SLICE("d"), SLICE_NONE);
    assert_true(message_get_operations(frame_end(&frame), operations, &count));
    assert_int_equal(count, 2);
    assert_int_equal(operations[0].verb, SCRIPT_CREATE);
    assert_true(operations[0].id_given);
    assert_slice_equal(operations[0].body, SLICE("{}"));
    assert_slice_equal(operations[0].etag, SLICE("etag"));
    assert_null(operations[0].continuation.data);
    assert_int_equal(operations[1].page_size, -1);
    assert_null(operations[1].body.data);
}

static void an_operation_that_cannot_be_is_refused(void **state UNUSED)
{
    assert_true(taken(SCRIPT_DELETE, 0, 0, SLICE("l"), SLICE_NONE));
    assert_false(taken(SCRIPT_VERB_COUNT, 0, 0, SLICE("l"), SLICE_NONE));
    assert_false(taken(255, 0, 0, SLICE("l"), SLICE("{}")));
    assert_false(taken(SCRIPT_DELETE, 4, 0, SLICE("l"), SLICE_NONE));
    assert_false(taken(SCRIPT_DELETE, 0, UINT32_MAX - 1, SLICE("l"), SLICE_NONE));
    assert_false(taken(SCRIPT_DELETE, 0, 0, SLICE(""), SLICE_NONE));
    assert_false(taken(SCRIPT_DELETE, 0, 0, SLICE_NONE, SLICE_NONE));
    assert_false(taken(SCRIPT_DELETE, 0, 0, SLICE("l"), SLICE("{}")));
    assert_false(taken(SCRIPT_CREATE, 0, 0, SLICE("l"), SLICE_NONE));
    assert_false(taken(SCRIPT_CREATE, 0, 0, SLICE("l\xff"), SLICE("{}")));
    assert_false(taken(SCRIPT_CREATE, 0, 0, SLICE("l"), SLICE("{\"\xc3\"}")));
}

static void a_count_that_cannot_be_is_refused(void **state UNUSED)
{
    static const uint32_t counts[] = {0, 2, SCRIPT_OPERATIONS_MAX + 1, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        CLEANUP(frame_done) struct frame frame;
        struct script_operation operations[SCRIPT_OPERATIONS_MAX];
        size_t count;

        frame_begin(&frame, PROTOCOL_OPERATIONS);
        protocol_put_number(&frame.buf, counts[i]);
        put_operation(&frame.buf, SCRIPT_DELETE, 0, 0, SLICE("l"), SLICE_NONE);
        assert_false(message_get_operations(frame_end(&frame), operations, &count));
    }
}

static void put_done(struct frame *frame, uint8_t outcome)
{
    frame_begin(frame, PROTOCOL_DONE);
    protocol_put_byte(&frame->buf, outcome);
    protocol_put_byte(&frame->buf, PROTOCOL_LOG_CUT);
    protocol_put_number(&frame->buf, (uint32_t)-5);
    protocol_put_text(&frame->buf, SLICE("message"));
    for (int i = 0; i < 6; i++)
        protocol_put_text(&frame->buf, SLICE_NONE);
}

static void every_frame_cut_short_or_too_long_is_refused(void **state UNUSED)
{
    CLEANUP(frame_done) struct frame frame;
    struct message_done done;
    struct slice whole;

    put_done(&frame, PROTOCOL_THREW);
    whole = frame_end(&frame);
    assert_true(message_get_done(whole, &done));
    assert_int_equal(done.number, -5);
    assert_true(done.log_cut);
    assert_false(done.retire);
    assert_slice_equal(done.message, SLICE("message"));
    for (size_t len = 0; len < whole.len; len++) {
        /* a copy of just that size, so that a step beyond is seen */
        CLEANUP(memory_free) uint8_t *copy = memory_alloc(len);

        if (len)
            memcpy(copy, whole.data, len);
        assert_false(message_get_done(slice_of(copy, len), &done));
    }
    protocol_put_byte(&frame.buf, 0);
    assert_false(message_get_done(frame_end(&frame), &done));
}

static void an_outcome_nobody_knows_is_refused(void **state UNUSED)
{
    CLEANUP(frame_done) struct frame frame;
    struct message_done done;
    struct message_ready ready;

    put_done(&frame, PROTOCOL_OUTCOME_COUNT);
    assert_false(message_get_done(frame_end(&frame), &done));
    assert_false(message_get_ready(frame_end(&frame), &ready));
}

static void answers_that_are_too_many_bytes_take_several_frames(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t *large = arena_alloc_zero(arena, 700000);
    struct script_answer answers[3] = {{.status = 200, .body = slice_of(large, 700000)},
                                       {.status = 200, .body = slice_of(large, 700000)},
                                       {.status = 404, .message = SLICE("no")}};

    buf_init(&buf, PROTOCOL_TO_WORKER_MAX);
    assert_int_equal(message_put_answers(&buf, answers, 3, true), 1);
    buf_clear(&buf);
    assert_int_equal(message_put_answers(&buf, answers + 1, 2, true), 2);
}

static void an_answer_larger_than_a_frame_is_refused(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t *large = arena_alloc_zero(arena, 2000);
    struct script_answer answer = {.status = 200, .body = slice_of(large, 2000)};

    buf_init(&buf, 1000);
    assert_int_equal(message_put_answers(&buf, &answer, 1, true), 0);
    assert_int_equal(buf.len, 0);
}

static void rows_must_be_those_that_were_asked_for(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value values[2];
    struct error err;

    assert_ok(message_get_rows(SLICE("[[1],[]]"), 2, arena, values, &err), &err);
    assert_int_equal(values[0].int32, 1);
    assert_int_equal(values[1].type, DOCUMENT_UNDEFINED);
    assert_fails(message_get_rows(SLICE("[[1]]"), 2, arena, values, &err), &err,
                 ERROR_SCRIPT_CRASHED);
    assert_fails(message_get_rows(SLICE("[1,2]"), 2, arena, values, &err), &err,
                 ERROR_SCRIPT_CRASHED);
    assert_fails(message_get_rows(SLICE("{}"), 0, arena, values, &err), &err, ERROR_SCRIPT_CRASHED);
    assert_fails(message_get_rows(SLICE("[[1],"), 2, arena, values, &err), &err, ERROR_BAD_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_read_as_they_were_written),
        cmocka_unit_test(an_operation_that_cannot_be_is_refused),
        cmocka_unit_test(a_count_that_cannot_be_is_refused),
        cmocka_unit_test(every_frame_cut_short_or_too_long_is_refused),
        cmocka_unit_test(an_outcome_nobody_knows_is_refused),
        cmocka_unit_test(answers_that_are_too_many_bytes_take_several_frames),
        cmocka_unit_test(an_answer_larger_than_a_frame_is_refused),
        cmocka_unit_test(rows_must_be_those_that_were_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
