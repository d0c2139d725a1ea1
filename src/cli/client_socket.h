/* A link to a server over a socket, plain or TLS, kept for several requests. Blocking, with a
 * deadline for each step; waiting for an answer can be given up from outside. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct cli_socket_target {
    const char *host, *port;
    bool tls;
    const char *ca; /* certificates to trust besides the system's; empty: none */

    /* As soon as this descriptor can be read, waiting ends with ERROR_CANCELLED; nobody reads from
     * it here. -1: there is none. */
    int cancel;
};

struct cli_link; /* opaque, owned */

/* ERROR_SYSTEM says what failed and what to do; ERROR_CERTIFICATE. */
NODISCARD bool cli_link_open(const struct cli_socket_target *target, struct cli_link **ret_link,
                             struct error *err);
void cli_link_close(struct cli_link *link); /* NULL is fine */
CLEANUP_FN(struct cli_link *, cli_link_close)

/* Is it still good for a request? The server may have closed it meanwhile. */
bool cli_link_is_idle(struct cli_link *link);

NODISCARD bool cli_link_write(struct cli_link *link, struct slice bytes, struct error *err);

/* Appends what has come, at least a byte; *ret_end instead: the other side has closed. reply
 * carries the limit: ERROR_TOO_LARGE. ERROR_TIMED_OUT, ERROR_CANCELLED, ERROR_SYSTEM. */
NODISCARD bool cli_link_read(struct cli_link *link, struct buf *reply, bool *ret_end,
                             struct error *err);
