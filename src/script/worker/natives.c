/* What C offers to api.js. Bodies cross as texts into the frame that is being filled, and come
 * back as values parsed straight from the answer, so that no text is a JavaScript string for
 * longer than it must be. */
#include "script/worker/worker.h"

#include "base/clock.h"
#include "script/protocol.h"

static struct worker *worker_of(JSObjectRef function)
{
    return JSObjectGetPrivate(function);
}

/* A text field of the frame: absent for what is no string. False: it is larger than max. */
static bool put_string(JSContextRef context, JSValueRef value, size_t max, struct buf *frame)
{
    size_t begin = frame->len;

    if (!JSValueIsString(context, value)) {
        protocol_put_text(frame, SLICE_NONE);
        return true;
    }
    protocol_put_number(frame, 0);
    if (!engine_append(context, value, max, frame))
        return false;
    protocol_set_length(frame, begin);
    return true;
}

static double number_of(JSContextRef context, JSValueRef value)
{
    return JSValueToNumber(context, value, NULL);
}

/* enqueue(verb, link, body, etag, continuation, pageSize, flags, options): was it accepted? */
static JSValueRef enqueue(JSContextRef context, JSObjectRef function, JSObjectRef self UNUSED,
                          size_t count, const JSValueRef arguments[], JSValueRef *thrown)
{
    enum { VERB, LINK, BODY, ETAG, CONTINUATION, PAGE_SIZE, FLAGS, OPTIONS, ALL };
    struct worker *worker = worker_of(function);
    struct worker_run *run = &worker->run;
    struct buf *frame = &run->operations;
    double size;
    size_t begin;

    if (count != ALL || !run->accepting || clock_monotonic_ms() >= run->accept_until_ms)
        return JSValueMakeBoolean(context, false);
    if (run->operation_count == 0) {
        buf_clear(frame);
        protocol_begin(frame, PROTOCOL_OPERATIONS);
        protocol_put_number(frame, 0); /* how many, known when it is sent */
    }
    begin = frame->len;
    size = number_of(context, arguments[PAGE_SIZE]);
    protocol_put_byte(frame, (uint8_t)number_of(context, arguments[VERB]));
    protocol_put_byte(frame, (uint8_t)number_of(context, arguments[FLAGS]));
    protocol_put_number(frame, (uint32_t)(int32_t)(size > INT32_MAX ? INT32_MAX
                                                   : size < -1      ? -1
                                                                    : size));
    if (!put_string(context, arguments[LINK], PROTOCOL_TEXT_MAX, frame) ||
        !put_string(context, arguments[BODY], PROTOCOL_BODY_MAX, frame) ||
        !put_string(context, arguments[ETAG], PROTOCOL_TEXT_MAX, frame) ||
        !put_string(context, arguments[CONTINUATION], PROTOCOL_TEXT_MAX, frame) ||
        !put_string(context, arguments[OPTIONS], PROTOCOL_TEXT_MAX, frame)) {
        frame->len = begin;
        frame->overflowed = false;
        *thrown = engine_fault(context, 413, "the operation is larger than a request may be");
        return JSValueMakeUndefined(context);
    }
    run->operation_count++;
    /* A full batch goes at once; its callbacks wait for their turn all the same. */
    if ((run->operation_count == PROTOCOL_OPERATIONS_MAX || frame->len >= PROTOCOL_BATCH_BYTES) &&
        !worker_exchange(worker))
        *thrown = engine_fault(context, 408, "the script has no time left");
    return JSValueMakeBoolean(context, true);
}

/* answer(): the next as [status, substatus, charge, message, body, etag, continuation]. */
static JSValueRef answer(JSContextRef context, JSObjectRef function, JSObjectRef self UNUSED,
                         size_t count UNUSED, const JSValueRef arguments[] UNUSED,
                         JSValueRef *thrown)
{
    struct worker_run *run = &worker_of(function)->run;
    struct protocol_reader reader = {.rest =
                                         slice_skip(buf_slice(&run->answers), run->answers_read)};
    JSValueRef parts[7];

    if (!run->answer_count) {
        *thrown = engine_fault(context, 500, "there is no answer");
        return JSValueMakeUndefined(context);
    }
    parts[0] = JSValueMakeNumber(context, protocol_get_number(&reader));
    parts[1] = JSValueMakeNumber(context, protocol_get_number(&reader));
    parts[2] = JSValueMakeNumber(context, (double)(int64_t)protocol_get_long(&reader) / 100);
    parts[3] = engine_text(context, protocol_get_text(&reader));
    parts[4] = engine_json(context, protocol_get_text(&reader));
    parts[5] = engine_text(context, protocol_get_text(&reader));
    parts[6] = engine_text(context, protocol_get_text(&reader));
    assert(!reader.broken); /* worker_exchange has looked */
    run->answers_read = run->answers.len - reader.rest.len;
    if (--run->answer_count == 0) {
        buf_clear(&run->answers);
        run->answers_read = 0;
    }
    return JSObjectMakeArray(context, ARRAY_LEN(parts), parts, thrown);
}

static JSValueRef logging(JSContextRef context, JSObjectRef function, JSObjectRef self UNUSED,
                          size_t count UNUSED, const JSValueRef arguments[] UNUSED,
                          JSValueRef *thrown UNUSED)
{
    struct worker_run *run = &worker_of(function)->run;

    return JSValueMakeBoolean(context, run->logging && !run->log_cut);
}

/* log(text): a line. The log keeps whole lines; the first that does not fit ends it. */
static JSValueRef log_line(JSContextRef context, JSObjectRef function, JSObjectRef self UNUSED,
                           size_t count, const JSValueRef arguments[], JSValueRef *thrown UNUSED)
{
    struct worker_run *run = &worker_of(function)->run;

    if (count == 1 && run->logging && !run->log_cut) {
        size_t begin = run->log.len;

        if (engine_append(context, arguments[0], run->log_max - begin, &run->log) &&
            run->log.len < run->log_max)
            BUF_APPEND(&run->log, "\n");
        else {
            run->log.len = begin;
            run->log.overflowed = false;
            run->log_cut = true;
        }
    }
    return JSValueMakeUndefined(context);
}

const struct realm_native worker_natives[] = {
    {"enqueue", enqueue},
    {"answer", answer},
    {"logging", logging},
    {"log", log_line},
};
const size_t worker_native_count = ARRAY_LEN(worker_natives);
