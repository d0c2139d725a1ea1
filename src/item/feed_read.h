/* Reading the change feed of one physical partition, or of one logical partition or span in it.
 *
 * Where a reader stands is an LSN: it has seen everything up to it. A page never cuts a
 * transaction in two, so it may be longer than asked for. */
#pragma once

#include "item/feed.h"
#include "item/scope.h"

enum feed_mode {
    FEED_LATEST,      /* each changed item once, as it is now; no deletes */
    FEED_ALL_VERSIONS /* every change within the retention, deletes and expiries too */
};

struct feed_request {
    enum feed_mode mode;
    uint64_t after_lsn;                    /* 0: from the beginning */
    struct slice logical;                  /* only this logical partition; empty: all */
    struct slice routing_min, routing_max; /* only this span; data NULL: open */
    size_t changes_max;                    /* 0: 1000; whole transactions beyond it */
    size_t bytes_max;                      /* 0: 4 MB */
    size_t records_max; /* looked at, wanted or not; whole transactions beyond it; 0: no limit */
};

struct feed_change {
    enum feed_kind kind;
    uint64_t lsn;
    int64_t wall_ms;
    uint64_t number;
    struct slice key;      /* item key */
    struct item current;   /* of all versions as it was then; of a delete without document */
    struct slice previous; /* BSON before; data NULL: not known */
    struct item_header previous_header; /* of it: number, lsn, origin, ordinal and time alone */
    uint64_t previous_lsn;              /* 0: none */
};

struct feed_page {
    struct feed_change *changes; /* in the arena */
    size_t count;
    uint64_t lsn; /* to go on from: everything up to it was looked at */
    bool more;
    size_t records_read; /* for the charge */
};

/* ERROR_FEED_RETENTION: all versions are asked for and not kept, or after_lsn is older than what
 * is kept. */
NODISCARD bool feed_read(const struct item_scope *scope, const struct feed_request *request,
                         struct arena *arena, struct feed_page *ret_page, struct error *err);

/* What was written behind an LSN, as a snapshot sees it: records in their order, without images, in
 * the arena; of an item that was written several times perhaps several, and of one that is gone
 * perhaps none. *ret_more: there are more than max; of a count of those that are given nothing can
 * be said then. For whoever keeps something that was made of the items at that LSN. */
NODISCARD bool feed_written(const struct item_scope *scope, struct engine_snapshot *snapshot,
                            uint64_t after_lsn, size_t max, struct arena *arena,
                            struct feed_record **ret_records, size_t *ret_count, bool *ret_more,
                            struct error *err);

/* The LSN to read on from for changes after a time: the last one not later than it. */
NODISCARD bool feed_lsn_at(const struct item_scope *scope, int64_t wall_ms, uint64_t *ret_lsn,
                           struct error *err);

/* Removes versions whose successor is older than the retention, and deletes that are, so that what
 * every item was can be told of each moment within it; in one call about so many. *ret_removed 0:
 * nothing left to do. One caller at a time for a partition. */
NODISCARD bool feed_trim(const struct item_scope *scope, size_t max, size_t *ret_removed,
                         struct error *err);
