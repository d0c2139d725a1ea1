/* Cluster: the nodes this process holds, each with the one committer that writes it.
 *
 * The first node added is the root: it keeps the catalogue. All nodes carry one cluster id, made
 * when the root is new and recorded on every node, so that a node of somebody else's is refused
 * before anything is read from it or written to it.
 *
 * Nodes are added before the catalogue is opened, by one thread; afterwards a cluster is only
 * read, by all. */
#pragma once

#include "engine/engine.h"
#include "partition/commit.h"

enum { CLUSTER_NODES_MAX = 64 };

struct cluster; /* opaque, owned */

struct cluster_node {
    const char *name;      /* what the operator calls it */
    uint32_t number;       /* what the catalogue calls it; the root is 0 */
    struct engine *engine; /* borrowed by the cluster */
    struct commit *commit; /* owned by the cluster */
};

/* Options of the committers; engine is ignored. NULL: the defaults. */
struct cluster *cluster_new(const struct commit_options *options);

/* Stops the committers. The engines are still to be closed. NULL is fine. */
void cluster_free(struct cluster *cluster);
CLEANUP_FN(struct cluster *, cluster_free)

/* Adds a node and opens all partitions it holds under their epochs. The engine must outlive the
 * cluster; the name is copied. ERROR_STORE_FOREIGN: it belongs to another cluster.
 * ERROR_CONFIGURATION: it was added before, or there are too many. */
NODISCARD bool cluster_add(struct cluster *cluster, const char *name, struct engine *engine,
                           struct error *err);

/* In the order they were added; at(0) is the root. */
size_t cluster_count(const struct cluster *cluster);
const struct cluster_node *cluster_at(const struct cluster *cluster, size_t index);

/* The node the catalogue knows by this number; NULL when it is not here. */
const struct cluster_node *cluster_find(const struct cluster *cluster, uint32_t number);

/* The 36 characters all nodes share; empty before the root is added. */
struct slice cluster_id(const struct cluster *cluster);

/* For the catalogue, while it opens: the node at index is called number from now on. */
void cluster_number(struct cluster *cluster, size_t index, uint32_t number);
