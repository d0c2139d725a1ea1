/* Doors: where a server that works with others takes connections, whoever owns at the moment.
 *
 * A door stands before each front. While this server owns, a connection goes on to the front. While
 * another one does it is passed on to that one, as a whole and byte by byte: below any API, so that
 * every client of every API works through every server. While nobody does, it waits.
 *
 *     client --TLS or plain--> door ... --TLS, mutual--> gate of the owner --> its front
 *
 * The gate is where a server takes what others pass on. What arrives there has shown a certificate
 * of the servers' own authority; it shows the client's address, and is served as if the client had
 * come itself. A connection is passed on at most PEER_HOPS_MAX times.
 *
 * A connection that is under way to an owner is closed when that owner goes, or is one no more:
 * what became of the request then is for the client to find out, as after any lost connection. One
 * that nothing was taken of yet is passed on to the next owner. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "net/connection.h"
#include "peer/hello.h"

struct peer_doors; /* opaque, owned by the server */

struct peer_doors_options {
    struct log *log;             /* borrowed */
    struct net_tls_context *tls; /* of servers among themselves; a reference is taken */
    int64_t wait_ms;             /* for an owner */
    int64_t drain_ms; /* a connection that is passed on and has been quiet for so long is idle */
};

struct peer_doors *peer_doors_new(const struct peer_doors_options *options);
/* After the listeners and the loops. NULL is fine. */
void peer_doors_free(struct peer_doors *doors);
CLEANUP_FN(struct peer_doors *, peer_doors_free)

/* What a connection speaks if this server owns; and what is answered by each server itself: a
 * connection whose first bytes ask for one of these paths (NULL: none). Before the first connection
 * but for the front, which is told when it is there. */
struct peer_front_local {
    const struct net_protocol *protocol;
    void *context;
    struct slice refusal; /* what a client is told that has waited in vain; may be empty */
    struct slice lost; /* and one whose request was under way when the owner went; may be empty */
};
void peer_doors_front(struct peer_doors *doors, enum peer_front front,
                      const struct peer_front_local *local);
void peer_doors_probes(struct peer_doors *doors, const struct net_protocol *protocol,
                       void *context);

/* Who owns, from now on: this server; another (its start and its address); or nobody known. From
 * any thread. */
void peer_doors_ours(struct peer_doors *doors);
void peer_doors_theirs(struct peer_doors *doors, uint64_t incarnation,
                       const struct net_address *address);
void peer_doors_nobodys(struct peer_doors *doors);

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
};
void peer_doors_metrics(const struct peer_doors *doors, struct peer_doors_metrics *ret_metrics);
