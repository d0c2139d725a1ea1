/* Store: everything the fronts share: the cluster of nodes, the catalogue, budgets and gates, and
 * the caretaker and the migrator that work in the background. */
#pragma once

#include "front/front.h"
#include "server/nodes.h"
#include "server/settings.h"

struct store; /* opaque, owned by the server */

/* Opens the catalogue on the first node and hands every partition its throughput. leases: by which
 * other servers read; NULL: none does. */
struct peer_leases;
NODISCARD bool store_open(const struct settings *settings, struct nodes *nodes,
                          struct peer_leases *leases, struct log *log, struct store **ret_store,
                          struct error *err);
/* What a container may be, as the settings say. */
struct definition_limits store_limits(const struct settings *settings);
void store_close(struct store *store); /* NULL is fine */
CLEANUP_FN(struct store *, store_close)

struct catalogue *store_catalogue(struct store *store);
const struct cluster *store_cluster(const struct store *store);

struct heat *store_heat(struct store *store);
struct bell *store_bell(struct store *store); /* rung by every commit */
/* A node comes: opened, made a member, watched. And one goes that holds nothing any more. Errors as
 * nodes_add, catalogue_node_add and catalogue_node_remove say. */
NODISCARD bool store_node_add(struct store *store, const struct node_info *info, struct error *err);
NODISCARD bool store_node_remove(struct store *store, struct slice name, struct error *err);

/* What the fronts are handed; borrowed while the store is open. */
struct front_services store_services(struct store *store, struct net_workers *workers,
                                     struct log *log);
