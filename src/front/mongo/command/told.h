/* What the advisor is told of operations on collections (front/traffic.h). */
#pragma once

#include "front/mongo/command/reading.h"

/* Of an operation on one document that has ended. err NULL: well; one that was refused for lack of
 * throughput is told, too, and others are not. */
void mongo_told_item(struct mongo_call *call, const struct mongo_collection *collection,
                     const struct item_operation *op, const struct error *err);

/* Of the first page of a reading. bytes: of its rows. */
void mongo_told_reading(struct mongo_call *call, const struct mongo_collection *collection,
                        const struct mongo_reading *reading, const struct metered_call *metered,
                        size_t bytes, const struct error *err);
