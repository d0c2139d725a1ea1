/* Group commit from within: commit.c has the queue and the thread, commit_still.c its pauses,
 * numbering.c the partitions,
 * group.c the making of one group. */
#pragma once

#include "base/thread.h"
#include "partition/commit.h"
#include "partition/recent.h"

#include <stdatomic.h>

enum { COMMIT_META_LEN = 33 };

/* Where the numbering of a partition stands. */
struct commit_numbers {
    uint64_t lsn;
    int64_t wall_ms;
    uint64_t source, counter;
};

struct partition {
    uint32_t id;
    uint64_t epoch;
    struct commit_numbers durable;
    struct commit_numbers now; /* including the group being made */
    bool in_group;
    bool closing;               /* open or close waits: no more batches */
    bool tapped;                /* a journal is kept */
    uint32_t writers;           /* parts of an older version are refused */
    int64_t held_until_ms;      /* its batches wait till then */
    int64_t unpledged_until_ms; /* it makes no promises till then */
    uint64_t oldest;            /* under durable_lock: no item has a number below it */
    uint8_t meta[COMMIT_META_LEN];
    struct partition *next_in_group;
};

/* One operation on its way into the engine: sorted by partition, key, and age: the
 * place among all operations of the group. */
struct commit_placed_op {
    uint64_t key_head, key_next; /* the first 16 bytes of the key: most comparisons need no more */
    uint32_t partition;
    uint32_t age;
    const struct engine_op *op;
};

struct commit {
    struct engine *engine;
    const struct clock *clock;
    struct commit_clock *times; /* NULL: none */
    unsigned member;            /* of it */
    bool timed;                 /* the group has parts for the history: begun, and not ended yet */
    struct log *log;
    struct bell *bell; /* NULL: none */
    size_t queue_max, group_bytes_max;
    bool validation_off;

    /* The queue: pushed by any thread, newest first; taken whole by the committer. */
    _Atomic(struct commit_batch *) queue;
    atomic_size_t queued;
    struct mutex sleep_lock;
    struct condition wake;
    atomic_bool stopping;
    struct thread thread;

    /* Held while a group is admitted and assembled, not while it is written. */
    struct mutex partitions_lock;
    struct condition group_left; /* the partitions of a group are free again */

    /* Which partitions there are and where they durably stand changes under both locks, so that
     * looking takes this one alone: the other is held while a group reads from the engine, which
     * may be slow, and event loops look. Taken after partitions_lock, for a moment. */
    struct mutex durable_lock;
    struct partition **partitions; /* sorted by id */
    size_t partition_count, partition_capacity;
    uint64_t groups_left; /* under partitions_lock: how often a group has left */

    /* Who keeps it still (commit_still.c), and whether a group is made or wants to be. */
    struct mutex still_lock;
    struct condition still_changed;
    unsigned still;
    bool busy, wanting;
    uint64_t groups_begun;
    struct commit_keeper *keepers; /* who wait */
    int64_t rests_until_ms;        /* nobody keeps it still before */

    struct pledges pledges; /* with a lock of its own, taken after all others */

    /* The committer's own; counters also under partitions_lock, for open and close. */
    struct recent *recent;
    struct counters *counters;
    uint64_t sequence;
    struct arena *arena;             /* of the group being made */
    struct commit_placed_op *placed; /* twice the capacity, for sorting; reused by all groups */
    size_t placed_capacity;
    struct partition *in_group;
    struct commit_batch *held, **held_end; /* waiting for their partitions, oldest first */

    int64_t hold_until_ms; /* under partitions_lock: of all partitions the latest */
    atomic_uint_fast64_t moment;
    atomic_bool poisoned;
    atomic_uint_fast64_t batches, groups, conflicts, too_old;
};

/* numbering.c: all under partitions_lock. */
struct partition *commit_partition_find(const struct commit *commit, uint32_t id);
void commit_meta_encode(struct partition *partition);
/* Reads again where the numbering of every partition stands. */
NODISCARD bool commit_partitions_reload(struct commit *commit, struct error *err);

/* commit_still.c: a group begins, once nobody keeps the committer still, and is visible. */
void commit_busy_begin(struct commit *commit);
void commit_busy_end(struct commit *commit);

/* group.c: makes one group from the front of *queue. */
void commit_group_run(struct commit *commit, struct commit_batch **queue);

/* Looks whether the engine knows by now what became of a write of unknown outcome. Nobody may write
 * to the node for long, and all who follow changes of the cluster wait for that. */
void commit_recover(struct commit *commit);
