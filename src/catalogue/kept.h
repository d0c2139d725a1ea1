/* Kept: the catalogue as a snapshot of the root node has it, read without opening it, and entries
 * of it made fit for other stores. For whoever copies or checks all nodes: what is published may be
 * ahead of the snapshot, and a stopped node has nothing published.
 *
 * Holding the catalogue keeps everything that a snapshot of now sees: nothing that is dropped
 * meanwhile is purged, and no source of a migration goes. */
#pragma once

#include "catalogue/catalogue.h"
#include "catalogue/child.h"

/* --- Holding --------------------------------------------------------------------------------- */

struct catalogue_hold; /* opaque, owned; to be let go before the catalogue is closed */

/* Calls take while no change of the catalogue is under way, and holds what there is at that moment.
 */
NODISCARD bool catalogue_hold_new(struct catalogue *catalogue,
                                  bool (*take)(void *context, struct error *err), void *context,
                                  struct catalogue_hold **ret_hold, struct error *err);
void catalogue_hold_free(struct catalogue_hold *hold); /* NULL is fine */
CLEANUP_FN(struct catalogue_hold *, catalogue_hold_free)

/* --- Reading --------------------------------------------------------------------------------- */

/* Where the catalogue lives on the root. */
enum { CATALOGUE_KEPT_PARTITION = 1 };

struct catalogue_kept_container {
    struct slice account, database; /* names */
    /* Belongs to no catalogue: definition, map, policies, promotions and info may be asked for. */
    struct container *container;
    bool has_offer; /* of its own */
    struct offer offer;
};

struct catalogue_kept_database {
    struct slice account, id;
    bool has_offer;
    struct offer offer;
};

/* A user, permission, encryption key or script. */
struct catalogue_kept_child {
    struct slice account, database, container; /* names; container empty: of the database */
    struct slice user;                         /* of a permission: whose */
    enum child_kind kind;
    struct slice body; /* BSON */
};

/* A record that cannot be read, or that nothing owns. */
struct catalogue_kept_damage {
    struct slice key; /* of the record */
    struct slice message;
};

/* Lists are in the arena it was read into. What was dropped is in none of them. */
struct catalogue_kept {
    struct slice *accounts; /* names */
    size_t account_count;
    struct catalogue_kept_database *databases;
    size_t database_count;
    struct catalogue_kept_container *containers;
    size_t container_count;
    struct catalogue_kept_child *children;
    size_t child_count;
    struct catalogue_kept_damage *damages;
    size_t damage_count;
    uint32_t *owned; /* physical partitions that a record has, dropped or not, or a migration */
    size_t owned_count;
};

/* An entry of the catalogue's partition, from wherever it comes. *ret_found false: that was the
 * last. Borrowed until the next call. */
struct catalogue_kept_source {
    bool (*next)(void *context, struct slice *ret_key, struct slice *ret_value, bool *ret_found,
                 struct error *err);
    void *context;
};

/* Reads all entries in their order. Damage is noted, not an error. */
NODISCARD bool catalogue_kept_read(const struct catalogue_kept_source *source, struct arena *arena,
                                   struct catalogue_kept *ret_kept, struct error *err);

/* The same of a store. */
NODISCARD bool catalogue_kept_read_store(struct engine *root, struct engine_snapshot *snapshot,
                                         struct arena *arena, struct catalogue_kept *ret_kept,
                                         struct error *err);
void catalogue_kept_done(struct catalogue_kept *kept); /* lets go of the containers */
CLEANUP_VALUE_FN(struct catalogue_kept, catalogue_kept_done)

/* --- Other stores ---------------------------------------------------------------------------- */

/* What stands in the place of a node. */
struct catalogue_kept_node {
    uint32_t number;
    const char *id;  /* engine_node_id of its new store */
    const char *url; /* of it; kept if the node was added to a running server */
};

/* The value an entry of the catalogue's partition has on other stores, in the arena: nodes have
 * their new ids, and no migration is under way. ERROR_STORE_CORRUPT. */
NODISCARD bool catalogue_kept_moved(struct slice key, struct slice value,
                                    const struct catalogue_kept_node *nodes, size_t count,
                                    struct arena *arena, struct slice *ret_value,
                                    struct error *err);
