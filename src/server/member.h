/* Member: this server among those that share its nodes. A thread beats on the root node, watches
 * over the owner's lease, claims it when it ends, and tells the server what it has become.
 *
 * Only where servers.listen is set; else there is none, and everything is of one process. */
#pragma once

#include "net/address.h"
#include "server/lease.h"
#include "server/settings.h"

struct member; /* opaque, owned by the server */

enum member_role {
    MEMBER_FOLLOWER, /* another server owns, or none is known */
    MEMBER_CLAIMED,  /* this one owns, and is to open the nodes */
    MEMBER_LOST,     /* this one did, and does no more: it is to begin again */
};

struct member_options {
    const struct settings *settings; /* borrowed */
    struct log *log;                 /* borrowed */
    /* Called by the thread behind each beat, with what it found, and when the role has changed;
     * under no lock. seen is NULL when the beat failed. */
    void (*seen)(void *context, const struct engine_membership *seen);
    void (*turned)(void *context, enum member_role role);
    void *context;
};

/* Is this server to work with others? */
bool member_is_wanted(const struct settings *settings);
/* Whether the settings are good for that. ERROR_CONFIGURATION. */
NODISCARD bool member_check(const struct settings *settings, struct error *err);

/* Registers and begins to beat; when it returns the first beat is acknowledged. Errors as
 * engine_members_open has them; ERROR_CONFIGURATION: the clock is off. */
NODISCARD bool member_new(const struct member_options *options, struct member **ret_member,
                          struct error *err);
/* Others may claim from now on, where this server owned: after the nodes are closed. NULL is fine.
 */
void member_free(struct member *member);
CLEANUP_FN(struct member *, member_free)

/* The thread beats before it is told to claim: from now on it may. */
void member_begin(struct member *member);

/* The claim to open nodes with; of no member: this server does not own. */
struct engine_claim member_claim(struct member *member);
/* Has another taken over, or is this server not known any more? Then what is under way fails. */
bool member_is_fenced(struct member *member);
uint64_t member_incarnation(const struct member *member);
/* What the last beat found, and how long ago it was sent. */
int64_t member_membership(struct member *member, struct engine_membership *ret_membership);
/* When the last acknowledged beat was sent, of clock_monotonic_ms. */
int64_t member_beat_ms(struct member *member);
/* Of the server it is now, or was last, a follower of; "": none is known. */
void member_owner_name(struct member *member, char ret_name[ENGINE_MEMBER_NAME_SIZE]);

/* One value of the root, which need not be open. */
NODISCARD bool member_get(struct member *member, uint32_t partition, struct slice key,
                          struct arena *arena, struct engine_value *ret_value, struct error *err);
/* What an operator says of a server. ERROR_NOT_FOUND, ERROR_BAD_REQUEST. */
NODISCARD bool member_drain(struct member *member, struct slice name, bool on, struct error *err);
NODISCARD bool member_forget(struct member *member, struct slice name, struct error *err);

struct member_metrics {
    uint64_t beats, failures; /* of this server */
    uint64_t claims;          /* that it won */
    uint64_t losses;          /* of ownership, to others */
    int64_t beat_age_ms;      /* since the last one that was acknowledged */
    int64_t skew_ms;
};
void member_metrics(struct member *member, struct member_metrics *ret_metrics);
