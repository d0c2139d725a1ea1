/* Protocol: what the server and a script worker say to each other over a socket pair.
 *
 * A frame is its length (4 bytes, of what follows), a type byte and fields. Numbers are
 * little-endian. A text is its length (4 bytes) and its bytes; the length FFFFFFFF says that it is
 * absent. The server speaks first, one request at a time:
 *
 *     RUN      a procedure or trigger      CALLS    a function over rows
 *     ANSWERS  to OPERATIONS; as many frames as it takes until all are answered
 *
 * and the worker:
 *
 *     READY    once, when its sandbox is closed
 *     OPERATIONS  during a run: the server answers each in order
 *     DONE     the end of a run or of calls
 *
 * The server takes a worker for hostile: whatever does not read as one of these ends it. The reader
 * never leaves its frame; after the first fault every further read gives nothing, so that callers
 * look once, at the end. Both sides are built from this file. */
#pragma once

#include "base/buf.h"

enum { PROTOCOL_VERSION = 1 };

enum protocol_type {
    PROTOCOL_RUN = 1,
    PROTOCOL_CALLS = 2,
    PROTOCOL_ANSWERS = 3,
    PROTOCOL_READY = 16,
    PROTOCOL_OPERATIONS = 17,
    PROTOCOL_DONE = 18,
};

enum {
    PROTOCOL_HEADER = 4,                         /* the length */
    PROTOCOL_TO_WORKER_MAX = 48 * 1024 * 1024,   /* bytes of a frame */
    PROTOCOL_FROM_WORKER_MAX = 24 * 1024 * 1024, /* so is what a worker may make us keep */
    PROTOCOL_BATCH_BYTES = 512 * 1024,           /* a batch that has grown to this is sent off */
    PROTOCOL_BODY_MAX = 4 * 1024 * 1024,         /* of one operation */
    PROTOCOL_TEXT_MAX = 64 * 1024,               /* of a link, an etag, a continuation or options */
    PROTOCOL_OPERATIONS_MAX = 128,               /* in one frame */
    PROTOCOL_VALUES_MAX = 256,                   /* named values of a request or response */
    PROTOCOL_MESSAGE_MAX = 16 * 1024,            /* of an error and of its stack; the rest is cut */
};

/* How a run or call has ended. */
enum protocol_outcome {
    PROTOCOL_FINE,
    PROTOCOL_THREW,
    PROTOCOL_TIMED_OUT,
    PROTOCOL_OUTPUT_LIMIT,
    PROTOCOL_MEMORY_LIMIT,
    PROTOCOL_OUTCOME_COUNT
};

/* Flags of RUN. */
enum {
    PROTOCOL_LOGGING = 1,
};

/* Flags of an operation. */
enum {
    PROTOCOL_ID_GIVEN = 1,
    PROTOCOL_SCAN_ENABLED = 2,
};

/* Flags of DONE. */
enum {
    PROTOCOL_LOG_CUT = 1,
    PROTOCOL_RETIRE = 2,     /* the worker is spent and not to be used again */
    PROTOCOL_UNCOMPILED = 4, /* what was thrown came of the text itself: it is no function */
};

/* The fields of each type, in their order; b: byte, n: number, l: long, t: text.
 *
 *     RUN         b kind, b flags, n time_ms, n accept_ms, n output_max, n log_max, t key, t name,
 *                 t source, t arguments, t self_link, t alt_link, t operation, t request_body,
 *                 t response_body, t request_values, t response_values (objects)
 *     CALLS       n time_ms, n output_max, t key, t name, t source, t rows: an array with
 *                 [mask of undefined arguments, argument...] for each row
 *     ANSWERS     b accepting, n count; each: n status, n substatus, l charge, t message, t body,
 *                 t etag, t continuation
 *     READY       n version, n hidden: the bits of worker/sandbox.h
 *     OPERATIONS  n count; each: b verb, b flags, n page_size, t link, t body, t etag,
 *                 t continuation, t options
 *     DONE        b outcome, b flags, n number, t message, t stack, t body, t request_body,
 *                 t request_values, t response_values, t log. Of calls, body is an array with
 *                 [value] or [] for each row */

/* --- Writing --------------------------------------------------------------------------------- */

/* A frame is opened and closed around its fields; overflow shows in the buf. */
size_t protocol_begin(struct buf *buf, enum protocol_type type);
void protocol_end(struct buf *buf, size_t begin);

void protocol_put_byte(struct buf *buf, uint8_t value);
void protocol_put_number(struct buf *buf, uint32_t value);
void protocol_put_long(struct buf *buf, uint64_t value);
void protocol_put_text(struct buf *buf, struct slice text); /* data NULL: absent */

/* A text that was put as the number 0 at `begin`, and then its bytes: now it has its length. */
void protocol_set_length(struct buf *buf, size_t begin);

/* --- Reading --------------------------------------------------------------------------------- */

struct protocol_reader {
    struct slice rest;
    bool broken; /* a field did not lie within the frame */
};

/* Over a whole frame without its length. Gives the type; 0: the frame is empty. */
uint8_t protocol_open(struct protocol_reader *reader, struct slice frame);

uint8_t protocol_get_byte(struct protocol_reader *reader);
uint32_t protocol_get_number(struct protocol_reader *reader);
uint64_t protocol_get_long(struct protocol_reader *reader);
struct slice protocol_get_text(struct protocol_reader *reader); /* into the frame */

/* A count of things that take at least `least` bytes each: one that cannot be is broken, so that
 * nobody allocates by it. */
uint32_t protocol_get_count(struct protocol_reader *reader, uint32_t max, size_t least);

/* All fields were there and nothing is left. */
NODISCARD bool protocol_whole(const struct protocol_reader *reader);

/* Does text of a worker read as UTF-8, as documents hold it? */
bool protocol_is_text(struct slice text);
