/* Outline: the edges of a shape that is small on the Earth, and which cells it lies in.
 *
 * On a face of S2's cube a great circle is a straight line and a cell a rectangle, so that whether
 * they meet is a matter of a few products. S2's own coverer asks for every cell as if the shape
 * could be any; for the few corners that most queries have that takes fifty times as long as this.
 * For queries alone: the cells of shapes in an index are S2's, and have to stay what they are. */
#pragma once

#include "search/geometry.h"

#include <s2/s2point.h>
#include <utility>
#include <vector>

enum { SEARCH_OUTLINE_EDGES_MAX = 64 };

struct search_outline {
    std::vector<std::pair<S2Point, S2Point>> edges; /* both ends the same: a point */
    size_t ring_edges = 0; /* how many of them, the first, enclose what belongs to it, by parity */
};

/* Edges around all that is as near to a point as an angle, in radians and small. */
void search_outline_circle(const S2Point &point, double radius, search_outline *ret_outline);

/* The middle of its corners, and how far they are from it. False: it is too large, or has too many
 * edges, for this way. */
bool search_outline_middle(const search_outline &outline, S2Point *ret_middle, double *ret_radius);

/* Cells that cover it, of every SEARCH_LEVEL_STEP-th level: at most max, or a dozen. 0: as above.
 */
size_t search_outline_cells(const search_outline &outline, size_t max,
                            uint64_t cells[SEARCH_CELLS_MAX]);
