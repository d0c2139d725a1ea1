/* Difference: the operations that turn one sorted set of entries into another, and no more.
 *
 * An item that is overwritten keeps most of its index entries; writing only what changed is the
 * largest saving there is on the write path. */
#pragma once

#include "engine/engine.h"

/* One key with its value, as the index of an item wants it. */
struct partition_entry {
    struct slice key, value;
};

/* Writes deletes for what only before has, puts for what only after has or has otherwise. Both
 * are sorted by key without repetition. ret_ops has room for before_count + after_count; the
 * result is sorted and borrows its slices. Returns how many operations there are. */
size_t partition_difference(const struct partition_entry *before, size_t before_count,
                            const struct partition_entry *after, size_t after_count,
                            struct engine_op *ret_ops);
