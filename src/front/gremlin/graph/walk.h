/* Walk: edges as the entries of indexes tell them, without the edges themselves, and where vertices
 * are by another, without the edges between them.
 *
 *     gremlin_out       _vertexId, label, _sink, _sinkPartition, _sinkLabel, partition key
 *     gremlin_in        _sink, label, _sinkPartition, _vertexId, _vertexLabel, partition key
 *     gremlin_vertices  id, partition key
 *     gremlin_reverse   as gremlin_in, and id, with the partition of the target (`placed`)
 *
 * Edges alone have entries (a filter by `_isEdge`), in gremlin_vertices all that is no edge. The
 * last is for who chose it (`orrery.graph.reverse`) and stands in for gremlin_in. They are
 * definitions of the container like others (docs/design/index-definitions.md): built online, kept
 * by every API that writes, seen in `orrery.indexes`. Graphs whose partition key has several paths
 * have none: entries do not hold the array that their edges say it with. */
#pragma once

#include "front/gremlin/graph/neighbours.h"
#include "query/run/entries.h"

enum gremlin_walk {
    GREMLIN_WALK_OUT,
    GREMLIN_WALK_IN,
    GREMLIN_WALK_VERTICES,
    GREMLIN_WALKS, /* so many graphs get by themselves */
    GREMLIN_WALK_REVERSE = GREMLIN_WALKS,
    GREMLIN_WALK_KINDS,
};

/* The index that edges out of vertices, or into them, or vertices are read from; NULL: none that is
 * ready. */
const struct index_definition *gremlin_walk_index(const struct gremlin_graph *graph,
                                                  enum gremlin_walk walk);

/* That of reverse edges; NULL: edges into vertices are asked for everywhere. */
const struct index_definition *gremlin_walk_reverse(const struct gremlin_graph *graph);

/* The id and partition key of a vertex, good as long as the entry. False: it is of no vertex. */
bool gremlin_walk_vertex(const struct gremlin_graph *graph, const struct query_entry *entry,
                         struct slice *ret_id, struct partition_key *ret_key);

/* The ranges of edges of these vertices with one of these labels (none: with any), in the arena.
 * *ret_count. */
const struct cursor_range *gremlin_walk_ranges(const struct slice *ids, size_t id_count,
                                               const struct slice *labels, size_t label_count,
                                               struct arena *arena, size_t *ret_count);

/* What an entry says of its edge, borrowed from it; of one of gremlin_reverse its id, too. False:
 * it is no edge. */
bool gremlin_walk_row(const struct gremlin_graph *graph, enum gremlin_walk walk,
                      const struct query_entry *entry, struct gremlin_edge_row *ret_row,
                      struct slice *ret_label);

/* Keeps the row beyond the entry. copies: its values as well, which are in no arena that stays. */
const struct gremlin_edge_row *gremlin_walk_keep(const struct gremlin_edge_row *row, bool copies,
                                                 struct arena *arena);
