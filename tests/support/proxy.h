/* Proxy: stands between a client and a server's socket and fails like a network does: after just so
 * many bytes in one direction, for one side only, or altogether. A thread of its own forwards. */
#pragma once

#include "base/attrs.h"

struct proxy; /* opaque */

/* Forwards connections to 127.0.0.1:proxy_port to the socket at path. */
struct proxy *proxy_start(const char *path);
void proxy_free(struct proxy *proxy); /* NULL is fine */
CLEANUP_FN(struct proxy *, proxy_free)

int proxy_port(const struct proxy *proxy);

enum proxy_direction { PROXY_TO_SERVER, PROXY_TO_CLIENT };

/* Lets this many bytes more pass in one direction and then cuts all connections, once. silent: the
 * server is not told, its side stays open. */
void proxy_cut_after(struct proxy *proxy, enum proxy_direction direction, size_t bytes,
                     bool silent);
/* Takes the order back; true when it had been carried out. */
bool proxy_cut_cancel(struct proxy *proxy);

/* Bytes sent to the server since the start. */
size_t proxy_bytes_to_server(struct proxy *proxy);

/* Closes new connections at once. */
void proxy_refuse(struct proxy *proxy, bool refuse);
/* Forwards nothing, closes nothing. */
void proxy_freeze(struct proxy *proxy, bool freeze);
