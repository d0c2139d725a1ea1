/* Reading: how one request reads the items of a container, and from where.
 *
 * A level says what a read may show. Everything is proved in the snapshot that is read (see
 * engine/reader.h); what cannot be proved of a standby the primary answers, which is as strong as
 * Strong. A node without standbys always does.
 *
 *     Strong            the primary
 *     BoundedStaleness  no older than so many ms, and no more than so many commits of the physical
 *                       partition behind what is acknowledged
 *     Session           has every write that the request's tokens name; without any, the primary
 *     ConsistentPrefix  what was acknowledged up to some commit, and nothing else
 *     Eventual          the same: a standby has no other states to show
 *
 * At every level what a standby shows is of the present primary, of the epoch of the map, younger
 * than the container's definition and map, and acknowledged: a failover cannot take it away again.
 *
 * A server that does not own the nodes (follows) has no committer, and reads the primary beside the
 * one that does. It proves the epoch of the map and the tokens; everything else a primary shows is
 * acknowledged. What it cannot prove is ERROR_UNPROVED. Strong and BoundedStaleness it does not
 * read: what the owner has acknowledged a moment ago on another primary it cannot know.
 *
 * Not for transactions, nor for what a write reads: those spaces have no reading. */
#pragma once

#include "engine/reader.h"
#include "item/items.h"

enum item_level {
    ITEM_STRONG,
    ITEM_BOUNDED,
    ITEM_SESSION,
    ITEM_PREFIX,
    ITEM_EVENTUAL,
};
const char *item_level_name(enum item_level level); /* "BoundedStaleness" */

/* A write that must be seen: of a physical partition, or of one it came from. */
struct item_token {
    uint64_t partition, lsn;
};

struct item_reading_options {
    enum item_level level;
    int64_t staleness_ms;            /* of BoundedStaleness */
    uint64_t staleness_lsns;         /* the same */
    const struct item_token *tokens; /* borrowed; honoured at every level */
    size_t token_count;
    bool follows; /* another server owns the nodes; the level is Session or weaker */
    bool trusted; /* for tests of checkers alone: nothing is proved */
};

struct item_reading; /* opaque; one request's */

/* From now on the space reads so, until its reading is freed, which is after all that was opened
 * through it. The space, what it borrows and the tokens must outlive it; copies of it read the
 * same. NULL: it reads from the primaries, since the level says so or no node has standbys. */
struct item_reading *item_reading_begin(struct item_space *space,
                                        const struct item_reading_options *options);
void item_reading_end(struct item_reading *reading); /* NULL is fine */
CLEANUP_FN(struct item_reading *, item_reading_end)

/* What is read of a span: its node, or a reader before it. For item_space. */
struct engine *item_reading_engine(struct item_reading *reading, struct engine *engine);

/* Where a partition was read from last. False: from its primary by the one who owns it, or not at
 * all. */
struct item_served {
    uint32_t standby; /* its number, from 1; 0: the primary, beside the owner */
    enum item_level level;
    int64_t age_ms; /* at most */
    uint64_t lsn;   /* of the snapshot */
};
NODISCARD bool item_reading_served(struct item_reading *reading, uint32_t partition,
                                   struct item_served *ret_served);
