/* How far to look for the first rows by distance: an index has its entries along a curve that fills
 * the surface, so as many of them as rows are wanted, to both sides of where the point lies, tell
 * how densely things lie around it: a stretch of the curve is an area. Whether there are enough
 * within the circle that follows is seen when it was read; if not, a wider one is tried.
 *
 * As with estimates the first physical partition that is asked is looked at, and taken for what the
 * others have: that is a function of what is committed, and never dear. */
#include "query/access/access_private.h"

#include "query/value/shapes.h"

#include <math.h>

enum {
    SIDE_MIN = 8,   /* entries to either side */
    SIDE_MAX = 256, /* and at most */
};

#define ROOM 2.0             /* rows that are hoped for, for each that is wanted */
#define NEAREST_PART 1e-9    /* of the surface's width: no circle is smaller */
#define EARTH_FACE_M2 8.5e13 /* square metres of a sixth of the Earth */
#define EARTH_WIDTH_M 1e7
#define CELLS_OF_FACE 0x1p61 /* numbers of the cells in one face, or in the box of a plane */

/* The entries to one side of the point. */
struct side {
    size_t count;
    uint64_t cell; /* of the last */
    bool all;      /* there are no more */
};

static bool side_walk(const struct view *view, const struct cursor_request *request, size_t max,
                      struct side *ret_side, struct error *err)
{
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_hit hit;
    bool more = true;

    *ret_side = (struct side){0};
    if (!cursor_open(view, request, &cursor, err))
        return false;
    while (ret_side->count < max && cursor_entries(cursor) < 2 * SIDE_MAX) {
        if (!cursor_next(cursor, &hit, &more, err))
            return false;
        if (!more)
            break;
        if (!index_cell_read(hit.value, &ret_side->cell))
            return error_set(err, ERROR_STORE_CORRUPT, "an entry of a spatial index has no cell");
        ret_side->count++;
    }
    ret_side->all = !more;
    return true;
}

/* The physical partitions that are asked. */
static size_t spans_count(const struct query_filter *filter)
{
    size_t count = 0, first;

    for (size_t i = 0; i < filter->targets->count; i++)
        count += query_spans_overlap(filter->spans, filter->targets->list[i].range, &first);
    return MAX(count, (size_t)1);
}

/* Of the curve, for each entry. */
static double stretch_of(const struct side *side, uint64_t cell)
{
    uint64_t stretch = side->cell > cell ? side->cell - cell : cell - side->cell;

    return side->count ? (double)stretch / CELLS_OF_FACE / (double)side->count : INFINITY;
}

/* The side on which there are more counts: on the other the curve may have left what is there. */
static double radius_of(const struct query_filter *filter, const struct search_grid *grid,
                        uint64_t cell, const struct side *before, const struct side *behind)
{
    bool earth = grid->surface == SEARCH_EARTH;
    double width =
        earth ? EARTH_WIDTH_M : MAX(grid->x_max - grid->x_min, grid->y_max - grid->y_min);
    double face = earth ? EARTH_FACE_M2 : (grid->x_max - grid->x_min) * (grid->y_max - grid->y_min);
    double spans = (double)spans_count(filter), rows = (double)filter->near_rows;
    double area = fmin(stretch_of(before, cell), stretch_of(behind, cell)) * face / spans;

    /* if these are all there are, and too few, nothing is far enough */
    if (before->all && behind->all && (double)(before->count + behind->count) * spans < rows)
        return INFINITY;
    return fmax(sqrt(area * rows * ROOM / M_PI), width * NEAREST_PART);
}

bool query_density_radius(struct query_filter *filter, const struct query_density *density,
                          double *ret_radius)
{
    const struct index_definition *definition = density->definition;
    const struct query_region *region = density->region;
    size_t max = MIN(MAX(filter->near_rows, (uint64_t)SIDE_MIN), (uint64_t)SIDE_MAX), first;
    bool *descending = ARENA_ARRAY(filter->arena, bool, definition->part_count - density->part + 1);
    struct query_ranges all = query_ranges_all(filter->arena);
    struct cursor_range ranges[2];
    struct cursor_request request = {.kind = CURSOR_INDEX,
                                     .path = density->prefix,
                                     .value_count = definition->part_count - density->part,
                                     .descending = descending,
                                     .order = definition->order,
                                     .kept_count = 1,
                                     .values_alone = true,
                                     .range_count = 1,
                                     .logical = filter->targets->list[0].logical};
    uint64_t cells[SEARCH_CELLS_MAX];
    const struct search_reason *reason;
    struct search_shape *shape;
    struct side before, behind;
    struct view *view;
    struct document_value here;
    char text[INDEX_CELL_SIZE];
    bool exact;

    for (size_t i = density->part; i < definition->part_count; i++)
        descending[i - density->part] = definition->parts[i].descending;
    (void)query_spans_overlap(filter->spans, filter->targets->list[0].range, &first);
    if (!query_shape_get(filter->context, region->figure, &region->rules, &shape, &reason,
                         &filter->error) ||
        !query_spans_view(filter->spans, first, &view, &filter->error))
        return false;
    *ret_radius = INFINITY;
    if (!shape || !search_shape_cells(shape, &definition->spatial->grid, cells))
        return true;
    here = index_cell_value(cells[0], text);
    ranges[0] = (struct cursor_range){
        all.list[0].min,
        query_ranges_point(definition->order, &here, &exact, filter->arena).list[0].min};
    ranges[1] = (struct cursor_range){ranges[0].max, all.list[0].max};
    request.ranges = &ranges[1];
    if (!side_walk(view, &request, max, &behind, &filter->error))
        return false;
    request.ranges = &ranges[0];
    request.backwards = true;
    if (!side_walk(view, &request, max, &before, &filter->error))
        return false;
    *ret_radius = radius_of(filter, &definition->spatial->grid, cells[0], &before, &behind);
    return true;
}
