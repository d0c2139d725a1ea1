/* Write set: the engine operations that turn the items of one physical partition from what they
 * were into what they shall be: item, number, index, feed, expiry, unique keys and counters, and
 * of the index only what changed.
 *
 * What only the commit knows (LSN, time, numbers of new items) is left open and filled in by
 * write_set_stamp, on the committer's thread. */
#pragma once

#include "index/policy.h"
#include "item/feed.h"
#include "item/item.h"
#include "item/scope.h"
#include "item/write_placed.h"
#include "partition/commit.h"

/* A version of an item that the same transaction has replaced or deleted again. It is told to the
 * feed where that keeps all versions. */
struct write_set_step {
    uint32_t ordinal;
    struct slice key;         /* item key */
    struct slice after;       /* data NULL: deleted */
    struct slice description; /* of an update, for the history; data NULL: it was replaced */
};

/* One item of a transaction. Neither before nor after: it was made and deleted again, and gets no
 * more than a number. */
struct write_set_change {
    struct slice key;          /* item key, by now or when it was deleted */
    struct slice from;         /* the key it was stored under; data NULL: the same */
    bool is_succeeded;         /* another change puts an item under the key that this one leaves */
    const struct item *before; /* as stored; NULL: not there */
    bool before_is_over;       /* it had expired: gone, though still stored */
    struct slice after;        /* BSON without system properties; data NULL: deleted */
    int32_t ttl;               /* own ttl of after; 0: none */
    uint8_t flags;             /* enum item_flags of after */
    struct slice description;  /* of an update, for the history; data NULL: it was replaced */
    bool expired;              /* deleted because its time was over */
    bool makes_room;           /* deleted because newer items take its place */
    uint32_t ordinal;          /* of its version among those of the commit */
    const struct write_set_step *steps; /* the versions before that one, in their order */
    size_t step_count;
    bool reindexed; /* after is before: only entries are remade; no new version */

    /* A migration carries the item here as it is elsewhere: the commit gives it neither number nor
     * version, and nothing is told of it but its last version. carried: as it is there, of after.
     */
    bool is_carried;
    struct item_header carried;

    /* Out, after the commit: of after; of what was deleted, its number and when that was. */
    struct item_header header;
    uint32_t index_puts, index_deletes; /* out: entries of index, unique keys and expiry */
    size_t history_bytes;               /* out: added to the history */
};

/* Second bytes of keys of unique indexes (write_set.c). */
enum { WRITE_SET_CLAIM = 0x40, WRITE_SET_CONFLICT = 0x41 };

struct write_set; /* opaque, in the arena */

/* Builds the operations of the changes (borrowed until the commit is done), each of another item of
 * the scope's partition. part gets everything but relied and scanned keys beyond the changed items
 * and their unique keys. ERROR_TOO_LARGE: of an item, its entries or its values in unique indexes;
 * ERROR_UNIQUE_KEY: two of the changes clash. */
NODISCARD bool write_set_build(const struct item_scope *scope, struct write_set_change *changes,
                               size_t count, struct arena *arena, struct write_set **ret_set,
                               struct commit_part *ret_part, struct error *err);

/* An operation besides what follows from the changes, in the same part. */
void write_set_add(struct write_set *set, const struct engine_op *op, struct commit_part *part);

/* What a change is charged (throughput/cost.h), once they are built: as the write it is. */
int64_t write_set_change_cost(const struct write_set_change *change);

/* Fills in what the commit decided. May be called again with another stamp. */
void write_set_stamp(struct write_set *set, const struct commit_stamp *stamp);

/* The unique keys the changes want to own and did not own before: engine keys with their family. */
struct write_set_unique {
    struct slice key;
    struct slice conflict; /* put instead where another item owns it; data NULL: that is refused */
    const struct write_set_change *change;
    const struct index_definition *index; /* by which it is; NULL: a unique key */
};
const struct write_set_unique *write_set_uniques(const struct write_set *set, size_t *ret_count);

/* Another item owns the key of this claim, which has a conflict to be put instead. */
void write_set_conflict(struct write_set *set, const struct write_set_unique *claim);

/* What the changes add to the history of their node (partition/history.h), for a part of the batch
 * of its own; none where the scope says that nothing is told, nor of no set (NULL). Keys are
 * stamped with its time. */
const struct engine_op *write_set_history(const struct write_set *set, size_t *ret_count);
void write_set_history_stamp(struct write_set *set, uint64_t time);

/* What they add to entries that lie elsewhere, for parts of the batch of their own
 * (write_placed_parts); none of no set (NULL). Keys are stamped with the others. */
const struct write_placed *write_set_placed(const struct write_set *set, size_t *ret_count);

/* Does one of the changes let go of this unique key, which the item of this number owns? */
bool write_set_releases(const struct write_set *set, struct slice key, uint64_t number);
