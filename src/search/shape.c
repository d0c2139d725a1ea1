/* Which surface a shape is on, and ranges of cells. */
#include "search/shape.h"

#include "base/memory.h"
#include "search/shape_private.h"

struct search_shape {
    size_t positions;
    struct search_earth *earth; /* one of the two */
    struct search_plane *plane;
};

struct search_shape *search_shape_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason)
{
    struct search_shape *shape = MEMORY_NEW(struct search_shape);

    shape->positions = figure->position_count;
    if (figure->rules.surface == SEARCH_EARTH)
        shape->earth = search_earth_new(figure, ret_reason);
    else
        shape->plane = search_plane_new(figure, ret_reason);
    if (shape->earth || shape->plane)
        return shape;
    memory_free(shape);
    return NULL;
}

struct search_shape *search_shape_new_plain(const struct search_figure *figure)
{
    struct search_earth *earth =
        figure->rules.surface == SEARCH_EARTH ? search_earth_new_plain(figure) : NULL;
    struct search_shape *shape;

    if (!earth)
        return NULL;
    shape = MEMORY_NEW(struct search_shape);
    shape->positions = figure->position_count;
    shape->earth = earth;
    return shape;
}

bool search_shape_is_plain(struct search_shape *shape, double distance)
{
    return shape->earth && search_earth_is_plain(shape->earth, distance);
}

void search_shape_free(struct search_shape *shape)
{
    if (!shape)
        return;
    search_earth_free(shape->earth);
    search_plane_free(shape->plane);
    memory_free(shape);
}

size_t search_shape_positions(const struct search_shape *shape)
{
    return shape->positions;
}

double search_shape_distance(struct search_shape *a, struct search_shape *b)
{
    return a->earth ? search_earth_distance(a->earth, b->earth)
                    : search_plane_distance(a->plane, b->plane);
}

bool search_shape_within(struct search_shape *inner, struct search_shape *outer)
{
    return inner->earth ? search_earth_within(inner->earth, outer->earth)
                        : search_plane_within(inner->plane, outer->plane);
}

bool search_shape_intersects(struct search_shape *a, struct search_shape *b)
{
    return a->earth ? search_earth_intersects(a->earth, b->earth)
                    : search_plane_intersects(a->plane, b->plane);
}

double search_points_distance(struct search_position a, struct search_position b,
                              const struct search_rules *rules)
{
    assert(rules->surface == SEARCH_EARTH);
    return search_earth_between(a, b, rules->round);
}

void search_points_bounds(struct search_position a, struct search_position b, double *ret_least,
                          double *ret_most)
{
    search_earth_bounds(a, b, ret_least, ret_most);
}

bool search_circle_make(struct search_position middle, double distance,
                        const struct search_rules *rules, struct search_circle *ret_circle)
{
    assert(rules->surface == SEARCH_EARTH);
    return search_earth_circle(middle, distance, rules->round, ret_circle);
}

bool search_circle_leaves_out(const struct search_circle *circle, uint64_t cell)
{
    return search_earth_leaves_out(circle, cell);
}

double search_shape_distance_to(struct search_shape *shape, struct search_position point)
{
    return search_earth_distance_to(shape->earth, point);
}

bool search_shape_has(struct search_shape *shape, struct search_position point)
{
    return search_earth_has(shape->earth, point);
}

double search_shape_area(struct search_shape *shape)
{
    return shape->earth ? search_earth_area(shape->earth) : search_plane_area(shape->plane);
}

size_t search_shape_cells(struct search_shape *shape, const struct search_grid *grid,
                          uint64_t cells[SEARCH_CELLS_MAX])
{
    return shape->earth ? search_earth_cells(shape->earth, 0, SEARCH_CELLS_OF_SHAPE, cells)
                        : search_plane_cells(shape->plane, grid, 0, SEARCH_CELLS_OF_SHAPE, cells);
}

/* Some dozens, those of the cells and then those above them in an order of their own. */
static void ranges_sort(struct search_cell_range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct search_cell_range range = ranges[i];
        size_t at = i;

        for (; at && ranges[at - 1].first > range.first; at--)
            ranges[at] = ranges[at - 1];
        ranges[at] = range;
    }
}

static void cells_sort(uint64_t *cells, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t cell = cells[i];
        size_t at = i;

        for (; at && cells[at - 1] > cell; at--)
            cells[at] = cells[at - 1];
        cells[at] = cell;
    }
}

/* The cells within each, and those it is in: along the curve the ones above come in their order, so
 * that one which several are in is met again at once. */
size_t search_shape_near(struct search_shape *shape, const struct search_grid *grid,
                         double distance, struct search_cell_range ranges[SEARCH_RANGES_MAX])
{
    uint64_t cells[SEARCH_CELLS_MAX], above_before[SEARCH_LEVELS + 1] = {0};
    size_t count = 0, kept = 0;
    size_t cell_count = shape->earth ? search_earth_near(shape->earth, distance, cells)
                                     : search_plane_cells(shape->plane, grid, distance,
                                                          SEARCH_CELLS_OF_QUERY, cells);

    static_assert(SEARCH_CELLS_MAX * (1 + SEARCH_LEVELS / SEARCH_LEVEL_STEP) <= SEARCH_RANGES_MAX,
                  "there is room for every cell and those above it");
    cells_sort(cells, cell_count);
    for (size_t i = 0; i < cell_count; i++) {
        uint64_t end = search_cell_end(cells[i]);

        ranges[count++] = (struct search_cell_range){cells[i] - (end - 1), cells[i] + (end - 1)};
        for (int level = 0; cells[i] != SEARCH_CELL_OUTSIDE && search_level_end(level) > end;
             level += SEARCH_LEVEL_STEP) {
            uint64_t above = search_level_end(level);
            uint64_t cell = (cells[i] & (~above + 1)) | above;

            if (cell != above_before[level])
                ranges[count++] = (struct search_cell_range){cell, cell};
            above_before[level] = cell;
        }
    }
    ranges_sort(ranges, count);
    for (size_t i = 0; i < count; i++) {
        /* one that begins next to it saves another seek, for one number more at most */
        if (kept && ranges[i].first <= ranges[kept - 1].last + 2)
            ranges[kept - 1].last = MAX(ranges[kept - 1].last, ranges[i].last);
        else
            ranges[kept++] = ranges[i];
    }
    return kept;
}
