/* Connection: one socket on one loop, plain or TLS, under any protocol. Most are accepted; one that
 * passes another on is dialled (net_connection_dial).
 *
 * The layer reads, writes, keeps limits and deadlines and closes; a protocol takes bytes from the
 * front of the input and appends to the output. HTTP is one protocol, MongoDB's wire another;
 * WebSocket takes over a connection that HTTP opened. Everything here is for the thread of the
 * connection's loop.
 *
 * While more than output_high bytes wait to be written, nothing is read and nothing is given to
 * the protocol: a client that does not read cannot make the server's memory grow.
 *
 * A connection ends when the peer closes its half, too: whoever hangs up is taken to have lost
 * interest in what was asked. */
#pragma once

#include "base/buf.h"
#include "base/memory_meter.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/output.h"
#include "net/tls.h"

struct net_connection; /* opaque; gone after `closed` */

struct net_protocol {
    const char *name;

    /* The connection is open. Returns the protocol's state for it. */
    void *(*open)(struct net_connection *connection, void *context);

    /* Bytes have come. Returns how many were taken from the front; the rest is given again, with
     * more behind it, when more has come or after net_connection_resume. The bytes are borrowed
     * until return. */
    size_t (*bytes)(struct net_connection *connection, void *state, struct slice bytes);

    /* What waited to be written is below the mark again, or net_connection_resume was called: for a
     * protocol that has something to do without further bytes. NULL: it has not. */
    void (*room)(struct net_connection *connection, void *state);

    /* The time given to net_connection_deadline has come. */
    void (*deadline)(struct net_connection *connection, void *state);

    /* The server stops: answer what is begun, take nothing new, then net_connection_finish. */
    void (*drain)(struct net_connection *connection, void *state);

    /* The connection is gone, for whatever reason; frees the state. */
    void (*closed)(struct net_connection *connection, void *state);

    /* What a client over the limit of connections is told before it is closed; may be empty. */
    struct slice refusal;
};

/* Within a callback of the protocol none of these calls another one: the connection is flushed,
 * and closed if it must be, after the callback returns. Outside one (in a task) end with
 * net_connection_flush, which may close: the connection is not touched after it. */

/* Where to append: net_output_append and so on. */
struct net_output *net_connection_output(struct net_connection *connection);
void net_connection_flush(struct net_connection *connection);

/* More waits to be written than the mark allows; the protocol should stop taking requests. */
bool net_connection_is_full(struct net_connection *connection);

/* It is never full: bytes are read whatever waits to be written. For a connection of which the
 * protocol limits both, and whose other side must not wait for it. */
void net_connection_never_full(struct net_connection *connection);

/* The protocol can take bytes again that it left. */
void net_connection_resume(struct net_connection *connection);

/* What waits to be written is held there, from now on. NULL: nowhere. */
void net_connection_meter(struct net_connection *connection, struct memory_meter *meter);

/* Calls `deadline` at that time of clock_monotonic_ms unless set anew; NET_TIMER_NEVER: never. */
void net_connection_deadline(struct net_connection *connection, int64_t at_ms);

/* Reads nothing more, writes what is queued, then closes. When the peer may still be sending, a
 * close at once would reach it as a reset before it has read its answer: linger keeps the socket
 * until the peer closes too, or a moment has passed. */
void net_connection_finish(struct net_connection *connection, bool linger);

/* Hands the connection to another protocol; bytes not yet taken go to it. Within `bytes` only; the
 * old protocol's `closed` is called before this returns. */
void net_connection_become(struct net_connection *connection, const struct net_protocol *protocol,
                           void *context);

/* Begins a connection to another server, on the loop of one that is open and counted with those of
 * its listener; TLS as the context has it. Bytes may be appended to its output at once. One that
 * cannot be made is `closed` later, never from within this call. NULL: the system has no socket for
 * it. */
struct net_connection *net_connection_dial(struct net_connection *beside,
                                           const struct net_address *to,
                                           struct net_tls_context *tls,
                                           const struct net_protocol *protocol, void *context);

/* Another server has passed it on: from now on it shows the client's address, whether that came by
 * TLS, and the subject of its certificate (empty: none). */
void net_connection_stand_for(struct net_connection *connection, const struct net_address *client,
                              bool tls, struct slice subject);

/* Time as of the event being handled, of clock_monotonic_ms and _ns. */
uint64_t net_connection_now_ns(const struct net_connection *connection);
int64_t net_connection_now_ms(const struct net_connection *connection);
struct net_loop *net_connection_loop(const struct net_connection *connection);
bool net_connection_is_tls(const struct net_connection *connection);
/* Appends the subject of the certificate that the client has shown, and an authority of clients has
 * signed, as RFC 2253 writes it. False: there is none. On the loop, behind the first bytes. */
bool net_connection_subject(const struct net_connection *connection, struct buf *out);
const struct net_address *net_connection_peer(const struct net_connection *connection);
uint16_t net_connection_local_port(const struct net_connection *connection);
