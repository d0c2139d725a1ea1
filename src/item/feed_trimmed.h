/* Trimmed: up to which LSN records were removed from the feed of a partition, range by range of
 * routing keys.
 *
 * A partition that nobody merged has one range. One that was merged has a range for each that it
 * came from, as long as they differ: their LSNs have nothing to do with one another, and who reads
 * on in one range has missed nothing by what was trimmed in another.
 *
 * Format 1 of the mark (feed.h) is one range; format 2, numbers big-endian, is
 *
 *     1   format, 2
 *     and for each range, in their order: 2, length of its least routing key; that key; 8, the LSN
 *
 * A range goes on to where the next begins; the first begins before all keys. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

enum { FEED_TRIMMED_RANGES_MAX = 64 };

struct feed_trimmed_range {
    struct slice min;
    uint64_t lsn; /* 0: nothing was */
};

struct feed_trimmed {
    struct feed_trimmed_range ranges[FEED_TRIMMED_RANGES_MAX];
    size_t count; /* 0: nothing was trimmed */
};

/* Keys point into the value. ERROR_STORE_CORRUPT. */
NODISCARD bool feed_trimmed_decode(struct slice value, struct feed_trimmed *ret_trimmed,
                                   struct error *err);

/* In the arena; empty: there is nothing to tell. */
struct slice feed_trimmed_encode(const struct feed_trimmed *trimmed, struct arena *arena);

/* The highest LSN between min, inclusive, and max, exclusive; either may be open (data NULL). */
uint64_t feed_trimmed_within(const struct feed_trimmed *trimmed, struct slice min,
                             struct slice max);

/* A record of that key was removed. */
void feed_trimmed_note(struct feed_trimmed *trimmed, struct slice key, uint64_t lsn);

/* Goes on with the ranges of another partition, whose keys begin at min: the partitions of a merge
 * in key order, each clipped to what lies below max. Where there are too many ranges the last ones
 * become one, with the highest LSN of them. */
void feed_trimmed_join(struct feed_trimmed *trimmed, const struct feed_trimmed *other,
                       struct slice min, struct slice max);
