/* Recent commits: which keys were written by which transaction, as far back as memory allows.
 *
 * Group commit asks it whether anything a transaction relied on was written since the moment of
 * its snapshot. It is bounded: what falls out of it raises the floor, and a transaction older than
 * the floor cannot be judged and is told to run again. Used by the committer's thread alone, or
 * while no group is made (commit_still.h). */
#pragma once

#include "engine/engine.h"

struct recent; /* opaque, owned */

struct recent *recent_new(size_t keys_max, size_t bytes_max);
void recent_free(struct recent *recent); /* NULL is fine */
CLEANUP_FN(struct recent *, recent_free)

/* Notes that the transaction numbered sequence wrote key. Sequences never decrease. */
void recent_add(struct recent *recent, uint64_t sequence, uint32_t partition, struct slice key);

/* Transactions whose moment is below this cannot be judged. */
uint64_t recent_floor(const struct recent *recent);

/* Was the key written by a transaction after moment? Keys are compared by a 64-bit hash: a
 * collision costs one needless retry. */
bool recent_has_key(const struct recent *recent, uint64_t moment, uint32_t partition,
                    struct slice key);

/* Was any key of the range? Walks what was written since. */
bool recent_has_range(const struct recent *recent, uint64_t moment, uint32_t partition,
                      struct engine_range range);
