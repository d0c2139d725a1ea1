/* Nodes in the catalogue: which there are, what the operator says of them, and how they come and
 * go while everybody works.
 *
 * Everything here survives a restart: it is one record beside the head. Blocks as every change of
 * the catalogue does. */
#pragma once

#include "catalogue/catalogue.h"

/* The table as a root node holds it, before its catalogue is opened: for whoever has to know which
 * nodes to open. Empty: there is none yet. */
NODISCARD bool catalogue_nodes_peek(struct engine *root, struct node_table *ret_table,
                                    struct error *err);

/* The same as a snapshot of the root has it; NULL: as it is now. */
NODISCARD bool catalogue_nodes_peek_at(struct engine *root, struct engine_snapshot *snapshot,
                                       struct node_table *ret_table, struct error *err);

/* A copy of the present table; memory_free it. URLs in it may hold passwords. */
struct node_table *catalogue_nodes(struct catalogue *catalogue);
void catalogue_nodes_free(struct node_table *table); /* NULL is fine; cleanses it */
CLEANUP_FN(struct node_table *, catalogue_nodes_free)

/* Makes an open engine a node: it gets a number, joins the cluster, and takes partitions from now
 * on. info: name, attributes and, to be opened again at the next start, url. ERROR_NAME_TAKEN;
 * ERROR_STORE_FOREIGN: it belongs to another cluster; ERROR_BAD_REQUEST: it is a node already, or
 * holds partitions of which nothing is known. */
NODISCARD bool catalogue_node_add(struct catalogue *catalogue, const struct node_info *info,
                                  struct engine *engine, const struct cluster_node **ret_node,
                                  struct error *err);

/* What may change. NULL members stay as they are. */
struct catalogue_node_settings {
    const struct node_info *attributes; /* all five */
    const bool *draining, *paused;
};

/* ERROR_NOT_FOUND. ERROR_BAD_REQUEST: the last node that takes partitions cannot be drained.
 * ERROR_RESIDENCE: it holds keys of a resident rule that would not allow it any more. */
NODISCARD bool catalogue_node_change(struct catalogue *catalogue, struct slice name,
                                     const struct catalogue_node_settings *change,
                                     struct error *err);

/* All nodes of a region. ERROR_NOT_FOUND: no node is in it. */
NODISCARD bool catalogue_region_pause(struct catalogue *catalogue, struct slice region, bool on,
                                      struct error *err);

/* ERROR_BUSY: it holds partitions, or a migration needs it; the message counts them.
 * ERROR_FORBIDDEN: it is the root. *ret_node: whose engine is to be retired. */
NODISCARD bool catalogue_node_remove(struct catalogue *catalogue, struct slice name,
                                     const struct cluster_node **ret_node, struct error *err);

/* A node that was away is here: its partitions are opened, journals of migrations go on, and what
 * nobody owns is dropped. Called by the thread that its guard lets in, before it serves. */
/* By the operator's word: a node that has lost acknowledged writes serves again without them.
 * Blocks. ERROR_NOT_FOUND; ERROR_BAD_REQUEST: it has lost nothing. */
NODISCARD bool catalogue_node_accept_loss(struct catalogue *catalogue, struct slice name,
                                          struct error *err);

NODISCARD bool catalogue_node_rejoin(struct catalogue *catalogue, uint32_t number,
                                     struct error *err);

/* Whether a rebalance is on: the balancer's, and remembered. */
NODISCARD bool catalogue_nodes_rebalancing(struct catalogue *catalogue, bool on, struct error *err);

/* Tells the guards of the nodes who is paused: once, at the start. */
void catalogue_nodes_apply(struct catalogue *catalogue);
