/* $geoWithin, $geoIntersects and $near. What is given to the first two becomes one GeoJSON value
 * when the filter is compiled, so that a document is asked one of three things: is it within, does
 * it meet, is it so close.
 *
 * With $geometry and $centerSphere positions are on the Earth, which is round to MongoDB: its
 * radius is 6378.1 km. With $box, $polygon and $center they are in a plane, whatever the numbers. A
 * polygon is the smaller side of its ring, unless its crs asks for strict winding. */
#include "document/bson.h"
#include "front/mongo/match/match_private.h"
#include "query/value/shapes.h"

#include <math.h>

enum { ASK_WORK = 8 }; /* units for each position */

static const struct search_rules earth = {.surface = SEARCH_EARTH,
                                          .every_type = true,
                                          .smaller = true,
                                          .round = true},
                                 strict = {.surface = SEARCH_EARTH,
                                           .every_type = true,
                                           .round = true},
                                 plane = {.surface = SEARCH_PLANE, .every_type = true};

static struct match_node *refuse(struct match_parse *parse, const char *words)
{
    mongo_error_set(parse->err, MONGO_BAD_VALUE, "%s", words);
    return NULL;
}

/* Is it a shape? Found out here, so that no filter is without an answer. */
static bool shape_check(struct match_parse *parse, const struct document_value *value,
                        const struct search_rules *rules)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(search_shape_free) struct search_shape *shape = NULL;
    struct search_reason reason = {""};
    struct search_figure figure;

    if (search_figure_read(value, rules, arena, &figure, &reason))
        shape = search_shape_new(&figure, &reason);
    return shape || mongo_error_set(parse->err, MONGO_BAD_VALUE, "%s", reason.text);
}

static bool is_area(struct slice geometry)
{
    struct document_value type;

    return document_find(geometry, SLICE("type"), &type) && type.type == DOCUMENT_STRING &&
           (slice_equal(type.text, SLICE("Polygon")) ||
            slice_equal(type.text, SLICE("MultiPolygon")));
}

/* {crs: {type: "name", properties: {name: ...}}}; EPSG:4326 by whichever name is what all have. */
static bool crs_read(struct match_parse *parse, struct slice geometry,
                     const struct search_rules **ret_rules)
{
    static const char *const usual[] = {"urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"};
    struct document_value crs, properties, name;

    *ret_rules = &earth;
    if (!document_find(geometry, SLICE("crs"), &crs))
        return true;
    if (crs.type != DOCUMENT_OBJECT ||
        !document_find(crs.document, SLICE("properties"), &properties) ||
        properties.type != DOCUMENT_OBJECT ||
        !document_find(properties.document, SLICE("name"), &name) || name.type != DOCUMENT_STRING)
        return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                               "GeoJSON CRS must be an object with a "
                               "named property");
    if (slice_equal(name.text, SLICE("urn:x-mongodb:crs:strictwinding:EPSG:4326"))) {
        *ret_rules = &strict;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        if (slice_equal(name.text, slice_of_text(usual[i])))
            return true;
    return mongo_error_set(parse->err, MONGO_BAD_VALUE, "Unknown CRS name: %.*s",
                           (int)MIN(name.text.len, (size_t)100), (const char *)name.text.data);
}

static struct match_node *node_make(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *figure,
                                    const struct search_rules *rules, enum match_geo how)
{
    struct match_node *node = match_node_new(parse, MATCH_GEO, path);

    if (!shape_check(parse, figure, rules))
        return NULL;
    node->geo.how = how;
    node->geo.rules = rules;
    node->value = *figure;
    node->value.document = arena_copy(parse->build->arena, figure->document);
    return node;
}

static struct match_node *geometry_parse(struct match_parse *parse, const struct match_path *path,
                                         const struct document_value *value, enum match_geo how)
{
    const struct search_rules *rules;

    if (value->type != DOCUMENT_OBJECT)
        return refuse(parse, "$geometry must be an object");
    if (!crs_read(parse, value->document, &rules))
        return NULL;
    if (how == MATCH_GEO_WITHIN && !is_area(value->document))
        return refuse(parse, "$geoWithin not supported with provided geometry: it takes a Polygon "
                             "or MultiPolygon");
    return node_make(parse, path, value, rules, how);
}

/* --- In a plane ------------------------------------------------------------------------------ */

static bool pair_read(const struct document_value *value, double ret_pair[2])
{
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY && value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (count == 2 || !document_is_number(&iter.value) ||
            !document_to_double(&iter.value, &ret_pair[count++]))
            return false;
    }
    return count == 2;
}

static void position_append(struct buf *buf, uint32_t at, double x, double y)
{
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_array_begin(buf, document_index_key(at, index));

    document_append_double(buf, SLICE("0"), x);
    document_append_double(buf, SLICE("1"), y);
    document_end(buf, begin);
}

/* A polygon of corners, the first of which is put at the end again. */
static struct match_node *ring_make(struct match_parse *parse, const struct match_path *path,
                                    const double (*corners)[2], size_t count)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin, rings, ring;
    struct document_value figure;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("type"), SLICE("Polygon"));
    rings = document_append_array_begin(&buf, SLICE("coordinates"));
    ring = document_append_array_begin(&buf, SLICE("0"));
    for (size_t i = 0; i <= count; i++)
        position_append(&buf, (uint32_t)i, corners[i % count][0], corners[i % count][1]);
    document_end(&buf, ring);
    document_end(&buf, rings);
    document_end(&buf, begin);
    figure = document_object(buf_slice(&buf));
    return node_make(parse, path, &figure, &plane, MATCH_GEO_WITHIN);
}

static struct match_node *box_parse(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *value)
{
    struct document_value first, second;
    double a[2], b[2];

    if (value->type != DOCUMENT_ARRAY || document_count(value->document) != 2 ||
        !document_find_index(value->document, 0, &first) ||
        !document_find_index(value->document, 1, &second) || !pair_read(&first, a) ||
        !pair_read(&second, b))
        return refuse(parse, "$box takes two points of two numbers each");
    return ring_make(parse, path,
                     (const double[][2]){{a[0], a[1]}, {b[0], a[1]}, {b[0], b[1]}, {a[0], b[1]}},
                     4);
}

static struct match_node *polygon_parse(struct match_parse *parse, const struct match_path *path,
                                        const struct document_value *value)
{
    size_t count = value->type == DOCUMENT_ARRAY || value->type == DOCUMENT_OBJECT
                       ? document_count(value->document)
                       : 0;
    double(*corners)[2] = NULL;
    struct document_iter iter;
    size_t at = 0;

    if (count < 3)
        return refuse(parse, "Polygon must have at least 3 points");
    if (count > SEARCH_POSITIONS_MAX_EVERY)
        return refuse(parse, "Polygon has too many points");
    corners = arena_alloc(parse->build->arena, count * sizeof *corners);
    document_iter_init(&iter, value->document);
    while (at < count && document_iter_next(&iter))
        if (!pair_read(&iter.value, corners[at++]))
            return refuse(parse, "$polygon takes points of two numbers each");
    return ring_make(parse, path, (const double(*)[2])corners, count);
}

/* [[x, y], radius]; of $centerSphere in radians. */
static struct match_node *center_parse(struct match_parse *parse, const struct match_path *path,
                                       const struct document_value *value, bool sphere)
{
    struct document_value middle, radius;
    struct match_node *node;
    double pair[2], far;

    if (value->type != DOCUMENT_ARRAY || document_count(value->document) != 2 ||
        !document_find_index(value->document, 0, &middle) ||
        !document_find_index(value->document, 1, &radius) || !pair_read(&middle, pair))
        return refuse(parse, "$center and $centerSphere take a point and a radius");
    if (!document_is_number(&radius) || !document_to_double(&radius, &far) || !(far >= 0))
        return refuse(parse, "radius must be a non-negative number");
    node = node_make(parse, path, &middle, sphere ? &earth : &plane, MATCH_GEO_NEAR);
    if (node)
        node->geo.distance = sphere ? far * SEARCH_RADIUS_ROUND : far;
    return node;
}

/* --- Operators ------------------------------------------------------------------------------- */

const struct match_node *match_parse_geo(struct match_parse *parse, const struct match_path *path,
                                         struct slice name, const struct document_value *value)
{
    bool within = !slice_equal(name, SLICE("$geoIntersects"));
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return refuse(parse, "a geospatial operator takes an object");
    document_iter_init(&iter, value->document);
    if (!document_iter_next(&iter))
        return refuse(parse, within ? "$geoWithin has no shape" : "$geoIntersects has no geometry");
    if (slice_equal(iter.key, SLICE("$geometry")))
        return geometry_parse(parse, path, &iter.value,
                              within ? MATCH_GEO_WITHIN : MATCH_GEO_MEETS);
    if (within && slice_equal(iter.key, SLICE("$box")))
        return box_parse(parse, path, &iter.value);
    if (within && slice_equal(iter.key, SLICE("$polygon")))
        return polygon_parse(parse, path, &iter.value);
    if (within && slice_equal(iter.key, SLICE("$center")))
        return center_parse(parse, path, &iter.value, false);
    if (within && slice_equal(iter.key, SLICE("$centerSphere")))
        return center_parse(parse, path, &iter.value, true);
    mongo_error_set(parse->err, MONGO_BAD_VALUE, "unknown geo specifier: %.*s",
                    (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
    return NULL;
}

/* --- $near ------------------------------------------------------------------------------------ */

/* {$geometry: ..., $minDistance: ..., $maxDistance: ...} */
static bool near_geometry_read(struct match_parse *parse, struct slice object, struct slice beside,
                               struct mongo_near_terms *terms)
{
    struct document_value ignored;
    struct document_iter iter;

    if (document_find(beside, SLICE("$maxDistance"), &ignored) ||
        document_find(beside, SLICE("$minDistance"), &ignored))
        return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                               "geo near accepts just one argument when querying for a GeoJSON "
                               "point. Extra field found: a distance beside it");
    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("$geometry")))
            terms->point = iter.value;
        else if (slice_equal(iter.key, SLICE("$minDistance")))
            terms->min = iter.value;
        else if (slice_equal(iter.key, SLICE("$maxDistance")))
            terms->max = iter.value;
        else
            return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                                   "invalid argument in geo near query: %.*s",
                                   (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
    }
    terms->geometry = true;
    return true;
}

/* [x, y], {x: ..., y: ...} or [x, y, the greatest distance]. */
static bool near_pair_read(struct match_parse *parse, const struct document_value *value,
                           struct slice beside, struct mongo_near_terms *terms)
{
    CLEANUP(buf_done) struct buf pair;
    struct document_iter iter;
    size_t count = 0, begin;
    double numbers[3];

    buf_init(&pair, BUF_DEFAULT_MAX);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (count == ARRAY_LEN(numbers) || !document_is_number(&iter.value) ||
            !document_to_double(&iter.value, &numbers[count++]))
            return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                                   "invalid point provided to geo near query");
    }
    if (count < 2)
        return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                               "invalid point provided to geo near query");
    begin = document_begin(&pair);
    document_append_double(&pair, SLICE("0"), numbers[0]);
    document_append_double(&pair, SLICE("1"), numbers[1]);
    document_end(&pair, begin);
    terms->point = document_array(arena_copy(parse->build->arena, buf_slice(&pair)));
    if (count == 3)
        terms->max = document_double(numbers[2]);
    (void)document_find(beside, SLICE("$maxDistance"), &terms->max);
    (void)document_find(beside, SLICE("$minDistance"), &terms->min);
    return true;
}

const struct match_node *match_parse_near(struct match_parse *parse, const struct match_path *path,
                                          struct slice operators, struct slice name,
                                          const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_NEAR, NULL);
    struct mongo_near_terms terms = {.point = document_undefined(),
                                     .min = document_undefined(),
                                     .max = document_undefined(),
                                     .sphere = slice_equal(name, SLICE("$nearSphere"))};
    struct document_value geometry;

    if (!parse->options->near) {
        mongo_error_set(parse->err, 5626500,
                        "$geoNear, $near, and $nearSphere are not allowed in this context, as "
                        "these operators require sorting geospatial data. If you do not need sort, "
                        "consider using $geoWithin instead.");
        return NULL;
    }
    if (!path || parse->inner || parse->optional)
        return refuse(parse, "geoNear must be top-level expr");
    if (parse->near)
        return refuse(parse, "Too many geoNear expressions");
    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return refuse(parse, "near must be first in: a point is an object or an array");
    terms.key = path->text;
    if (document_find(value->document, SLICE("$geometry"), &geometry)
            ? !near_geometry_read(parse, value->document, operators, &terms)
            : !near_pair_read(parse, value, operators, &terms))
        return NULL;
    if (!mongo_near_new(&terms, parse->build->arena, &parse->near, parse->err))
        return NULL;
    node->near = parse->near;
    return node;
}

static bool shape_get(struct match_evaluation *evaluation, const struct match_node *node,
                      const struct document_value *value, struct search_shape **ret_shape)
{
    const struct search_reason *reason;

    if (query_shape_get(evaluation->context, value, node->geo.rules, ret_shape, &reason,
                        evaluation->err))
        return *ret_shape != NULL;
    evaluation->failed = true;
    return false;
}

static bool work_take(struct match_evaluation *evaluation, uint64_t units)
{
    if (query_work(evaluation->context, units, evaluation->err))
        return true;
    evaluation->failed = true;
    return false;
}

/* What most documents have, and needs no shape. */
static bool point_holds(struct match_evaluation *evaluation, const struct match_node *node,
                        const struct document_value *value, struct search_position point)
{
    struct search_shape *given;

    if (!shape_get(evaluation, node, &node->value, &given) ||
        !work_take(evaluation, QUERY_FIGURE_WORK(value->document.len) +
                                   ASK_WORK * (1 + search_shape_positions(given))))
        return false;
    return node->geo.how == MATCH_GEO_WITHIN || node->geo.how == MATCH_GEO_MEETS
               ? search_shape_has(given, point)
               : search_shape_distance_to(given, point) <= node->geo.distance;
}

bool match_geo_holds(struct match_evaluation *evaluation, const struct match_node *node,
                     const struct document_value *value)
{
    struct search_shape *given, *shape;
    struct search_position point;

    if (value && node->geo.rules->surface == SEARCH_EARTH &&
        search_point_read(value, node->geo.rules, &point))
        return point_holds(evaluation, node, value, point);
    if (!value || !shape_get(evaluation, node, value, &shape) ||
        !shape_get(evaluation, node, &node->value, &given))
        return false;
    if (!work_take(evaluation,
                   ASK_WORK * (search_shape_positions(shape) + search_shape_positions(given))))
        return false;
    switch (node->geo.how) {
    case MATCH_GEO_WITHIN:
        return search_shape_within(shape, given);
    case MATCH_GEO_MEETS:
        return search_shape_intersects(shape, given);
    default:
        return search_shape_distance(shape, given) <= node->geo.distance;
    }
}
