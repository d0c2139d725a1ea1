/* Capped collections: bounded in bytes and documents, the oldest of which go in the commit that
 * brings newer ones (definition.h). */
#pragma once

#include "front/mongo/command/call.h"

/* May the call write there? MONGO_NOT_SUPPORTED_IN_TRANSACTION: a transaction may not. */
NODISCARD bool mongo_capped_check(const struct mongo_call *call,
                                  const struct mongo_collection *collection,
                                  const struct mongo_namespace *name, struct error *err);

/* Does the document fit at all? MONGO_BAD_VALUE. */
NODISCARD bool mongo_capped_fits(const struct mongo_collection *collection, struct slice document,
                                 struct error *err);

/* Removes what a collection has above its bound, which has become smaller; blocks. */
NODISCARD bool mongo_capped_trim(struct mongo_call *call, const struct mongo_collection *collection,
                                 struct error *err);
