/* Client: what is known of a WebSocket connection: who it is, what it has asked, its sessions.
 *
 * All of it belongs to the connection's loop. Requests wait in one of these places:
 *
 *     read --stranger--> waiting --authenticated--+
 *          --known--------------------------------+--in a session that is busy--> its queue --+
 *                                                 +--else-------------------------------------+-->
 * ready --> running
 *
 * A client whose connection has gone lives until the last of its running requests has ended. */
#pragma once

#include "front/gremlin/command/call.h"
#include "front/gremlin/command/identity.h"

struct gremlin_queue {
    struct gremlin_call *first, *last;
};

struct gremlin_client {
    struct gremlin *gremlin;
    struct gremlin_connection *connection; /* NULL: it has gone */
    struct gremlin_channel *channel;       /* a reference */
    struct net_loop *loop;
    struct memory_meter *meter; /* of who it is */
    struct net_address address;
    char account[GREMLIN_ACCOUNT_SIZE];
    bool local;      /* it need not say who it is, if it names its graph by the alias */
    bool served;     /* it has come as the service has clients come: with TLS, or to "/" */
    bool challenged; /* it was asked who it is */
    uint32_t failures;
    struct gremlin_identity identity;
    struct gremlin_queue waiting, ready;
    struct gremlin_call *reading; /* on a worker; NULL: none */
    size_t count;                 /* requests not ended */
    size_t running;
    struct gremlin_session *sessions;
    struct net_timer *timer; /* of sessions; NULL: there was none */
};

extern const struct gremlin_wire_handler gremlin_client_handler; /* without its context */

/* The call is over, and is gone afterwards. On the loop. */
void gremlin_client_ended(struct gremlin_call *call);
