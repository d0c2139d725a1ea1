/* Channel: a connection as the requests of any thread see it, to send answers on.
 *
 * What was sent and is not yet written to the client has a limit: whoever sends past it waits, so
 * that a client which does not read stops its own requests and nothing else. Nobody waits for one
 * that has gone. */
#pragma once

#include "net/output.h"
#include "net/workers.h"

#include <stdatomic.h>

struct gremlin_channel; /* opaque, shared, counted; any thread */

struct gremlin_channel *gremlin_channel_ref(struct gremlin_channel *channel);
struct gremlin_channel *gremlin_channel_unref(struct gremlin_channel *channel); /* NULL is fine */
CLEANUP_FN(struct gremlin_channel *, gremlin_channel_unref)

/* Set when the client has gone, or has said that it goes. */
const atomic_bool *gremlin_channel_gone(const struct gremlin_channel *channel);

/* A message for the client; its bytes are taken over (memory_free). */
struct gremlin_outgoing {
    uint8_t *bytes;
    size_t len;
    bool text; /* in a text frame, else in a binary one */
};

/* From a worker: sends a message, once there is room for it. deadline_ms: of clock_monotonic_ms; 0:
 * as long as it takes. ERROR_TIMED_OUT: it was not to be, or nobody is there. */
NODISCARD bool gremlin_channel_send(struct gremlin_channel *channel, struct net_workers *workers,
                                    const struct gremlin_outgoing *message, int64_t deadline_ms,
                                    struct error *err);

/* From any thread: sends what is the last of a request without waiting; then calls `then` on the
 * loop, whether somebody is there or not. bytes NULL: nothing is sent. */
void gremlin_channel_end(struct gremlin_channel *channel, const struct gremlin_outgoing *message,
                         void (*then)(void *context), void *context);

/* --- For the connection ------------------------------------------------------------------------
 */

/* Where messages arrive, on the loop. */
struct gremlin_channel_target {
    /* Sends it; release is called once it was written or thrown away. */
    void (*send)(void *context, const struct gremlin_outgoing *message, struct net_release release);
    /* Behind each message that came from elsewhere; the connection may be gone afterwards. */
    void (*sent)(void *context);
    void *context;
};

struct gremlin_channel *gremlin_channel_new(struct net_loop *loop, size_t waiting_max,
                                            const struct gremlin_channel_target *target);

/* The client is not there any more: requests are told. On the loop. */
void gremlin_channel_leave(struct gremlin_channel *channel);

/* The connection is no more: what is sent from now on goes nowhere. On the loop. */
void gremlin_channel_cut(struct gremlin_channel *channel);
