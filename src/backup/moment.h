/* Moment: all nodes as they were at once, each by a snapshot, with the catalogue that fits them.
 *
 * Of a running server it is taken while no change of the catalogue is under way, and nothing it
 * sees is dropped while it is held (catalogue/kept.h). A transaction is one batch of one node: a
 * moment has it whole or not at all. One thread at a time uses it. */
#pragma once

#include "backup/chunk.h"
#include "catalogue/kept.h"

struct backup_node {
    uint32_t number;
    const char *name;
    const char *id; /* engine_node_id */
    struct engine *engine;
    struct commit *commit; /* NULL: nobody writes it */
    struct engine_snapshot *snapshot;
    struct engine_partition *partitions; /* by id */
    size_t partition_count;
};

/* One that belongs to the catalogue, a container, or the history of its node. */
struct backup_partition {
    const struct backup_node *node;
    uint32_t id;
    uint64_t epoch;
    struct slice numbering; /* as group commit keeps it: another with every commit */
    const struct catalogue_kept_container *container; /* NULL: of none */
    const struct partition_span *span;                /* of its map; NULL: of none */
};

struct backup_moment {
    struct arena *arena; /* owned: everything in it */
    struct catalogue_hold *hold;
    int64_t wall_ms;
    struct slice cluster_id;
    struct backup_node *nodes; /* the root first */
    size_t node_count;
    struct backup_partition *partitions;
    size_t partition_count;
    struct catalogue_kept kept;
    bool has_catalogue;
    int64_t kept_until_ms; /* monotonic */
};

/* ERROR_NODE_DOWN, ERROR_NODE_PAUSED: all nodes are needed. */
NODISCARD bool backup_moment_take(struct catalogue *catalogue, struct backup_moment **ret_moment,
                                  struct error *err);

/* Of stores that nobody else has open. The one with the catalogue is first, if it is there. */
NODISCARD bool backup_moment_of(struct engine *const *engines, const char *const *names,
                                size_t count, struct backup_moment **ret_moment, struct error *err);
void backup_moment_free(struct backup_moment *moment); /* NULL is fine */
CLEANUP_FN(struct backup_moment *, backup_moment_free)

/* It will be used again within so long. */
NODISCARD bool backup_moment_keep(struct backup_moment *moment, int64_t ms, struct error *err);

/* NULL: there is none. */
const struct backup_partition *backup_moment_find(const struct backup_moment *moment, uint32_t node,
                                                  uint32_t partition);

/* Which partitions a container has that their node has not; the number of them is given back. */
size_t backup_moment_missing(const struct backup_moment *moment,
                             void (*tell)(void *context, const struct catalogue_kept_container *of,
                                          const struct partition_span *span),
                             void *context);

/* --- Pages ----------------------------------------------------------------------------------- */

/* A page is a row of frames, numbers big-endian:
 *
 *     1   kind
 *     4   length of the chunk
 *     32  its digest
 *     2   length of the key of its last entry, then that key
 *     ..  the chunk, if its kind is BACKUP_FRAME_NEW
 *
 * and ends in one byte: BACKUP_FRAME_END, or BACKUP_FRAME_MORE: ask for what is behind that key. */
enum {
    BACKUP_FRAME_NEW = 'N',
    BACKUP_FRAME_KNOWN = 'K',
    BACKUP_FRAME_END = 'E',
    BACKUP_FRAME_MORE = 'M',
    BACKUP_FRAME_HEAD = 1 + 4 + BACKUP_DIGEST_LEN + 2,
    BACKUP_KNOWN_MAX = 4096, /* digests asked about at once */
};

/* Appends the page of a partition behind the key after (empty: from its first). known: digests of
 * chunks that whoever asks has, one behind the other, in the order they are expected. */
NODISCARD bool backup_page(const struct backup_partition *partition, struct slice after,
                           struct slice known, struct buf *out, struct error *err);
