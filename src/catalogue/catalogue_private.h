/* The catalogue from within: state.c has what readers hold, record.c what is on disk, change.c the
 * way from one to the next, load.c the way back, purge.c what is done to the dropped. Which lock
 * covers what is said at struct catalogue. */
#pragma once

#include "base/buf.h"
#include "base/thread.h"
#include "catalogue/child_cache.h"
#include "catalogue/children_private.h"
#include "catalogue/node.h"
#include "definition/promotion.h"
#include "item/agreements.h"
#include "partition/history.h"
#include "partition/layout.h"

#include <stdatomic.h>

/* The physical partition of the root node that the catalogue lives in. */
enum { CATALOGUE_PARTITION = 1, CATALOGUE_FORMAT = 1 };

/* --- State (state.c) ------------------------------------------------------------------------- */

enum catalogue_state_kind { STATE_ROOT, STATE_ACCOUNT, STATE_DATABASE, STATE_CONTAINER };

/* What the tree of states is made of: root, accounts, databases, containers. Never changed once
 * published; a change copies the path from what it touches to the root. */
struct catalogue_state {
    atomic_uint refs;
    enum catalogue_state_kind kind;
    struct arena *arena; /* owns the structure around this one and its bytes */
    struct catalogue_info info;
    struct catalogue_state **children; /* sorted by id; a reference each */
    size_t child_count, child_capacity;
};

struct account {
    struct catalogue_state state;
    struct slice properties;
    bool has_keys;
    struct account_keys keys; /* cleansed when the state goes */
};

struct database {
    struct catalogue_state state;
    uint32_t account;
    bool has_offer;
    struct offer offer;
    struct catalogue_children *users, *keys; /* references */
    size_t permission_count;                 /* of all its users */
    uint64_t permission_bytes;               /* of their bodies */
};

/* What all states of one container share: how many there are, and whether it was dropped. */
struct container_life {
    atomic_uint states;
    atomic_bool dropped;
};

struct container {
    struct catalogue_state state;
    struct container_life *life; /* counted by the state */
    uint32_t account, database;
    struct slice database_name;                        /* in the state's arena */
    struct definition *definition;                     /* a reference */
    struct definition *before[CONTAINER_POLICIES_MAX]; /* references: container_policies */
    uint32_t before_count;
    uint32_t policy_version;
    uint32_t writers;
    struct partition_map *map;       /* a reference */
    int64_t since_ms;                /* monotonic: when this state was published, or made */
    struct container_shares *shares; /* a reference; NULL: as the map says (catalogue_shares.h) */
    struct migration *migration;     /* a reference; NULL: none is under way */
    struct promotion_list promotions;
    uint64_t shown, untied; /* container_shown, container_untied */
    bool has_offer;         /* of its own; else offer is the database's */
    struct offer offer;
    struct catalogue_children
        *scripts[CHILD_SCRIPT_KINDS]; /* references, from CHILD_PROCEDURE on */
    struct catalogue *catalogue;      /* for limits and nodes, which do not change, and to renew */
};

static inline struct account *catalogue_state_account(struct catalogue_state *state)
{
    assert(state->kind == STATE_ACCOUNT);
    return CONTAINER_OF(state, struct account, state);
}

static inline struct database *catalogue_state_database(struct catalogue_state *state)
{
    assert(state->kind == STATE_DATABASE);
    return CONTAINER_OF(state, struct database, state);
}

static inline struct container *catalogue_state_container(struct catalogue_state *state)
{
    assert(state->kind == STATE_CONTAINER);
    return CONTAINER_OF(state, struct container, state);
}

struct container_shares *container_shares_ref(struct container_shares *shares); /* NULL is fine */
void container_shares_unref(struct container_shares *shares);                   /* NULL is fine */

/* The map with the shares of now, to make another from; a reference. */
struct partition_map *container_map_now(const struct container *container);

/* A state of its own, without children; id is copied. */
struct catalogue_state *catalogue_state_new(enum catalogue_state_kind kind, struct slice id,
                                            uint32_t number);

/* It is published now, in place of what the root has: where what is stored is read another way than
 * before, what a store shows must not be older (item/reading.h). A state that is NULL, or of
 * another kind, is fine; root NULL: there was none before. */
void catalogue_state_since(struct catalogue_state *state, const struct catalogue_state *root);

/* Another of the same content, to be changed before it is published. */
struct catalogue_state *catalogue_state_copy(const struct catalogue_state *state);
struct catalogue_state *catalogue_state_ref(struct catalogue_state *state);
void catalogue_state_unref(struct catalogue_state *state); /* NULL is fine */
CLEANUP_FN(struct catalogue_state *, catalogue_state_unref)

/* The containers in this state, itself or below it, were dropped: when the last of their states
 * goes, whoever asked is told (catalogue_options). */
void catalogue_state_mark_dropped(struct catalogue_state *state);

/* The containers of a tree not yet published go on with the lives they have in the other. */
void catalogue_state_adopt_lives(struct catalogue_state *root,
                                 const struct catalogue_state *before);

/* rid, etag and time of a state not yet published. */
void catalogue_state_stamp(struct catalogue_state *state, struct rid rid, uint64_t lsn,
                           int64_t ts_ms);
void catalogue_offer_stamp(struct offer *offer, uint64_t lsn, int64_t ts_ms);

/* The text an etag has: the catalogue's partition and the commit that wrote the record. */
void catalogue_etag_format(uint64_t lsn, char ret_text[OFFER_ETAG_SIZE]);

struct catalogue_state *catalogue_state_find(const struct catalogue_state *parent, struct slice id);
struct catalogue_state *catalogue_state_find_number(const struct catalogue_state *parent,
                                                    uint32_t number);

/* Changes the children of a state not yet published. set takes the reference over and replaces the
 * child of that number, if there is one. */
void catalogue_state_child_set(struct catalogue_state *parent, struct catalogue_state *child);
void catalogue_state_child_remove(struct catalogue_state *parent, uint32_t number);

/* The same at the end, unsorted, for loading; then sorted once. */
void catalogue_state_child_append(struct catalogue_state *parent, struct catalogue_state *child);
void catalogue_state_sort(struct catalogue_state *parent);

/* --- Records (record.c) ---------------------------------------------------------------------- */

/* What the catalogue must remember besides its records. */
struct catalogue_head {
    uint32_t next_account, next_database, next_container, next_offer, next_partition;
    uint32_t next_user;  /* of users and encryption keys */
    uint32_t next_child; /* of other children */
    uint32_t node_count;
    char nodes[CLUSTER_NODES_MAX][37]; /* engine_node_id by number */
};

enum catalogue_record_kind {
    RECORD_ACCOUNT,
    RECORD_DATABASE,
    RECORD_CONTAINER,
    RECORD_OFFER,
    RECORD_CHILD
};

/* Whose record it is: 0 where the tree ends above. */
struct catalogue_record_address {
    enum catalogue_record_kind kind;
    uint32_t account, database, container;
    uint32_t user; /* of a permission */
    enum child_kind child_kind;
    uint32_t child;
};

enum { RECORD_KEY_MAX = 20, RECORD_HEADER_LEN = 17 };

struct catalogue_record {
    struct catalogue_record_address address;
    uint64_t lsn;
    int64_t ts_ms;
    struct slice document; /* borrowed */
};

struct slice catalogue_record_head_key(void);
struct slice catalogue_record_nodes_key(void);
struct slice catalogue_record_barrier_key(void);
struct engine_range catalogue_record_range(void); /* all records */
struct engine_range catalogue_record_tombstone_range(void);

/* In the arena. The key of what is below an address begins with its own. */
struct slice catalogue_record_key(struct catalogue_record_address address, struct arena *arena);
struct slice catalogue_record_tombstone_key(struct slice scope, struct arena *arena);
struct slice catalogue_record_tombstone_scope(struct slice key); /* borrowed */

/* The value: a header that is filled in when the commit is stamped, and the document. */
struct slice catalogue_record_value(struct slice document, struct arena *arena);
void catalogue_record_stamp(struct slice value, const struct commit_stamp *stamp);
NODISCARD bool catalogue_record_read(struct slice key, struct slice value,
                                     struct catalogue_record *ret_record, struct error *err);
NODISCARD bool catalogue_record_value_read(struct slice value, struct catalogue_record *record,
                                           struct error *err);

/* Documents, in the arena, and back. Reading checks: a disk is outside. */
struct slice catalogue_record_head_write(const struct catalogue_head *head, struct arena *arena);
NODISCARD bool catalogue_record_head_read(struct slice document, struct catalogue_head *ret_head,
                                          struct error *err);
struct slice catalogue_record_account_write(const struct account *account, struct arena *arena);
NODISCARD bool catalogue_record_account_read(const struct catalogue_record *record,
                                             struct catalogue_state **ret_state, struct error *err);
struct slice catalogue_record_database_write(const struct database *database, struct arena *arena);
NODISCARD bool catalogue_record_database_read(const struct catalogue_record *record,
                                              struct catalogue_state **ret_state,
                                              struct error *err);
/* keeps_stamp: etag and time stay those of the state, whenever the record is written. */
struct slice catalogue_record_container_write(const struct container *container, bool keeps_stamp,
                                              struct arena *arena);
NODISCARD bool catalogue_record_container_read(const struct catalogue_record *record,
                                               struct catalogue *catalogue,
                                               struct catalogue_state **ret_state,
                                               struct error *err);

/* A physical partition that a record owns. */
struct catalogue_record_partition {
    uint32_t id, node;
};

/* All partitions of a container, dropped or not: those of its map, and what a migration makes or
 * still has to drop; some twice. In the arena. */
NODISCARD bool
catalogue_record_container_partitions(const struct catalogue_record *record, struct arena *arena,
                                      struct catalogue_record_partition **ret_partitions,
                                      size_t *ret_count, struct error *err);
struct slice catalogue_record_child_write(const struct catalogue_child *child, struct arena *arena);
NODISCARD bool catalogue_record_child_read(const struct catalogue_record *record,
                                           struct catalogue_child **ret_child, struct error *err);
struct slice catalogue_record_offer_write(const struct offer *offer, struct arena *arena);
NODISCARD bool catalogue_record_offer_read(const struct catalogue_record *record,
                                           struct offer *ret_offer, struct error *err);

/* --- The catalogue --------------------------------------------------------------------------- */

/* A dropped scope on its way out. */
struct catalogue_purge {
    struct catalogue_purge *next;
    size_t len;
    uint8_t scope[RECORD_KEY_MAX];
};

/* Each on a line of its own, so that processors do not take it from each other. */
enum { STATE_LOCKS = 16, CACHE_LINE_PAIR = 128 };
struct catalogue_state_lock {
    struct mutex mutex;
    uint8_t space[CACHE_LINE_PAIR - sizeof(struct mutex)];
};

struct catalogue {
    struct cluster *cluster;
    struct commit *commit; /* the root's */
    struct engine *engine; /* the root's */
    struct definition_limits limits;
    struct child_cache *scripts; /* owned: texts read of late */
    struct log *log;
    void (*partition_gone)(void *context, uint32_t partition); /* or NULL */
    void *gone_context;
    bool history;                  /* changes of collections are told */
    bool follows;                  /* another server owns the nodes: it is only read */
    void (*recall)(void *context); /* or NULL; with the next */
    void (*recalled)(void *context);
    void *recall_context;
    atomic_bool reserved;           /* of one that follows: see catalogue_is_reserved */
    struct engine_snapshot *moment; /* under change_lock: what a load reads; NULL: now */
    struct agreements *agreements;  /* owned: transactions over several nodes */

    struct catalogue_state_lock
        state_locks[STATE_LOCKS]; /* any of them to look, all of them to publish */
    struct catalogue_state *root; /* the published state */

    atomic_uint_fast32_t partitions_next; /* ids from here on were given to nobody */
    atomic_uint_fast64_t maps_published;  /* by migrations, since the start */
    atomic_uint redefining;               /* containers whose writers wait for another definition */
    struct mutex published_lock;          /* under it: waiting for what is published next */
    struct condition published;

    struct mutex change_lock;   /* one change at a time; held while it is committed */
    struct catalogue_head head; /* under change_lock */
    uint64_t epoch;             /* of CATALOGUE_PARTITION */
    bool in_doubt;              /* under change_lock: a commit's outcome is not known; load again */
    struct stale_map *stale;    /* under change_lock: see catalogue_stale.c */
    uint64_t away; /* under change_lock: a bit for each node the last load passed over */

    atomic_size_t withheld_count;        /* of the list: nobody looks further while there is none */
    struct mutex withheld_lock;          /* under it: what is withheld, a leaf */
    struct catalogue_withheld *withheld; /* owned: withheld.c */
    uint64_t withheld_told;              /* how often something was to be told of one */

    struct mutex nodes_lock;  /* under it, to be looked at for a moment: */
    struct node_table *nodes; /* owned; changed under change_lock, too */

    struct mutex purging_lock; /* one purger at a time; held while it purges */
    struct mutex queue_lock;   /* under it: queue, stopping */
    struct condition wake;
    struct catalogue_purge *queue;
    uint32_t held; /* nothing is purged while anybody holds the catalogue (kept.h) */
    bool stopping;
    bool has_thread;
    struct thread thread;
};

/* The published state, held still while names are looked up in it: for whoever needs a reference to
 * one thing in it, and none to the whole. Nothing may be published meanwhile by the same thread. */
struct catalogue_look {
    struct mutex *lock;
    struct catalogue_state *root; /* borrowed until catalogue_look_end */
};
struct catalogue_look catalogue_look_begin(struct catalogue *catalogue);
void catalogue_look_end(struct catalogue_look *look);
CLEANUP_VALUE_FN(struct catalogue_look, catalogue_look_end)

/* The published state with a reference. */
struct catalogue_state *catalogue_root(struct catalogue *catalogue);
/* Takes the reference over. */
void catalogue_publish(struct catalogue *catalogue, struct catalogue_state *root);

/* --- Changes (change.c) ---------------------------------------------------------------------- */

enum { CHANGE_OPS_MAX = 8 };

/* agreements.c */
struct agreements *catalogue_agreements_new(struct catalogue *catalogue, struct cluster *cluster);

/* A change that is told in the history of the root. */
struct catalogue_telling {
    struct history_record record;
    struct slice key, value; /* to be stamped */
    struct slice renamed;    /* the name it gets; data NULL: none */
    struct catalogue_telling *next;
};

/* One change being made, under change_lock. */
struct catalogue_change {
    struct catalogue *catalogue;
    struct arena *arena;
    struct catalogue_state *root; /* the published state it starts from, a reference */
    struct engine_op ops[CHANGE_OPS_MAX];
    size_t count;
    struct commit_part part;
    struct commit_part parts[2]; /* it, and what is told; while they are committed */
    struct catalogue_telling *tellings, **tellings_end;
    size_t telling_count;
    bool told;     /* they are, for the change is committed */
    bool recalled; /* nobody else reads by the state that it changes, until its end */
    struct commit_batch batch;
};

/* Takes change_lock; loads the catalogue again when the last commit is in doubt.
 * catalogue_change_end lets go, and is called in any case. */
NODISCARD bool catalogue_change_begin(struct catalogue *catalogue, struct catalogue_change *change,
                                      struct error *err);
void catalogue_change_end(struct catalogue_change *change);
CLEANUP_VALUE_FN(struct catalogue_change, catalogue_change_end)

void catalogue_change_put(struct catalogue_change *change, struct slice key, struct slice document);
void catalogue_change_put_record(struct catalogue_change *change,
                                 struct catalogue_record_address address, struct slice document);
void catalogue_change_delete_record(struct catalogue_change *change,
                                    struct catalogue_record_address address);
void catalogue_change_put_offer(struct catalogue_change *change,
                                struct catalogue_record_address owner, const struct offer *offer);
/* Tells of it in the history, in the same commit: of a container (NULL: of a database alone), if
 * its changes are told. payload: BSON (partition/history.h), copied; data NULL: none. */
void catalogue_change_tell(struct catalogue_change *change, enum history_kind kind,
                           const struct container *container, struct slice payload);
/* dropped: what had the name; NULL: nobody. */
void catalogue_change_tell_renamed(struct catalogue_change *change,
                                   const struct container *container, struct slice name,
                                   const struct container *dropped);
void catalogue_change_tell_database_dropped(struct catalogue_change *change,
                                            const struct database *database);

/* Durable on true; change->part.stamp says when. */
NODISCARD bool catalogue_change_commit(struct catalogue_change *change, struct error *err);

/* Commits the tombstone of what is at address. *ret_scope, in the change's arena, is for
 * catalogue_purge_queue, once the state without it is published. */
NODISCARD bool catalogue_change_bury(struct catalogue_change *change,
                                     struct catalogue_record_address address,
                                     struct slice *ret_scope, struct error *err);
/* The same with publishing and purging; not of children. */
NODISCARD bool catalogue_change_drop(struct catalogue_change *change,
                                     struct catalogue_record_address address, struct error *err);

/* The next of a row of numbers that are never used again. */
NODISCARD bool catalogue_number_take(uint32_t *next, uint32_t max, const char *kind,
                                     uint32_t *ret_number, struct error *err);
/* Offers have few bits: their numbers come round, passing over those in use. */
uint32_t catalogue_offer_number_take(struct catalogue_head *head, const struct account *account);
/* Is there room for one more database or container? */
NODISCARD bool account_room(const struct definition_limits *limits, const struct account *account,
                            struct error *err);
/* Is there room for so many bytes of a definition or child in the place of those before? Where the
 * limit was lowered below what is there, less is always taken. */
NODISCARD bool account_bytes_room(const struct definition_limits *limits,
                                  const struct account *account, size_t before, size_t after,
                                  struct error *err);

/* Publishes the start state with one child put in place of its namesake, or (NULL) the one at
 * address removed; containers and databases carry their parents along. Takes child over. */
void catalogue_change_publish(struct catalogue_change *change,
                              struct catalogue_record_address address,
                              struct catalogue_state *child);
/* The same with two containers of a database put in place; takes both over, second may be NULL. */
void catalogue_change_publish_pair(struct catalogue_change *change, struct container *first,
                                   struct container *second);
/* The same with a container that has another name, and one that is gone (NULL: none). */
void catalogue_change_publish_renamed(struct catalogue_change *change, const struct container *gone,
                                      struct container *container);

/* --- Loading (load.c) ------------------------------------------------------------------------ */

/* Reads everything and publishes it; drops orphans, unless it follows. Under change_lock. */
NODISCARD bool catalogue_load(struct catalogue *catalogue, struct error *err);

/* The head alone; *ret_found false: there is none, and catalogue->head is as it was. */
NODISCARD bool catalogue_head_load(struct catalogue *catalogue, bool *ret_found, struct error *err);

/* --- Nodes (catalogue_node.c) ---------------------------------------------------------------- */

/* The numbers and the table of the nodes that are here; the head and the table are written if
 * anything is new. said: what the settings say of them. Before anything else is read. */
NODISCARD bool catalogue_nodes_settle(struct catalogue *catalogue, const struct node_info *said,
                                      size_t said_count, struct error *err);
NODISCARD bool catalogue_nodes_load(struct catalogue *catalogue, struct error *err);
/* The numbers that the head has for the nodes that are here. ERROR_CONFIGURATION: it has none. */
NODISCARD bool catalogue_nodes_follow(struct catalogue *catalogue, struct error *err);

/* An id no node has: that of a number whose node was removed. */
extern const char node_id_free[37];

/* --- Partitions (partitions.c) --------------------------------------------------------------- */

/* Makes the physical partitions of a new container and the map of them. On failure none is left,
 * or the catalogue is in doubt and the next load drops them. */
NODISCARD bool catalogue_partitions_make(struct catalogue *catalogue,
                                         const struct definition *definition, uint32_t count,
                                         struct partition_map **ret_map, struct error *err);
/* Drops them again; a failure leaves the catalogue in doubt. */
void catalogue_partitions_unmake(struct catalogue *catalogue, const struct partition_map *map);
/* The same for spans of a map, on the nodes they name. ERROR_CONFIGURATION: one is not here. */
NODISCARD bool catalogue_partitions_make_spans(struct catalogue *catalogue,
                                               const struct partition_span *spans, size_t count,
                                               struct error *err);
void catalogue_partitions_unmake_spans(struct catalogue *catalogue,
                                       const struct partition_span *spans, size_t count);
/* Ids that are never used again. */
NODISCARD bool catalogue_partition_ids_take(struct catalogue_head *head, uint32_t count,
                                            uint32_t *ret_first, struct error *err);
NODISCARD bool catalogue_partition_remove(const struct cluster_node *node, uint32_t id,
                                          struct error *err);

/* --- Purging (purge.c) ----------------------------------------------------------------------- */

void catalogue_purge_start(struct catalogue *catalogue, bool by_hand);
/* While it is held nothing is purged; counted. Taking it waits for the purge that runs. */
void catalogue_purge_hold(struct catalogue *catalogue);
void catalogue_purge_release(struct catalogue *catalogue);
void catalogue_purge_stop(struct catalogue *catalogue);
void catalogue_purge_queue(struct catalogue *catalogue, struct slice scope);
void catalogue_purge_queue_clear(struct catalogue *catalogue);

/* --- Containers (catalogue_container.c) ------------------------------------------------------ */

struct catalogue_record_address container_address(const struct container *container);

/* Could a copy of a container be made under this id, in its database? ERROR_NAME_TAKEN,
 * ERROR_LIMIT_REACHED, ERROR_PROMOTION_UNFIT. */
NODISCARD bool catalogue_container_copy_check(const struct catalogue_change *change,
                                              const struct container *of, struct slice id,
                                              struct error *err);
/* The container that has its properties and offer, and this map; its records are put into the
 * change. Not its scripts. To be stamped behind the commit. *ret_copy is owned. */
NODISCARD bool catalogue_container_copy(struct catalogue_change *change, const struct container *of,
                                        struct slice id, struct partition_map *map,
                                        struct container **ret_copy, struct error *err);
void catalogue_container_copy_stamp(const struct catalogue_change *change, struct container *copy);

/* --- Promotions (catalogue_promotion.c) ------------------------------------------------------ */

/* ERROR_PROMOTION_BOUND: a promotion does not let a container be dropped, be given this definition,
 * or a migration of these partitions begin. */
NODISCARD bool catalogue_promotions_let_drop(const struct container *container, struct error *err);
NODISCARD bool catalogue_promotions_let_replace(const struct container *container,
                                                const struct definition *definition,
                                                struct error *err);
NODISCARD bool catalogue_promotions_let_migrate(const struct container *container,
                                                const struct migration_request *request,
                                                struct error *err);

/* --- Old maps (catalogue_stale.c) ------------------------------------------------------------ */

/* Notes that a partition leaves the map of this state, or is another container's; drop: it is in no
 * map any more. What stays is noted before the commit: should that be in doubt and turn out to be
 * done, the map would be forgotten else. As long as the map is the present one the note says
 * nothing. What is to be dropped is noted behind it. */
void catalogue_stale_add(struct catalogue *catalogue, const struct container *before,
                         const struct partition_span *span, bool drop);
/* ERROR_BUSY: somebody may still reach the partition by an old map. */
NODISCARD bool catalogue_stale_check(const struct catalogue *catalogue, uint32_t partition,
                                     struct error *err);
void catalogue_promotions_stale_free(struct catalogue *catalogue);

/* --- Views (views.c) ------------------------------------------------------------------------- */

/* ERROR_VIEW_BOUND: it is the source of a view. */
NODISCARD bool catalogue_views_let_drop(const struct database *database,
                                        const struct container *container, struct error *err);
/* ERROR_VIEW_BOUND: it is a view. */
NODISCARD bool catalogue_views_let_promote(const struct container *container, struct error *err);

/* Where one of two containers that are to be tied is followed, the other is from now on, by changes
 * of their own. ERROR_VIEW_BOUND. */
NODISCARD bool catalogue_views_join(struct catalogue *catalogue, const struct container *origin,
                                    const struct container *own, struct error *err);

/* The sources of a view that is to be made are followed from now on, each by a change of its own.
 * ERROR_VIEW_UNFIT. */
NODISCARD bool catalogue_view_follow(struct catalogue *catalogue, struct slice account,
                                     struct slice database, const struct definition *definition,
                                     struct error *err);

struct catalogue_found;
/* The definition of a view with the rids of its sources. *ret_followed false: one of them is not
 * followed, and nothing was made. ERROR_VIEW_UNFIT. */
NODISCARD bool catalogue_view_complete(const struct catalogue_found *found,
                                       struct definition *definition, struct arena *arena,
                                       struct definition **ret_definition, bool *ret_followed,
                                       struct error *err);

/* --- Finding (find.c) ------------------------------------------------------------------------ */

struct catalogue_found {
    struct account *account;
    struct database *database;
    struct container *container;
};

/* Frees the list of what is withheld. */
void catalogue_withheld_done(struct catalogue *catalogue);
struct catalogue_name; /* withheld.h */
/* Keeps what was to be told of a container until it is released. False: it is not withheld. */
bool catalogue_withheld_tell(struct catalogue *catalogue, const struct catalogue_name *name,
                             const struct history_record *record);

/* A container by its numbers, borrowed from root; NULL: it is not there. */
struct container *catalogue_find_container_number(struct catalogue_state *root, uint32_t account,
                                                  uint32_t database, uint32_t container);

/* Numbers of indexes that entries of policies before may still have. */
void catalogue_index_numbers(const struct container *container, bool ret_taken[INDEX_NUMBERS]);

/* Gives a container another definition: what items are indexed with otherwise is remade behind it.
 * ERROR_BUSY: before_max policies are being remade already. */
NODISCARD bool catalogue_container_redefine(struct catalogue_change *change,
                                            const struct catalogue_found *found,
                                            struct definition *definition, uint32_t before_max,
                                            struct container **ret_container, struct error *err);

/* No item is indexed by a policy before: those go. definition: the same with other states of its
 * indexes; NULL: it stays. sound: is called when nobody writes, and may refuse; NULL: there is
 * nothing to be seen. */
NODISCARD bool
catalogue_container_settle(struct catalogue_change *change, const struct catalogue_found *found,
                           struct definition *definition,
                           bool (*sound)(struct container *before, struct error *err),
                           struct error *err);

/* Borrowed from root. Names first, then rids. ERROR_NOT_FOUND for the last asked for, the
 * others ERROR_OWNER_NOT_FOUND. */
NODISCARD bool catalogue_find_account(struct catalogue_state *root, struct slice account,
                                      bool as_owner, struct catalogue_found *found,
                                      struct error *err);
NODISCARD bool catalogue_find_database(struct catalogue_state *root, struct slice account,
                                       struct slice database, bool as_owner,
                                       struct catalogue_found *found, struct error *err);
NODISCARD bool catalogue_find_container(struct catalogue_state *root, struct slice account,
                                        struct slice database, struct slice container,
                                        bool as_owner, struct catalogue_found *found,
                                        struct error *err);
NODISCARD bool catalogue_not_found(struct error *err, bool as_owner, const char *kind,
                                   struct slice name);
NODISCARD bool catalogue_name_taken(struct error *err, const char *kind, struct slice name);
NODISCARD bool catalogue_etag_check(struct slice etag, struct slice if_match, struct error *err);
NODISCARD bool catalogue_id_check(const struct definition_limits *limits, struct slice id,
                                  struct error *err);
NODISCARD bool catalogue_name_free(const struct catalogue_state *parent, const char *kind,
                                   struct slice id, struct error *err);
