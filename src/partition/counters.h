/* Counters: numbers that many transactions add to at once without being in each other's way, such
 * as the bytes and items of a logical partition.
 *
 * A transaction brings what to add; group commit keeps the sums, so adding never conflicts. The
 * sums of recently used counters are kept in memory, bounded; others are read from the engine when
 * they are next added to. Used by the committer's thread alone.
 *
 * Within one group a counter has two values: base, which is durable, and now, which includes what
 * the group adds. The group ends with counters_keep or counters_undo. */
#pragma once

#include "engine/engine.h"

enum { COUNTER_NUMBERS = 4 };

struct counter {
    uint32_t partition;
    struct slice key; /* owned: the whole key, with its family byte */
    int64_t base[COUNTER_NUMBERS];
    int64_t now[COUNTER_NUMBERS];
    bool changed; /* in this group */

    struct counter *next_in_bucket, *next_changed;
    struct counter *newer, *older; /* by last use */
    uint64_t hash;
};

struct counters; /* opaque, owned */

struct counters *counters_new(struct engine *engine, size_t max);
void counters_free(struct counters *counters); /* NULL is fine */
CLEANUP_FN(struct counters *, counters_free)

/* The counter of this key, read from the engine if need be; zero where there is none yet. Lives
 * until the end of the group. */
NODISCARD bool counters_get(struct counters *counters, uint32_t partition, struct slice key,
                            struct counter **ret_counter, struct error *err);

/* Adds to now; the counter becomes part of the group. */
void counters_add(struct counters *counters, struct counter *counter, const int64_t *amounts);

/* The counters the group changed, linked by next_changed. */
struct counter *counters_changed(const struct counters *counters);

/* A counter's value as stored: COUNTER_NUMBERS numbers, 8 bytes big-endian each. */
enum { COUNTER_BYTES = 8 * COUNTER_NUMBERS };
void counter_encode(const struct counter *counter, uint8_t ret_bytes[COUNTER_BYTES]);
NODISCARD bool counter_decode(struct slice bytes, int64_t ret_numbers[COUNTER_NUMBERS],
                              struct error *err);

/* The group is durable. */
void counters_keep(struct counters *counters);

/* The group is not, or begins anew: now is base again. */
void counters_undo(struct counters *counters);

/* Forgets the counters of a partition that is being opened: another may have written them. None
 * of them is part of the group. */
void counters_forget(struct counters *counters, uint32_t partition);
