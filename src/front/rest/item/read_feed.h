/* Where a read feed stands: the parts of the key space still to be read, in their order.
 *
 * Each part is a range of routing keys and the number of the last item seen of it (0: none yet). A
 * feed begins with one part for all. When a physical partition is read in pages, the part it lies
 * in is cut: what it covers goes on behind the last item seen, what follows is as it was. So a
 * split or merge between two pages changes nothing: a part is read wherever it lies by then.
 *
 *     1   format, 1
 *     2   length of the lower bound of the first part, then the bound
 *     ..  for each part: 8 the number, 2 the length of its upper bound, then the bound; each begins
 *         where the one before it ends
 *
 * Numbers are big-endian. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "partition/strategy.h"

enum { REST_READ_FEED_PARTS_MAX = 16 };

struct rest_read_feed_part {
    struct partition_range range;
    uint64_t after;
};

struct rest_read_feed {
    struct rest_read_feed_part parts[REST_READ_FEED_PARTS_MAX];
    size_t count; /* 0: all is read */
};

void rest_read_feed_init(struct rest_read_feed *feed, struct partition_range range);

/* The first part has been read up to bound (of the physical partition it was read from, or its own
 * end if that is lower) as far as the item of this number. False: there is no room for another
 * part, because the ranges have changed that often since the first page. */
NODISCARD bool rest_read_feed_advance(struct rest_read_feed *feed, struct slice bound,
                                      uint64_t number);

/* All of the first part up to bound has been read. */
void rest_read_feed_finish(struct rest_read_feed *feed, struct slice bound);

/* The bytes, in the arena. */
struct slice rest_read_feed_encode(const struct rest_read_feed *feed, struct arena *arena);

/* False: they are none. The bounds are borrowed from bytes. */
NODISCARD bool rest_read_feed_decode(struct slice bytes, struct rest_read_feed *ret_feed);
