/* What a script worker says: any bytes are a message within all bounds, or refused. */
#include "script/message.h"

#include "fuzz/fuzz.h"

static void check_text(struct slice text, struct slice frame)
{
    if (!text.data)
        return;
    FUZZ_CHECK(text.data >= frame.data && text.data + text.len <= frame.data + frame.len);
    FUZZ_CHECK(protocol_is_text(text));
}

static void check_operations(struct slice frame)
{
    struct script_operation operations[SCRIPT_OPERATIONS_MAX];
    size_t count;

    if (!message_get_operations(frame, operations, &count))
        return;
    FUZZ_CHECK(count > 0 && count <= SCRIPT_OPERATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(operations[i].verb < SCRIPT_VERB_COUNT && operations[i].link.len > 0);
        FUZZ_CHECK(operations[i].page_size >= -1);
        check_text(operations[i].link, frame);
        check_text(operations[i].body, frame);
        check_text(operations[i].etag, frame);
        check_text(operations[i].continuation, frame);
        check_text(operations[i].options, frame);
    }
}

static void check_done(struct slice frame)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct message_done done;
    struct document_value values[4];
    const struct script_value *named;
    struct error err = {0};
    size_t count;

    if (!message_get_done(frame, &done))
        return;
    FUZZ_CHECK(done.outcome < PROTOCOL_OUTCOME_COUNT);
    check_text(done.message, frame);
    check_text(done.stack, frame);
    check_text(done.body, frame);
    check_text(done.log, frame);
    if (done.body.data && !message_get_rows(done.body, ARRAY_LEN(values), arena, values, &err))
        FUZZ_CHECK(err.message[0]);
    if (done.response_values.data &&
        message_get_values(done.response_values, arena, &named, &count, &err)) {
        FUZZ_CHECK(count <= PROTOCOL_VALUES_MAX);
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(named[i].json.len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice frame = slice_of(data, size);
    struct message_ready ready;

    check_operations(frame);
    check_done(frame);
    if (message_get_ready(frame, &ready))
        FUZZ_CHECK(size == 9);
    return 0;
}
