/* Documents as items of a collection: their _id, their key, and writing one. */
#pragma once

#include "front/mongo/command/call.h"
#include "item/operation.h"

/* A document that is to be stored: its _id first. */
struct mongo_item {
    struct slice document; /* borrowed, or in the arena */
    struct document_value id;
};

/* Makes one of what a client sends, giving it an _id if it has none. MONGO_INVALID_ID_FIELD,
 * MONGO_BAD_VALUE, MONGO_DOLLAR_PREFIXED_FIELD_NAME, MONGO_BSON_OBJECT_TOO_LARGE. */
NODISCARD bool mongo_item_make(struct mongo_call *call, struct slice document,
                               struct mongo_item *ret_item, struct error *err);

/* The partition key of a document; document data NULL: of an _id alone, where that is enough. */
struct partition_key mongo_item_key(const struct mongo_collection *collection,
                                    struct slice document);

/* An operation with what is the same in all of them. */
struct item_operation mongo_operation(const struct mongo_call *call,
                                      const struct mongo_collection *collection,
                                      enum item_verb verb);

/* E11000 with keyPattern and keyValue for what fails because an _id is taken: appends code, errmsg
 * and these. Other errors: code and errmsg. */
void mongo_write_error_append(struct mongo_call *call, const struct mongo_namespace *name,
                              const struct document_value *id, const struct error *err,
                              struct buf *out);

/* keyPattern and keyValue of the last duplicate that was told (indexes.h), if there was one. */
void mongo_duplicate_append(struct mongo_call *call, struct buf *out);
