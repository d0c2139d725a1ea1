/* Graph: records of a file as vertices and edges, in the form that the Gremlin API stores them in
 * (src/front/gremlin/graph/stored.h), to be sent as items.
 *
 * A record of JSON is a vertex as TinkerPop writes graphs (GraphSON, one vertex a line, with its
 * edges in outE and inE, of which outE count); a record of CSV is a vertex, or, where it has values
 * for `from` and `to`, an edge. The columns `id` and `label` are those of either; all others are
 * properties.
 *
 * Edges say label and partition key of both ends, so all records are read once before the first
 * item is made. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "document/bson.h"

struct shell_graph; /* opaque, owned */

/* key: the property that is the container's partition key; empty: it has none. key_from: what it is
 * filled from where a vertex lacks it: "id", "label" or a property; NULL: such a vertex is refused.
 */
struct shell_graph *shell_graph_new(struct slice key, const char *key_from);
void shell_graph_free(struct shell_graph *graph); /* NULL is fine */
CLEANUP_FN(struct shell_graph *, shell_graph_free)

/* The first pass. ERROR_BAD_REQUEST: it is no record of a graph, or has no partition key. */
NODISCARD bool shell_graph_learn(struct shell_graph *graph, struct slice record, struct error *err);

/* The second: each item as JSON. An edge whose id a vertex of its partition has gets "edge-" before
 * it, for items share their ids. ERROR_BAD_REQUEST: an edge leads to a vertex that is in no record;
 * a type that cannot be stored as JSON. */
NODISCARD bool shell_graph_items(struct shell_graph *graph, struct slice record,
                                 bool (*take)(void *self, struct slice json, struct error *err),
                                 void *self, struct error *err);
