/* Shard keys as MongoDB writes them, {region: "hashed"} or {tenant: 1, day: 1}, and the partition
 * keys they are.
 *
 * One hashed field is the hash strategy, fields that are ordered are the range strategy: up to as
 * many as a hierarchical partition key has paths. */
#pragma once

#include "front/mongo/command/call.h"
#include "partition/definition.h"

struct mongo_shard_key {
    bool hashed;
    size_t count;
    struct slice names[PARTITION_PATHS_MAX]; /* dotted; borrowed */
};

/* Reads the pattern of a command's field. MONGO_BAD_VALUE in MongoDB's words; a pattern that
 * MongoDB has and the store does not: MONGO_NOT_IMPLEMENTED. */
NODISCARD bool mongo_shard_key_read(struct slice pattern, struct mongo_shard_key *ret_key,
                                    struct error *err);

/* Has a container of this definition that shard key? */
bool mongo_shard_key_is(const struct partition_definition *definition,
                        const struct mongo_shard_key *key);

/* Appends `partitionKey` and, as the value of `strategy`, how it is placed: of a definition. */
void mongo_shard_key_define(const struct mongo_shard_key *key, struct slice name, struct buf *out);
struct slice mongo_shard_key_strategy(const struct mongo_shard_key *key);

/* Appends the pattern of a definition as the field `name`. */
void mongo_shard_key_append(const struct partition_definition *definition, struct slice name,
                            struct buf *out);

/* The dotted name of a path; in the arena. */
struct slice mongo_shard_key_name(const struct document_path *path, struct arena *arena);
