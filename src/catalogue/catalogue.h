/* Catalogue: which accounts, databases and containers there are, and what was bought for them.
 *
 * It lives in partition 1 of the root node and whole in memory. What readers hold is an immutable
 * state of one account, database or container, shared by reference: opening one copies a pointer.
 * Every change is one durable commit and is then published as a new state; those who hold the old
 * one keep it until they let go.
 *
 * Accounts are isolated: every call names one, and nothing is found across. Dropping is done when
 * the call returns: the name is free and nothing below is found any more. The physical partitions
 * go in the background, after restarts too.
 *
 * Names are bytes in UTF-8. All functions may be called from any thread; those that change
 * something block. References must be let go before the catalogue is closed. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalogue/account_keys.h"
#include "cluster/cluster.h"
#include "cluster/node.h"
#include "definition/definition.h"
#include "definition/limits.h"
#include "definition/migration.h"
#include "definition/offer.h"
#include "definition/promotion.h"
#include "definition/rid.h"
#include "partition/history.h"
#include "partition/map.h"

struct catalogue; /* opaque, owned */

struct catalogue_options {
    struct cluster *cluster;                /* borrowed; has its nodes; outlives the catalogue */
    const struct definition_limits *limits; /* copied; NULL: the published ones */
    struct log *log;                        /* borrowed; NULL: silent */
    const struct node_info *nodes;          /* what the settings say of nodes, by name; borrowed */
    size_t node_count;
    /* Another server owns the nodes, whose engines are followers (cluster_follow): the catalogue is
     * read and never written. Nothing is made, dropped, purged, journalled or settled; what is made
     * elsewhere is seen with catalogue_follow. */
    bool follows;
    bool history;       /* changes of MongoDB's collections are told (partition/history.h) */
    bool purge_by_hand; /* no thread: the test calls catalogue_purge */

    /* Called for each physical partition of a dropped container once nobody holds a state of that
     * container any more, so that no operation on it runs or can begin. From any thread, under
     * locks of the catalogue, which must not be called. NULL: nobody wants to know. */
    void (*partition_gone)(void *context, uint32_t partition);
    void *gone_context;

    /* Other servers read by states of this catalogue. Before a commit that makes another state, and
     * before one of notes that requests are judged by, `recall` returns when none of them does so
     * any more; until `recalled`, behind the publishing, none begins to again. Both under locks of
     * the catalogue, which must not be called; recall blocks. NULL: there are none. */
    void (*recall)(void *context);
    void (*recalled)(void *context);
    void *recall_context;
};

/* Reads the catalogue, making an empty one on a new root. Partitions that no container owns, left
 * by a crash, are dropped. A node may be away, except the root; what it keeps is left alone until
 * it is here (catalogue_node_rejoin). ERROR_STORE_VERSION, ERROR_STORE_CORRUPT;
 * ERROR_CONFIGURATION: a node that holds partitions is missing. */
NODISCARD bool catalogue_open(const struct catalogue_options *options,
                              struct catalogue **ret_catalogue, struct error *err);
void catalogue_close(struct catalogue *catalogue); /* NULL is fine */
CLEANUP_FN(struct catalogue *, catalogue_close)

/* Of one that follows: reads everything as it is now, of one moment, and publishes it. */
NODISCARD bool catalogue_follow(struct catalogue *catalogue, struct error *err);
/* Has an operator paused anything, or are containers withheld (withheld.h), as of the last time it
 * was read? Then requests are to be judged by the owner. */
bool catalogue_is_reserved(const struct catalogue *catalogue);

const struct definition_limits *catalogue_limits(const struct catalogue *catalogue);
struct cluster *catalogue_cluster(const struct catalogue *catalogue);

/* What every record has. Borrowed from the state it was asked of. */
struct catalogue_info {
    struct slice id;   /* the user's name */
    uint32_t number;   /* never used again */
    struct slice rid;  /* text; an account's is its id */
    struct slice etag; /* with its quotes */
    uint64_t lsn;      /* of the commit that wrote it */
    int64_t ts_ms;
};

/* --- Accounts -------------------------------------------------------------------------------- */

struct account; /* opaque, shared, immutable */

/* The account of a server whose clients name none. The server makes it at its first start. */
#define CATALOGUE_ACCOUNT_DEFAULT "default"

/* properties: BSON of whatever the server keeps for it; kept as it is. The account has no keys: the
 * keys of the default account open it. ERROR_NAME_TAKEN, ERROR_LIMIT_REACHED, ERROR_BAD_REQUEST. */
NODISCARD bool catalogue_account_create(struct catalogue *catalogue, struct slice id,
                                        struct slice properties, struct account **ret_account,
                                        struct error *err);
/* The same with keys of its own, in one commit; they are copied. NULL: none. */
NODISCARD bool catalogue_account_create_keyed(struct catalogue *catalogue, struct slice id,
                                              struct slice properties,
                                              const struct account_keys *keys,
                                              struct account **ret_account, struct error *err);
/* Other properties; the keys stay. */
NODISCARD bool catalogue_account_replace(struct catalogue *catalogue, struct slice id,
                                         struct slice properties, struct account **ret_account,
                                         struct error *err);
/* Gives the account these keys in place of those it has, if any. */
NODISCARD bool catalogue_account_set_keys(struct catalogue *catalogue, struct slice id,
                                          const struct account_keys *keys,
                                          struct account **ret_account, struct error *err);
/* A new key in place of one of its four. ERROR_BAD_REQUEST: it has none of its own. */
NODISCARD bool catalogue_account_rotate(struct catalogue *catalogue, struct slice id,
                                        enum account_key which, struct account **ret_account,
                                        struct error *err);
NODISCARD bool catalogue_account_drop(struct catalogue *catalogue, struct slice id,
                                      struct error *err);
/* ERROR_NOT_FOUND. The caller owns one reference. */
NODISCARD bool catalogue_account_open(struct catalogue *catalogue, struct slice id,
                                      struct account **ret_account, struct error *err);
struct account *account_ref(struct account *account);
void account_unref(struct account *account); /* NULL is fine */
CLEANUP_FN(struct account *, account_unref)

/* All accounts by id, each with a reference the caller lets go; the array lives in the arena. */
struct account **catalogue_accounts(struct catalogue *catalogue, struct arena *arena,
                                    size_t *ret_count);

const struct catalogue_info *account_info(const struct account *account);
struct slice account_properties(const struct account *account);
const struct account_keys *account_keys(const struct account *account); /* NULL: none of its own */

/* --- Databases ------------------------------------------------------------------------------- */

struct database; /* opaque, shared, immutable */

/* request NULL or with nothing given: no shared throughput. if_match: an etag, or SLICE_NONE. */
NODISCARD bool catalogue_database_create(struct catalogue *catalogue, struct slice account,
                                         struct slice id, const struct offer_request *request,
                                         struct database **ret_database, struct error *err);
NODISCARD bool catalogue_database_drop(struct catalogue *catalogue, struct slice account,
                                       struct slice id, struct slice if_match, struct error *err);
/* ERROR_NOT_FOUND. By name, else by rid if the text is one. */
NODISCARD bool catalogue_database_open(struct catalogue *catalogue, struct slice account,
                                       struct slice id, struct database **ret_database,
                                       struct error *err);
struct database *database_ref(struct database *database);
void database_unref(struct database *database); /* NULL is fine */
CLEANUP_FN(struct database *, database_unref)

/* Databases of an account by id; borrowed while it is held. */
size_t account_database_count(const struct account *account);
struct database *account_database(const struct account *account, size_t index);

const struct catalogue_info *database_info(const struct database *database);
const struct offer *database_offer(const struct database *database); /* NULL: none */

/* --- Containers ------------------------------------------------------------------------------ */

struct container; /* opaque, shared, immutable: one state of one container */

/* body: BSON as a client sent it. Without a partition key it is a fixed container.
 * ERROR_NAME_TAKEN, ERROR_OWNER_NOT_FOUND, ERROR_LIMIT_REACHED, ERROR_BAD_REQUEST. */
NODISCARD bool catalogue_container_create(struct catalogue *catalogue, struct slice account,
                                          struct slice database, struct slice body,
                                          const struct offer_request *request,
                                          struct container **ret_container, struct error *err);

/* Replaces what may change: body names id and partition key as they are. A changed index policy,
 * or a default time to live switched on or off, takes effect for what is written from now on; what
 * is stored is remade in the background (caretaker.h). ERROR_BUSY: that is still under way for too
 * many earlier changes. */
NODISCARD bool catalogue_container_replace(struct catalogue *catalogue, struct slice account,
                                           struct slice database, struct slice id,
                                           struct slice body, struct slice if_match,
                                           struct container **ret_container, struct error *err);
/* Another name in the same database; number and rid stay. drop_target: a container that has the
 * name is dropped in the same commit; else ERROR_NAME_TAKEN. ERROR_BUSY: it is being migrated or
 * promoted, or its index remade, by its name. */
NODISCARD bool catalogue_container_rename(struct catalogue *catalogue, struct slice account,
                                          struct slice database, struct slice id,
                                          struct slice new_id, bool drop_target,
                                          struct container **ret_container, struct error *err);
/* Tells readers of changes (partition/history.h) what was done with a container that its definition
 * does not show, or that was done in several steps. payload: {o: description}, or none. */
NODISCARD bool catalogue_container_tell(struct catalogue *catalogue, struct slice account,
                                        struct slice database, struct slice id,
                                        enum history_kind kind, struct slice payload,
                                        struct error *err);
NODISCARD bool catalogue_container_drop(struct catalogue *catalogue, struct slice account,
                                        struct slice database, struct slice id,
                                        struct slice if_match, struct error *err);

/* ERROR_NOT_FOUND, ERROR_OWNER_NOT_FOUND. Names first, rids where the text is one. */
NODISCARD bool catalogue_container_open(struct catalogue *catalogue, struct slice account,
                                        struct slice database, struct slice id,
                                        struct container **ret_container, struct error *err);
struct container *container_ref(struct container *container);
void container_unref(struct container *container); /* NULL is fine */
CLEANUP_FN(struct container *, container_unref)

/* Containers of a database by id; borrowed while it is held. */
size_t database_container_count(const struct database *database);
struct container *database_container(const struct database *database, size_t index);

/* Everything below is borrowed while the container is held. */
const struct catalogue_info *container_info(const struct container *container);
struct definition *container_definition(const struct container *container);
struct partition_map *container_map(const struct container *container);
struct migration *container_migration(const struct container *container); /* NULL: none */
const struct promotion_list *container_promotions(const struct container *container);
/* Counts how often a promotion changed which items the container shows, and ties that were
 * forgotten; and what it was when the last was. */
uint64_t container_shown(const struct container *container);
uint64_t container_untied(const struct container *container);
/* Whose changes of items are told, and whether; names live as long as the state. */
struct history_origin container_history(const struct container *container);
uint32_t container_account_number(const struct container *container);
uint32_t container_database_number(const struct container *container);
struct rid container_rid(const struct container *container);
struct rid container_rid_below(const struct container *container, enum rid_kind kind,
                               uint64_t number); /* of an item and its kin */

/* The version of the index policy that items are written with, counted from 1. While entries of
 * older items are being remade, the definitions before it are kept too: the last of them is of
 * version container_policy_version - 1, and so on backwards. */
enum {
    CONTAINER_POLICIES_MAX = 9,
    CONTAINER_POLICIES_ASKED_MAX = 8, /* one more is for an index that fails (indexes.h) */
};
uint32_t container_policy_version(const struct container *container);
/* Counts the definitions that write otherwise than the one before (scope.h). */
uint32_t container_writers(const struct container *container);

/* Was the id of a physical partition ever given out, as far as this catalogue knows? */
bool catalogue_knows_partition(const struct catalogue *catalogue, uint64_t id);

/* When its map and definition were published, of clock_monotonic_ms; INT64_MAX: none has standbys
 */
int64_t container_since(const struct container *container);
size_t container_policies_before(const struct container *container,
                                 struct definition *const **ret_definitions);

/* Without a partition key: one physical partition for ever, and limits of its own. */
bool container_is_fixed(const struct container *container);
uint64_t container_bytes_max(const struct container *container); /* UINT64_MAX: none */

/* Its own offer, else the one its database shares; never NULL. */
const struct offer *container_offer(const struct container *container);
bool container_is_enforced(const struct container *container); /* offer_is_enforced */

const struct definition_limits *container_limits(const struct container *container);

/* The node of a range of the map: container_map's ranges say the number. */
struct engine *container_engine(const struct container *container, uint32_t node);
const char *container_node_name(const struct container *container, uint32_t node);
struct commit *container_commit(const struct container *container, uint32_t node);

/* --- Offers ---------------------------------------------------------------------------------- */

/* All offers of an account; values in the arena. */
NODISCARD bool catalogue_offers(struct catalogue *catalogue, struct slice account,
                                struct arena *arena, struct offer **ret_offers, size_t *ret_count,
                                struct error *err);
NODISCARD bool catalogue_offer_read(struct catalogue *catalogue, struct slice account,
                                    struct slice rid, struct offer *ret_offer, struct error *err);

enum catalogue_offer_migration { OFFER_KEEP, OFFER_TO_AUTOSCALE, OFFER_TO_MANUAL };

struct catalogue_offer_change {
    struct offer_request request; /* looked at with OFFER_KEEP */
    enum catalogue_offer_migration migration;
    uint64_t bytes;        /* what the resource stores now */
    struct slice if_match; /* SLICE_NONE: whatever it is */
};

NODISCARD bool catalogue_offer_replace(struct catalogue *catalogue, struct slice account,
                                       struct slice rid,
                                       const struct catalogue_offer_change *change,
                                       struct offer *ret_offer, struct error *err);

/* What replacing it may go down to. */
NODISCARD bool catalogue_offer_minimum(struct catalogue *catalogue, struct slice account,
                                       struct slice rid, uint64_t bytes, uint64_t *ret_ru,
                                       struct error *err);

/* --- Purging --------------------------------------------------------------------------------- */

/* Purges what was dropped until nothing is left. For tests, and for whoever must know. */
NODISCARD bool catalogue_purge(struct catalogue *catalogue, struct error *err);

/* Dropped things whose partitions are still to go. */
size_t catalogue_purges_left(struct catalogue *catalogue);
