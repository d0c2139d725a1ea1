/* Members: the servers that share a node, and which of them owns it.
 *
 * A server that works with others registers on the root node and beats there. One of them owns the
 * root: it alone opens the nodes and writes; the others pass on what they are asked. Who owns is
 * what the node says, and a claim is a compare and set there. A claim raises the epoch that every
 * transaction of the owner before it checks (engine/pg/owner.c), so that one which was only thought
 * dead can write no more, whatever its clock says; and the term, which lets the new owner take the
 * other nodes and nobody of an earlier term take them back.
 *
 * Only a store that several processes can open has members: postgresql:. */
#pragma once

#include "base/arena.h"
#include "engine/engine.h"

enum {
    ENGINE_MEMBERS_MAX = 64,
    ENGINE_MEMBER_NAME_SIZE = 64,
    ENGINE_MEMBER_TEXT_SIZE = 256,
};

struct engine_member {
    char name[ENGINE_MEMBER_NAME_SIZE];
    char address[ENGINE_MEMBER_TEXT_SIZE];  /* where other servers reach it: HOST:PORT */
    char endpoint[ENGINE_MEMBER_TEXT_SIZE]; /* where clients do: a URL; "": they are not told */
    char region[ENGINE_MEMBER_NAME_SIZE];
    char release[ENGINE_MEMBER_NAME_SIZE];
    uint64_t incarnation; /* this start of it; never used again */
    uint64_t beat;        /* raised by each of its beats */
    bool draining;        /* it is to own nothing */
    bool present;         /* its session with the node lives */
};

/* The members as a beat found them. */
struct engine_membership {
    struct engine_member list[ENGINE_MEMBERS_MAX]; /* by name */
    size_t count;
    uint64_t owner;    /* incarnation; 0: nobody, or a server that works alone */
    uint64_t term;     /* how often the root was claimed */
    bool held;         /* a session that owns the root lives */
    int64_t offset_ms; /* how far this machine's wall clock is before the node's, give or take */
    int64_t trip_ms;   /* half of what the beat took */
};

const struct engine_member *engine_membership_find(const struct engine_membership *membership,
                                                   uint64_t incarnation); /* NULL: none */
const struct engine_member *engine_membership_named(const struct engine_membership *membership,
                                                    struct slice name); /* NULL: none */

struct engine_members; /* opaque, owned; used by one thread at a time */

struct engine_members_options {
    struct log *log; /* borrowed; NULL: silent */
    int64_t connect_ms_max;
    const struct engine_member *self; /* its name, address, endpoint, region and release */
};

/* Registers on the node, which becomes one that is shared, made if there is none.
 * ERROR_NOT_SUPPORTED: a store of one process. ERROR_STORE_IN_USE: a server that works alone has
 * it, or one of the same name runs. ERROR_LIMIT_REACHED: too many. Else as engine_open. */
NODISCARD bool engine_members_open(struct slice url, const struct engine_members_options *options,
                                   struct engine_members **ret_members, struct error *err);
/* Takes the registration back, where the node answers. */
void engine_members_close(struct engine_members *members); /* NULL is fine */
CLEANUP_FN(struct engine_members *, engine_members_close)

uint64_t engine_members_incarnation(const struct engine_members *members);

/* One beat, and what it found. Connects again where that is needed. ERROR_STORE_IN_USE: this
 * registration is no more (it was forgotten, or another server has its name): begin again.
 * ERROR_STORE_UNAVAILABLE: the beat is not acknowledged. */
NODISCARD bool engine_members_beat(struct engine_members *members,
                                   struct engine_membership *ret_membership, struct error *err);

/* Waits between two beats: true when another server has said that something is different (it has
 * claimed or released the root, is to drain, is forgotten), or the session is lost. False when the
 * descriptor is readable or the time is over. */
bool engine_members_wait(struct engine_members *members, int wake_fd, int64_t ms_max);

/* Makes this server the owner of the root, if owner, term and the owner's beat still are as they
 * were seen. Ends the session of the owner before where that waits for its process. Afterwards
 * nodes are opened with the claim. ERROR_CONFLICT: something has changed. */
NODISCARD bool engine_members_claim(struct engine_members *members,
                                    const struct engine_membership *seen,
                                    struct engine_claim *ret_claim, struct error *err);
/* The root is nobody's: others need not wait. After the nodes are closed. */
NODISCARD bool engine_members_release(struct engine_members *members, struct error *err);

/* Says of a server that it is to own nothing, or may again; and forgets one that is gone.
 * ERROR_NOT_FOUND; ERROR_BAD_REQUEST: it is not gone. */
NODISCARD bool engine_members_drain(struct engine_members *members, struct slice name, bool on,
                                    struct error *err);
NODISCARD bool engine_members_forget(struct engine_members *members, struct slice name,
                                     struct error *err);

/* One value of a partition of the node, as of now, for a server that has not opened it. */
NODISCARD bool engine_members_get(struct engine_members *members, uint32_t partition,
                                  struct slice key, struct arena *arena,
                                  struct engine_value *ret_value, struct error *err);
