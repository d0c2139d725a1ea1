/* Group commit: one committer per node makes the batches of all clients durable together.
 *
 * A client builds a batch from what it read: operations, the keys and ranges it relied on, and the
 * moment it read them at. The committer takes whatever has queued up, lets each batch pass unless
 * something it relied on was written since (first committer wins), numbers them, and writes all
 * that passed as one durable engine batch. Nobody is told of success before that.
 *
 *     uint64_t moment = commit_moment(commit);       before taking the snapshot
 *     ... engine_snapshot_new, reads ...
 *     batch.moment = moment;
 *     commit_submit(commit, &batch, &err);           done() is called, once, on another thread
 *
 * One thread does all that needs an order; submitting takes no lock. */
#pragma once

#include "base/bell.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "partition/commit_clock.h"
#include "partition/counters.h"
#include "partition/pledge.h"

struct commit; /* opaque, owned */

struct commit_options {
    struct engine *engine;      /* borrowed; outlives the committer */
    const struct clock *clock;  /* borrowed; NULL: the system's */
    struct commit_clock *times; /* shared with other committers, borrowed; NULL: batches have no
                                 * part for the history */
    struct log *log;            /* borrowed; NULL: silent */
    struct bell *bell;          /* rung when something was committed; borrowed; NULL: none */
    size_t queue_max;           /* batches waiting; above it ERROR_BUSY; 0: 65536 */
    size_t group_bytes_max;     /* of one engine batch; 0: 8 MB */
    size_t recent_keys_max;     /* remembered for validation; 0: 65536 */
    size_t counters_max;        /* kept in memory; 0: 65536 */
    bool validation_off;        /* for the test that shows that validation matters; never else */
};

struct commit *commit_new(const struct commit_options *options);

/* Finishes what is queued, then stops. NULL is fine. */
void commit_free(struct commit *commit);
CLEANUP_FN(struct commit *, commit_free)

/* What the committer decides for one part of a batch. */
struct commit_stamp {
    uint64_t lsn;          /* of the partition: 1, 2, 3, ... one per transaction */
    uint64_t first_number; /* of the item numbers asked for */
    int64_t wall_ms;       /* never decreasing in a partition */
    uint64_t time;         /* cluster time; of the part for the history alone (history.h) */
};

/* A sum to keep, in the same commit. */
struct commit_delta {
    struct slice key; /* begins with PARTITION_FAMILY_COUNTER */
    int64_t amounts[COUNTER_NUMBERS];
    int64_t first_max;    /* refuse if a growing amounts[0] would pass it; 0: no limit */
    enum error_code full; /* with this code; ERROR_NONE: ERROR_LOGICAL_PARTITION_FULL */
};

/* Where the numbering of a partition stands. */
struct commit_numbering {
    uint64_t lsn; /* of its last commit */
    int64_t wall_ms;
};

/* What a batch does to one partition. All memory is the client's and stays until done(). */
struct commit_part {
    uint32_t partition;
    uint64_t epoch;
    uint32_t writers; /* by which version of the definition it was made; 0: by none */

    /* The numbering goes on from here, wherever it stood: this part gets lsn + 1. With operations,
     * of a partition that nobody reads yet. NULL: it goes on from the last commit. */
    const struct commit_numbering *numbering;

    struct engine_op *ops; /* any order of keys; of two with one key the later counts */
    size_t op_count;
    struct slice *relied; /* keys whose last write must not be after the moment */
    size_t relied_count;
    struct engine_range *scanned; /* ranges of keys, likewise */
    size_t scanned_count;
    struct slice *touched; /* keys that others may rely on and this part writes */
    size_t touched_count;
    struct commit_delta *deltas;
    size_t delta_count;
    uint32_t number_count; /* item numbers wanted */

    struct commit_stamp stamp; /* out, before stamp() is called */
};

/* The moment of a batch that relied on nothing. */
#define COMMIT_NOTHING_RELIED_ON UINT64_MAX

/* A batch as a step of a transaction over several nodes (item/agreement.h). */
enum commit_step {
    COMMIT_CONFIRM, /* is what it relied on unchanged? Nothing is written */
    COMMIT_PROMISE, /* the same, and the keys are kept from now on; of the parts only the ops of the
                     * history are written, and sums are looked at and not changed */
    COMMIT_DECIDE,  /* at the home: the window is open until the others have been told */
    COMMIT_END, /* applies or undoes a promise: nothing is in its way, no limit holds for it, and
                 * the keys are let go with it */
};

struct commit_agreed {
    enum commit_step step;
    struct pledge_id id;
    struct pledge *pledge; /* of a promise; the committer's once the batch was queued */
    /* Of a decision that is durable, before anybody is told: on the committer's thread. */
    void (*decided)(void *context);
    void *context;
    bool admitted; /* the committer's */
    bool unknown;  /* out: it is not known whether the step was written */
};

struct commit_batch {
    struct commit_part *parts; /* each for another partition of this node; all or nothing */
    size_t part_count;
    uint64_t moment;

    /* Writes the stamps into keys and values of the ops. On the committer's thread: must be quick
     * and must not block. May be called again with other stamps before done(). NULL: nothing. */
    void (*stamp)(struct commit_batch *batch);

    /* err NULL: durable and visible. Else nothing of it was written, except ERROR_STORE_IO and
     * ERROR_WRITE_IN_DOUBT, after which only the node can tell, reopened or reached again. On the
     * committer's thread: must be quick. The batch is the client's again. */
    void (*done)(struct commit_batch *batch, const struct error *err);

    struct commit_agreed *agreed; /* borrowed; NULL: it is of one node */
    int64_t waits_since_ms;       /* the committer's: for a key that is kept; 0: it does not */
    uint64_t sequence;            /* out: place in the node's order of commits */
    struct commit_batch *next;    /* the committer's */
    struct error err;             /* the committer's: why it was refused */
};

/* The clock it was made with; NULL: none. */
struct commit_clock *commit_times(const struct commit *commit);

/* The keys that are kept for transactions over several nodes, and the windows of readers. */
struct pledges *commit_pledges(struct commit *commit);

/* Reads the promises that the node has kept, and keeps their keys. Once, or after it was away. */
NODISCARD bool commit_pledges_load(struct commit *commit, struct error *err);

/* Before a partition is fenced: it makes no promises for COMMIT_UNPLEDGED_MS, and those it has made
 * have been applied or undone when this returns. ERROR_PLEDGED: they have not in time. */
enum { COMMIT_UNPLEDGED_MS = 10000 };
NODISCARD bool commit_partition_unpledge(struct commit *commit, uint32_t partition,
                                         struct error *err);

/* The last commit that every read from now on will see. */
uint64_t commit_moment(const struct commit *commit);

/* Queues a batch. ERROR_BUSY: the queue is full; ERROR_TOO_LARGE: a key or value is over the
 * engine's limit; done() is not called then. */
NODISCARD bool commit_submit(struct commit *commit, struct commit_batch *batch, struct error *err);

/* Submits and waits. For threads that may block; done of the batch is taken by this call. */
NODISCARD bool commit_run(struct commit *commit, struct commit_batch *batch, struct error *err);

/* Makes the committer take batches for a partition under an epoch, reading where its numbering
 * stands. The engine must be at that epoch. Opening it again under a higher one replaces the old;
 * ERROR_FENCED: it is open under a higher one. ERROR_STORE_CORRUPT: its numbering is damaged.
 * Opening and closing wait for the group in flight if the partition is in it. */
NODISCARD bool commit_partition_open(struct commit *commit, uint32_t partition, uint64_t epoch,
                                     struct error *err);
void commit_partition_close(struct commit *commit, uint32_t partition);

/* Of a store that has lost what was acknowledged, before the partition is opened: LSNs and item
 * numbers go on above whatever was given out, so that none is given twice. */
NODISCARD bool commit_partition_renumber(struct engine *engine, uint32_t partition, uint64_t epoch,
                                         struct error *err);

/* Is it open, under this epoch or a higher one? */
bool commit_partition_is_open(struct commit *commit, uint32_t partition, uint64_t epoch);

/* The key that a partition's numbering is kept under, and the LSN in what is stored there. False:
 * it is damaged. */
struct slice commit_meta_key(void);
NODISCARD bool commit_meta_lsn(struct slice stored, uint64_t *ret_lsn);

/* The last durable LSN of an open partition. ERROR_PARTITION_UNKNOWN. */
NODISCARD bool commit_partition_lsn(struct commit *commit, uint32_t partition, uint64_t *ret_lsn,
                                    struct error *err);

/* The same with its time. ERROR_PARTITION_UNKNOWN. */
NODISCARD bool commit_partition_numbering(struct commit *commit, uint32_t partition,
                                          struct commit_numbering *ret_numbering,
                                          struct error *err);

/* A number that no item of the partition is below, as whoever bounds it has found out and noted:
 * what was removed before it need not be passed over again. 0: nothing is known. */
uint64_t commit_partition_oldest(struct commit *commit, uint32_t partition);
void commit_partition_note_oldest(struct commit *commit, uint32_t partition, uint64_t number);

/* Keeps a journal of a partition from now on, or no longer: with every group, in the same engine
 * batch, the keys that it touches (journal.h). Waits for the group in flight, so that on return
 * every later commit is in the journal. Opening the partition again changes nothing about it; a new
 * committer keeps none. ERROR_PARTITION_UNKNOWN. */
NODISCARD bool commit_partition_tap(struct commit *commit, uint32_t partition, bool on,
                                    struct error *err);

/* Refuses with ERROR_FENCED, from now on, parts made by an older version of the definition than
 * this: who still holds one would leave out entries that others rely on. Waits for the group in
 * flight, so that on return every commit by an older version is visible. ERROR_PARTITION_UNKNOWN.
 */
NODISCARD bool commit_partition_require(struct commit *commit, uint32_t partition, uint32_t writers,
                                        struct error *err);

/* Lets batches for a partition wait for so long, at most COMMIT_HOLD_MS_MAX: back pressure while
 * somebody catches up with its journal. They stay queued in their
 * order and count for queue_max; those for other partitions pass them by. 0, or a partition opened
 * at another epoch: they go on. ERROR_PARTITION_UNKNOWN. */
enum { COMMIT_HOLD_MS_MAX = 1000 };
NODISCARD bool commit_partition_hold(struct commit *commit, uint32_t partition, int64_t ms,
                                     struct error *err);

struct commit_statistics {
    uint64_t batches, groups;    /* made durable */
    uint64_t conflicts, too_old; /* refused */
    uint64_t queued;             /* waiting now */
    bool poisoned;
};

struct commit_statistics commit_statistics(const struct commit *commit);
