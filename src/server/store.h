/* Store: everything the fronts share: the cluster of nodes, the catalogue, budgets and gates, and
 * the caretaker that works in the background. */
#pragma once

#include "container/catalogue.h"
#include "container/items.h"
#include "container/meters.h"
#include "server/nodes.h"
#include "server/settings.h"

struct store; /* opaque, owned by the server */

/* Opens the catalogue on the first node and hands every partition its throughput. */
NODISCARD bool store_open(const struct settings *settings, struct nodes *nodes, struct log *log,
                          struct store **ret_store, struct error *err);
void store_close(struct store *store); /* NULL is fine */
CLEANUP_FN(struct store *, store_close)

struct catalogue *store_catalogue(struct store *store);
struct meters *store_meters(struct store *store);
struct item_gates *store_gates(struct store *store);
