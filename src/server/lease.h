/* Lease: whether the server that owns the root still does, as another one may judge it.
 *
 * Pure: what beats found and the time are handed in. Nobody's clock is compared with anybody's. A
 * server is held dead when its beat has not changed for lease_ms of the judge's own monotonic
 * clock, while the judge's own beats were acknowledged: if the node stands still for everybody,
 * nobody is judged. It is held dead sooner when its sessions with the node have ended and its
 * address refuses connections, which is what is left of a process that was killed.
 *
 * A wrong judgement costs the owner its ownership and its clients a connection, and nothing else:
 * the claim fences its writes in their own transactions. */
#pragma once

#include "engine/members.h"

struct lease_rules {
    int64_t beat_ms;  /* between two beats of a server */
    int64_t lease_ms; /* without one it is dead */
};

enum lease_verdict {
    LEASE_OURS,    /* this server owns */
    LEASE_HELD,    /* another does, and lives as far as is known */
    LEASE_FREE,    /* nobody does */
    LEASE_ENDED,   /* the owner is dead */
    LEASE_OUTSIDE, /* a server that works alone does */
};

struct lease {
    uint64_t owner, beat; /* as last seen; owner 0: never */
    int64_t changed_ms;   /* since when it is so */
    uint32_t beats;       /* of this server, acknowledged since */
    uint32_t refusals;    /* of the owner's address since, one after the other */
    int64_t refused_ms;   /* when the first was */
    bool ended;           /* its sessions are gone */
    bool probing;         /* worth asking its address */
};

enum { LEASE_REFUSALS = 3, LEASE_REFUSALS_MS = 300 };

/* A beat of this server was acknowledged and found this. */
void lease_look(struct lease *lease, const struct engine_membership *seen, int64_t now_ms);
/* The owner's address was asked: did it refuse? Worth doing while `probing`. */
void lease_asked(struct lease *lease, bool refused, int64_t now_ms);

enum lease_verdict lease_judge(const struct lease *lease, const struct lease_rules *rules,
                               const struct engine_membership *seen, uint64_t self, int64_t now_ms);

/* May this server claim? Not while it drains, nor with a clock that is off: what it wrote would
 * have times that the owner after it could not follow. ret_why says why not. */
bool lease_may_claim(const struct engine_membership *seen, uint64_t self, int64_t skew_ms_max,
                     const char **ret_why);
/* How far off a clock is for certain. */
int64_t lease_skew_ms(const struct engine_membership *seen);
