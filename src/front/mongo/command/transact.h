/* Transact: a transaction of several documents, from its first statement to its end.
 *
 * It lives in its session (session/sessions.h) between statements. Collections it has met are held
 * as they were then; on all nodes it reads one moment, and it is committed by them together
 * (item/agreement.h). Statements need not know of it: operations made by
 * mongo_operation are part of it, and queries see its moment and its writes. */
#pragma once

#include "front/mongo/command/call.h"

struct mongo_transact; /* opaque */

/* One of the call's session with this number; nothing is read before a collection is pinned. */
struct mongo_transact *mongo_transact_new(struct mongo_call *call, int64_t number);

/* Ends it: what was not committed never was. */
void mongo_transact_free(void *transact);

/* Makes it the one the call is in. */
void mongo_transact_enter(struct mongo_call *call, struct mongo_transact *transact);

/* The container as the transaction has it: takes the reference of *container and gives one.
 * ERROR_CONFLICT: it was split or moved since the transaction began. */
NODISCARD bool mongo_transact_pin(const struct mongo_call *call, struct container **container,
                                  struct error *err);

/* The transaction is about to make a collection: nobody else sees it before the commit, and it goes
 * if the process ends before. */
NODISCARD bool mongo_transact_makes(const struct mongo_call *call,
                                    const struct mongo_namespace *name, struct error *err);

/* It did not come to that. */
void mongo_transact_makes_not(const struct mongo_call *call, const struct mongo_namespace *name);

/* The container, which the transaction is about to pin, was made by it: pending until it commits,
 * and dropped if it does not. */
void mongo_transact_made(const struct mongo_call *call, const struct container *container,
                         const struct mongo_namespace *name);
bool mongo_transact_has_made(const struct mongo_call *call, const struct container *container);

/* Lets go of a container that is about to change; false: something was done with it already. */
NODISCARD bool mongo_transact_unpin(const struct mongo_call *call,
                                    const struct container *container);

/* The space of a collection that is pinned, which lives as long as the transaction. */
const struct item_space *mongo_transact_space(const struct mongo_call *call,
                                              const struct mongo_collection *collection);
/* NULL: the call is in none, or nothing was pinned yet. */
struct agreement *mongo_transact_agreement(const struct mongo_call *call);

/* What cursors that are opened in it are marked with. */
const uint8_t *mongo_transact_tag(const struct mongo_transact *transact);

/* After a statement: notes where it has written, and appends the recovery token. */
void mongo_transact_leave(struct mongo_call *call);

/* Commits it; blocks. *ret_home: it is not known whether it was (MONGO_EXCEEDED_TIME_LIMIT); where
 * its record will be, if it was, for mongo_transact_recover; the caller's, to be freed. */
NODISCARD bool mongo_transact_commit(struct mongo_call *call, struct mongo_transact *transact,
                                     char **ret_home, struct error *err);

/* Was the transaction of this number committed, as a record of it says, at home, or NULL: where the
 * recovery token points to? MONGO_EXCEEDED_TIME_LIMIT: that is not known yet. Blocks. */
NODISCARD bool mongo_transact_recover(struct mongo_call *call, int64_t number, const char *home,
                                      bool *ret_committed, struct error *err);
