/* Connections of MongoDB clients: messages come in, replies go out, one at a time.
 *
 * A handler gets each whole message on the loop of its connection, and answers it once: before it
 * returns, or later from any thread if it has kept the request. Until then the connection takes no
 * further message. A message may be handled again without being sent again, for clients that take
 * several replies to one. What the handler knows of a connection is its session, which lives until
 * the connection has gone and its last request is answered.
 *
 * What a message holds while it comes in and is worked on counts on the meter of the session. */
#pragma once

#include "base/arena.h"
#include "front/mongo/wire/message.h"
#include "net/connection.h"

#include <stdatomic.h>

struct mongo_wire; /* opaque, owned: what the connections of all loops share */

/* What the handler sees. */
struct mongo_request {
    struct slice bytes;  /* the whole message; borrowed until the handler returns or keeps it */
    struct arena *arena; /* for the handler; reset after the answer */
    void *session;
    struct net_loop *loop;
    uint64_t started_ns; /* of clock_monotonic_ns: when its last bytes came */
    bool delivered;      /* by mongo_wire_deliver: it is kept, and this may be no loop */
};

/* The client, for the session. */
struct mongo_peer {
    struct net_address address;
    bool tls;
    uint64_t number; /* of the connection, from 1 */
};

struct mongo_wire_handler {
    void *(*open)(void *context, const struct mongo_peer *peer);
    void (*handle)(struct mongo_request *request, void *context);
    void (*close)(void *session);
    /* The client has gone while a request is handled, whose flag says so by now. NULL: nobody wants
     * to know. */
    void (*gone)(void *context);
    /* How long a message of the session may be, by what it has shown of itself. */
    size_t (*bytes_max)(const void *session);
    void *context;
};

struct mongo_wire_settings {
    int64_t message_ms;          /* from its first byte to its last; over it closed */
    int64_t idle_ms;             /* between messages; over it closed */
    struct memory_meter *memory; /* of sessions that nobody is billed for; may be NULL */
};

struct mongo_wire *mongo_wire_new(const struct mongo_wire_settings *settings,
                                  const struct mongo_wire_handler *handler);

/* After its listeners and the loops are gone. NULL is fine. */
void mongo_wire_free(struct mongo_wire *wire);
CLEANUP_FN(struct mongo_wire *, mongo_wire_free)

/* For net_listener_new, with the wire as its context. */
extern const struct net_protocol mongo_wire_protocol;

/* A message that came another way than over a connection of this protocol. */
struct mongo_delivery {
    void *session;  /* as `open` would give one; the caller's again when it is answered */
    uint8_t *bytes; /* a whole message, which is taken over (memory_free) */
    size_t len;
    struct net_loop *loop;  /* where what waits for it lives */
    uint64_t started_ns;    /* of clock_monotonic_ns */
    atomic_bool *cancelled; /* set when nobody waits any more; good until the answer */
    /* The reply, or NULL where there is none; taken over (memory_free). From any thread, and maybe
     * before the delivery returns. */
    void (*answered)(void *context, uint8_t *bytes, size_t len);
    void *context;
};

/* Has the handler handle it, as one of a connection that takes nothing else. From a thread that may
 * block. */
void mongo_wire_deliver(struct mongo_wire *wire, const struct mongo_delivery *delivery);

/* In the handler: the bytes outlive it from now on. They may move. */
void mongo_request_keep(struct mongo_request *request);

/* In the handler: what the session holds is held there from now on. */
void mongo_request_bill(struct mongo_request *request, struct memory_meter *meter);

/* Before the answer: once it is written, and the client reads, the same message is handled again
 * under this id, as if the client had sent it. Until then nothing else is taken from it. */
void mongo_request_repeat(struct mongo_request *request, int32_t id);

/* Sends the bytes, which are a reply or nothing, and is done with the request; they are taken over
 * (memory_free). close: the connection ends then. From any thread if it was kept. */
void mongo_request_answer(struct mongo_request *request, uint8_t *bytes, size_t len, bool close);

/* Appends the subject of the client's certificate; false: it has shown none that is trusted. On the
 * loop, in the handler. */
bool mongo_request_subject(const struct mongo_request *request, struct buf *out);

/* Sets the flag as if the client had gone; it is answered all the same. From any thread, before the
 * answer. */
void mongo_request_cancel(struct mongo_request *request);

/* Set when the client has gone, or mongo_request_cancel was called. */
const atomic_bool *mongo_request_cancel_flag(const struct mongo_request *request);

struct mongo_wire_metrics {
    uint64_t opened, open; /* connections: since the start, and now */
    uint64_t requests;
    uint64_t bytes_in, bytes_out;
};

void mongo_wire_metrics(const struct mongo_wire *wire, struct mongo_wire_metrics *ret_metrics);
