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
 * there are several: their snapshots are of different moments. */
#pragma once

#include "item/agreements.h"
#include "item/transaction.h"

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

/* The node it is on, after agreement_enter. */
struct agreement_member *agreement_member(const struct agreement *agreement);
/* Its transaction: not to be committed. */
struct transaction *agreement_transaction(const struct agreement *agreement);

/* Blocks. The errors of transaction_commit; ERROR_CONFLICT and ERROR_FENCED: nothing was done, and
 * it may be run again. ERROR_WRITE_IN_DOUBT: it was, or will be, done as a whole or not at all, as
 * the message says; what is open is settled without the caller. */
NODISCARD bool agreement_commit(struct agreement *agreement, struct error *err);

/* What became of the nth write of a member, after the commit (transaction_result). */
struct transaction_result agreement_result(const struct agreement_member *member, size_t nth);
