/* Nodes: the stores this process holds, each behind a guard (engine/guard.h). The first one named
 * is the root and must be there at the start; any other may come later, if the catalogue knows it.
 */
#pragma once

#include "cluster/node.h"
#include "engine/engine.h"
#include "server/settings.h"

struct nodes; /* opaque, owned by the server */

struct nodes_member {
    const char *name;
    struct engine *engine; /* a guard */
    const char *directory; /* of a rocksdb: node; NULL: it has none */
    atomic_bool gone;      /* retired */
};

/* Opens every node the settings name, or the node "local" in the default directory when they name
 * none, and those that were added to a running server and are remembered by the root. The settings
 * must outlive the nodes. An error names the node it befell; those opened before it are closed
 * again. */
NODISCARD bool nodes_open(const struct settings *settings, struct engine_claim claim,
                          struct log *log, struct nodes **ret_nodes, struct error *err);
/* The same nodes beside the server that owns them: they are only read from. */
NODISCARD bool nodes_follow(const struct settings *settings, struct log *log,
                            struct nodes **ret_nodes, struct error *err);
void nodes_close(struct nodes *nodes); /* NULL is fine */
CLEANUP_FN(struct nodes *, nodes_close)

/* Opens one more, for a running server; one at a time. ERROR_STORE_*: it cannot be. */
NODISCARD bool nodes_add(struct nodes *nodes, const char *name, struct slice url,
                         struct engine **ret_engine, struct error *err);

/* It is no node any more: closed when nobody is inside, which is waited for a little, at the latest
 * in the end. */
void nodes_retire(struct nodes *nodes, struct engine *engine);

/* All that were ever opened; those that are gone say so. */
size_t nodes_count(const struct nodes *nodes);
const struct nodes_member *nodes_at(const struct nodes *nodes, size_t index);

/* What the settings say of nodes, named by them or not; owned by nodes. */
const struct node_info *nodes_said(const struct nodes *nodes, size_t *ret_count);

/* The directory of the first rocksdb: node, where the server may keep files of its own; NULL when
 * there is none. */
const char *nodes_directory(const struct nodes *nodes);

/* The same directory as settings say, without opening anything: for whoever looks into it while no
 * server runs. In arena or in the settings. ERROR_CONFIGURATION when there is none. */
NODISCARD bool nodes_find_directory(const struct settings *settings, struct arena *arena,
                                    const char **ret_directory, struct error *err);
