/* Prober: a thread of its own that works out one probe for whoever asks.
 *
 * Probes must not wait behind the work of clients, and asking for them very often must cost little.
 * So they have neither workers nor a queue in common with requests: one answer is worked out at a
 * time, for all who asked before it was begun, and the thread then rests for nine times as long as
 * that took. An answer is never older than its question. */
#pragma once

#include "base/buf.h"
#include "net/http.h"

struct prober; /* opaque, owned */

struct prober_options {
    const char *name; /* of the thread, at most 15 bytes; static */
    const char *type; /* of the body; static */
    size_t body_max;
    uint16_t (*print)(void *context, struct buf *body); /* gives the status; may block */
    void *context;
};

struct prober *prober_new(const struct prober_options *options);

/* Answers all who asked. After the listeners, before the loops. NULL is fine. */
void prober_free(struct prober *prober);
CLEANUP_FN(struct prober *, prober_free)

/* In the handler: the request is answered later. */
void prober_ask(struct prober *prober, struct net_http_request *request);
