/* Geometry: the plain structures of figures, shapes and cells. Nothing here is more than C and C++
 * have in common, for the libraries of the Earth are C++. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum search_surface { SEARCH_EARTH, SEARCH_PLANE };

enum {
    SEARCH_POSITIONS_MAX = 4096,        /* of a figure of Cosmos DB */
    SEARCH_POSITIONS_MAX_EVERY = 65536, /* of any other */
    SEARCH_PARTS_MAX = 16384,           /* points, lines and rings */
    SEARCH_COLLECTION_DEPTH_MAX = 16,
    SEARCH_REASON_SIZE = 200,
};

/* What a language takes for a figure. */
struct search_rules {
    enum search_surface surface;
    bool every_type; /* MultiPoint, MultiLineString and GeometryCollection too, and pairs of numbers
                        without a type (MongoDB) */
    bool smaller;    /* a polygon is the smaller side of its ring, whichever way that goes; if not,
                        what is to the left of it */
    bool round; /* distances are those of a sphere of SEARCH_RADIUS_ROUND, as MongoDB has them */
};

#define SEARCH_RADIUS_ROUND 6378100.0 /* metres */

struct search_position {
    double x, y; /* on the Earth longitude and latitude in degrees */
};

enum search_part_kind {
    SEARCH_POINT,
    SEARCH_LINE,
    SEARCH_RING, /* of a polygon; the last position is the first again */
    SEARCH_HOLE, /* in the polygon of the ring before it */
};

struct search_part {
    enum search_part_kind kind;
    uint32_t first, count; /* of the positions */
};

struct search_figure {
    struct search_rules rules;
    const struct search_position *positions;
    const struct search_part *parts;
    size_t position_count, part_count;
};

/* Why something is no figure, or no shape: a sentence in the words of the service. */
struct search_reason {
    char text[SEARCH_REASON_SIZE];
};

/* What is not further from a point of the Earth than some distance: its middle on the sphere, and
 * how long a straight way through the sphere from there out of it is at least, squared. */
struct search_circle {
    double x, y, z, beyond;
};

/* --- Cells -------------------------------------------------------------------------------------
 *
 * A surface is cut into cells, each of them into four, 30 times over; on the Earth these are S2's
 * cells, in a plane the quarters of a box. The number of a cell places it on a curve that fills
 * the surface, so that all cells within one are a range of numbers:
 *
 *     3 bits    face of the cube on the Earth; in a plane 0, and 7 for what is outside the box
 *     2 bits    for each level, which quarter
 *     1 0...0   the end
 *
 * A shape lies in a few cells, large and small. Two shapes that meet have cells of which one is in
 * the other. */

/* Where cells are: of a plane within this box. */
struct search_grid {
    enum search_surface surface;
    double x_min, y_min, x_max, y_max; /* of a plane */
};

enum { SEARCH_CELLS_MAX = 64, SEARCH_CELLS_OF_SHAPE = 8, SEARCH_CELLS_OF_QUERY = 16 };

/* Numbers of cells, both ends among them. */
struct search_cell_range {
    uint64_t first, last;
};

enum { SEARCH_RANGES_MAX = 1024 };
