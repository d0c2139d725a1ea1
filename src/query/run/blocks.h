/* Blocks: entries of indexes of vectors as searches have walked them, kept in memory, one behind
 * the other.
 *
 * A block has all entries of one index in one physical partition at one LSN of it. As long as the
 * partition stands there the next search goes through the block, at the speed of memory; any commit
 * makes it useless, and the next walk makes another. So nothing has to be told of writes, splits or
 * failovers, and nothing is kept over a restart. Bounded in bytes; the one that was used longest
 * ago goes first. For any number of threads. */
#pragma once

#include "item/cursor.h"

struct query_blocks; /* opaque, owned by whoever runs queries */
struct query_block;  /* opaque, counted; never changes once it is put */

struct query_blocks *query_blocks_new(size_t bytes_max);
void query_blocks_free(struct query_blocks *blocks); /* NULL is fine; no block is in use */
CLEANUP_FN(struct query_blocks *, query_blocks_free)

/* What a block is of. */
struct query_block_key {
    uint32_t node, partition;
    uint64_t epoch, lsn;
    struct slice prefix; /* of the entries */
};

/* The block of it, for query_block_unref; NULL: there is none. */
struct query_block *query_blocks_find(struct query_blocks *blocks,
                                      const struct query_block_key *key);
void query_block_unref(struct query_block *block); /* NULL is fine */

/* Begins one. NULL: none are kept. */
struct query_block *query_block_begin(struct query_blocks *blocks,
                                      const struct query_block_key *key);

/* Adds the next entry; all have values of one length. False: there is no room for it, and the block
 * comes to nothing: unref it. */
NODISCARD bool query_block_add(struct query_block *block, const struct cursor_hit *hit);

/* The block is whole: others may find it. The caller still has its reference. */
void query_blocks_put(struct query_blocks *blocks, struct query_block *block);

/* The entry at a place, with value, number and key, good as long as the block. False: the end. */
bool query_block_at(const struct query_block *block, size_t place, struct cursor_hit *ret_hit);

/* Bytes of all, those in the making included. */
size_t query_blocks_bytes(struct query_blocks *blocks);
