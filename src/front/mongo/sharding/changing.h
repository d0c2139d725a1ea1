/* Changing where documents are: a migration of a collection, begun and waited for, as clients of
 * MongoDB expect of the commands that ask for one.
 *
 * Who waits holds no state of any container, account or database, or the partitions that a
 * migration leaves behind could never go. What a command has opened has to be closed before. */
#pragma once

#include "front/mongo/command/call.h"
#include "migration/migrator.h"

/* Begins it on the collection as it is now. ERROR_BUSY: it is tried again. *ret_needed false:
 * nothing is to be done. */
typedef bool mongo_change_begin(struct migrator *migrator, struct container *container,
                                void *context, bool *ret_needed, struct error *err);

/* Waits for what is under way, begins the change and waits for its end, as long as maxTimeMS and
 * the client do. A migration goes on when nobody waits for it any more.
 * MONGO_CONFLICTING_OPERATION: too many wait. MONGO_SHARD_KEY_NOT_FOUND: documents could not be
 * given another key, and it was taken back. Blocks. */
NODISCARD bool mongo_change_run(struct mongo_call *call, const struct mongo_namespace *name,
                                mongo_change_begin *begin, void *context, struct error *err);

/* Does the server change partitions at all? MONGO_COMMAND_NOT_SUPPORTED. */
NODISCARD bool mongo_change_check(const struct mongo_call *call, struct error *err);

/* "db.collection", taken apart and checked. MONGO_INVALID_NAMESPACE. */
NODISCARD bool mongo_change_namespace(const struct mongo_call *call,
                                      const struct document_value *text,
                                      struct mongo_namespace *ret_name, struct error *err);

/* The collection of that name, which has to be sharded. MONGO_NAMESPACE_NOT_FOUND,
 * MONGO_NAMESPACE_NOT_SHARDED. */
NODISCARD bool mongo_sharded_open(const struct mongo_call *call, const struct mongo_namespace *name,
                                  struct mongo_collection *ret_collection, struct error *err);
