/* GeoJSON is read in one walk. Positions go into one array, so that a polygon of thousands of
 * positions is one allocation that grows, and are counted before they are stored: a document of 2
 * MB that is one polygon is given up at its limit. */
#include "search/figure.h"

#include "document/bson.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { RING_POSITIONS_MIN = 4 };

struct reading {
    const struct search_rules *rules;
    struct arena *arena;
    struct search_reason *reason;
    struct search_position *positions;
    struct search_part *parts;
    size_t position_count, position_room, positions_max, part_count, part_room;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(r->reason->text, sizeof r->reason->text, format, arguments);
    va_end(arguments);
    return false;
}

/* --- Positions ------------------------------------------------------------------------------- */

static bool position_put(struct reading *r, struct search_position position)
{
    if (r->position_count == r->positions_max)
        return refuse(r, "The input is not valid because it has more than %zu points.",
                      r->positions_max);
    if (r->position_count == r->position_room) {
        struct search_position *old = r->positions;

        r->position_room = r->position_room ? 2 * r->position_room : 8;
        r->positions = ARENA_ARRAY(r->arena, struct search_position, r->position_room);
        if (r->position_count)
            memcpy(r->positions, old, r->position_count * sizeof *old);
    }
    r->positions[r->position_count++] = position;
    return true;
}

/* NULL: it is one. */
static const char *position_fault(const struct search_rules *rules, struct search_position position)
{
    if (!isfinite(position.x) || !isfinite(position.y))
        return "Coordinates must be finite numbers.";
    if (rules->surface == SEARCH_PLANE)
        return NULL;
    if (fabs(position.y) > 90)
        return "Latitude values must be between -90 and 90 degrees.";
    if (fabs(position.x) > 180)
        return "Longitude values must be between -180 and 180 degrees.";
    return NULL;
}

/* Two numbers or more; GeoJSON has altitudes and more behind them, which nothing here asks for.
 * pairs: an object of two numbers does as well (MongoDB). */
static const char *numbers_read(const struct search_rules *rules,
                                const struct document_value *value, bool pairs,
                                struct search_position *ret_position)
{
    static const char none[] = "A position must be an array of at least two numbers.";
    struct document_iter iter;
    double numbers[2];
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY && !(pairs && value->type == DOCUMENT_OBJECT))
        return none;
    document_iter_init(&iter, value->document);
    while (count < ARRAY_LEN(numbers) && document_iter_next(&iter)) {
        if (!document_is_number(&iter.value) || !document_to_double(&iter.value, &numbers[count++]))
            return none;
    }
    if (count < ARRAY_LEN(numbers))
        return none;
    *ret_position = (struct search_position){numbers[0], numbers[1]};
    return position_fault(rules, *ret_position);
}

static bool position_read(struct reading *r, const struct document_value *value, bool pairs)
{
    struct search_position position;
    const char *fault = numbers_read(r->rules, value, pairs, &position);

    return fault ? refuse(r, "%s", fault) : position_put(r, position);
}

static bool positions_read(struct reading *r, const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return refuse(r, "Coordinates must be arrays of positions.");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!position_read(r, &iter.value, false))
            return false;
    return true;
}

/* --- Parts ----------------------------------------------------------------------------------- */

static bool part_put(struct reading *r, enum search_part_kind kind, size_t first)
{
    if (r->part_count == SEARCH_PARTS_MAX)
        return refuse(r, "The input is not valid because it has more than %d parts.",
                      SEARCH_PARTS_MAX);
    if (r->part_count == r->part_room) {
        struct search_part *old = r->parts;

        r->part_room = r->part_room ? 2 * r->part_room : 4;
        r->parts = ARENA_ARRAY(r->arena, struct search_part, r->part_room);
        if (r->part_count)
            memcpy(r->parts, old, r->part_count * sizeof *old);
    }
    r->parts[r->part_count++] =
        (struct search_part){kind, (uint32_t)first, (uint32_t)(r->position_count - first)};
    return true;
}

static bool point_read(struct reading *r, const struct document_value *coordinates)
{
    size_t first = r->position_count;

    return position_read(r, coordinates, false) && part_put(r, SEARCH_POINT, first);
}

static bool line_read(struct reading *r, const struct document_value *coordinates)
{
    size_t first = r->position_count;

    if (!positions_read(r, coordinates))
        return false;
    if (r->position_count - first < 2)
        return refuse(r, "The LineString input is not valid because it has fewer than two points.");
    return part_put(r, SEARCH_LINE, first);
}

static bool ring_read(struct reading *r, const struct document_value *coordinates, size_t number)
{
    size_t first = r->position_count;
    const struct search_position *from, *to;

    if (!positions_read(r, coordinates))
        return false;
    if (r->position_count - first < RING_POSITIONS_MIN)
        return refuse(r,
                      "The Polygon input is not valid because the ring number %zu has fewer than "
                      "%d points.",
                      number, RING_POSITIONS_MIN);
    from = &r->positions[first];
    to = &r->positions[r->position_count - 1];
    if (from->x != to->x || from->y != to->y)
        return refuse(r,
                      "The Polygon input is not valid because the start and end points of the ring "
                      "number %zu are not the same. Each ring of a polygon must have the same "
                      "start and end points.",
                      number);
    return part_put(r, number == 1 ? SEARCH_RING : SEARCH_HOLE, first);
}

static bool polygon_read(struct reading *r, const struct document_value *coordinates)
{
    struct document_iter iter;
    size_t number = 0;

    if (coordinates->type != DOCUMENT_ARRAY)
        return refuse(r, "The coordinates of a Polygon must be an array of rings.");
    document_iter_init(&iter, coordinates->document);
    while (document_iter_next(&iter))
        if (!ring_read(r, &iter.value, ++number))
            return false;
    return number ? true : refuse(r, "The Polygon input is not valid because it has no ring.");
}

typedef bool coordinates_read(struct reading *r, const struct document_value *coordinates);

static bool several_read(struct reading *r, const struct document_value *coordinates,
                         coordinates_read *read)
{
    struct document_iter iter;
    size_t count = 0;

    if (coordinates->type != DOCUMENT_ARRAY)
        return refuse(r, "The coordinates of several figures must be an array.");
    document_iter_init(&iter, coordinates->document);
    for (; document_iter_next(&iter); count++)
        if (!read(r, &iter.value))
            return false;
    return count ? true : refuse(r, "The input is not valid because it has no coordinates.");
}

/* --- Figures --------------------------------------------------------------------------------- */

static const struct type {
    const char *name;
    coordinates_read *read;
    bool several, every; /* every: no figure of Cosmos DB */
} types[] = {
    {"Point", point_read, false, false},     {"LineString", line_read, false, false},
    {"Polygon", polygon_read, false, false}, {"MultiPolygon", polygon_read, true, false},
    {"MultiPoint", point_read, true, true},  {"MultiLineString", line_read, true, true},
};

static bool object_read(struct reading *r, struct slice object, size_t depth);

static bool collection_read(struct reading *r, struct slice object, size_t depth)
{
    struct document_value list;
    struct document_iter iter;

    if (depth == SEARCH_COLLECTION_DEPTH_MAX)
        return refuse(r, "Geometry collections are nested more than %d levels deep.",
                      SEARCH_COLLECTION_DEPTH_MAX);
    if (!document_find(object, SLICE("geometries"), &list) || list.type != DOCUMENT_ARRAY)
        return refuse(r, "A GeometryCollection must have an array of geometries.");
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return refuse(r, "A geometry of a GeometryCollection must be an object.");
        if (!object_read(r, iter.value.document, depth + 1))
            return false;
    }
    return true;
}

static bool object_read(struct reading *r, struct slice object, size_t depth)
{
    struct document_value type, coordinates;

    if (!document_find(object, SLICE("type"), &type) || type.type != DOCUMENT_STRING)
        return refuse(r, "The input is not valid because it has no type.");
    if (r->rules->every_type && slice_equal(type.text, SLICE("GeometryCollection")))
        return collection_read(r, object, depth);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!slice_equal(type.text, slice_of_text(types[i].name)) ||
            (types[i].every && !r->rules->every_type))
            continue;
        if (!document_find(object, SLICE("coordinates"), &coordinates))
            return refuse(r, "The %s input is not valid because it has no coordinates.",
                          types[i].name);
        return types[i].several ? several_read(r, &coordinates, types[i].read)
                                : types[i].read(r, &coordinates);
    }
    return refuse(r, "The type '%.*s' is not supported.", (int)MIN(type.text.len, (size_t)60),
                  (const char *)type.text.data);
}

/* A pair of numbers, or an object whose first two properties are numbers (MongoDB's legacy pairs).
 */
static bool is_pair(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && document_is_number(&iter.value);
}

static bool value_read(struct reading *r, const struct document_value *value)
{
    if (value->type != DOCUMENT_OBJECT && !(r->rules->every_type && value->type == DOCUMENT_ARRAY))
        return refuse(r, "The input is not a GeoJSON object.");
    if (r->rules->every_type && is_pair(value))
        return position_read(r, value, true) && part_put(r, SEARCH_POINT, 0);
    if (!object_read(r, value->document, 0))
        return false;
    return r->part_count ? true : refuse(r, "The input is not valid because it has no geometry.");
}

bool search_figure_read(const struct document_value *value, const struct search_rules *rules,
                        struct arena *arena, struct search_figure *ret_figure,
                        struct search_reason *ret_reason)
{
    struct reading r = {.rules = rules,
                        .arena = arena,
                        .reason = ret_reason,
                        .positions_max =
                            rules->every_type ? SEARCH_POSITIONS_MAX_EVERY : SEARCH_POSITIONS_MAX};

    if (!value_read(&r, value))
        return false;
    *ret_figure = (struct search_figure){.rules = *rules,
                                         .positions = r.positions,
                                         .parts = r.parts,
                                         .position_count = r.position_count,
                                         .part_count = r.part_count};
    return true;
}

bool search_point_read(const struct document_value *value, const struct search_rules *rules,
                       struct search_position *ret_position)
{
    struct document_value type, coordinates;

    if (value->type != DOCUMENT_OBJECT && !(rules->every_type && value->type == DOCUMENT_ARRAY))
        return false;
    if (rules->every_type && is_pair(value))
        return !numbers_read(rules, value, true, ret_position);
    return document_find(value->document, SLICE("type"), &type) && type.type == DOCUMENT_STRING &&
           slice_equal(type.text, SLICE("Point")) &&
           document_find(value->document, SLICE("coordinates"), &coordinates) &&
           !numbers_read(rules, &coordinates, false, ret_position);
}
