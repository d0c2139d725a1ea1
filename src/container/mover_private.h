/* The mover from within: mover.c makes it and copies, mover_catch_up.c follows the journals,
 * mover_finish.c is what happens behind the fence. */
#pragma once

#include "container/mover.h"
#include "partition/counters.h"
#include "partition/journal.h"

struct mover_source {
    struct migration_source plan;
    struct slice min, max; /* its routing keys; in the map */
    const struct cluster_node *node;
    struct buf position; /* the last key copied */
    bool copied;
    struct journal_position journal;
    struct commit_numbering numbering; /* behind the fence */
};

struct mover_target {
    const struct partition_span *span;
    const struct cluster_node *node;
    struct engine_op *ops; /* in the mover's arena */
    size_t op_count, op_capacity;
    int64_t sums[COUNTER_NUMBERS]; /* of all its logical partitions, once summed */
};

struct mover {
    struct migration *migration;
    struct partition_map *map; /* of the sources */
    size_t chunk_bytes, round_keys;
    struct arena *arena;  /* of the chunk or round at hand */
    struct arena *values; /* of what was looked up and is not yet written */
    struct mover_source *sources;
    size_t source_count;
    struct mover_target *targets;
    size_t target_count;
    bool summed;
    bool fenced; /* when it was made */
    struct mover_figures figures;
};

/* Is it one of the marks of the feed, which are not copied but made? */
bool mover_is_mark(struct slice key);

/* Bytes that begin with the routing key of an entry, or are it; none: only the value can tell, and
 * it is gone. */
NODISCARD bool mover_routing(struct slice key, const struct engine_value *value,
                             struct slice *ret_routing, struct error *err);
NODISCARD bool mover_target_find(struct mover *mover, struct slice routing,
                                 struct mover_target **ret_target, struct error *err);

/* Forgets what was gathered, and begins anew. */
void mover_gather(struct mover *mover);
void mover_op_add(struct mover *mover, struct mover_target *target, struct engine_op op);

/* Writes what was gathered, one commit for each node; that of the first target comes last, for it
 * may have the progress with it. */
NODISCARD bool mover_targets_write(struct mover *mover, struct error *err);

/* Adds the mark of what was trimmed to what is gathered for a target, behind the fence. */
NODISCARD bool mover_trimmed_add(struct mover *mover, struct mover_target *target,
                                 struct error *err);

struct slice mover_progress_key(const struct mover *mover, const struct mover_source *source);
void mover_progress_add(struct mover *mover, const struct mover_source *source);
