/* Transaction: reads and writes on the items of one logical partition, all or nothing.
 *
 * It reads a snapshot taken when it begins, sees its own writes, and commits through group commit:
 * the first committer wins, the other gets ERROR_CONFLICT and may run again. Reads do not
 * conflict (snapshot isolation), unless transaction_rely says so.
 *
 *     transaction_begin(&scope, logical, arena, &tx, &err)
 *     transaction_read(tx, id, &item, &err)
 *     transaction_write(tx, id, TRANSACTION_REPLACE, document, options, &err)
 *     transaction_commit(tx, &err)
 *
 * It may go on to another logical partition of the same node with transaction_enter; all of it
 * commits together.
 *
 * One thread at a time. Everything it hands out lives in the arena. */
#pragma once

#include "item/item.h"
#include "item/scope.h"
#include "item/write_set.h"

struct view_overlay;
struct write_record;
struct transaction; /* opaque; freed with transaction_free, committed or not */

/* logical: item_logical of the partition key; copied. */
NODISCARD bool transaction_begin(const struct item_scope *scope, struct slice logical,
                                 struct arena *arena, struct transaction **ret_transaction,
                                 struct error *err);

/* The same for one write of one item. It takes no snapshot where what is read is also written: then
 * the commit fails if that changed since it began. Nothing is to be read besides. reach: of the
 * reads; see transaction_is_cold. */
NODISCARD bool transaction_begin_plain(const struct item_scope *scope, struct slice logical,
                                       enum engine_reach reach, struct arena *arena,
                                       struct transaction **ret_transaction, struct error *err);

/* Did it fail because what it had to read is not in memory? With ENGINE_READ_CACHED only. */
bool transaction_is_cold(const struct transaction *transaction);

/* The same in no logical partition yet, on the node of the scope: transaction_enter comes first. */
NODISCARD bool transaction_open(const struct item_scope *scope, struct arena *arena,
                                struct transaction **ret_transaction, struct error *err);
void transaction_free(struct transaction *transaction); /* NULL is fine */
CLEANUP_FN(struct transaction *, transaction_free)

/* Reads and writes that follow are on another logical partition, perhaps of another physical
 * partition or container. ERROR_NOT_SUPPORTED: it is on another node. ERROR_FENCED: the map has
 * been overtaken, so that what the snapshot holds of the two may be of different moments.
 * ERROR_CONFLICT: a transaction over several nodes (agreement.h) was not yet applied to all of that
 * partition when the snapshot was taken; with another one it will be. */
NODISCARD bool transaction_enter(struct transaction *transaction, const struct item_scope *scope,
                                 struct slice logical, struct error *err);

/* The moment it reads, of the whole node; borrowed, and gone with the commit. For queries that are
 * part of it: they do not see its writes. */
struct engine_snapshot *transaction_snapshot(const struct transaction *transaction);

/* What it has planned so far, for queries that shall see it: the transaction's own, brought up to
 * date by each call and good until the next one. What that takes is a matter of what was written
 * since the last, but where items own unique values, take each other's place or are over: then it
 * is built anew. ERROR_UNIQUE_KEY: two of its items clash. */
NODISCARD bool transaction_overlay(struct transaction *transaction,
                                   const struct view_overlay **ret_overlay, struct error *err);
/* What the overlay holds, besides the transaction's arena. */
size_t transaction_overlay_bytes(const struct transaction *transaction);

/* Asked before each write, with partition and item key, by whoever has more to say about it. False
 * with err: it is refused. */
typedef bool transaction_guard(void *self, uint32_t partition, struct slice key, struct error *err);
void transaction_set_guard(struct transaction *transaction, transaction_guard *guard, void *self);

/* Was the item written by another one since the snapshot? Then the commit of a write would fail. */
NODISCARD bool transaction_is_late(struct transaction *transaction, const struct document_value *id,
                                   bool *ret_late, struct error *err);

/* Where all of it lives. */
struct arena *transaction_arena(const struct transaction *transaction);

/* Puts a record (write_record.h) beside the writes of the logical partition it is in. Borrowed
 * until the commit. */
void transaction_record_add(struct transaction *transaction, const struct write_record *record);

/* Puts or deletes an entry of another family in the commit, where the transaction writes an item in
 * the partition it is in: contribution.h. Borrowed until the commit. */
void transaction_beside(struct transaction *transaction, const struct engine_op *op);

/* The item as this transaction sees it. *ret_item NULL: there is none. */
NODISCARD bool transaction_read(struct transaction *transaction, const struct document_value *id,
                                const struct item **ret_item, struct error *err);

/* What is written here has no number, etag and time yet: those come with the commit. Until then the
 * transaction shows provisional ones in the header of the item: a number above all others for an
 * item that is new, an lsn above all others with the number of the write (as of transaction_result,
 * its low 16 bits) as ordinal, and its own time. Provisional etags hold for if-match within the
 * transaction. */
#define TRANSACTION_LSN_PROVISIONAL UINT64_MAX
enum {
    TRANSACTION_NUMBER_SOURCE = (1 << 28) - 1
}; /* of provisional numbers: no partition has it */

/* The id of an item of the logical partition the transaction is in, by its number, be it
 * provisional. *ret_found false: there is none here. */
NODISCARD bool transaction_find_number(struct transaction *transaction, uint64_t number,
                                       struct document_value *ret_id, bool *ret_found,
                                       struct error *err);

/* After the commit: the number that an item got for a provisional one, also if it was deleted
 * again. False: it is none of these. */
bool transaction_number(const struct transaction *transaction, uint64_t provisional,
                        uint64_t *ret_number);

/* Makes the commit fail with ERROR_CONFLICT if this item is written by another one meanwhile. */
void transaction_rely(struct transaction *transaction, const struct document_value *id);

struct transaction_page {
    struct item *items; /* in the arena */
    size_t count;
    bool more;
    struct slice position; /* key of the last item; to go on behind it */
};

/* Items of the logical partition the transaction is in, by id, as it sees them: with its own
 * writes. after: position of the last page, or empty. rely: the commit fails with ERROR_CONFLICT if
 * another one writes into what was looked at meanwhile, also where nothing was. */
NODISCARD bool transaction_scan(struct transaction *transaction, struct slice after, size_t max,
                                bool rely, struct transaction_page *ret_page, struct error *err);

enum transaction_verb {
    TRANSACTION_CREATE,  /* ERROR_ITEM_EXISTS */
    TRANSACTION_REPLACE, /* ERROR_ITEM_MISSING */
    TRANSACTION_UPSERT,
    TRANSACTION_DELETE, /* ERROR_ITEM_MISSING; no document */
};

struct transaction_options {
    /* Of a replace: the item gets this id, and stays the item it is. ERROR_ITEM_EXISTS: another one
     * has it. NULL: it keeps the one it has. */
    const struct document_value *new_id;
    struct slice if_match;      /* etag without quotes, or "*"; empty: none */
    struct slice if_none_match; /* likewise */
    struct slice description;   /* how an update came about, for the history: BSON; data NULL: the
                                 * item is replaced */
    bool not_indexed;
    /* What is to be found out of the write later, put beside it in the same commit; borrowed until
     * then. NULL: nothing. */
    const struct write_record *record;
    bool id_is_free; /* under the base of a random suffix: the caller holds a claim (claim.h), with
                      * new_id on that */
};

/* Plans a write. ERROR_PRECONDITION_FAILED: the etag is another. The document is BSON without
 * system properties, borrowed until the commit; its ttl property is looked at. A synthetic
 * partition key is checked, and filled in where it is missing (partition/synthetic.h).
 * ERROR_BAD_REQUEST, ERROR_KEY_MISMATCH. ERROR_NOT_SUPPORTED: it would create an item under a
 * random suffix without a claim. */
NODISCARD bool transaction_write(struct transaction *transaction, const struct document_value *id,
                                 enum transaction_verb verb, struct slice document,
                                 const struct transaction_options *options, struct error *err);

/* Would a unique key of this document, to be written under this id, be taken by an item that the
 * transaction has not touched? ERROR_UNIQUE_KEY: it would. For those who want to know before the
 * commit, which tells in any case, also of clashes among what the transaction writes itself. */
NODISCARD bool transaction_unique_check(struct transaction *transaction,
                                        const struct document_value *id, struct slice document,
                                        struct error *err);

/* Plans the removal of an item whose time is over, its own or as is_over says of what is stored
 * (NULL: its own); nothing if it is not, or gone already. */
NODISCARD bool transaction_remove_expired(struct transaction *transaction,
                                          const struct document_value *id,
                                          bool (*is_over)(const struct item *item, void *context),
                                          void *context, struct error *err);

/* Plans the removal of up to max of the oldest items that a bounded container has above its bound:
 * of one whose bound has become smaller. In the logical partition the transaction is in. */
NODISCARD bool transaction_make_room(struct transaction *transaction, size_t max,
                                     size_t *ret_removed, struct error *err);

/* What became of a planned write, after the commit. */
struct transaction_result {
    struct item item;   /* after; of a delete: before */
    bool created;       /* there was none */
    uint64_t lsn;       /* of the commit in the item's partition; 0: nothing was to be done */
    int64_t charge_cru; /* of this write */
};

/* The result of the nth planned write (from 0), after a successful commit: the item as that write
 * left it, with an etag of its own, whatever later writes have made of it. */
struct transaction_result transaction_result(const struct transaction *transaction, size_t nth);

/* The same, but the item as the transaction has left it in the end. Deleted: document.data is NULL.
 */
struct transaction_result transaction_outcome(const struct transaction *transaction, size_t nth);

/* How many writes are planned, and the physical partition of the nth. */
size_t transaction_write_count(const struct transaction *transaction);
uint32_t transaction_partition(const struct transaction *transaction, size_t nth);

/* After a commit that failed with ERROR_UNIQUE_KEY: the last write of the item that is to blame.
 * False: it is not known. */
bool transaction_refused(const struct transaction *transaction, size_t *ret_nth);

/* What the transaction is charged, in hundredths of an RU. Before the commit: for what it read;
 * afterwards for its writes too, each as the write it is (looking at an item before writing it is
 * part of that). */
struct transaction_work {
    int64_t write_cru;
    size_t writes;
    size_t index_entries; /* put or deleted */
    uint64_t bytes_read, bytes_written;
};
struct transaction_work transaction_work(const struct transaction *transaction);

/* Changes of containers that the history tells with the commit, before its writes: records without
 * a place, borrowed until then. Nothing is told of a transaction without writes. */
void transaction_tell(struct transaction *transaction, const struct history_record *records,
                      size_t count);
/* After the commit: were they told? Not where its writes came to nothing. */
bool transaction_has_told(const struct transaction *transaction);

/* Checks unique keys, builds the operations and commits; blocks. ERROR_CONFLICT, ERROR_UNIQUE_KEY,
 * ERROR_LOGICAL_PARTITION_FULL and what group commit may answer. Without writes it succeeds. */
NODISCARD bool transaction_commit(struct transaction *transaction, struct error *err);

/* The same without waiting: done is called once, on the committer's thread, unless this returns
 * false. */
NODISCARD bool transaction_commit_start(struct transaction *transaction,
                                        void (*done)(struct transaction *transaction,
                                                     const struct error *err, void *context),
                                        void *context, struct error *err);

/* LSN of the commit in the physical partition it began in; 0 if it wrote nothing there. */
uint64_t transaction_lsn(const struct transaction *transaction);
