/* One exchange over a socket, plain or TLS: everything is sent, everything is read until the other
 * side closes. Blocking, with a deadline for each step. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct cli_socket_target {
    const char *host, *port;
    bool tls;
    const char *ca; /* certificates to trust besides the system's; empty: none */
};

/* The answer is appended to reply, whose maximum is the limit. ERROR_SYSTEM says what failed and
 * what to do. */
NODISCARD bool cli_socket_exchange(const struct cli_socket_target *target, struct slice request,
                                   struct buf *reply, struct error *err);
