/* What another server may send: a hello, then frames. Holds that
 *  - a hello that is read is written as it was but for how the address is spelt, and read again;
 *  - frames are the same whatever the pieces they come in, within their limit, and cover the bytes
 *    that were taken. */
#include "peer/frame.h"
#include "peer/hello.h"

#include "base/memory.h"
#include "base/random.h"
#include "fuzz/fuzz.h"

enum { PAYLOAD_MAX = 4096 };

static void hello_check(struct slice input)
{
    CLEANUP(buf_done) struct buf bytes;
    struct peer_hello hello, again;
    enum peer_verdict verdict;
    size_t taken, taken_again;
    struct error err;

    buf_init(&bytes, PEER_HELLO_BYTES_MAX);
    if (!peer_hello_read(input, &hello, &taken, &verdict, &err)) {
        FUZZ_CHECK(verdict != PEER_TAKEN);
        return;
    }
    FUZZ_CHECK(taken <= input.len && taken <= PEER_HELLO_BYTES_MAX);
    if (!taken)
        return;
    FUZZ_CHECK(hello.front < PEER_FRONTS && hello.hops <= PEER_HOPS_MAX);
    peer_hello_append(&bytes, &hello);
    FUZZ_CHECK(!buf_overflowed(&bytes));
    FUZZ_CHECK(peer_hello_read(buf_slice(&bytes), &again, &taken_again, &verdict, &err));
    FUZZ_CHECK(taken_again == bytes.len && verdict == PEER_TAKEN);
    FUZZ_CHECK(again.front == hello.front && again.tls == hello.tls &&
               again.requests == hello.requests && again.hops == hello.hops &&
               slice_equal(again.subject, hello.subject));
    FUZZ_CHECK(again.client.len == hello.client.len &&
               memcmp(&again.client.any, &hello.client.any, hello.client.len) == 0);
}

/* Reads one frame from the front in pieces, each in memory of just its size, as a connection gives
 * them: what was not taken comes again. The last piece is the caller's. */
static bool frame_in_pieces(struct peer_frame_reader *reader, struct slice input,
                            struct random *random, size_t *ret_taken, bool *ret_done,
                            struct peer_frame *ret_frame, uint8_t **ret_memory)
{
    size_t given = 0, taken = 0, count;
    struct error err;

    *ret_memory = NULL;
    *ret_done = false;
    do {
        if (given < input.len)
            given += 1 + random_below(random, MIN(input.len - given, (size_t)64));
        memory_free(*ret_memory);
        *ret_memory = memory_alloc(given - taken + 1);
        if (given > taken)
            memcpy(*ret_memory, input.data + taken, given - taken);
        if (!peer_frame_read(reader, slice_of(*ret_memory, given - taken), &count, ret_done,
                             ret_frame, &err))
            return false;
        FUZZ_CHECK(count <= given - taken);
        taken += count;
    } while (!*ret_done && given < input.len);
    *ret_taken = taken;
    return true;
}

/* True: another may follow. */
static bool frame_check(struct slice *input, struct peer_frame_reader *whole,
                        struct peer_frame_reader *pieces, struct random *random)
{
    struct peer_frame frame = {0}, other = {0};
    size_t taken = 0, taken_pieces = 0;
    bool done, done_pieces, good;
    uint8_t *memory;
    struct error err;

    good = peer_frame_read(whole, *input, &taken, &done, &frame, &err);
    FUZZ_CHECK(good == frame_in_pieces(pieces, *input, random, &taken_pieces, &done_pieces, &other,
                                       &memory));
    if (good) {
        FUZZ_CHECK(done == done_pieces && taken == taken_pieces && taken <= input->len);
        FUZZ_CHECK(!done || taken == PEER_FRAME_HEAD_BYTES + frame.len);
    }
    if (good && done) {
        FUZZ_CHECK(frame.kind >= PEER_FRAME_REQUEST && frame.kind <= PEER_FRAME_LEASE_RETURN);
        FUZZ_CHECK(frame.len <= PAYLOAD_MAX && frame.payload.len == frame.len);
        FUZZ_CHECK(frame.kind == other.kind && frame.flags == other.flags &&
                   frame.number == other.number && frame.id == other.id);
        FUZZ_CHECK(slice_equal(frame.payload, other.payload));
        *input = slice_skip(*input, taken);
    }
    memory_free(memory);
    return good && done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    struct peer_frame_reader whole, pieces;
    struct random random;
    uint64_t seed = size;

    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    random_seed(&random, seed);
    hello_check(input);
    peer_frame_reader_init(&whole, PAYLOAD_MAX);
    peer_frame_reader_init(&pieces, PAYLOAD_MAX);
    while (frame_check(&input, &whole, &pieces, &random) && input.len)
        continue;
    peer_frame_reader_done(&whole);
    peer_frame_reader_done(&pieces);
    return 0;
}
