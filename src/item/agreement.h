/* Agreement: a transaction over several nodes, all or nothing for whoever looks.
 *
 * Each node has a transaction of its own (transaction.h); an agreement holds them together and
 * commits them in three steps (docs/design/transactions.md):
 *
 *     promise   every node but one, the home, keeps what it read and will write, durably
 *     decide    the home commits its part together with the decision: that is the outcome
 *     apply     the others commit theirs
 *
 *     agreement_enter(agreement, &scope, logical, &err)        before each read and write
 *     transaction_read(agreement_transaction(agreement), ...)
 *     agreement_commit(agreement, &err)
 *
 * On one node it is that node's transaction and nothing more. All that was read is relied on where
 * there are several: their snapshots are of different moments.
 *
 * One that is told before which partitions it will read (agreement_meet) reads one moment of all of
 * them: it may show what it reads at once, and only what it writes must not have changed. */
#pragma once

#include "item/agreements.h"
#include "item/transaction.h"

struct engine;
struct agreement;        /* opaque, owned */
struct agreement_member; /* opaque; the part of one node */

/* Everything it hands out lives in the arena. */
struct agreement *agreement_new(struct agreements *agreements, struct arena *arena);
void agreement_free(struct agreement *agreement); /* NULL is fine */
CLEANUP_FN(struct agreement *, agreement_free)

/* Reads and writes that follow are on this logical partition, on whichever node. The errors of
 * transaction_open and transaction_enter. */
NODISCARD bool agreement_enter(struct agreement *agreement, const struct item_scope *scope,
                               struct slice logical, struct error *err);

/* The partitions are read at one moment, together with all that were met before. also: a bit for
 * each node, by its number, that may come later: taken now, if it serves, because later it may be
 * too late. Blocks. To be called before anything else of the partitions. ERROR_CONFLICT: what was
 * met before was written to since, or a transaction is still being applied; another one that meets
 * them all at once, or later, need not fail. */
NODISCARD bool agreement_meet(struct agreement *agreement, const struct item_scope *scopes,
                              size_t count, uint64_t also, struct error *err);
/* A bit for each node it is on. */
uint64_t agreement_nodes(const struct agreement *agreement);

/* The node it is on, after agreement_enter. */
struct agreement_member *agreement_member(const struct agreement *agreement);
/* Its transaction: not to be committed. */
struct transaction *agreement_transaction(const struct agreement *agreement);

/* The parts one after the other: NULL for the first; NULL behind the last. */
struct agreement_member *agreement_next(const struct agreement *agreement,
                                        const struct agreement_member *member);
struct transaction *agreement_member_transaction(const struct agreement_member *member);
/* The engine that it reads, without standbys. */
const struct engine *agreement_member_engine(const struct agreement_member *member);

/* transaction_tell and transaction_has_told, on whichever node. */
void agreement_announce(struct agreement *agreement, const struct history_record *records,
                        size_t count);
bool agreement_has_announced(const struct agreement *agreement);

/* Blocks. The errors of transaction_commit; ERROR_CONFLICT and ERROR_FENCED: nothing was done, and
 * it may be run again. ERROR_WRITE_IN_DOUBT: it was, or will be, done as a whole or not at all, as
 * the message says; what is open is settled without the caller. */
NODISCARD bool agreement_commit(struct agreement *agreement, struct error *err);

/* Of a commit that failed. */
enum agreement_outcome {
    AGREEMENT_NOTHING, /* was done, nor will be */
    AGREEMENT_DECIDED, /* it will be done on all nodes, and nobody sees them without it */
    AGREEMENT_UNKNOWN, /* only the home can tell */
};
enum agreement_outcome agreement_outcome(const struct agreement *agreement);

/* What became of the nth write of a member, after the commit (transaction_result). */
struct transaction_result agreement_result(const struct agreement_member *member, size_t nth);
