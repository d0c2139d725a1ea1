/* Message: MongoDB's wire protocol as bytes, without sockets.
 *
 * All numbers are little-endian. Every message begins with 16 bytes:
 *
 *     4  length of the whole message
 *     4  id of the message
 *     4  of a reply: the id of the message it answers
 *     4  operation
 *
 * OP_MSG:        4 flags | sections | 4 CRC-32C of all before it, where flag 0 says so
 *     section 0: a document, the command, once
 *     section 1: 4 size (counting itself) | name, NUL | documents: an array field of the command
 * OP_QUERY:      4 flags | "database.$cmd", NUL | 4 skip | 4 count | command [| fields]
 * OP_REPLY:      4 flags | 8 cursor | 4 first | 4 count | document
 * OP_COMPRESSED: 4 operation within | 4 its length without a header | 1 how | compressed bytes */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum {
    MONGO_HEADER_LEN = 16,
    MONGO_MESSAGE_BYTES_MAX = 48000000,
    MONGO_BSON_BYTES_MAX = 16 * 1024 * 1024,
    MONGO_BODY_BYTES_MAX = MONGO_BSON_BYTES_MAX + 16 * 1024, /* of a command around it */
    MONGO_SEQUENCES_MAX = 4,
};

enum mongo_operation {
    MONGO_OP_REPLY = 1,
    MONGO_OP_QUERY = 2004,
    MONGO_OP_COMPRESSED = 2012,
    MONGO_OP_MSG = 2013,
};

enum mongo_flag {
    MONGO_FLAG_CHECKSUM = 1,
    MONGO_FLAG_MORE_TO_COME = 2, /* of a request: it is not answered; of a reply: another follows */
    MONGO_FLAG_EXHAUST_ALLOWED = 1 << 16,
};

enum mongo_compressor {
    MONGO_COMPRESSOR_NONE = 0,
    MONGO_COMPRESSOR_SNAPPY = 1,
    MONGO_COMPRESSOR_ZLIB = 2,
    MONGO_COMPRESSOR_ZSTD = 3,
};

struct mongo_header {
    int32_t length, id, response_to, operation;
};

void mongo_header_read(struct mongo_header *ret_header, const uint8_t bytes[MONGO_HEADER_LEN]);

/* Documents that stand for an array field of the command, back to back. */
struct mongo_sequence {
    struct slice name;
    struct slice documents;
};

struct mongo_message {
    int32_t id;
    enum mongo_operation operation; /* OP_MSG or OP_QUERY: of what was compressed, too */
    enum mongo_compressor compressor;
    uint32_t flags;        /* of OP_MSG */
    struct slice database; /* of $db, or before .$cmd */
    struct slice body;     /* the command */
    struct mongo_sequence sequences[MONGO_SEQUENCES_MAX];
    size_t sequence_count;
};

enum mongo_read {
    MONGO_READ_GOOD,
    MONGO_READ_REFUSED, /* to be answered with the error; the connection goes on */
    MONGO_READ_LAST,    /* to be answered with the error, then closed */
    MONGO_READ_BROKEN,  /* no message of this protocol: to be closed */
};

/* How large a message is once it is unpacked; that of one that is not compressed itself. 0: its
 * header is broken. */
size_t mongo_message_unpacked_len(struct slice bytes);

/* Reads a whole message. validated: its documents have been validated before, as these same bytes.
 * Slices are borrowed from bytes, or in the arena if it was compressed. Unless it is broken, the id
 * is filled in, and so are operation and compressor if they are known. */
enum mongo_read mongo_message_read(struct slice bytes, bool validated, struct arena *arena,
                                   struct mongo_message *ret_message, struct error *err);

/* A reply as it goes out. */
struct mongo_reply {
    int32_t id;
    bool more;         /* another one follows; of OP_MSG alone */
    struct slice body; /* a document */
};

/* Appends the reply to a message, in its operation and compression. ERROR_TOO_LARGE: of the whole,
 * over the limit. */
NODISCARD bool mongo_reply_append(const struct mongo_message *message,
                                  const struct mongo_reply *reply, struct buf *out,
                                  struct error *err);

/* CRC-32C (Castagnoli). */
uint32_t mongo_crc32c(struct slice bytes);
