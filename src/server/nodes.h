/* Nodes: the stores this process holds, opened at start and closed at the end. */
#pragma once

#include "engine/engine.h"
#include "server/settings.h"

struct nodes; /* opaque, owned by the server */

struct nodes_member {
    const char *name;
    struct engine *engine;
};

/* Opens every node the settings name, or the node "local" in the default directory when they name
 * none. The settings must outlive the nodes. An error names the node it befell; those opened
 * before it are closed again. */
NODISCARD bool nodes_open(const struct settings *settings, struct log *log,
                          struct nodes **ret_nodes, struct error *err);
void nodes_close(struct nodes *nodes); /* NULL is fine */
CLEANUP_FN(struct nodes *, nodes_close)

size_t nodes_count(const struct nodes *nodes);
const struct nodes_member *nodes_at(const struct nodes *nodes, size_t index);

/* The directory of the first rocksdb: node, where the server may keep files of its own; NULL when
 * there is none. */
const char *nodes_directory(const struct nodes *nodes);

/* The same directory as settings say, without opening anything: for whoever looks into it while no
 * server runs. In arena or in the settings. ERROR_CONFIGURATION when there is none. */
NODISCARD bool nodes_find_directory(const struct settings *settings, struct arena *arena,
                                    const char **ret_directory, struct error *err);

/* Whether every node serves every partition it holds. Blocks as long as a node does. An error says
 * which does not and why. */
NODISCARD bool nodes_ready(const struct nodes *nodes, struct error *err);
