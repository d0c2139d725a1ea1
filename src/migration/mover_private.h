/* The mover from within: mover.c makes it and copies, mover_catch_up.c follows the journals,
 * mover_load.c writes much of what was copied at once, mover_finish.c is what happens behind the
 * fence, mover_reroute.c rewrites entries. */
#pragma once

#include "item/contribution.h"
#include "item/write_record.h"
#include "migration/mover.h"
#include "partition/counters.h"
#include "partition/journal.h"

struct mover_source {
    struct migration_source plan;
    struct slice min, max; /* its routing keys; in the map */
    const struct cluster_node *node;
    struct buf position; /* the last key copied */
    bool copied;
    bool unbroken; /* copied by this mover from its first key: nothing is in the targets from behind
                      position */
    bool begun;    /* and said so */
    struct journal_position journal;
    struct commit_numbering numbering; /* behind the fence */
};

struct mover_target {
    const struct partition_span *span;
    const struct cluster_node *node;
    struct engine_op *ops; /* in the mover's arena */
    size_t op_count, op_capacity;
    int64_t sums[COUNTER_NUMBERS]; /* of all its logical partitions, once summed */
    bool receives;                 /* keys that were placed elsewhere before */
    bool ends;                     /* what is gathered is its last, and has this numbering */
    struct commit_numbering numbering;

    /* Of a rekey. */
    struct item_scope scope;
    struct commit_delta *deltas; /* in the mover's arena, like ops */
    size_t delta_count, delta_capacity;
};

/* An item that cannot be carried. */
struct mover_conflict {
    uint64_t number;
    uint32_t source; /* id */
};

enum { MOVER_CONFLICTS_MAX = 1000 };

struct mover {
    struct migration *migration;
    struct definition *definition;           /* of the container */
    const struct partition_definition *from; /* how entries are placed in the sources, */
    const struct partition_definition *to;   /* and in the targets; NULL: the same */
    struct partition_map *map;               /* of the sources */
    size_t chunk_bytes, load_bytes, round_keys;
    size_t gathered;      /* bytes copied and not yet written */
    size_t unfollowed;    /* bytes written since the journals were last followed */
    unsigned following;   /* rounds that are left of following them while copying; 0: copy */
    struct arena *arena;  /* of the chunk or round at hand */
    struct arena *values; /* of what was looked up and is not yet written */
    struct mover_source *sources;
    size_t source_count;
    struct mover_target *targets;
    size_t target_count;
    bool summed;
    bool parted;              /* bounds of its map lie within keys */
    bool fenced;              /* when it was made */
    int64_t resting_since_ms; /* 0: it is not */
    struct mover_figures figures;

    /* Of a rekey (mover_rekey.c). */
    bool rekeys;
    struct item_space space;          /* of the container now */
    struct definition *placed;        /* the container as it will be */
    struct mover_conflict *conflicts; /* by number; as the first target has them */
    size_t conflict_count;
    uint64_t logical_full;
    uint64_t *taken; /* hashes of keys that were written and are not yet to be read */
    size_t taken_count;
    bool loads;       /* what is gathered may be loaded: it is being copied, where nodes can */
    bool sums_cached; /* the committers may have sums of the targets in memory */
};

/* Is it one of the marks of the feed, which are not copied but made? */
bool mover_is_mark(struct slice key);

/* Bytes that begin with the routing key of an entry, or are it; none: only the value can tell, and
 * it is gone. */
NODISCARD bool mover_routing(struct mover *mover, struct slice key,
                             const struct engine_value *value, struct slice *ret_routing,
                             struct error *err);
NODISCARD bool mover_target_find(struct mover *mover, struct slice routing,
                                 struct mover_target **ret_target, struct error *err);

/* An entry as the targets are to have it. What is in it is borrowed from the entry, or in the arena
 * of the mover. */
struct mover_entry {
    struct slice key;
    struct slice value;   /* of one that is there */
    struct slice routing; /* bytes that begin with its routing key; none: only the value could tell,
                             and it is gone */
    struct slice other;   /* another key it may have had; none: it has always this one */
};

/* Rewrites an entry for mover->to. value: as the source has it, or not found. */
NODISCARD bool mover_reroute(struct mover *mover, struct slice key,
                             const struct engine_value *value, struct mover_entry *ret_entry,
                             struct error *err);

/* Finds out which targets receive keys; and, of a migration without targets, behind the fence,
 * whether any of its keys has data after all. */
void mover_reroute_receivers(struct mover *mover);
NODISCARD bool mover_reroute_check(struct mover *mover, struct error *err);

/* --- Re-keys: mover_rekey.c has the order of things, mover_rekey_item.c one item ------------- */

NODISCARD bool mover_rekey_init(struct mover *mover, const struct item_space *space,
                                struct error *err);
void mover_rekey_done(struct mover *mover);
NODISCARD bool mover_rekey_copy(struct mover *mover, struct mover_source *source,
                                struct error *err);
NODISCARD bool mover_rekey_keys(struct mover *mover, struct mover_source *source,
                                struct engine_snapshot *snapshot, const struct slice *keys,
                                size_t count, struct error *err);
/* Tries those again that could not be carried. */
NODISCARD bool mover_rekey_again(struct mover *mover, struct mover_source *source,
                                 struct engine_snapshot *snapshot, struct error *err);

enum mover_obstacle {
    MOVER_FINE,
    MOVER_KEY_INVALID, /* it is too long, an object, or contradicts what it is made of */
    MOVER_KEY_MISSING,
    MOVER_KEY_TAKEN,    /* another item has the new key and the id */
    MOVER_UNIQUE_TAKEN, /* another item there has the unique key */
};
const char *mover_obstacle_name(enum mover_obstacle obstacle);

/* An item as the targets are to have it. */
struct mover_rekeyed {
    struct partition_key key;
    struct slice item_key, document;
    enum mover_obstacle obstacle;
    char why[ERROR_MESSAGE_SIZE]; /* of a key that is invalid */
};

/* Makes the new key of an item, and whatever of it the server makes. In the arena. */
NODISCARD bool mover_rekey_item(const struct partition_definition *from,
                                const struct partition_definition *to, bool allows_missing,
                                const struct partition_key_limits *limits, const struct item *item,
                                struct arena *arena, struct mover_rekeyed *ret_rekeyed,
                                struct error *err);

/* Forgets what was gathered, and begins anew. */
void mover_gather(struct mover *mover);
void mover_op_add(struct mover *mover, struct mover_target *target, struct engine_op op);

/* Writes what was gathered for targets whose nodes can take much at once, beside their commits. */
NODISCARD bool mover_targets_load(struct mover *mover, struct error *err);
/* Lets committers read the sums of the targets anew, before some are loaded. */
NODISCARD bool mover_counters_reread(struct mover *mover, struct error *err);
/* Can the nodes of all targets? */
bool mover_targets_can_load(const struct mover *mover);

/* Writes what was gathered, one commit for each node; that of the first target comes last, for it
 * may have the progress with it. */
NODISCARD bool mover_targets_write(struct mover *mover, struct error *err);

/* Adds the mark of what was trimmed to what is gathered for a target, behind the fence. */
NODISCARD bool mover_trimmed_add(struct mover *mover, struct mover_target *target, uint64_t lsn,
                                 struct error *err);

struct slice mover_progress_key(const struct mover *mover, const struct mover_source *source);
void mover_progress_add(struct mover *mover, const struct mover_source *source);

/* One round over the journals while copying: only keys that were copied, for the others are to come
 * as they are then. *ret_keys: looked at. Nothing may be gathered. */
NODISCARD bool mover_follow(struct mover *mover, size_t *ret_keys, struct error *err);
