/* HTTP client for load: requests over kept-alive connections to a port of this machine. */
#pragma once

#include "base/buf.h"
#include "load.h"

struct http_client; /* opaque, owned */

/* Every answer must have this status and at least that many bytes of body. request_append writes
 * the next request whole. */
struct http_client_plan {
    uint16_t port;
    unsigned status;
    size_t body_min;
    void (*request_append)(void *context, struct buf *out);
    void *context;
};

struct http_client *http_client_new(const struct http_client_plan *plan);
void http_client_free(struct http_client *http);

/* For load_run. */
struct load_client http_client_load(struct http_client *http);

/* One request on a connection of its own. */
void http_client_once(const struct http_client_plan *plan);
