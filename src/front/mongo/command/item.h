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

/* The partition key of a document: its shard key, or of a collection that is not sharded nothing.
 * Missing fields are a value of their own, as is null; which of them a filter for null means is
 * both, so that it is asked everywhere. */
struct partition_key mongo_item_key(const struct mongo_collection *collection,
                                    struct slice document);

bool mongo_collection_is_sharded(const struct mongo_collection *collection);

/* May a document with this shard key be stored? MONGO_SHARD_KEY_NOT_FOUND: an array is in it, or on
 * the way to it. */
NODISCARD bool mongo_shard_key_check(const struct mongo_collection *collection,
                                     struct slice document, struct error *err);

/* Does what a document becomes keep the shard key it has? MONGO_IMMUTABLE_FIELD: it does not, as
 * with the hosted service. */
NODISCARD bool mongo_shard_key_keep(const struct mongo_collection *collection, struct slice before,
                                    struct slice after, struct error *err);

/* Is this what filters call the path: "a.b" that of /a/b? */
bool mongo_path_is_called(const struct document_path *path, struct slice name);

/* The one item that a filter names by its _id and its whole shard key, if that is all it says. */
bool mongo_item_named(const struct mongo_collection *collection, struct slice filter,
                      struct document_value *ret_id, struct partition_key *ret_key);

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
