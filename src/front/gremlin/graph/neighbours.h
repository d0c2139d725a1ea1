/* Neighbours: the vertices at the other ends of edges. */
#pragma once

#include "front/gremlin/graph/graph_private.h"

/* What is needed of an edge. */
struct gremlin_edge_row {
    struct gremlin_head head; /* of a tuple: ends, and the label of the other end */
    struct partition_key key; /* of its source */
    bool in;                  /* it was found by its target: the other end is the source */
};

struct gremlin_neighbours {
    struct gremlin_graph *graph;
    const struct gremlin_edge_row *edges;
    size_t count;
    bool heads;                              /* not read, but made of what the edges say */
    const struct gremlin_test *const *tests; /* that they have to pass */
    size_t test_count;
    struct gremlin_value *vertices; /* out: one reference for each edge, or null */
};

/* After a failure the vertices that are there are the caller's to let go of, too. */
NODISCARD bool gremlin_neighbours_find(struct gremlin_neighbours *neighbours, struct arena *arena,
                                       struct error *err);
