/* Shard: a listener's part in one loop: its connections there and their counts. Only the loop's
 * thread touches it; the counts are read from any. */
#pragma once

#include "net/listener.h"
#include "net/loop_private.h"

#include <stdatomic.h>

struct net_shard {
    struct net_listener *listener;
    struct net_loop *loop;
    const struct net_listener_settings *settings;
    const struct net_protocol *protocol;
    void *context;
    uint16_t port;
    bool draining;
    struct net_connection *connections; /* a list */

    /* Written by the loop's thread only. */
    _Atomic uint64_t tls_handshakes, tls_failures, bytes_in, bytes_out;
};

/* A counter with one writer needs no locked instruction. */
static inline void net_counter_add(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

static inline uint64_t net_counter_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Makes a connection of an accepted, non-blocking socket, which it owns, for the shard's loop. Any
 * thread; afterwards it belongs to the loop. A refused one is only told so. */
void net_connection_start(struct net_shard *shard, int fd, const struct net_address *peer,
                          bool refused);

/* Around calls of a protocol's own code from outside its callbacks: until left, the connection is
 * neither flushed nor closed, whatever is called. Leaving does both, as net_connection_flush. */
void net_connection_enter(struct net_connection *connection);
void net_connection_leave(struct net_connection *connection);

void net_shard_drain(struct net_shard *shard);
void net_shard_abort(struct net_shard *shard);

/* Of listener.c, for connection.c: the context now in use, with a reference, or NULL; and that a
 * connection has gone. */
struct net_tls_context *net_listener_tls(struct net_listener *listener);
void net_listener_dialled(struct net_listener *listener);
void net_listener_closed(struct net_listener *listener, bool refused);
