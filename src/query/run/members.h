/* Members: which items have an entry of one value of an index, as far as intersections have asked.
 *
 * Whoever intersects indexes asks the same of the same items again and again: has this vertex the
 * label, is it an edge? Each answer took a seek in the store. What was told is kept as two bits for
 * each number of an item, of one value in one physical partition at one LSN of it; the next query
 * at that LSN asks here first. Behind a commit what was written since is read from the change feed
 * and forgotten, the rest goes on: whether an item has an entry is a matter of the item alone. Of
 * an item that is gone nothing is asked.
 *
 * Bounded in bytes; the set that was used longest ago goes first. For any number of threads. */
#pragma once

#include "document/order.h"
#include "item/cursor.h"

struct query_members;    /* opaque, owned by whoever runs queries */
struct query_member_set; /* opaque, counted */

struct query_members *query_members_new(size_t bytes_max);
void query_members_free(struct query_members *members); /* NULL is fine; no set is in use */
CLEANUP_FN(struct query_members *, query_members_free)

/* What a set is of: entries of an index of paths with values from min, up to max. */
struct query_member_key {
    uint32_t node, partition;
    uint64_t epoch, lsn;
    enum document_order order;
    struct slice prefix, min, max;
};

/* The set at the LSN of the key, which is that of the view, for query_member_set_unref. makes: if
 * there is none an empty one is made. NULL in *ret_set: there is none, or the view may not wait for
 * the store. */
NODISCARD bool query_members_open(struct query_members *members, const struct view *view,
                                  const struct query_member_key *key, bool makes,
                                  struct query_member_set **ret_set, struct error *err);
void query_member_set_unref(struct query_member_set *set); /* NULL is fine */

enum query_member { QUERY_MEMBER_UNKNOWN, QUERY_MEMBER_IN, QUERY_MEMBER_OUT };

enum query_member query_member_look(const struct query_member_set *set, uint64_t number);

/* The store has told whether the item with this number has an entry. Nothing is noted where there
 * is no room. */
void query_member_note(struct query_member_set *set, uint64_t number, bool in);

/* Bytes of all sets that can be found. */
size_t query_members_bytes(struct query_members *members);
