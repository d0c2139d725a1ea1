/* Order: which stages of a pipeline change places before it is compiled, so that filters come
 * first. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

/* The elements of a pipeline, in the order they are run; borrowed from it. */
const struct document_value *mongo_pipeline_reorder(struct slice pipeline, struct arena *arena,
                                                    size_t *ret_count);
