/* Leases: by which a server that does not own the nodes may answer reads by itself.
 *
 * Whoever reads by a catalogue in memory may do so only while that is the present one: a key that
 * was revoked, a permission or a definition that was changed must not be used any more when the
 * change is answered. So a follower reads under a lease of the owner, and the owner calls all
 * leases back *before* a change is committed, and waits until each is returned or has run out:
 *
 *     follower                        owner
 *        --- ASK ------------------------>
 *        <-- LEASE, generation 7 ---------     the follower loads the catalogue, once for each
 *        ... answers reads ...                 generation, and answers reads
 *        <-- RECALL 7 --------------------     a change is to be made: no leases are given
 *        --- RETURN 7 ------------------->     it is made, and answered
 *        --- ASK ------------------------>
 *        <-- LEASE, generation 8 ---------
 *
 * What a follower does between a recall and the next load is pass requests on, so nobody waits for
 * its load. A follower that hangs, or whose connection is lost, delays a change by the rest of its
 * lease. Time is measured by each server's own monotonic clock: the owner counts a lease from when
 * it gives it, the follower nine tenths of it from when it asked, which was before.
 *
 * An owner that has lost the nodes and does not know it yet may still give leases. So a follower
 * counts, too, from when it sent the last beat that found this owner, and a server that takes over
 * makes no change before the leases of the owner before it have run out.
 *
 * With a lease goes throughput (RU): a follower says what it has spent on each partition and what
 * it could spend, and is lent some for a few tenths of a second. */
#pragma once

#include "base/log.h"
#include "net/connection.h"
#include "peer/doors.h"

struct peer_leases; /* opaque, owned by the server; any thread but where it says so */

struct peer_leases_options {
    struct log *log;  /* borrowed; may be NULL */
    int64_t lease_ms; /* how long one lasts */
    bool unproved;    /* for tests of checkers alone: a lease is never over */
    /* The owner's: spent_cru was spent on the partition by another server, which could spend
     * wanted_cru more. Returns what it may. On a loop. */
    int64_t (*lend)(void *context, uint32_t partition, int64_t spent_cru, int64_t wanted_cru);
    /* The follower's: there is a lease of a generation for which no catalogue was loaded. On a
     * loop. */
    void (*granted)(void *context);
    void *context;
};

struct peer_leases *peer_leases_new(const struct peer_leases_options *options);
void peer_leases_free(struct peer_leases *leases); /* behind the loops; NULL is fine */

/* --- The owner -------------------------------------------------------------------------------- */

/* This server owns the nodes from now on. waits: others may have leases of the owner before it. */
void peer_leases_own(struct peer_leases *leases, bool waits);

/* No other server reads by the catalogue when this returns, and none begins to before `recalled`;
 * calls may overlap. Blocks for lease_ms at most. Not on a loop. */
void peer_leases_recall(struct peer_leases *leases);
void peer_leases_recalled(struct peer_leases *leases);

/* Of a connection that a follower asks for leases by; the leases are its context. */
extern const struct net_protocol peer_lease_serving_protocol;

/* --- The follower ----------------------------------------------------------------------------- */

/* A beat that was sent at this time (monotonic) found this owner. */
void peer_leases_seen(struct peer_leases *leases, uint64_t incarnation, int64_t sent_ms);

/* The lease that a catalogue is wanted for: its owner and generation. False: there is none. */
NODISCARD bool peer_leases_wanted(struct peer_leases *leases, uint64_t ret_pass[2]);
/* A catalogue that was read behind peer_leases_wanted is in memory. */
void peer_leases_loaded(struct peer_leases *leases, const uint64_t pass[2]);

/* May a read be answered now, by the catalogue in memory? And still? */
NODISCARD bool peer_leases_take(struct peer_leases *leases, uint64_t ret_pass[2]);
NODISCARD bool peer_leases_hold(struct peer_leases *leases, const uint64_t pass[2]);

/* A read came that a lease would serve: one is asked for, beside the connection of the client, if
 * that was not done. On the client's loop. */
void peer_leases_want(struct peer_leases *leases, struct peer_doors *doors,
                      struct net_connection *client);

/* Throughput that was lent. False: nothing is left for the partition. */
NODISCARD bool peer_leases_admit(struct peer_leases *leases, uint32_t partition, int64_t price_cru);
void peer_leases_settle(struct peer_leases *leases, uint32_t partition, int64_t price_cru,
                        int64_t charge_cru);

struct peer_leases_metrics {
    uint64_t asked, granted, recalled; /* of this server as a follower */
    uint64_t given, recalls;           /* of this server as the owner */
    uint64_t recall_ms;                /* that changes have waited, together */
    bool held;                         /* reads are answered by itself now */
};
void peer_leases_metrics(struct peer_leases *leases, struct peer_leases_metrics *ret_metrics);
