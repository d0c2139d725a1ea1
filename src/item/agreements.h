/* Agreements: the transactions over several nodes that are under way, and those that were left
 * open by a node that went away or by a process that ended (agreement.h).
 *
 * What is left open is settled by a thread of its own: a promise with a decision at its home is
 * applied, one without is undone. Nobody is served by a node before what it has promised and
 * decided is known here (agreements_join). */
#pragma once

#include "cluster/cluster.h"
#include "item/items.h"
#include "partition/pledge.h"

struct agreements; /* opaque, owned */

struct agreements_options {
    struct cluster *cluster; /* borrowed */
    struct log *log;         /* borrowed; NULL: silent */
    /* The space of a container by its numbers; false: it is gone. close lets go of what it holds.
     */
    bool (*open)(void *context, const struct history_origin *numbers, struct item_space *ret_space,
                 void **ret_held);
    void (*close)(void *held);
    void *context;
};

struct agreements *agreements_new(const struct agreements_options *options);
void agreements_free(
    struct agreements *agreements); /* NULL is fine; what is open stays in stores */
CLEANUP_FN(struct agreements *, agreements_free)

/* Reads what all nodes that answer have promised and decided, and settles what can be: once, when
 * containers can be found and nobody is served yet. */
NODISCARD bool agreements_recover(struct agreements *agreements, struct error *err);

/* A node that was away is here, and serves nobody yet. */
NODISCARD bool agreements_join(struct agreements *agreements, const struct cluster_node *node,
                               struct error *err);

/* Is a node part of one that is open? Then it cannot be removed. ERROR_PLEDGED. */
NODISCARD bool agreements_spare(struct agreements *agreements, uint32_t node, struct error *err);

/* From now on none begins, and none is under way on return: for who takes a moment of all nodes.
 * ERROR_PLEDGED: one is open that cannot be settled. Several may pause. */
NODISCARD bool agreements_pause(struct agreements *agreements, struct error *err);
void agreements_resume(struct agreements *agreements);

enum agreement_state {
    AGREEMENT_PROMISING, /* nothing is decided */
    AGREEMENT_DOUBT,     /* whether it is decided only its home can tell */
    AGREEMENT_UNDOING,   /* it is not, and promises are to be undone */
    AGREEMENT_APPLYING,  /* it is, and promises are to be applied */
    AGREEMENT_DONE,      /* by all; the home has still to forget it */
};
const char *agreement_state_name(enum agreement_state state);

struct agreement_info {
    struct pledge_id id;
    enum agreement_state state;
    uint32_t home;
    uint64_t nodes;   /* a bit for each that has still to apply or undo */
    int64_t since_ms; /* wall clock */
    bool waits;       /* for a node that does not answer, or cannot write */
    const char *why;  /* in the arena; empty: nothing went wrong */
};

/* All that are open, in the arena; oldest last. */
size_t agreements_list(struct agreements *agreements, struct arena *arena,
                       struct agreement_info **ret_list);
/* Is there one of which nobody knows yet whether it is decided? */
bool agreements_in_doubt(struct agreements *agreements);
/* How many wait. */
size_t agreements_waiting(struct agreements *agreements);
