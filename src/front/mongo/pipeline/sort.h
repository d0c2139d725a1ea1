/* Sort: {a: 1, "b.c": -1} as the order of a plan. */
#pragma once

#include "base/error.h"
#include "front/mongo/collation/collation.h"
#include "query/plan.h"

/* Of the documents in a slot; 0: the items. In the build's arena. collator NULL: texts by bytes.
 * *ret_count 0: any order will do. MONGO_BAD_VALUE, MONGO_NOT_IMPLEMENTED. */
NODISCARD bool mongo_sort_compile(struct slice sort, const struct document_collator *collator,
                                  uint32_t slot, struct query_build *build,
                                  const struct query_order **ret_order, size_t *ret_count,
                                  struct error *err);

/* One order: as documents were made. */
const struct query_order *mongo_sort_by_creation(struct query_build *build);
