/* Gremlin client for load: scripts over WebSocket connections to a port of this machine, one at a
 * time each, as drivers send them: binary frames of GraphSON 2, with bindings.
 *
 * Every answer must end with status 200 or 204 and have at least that many bytes in all. */
#pragma once

#include "base/buf.h"
#include "load.h"

struct gremlin_client; /* opaque, owned */

struct gremlin_client_plan {
    uint16_t port;
    const char *graph; /* DATABASE.GRAPH */
    size_t reply_min;
    /* Appends the members "gremlin" and "bindings" of a request's arguments. */
    void (*script_append)(void *context, struct buf *out);
    void *context;
};

struct gremlin_client *gremlin_client_new(const struct gremlin_client_plan *plan);
void gremlin_client_free(struct gremlin_client *gremlin);

/* For load_run. */
struct load_client gremlin_client_load(struct gremlin_client *gremlin);

/* One script on a connection of its own. */
void gremlin_client_once(const struct gremlin_client_plan *plan);
