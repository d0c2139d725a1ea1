/* Samples: the last queries of collections that configureQueryAnalyzer has named, for
 * $listSampledQueries. In memory, and gone with the process; any thread. */
#pragma once

#include "front/mongo/command/item.h"

enum {
    MONGO_SAMPLES_MAX = 1000,              /* the oldest make room */
    MONGO_SAMPLE_BYTES_MAX = 4096,         /* what is longer is not kept */
    MONGO_SAMPLE_MS = 7 * 24 * 3600 * 1000 /* how long one is shown */
};

struct mongo_samples; /* opaque, owned */

struct mongo_samples *mongo_samples_new(void);
void mongo_samples_free(struct mongo_samples *samples); /* NULL is fine */

/* Keeps the query of a call: its filter, with the collation and variables of its message. */
void mongo_samples_add(const struct mongo_call *call, const struct mongo_collection *collection,
                       struct slice filter);
