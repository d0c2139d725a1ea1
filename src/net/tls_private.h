/* TLS on one connection, for connection.c. */
#pragma once

#include "base/buf.h"
#include "net/tls.h"

struct net_tls; /* opaque, owned by its connection */

/* What became of reading or writing a descriptor, plain or TLS. */
enum net_io {
    NET_IO_DONE,
    NET_IO_WANTS_READ, /* nothing moved: wait until it can be read */
    NET_IO_WANTS_WRITE,
    NET_IO_CLOSED, /* by the peer */
    NET_IO_FAILED,
};

/* A frugal one keeps no buffers between two records. certificates: the client is asked for one, if
 * the context trusts anybody. */
struct net_tls *net_tls_new(struct net_tls_context *context, int fd, bool frugal,
                            bool certificates);
/* The end that begins, of a context for servers among themselves. */
struct net_tls *net_tls_new_dialling(struct net_tls_context *context, int fd);
void net_tls_free(struct net_tls *tls); /* NULL is fine */

/* Both shake hands first where that is still to be done. */
enum net_io net_tls_read(struct net_tls *tls, void *to, size_t size, size_t *ret_count);
enum net_io net_tls_write(struct net_tls *tls, const void *from, size_t size, size_t *ret_count);

/* Appends the subject of the client's certificate (RFC 2253), once the handshake is done. False: it
 * has shown none. */
bool net_tls_subject(const struct net_tls *tls, struct buf *out);

bool net_tls_is_established(const struct net_tls *tls);

/* Bytes have left the socket that were not given to the caller yet, so that waiting for the socket
 * may wait for ever. */
bool net_tls_has_pending(const struct net_tls *tls);

/* The connection is idle: gives its buffers back until they are needed. */
void net_tls_rest(struct net_tls *tls);

/* Tells the peer that nothing follows, as far as that goes without waiting. */
void net_tls_shutdown(struct net_tls *tls);
