/* Cursor: walking the items of a physical partition, or entries of its index, one by one.
 *
 * What scan.h does in pages of arrays for feeds, a cursor does for queries: it reads no further
 * than its user goes. All cursors of a view see one moment. Expired items are not hidden from
 * cursors over numbers and the index, which do not read items: view_is_over tells.
 *
 * A view and its cursors belong to one thread. */
#pragma once

#include "document/order.h"
#include "item/item.h"
#include "item/scope.h"
#include "item/view_overlay.h"

/* One moment of one physical partition. */
struct view {
    struct item_scope scope;
    struct engine_snapshot *snapshot;   /* owned, or of view_of's caller; NULL: as of now */
    int64_t now_ms;                     /* wall clock: what expiry is measured by */
    const struct view_section *planned; /* what is seen besides; NULL: nothing */
    struct view_bound *bound; /* of a reader on a loop: whatever it calls here may say ERROR_COLD;
                               * borrowed; NULL: it may block */
};

/* A view of a snapshot of its node, or of now, that is somebody else's: there is nothing to be
 * done with it in the end. */
struct view view_of(const struct item_scope *scope, struct engine_snapshot *snapshot);

NODISCARD bool view_open(const struct item_scope *scope, struct view *ret_view, struct error *err);
void view_done(struct view *view);
CLEANUP_VALUE_FN(struct view, view_done)

static inline bool view_is_over(const struct view *view, const struct item_header *header)
{
    return item_is_over(header, view->scope.definition->default_ttl, view->now_ms);
}

/* Can items be there that are over? Then entries say nothing before their item is read. */
static inline bool view_may_expire(const struct view *view)
{
    return view->scope.definition->default_ttl != 0;
}

/* The LSN of the last commit that the view sees; 0: there was none. What is planned besides is not
 * among them. */
NODISCARD bool view_lsn(const struct view *view, uint64_t *ret_lsn, struct error *err);

/* How many items the partition holds, or one logical partition of it, and their bytes; expired
 * ones count until they are removed. */
NODISCARD bool view_count(const struct view *view, struct slice logical, uint64_t *ret_items,
                          uint64_t *ret_bytes, struct error *err);

/* The items behind keys, in their order; one that is gone or over has document.data NULL. */
NODISCARD bool view_fetch(const struct view *view, const struct slice *keys, size_t count,
                          struct arena *arena, struct item *ret_items, struct error *err);

/* --- Cursors --------------------------------------------------------------------------------- */

enum cursor_kind {
    CURSOR_KEYS,    /* items by key; each comes with its bytes */
    CURSOR_NUMBERS, /* items by number: creation order */
    CURSOR_INDEX,   /* entries by (value, routing key, number) */
};

/* Bytes of values behind the path: min inclusive, max exclusive. */
struct cursor_range {
    struct slice min, max;
};

struct cursor_request {
    enum cursor_kind kind;
    bool backwards;                        /* of the index alone */
    struct slice routing_min, routing_max; /* only items with such a routing key; data NULL: open */
    struct slice logical;                  /* only items of this logical partition; empty: all */

    /* Of the index; all borrowed while the cursor is used. */
    struct slice path;         /* index_path_append, or the prefix of a composite index */
    size_t said;               /* bytes behind the item key in what is stored with its entries */
    bool raw;                  /* its values are bytes with their length (index_vector_length) */
    size_t value_count;        /* 1, or as many as the composite index has paths */
    enum document_order order; /* of its entries */
    size_t kept_count;         /* hits have so many of the values; 0: all */
    const bool *descending;    /* of a composite index */
    bool values_alone; /* of a definition besides the policy: hits have no item key, which saves
                        * looking it up, unless a value was cut; of a logical partition come those
                        * with its routing key, which another may have too */
    bool grouped; /* no range goes beyond one first value: entries are asked of the groups that are
                   * kept above the store (engine_group_find), where the view is of a snapshot, and
                   * what lies between ranges is not counted */
    const struct cursor_range *ranges; /* ascending, apart from each other */
    size_t range_count;
};

struct cursor_hit {
    struct slice value;   /* of the index: bytes as stored behind the path */
    struct slice routing; /* of the index */
    uint64_t number;      /* not of keys: it is in the header */
    struct slice key;     /* item key */
    struct slice said;    /* of the index: what the entry says besides */
    struct slice stored;  /* of keys: header and document, for item_decode */
};

struct cursor; /* opaque, owned */

NODISCARD bool cursor_open(const struct view *view, const struct cursor_request *request,
                           struct cursor **ret_cursor, struct error *err);
void cursor_free(struct cursor *cursor); /* NULL is fine */
CLEANUP_FN(struct cursor *, cursor_free)

/* The next hit will be the first behind this place: value, routing key and number of the index;
 * number; or, as value, the item key. It need not exist. */
NODISCARD bool cursor_seek_behind(struct cursor *cursor, struct slice value, struct slice routing,
                                  uint64_t number, struct error *err);

/* The next hit; its slices live until the next call. */
NODISCARD bool cursor_next(struct cursor *cursor, struct cursor_hit *ret_hit, bool *ret_more,
                           struct error *err);

/* Passes over the entries behind the last hit, as long as they have this value (data NULL: any),
 * and no more than max. *ret_last: the last of them, without its item key; good until the next
 * call. For those who only count. None are passed over where entries must be looked at one by one:
 * in several ranges, of a part of the routing keys, or not of an index. */
NODISCARD bool cursor_pass(struct cursor *cursor, struct slice value, uint64_t max,
                           struct cursor_hit *ret_last, uint64_t *ret_count, struct error *err);

/* The groups that are asked for, as engines know them (engine_options.group): the entries of a
 * definition by several paths that begin with the same text, such as the edges of a vertex. */
size_t cursor_group(struct slice key);

/* Entries walked so far, those passed over included. */
uint64_t cursor_entries(const struct cursor *cursor);

/* The first key greater than every key beginning with prefix, in the arena; data NULL: there is
 * none, for it is all FF. */
struct slice cursor_prefix_end(struct arena *arena, struct slice prefix);
