/* Listener: accepts connections at one address and deals them out over the loops.
 *
 * Loop 0 accepts; each connection goes to the loop that has the fewest. The kernel could spread
 * them instead (SO_REUSEPORT), but it does so badly for few long-lived connections.
 *
 * Over connections_max a client gets the protocol's refusal (HTTP: 503) and is closed. When the
 * process runs out of descriptors, accepting pauses a moment and the clients wait in the kernel's
 * queue. */
#pragma once

#include "net/connection.h"
#include "net/tls.h"

struct net_listener; /* opaque, owned */

struct net_listener_settings {
    uint32_t connections_max;
    int backlog;
    size_t input_max;       /* bytes kept while the protocol waits for more; HTTP: over head_max */
    size_t output_high;     /* the mark of net_connection_is_full */
    int64_t write_stall_ms; /* output that has not moved between two looks, so long apart: closed */
    int64_t linger_ms;      /* how long a closing connection waits for the peer to finish */
    int64_t handshake_ms;   /* from accept to the first byte of the protocol, and for TLS */
    bool client_certificates; /* clients are asked for one, where the context trusts somebody */
    bool tls_required;        /* plain clients are closed; else both are served on the port */
};

struct net_listener_settings net_listener_settings_default(void);

struct net_listener_metrics {
    uint64_t open; /* now; the others count since the start */
    uint64_t accepted, refused;
    uint64_t tls_handshakes, tls_failures;
    uint64_t bytes_in, bytes_out; /* of the protocol, without TLS's own */
    uint64_t accept_pauses;       /* for want of descriptors */
};

/* Listens at once. The protocol's context must outlive the listener. tls may be NULL (plain only);
 * the listener takes a reference of its own.
 * ERROR_ADDRESS: "port 8081 on 127.0.0.1 is in use" and the like; the caller adds which option
 * changes it. */
NODISCARD bool net_listener_new(struct net_loops *loops, const struct net_address *address,
                                const struct net_listener_settings *settings,
                                const struct net_protocol *protocol, void *context,
                                struct net_tls_context *tls, struct net_listener **ret_listener,
                                struct error *err);

/* Closes what is still open without waiting. NULL is fine. */
void net_listener_free(struct net_listener *listener);
CLEANUP_FN(struct net_listener *, net_listener_free)

/* Where it really listens: the port is never 0. */
const struct net_address *net_listener_address(const struct net_listener *listener);

/* Connections accepted from now on use another certificate; those open keep theirs. From any
 * thread. Not for a listener made without TLS. */
void net_listener_set_tls(struct net_listener *listener, struct net_tls_context *tls);

/* Accepts no more, lets every connection finish what it has begun, and waits for them, at most so
 * long. False: some were still busy and have been cut. Not from a loop's thread. */
bool net_listener_drain(struct net_listener *listener, int64_t timeout_ms);

void net_listener_metrics(const struct net_listener *listener,
                          struct net_listener_metrics *ret_metrics);
