/* Scan: walking the items of a physical partition, page by page.
 *
 * A page is read under one snapshot and ends after so many items or bytes. Where it ended is a
 * position made of values (routing key, pk, id), so that the walk goes on wherever those items
 * live by then. Expired items are not there. */
#pragma once

#include "item/item.h"
#include "item/scope.h"

enum item_scan_order {
    SCAN_BY_KEY,    /* routing key, pk, id */
    SCAN_BY_NUMBER, /* creation: what _rid order is */
};

struct item_scan_request {
    enum item_scan_order order;
    bool backwards;
    struct slice logical;                  /* one logical partition; empty: all */
    struct slice routing_min, routing_max; /* a span within the partition; data NULL: open */
    struct slice after;                    /* position of the last page; empty: from the start */
    size_t items_max;                      /* 0: 1000 */
    size_t bytes_max;                      /* of BSON; 0: 4 MB; one item is always given */
    size_t
        entries_max; /* by number: looked at, wanted or not; 0: no limit. The page may be empty */
};

struct item_scan_page {
    struct item *items; /* in the arena */
    size_t count;
    bool more;             /* a next page may have something */
    struct slice position; /* to go on from; in the arena */
    size_t entries_read;   /* for the charge */
};

NODISCARD bool item_scan_items(const struct item_scope *scope,
                               const struct item_scan_request *request, struct arena *arena,
                               struct item_scan_page *ret_page, struct error *err);

/* --- The index ------------------------------------------------------------------------------- */

struct item_index_request {
    struct slice path;         /* index_path_append */
    enum document_order order; /* of its entries */
    struct slice min, max; /* bytes of values (document_key_append_cut): inclusive, exclusive; data
                              NULL: open */
    bool backwards;
    struct slice logical; /* only items of this logical partition; empty: all */
    struct slice after;   /* position of the last page */
    size_t entries_max;   /* 0: 1000 */
};

struct item_index_hit {
    struct slice value; /* bytes as indexed */
    uint64_t number;
    struct slice key; /* item key */
};

struct item_index_page {
    struct item_index_hit *hits;
    size_t count;
    bool more;
    struct slice position;
    size_t entries_read;
};

/* Entries of one path in the order of (value, routing key, number). */
NODISCARD bool item_scan_index(const struct item_scope *scope,
                               const struct item_index_request *request, struct arena *arena,
                               struct item_index_page *ret_page, struct error *err);

/* The items behind keys, in their order, as of one moment: that of the snapshot, or now (NULL); an
 * item that is gone or expired has document.data NULL. */
NODISCARD bool item_scan_fetch(const struct item_scope *scope, struct engine_snapshot *snapshot,
                               const struct slice *keys, size_t count, struct arena *arena,
                               struct item *ret_items, struct error *err);
