/* Reader: a node as one request reads it, from a standby where that is enough, else from its
 * primary.
 *
 * It is an engine, so that whoever reads need not know which it is. A standby may lag for any time,
 * belong to another primary by now, or have what was never acknowledged. So nothing it says is
 * taken on trust: with the first look at a partition a proof is read in the very snapshot that the
 * data comes from (the epoch of the partition, the number of the last beat, the value of its
 * numbering), and whoever made the reader judges whether that will do for what is asked. If it will
 * not, or the standby does not answer, the primary is asked instead. The caller notices nothing of
 * that but the time it takes.
 *
 * All that is read of one partition in one snapshot is from one place. Different partitions may be
 * read from different ones: of a node's partitions together a standby proves nothing.
 *
 * A standby that fails when something of the partition was read already cannot be replaced, since
 * the two would be of different moments: ERROR_STANDBY_LOST, and the reader goes to the primary
 * from then on, so that the same page can be read again.
 *
 * Where another server owns the node (alone) there is nobody to fall back to: the primary itself is
 * read by the same proofs, and what they do not hold of is ERROR_UNPROVED.
 *
 * Nothing is written through a reader, and transactions do not read through it:
 * engine_reader_behind gives the engine they work with. */
#pragma once

#include "engine/standbys.h"

/* What was read with the data, and when the beat in it was sent (monotonic ms). */
struct engine_seen {
    uint32_t partition;
    uint64_t epoch;
    struct slice meta; /* data NULL: none */
    int64_t sent_ms;
};

/* Will it do? False: why not. Called by every thread that reads. */
typedef bool engine_judge(void *context, const struct engine_seen *seen,
                          enum engine_fallback *ret_why);

/* A partition is read from here from now on: the standby of this number, from 1; 0: the primary;
 * ENGINE_READER_ALONE: the primary that another server owns. */
enum { ENGINE_READER_ALONE = 1 << 16 };
typedef void engine_tell(void *context, uint32_t partition, uint32_t standby,
                         const struct engine_seen *seen);

struct engine_reader_options {
    struct engine *primary; /* with standbys (engine_standbys_of); borrowed, as all of these */
    bool alone;             /* it was opened as a follower, and has none */
    bool trusted;           /* for tests of checkers alone: what it shows is taken without proofs */
    struct slice meta;      /* the key whose value is read with the proof */
    engine_judge *judge;
    engine_tell *tell;
    void *context;
};

/* For one request; to be closed with engine_close when its snapshots are gone. */
struct engine *engine_reader_new(const struct engine_reader_options *options);

/* The engine that is written to: the primary's of a reader, else itself. */
struct engine *engine_reader_behind(struct engine *engine);

/* Did a page fail only because a standby was lost in the middle? It may be read again at once. */
static inline bool engine_reader_may_repeat(const struct error *err)
{
    return err->code == ERROR_STANDBY_LOST;
}
