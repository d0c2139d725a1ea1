/* MongoDB client for load: commands over connections to a port of this machine, one at a time each.
 *
 * Every reply must have ok 1, no writeErrors, and at least that many bytes. */
#pragma once

#include "base/buf.h"
#include "load.h"

struct mongo_client; /* opaque, owned */

struct mongo_client_plan {
    uint16_t port;
    size_t reply_min;
    void (*command_append)(void *context, struct buf *out); /* a BSON document */
    void *context;
};

struct mongo_client *mongo_client_new(const struct mongo_client_plan *plan);
void mongo_client_free(struct mongo_client *mongo);

/* For load_run. */
struct load_client mongo_client_load(struct mongo_client *mongo);

/* One command on a connection of its own. */
void mongo_client_once(const struct mongo_client_plan *plan);
