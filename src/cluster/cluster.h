/* Cluster: the nodes this process holds, each with the one committer that writes it.
 *
 * The first node added is the root: it keeps the catalogue. All nodes carry one cluster id, made
 * when the root is new and recorded on every node, so that a node of somebody else's is refused
 * before anything is read from it or written to it.
 *
 * Nodes may be added and removed while everybody reads; those who add and remove take turns (the
 * catalogue's lock of changes). A node that is removed leaves its place behind, so that whoever
 * still holds an old map meets an engine that refuses rather than none.
 *
 * A node may be away (engine/guard.h) when it is added; then its partitions are opened when it
 * comes, by cluster_rejoin. */
#pragma once

#include "engine/engine.h"
#include "partition/commit.h"

#include <stdatomic.h>

enum { CLUSTER_NODES_MAX = 64 };

struct cluster; /* opaque, owned */

struct cluster_node {
    const char *name;      /* what the operator calls it */
    uint32_t number;       /* what the catalogue calls it; the root is 0 */
    struct engine *engine; /* borrowed by the cluster */
    struct commit *commit; /* owned by the cluster */
    atomic_bool removed;   /* no member any more */
};

/* Options of the committers; engine and times are ignored. NULL: the defaults. */
struct cluster *cluster_new(const struct commit_options *options);

/* Stops the committers. The engines are still to be closed. NULL is fine. */
void cluster_free(struct cluster *cluster);
CLEANUP_FN(struct cluster *, cluster_free)

/* Adds a node and opens all partitions it holds under their epochs. The engine must outlive the
 * cluster; the name is copied. ERROR_STORE_FOREIGN: it belongs to another cluster.
 * ERROR_CONFIGURATION: it was added before, or there are too many. */
NODISCARD bool cluster_add(struct cluster *cluster, const char *name, struct engine *engine,
                           struct error *err);

/* The same under a number that the catalogue has settled. */
NODISCARD bool cluster_add_as(struct cluster *cluster, const char *name, struct engine *engine,
                              uint32_t number, struct error *err);

/* Adds a node that another server owns, whose engine was opened as a follower: nothing of it is
 * opened for writing, nothing is recorded on it, and its committer has no partitions.
 * ERROR_STORE_FOREIGN: it belongs to no cluster, or another. */
NODISCARD bool cluster_follow(struct cluster *cluster, const char *name, struct engine *engine,
                              struct error *err);

/* A node that was away is here: checks whose it is and opens what is not open yet. Its engine must
 * let the calling thread in. */
NODISCARD bool cluster_rejoin(struct cluster *cluster, uint32_t number, struct error *err);

/* It is no member any more. Its engine is to be retired, not closed. */
void cluster_remove(struct cluster *cluster, uint32_t number);

/* In the order they were added, removed ones too; at(0) is the root. */
size_t cluster_count(const struct cluster *cluster);
const struct cluster_node *cluster_at(const struct cluster *cluster, size_t index);

/* The node the catalogue knows by this number, removed or not; NULL when it was never here. */
const struct cluster_node *cluster_find(const struct cluster *cluster, uint32_t number);

/* Cluster time, of all committers; lives as long as the cluster. */
struct commit_clock *cluster_times(const struct cluster *cluster);

/* The 36 characters all nodes share; empty before the root is added. */
struct slice cluster_id(const struct cluster *cluster);

/* For the catalogue, while it opens: the node at index is called number from now on. */
void cluster_number(struct cluster *cluster, size_t index, uint32_t number);

/* Is it a member? And does it serve, too? */
bool cluster_node_is_member(const struct cluster_node *node);
bool cluster_node_serves(const struct cluster_node *node);
