/* Shape: a figure that can be asked where it is: how far from another, within it, how large.
 *
 * On the Earth lines are great circles between the positions as they are given, distances and areas
 * those of the ellipsoid of WGS 84 in metres; in a plane all is as the numbers say. The edge of a
 * shape belongs to it. A polygon's holes are cut out of it, whichever way their rings go.
 *
 * A shape belongs to one thread. */
#pragma once

#include "search/figure.h"

struct search_shape; /* owned */

/* NULL: rings cross, holes lie outside, ..., *ret_reason says what. */
struct search_shape *search_shape_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason);
/* The same of what is made in some microseconds: a point of the Earth, or a convex ring of few
 * positions. NULL: it is something else, or none. */
struct search_shape *search_shape_new_plain(const struct search_figure *figure);
/* Is such a shape covered as quickly, by search_shape_near? Not all around the Earth. */
bool search_shape_is_plain(struct search_shape *shape, double distance);
void search_shape_free(struct search_shape *shape); /* NULL is fine */
CLEANUP_FN(struct search_shape *, search_shape_free)

/* How many positions it has: what asking it costs grows with them. */
size_t search_shape_positions(const struct search_shape *shape);

/* Of two shapes on one surface. */
double search_shape_distance(struct search_shape *a, struct search_shape *b);
bool search_shape_within(struct search_shape *inner, struct search_shape *outer);
bool search_shape_intersects(struct search_shape *a, struct search_shape *b);
/* Of points of the Earth, which need no shape. The rules say what a distance is. */
double search_points_distance(struct search_position a, struct search_position b,
                              const struct search_rules *rules);
/* What that distance on the ellipsoid is between, for a small part of the work: half a hundredth
 * apart. */
void search_points_bounds(struct search_position a, struct search_position b, double *ret_least,
                          double *ret_most);
double search_shape_distance_to(struct search_shape *shape, struct search_position point);
bool search_shape_has(struct search_shape *shape, struct search_position point);
double search_shape_area(struct search_shape *shape);

/* What is as close to a point of the Earth as distance. False: that is everywhere. */
bool search_circle_make(struct search_position middle, double distance,
                        const struct search_rules *rules, struct search_circle *ret_circle);
/* Is it the cell of a point that is surely out of the circle? Of larger cells it is not known. */
bool search_circle_leaves_out(const struct search_circle *circle, uint64_t cell);

/* Cells that cover the shape. Returns how many. */
size_t search_shape_cells(struct search_shape *shape, const struct search_grid *grid,
                          uint64_t cells[SEARCH_CELLS_MAX]);

/* Where the cells of all shapes are that may come as close to this one as distance, metres on the
 * Earth; 0: may touch it. Ascending, apart from each other. Returns how many. */
size_t search_shape_near(struct search_shape *shape, const struct search_grid *grid,
                         double distance, struct search_cell_range ranges[SEARCH_RANGES_MAX]);
