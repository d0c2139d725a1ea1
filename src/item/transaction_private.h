/* A transaction from within: what it has seen and plans (transaction.c), and what becomes of that
 * at the commit (transaction_commit.c). */
#pragma once

#include "item/transaction.h"

enum {
    TRANSACTION_WRITES_MAX = 65536, /* and as many items that are looked at */
    TRANSACTION_FEW = 8,            /* seen without buckets */
    TRANSACTION_BUCKETS = 256,      /* of what it has seen: a large one stays near linear */
};

/* A logical partition the transaction is or was in. */
struct transaction_place {
    struct item_scope scope;
    struct slice logical;
    struct transaction_place *next; /* of the parts of spread keys that were entered besides */
};

/* What is committed to one physical partition. */
struct transaction_section {
    const struct item_scope *scope;
    struct write_set_change *changes;
    size_t change_count;
    struct write_set *set;
};

/* One item the transaction has looked at or wants to write. */
struct transaction_seen {
    const struct transaction_place *place;
    struct slice key;   /* item key */
    struct item stored; /* as of the snapshot, if any */
    bool is_stored;     /* physically there */
    bool is_over;       /* but expired */
    bool is_written;    /* planned */
    bool is_relied;     /* must not change meanwhile */
    struct slice after; /* data NULL: nothing is here any more */
    bool expired;
    bool makes_room;  /* goes, for a bounded container has newer ones */
    struct item view; /* what the transaction sees now, when written */
    struct transaction_entity
        *own; /* the item stored here, once it is written; NULL: not, or it is over */
    struct transaction_entity *here;  /* the item that is here by now, when written; NULL: none */
    struct transaction_entity *first; /* that was put here or deleted from here; NULL: none was */
    bool is_shared;                   /* others were, too */
    struct transaction_seen *next;    /* in its bucket */
};

/* One item through the transaction, under whatever id. */
struct transaction_entity {
    struct transaction_seen *stored; /* where it was stored; NULL: it is new */
    struct transaction_seen *at;     /* where it is by now; NULL: deleted */
    size_t last;                     /* in transaction->planned: its last write */
    struct write_set_change *change; /* at commit */
    struct transaction_part *shown;  /* what it adds to the overlay; NULL: it is not there by itself
                                      */
    size_t index;                    /* in transaction->entities */
};

#define NO_WRITE_BEFORE SIZE_MAX

/* One write, in the order they came. */
struct transaction_planned {
    struct transaction_seen *seen;     /* where it put the item, or deleted it from */
    struct transaction_entity *entity; /* NULL: what is over was removed */
    size_t before; /* the write of the same item before this one; or NO_WRITE_BEFORE */
    bool created;
    struct slice after; /* data NULL: deleted */
    struct slice description;
    uint8_t flags;
    int32_t ttl;
    int64_t charge_cru; /* once the commit is prepared */
};

/* A record that is put with the write it is of. */
struct transaction_record {
    const struct transaction_place *place;
    const struct write_record *record; /* NULL: op */
    const struct engine_op *op;
    struct transaction_record *next;
};

/* A range that must not change before the commit. */
struct transaction_scanned {
    const struct transaction_place *place;
    struct engine_range range;
    struct transaction_scanned *next;
};

struct transaction {
    const struct transaction_place *first, *place; /* where it began, and where it is */
    struct transaction_place *parted; /* parts of spread keys that were entered besides */
    struct commit *commit;            /* of the node */
    struct arena *arena;
    transaction_guard *guard; /* NULL: nobody asks */
    void *guard_self;
    struct engine_snapshot *snapshot; /* of the whole node; NULL: plain, or committed */
    bool is_open;                     /* not committed yet */
    enum engine_reach reach;
    bool is_cold;
    uint64_t moment;
    int64_t now_ms;

    struct transaction_seen **seen;
    size_t seen_count, seen_capacity;
    struct transaction_seen *few;      /* all of them, until there are more than a few */
    struct transaction_seen **buckets; /* then; in the arena */
    struct transaction_entity **entities;
    size_t entity_count, entity_capacity;
    struct transaction_planned *planned;
    size_t planned_count, planned_capacity;
    struct transaction_scanned *scanned;
    struct transaction_record *records;
    const struct history_record *told; /* with it, of containers; borrowed */
    size_t told_count;
    struct engine_op *told_ops; /* of those, to be stamped */
    struct transaction_work work;
    const struct write_set_change *refused; /* whose unique key somebody else owns */

    struct arena *overlay_arena;  /* NULL: none was built */
    struct view_overlay *overlay; /* in it; NULL: it is to be built anew */
    size_t overlay_writes;        /* that it shows */
    size_t overlay_bytes;         /* when it was built */
    bool overlay_is_apart;        /* what each item adds is known by itself */

    struct transaction_section *sections; /* one for each part */
    struct commit_part *parts;
    size_t part_count;
    struct commit_part *history;  /* the last part; NULL: nothing is told */
    struct commit_agreed *agreed; /* as a step of a transaction over nodes: then all that was seen
                                   * is relied on; NULL: of one node */
    bool agreed_moment; /* but its snapshot is of one moment with those of the other nodes: then
                         * only what it says itself is */
    const struct engine_op *agreed_op; /* of that step, in the history; NULL: none */
    uint64_t windows; /* partitions of which the snapshot may be older than what others show */
    struct commit_batch batch;
    void (*done)(struct transaction *transaction, const struct error *err, void *context);
    void *context;
};

/* Has the container of the scope keys that are spread over several partitions? */
bool transaction_is_spread(const struct item_scope *scope);

/* What becomes of an item; its versions in the arena. */
struct write_set_change transaction_change_of(const struct transaction *transaction,
                                              const struct transaction_entity *entity,
                                              struct arena *arena);

/* The changes of all items, in sections of their partitions, of which there are `places` at most.
 */
void transaction_changes_collect(struct transaction *transaction, size_t places);

/* Plans that the oldest items of a bounded container go, as far as what a section adds asks for it
 * (definition.h). *evicted is set if some do that did not before: then changes are to be collected
 * anew. */
NODISCARD bool transaction_bound_keep(struct transaction *transaction,
                                      const struct transaction_section *section, bool *evicted,
                                      struct error *err);

/* transaction_open for whoever settles a transaction over nodes: windows are its own. */
NODISCARD bool transaction_open_settling(const struct item_scope *scope, struct arena *arena,
                                         struct transaction **ret_transaction, struct error *err);

/* The same while the committer is kept still (partition/commit.h): it notes which windows are open.
 */
NODISCARD bool transaction_open_still(const struct item_scope *scope, struct arena *arena,
                                      struct transaction **ret_transaction, struct error *err);

/* Builds the batch; the snapshot is let go of. */
NODISCARD bool transaction_prepare(struct transaction *transaction, struct error *err);

/* Adds a write to those that are planned. */
void transaction_note(struct transaction *transaction, struct transaction_planned planned);

/* The item under a key, as stored; looked up once. */
NODISCARD bool transaction_see(struct transaction *transaction,
                               const struct transaction_place *place, struct slice key,
                               struct transaction_seen **ret_seen, struct error *err);
