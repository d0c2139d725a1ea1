/* $geoNear: a filter, an order by distance and a document with the distance in it, so that the
 * partitions look for the nearest as they do for find. */
#include "front/mongo/pipeline/pipeline_private.h"

#include "front/mongo/match/near.h"

/* Variables of the fields that it adds, which nobody else sees. */
#define DISTANCE SLICE("geoNearDistance")
#define LOCATION SLICE("geoNearLocation")

struct geo_near {
    struct document_value near, field, spherical, min, max, query, multiplier, locations, key;
    struct document_value unique, limit, num, start;
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED;
}

static bool terms_read(const struct document_value *specification, struct geo_near *geo,
                       struct error *err)
{
    const struct stage_field fields[] = {{"near", &geo->near},
                                         {"distanceField", &geo->field},
                                         {"spherical", &geo->spherical},
                                         {"minDistance", &geo->min},
                                         {"maxDistance", &geo->max},
                                         {"query", &geo->query},
                                         {"distanceMultiplier", &geo->multiplier},
                                         {"includeLocs", &geo->locations},
                                         {"key", &geo->key},
                                         {"uniqueDocs", &geo->unique},
                                         {"limit", &geo->limit},
                                         {"num", &geo->num},
                                         {"start", &geo->start}};
    const struct stage_terms terms = {"$geoNear", 10321, MONGO_FAILED_TO_PARSE};
    const char *gone;

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    gone = is_given(&geo->limit)   ? "limit"
           : is_given(&geo->num)   ? "num"
           : is_given(&geo->start) ? "start"
                                   : NULL;
    if (gone)
        return mongo_error_set(err, 50858,
                               "$geoNear no longer supports the '%s' parameter. Use a $limit "
                               "stage instead",
                               gone);
    if (!is_given(&geo->near))
        return mongo_error_set(err, 5860400, "$geoNear requires a 'near' argument");
    if (geo->near.type != DOCUMENT_OBJECT && geo->near.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 5860401, "$geoNear requires near argument to be a point");
    if (geo->field.type != DOCUMENT_STRING)
        return mongo_error_set(err, 16606,
                               "$geoNear requires a 'distanceField' option as a String");
    if (is_given(&geo->query) && geo->query.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "$geoNear: 'query' must be an object");
    if (is_given(&geo->locations) && geo->locations.type != DOCUMENT_STRING)
        return mongo_error_set(err, 16607,
                               "$geoNear requires that 'includeLocs' option is a "
                               "String");
    if (is_given(&geo->key) && geo->key.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "$geoNear parameter 'key' must be of type string but found type: "
                               "%s",
                               mongo_type_name(geo->key.type));
    return !is_given(&geo->key) || geo->key.text.len ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "$geoNear parameter 'key' cannot be the empty string");
}

static bool multiplier_read(const struct geo_near *geo, double *ret_factor, struct error *err)
{
    *ret_factor = 1;
    if (!is_given(&geo->multiplier))
        return true;
    if (!document_is_number(&geo->multiplier) || !document_to_double(&geo->multiplier, ret_factor))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "$geoNear: distanceMultiplier must be a "
                               "number");
    return *ret_factor >= 0 || mongo_error_set(err, MONGO_BAD_VALUE,
                                               "$geoNear: distanceMultiplier must be nonnegative");
}

static bool flag_of(const struct document_value *value)
{
    double number = 0;

    return value->type == DOCUMENT_BOOL ? value->boolean
                                        : document_to_double(value, &number) && number != 0;
}

static bool near_make(struct pipeline *p, const struct geo_near *geo,
                      const struct mongo_near **ret_near, struct error *err)
{
    const struct mongo_pipeline_host *host = &p->options->host;
    struct mongo_near_terms terms = {.key = is_given(&geo->key) ? geo->key.text : SLICE_NONE,
                                     .point = geo->near,
                                     .min = geo->min,
                                     .max = geo->max,
                                     .geometry = mongo_near_is_geometry(&geo->near),
                                     .sphere = flag_of(&geo->spherical)};

    if (!host->near_key)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "$geoNear is not offered here");
    if (!terms.key.data &&
        !host->near_key(host->self, p->options, p->build->arena, &terms.key, err))
        return false;
    if (!terms.key.data)
        terms.key = SLICE("_id"); /* there are no documents */
    return mongo_near_new(&terms, p->build->arena, ret_near, err) &&
           host->near_check(host->self, p->options, *ret_near, err);
}

/* {field: "$$distance", locations: "$$location"}, as $addFields takes it. */
static bool fields_add(struct pipeline *p, const struct geo_near *geo, struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value fields;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, geo->field.text, SLICE("$$geoNearDistance"));
    if (is_given(&geo->locations))
        document_append_string(&out, geo->locations.text, SLICE("$$geoNearLocation"));
    document_end(&out, begin);
    fields = document_object(arena_copy(p->build->arena, buf_slice(&out)));
    return stage_add_fields(p, &fields, err);
}

bool stage_geo_near(struct pipeline *p, const struct document_value *specification,
                    struct error *err)
{
    const struct mongo_variable *outer = p->variables;
    size_t outer_count = p->variable_count;
    struct mongo_variable *variables =
        ARENA_ARRAY(p->build->arena, struct mongo_variable, outer_count + 2);
    const struct mongo_near *near;
    struct geo_near geo;
    double factor;
    bool fine;

    if (!terms_read(specification, &geo, err) || !multiplier_read(&geo, &factor, err) ||
        !pipeline_path_check(geo.field.text, err) ||
        (is_given(&geo.locations) && !pipeline_path_check(geo.locations.text, err)) ||
        !near_make(p, &geo, &near, err))
        return false;
    if (is_given(&geo.query) && !stage_match(p, &geo.query, err))
        return false;
    pipeline_stage(p, QUERY_STAGE_MATCH)->match = mongo_near_filter(near, p->slot, p->build);
    pipeline_stage(p, QUERY_STAGE_SORT)->sort =
        (struct query_sort){mongo_near_order(near, p->slot, p->build), 1};
    p->near = near;
    if (outer_count)
        memcpy(variables, outer, outer_count * sizeof *variables);
    variables[outer_count] =
        (struct mongo_variable){DISTANCE, mongo_near_distance(near, p->slot, factor, p->build)};
    variables[outer_count + 1] =
        (struct mongo_variable){LOCATION, mongo_near_location(near, p->slot, p->build)};
    p->variables = variables;
    p->variable_count = outer_count + 2;
    fine = fields_add(p, &geo, err);
    p->variables = outer;
    p->variable_count = outer_count;
    return fine;
}
