/* Agreements from within: agreements.c has the table, agreements_settle.c the steps on nodes,
 * agreement.c the one that a caller runs. */
#pragma once

#include "base/thread.h"
#include "item/agreements.h"
#include "item/transaction.h"

enum { AGREEMENT_WHY_SIZE = 160 };

/* One that is open. While it is owned, its caller's thread changes it, without the lock but for the
 * state, nodes and why; else the settling thread does. */
struct agreement_entry {
    struct pledge_id id;
    uint32_t home;
    enum agreement_state state;
    uint64_t nodes; /* that have a promise of it */
    int64_t since_ms;
    bool owned;
    bool window;           /* the home's is open until it is known whether it is decided */
    bool attempted;        /* something did not go well */
    int64_t not_before_ms; /* monotonic: when it is tried again */
    char why[AGREEMENT_WHY_SIZE];
    struct agreement_entry *next;
};

struct agreements {
    struct agreements_options options;
    struct mutex settling; /* held while what nobody owns is worked on; before the lock */
    struct mutex lock;     /* all below */
    struct condition changed;
    struct agreement_entry *list; /* newest first */
    size_t paused;
    bool stopping, started; /* of the thread */
    struct thread thread;
};

/* --- agreements.c ---------------------------------------------------------------------------- */

/* A new one, owned by the caller; waits while they are paused. */
struct agreement_entry *agreements_begin(struct agreements *agreements, struct pledge_id id,
                                         uint32_t home);
/* It is in this state, and so many nodes have a promise. */
void agreements_note(struct agreements *agreements, struct agreement_entry *entry,
                     enum agreement_state state, uint64_t nodes);
/* Its owner leaves it: to the thread, or, with nothing left to do, to nobody. */
void agreements_leave(struct agreements *agreements, struct agreement_entry *entry,
                      const struct error *err);

/* --- agreements_settle.c --------------------------------------------------------------------- */

/* What a node wrote when it applied its promise. */
struct agreement_applied {
    struct transaction *transaction; /* owned; NULL: nothing was left to write */
    size_t *nth;                     /* of each promised write, in the arena; SIZE_MAX: none */
};

/* Applies the promise of a node, from what it keeps. *unknown: whether it did is not known. */
NODISCARD bool agreement_apply(struct agreements *agreements, const struct cluster_node *node,
                               struct pledge_id id, struct arena *arena,
                               struct agreement_applied *ret_applied, struct error *err);
/* Undoes it. */
NODISCARD bool agreement_undo(const struct cluster_node *node, struct pledge_id id,
                              struct error *err);

/* Does what can be done of one that nobody owns. False: something is in the way. */
NODISCARD bool agreement_settle(struct agreements *agreements, struct agreement_entry *entry,
                                struct error *err);

/* Tells the nodes that have a promise that it is decided: from now on readers wait for it. */
void agreement_tell(struct agreements *agreements, struct pledge_id id, uint64_t nodes);
