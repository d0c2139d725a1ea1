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

/* Both arguments, or NULL for the first; and the work of asking them. */
static bool shapes_of(const struct document_value *arguments, const struct search_rules *rules,
                      struct query_context *context, struct search_shape *ret_shapes[2],
                      struct error *err)
{
    size_t positions;

    if (!shape_of(&arguments[0], rules, context, &ret_shapes[0], err) ||
        !shape_of(&arguments[1], rules, context, &ret_shapes[1], err))
        return false;
    if (!ret_shapes[0] || !ret_shapes[1]) {
        ret_shapes[0] = NULL;
        return true;
    }
    positions = search_shape_positions(ret_shapes[0]) + search_shape_positions(ret_shapes[1]);
    return query_work(context, ASK_WORK * positions, err);
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
    struct search_shape *shapes[2];

    if (!shapes_of(arguments, rules, context, shapes, err))
        return false;
    if (shapes[0])
        *ret_value = document_double(search_shape_distance(shapes[0], shapes[1]));
    return true;
}

static bool within(const struct document_value *arguments, const struct search_rules *rules,
                   struct query_context *context, struct document_value *ret_value,
                   struct error *err)
{
    struct search_shape *shapes[2];

    if (!shapes_of(arguments, rules, context, shapes, err))
        return false;
    if (shapes[0])
        *ret_value = document_bool(search_shape_within(shapes[0], shapes[1]));
    return true;
}

static bool intersects(const struct document_value *arguments, const struct search_rules *rules,
                       struct query_context *context, struct document_value *ret_value,
                       struct error *err)
{
    struct search_shape *shapes[2];

    if (!shapes_of(arguments, rules, context, shapes, err))
        return false;
    if (shapes[0])
        *ret_value = document_bool(search_shape_intersects(shapes[0], shapes[1]));
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

#define SPATIAL(text, count, surface, function, ...)                                               \
    {                                                                                              \
        .name = text, .arguments_min = count, .arguments_max = count, .stability = QUERY_STABLE,   \
        .evaluate = surface##_##function, .costly = true, __VA_ARGS__                              \
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
    SPATIAL("ST_DISTANCE", 2, earth, distance, .imply_most = earth_near, IN_PLANE(1)),
    SPATIAL("ST_INTERSECTS", 2, earth, intersects, .imply = earth_touch, IN_PLANE(2)),
    SPATIAL("ST_ISVALID", 1, earth, is_valid, IN_PLANE(3)),
    SPATIAL("ST_ISVALIDDETAILED", 1, earth, is_valid_detailed, IN_PLANE(4)),
    SPATIAL("ST_WITHIN", 2, earth, within, .imply = earth_touch, IN_PLANE(5)),
};

const struct query_function_family query_functions_spatial = {functions, ARRAY_LEN(functions)};
