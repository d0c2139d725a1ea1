/* HTTP reader: one request out of bytes that come in any pieces. Knows no sockets.
 *
 * Strict: what two programs could read in two ways is refused, for a proxy in front of the server
 * may be one of them. What is read depends only on the bytes, never on how they were cut. */
#pragma once

#include "net/http.h"

enum net_http_progress {
    NET_HTTP_MORE, /* bytes are missing */
    NET_HTTP_DONE, /* the request is complete */
    NET_HTTP_BAD,  /* answer `status` with `reason` and close */
};

enum net_http_phase {
    NET_HTTP_PHASE_HEAD,
    NET_HTTP_PHASE_LENGTH,  /* a body of known length */
    NET_HTTP_PHASE_CHUNKED, /* a body in chunks */
};

struct net_http_reader {
    const struct net_http_settings *settings;
    struct net_http_request *request; /* filled in; its arena must be there */
    struct net_http_header *headers;  /* settings->header_count_max of them */
    enum net_http_phase phase;

    /* The head lies at base: the input, or a copy in the arena once the input had to go. */
    const uint8_t *base;
    size_t line_at, scanned; /* offsets: the line being read; no line ends before here */
    size_t head_len;
    bool head_copied;
    bool has_request_line, has_host, has_length;

    uint64_t length;      /* of the body; while it comes, what is missing */
    bool chunked;         /* the body comes in chunks */
    bool expects;         /* the client waits for 100 Continue */
    bool wants_close;     /* Connection: close */
    bool wants_keep;      /* Connection: keep-alive */
    struct buf body;      /* when it did not come together with the head */
    int chunk_state;      /* of http_read.c */
    size_t framing_bytes; /* of chunk sizes and trailers, for their limit */

    uint16_t status; /* when bad */
    const char *reason;
};

/* Starts a request. settings, request and headers stay as they are for the next one. */
void net_http_reader_begin(struct net_http_reader *reader, const struct net_http_settings *settings,
                           struct net_http_request *request, struct net_http_header *headers);
void net_http_reader_done(struct net_http_reader *reader);

/* Reads on. The input begins with the first byte not taken yet; ret_taken bytes of it are taken.
 * While the head is incomplete nothing is taken and everything must be given again, wherever it
 * lies by then. When done, the request's slices point into the input, the arena or reader->body. */
enum net_http_progress net_http_read(struct net_http_reader *reader, struct slice input,
                                     size_t *ret_taken);

/* Frees the request from the input: what lies there is copied into the arena. */
void net_http_reader_keep(struct net_http_reader *reader);

/* Whether the connection may carry another request after this one. */
bool net_http_reader_keeps_alive(const struct net_http_reader *reader);

/* Eight bytes at once: may one of them be a control byte, below 0x20 or 0x7f? Never says no
 * wrongly; on a yes the caller looks byte by byte. */
static inline bool net_http_word_has_control(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t deletes = word ^ (ones * 0x7f);

    return (((word - ones * 0x20) & ~word) | ((deletes - ones) & ~deletes)) & tops;
}
