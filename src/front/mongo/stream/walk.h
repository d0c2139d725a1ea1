/* Walk: the histories of all nodes as one, in the order of cluster time. Blocks. */
#pragma once

#include "cluster/cluster.h"
#include "partition/history.h"

struct mongo_walk; /* opaque, owned */

/* Behind a place, up to a time, which is settled. Nodes that are down are an error: what they have
 * may be next. */
NODISCARD bool mongo_walk_new(const struct cluster *cluster, struct history_place after,
                              uint64_t settled, struct mongo_walk **ret_walk, struct error *err);
void mongo_walk_free(struct mongo_walk *walk); /* NULL is fine */
CLEANUP_FN(struct mongo_walk *, mongo_walk_free)

/* The next record; *ret_found false: there is none. Good until the next call. */
NODISCARD bool mongo_walk_next(struct mongo_walk *walk, struct history_record *ret_record,
                               bool *ret_found, struct error *err);

/* Was everything there that a walk from behind this time had to find? To be asked after it, for
 * what is removed meanwhile is missed. MONGO_CHANGE_STREAM_HISTORY_LOST. */
NODISCARD bool mongo_walk_check(const struct cluster *cluster, uint64_t time, struct error *err);
