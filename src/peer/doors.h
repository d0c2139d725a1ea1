/* Doors: where a server that works with others takes connections, whoever owns at the moment.
 *
 * A door stands before each front. While this server owns, a connection goes on to the front. While
 * another one does, what comes is passed on to that one, and waits while nobody does:
 *
 *     client --TLS or plain--> door ... --TLS, mutual--> gate of the owner --> its front
 *
 * Of a front whose connections are HTTP and nothing else (peer_doors_requests), requests are passed
 * on one by one: they are read here, and many of them share one connection to the owner (asking.c,
 * serving.c). A client keeps its connection whoever owns, also when this server begins to; what the
 * owner has not begun, and what may be done twice, is passed on again to the next one. Every other
 * connection is passed on as a whole and byte by byte: below any API.
 *
 * The gate is where a server takes what others pass on. What arrives there has shown a certificate
 * of the servers' own authority; it shows the client's address, and is served as if the client had
 * come itself. A connection is passed on at most PEER_HOPS_MAX times.
 *
 * A connection that is passed on as a whole is closed when that owner goes, or is one no more:
 * what became of the request then is for the client to find out, as after any lost connection. One
 * that nothing was taken of yet is passed on to the next owner. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "net/http.h"
#include "peer/hello.h"

struct peer_doors; /* opaque, owned by the server */

struct peer_doors_options {
    struct log *log;             /* borrowed */
    struct net_tls_context *tls; /* of servers among themselves; a reference is taken */
    /* What requests that are passed on hold, those of one host at most a quarter of it, and what
     * waits to be written between servers; may be NULL. */
    struct memory_meter *memory;
    struct peer_leases *leases; /* borrowed; NULL: none are given nor asked for */
    int64_t wait_ms;            /* for an owner */
    int64_t drain_ms; /* a connection that is passed on and has been quiet for so long is idle */
};

struct peer_doors *peer_doors_new(const struct peer_doors_options *options);
/* After the listeners and the loops. NULL is fine. */
void peer_doors_free(struct peer_doors *doors);
CLEANUP_FN(struct peer_doors *, peer_doors_free)

/* What a connection speaks if this server owns. Told when the front is there; before it, what
 * clients are told alone. */
struct peer_front_local {
    const struct net_protocol *protocol;
    void *context;
    struct slice refusal; /* what a client is told that has waited in vain; may be empty */
    /* Of HTTP, whose context is a net_http: its handler, for requests that were read at the door.
     */
    void (*handle)(struct net_http_request *request, void *context);
    void *handle_context;
};
void peer_doors_front(struct peer_doors *doors, enum peer_front front,
                      const struct peer_front_local *local);

/* From now on the requests of this front are passed on one by one. Before the first connection. */
struct peer_requests {
    struct net_http *http; /* made with peer_request_handle and peer_doors_door; borrowed */
    /* Answers the request if this server does so by itself, whoever owns. NULL: it never does. */
    bool (*own)(struct net_http_request *request, void *context);
    /* Is it the same whether it is done once or twice? */
    bool (*repeats)(const struct net_http_request *request, void *context);
    void *context;
};
void peer_doors_requests(struct peer_doors *doors, enum peer_front front, struct net_loops *loops,
                         const struct peer_requests *requests);
void peer_request_handle(struct net_http_request *request, void *door);
/* The same of one that this server has found it does not answer by itself. */
void peer_request_pass_on(struct net_http_request *request, void *door);

/* Who owns, from now on: this server; another (its start and its address); or nobody known. From
 * any thread. */
void peer_doors_ours(struct peer_doors *doors);
void peer_doors_theirs(struct peer_doors *doors, uint64_t incarnation,
                       const struct net_address *address);
void peer_doors_nobodys(struct peer_doors *doors);

/* This server stops: what waits for an owner is refused. Before listeners are drained. */
void peer_doors_leave(struct peer_doors *doors);

/* The protocols for listeners, and the context of a door. */
extern const struct net_protocol peer_door_protocol, peer_gate_protocol;
void *peer_doors_door(struct peer_doors *doors, enum peer_front front);

struct peer_doors_metrics {
    uint64_t passed_on; /* connections */
    uint64_t taken;     /* of others, at the gate */
    uint64_t refused;   /* at the gate */
    uint64_t given_up;  /* nobody owned for wait_ms */
    uint64_t cut;       /* the owner went */
    uint64_t open;      /* passed on, now */

    uint64_t requests;          /* passed on one by one */
    uint64_t requests_repeated; /* passed on again, for the owner they went to had gone */
    uint64_t requests_lost;     /* answered 408: it is not known whether the owner did them */
    uint64_t requests_refused;  /* answered 503: nobody owned for wait_ms, or no memory */
    uint64_t requests_waiting;  /* for an owner, now */
    uint64_t requests_taken;    /* of other servers' clients */
};
void peer_doors_metrics(const struct peer_doors *doors, struct peer_doors_metrics *ret_metrics);
