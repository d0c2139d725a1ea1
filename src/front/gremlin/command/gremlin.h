/* The Gremlin front: containers of an account as graphs, over WebSocket and HTTP on one port.
 *
 * docs/design/gremlin.md is the plan. Requests of one connection run side by side, those of one
 * session one after the other; each runs on a worker at the expense of its account. */
#pragma once

#include "front/front.h"
#include "front/gremlin/run/run.h"
#include "front/gremlin/wire/connection.h"
#include "front/kit/http.h"

struct gremlin; /* opaque, owned by the server */

struct gremlin_options {
    struct front_services services;
    struct front_door door;
    struct gremlin_wire_settings wire;
    const char *origins; /* pages of these may use the front from a browser; "": of none */
    enum gremlin_version version;
    bool typed; /* GraphSON 2 is answered with types */

    bool indexes; /* graphs get those of graph/walk.h by themselves */

    size_t script_bytes_max;
    size_t operators_max;         /* steps of a request */
    size_t loops_max;             /* iterations of a repeat() */
    int64_t evaluation_ms;        /* a request runs so long, unless it says otherwise, */
    int64_t evaluation_ms_max;    /* which it may up to here */
    size_t memory_bytes_max;      /* of the values of a request */
    size_t results_bytes_max;     /* of results that are held, and of those in one frame */
    size_t transaction_bytes_max; /* of what is written and not committed */
    uint32_t in_flight_max;       /* requests of a connection not answered; then it is not read */
    uint32_t running_max;         /* of those on workers at a time */
    uint32_t sessions_max;        /* of all connections */
    int64_t session_ms;           /* one that is not used for so long is over */
};

/* Options are copied, the texts in them are borrowed. */
struct gremlin *gremlin_new(const struct gremlin_options *options);

/* For net_http_new, with the front as its context: requests of HTTP, and how WebSocket begins. */
void gremlin_handle(struct net_http_request *request, void *context);

/* For net_http_settings: what is refused before it reaches the handler. */
struct net_http_response gremlin_refusal(struct arena *arena, uint16_t status, const char *reason);

struct gremlin_metrics {
    struct gremlin_wire_metrics wire;
    uint64_t scripts, bytecodes, authentications; /* requests since the start */
    uint64_t failed;                              /* of all those, answered with an error */
    uint64_t sessions;                            /* open now */
    uint64_t results;                             /* given */
};

void gremlin_metrics(const struct gremlin *gremlin, struct gremlin_metrics *ret_metrics);

/* Waits for what is still under way. After the listeners have gone, before the loops go. */
void gremlin_wait(struct gremlin *gremlin);

/* After the loops are gone. NULL is fine. */
void gremlin_free(struct gremlin *gremlin);
CLEANUP_FN(struct gremlin *, gremlin_free)
