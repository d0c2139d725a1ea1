/* Handshake: how a connection of HTTP becomes one of WebSocket (RFC 6455, 4.2). Extensions and
 * subprotocols that a client offers are not taken up: nothing is compressed. */
#pragma once

#include "net/http.h"

/* Does the request ask for WebSocket at all? */
bool gremlin_handshake_is_asked(const struct net_http_request *request);

/* The header lines of the answer, in the arena. ERROR_BAD_REQUEST: it is asked for wrongly;
 * *ret_version: in a version that is not spoken here, which 426 tells. */
NODISCARD bool gremlin_handshake_lines(const struct net_http_request *request,
                                       struct slice *ret_lines, bool *ret_version,
                                       struct error *err);
