/* The two surfaces behind a shape. Each is its own file, and library. */
#pragma once

#include "search/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

struct search_earth;
struct search_plane;

struct search_earth *search_earth_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason);
/* What shape.h says of plain ones. */
struct search_earth *search_earth_new_plain(const struct search_figure *figure);
bool search_earth_is_plain(struct search_earth *earth, double distance);
void search_earth_free(struct search_earth *earth);
double search_earth_distance(struct search_earth *a, struct search_earth *b);
bool search_earth_within(struct search_earth *inner, struct search_earth *outer);
bool search_earth_intersects(struct search_earth *a, struct search_earth *b);
/* Of points by themselves; round: of a sphere. */
double search_earth_between(struct search_position a, struct search_position b, bool round);
void search_earth_bounds(struct search_position a, struct search_position b, double *ret_least,
                         double *ret_most);
bool search_earth_circle(struct search_position middle, double distance, bool round,
                         struct search_circle *ret_circle);
bool search_earth_leaves_out(const struct search_circle *circle, uint64_t cell);
double search_earth_distance_to(struct search_earth *earth, struct search_position point);
bool search_earth_has(struct search_earth *earth, struct search_position point);
double search_earth_area(struct search_earth *earth);
/* Cells that cover it and all that is closer than distance, for a query. */
size_t search_earth_near(struct search_earth *earth, double distance,
                         uint64_t cells[SEARCH_CELLS_MAX]);
/* The same, at most max, or the six faces. Entries of indexes are made of those of distance 0: what
 * they are may not change. */
size_t search_earth_cells(struct search_earth *earth, double distance, size_t max,
                          uint64_t cells[SEARCH_CELLS_MAX]);

struct search_plane *search_plane_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason);
void search_plane_free(struct search_plane *plane);
double search_plane_distance(struct search_plane *a, struct search_plane *b);
bool search_plane_within(struct search_plane *inner, struct search_plane *outer);
bool search_plane_intersects(struct search_plane *a, struct search_plane *b);
double search_plane_area(struct search_plane *plane);
size_t search_plane_cells(struct search_plane *plane, const struct search_grid *grid,
                          double distance, size_t max, uint64_t cells[SEARCH_CELLS_MAX]);

/* --- Numbers of cells ------------------------------------------------------------------------ */

enum {
    SEARCH_LEVELS = 30,
    SEARCH_LEVEL_STEP = 2, /* cells of shapes are of every second level: fewer to look above for */
};

#define SEARCH_CELL_OUTSIDE ((uint64_t)7 << 61 | 1)

/* The bit that ends the number of a cell of this level. */
static inline uint64_t search_level_end(int level)
{
    return (uint64_t)1 << (2 * (SEARCH_LEVELS - level));
}

static inline uint64_t search_cell_end(uint64_t cell)
{
    return cell & (~cell + 1);
}

#ifdef __cplusplus
}
#endif
