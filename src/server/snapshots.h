/* Snapshots: copies of all nodes at one commit sequence of each, kept beside them under a name, to
 * go back to: for tests, and before something risky.
 *
 *     NODE/snapshots/NAME/            a copy that a rocksdb: URL can open (engine_backup)
 *     ROOT/snapshots/NAME/snapshot    written last: without it there is no such snapshot
 *     ROOT/reset                      a name: what the nodes become when they are opened next
 *
 * Tables are linked and not copied, so that making one and going back to it take the same time
 * whatever nodes hold; disk is used for what is written afterwards. All nodes are rocksdb: ones.
 * They lie on the disks of the nodes: they are no backup. */
#pragma once

#include "base/buf.h"
#include "catalogue/catalogue.h"
#include "server/nodes.h"

enum { SNAPSHOTS_MAX = 32, SNAPSHOT_NAME_SIZE = 65 };

/* Small letters, digits and hyphens. ERROR_BAD_REQUEST. */
NODISCARD bool snapshot_name_check(struct slice name, struct error *err);

/* While clients work; changes of the catalogue wait. One caller at a time. ERROR_NOT_SUPPORTED: a
 * node cannot. ERROR_NAME_TAKEN, ERROR_LIMIT_REACHED, ERROR_STORE_*. */
NODISCARD bool snapshots_make(const struct nodes *nodes, struct catalogue *catalogue,
                              struct slice name, int64_t now_ms, struct error *err);

/* Appends them as elements of a JSON array: name, created (ms), nodes. */
NODISCARD bool snapshots_append(const struct nodes *nodes, struct buf *out, struct error *err);

/* ERROR_NOT_FOUND. */
NODISCARD bool snapshots_drop(const struct nodes *nodes, struct slice name, struct error *err);

/* Leaves word, durably, that the nodes become this snapshot when they are opened next.
 * ERROR_NOT_FOUND; ERROR_CONFLICT: nodes have come or gone since. */
NODISCARD bool snapshots_reset(const struct nodes *nodes, struct slice name, struct error *err);

/* Before a node is opened, below the root's directory: the name that was left; "": none. */
NODISCARD bool snapshots_pending(const char *root, char ret_name[SNAPSHOT_NAME_SIZE],
                                 struct error *err);
/* The closed node becomes its copy of that name; and, when all of them have, the word is taken
 * back. */
NODISCARD bool snapshots_apply(const char *url, const char *directory, const char *name,
                               struct error *err);
NODISCARD bool snapshots_applied(const char *root, struct error *err);
