/* Feeds of items: which part of a container a request names, and how much of it at a time. Shared
 * by read feeds, change feeds and queries. */
#pragma once

#include "front/rest/target/items.h"

enum {
    REST_FEED_ITEMS_DEFAULT = 100,
    REST_FEED_ITEMS_MAX = 1000,
    REST_FEED_BYTES_MAX = 4 * 1024 * 1024, /* of a page */
};

/* What a feed is read of. */
struct rest_feed_target {
    struct partition_range range; /* of routing keys; in the arena or borrowed from the map */
    bool keyed;                   /* a whole partition key is named: */
    struct partition_key key; /* open: only the base of a suffix is; the range is all there is */
    struct slice logical;     /* of it; data NULL: none */
    const struct partition_span *span;  /* named by its id; NULL: not */
    const struct partition_key *former; /* a key of before a re-key: all there is, and a filter */
};

/* By x-ms-documentdb-partitionkey (a prefix of a hierarchical one will do), else by
 * x-ms-documentdb-partitionkeyrangeid and the bounds of x-ms-start-epk and x-ms-end-epk, else all.
 * ERROR_RANGE_GONE: the range is no more, or the bounds are outside of it. ERROR_BAD_REQUEST. */
NODISCARD bool rest_feed_target(struct rest_call *call, const struct rest_items *items,
                                struct rest_feed_target *ret_target, struct error *err);

/* ERROR_NOT_SUPPORTED: the key is open; only queries look at several logical partitions at once. */
NODISCARD bool rest_feed_whole(const struct rest_feed_target *target, struct error *err);

/* A feed of several keys one of which is paused is refused: whoever reads on would miss it. Queries
 * look at what they really read. ERROR_PAUSED. */
NODISCARD bool rest_feed_admits(const struct rest_items *items,
                                const struct rest_feed_target *target, struct error *err);

/* The span of x-ms-documentdb-partitionkeyrangeid, which is there. ERROR_RANGE_GONE. */
NODISCARD bool rest_feed_span(struct rest_call *call, const struct rest_items *items,
                              const struct partition_span **ret_span, struct error *err);

/* x-ms-max-item-count. ERROR_BAD_REQUEST. */
NODISCARD bool rest_feed_page_size(const struct rest_call *call, size_t *ret_items,
                                   struct error *err);

/* Holds a page of items and its text on the account's meter before it is read, for many may be read
 * at a time. ERROR_MEMORY_FULL. */
NODISCARD bool rest_feed_hold(struct rest_call *call, struct error *err);

/* {"_rid":"...","Documents":[ and what closes it; the second adds x-ms-item-count. */
void rest_feed_begin(struct rest_call *call, const struct rest_items *items);
void rest_feed_end(struct rest_call *call, size_t count);
