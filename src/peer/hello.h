/* Hello: what one server says to another before it passes a client's connection on, and what that
 * one answers. Behind both come the client's bytes and those of its answers, as they are.
 *
 *     hello    "ORRP"   u8 version   u8 front   u8 flags   u8 hops
 *              u16 length of the address   u16 length of the subject   address   subject
 *     answer   "ORRP"   u8 version   u8 verdict   u16 0
 *
 * Flags: 1, the client came by TLS; 2, requests of many clients follow as frames (peer/frame.h),
 * and address, subject and flag 1 say nothing; 4, the same of frames about leases (peer/leases.h).
 * Numbers are big-endian. The address is the client's,
 * ADDRESS:PORT; the subject that of the client's certificate, if it has shown one. Nothing of the
 * client is sent before the answer was PEER_TAKEN: until then the connection may be passed on to
 * another server, and nothing is done twice. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

enum {
    PEER_VERSION = 2,
    PEER_HOPS_MAX = 2,
    PEER_SUBJECT_BYTES_MAX = 1024,
    PEER_HELLO_BYTES_MAX = 12 + NET_ADDRESS_TEXT_SIZE + PEER_SUBJECT_BYTES_MAX,
    PEER_ANSWER_BYTES = 8,
};

enum peer_front {
    PEER_REST,
    PEER_TABLE,
    PEER_GREMLIN,
    PEER_MONGO,
    PEER_MONGO_SET,
    PEER_FRONTS,
};

enum peer_verdict {
    PEER_TAKEN,
    PEER_NOT_OWNER,
    PEER_FRONT_OFF,
    PEER_OTHER_VERSION,
    PEER_TOO_MANY_HOPS,
};

struct peer_hello {
    enum peer_front front;
    bool tls;
    bool requests;
    bool leases;
    uint8_t hops;
    struct net_address client; /* len 0: unknown */
    struct slice subject;      /* borrowed */
};

void peer_hello_append(struct buf *out, const struct peer_hello *hello);

/* Reads one from the front of what has come. ret_taken 0: it is not whole yet. ERROR_BAD_REQUEST:
 * it is none, or of another version, which ret_verdict says. The subject borrows from bytes. */
NODISCARD bool peer_hello_read(struct slice bytes, struct peer_hello *ret_hello, size_t *ret_taken,
                               enum peer_verdict *ret_verdict, struct error *err);

void peer_answer_write(enum peer_verdict verdict, uint8_t ret_bytes[PEER_ANSWER_BYTES]);
/* False: that is no answer. */
bool peer_answer_read(const uint8_t bytes[PEER_ANSWER_BYTES], enum peer_verdict *ret_verdict);
