/* Frames: how servers pass requests of HTTP on, many at a time on one connection (a way), behind a
 * hello that said so.
 *
 *     frame     u32 length of the payload   u8 kind   u8 flags   u16 number   u64 id   payload
 *     REQUEST   flags 1: the client came by TLS; number: length of the client's address
 *               payload: address, ADDRESS:PORT; then the request as HTTP/1.1 has it, whole
 *     ANSWER    flags 1: the client's connection ends with it; number: the status
 *               payload: u32 length of the header lines, lines, body
 *     CANCEL    the client of that request has gone
 *     LEAVING   nothing behind the request of this id is taken, nor will be; what is before it is
 *               answered, then the connection closed
 *
 * Numbers are big-endian. Whoever asks gives the ids, of which each is larger than the one before:
 * so LEAVING tells exactly which requests were begun and which did nothing. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "net/output.h"

enum peer_frame_kind {
    PEER_FRAME_REQUEST = 1,
    PEER_FRAME_ANSWER,
    PEER_FRAME_CANCEL,
    PEER_FRAME_LEAVING,
    PEER_FRAME_LEASE_ASK, /* of another kind of connection: leases.h */
    PEER_FRAME_LEASE,
    PEER_FRAME_LEASE_RECALL,
    PEER_FRAME_LEASE_RETURN,
};

enum {
    PEER_FRAME_HEAD_BYTES = 16,
    PEER_FRAME_FLAG = 1,
    /* Of a payload: the longest body that a front can be set to take, with its head. Fronts have
     * limits of their own; this one is of what cannot be a frame. */
    PEER_FRAME_BYTES_MAX = (1 << 30) + (4 << 20),
};

struct peer_frame {
    enum peer_frame_kind kind;
    uint8_t flags;
    uint16_t number;
    uint64_t id;
    size_t len;           /* of the payload */
    struct slice payload; /* borrowed from the input, or from the reader until it is taken there */
};

/* The head; the payload is appended behind it. */
void peer_frame_append(struct net_output *output, const struct peer_frame *frame);

/* Frames out of bytes that come in any pieces. A payload that comes whole is not copied. */
struct peer_frame_reader {
    size_t len_max;          /* of a payload */
    struct peer_frame frame; /* being read, where in_payload */
    bool in_payload;
    uint8_t *payload; /* owned */
    size_t payload_len;
};

void peer_frame_reader_init(struct peer_frame_reader *reader, size_t len_max);
void peer_frame_reader_done(struct peer_frame_reader *reader);

/* Reads on; ret_taken bytes of the input are taken. ret_done: a frame is whole, and is the caller's
 * until the next call. ERROR_BAD_REQUEST: that is none, or too large. */
NODISCARD bool peer_frame_read(struct peer_frame_reader *reader, struct slice bytes,
                               size_t *ret_taken, bool *ret_done, struct peer_frame *ret_frame,
                               struct error *err);
/* Takes the memory of the payload of the frame last read, to be freed with memory_free. NULL: it
 * lies in the input. */
uint8_t *peer_frame_payload_take(struct peer_frame_reader *reader);
