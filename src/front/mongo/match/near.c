/* Nothing is remembered of a document between its filter, its place in the order and what is shown
 * of it: each works the distance out again, which for points is a few hundred instructions: points
 * of the Earth need no shapes. Those of other figures, and of a plane the point's own, are kept by
 * the context (query/value/shapes.h). */
#include "front/mongo/match/near.h"

#include "document/bson.h"
#include "query/value/condition.h"
#include "query/value/shapes.h"
#include "query/value/value.h"

#include <math.h>

enum { ASK_WORK = 8 }; /* units for each position */

struct mongo_near {
    struct slice key;
    struct document_path path;
    struct document_value point;
    struct search_position position; /* of it */
    struct search_rules rules;
    double min, max; /* metres, or units of the plane */
    double unit;     /* what a distance is divided by to be shown */
    bool geometry;
    struct query_region region; /* where those are that hold */
};

/* --- Making ---------------------------------------------------------------------------------- */

static bool bound_read(const struct document_value *value, const char *name, double unit,
                       double *bound, struct error *err)
{
    double number;

    if (value->type == DOCUMENT_UNDEFINED)
        return true;
    if (!document_is_number(value) || !document_to_double(value, &number))
        return mongo_error_set(err, MONGO_BAD_VALUE, "%s must be a number", name);
    if (!(number >= 0))
        return mongo_error_set(err, MONGO_BAD_VALUE, "%s must be non-negative", name);
    *bound = number * unit;
    return true;
}

static struct document_path path_make(struct slice dotted, struct arena *arena)
{
    struct document_segment *segments =
        ARENA_ARRAY(arena, struct document_segment, DOCUMENT_PATH_SEGMENTS_MAX);
    struct document_path path = {.segments = segments};
    struct slice rest = arena_copy(arena, dotted), head, tail;

    while (path.count < DOCUMENT_PATH_SEGMENTS_MAX - 1 && slice_split(rest, '.', &head, &tail)) {
        segments[path.count++] = (struct document_segment){.name = head};
        rest = tail;
    }
    segments[path.count++] = (struct document_segment){.name = rest};
    return path;
}

bool mongo_near_is_geometry(const struct document_value *point)
{
    struct document_value type;

    return point->type == DOCUMENT_OBJECT && document_find(point->document, SLICE("type"), &type) &&
           type.type == DOCUMENT_STRING;
}

/* A point, and nothing but one. */
static bool point_read(struct mongo_near *near, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct search_reason reason = {"$near takes a point"};
    struct search_figure figure;

    if ((near->point.type != DOCUMENT_OBJECT && near->point.type != DOCUMENT_ARRAY) ||
        !search_figure_read(&near->point, &near->rules, arena, &figure, &reason))
        return mongo_error_set(err, MONGO_BAD_VALUE, "invalid point in geo near query: %s",
                               reason.text);
    near->position = figure.positions[0];
    return (figure.part_count == 1 && figure.parts[0].kind == SEARCH_POINT) ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "invalid point in geo near query: $geometry must "
                           "be of type Point");
}

bool mongo_near_new(const struct mongo_near_terms *terms, struct arena *arena,
                    const struct mongo_near **ret_near, struct error *err)
{
    struct mongo_near *near = ARENA_NEW(arena, struct mongo_near);
    bool earth = terms->geometry || terms->sphere;

    *near = (struct mongo_near){.key = arena_copy(arena, terms->key),
                                .path = path_make(terms->key, arena),
                                .point = query_value_copy(&terms->point, arena),
                                .rules = {.surface = earth ? SEARCH_EARTH : SEARCH_PLANE,
                                          .every_type = true,
                                          .smaller = earth,
                                          .round = earth},
                                .max = INFINITY,
                                .unit = earth && !terms->geometry ? SEARCH_RADIUS_ROUND : 1,
                                .geometry = terms->geometry};
    if (!bound_read(&terms->min, "minDistance", near->unit, &near->min, err) ||
        !bound_read(&terms->max, "maxDistance", near->unit, &near->max, err) ||
        !point_read(near, err))
        return false;
    near->region = (struct query_region){
        .figure = &near->point, .rules = near->rules, .distance = near->max, .ordered = true};
    *ret_near = near;
    return true;
}

struct slice mongo_near_key(const struct mongo_near *near)
{
    return near->key;
}

bool mongo_near_is_plane(const struct mongo_near *near)
{
    return near->rules.surface == SEARCH_PLANE;
}

bool mongo_near_takes(const struct mongo_near *near, const struct index_definition *index)
{
    size_t part = 0;

    if (index->kind != &index_kind_spatial || index->format == INDEX_FORMAT_POLICY ||
        index->hidden || index->state != INDEX_READY)
        return false;
    while (!index->parts[part].cells)
        part++;
    if (index->parts[part].path.count != near->path.count)
        return false;
    for (size_t i = 0; i < near->path.count; i++)
        if (!slice_equal(index->parts[part].path.segments[i].name, near->path.segments[i].name))
            return false;
    if (index->spatial->rules.surface == SEARCH_EARTH)
        return near->rules.surface == SEARCH_EARTH;
    return !near->geometry;
}

/* --- How far --------------------------------------------------------------------------------- */

struct measuring {
    const struct mongo_near *near;
    struct query_context *context;
    struct error *err;
    bool failed;
    double least; /* INFINITY: there is no figure */
    struct document_value place;
};

/* INFINITY: it is no figure. */
static bool shape_measure(struct measuring *m, const struct document_value *value,
                          double *ret_distance)
{
    const struct mongo_near *near = m->near;
    const struct search_reason *reason;
    struct search_shape *shape, *point;

    *ret_distance = INFINITY;
    if (!query_shape_get(m->context, value, &near->rules, &shape, &reason, m->err))
        return false;
    if (!shape)
        return true;
    if (!query_work(m->context, ASK_WORK * (search_shape_positions(shape) + 1), m->err))
        return false;
    if (near->rules.surface == SEARCH_EARTH) {
        *ret_distance = search_shape_distance_to(shape, near->position);
        return true;
    }
    if (!query_shape_get(m->context, &near->point, &near->rules, &point, &reason, m->err))
        return false;
    if (point)
        *ret_distance = search_shape_distance(shape, point);
    return true;
}

static bool point_measure(struct measuring *m, const struct document_value *value,
                          struct search_position position, double *ret_distance)
{
    *ret_distance = search_points_distance(position, m->near->position, &m->near->rules);
    return query_work(m->context, QUERY_FIGURE_WORK(value->document.len) + 2 * ASK_WORK, m->err);
}

static bool figure_measure(void *self, const struct document_value *value)
{
    struct measuring *m = self;
    struct search_position position;
    double distance;

    if (!query_work(m->context, 1, m->err)) {
        m->failed = true;
        return false;
    }
    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return true;
    if (m->near->rules.surface == SEARCH_EARTH &&
                search_point_read(value, &m->near->rules, &position)
            ? !point_measure(m, value, position, &distance)
            : !shape_measure(m, value, &distance)) {
        m->failed = true;
        return false;
    }
    if (distance < m->least) {
        m->least = distance;
        m->place = *value;
    }
    return true;
}

static bool measure(const struct mongo_near *near, const struct document_value *document,
                    struct query_context *context, struct measuring *ret_measured,
                    struct error *err)
{
    const struct index_figures visitor = {figure_measure, ret_measured};

    *ret_measured =
        (struct measuring){.near = near, .context = context, .err = err, .least = INFINITY};
    if (document->type == DOCUMENT_OBJECT)
        (void)index_figures_visit(&near->path, document->document, &visitor);
    return !ret_measured->failed;
}

bool mongo_near_holds(const struct mongo_near *near, const struct document_value *document,
                      struct query_context *context, bool *ret_holds, struct error *err)
{
    struct measuring m;

    if (!measure(near, document, context, &m, err))
        return false;
    *ret_holds = isfinite(m.least) && m.least >= near->min && m.least <= near->max;
    return true;
}

const struct query_implied *mongo_near_imply(const struct mongo_near *near,
                                             const struct query_implying *implying)
{
    const struct query_operand operand = {.is_path = true, .path = near->path, .through = true};

    return implying->ways == QUERY_WAYS_PATHS
               ? NULL
               : query_implied_region(implying, &operand, &near->region);
}

/* --- As expressions -------------------------------------------------------------------------- */

struct near_node {
    struct query_expression head; /* child: the variable of the document */
    const struct mongo_near *near;
    uint32_t slot;
    double factor;
};

static bool node_measure(const struct query_expression *expression, struct query_context *context,
                         struct measuring *ret_measured, struct error *err)
{
    const struct near_node *node = (const struct near_node *)expression;

    assert(node->slot < context->slot_count);
    return measure(node->near, &context->slots[node->slot].value, context, ret_measured, err);
}

static bool filter_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct near_node *node = (const struct near_node *)expression;
    bool holds;

    if (!mongo_near_holds(node->near, &context->slots[node->slot].value, context, &holds, err))
        return false;
    *ret_value = document_bool(holds);
    return true;
}

static const struct query_implied *filter_imply(const struct query_expression *expression,
                                                const struct query_implying *implying, bool truth)
{
    return truth ? mongo_near_imply(((const struct near_node *)expression)->near, implying) : NULL;
}

static bool distance_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct near_node *node = (const struct near_node *)expression;
    struct measuring m;

    if (!node_measure(expression, context, &m, err))
        return false;
    *ret_value = isfinite(m.least) ? document_double(m.least * node->factor) : document_undefined();
    return true;
}

static bool location_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    struct measuring m;

    if (!node_measure(expression, context, &m, err))
        return false;
    *ret_value = isfinite(m.least) ? m.place : document_undefined();
    return true;
}

static const struct query_kind filter_kind = {"near", filter_evaluate, QUERY_STABLE, filter_imply};
static const struct query_kind distance_kind = {"distance", distance_evaluate, QUERY_STABLE};
static const struct query_kind location_kind = {"location", location_evaluate, QUERY_STABLE};

static const struct query_expression *node_new(const struct query_kind *kind,
                                               const struct mongo_near *near, uint32_t slot,
                                               double factor, struct query_build *build)
{
    const struct query_expression *document = query_variable(build, slot);
    struct near_node *node = query_node(build, kind, sizeof *node, &document, 1);

    node->near = near;
    node->slot = slot;
    node->factor = factor;
    return &node->head;
}

const struct query_expression *mongo_near_filter(const struct mongo_near *near, uint32_t slot,
                                                 struct query_build *build)
{
    return node_new(&filter_kind, near, slot, 1, build);
}

const struct query_expression *mongo_near_distance(const struct mongo_near *near, uint32_t slot,
                                                   double factor, struct query_build *build)
{
    return node_new(&distance_kind, near, slot, factor / near->unit, build);
}

const struct query_expression *mongo_near_location(const struct mongo_near *near, uint32_t slot,
                                                   struct query_build *build)
{
    return node_new(&location_kind, near, slot, 1, build);
}

/* Places in the order are metres, or what the plane has: the core looks around the point by them.
 */
const struct query_order *mongo_near_order(const struct mongo_near *near, uint32_t slot,
                                           struct query_build *build)
{
    struct query_order *order = ARENA_NEW(build->arena, struct query_order);

    *order = (struct query_order){.expression = node_new(&distance_kind, near, slot, 1, build),
                                  .near = &near->region};
    return order;
}
