/* Where things are: distance, containment, area and validity of GeoJSON values. Each function is
 * there twice, for containers whose coordinates are on the Earth and for those in a plane.
 *
 * What is no valid figure is undefined, but for those functions that ask whether it is one. */
#include "query/function/functions_private.h"
#include "query/value/shapes.h"

#include <math.h>

enum { ASK_WORK = 8 }; /* units for each position of both shapes, where neither is a point */

static const struct search_rules earth = {.surface = SEARCH_EARTH},
                                 plane = {.surface = SEARCH_PLANE};

/* NULL: it is no shape. */
static bool shape_of(const struct document_value *value, const struct search_rules *rules,
                     struct query_context *context, struct search_shape **ret_shape,
                     struct error *err)
{
    const struct search_reason *reason;

    return query_shape_get(context, value, rules, ret_shape, &reason, err);
}

/* Which of two arguments are taken as points of the Earth by themselves, where they are. */
enum points { POINTS_FIRST, POINTS_EITHER, POINTS_BOTH };

struct pair {
    bool is_point[2];
    struct search_position points[2];
    struct search_shape *shapes[2]; /* NULL: it is a point, or */
    bool broken;                    /* one of them is none */
};

/* Both arguments, and the work of asking them. */
static bool pair_get(const struct document_value *arguments, const struct search_rules *rules,
                     enum points points, struct query_context *context, struct pair *pair,
                     struct error *err)
{
    size_t positions = 0;

    *pair = (struct pair){0};
    for (size_t i = 0; i < 2; i++) {
        bool may =
            rules->surface == SEARCH_EARTH &&
            (i == 0 || points == POINTS_BOTH || (points == POINTS_EITHER && !pair->is_point[0]));

        pair->is_point[i] = may && search_point_read(&arguments[i], rules, &pair->points[i]);
        if (pair->is_point[i]
                ? !query_work(context, QUERY_FIGURE_WORK(arguments[i].document.len), err)
                : !shape_of(&arguments[i], rules, context, &pair->shapes[i], err))
            return false;
        pair->broken |= !pair->is_point[i] && !pair->shapes[i];
        positions += pair->shapes[i] ? search_shape_positions(pair->shapes[i]) : 1;
    }
    return pair->broken || query_work(context, ASK_WORK * positions, err);
}

/* --- Functions ------------------------------------------------------------------------------- */

static bool area(const struct document_value *arguments, const struct search_rules *rules,
                 struct query_context *context, struct document_value *ret_value, struct error *err)
{
    struct search_shape *shape;

    if (!shape_of(&arguments[0], rules, context, &shape, err))
        return false;
    if (shape)
        *ret_value = document_double(search_shape_area(shape));
    return true;
}

static bool distance(const struct document_value *arguments, const struct search_rules *rules,
                     struct query_context *context, struct document_value *ret_value,
                     struct error *err)
{
    struct pair pair;

    if (!pair_get(arguments, rules, POINTS_BOTH, context, &pair, err))
        return false;
    if (pair.broken)
        return true;
    if (pair.is_point[0] && pair.is_point[1])
        *ret_value = document_double(search_points_distance(pair.points[0], pair.points[1], rules));
    else if (pair.is_point[0] || pair.is_point[1])
        *ret_value = document_double(search_shape_distance_to(pair.shapes[pair.is_point[0]],
                                                              pair.points[!pair.is_point[0]]));
    else
        *ret_value = document_double(search_shape_distance(pair.shapes[0], pair.shapes[1]));
    return true;
}

static bool within(const struct document_value *arguments, const struct search_rules *rules,
                   struct query_context *context, struct document_value *ret_value,
                   struct error *err)
{
    struct pair pair;

    if (!pair_get(arguments, rules, POINTS_FIRST, context, &pair, err))
        return false;
    if (!pair.broken)
        *ret_value =
            document_bool(pair.is_point[0] ? search_shape_has(pair.shapes[1], pair.points[0])
                                           : search_shape_within(pair.shapes[0], pair.shapes[1]));
    return true;
}

static bool intersects(const struct document_value *arguments, const struct search_rules *rules,
                       struct query_context *context, struct document_value *ret_value,
                       struct error *err)
{
    struct pair pair;

    if (!pair_get(arguments, rules, POINTS_EITHER, context, &pair, err))
        return false;
    if (pair.broken)
        return true;
    if (pair.is_point[0] || pair.is_point[1])
        *ret_value = document_bool(
            search_shape_has(pair.shapes[pair.is_point[0]], pair.points[!pair.is_point[0]]));
    else
        *ret_value = document_bool(search_shape_intersects(pair.shapes[0], pair.shapes[1]));
    return true;
}

static bool is_valid(const struct document_value *arguments, const struct search_rules *rules,
                     struct query_context *context, struct document_value *ret_value,
                     struct error *err)
{
    struct search_shape *shape;

    if (!shape_of(&arguments[0], rules, context, &shape, err))
        return false;
    *ret_value = document_bool(shape != NULL);
    return true;
}

/* {"valid": false, "reason": "..."} */
static bool is_valid_detailed(const struct document_value *arguments,
                              const struct search_rules *rules, struct query_context *context,
                              struct document_value *ret_value, struct error *err)
{
    const struct search_reason *reason;
    struct search_shape *shape;
    size_t mark, begin;

    if (!query_shape_get(context, &arguments[0], rules, &shape, &reason, err))
        return false;
    mark = query_build_begin(context);
    begin = document_begin(&context->scratch);
    document_append_bool(&context->scratch, SLICE("valid"), shape != NULL);
    if (!shape)
        document_append_string(&context->scratch, SLICE("reason"), slice_of_text(reason->text));
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

#define ON(surface, name)                                                                          \
    QUERY_FUNCTION(surface##_##name)                                                               \
    {                                                                                              \
        return name(arguments, &surface, context, ret_value, err);                                 \
    }

ON(earth, area)
ON(earth, distance)
ON(earth, intersects)
ON(earth, is_valid)
ON(earth, is_valid_detailed)
ON(earth, within)
ON(plane, area)
ON(plane, distance)
ON(plane, intersects)
ON(plane, is_valid)
ON(plane, is_valid_detailed)
ON(plane, within)

/* Of two points. The work is that of the distance itself, so that what a query costs does not
 * depend on how close its rows are to a limit. */
static bool earth_distance_side(const struct document_value *arguments, double number,
                                struct query_context *context, int *ret_side, struct error *err)
{
    struct search_position a, b;
    double least, most;

    *ret_side = 0;
    if (!search_point_read(&arguments[0], &earth, &a) ||
        !search_point_read(&arguments[1], &earth, &b))
        return true;
    search_points_bounds(a, b, &least, &most);
    if (!(number < least || number > most))
        return true;
    *ret_side = number < least ? 1 : -1;
    return query_work(context,
                      QUERY_FIGURE_WORK(arguments[0].document.len) +
                          QUERY_FIGURE_WORK(arguments[1].document.len) + 2 * ASK_WORK,
                      err);
}

/* --- What is implied ------------------------------------------------------------------------- */

/* Whichever side is a path: what is there comes so close to what is given on the other. */
static const struct query_implied *near(const struct query_operand *operands,
                                        const struct search_rules *rules, double most,
                                        const struct query_implying *implying)
{
    for (size_t i = 0; i < 2; i++) {
        const struct query_operand *path = &operands[i], *given = &operands[1 - i];
        struct query_region region = {.figure = given->constant, .rules = *rules, .distance = most};

        if (path->is_path && given->constant)
            return query_implied_region(implying, path, &region);
    }
    return NULL;
}

static const struct query_implied *earth_touch(const struct query_operand *operands,
                                               size_t count UNUSED,
                                               const struct query_implying *implying)
{
    return near(operands, &earth, 0, implying);
}

static const struct query_implied *plane_touch(const struct query_operand *operands,
                                               size_t count UNUSED,
                                               const struct query_implying *implying)
{
    return near(operands, &plane, 0, implying);
}

static const struct query_implied *earth_near(const struct query_operand *operands,
                                              size_t count UNUSED, double most,
                                              const struct query_implying *implying)
{
    return most < 0 ? query_implied_never(implying) : near(operands, &earth, most, implying);
}

static const struct query_implied *plane_near(const struct query_operand *operands,
                                              size_t count UNUSED, double most,
                                              const struct query_implying *implying)
{
    return most < 0 ? query_implied_never(implying) : near(operands, &plane, most, implying);
}

/* What asks one figure makes its shape for that alone. */
#define SPATIAL(text, count, surface, function, ...)                                               \
    {                                                                                              \
        .name = text, .arguments_min = count, .arguments_max = count, .stability = QUERY_STABLE,   \
        .evaluate = surface##_##function, .costly = count == 1, __VA_ARGS__                        \
    }

static const struct query_function plane_functions[] = {
    SPATIAL("ST_AREA", 1, plane, area),
    SPATIAL("ST_DISTANCE", 2, plane, distance, .imply_most = plane_near),
    SPATIAL("ST_INTERSECTS", 2, plane, intersects, .imply = plane_touch),
    SPATIAL("ST_ISVALID", 1, plane, is_valid),
    SPATIAL("ST_ISVALIDDETAILED", 1, plane, is_valid_detailed),
    SPATIAL("ST_WITHIN", 2, plane, within, .imply = plane_touch),
};

#define IN_PLANE(at) .in_plane = &plane_functions[at]

static const struct query_function functions[] = {
    SPATIAL("ST_AREA", 1, earth, area, IN_PLANE(0)),
    SPATIAL("ST_DISTANCE", 2, earth, distance, .imply_most = earth_near,
            .side = earth_distance_side, IN_PLANE(1)),
    SPATIAL("ST_INTERSECTS", 2, earth, intersects, .imply = earth_touch, IN_PLANE(2)),
    SPATIAL("ST_ISVALID", 1, earth, is_valid, IN_PLANE(3)),
    SPATIAL("ST_ISVALIDDETAILED", 1, earth, is_valid_detailed, IN_PLANE(4)),
    SPATIAL("ST_WITHIN", 2, earth, within, .imply = earth_touch, IN_PLANE(5)),
};

const struct query_function_family query_functions_spatial = {functions, ARRAY_LEN(functions)};
