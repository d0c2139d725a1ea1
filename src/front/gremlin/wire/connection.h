/* Connections of Gremlin's clients: WebSocket messages come in whole, in order, and each is handed
 * to a handler on the loop of its connection; answers go out on the connection's channel, from any
 * thread, as they become ready. Pings are answered here, and closing is.
 *
 * What the handler knows of a connection is its session. A connection that goes cuts it off
 * (`gone`); when the session ends after that is the handler's affair, which still has requests to
 * end. */
#pragma once

#include "front/gremlin/wire/channel.h"
#include "net/connection.h"
#include "net/http.h"

struct gremlin_wire;       /* opaque, owned: what the connections of all loops share */
struct gremlin_connection; /* opaque: one of them, for the loop's thread, until `gone` */

/* A message of a client; its bytes are the handler's (memory_free), and are not counted on a meter
 * any more. */
struct gremlin_incoming {
    uint8_t *bytes;
    size_t len;
    bool text; /* it came in a text frame */
};

/* The client, for the session. */
struct gremlin_peer {
    struct net_address address;
    bool tls;
    bool root;           /* it has asked for the path "/" */
    const char *account; /* as it is stored; borrowed */
};

struct gremlin_wire_handler {
    void *(*open)(void *context, struct gremlin_connection *connection,
                  const struct gremlin_peer *peer);
    void (*message)(void *session, struct gremlin_incoming *message);
    /* May another message come now? If not, gremlin_connection_resume when one may. */
    bool (*takes)(const void *session);
    /* Is nothing under way? A connection that is idle for long is closed. */
    bool (*idle)(const void *session);
    /* The connection is gone, and is not to be touched any more. */
    void (*gone)(void *session);
    void *context;
};

struct gremlin_wire_settings {
    size_t message_bytes_max;    /* over it the connection is closed with 1009 */
    size_t waiting_bytes_max;    /* of answers that wait to be written, of one connection */
    int64_t message_ms;          /* from its first byte to its last; over it closed */
    int64_t idle_ms;             /* between messages; over it closed */
    struct memory_meter *memory; /* of connections that nobody is billed for; may be NULL */
};

struct gremlin_wire *gremlin_wire_new(const struct gremlin_wire_settings *settings,
                                      const struct gremlin_wire_handler *handler);

/* After its listeners and the loops are gone. NULL is fine. */
void gremlin_wire_free(struct gremlin_wire *wire);
CLEANUP_FN(struct gremlin_wire *, gremlin_wire_free)

/* In a handler of HTTP: the connection speaks WebSocket from now on. account: as in the peer;
 * copied. False, and not answered: requests before this one wait for their answers. */
NODISCARD bool gremlin_wire_upgrade(struct gremlin_wire *wire, struct net_http_request *request,
                                    struct slice lines, struct slice account);

/* For the loop's thread: */
struct gremlin_channel *gremlin_connection_channel(struct gremlin_connection *connection);
struct net_loop *gremlin_connection_loop(struct gremlin_connection *connection);
int64_t gremlin_connection_now_ms(const struct gremlin_connection *connection);
uint64_t gremlin_connection_now_ns(const struct gremlin_connection *connection);

/* What the connection holds is held there from now on. */
void gremlin_connection_bill(struct gremlin_connection *connection, struct memory_meter *meter);

/* Messages may come again. */
void gremlin_connection_resume(struct gremlin_connection *connection);

/* Closes it once what was sent is written: with that code of WebSocket. reason: at most 123 bytes.
 */
void gremlin_connection_close(struct gremlin_connection *connection, uint16_t code,
                              struct slice reason);

struct gremlin_wire_metrics {
    uint64_t opened, open; /* connections: since the start, and now */
    uint64_t messages;
    uint64_t bytes_in, bytes_out; /* of messages */
};

void gremlin_wire_metrics(const struct gremlin_wire *wire,
                          struct gremlin_wire_metrics *ret_metrics);
