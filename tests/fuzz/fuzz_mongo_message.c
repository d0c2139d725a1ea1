/* The bytes are a message behind its header's length, as a stranger may send it. Holds that
 *  - reading it never leaves the bytes, and what is refused says why;
 *  - what is good has a command whose documents are valid, and can be replied to. */
#include "base/bytes.h"
#include "document/bson.h"
#include "front/mongo/wire/message.h"
#include "fuzz/fuzz.h"

static void documents_check(const struct mongo_message *message)
{
    for (size_t i = 0; i < message->sequence_count; i++) {
        struct slice rest = message->sequences[i].documents;

        while (rest.len) {
            uint32_t len = bytes_get_le32(rest.data);
            struct document_iter iter;

            FUZZ_CHECK(len <= rest.len);
            document_iter_init(&iter, slice_first(rest, len));
            while (document_iter_next(&iter))
                ;
            FUZZ_CHECK(!iter.broken);
            rest = slice_skip(rest, len);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf bytes, out;
    struct mongo_message message;
    enum mongo_read read;
    struct error err;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_init(&out, BUF_DEFAULT_MAX);
    err.code = ERROR_NONE;
    buf_append_le32(&bytes, (uint32_t)size + 4);
    buf_append(&bytes, data, size);
    /* a size of megabytes is fine, and slow to try */
    if (mongo_message_unpacked_len(buf_slice(&bytes)) > 1024 * 1024)
        return 0;
    read = mongo_message_read(buf_slice(&bytes), false, arena, &message, &err);
    FUZZ_CHECK(read == MONGO_READ_GOOD || read == MONGO_READ_BROKEN || err.code != ERROR_NONE);
    if (read == MONGO_READ_BROKEN)
        return 0;
    if (read == MONGO_READ_GOOD) {
        FUZZ_CHECK(
            document_validate(message.body, &(struct document_limits){.depth_max = 184}, &err));
        documents_check(&message);
        FUZZ_CHECK(mongo_reply_append(
            &message, &(struct mongo_reply){.id = 1, .body = message.body}, &out, &err));
    }
    return 0;
}
