/* How much a collection stores, as collStats and $collStats show it. */
#pragma once

#include "catalogue/container_usage.h"
#include "front/mongo/command/call.h"

/* Appends size, count, avgObjSize, storageSize, capped, nindexes and their kin. */
void mongo_storage_statistics(const struct mongo_collection *collection,
                              const struct container_usage *usage, int64_t scale, struct buf *out);
