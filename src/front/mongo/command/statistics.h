/* How much a collection stores, as collStats and $collStats show it. */
#pragma once

#include "catalogue/container_usage.h"
#include "front/mongo/command/call.h"

struct mongo_index_size {
    struct slice name;
    uint64_t bytes; /* about */
};

struct mongo_storage {
    struct container_usage usage;
    struct mongo_index_size *indexes; /* that of _id first */
    size_t index_count;
};

/* What the indexes of a container take on a node, or on all (CONTAINER_USAGE_ALL_NODES); in the
 * arena. */
NODISCARD bool mongo_index_sizes(const struct container *container, uint32_t node,
                                 struct arena *arena, struct mongo_storage *storage,
                                 struct error *err);

/* Appends size, count, avgObjSize, storageSize, capped, nindexes, indexSizes and their kin. */
void mongo_storage_statistics(const struct mongo_collection *collection,
                              const struct mongo_storage *storage, int64_t scale, struct buf *out);
