/* Blocks: entries of indexes of vectors as searches have walked them, kept in memory, one behind
 * the other.
 *
 * A block has all entries of one index in one physical partition at one LSN of it. Together with
 * what was written since (changes.h) it serves searches of later LSNs, at the speed of memory,
 * until that is too much; then the next walk makes another. So nothing has to be told of writes,
 * splits or failovers, and nothing is kept over a restart.
 *
 * Where the index has a graph (diskANN) it is built of a block in the background, by one thread of
 * the lowest priority, and goes with it. Until it is there, and where it is of no use, the block is
 * gone through.
 *
 * Bounded in bytes, graphs and changes included. Where there is no room the account that has most
 * makes way, with what it used longest ago, so that one with many containers pushes out nobody but
 * itself; graphs are built for one account after the other. What was not used for a while goes. For
 * any number of threads. */
#pragma once

#include "index/definition.h"
#include "item/cursor.h"
#include "query/run/changes.h"
#include "search/graph.h"

struct query_blocks; /* opaque, owned by whoever runs queries */
struct query_block;  /* opaque, counted; its entries never change once it is put */

struct query_blocks *query_blocks_new(size_t bytes_max);
void query_blocks_free(struct query_blocks *blocks); /* NULL is fine; no block is in use */
CLEANUP_FN(struct query_blocks *, query_blocks_free)

/* What a block is of. */
struct query_block_key {
    uint32_t node, partition;
    uint64_t epoch, lsn;
    int32_t default_ttl; /* of the container: it says which items are over */
    struct index_vector index;
    struct slice prefix; /* of the entries */
    const void *account; /* whose it is; only compared */
};

/* A block of it that is not younger, for query_block_unref; NULL: there is none. *ret_renew: it has
 * many changes, and the caller is to walk the entries for another, while it serves the others. */
struct query_block *query_blocks_find(struct query_blocks *blocks,
                                      const struct query_block_key *key, bool *ret_renew);
void query_block_unref(struct query_block *block); /* NULL is fine */

/* It is of no use any more: it has too many changes, or too much in it is gone. */
void query_blocks_drop(struct query_blocks *blocks, struct query_block *block);

/* Begins one. NULL: none are kept. */
struct query_block *query_block_begin(struct query_blocks *blocks,
                                      const struct query_block_key *key);

/* Adds the next entry; all have values of one length. False: there is no room for it, and the block
 * comes to nothing: unref it. */
NODISCARD bool query_block_add(struct query_block *block, const struct cursor_hit *hit);

/* The block is whole: others may find it, unless there is one that is as young. The caller still
 * has its reference. */
void query_blocks_put(struct query_blocks *blocks, struct query_block *block);

/* The entry at a place, with value, number and key, good as long as the block. False: the end. */
bool query_block_at(const struct query_block *block, size_t place, struct cursor_hit *ret_hit);

uint64_t query_block_lsn(const struct query_block *block);

/* What was written since, up to the LSN of a view; as query_changes_since. */
NODISCARD bool query_block_since(struct query_block *block, const struct view *view, uint64_t lsn,
                                 const struct index_definition *index,
                                 struct query_since *ret_since, enum query_since_state *ret_state,
                                 struct error *err);

/* Its graph, whose points are places; good as long as the block. NULL: there is none, or not yet.
 */
const struct search_graph *query_block_graph(const struct query_block *block);

/* Bytes of all, those in the making included. */
size_t query_blocks_bytes(struct query_blocks *blocks);

/* Blocks that were not used for a while by then go. The thread that builds graphs does it too. */
void query_blocks_tidy(struct query_blocks *blocks, int64_t now_ms);

/* How far graphs are: of an index in one partition, or of all (prefix.data NULL). */
struct query_graphs_state {
    uint64_t ready, building;       /* how many; waiting ones count as being built */
    uint64_t points_in, points_all; /* of those that are being built, and ready ones */
    uint64_t changes;               /* that searches look at besides */
    uint64_t built_total;           /* since the start; of all alone */
};
void query_blocks_graphs(struct query_blocks *blocks, uint32_t node, uint32_t partition,
                         struct slice prefix, struct query_graphs_state *state); /* adds to it */
