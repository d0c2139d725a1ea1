/* Walk: the histories of all nodes as one, in the order of cluster time. Blocks. */
#pragma once

#include "cluster/cluster.h"
#include "partition/history.h"

struct cluster_walk; /* opaque, owned */

/* Behind a place, up to a time, which is settled. Nodes that are down are an error: what they have
 * may be next. */
NODISCARD bool cluster_walk_new(const struct cluster *cluster, struct history_place after,
                                uint64_t settled, struct cluster_walk **ret_walk,
                                struct error *err);
void cluster_walk_free(struct cluster_walk *walk); /* NULL is fine */
CLEANUP_FN(struct cluster_walk *, cluster_walk_free)

/* The next record; *ret_found false: there is none. Good until the next call. */
NODISCARD bool cluster_walk_next(struct cluster_walk *walk, struct history_record *ret_record,
                                 bool *ret_found, struct error *err);

/* Was something removed that a walk from behind this time had to find? To be asked after it, for
 * what is removed meanwhile is missed. */
NODISCARD bool cluster_walk_lost(const struct cluster *cluster, uint64_t time, bool *ret_lost,
                                 struct error *err);
