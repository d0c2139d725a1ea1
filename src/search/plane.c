/* Shapes in a plane, by GEOS. Each has a handle of its own, so that nothing is shared between
 * threads. What GEOS says of broken input goes to the reason, not to standard error.
 *
 * Cells are quarters of the box, numbered along a Z curve. Covering a shape begins with the
 * smallest cell that has all of it and cuts the largest cell again while there is room for more,
 * keeping the quarters that the shape reaches. Quarters are taken a little larger than they are, by
 * more than what rounding may do to the cell of a point and less than the smallest cell. */
#include "base/memory.h"
#include "search/shape_private.h"

#include <geos_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELL_LEVELS = 26, /* the smallest: a sixty-millionth of the box */
};

static const double CELL_SLACK = 1e-9; /* of the sides of the box */

struct search_plane {
    GEOSContextHandle_t geos;
    GEOSGeometry *geometry;
    const GEOSPreparedGeometry *prepared; /* made when first asked for */
    struct search_reason message;
};

static void message_note(const char *message, void *self)
{
    struct search_reason *reason = self;

    snprintf(reason->text, sizeof reason->text, "%s", message);
}

/* --- Making ---------------------------------------------------------------------------------- */

static GEOSCoordSequence *sequence_make(struct search_plane *plane,
                                        const struct search_figure *figure,
                                        const struct search_part *part)
{
    GEOSCoordSequence *sequence = GEOSCoordSeq_create_r(plane->geos, part->count, 2);

    for (uint32_t i = 0; sequence && i < part->count; i++)
        (void)GEOSCoordSeq_setXY_r(plane->geos, sequence, i, figure->positions[part->first + i].x,
                                   figure->positions[part->first + i].y);
    return sequence;
}

/* A ring and its holes, from *at on. NULL: GEOS does not take it. */
static GEOSGeometry *polygon_make(struct search_plane *plane, const struct search_figure *figure,
                                  size_t *at)
{
    GEOSGeometry *shell, **holes = NULL, *polygon = NULL;
    size_t first = *at, count = 0;
    bool whole = true;

    for ((*at)++; *at < figure->part_count && figure->parts[*at].kind == SEARCH_HOLE; (*at)++)
        count++;
    shell = GEOSGeom_createLinearRing_r(plane->geos,
                                        sequence_make(plane, figure, &figure->parts[first]));
    holes = memory_alloc_zero(memory_array_size(count + 1, sizeof *holes));
    for (size_t i = 0; i < count; i++) {
        holes[i] = GEOSGeom_createLinearRing_r(
            plane->geos, sequence_make(plane, figure, &figure->parts[first + 1 + i]));
        whole = whole && holes[i];
    }
    if (shell && whole)
        polygon = GEOSGeom_createPolygon_r(plane->geos, shell, holes, (unsigned)count);
    for (size_t i = 0; !polygon && i < count; i++)
        if (holes[i])
            GEOSGeom_destroy_r(plane->geos, holes[i]);
    if (!polygon && shell)
        GEOSGeom_destroy_r(plane->geos, shell);
    memory_free(holes);
    return polygon;
}

static GEOSGeometry *part_make(struct search_plane *plane, const struct search_figure *figure,
                               size_t *at)
{
    const struct search_part *part = &figure->parts[*at];
    const struct search_position *from = &figure->positions[part->first];

    if (part->kind == SEARCH_RING)
        return polygon_make(plane, figure, at);
    (*at)++;
    return part->kind == SEARCH_POINT
               ? GEOSGeom_createPointFromXY_r(plane->geos, from->x, from->y)
               : GEOSGeom_createLineString_r(plane->geos, sequence_make(plane, figure, part));
}

/* Several parts are one: GEOS knows what a collection of polygons covers once they are united. */
static GEOSGeometry *united(struct search_plane *plane, GEOSGeometry **parts, size_t count)
{
    GEOSGeometry *all, *one;

    if (count == 1)
        return parts[0];
    all = GEOSGeom_createCollection_r(plane->geos, GEOS_GEOMETRYCOLLECTION, parts, (unsigned)count);
    if (!all)
        return NULL;
    one = GEOSUnaryUnion_r(plane->geos, all);
    GEOSGeom_destroy_r(plane->geos, all);
    return one;
}

static bool is_valid(struct search_plane *plane, const GEOSGeometry *part,
                     struct search_reason *ret_reason)
{
    char *reason;

    if (GEOSGeomTypeId_r(plane->geos, part) != GEOS_POLYGON ||
        GEOSisValid_r(plane->geos, part) == 1)
        return true;
    reason = GEOSisValidReason_r(plane->geos, part);
    snprintf(ret_reason->text, sizeof ret_reason->text, "The Polygon input is not valid: %.150s.",
             reason ? reason : "it is not known why");
    GEOSFree_r(plane->geos, reason);
    return false;
}

static bool geometry_make(struct search_plane *plane, const struct search_figure *figure,
                          struct search_reason *ret_reason)
{
    GEOSGeometry **parts =
        memory_alloc_zero(memory_array_size(figure->part_count, sizeof(GEOSGeometry *)));
    size_t count = 0, at = 0;
    bool valid = true;

    while (valid && at < figure->part_count) {
        parts[count] = part_make(plane, figure, &at);
        valid = parts[count] && is_valid(plane, parts[count], ret_reason);
        if (!parts[count])
            snprintf(ret_reason->text, sizeof ret_reason->text, "The input is not valid: %.150s.",
                     plane->message.text);
        else
            count++;
    }
    if (valid)
        plane->geometry = united(plane, parts, count);
    for (size_t i = 0; !valid && i < count; i++)
        GEOSGeom_destroy_r(plane->geos, parts[i]);
    memory_free(parts);
    if (valid && !plane->geometry)
        snprintf(ret_reason->text, sizeof ret_reason->text, "The input is not valid: %.150s.",
                 plane->message.text);
    return plane->geometry != NULL;
}

struct search_plane *search_plane_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason)
{
    struct search_plane *plane = MEMORY_NEW(struct search_plane);

    plane->geos = GEOS_init_r();
    (void)GEOSContext_setErrorMessageHandler_r(plane->geos, message_note, &plane->message);
    (void)GEOSContext_setNoticeMessageHandler_r(plane->geos, message_note, &plane->message);
    if (geometry_make(plane, figure, ret_reason))
        return plane;
    search_plane_free(plane);
    return NULL;
}

void search_plane_free(struct search_plane *plane)
{
    if (!plane)
        return;
    if (plane->prepared)
        GEOSPreparedGeom_destroy_r(plane->geos, plane->prepared);
    if (plane->geometry)
        GEOSGeom_destroy_r(plane->geos, plane->geometry);
    GEOS_finish_r(plane->geos);
    memory_free(plane);
}

/* --- Asking ---------------------------------------------------------------------------------- */

static const GEOSPreparedGeometry *prepared(struct search_plane *plane)
{
    if (!plane->prepared)
        plane->prepared = GEOSPrepare_r(plane->geos, plane->geometry);
    return plane->prepared;
}

/* GEOS measures between the edges of what is prepared, which one shape inside the other is not
 * seen by. */
double search_plane_distance(struct search_plane *a, struct search_plane *b)
{
    double distance = 0;

    if (!search_plane_intersects(a, b))
        (void)GEOSPreparedDistance_r(b->geos, prepared(b), a->geometry, &distance);
    return distance;
}

bool search_plane_within(struct search_plane *inner, struct search_plane *outer)
{
    return GEOSPreparedCovers_r(outer->geos, prepared(outer), inner->geometry) == 1;
}

bool search_plane_intersects(struct search_plane *a, struct search_plane *b)
{
    return GEOSPreparedIntersects_r(b->geos, prepared(b), a->geometry) == 1;
}

double search_plane_area(struct search_plane *plane)
{
    double area = 0;

    (void)GEOSArea_r(plane->geos, plane->geometry, &area);
    return area;
}

/* --- Cells ----------------------------------------------------------------------------------- */

struct cell {
    uint32_t x, y; /* of 2^level in each direction */
    int level;
};

struct covering {
    struct search_plane *plane;
    const struct search_grid *grid;
    double distance;
    struct cell cells[SEARCH_CELLS_MAX];
    size_t count;
};

static uint64_t cell_number(struct cell cell)
{
    uint64_t number = 0;

    for (int i = cell.level - 1; i >= 0; i--)
        number = number << 2 | (cell.y >> i & 1) << 1 | (cell.x >> i & 1);
    return (number << 1 | 1) << (2 * (SEARCH_LEVELS - cell.level));
}

/* Which of the smallest cells a coordinate is in, along one side. */
static uint32_t place(double value, double min, double max)
{
    double part = (value - min) / (max - min) * (1u << CELL_LEVELS);

    return (uint32_t)fmin(fmax(floor(part), 0), (1u << CELL_LEVELS) - 1);
}

static bool cell_is_reached(struct covering *c, struct cell cell)
{
    const struct search_grid *grid = c->grid;
    double width = (grid->x_max - grid->x_min), height = (grid->y_max - grid->y_min);
    double side = ldexp(1, -cell.level);
    GEOSContextHandle_t geos = c->plane->geos;
    GEOSGeometry *box =
        GEOSGeom_createRectangle_r(geos, grid->x_min + width * (cell.x * side - CELL_SLACK),
                                   grid->y_min + height * (cell.y * side - CELL_SLACK),
                                   grid->x_min + width * ((cell.x + 1) * side + CELL_SLACK),
                                   grid->y_min + height * ((cell.y + 1) * side + CELL_SLACK));
    bool reached;

    if (!box)
        return true; /* sides that no number tells apart */
    reached = GEOSPreparedIntersects_r(geos, prepared(c->plane), box) != 0 ||
              (c->distance > 0 &&
               GEOSPreparedDistanceWithin_r(geos, prepared(c->plane), box, c->distance) != 0);
    GEOSGeom_destroy_r(geos, box);
    return reached;
}

/* The smallest cell, of a level that shapes have, with both corners. */
static struct cell cell_around(uint32_t x_min, uint32_t y_min, uint32_t x_max, uint32_t y_max)
{
    struct cell cell = {x_min, y_min, CELL_LEVELS};
    uint32_t other = (x_min ^ x_max) | (y_min ^ y_max);

    while (other || cell.level % SEARCH_LEVEL_STEP) {
        other >>= 1;
        cell.x >>= 1;
        cell.y >>= 1;
        cell.level--;
    }
    return cell;
}

/* Puts what the shape reaches of a cell, a step of levels down, in its place. False: that would be
 * too many. */
static bool cell_cut(struct covering *c, size_t which, size_t max)
{
    enum { SIDE = 1 << SEARCH_LEVEL_STEP };
    struct cell from = c->cells[which], parts[SIDE * SIDE];
    size_t count = 0;

    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        struct cell cell = {from.x * SIDE + i % SIDE, from.y * SIDE + i / SIDE,
                            from.level + SEARCH_LEVEL_STEP};

        if (cell_is_reached(c, cell))
            parts[count++] = cell;
    }
    if (c->count - 1 + count > max)
        return false;
    c->cells[which] = c->cells[--c->count];
    memcpy(c->cells + c->count, parts, count * sizeof *parts);
    c->count += count;
    return true;
}

static void cover(struct covering *c, size_t max)
{
    bool whole[SEARCH_CELLS_MAX] = {false}; /* by level: no cell of it can be cut */

    for (;;) {
        size_t largest = c->count;

        for (size_t i = 0; i < c->count; i++)
            if (c->cells[i].level < CELL_LEVELS && !whole[c->cells[i].level] &&
                (largest == c->count || c->cells[i].level < c->cells[largest].level))
                largest = i;
        if (largest == c->count)
            return;
        if (!cell_cut(c, largest, max))
            whole[c->cells[largest].level] = true;
    }
}

size_t search_plane_cells(struct search_plane *plane, const struct search_grid *grid,
                          double distance, size_t max, uint64_t cells[SEARCH_CELLS_MAX])
{
    struct covering c = {.plane = plane, .grid = grid, .distance = distance};
    GEOSContextHandle_t geos = plane->geos;
    double x_min, y_min, x_max, y_max;
    size_t count = 0;

    if (GEOSGeom_getXMin_r(geos, plane->geometry, &x_min) != 1 ||
        GEOSGeom_getYMin_r(geos, plane->geometry, &y_min) != 1 ||
        GEOSGeom_getXMax_r(geos, plane->geometry, &x_max) != 1 ||
        GEOSGeom_getYMax_r(geos, plane->geometry, &y_max) != 1)
        return 0;
    x_min -= distance;
    y_min -= distance;
    x_max += distance;
    y_max += distance;
    if (!(x_min >= grid->x_min && y_min >= grid->y_min && x_max <= grid->x_max &&
          y_max <= grid->y_max))
        cells[count++] = SEARCH_CELL_OUTSIDE;
    if (x_min > grid->x_max || y_min > grid->y_max || x_max < grid->x_min || y_max < grid->y_min)
        return count;
    c.cells[0] =
        cell_around(place(x_min, grid->x_min, grid->x_max), place(y_min, grid->y_min, grid->y_max),
                    place(x_max, grid->x_min, grid->x_max), place(y_max, grid->y_min, grid->y_max));
    c.count = 1;
    if (x_min < x_max || y_min < y_max) /* a point is in one cell */
        cover(&c, max);
    for (size_t i = 0; i < c.count; i++)
        cells[count++] = cell_number(c.cells[i]);
    return count;
}
