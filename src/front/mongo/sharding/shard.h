/* Shards: the nodes of the cluster. They are the operator's, so that only the default account may
 * say what is to be on which. */
#pragma once

#include "catalogue/node.h"
#include "front/mongo/command/call.h"

/* MONGO_UNAUTHORIZED: the account is not the default one. */
NODISCARD bool mongo_shards_owned(const struct mongo_call *call, struct error *err);

/* The number of a node. MONGO_SHARD_NOT_FOUND. */
NODISCARD bool mongo_shard_find(const struct mongo_call *call, struct slice name,
                                uint32_t *ret_node, struct error *err);

/* What a node of a shard map is called; "?" if it is not here. */
struct slice mongo_shard_name(const struct node_table *table, uint32_t node);

/* Appends the fields of a shard: _id, host, state, topologyTime, tags, draining. */
void mongo_shard_append(const struct mongo_call *call, const struct node_info *info,
                        struct buf *out);
