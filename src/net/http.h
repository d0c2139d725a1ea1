/* HTTP/1.1 server: reads requests, calls a handler for each, writes the answers in order.
 *
 * The handler runs on the loop's thread. It either answers before it returns, or calls
 * net_http_defer and answers later, once, from any thread. Requests of one connection are handled
 * as they come and answered in the order they came. A request is the handler's until it is
 * answered; afterwards it must not be touched. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/histogram.h"
#include "net/connection.h"

#include <stdatomic.h>

struct net_http_exchange;
struct net_http; /* opaque, owned: settings, handler, pools and counts for all loops */

struct net_http_header {
    struct slice name, value;
};

/* What the handler sees. All slices are borrowed until the answer. */
struct net_http_request {
    struct slice method; /* any token, as sent: "GET", "MERGE" */
    struct slice target; /* as sent */
    struct slice path;   /* target up to '?', without scheme and host; not decoded */
    struct slice query;  /* after '?'; data is NULL without one; not decoded */
    bool http_10;
    size_t header_count;
    const struct net_http_header *headers; /* values without blanks around them */
    struct slice body;                     /* whole, chunks joined */

    struct arena *arena; /* for the handler; reset after the answer */
    bool tls;
    uint16_t local_port;
    struct net_address peer;
    uint64_t started_ns;   /* of clock_monotonic_ns: when its last bytes came */
    struct net_loop *loop; /* where the connection lives */
    void *user;            /* the handler's own */
    /* Set by a handler that defers: called on the loop when the client has gone before the answer,
     * behind the flag below. NULL: nobody wants to know. */
    void (*gone)(struct net_http_request *request);
};

/* The value of the first header of that name, in any case; data is NULL without one. */
struct slice net_http_header(const struct net_http_request *request, struct slice name);

enum net_http_body {
    NET_HTTP_BODY_COPIED,   /* copied where need be; free at return */
    NET_HTTP_BODY_IN_ARENA, /* in the request's arena, or static: stays until sent */
    NET_HTTP_BODY_OWNED,    /* handed over; `release` is called when it is sent or dropped */
};

struct net_http_response {
    uint16_t status;
    struct slice lines; /* ready header lines, each ending in CRLF; trusted as they are */
    const struct net_http_header *headers; /* control bytes in values become blanks */
    size_t header_count;
    struct slice body;
    enum net_http_body body_kind;
    struct net_release release; /* of an owned body; without fn: memory_free(body.data) */
    bool close;                 /* the connection ends after this answer */
};

/* Answers. Date, Content-Length and Connection are added here: do not give them. Answers to HEAD
 * carry the length but not the body. From any thread if deferred, else before the handler
 * returns. */
void net_http_respond(struct net_http_request *request, const struct net_http_response *response);

/* Keeps the request beyond the handler's return: copies what lay in the input buffer. To be called
 * in the handler, before the request is handed to another thread. */
void net_http_defer(struct net_http_request *request);

/* Hands a deferred request to another handler, as if it had just come; its client is still there.
 * On its loop, outside every handler. */
void net_http_hand_over(struct net_http_request *request,
                        void (*handle)(struct net_http_request *request, void *context),
                        void *context);

/* Answers as what never reaches a handler is answered: settings.refusal. */
void net_http_refuse(struct net_http_request *request, uint16_t status, const char *reason);

/* The connection it came by: on its loop, while its client is there. NULL: by none, see below. */
struct net_connection *net_http_connection_of(const struct net_http_request *request);

/* What the request and its answer hold is held there from now on, and so is what waits to be
 * written to its connection. In the handler; until then it is net_http_settings.memory. */
void net_http_bill(struct net_http_request *request, struct memory_meter *meter);

/* On whose behalf it is, for tasks about it. From any thread. */
const void *net_http_owner(const struct net_http_request *request);

/* Whether the client has gone, so that nobody waits for the answer, which must still be given. For
 * deferred requests, from any thread. */
bool net_http_cancelled(const struct net_http_request *request);

/* The same as a flag to look at, for work that runs long; whoever else wants the work to end sets
 * it. Good until the answer is given. */
atomic_bool *net_http_cancel_flag(struct net_http_request *request);

/* Answers 101 with these header lines and hands the connection to another protocol (WebSocket).
 * In the handler only. False, and not answered: the client sent requests before this one that still
 * wait for their answers, or has asked for the connection to be closed. */
NODISCARD bool net_http_upgrade(struct net_http_request *request, struct slice lines,
                                const struct net_protocol *protocol, void *context);

struct net_http_settings {
    size_t request_line_max; /* over it 414 */
    size_t head_max;         /* request line and headers, over it 431 */
    size_t header_count_max; /* over it 431 */
    size_t body_max;         /* over it 413 */
    /* Bytes of requests not yet complete, of all connections, as much for each loop: over it those
     * that are the longest on their way are answered 503. */
    size_t bodies_max;
    uint32_t in_flight_max; /* requests of one connection not answered yet; then it is not read */
    /* Answers of one connection that wait for their turn or to be written: then it is not read. */
    size_t answers_max;
    struct memory_meter *memory; /* of requests that nobody else is billed for; may be NULL */
    int64_t head_ms, body_ms;    /* from their first byte to their last; over it 408 */
    int64_t idle_ms;             /* between requests; over it closed */

    /* How an API says no to what never reaches its handler; bytes are in the arena. NULL:
     * {"code":"ContentTooLarge","message":reason}. */
    struct net_http_response (*refusal)(struct arena *arena, uint16_t status, const char *reason);
};

struct net_http_settings net_http_settings_default(void);

/* An answer to a request that was passed on. */
struct net_http_answer {
    uint16_t status;
    bool close;         /* the client's connection is to end with it */
    struct slice lines; /* each ending in CRLF; without Date, Content-Length and Connection */
    struct slice body;  /* whatever the method and the status */
    struct net_http_exchange *exchange;
};
/* Puts the body behind what the output has; a long one is handed over, not copied. Once. */
void net_http_answer_body(struct net_http_answer *answer, struct net_output *output);

/* A request that came by other ways than a connection under HTTP: another server passes it on. */
struct net_http_passed {
    struct slice message; /* the whole of it, as HTTP/1.1 has it; borrowed */
    struct net_loop *loop;
    struct net_address client;
    bool tls; /* the client came by it */
    /* The answer, once, on the loop; also from within net_http_pass. Borrowed until return. */
    void (*answer)(void *context, struct net_http_answer *answer);
    void *context;
};
/* Calls the handler with it, or answers what cannot be read. On the loop. Returns the request, or
 * NULL if it is answered by then. */
struct net_http_request *net_http_pass(struct net_http *http, const struct net_http_passed *passed);
/* Nobody waits for the answer any more, and `answer` is not called. On the loop. */
void net_http_abandon(struct net_http_request *request);

/* For net_listener_new: &net_http_protocol with the net_http as its context. */
extern const struct net_protocol net_http_protocol;

struct net_http *net_http_new(struct net_loops *loops, const struct net_http_settings *settings,
                              void (*handle)(struct net_http_request *request, void *context),
                              void *context);

/* After its listeners, whoever answers deferred requests, and the loops are gone, in this order.
 * NULL is fine. */
void net_http_free(struct net_http *http);
CLEANUP_FN(struct net_http *, net_http_free)

struct net_http_metrics {
    uint64_t by_class[6];        /* answers by status / 100; [0]: clients that left before theirs */
    uint64_t in_flight;          /* handed to the handler and not answered */
    struct histogram latency_us; /* from the request's last byte to its answer */
};

void net_http_metrics(const struct net_http *http, struct net_http_metrics *ret_metrics);

/* {"code":"BadRequest","message":reason}, for what is refused before it reaches the handler. */
struct slice net_http_error_body(struct arena *arena, uint16_t status, const char *reason);

/* Reason phrases, for whoever renders a status: "Not Found"; "Status" for one unknown. */
const char *net_http_reason(uint16_t status);
