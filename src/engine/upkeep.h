/* Upkeep: what a store in this process does for itself: caches and compaction. */
#pragma once

#include "engine/engine.h"

struct engine_upkeep {
    uint64_t cache_bytes, cache_bytes_max;
    uint64_t recall_hits, recall_misses; /* of values that were kept whole */
    uint64_t compaction_bytes;           /* that are still to be rewritten: the debt */
    uint64_t compactions, flushes;       /* running now */
    uint64_t stalled;                    /* 1: writes are held back by the debt */
};

/* False: the store is another machine's to look after, or is down. */
bool engine_upkeep(struct engine *engine, struct engine_upkeep *ret_upkeep);
