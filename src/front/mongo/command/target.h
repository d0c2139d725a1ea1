/* Target: $out and $merge put the documents of a pipeline into a collection. */
#pragma once

#include "front/mongo/command/reading.h"
#include "front/mongo/pipeline/pipeline.h"

/* May the call write there? Before anything is read. */
NODISCARD bool mongo_target_check(struct mongo_call *call, const struct mongo_target *target,
                                  struct error *err);

/* Runs the reading to its end, and writes what comes of it. */
NODISCARD bool mongo_target_run(struct mongo_call *call, const struct mongo_target *target,
                                const struct mongo_collection *collection,
                                const struct mongo_reading *reading, struct error *err);
