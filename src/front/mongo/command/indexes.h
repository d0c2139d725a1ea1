/* Indexes of a collection, for the commands that show or use them. */
#pragma once

#include "front/mongo/command/call.h"

/* What listIndexes shows, in the arena: {_id: 1} first. Those that failed are left out. */
struct slice *mongo_indexes_shown(struct mongo_call *call,
                                  const struct mongo_collection *collection, size_t *ret_count);

/* Its text index, that $text searches; NULL: it has none. Borrowed while the collection is open. */
const struct index_definition *mongo_text_index(const struct mongo_collection *collection);

/* How many those are; 0 where there is no collection. */
int32_t mongo_index_count(const struct mongo_collection *collection);

/* An index that is being built. */
struct mongo_index_build {
    struct slice database, collection, name;
    struct slice shown;
    unsigned progress; /* 0 to 99 */
};

/* All that are being built in the account, in the arena; for currentOp. */
struct mongo_index_build *mongo_index_progress(struct mongo_call *call, size_t *ret_count);

/* Another item has the same values of a unique index: err becomes MongoDB's 11000, and keyPattern
 * and keyValue are kept in the call for whoever tells of it. Other errors stay as they are. */
void mongo_duplicate_tell(struct mongo_call *call, const struct mongo_collection *collection,
                          const struct mongo_namespace *name, struct slice document,
                          struct error *err);

/* {index: {name or keyPattern, expireAfterSeconds, hidden}} of collMod; what was and is now goes
 * into the reply. Closes the collection: it may have to wait. */
NODISCARD bool mongo_index_modify(struct mongo_call *call, struct mongo_collection *collection,
                                  const struct mongo_namespace *name, struct slice index,
                                  struct error *err);
