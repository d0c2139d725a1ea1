/* Groups: $group and the stages that are made of it. The key stands in a slot, each accumulator in
 * another; a document is made of them behind the group. */
#include "front/mongo/pipeline/pipeline_private.h"

bool pipeline_result_slot(struct pipeline *p, size_t number, uint32_t *ret_slot, struct error *err)
{
    if (number >= SLOT_RESULTS_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "a stage has more than %d results",
                               SLOT_RESULTS_MAX);
    *ret_slot = SLOT_RESULTS + (uint32_t)number;
    p->shared->slot_max = MAX(p->shared->slot_max, *ret_slot + 1);
    return true;
}

/* --- Accumulators ---------------------------------------------------------------------------- */

/* {$sum: 1}, which an index may answer alone. */
static bool is_count(struct slice name, const struct document_value *argument)
{
    if (slice_equal(name, SLICE("$count")))
        return argument->type == DOCUMENT_OBJECT && !document_count(argument->document);
    return slice_equal(name, SLICE("$sum")) && argument->type == DOCUMENT_INT32 &&
           argument->int32 == 1;
}

static bool field_name_check(struct slice name, struct error *err)
{
    if (memchr(name.data, '.', name.len))
        return mongo_error_set(err, 40235, "The field name '%.*s' cannot contain '.'",
                               (int)MIN(name.len, (size_t)80), (const char *)name.data);
    if (name.len && name.data[0] == '$')
        return mongo_error_set(err, 40236, "The field name '%.*s' cannot be an operator name",
                               (int)MIN(name.len, (size_t)80), (const char *)name.data);
    return true;
}

bool group_field_add(struct pipeline *p, struct group_fields *fields, struct slice name,
                     const struct document_value *specification, struct error *err)
{
    const struct mongo_expression_options scope = pipeline_scope(p);
    struct mongo_accumulator accumulator;
    struct document_iter iter;
    uint32_t slot;

    if (!field_name_check(name, err))
        return false;
    if (specification->type != DOCUMENT_OBJECT || !document_count(specification->document))
        return mongo_error_set(err, 40234, "The field '%.*s' must be an accumulator object",
                               (int)MIN(name.len, (size_t)80), (const char *)name.data);
    document_iter_init(&iter, specification->document);
    (void)document_iter_next(&iter);
    if (document_count(specification->document) != 1)
        return mongo_error_set(err, 40238, "The field '%.*s' must specify one accumulator",
                               (int)MIN(name.len, (size_t)80), (const char *)name.data);
    if (!pipeline_result_slot(p, fields->slots++, &slot, err))
        return false;
    if (is_count(iter.key, &iter.value)) {
        accumulator.call = (struct query_aggregate_call){
            QUERY_COUNT, query_constant(p->build, document_int32(1)), slot};
        accumulator.result = query_variable(p->build, slot);
    } else if (!mongo_accumulator_compile(iter.key, &iter.value, &scope, slot, p->build,
                                          &accumulator, err)) {
        return false;
    }
    fields->calls[fields->count] = accumulator.call;
    fields->results[fields->count] = accumulator.result;
    fields->names[fields->count++] = arena_copy(p->build->arena, name);
    return true;
}

static bool group_fields_add(struct pipeline *p, struct group_fields *fields, struct slice document,
                             struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("_id")) &&
            !group_field_add(p, fields, iter.key, &iter.value, err))
            return false;
    return true;
}

/* --- The group ------------------------------------------------------------------------------- */

/* The document {_id, fields}; id NULL: without one. */
static const struct query_expression *group_document(struct pipeline *p,
                                                     const struct group_fields *fields,
                                                     const struct query_expression *id)
{
    size_t count = fields->count + 1, at = 0;
    const struct query_expression **values =
        ARENA_ARRAY(p->build->arena, const struct query_expression *, count);
    struct slice *names = ARENA_ARRAY(p->build->arena, struct slice, count);

    if (id) {
        names[at] = SLICE("_id");
        values[at++] = id;
    }
    for (size_t i = 0; i < fields->count; i++) {
        names[at] = fields->names[i];
        values[at++] = fields->results[i];
    }
    return query_object(p->build, names, values, at);
}

/* All documents are one group, which there is only where there is a document: they are counted as
 * well, so that an index may answer where counting is all that is asked. */
static bool group_all(struct pipeline *p, struct group_fields *fields,
                      const struct query_expression *id, struct error *err)
{
    struct query_build *build = p->build;
    struct query_aggregate_call *calls =
        ARENA_ARRAY(build->arena, struct query_aggregate_call, fields->count + 1);
    const struct query_expression *some, *document;
    uint32_t slot;

    if (!pipeline_result_slot(p, fields->slots++, &slot, err))
        return false;
    calls[0] =
        (struct query_aggregate_call){QUERY_COUNT, query_constant(build, document_int32(1)), slot};
    if (fields->count)
        memcpy(calls + 1, fields->calls, fields->count * sizeof *calls);
    pipeline_stage(p, QUERY_STAGE_GROUP)->group =
        (struct query_group){.aggregates = calls, .aggregate_count = fields->count + 1};
    some = query_compare(build, QUERY_GREATER, query_variable(build, slot),
                         query_constant(build, document_int32(0)));
    document = group_document(p, fields, id);
    pipeline_project(
        p, query_conditional(build, some, document, query_constant(build, document_undefined())));
    return true;
}

static bool group_append(struct pipeline *p, struct group_fields *fields,
                         const struct query_expression *id, struct error *err)
{
    struct query_build *build = p->build;
    struct query_aggregate_call *calls;
    struct query_group_key *key;
    uint32_t slot, shown;
    size_t count = fields->count;

    if (query_is_constant(id))
        return group_all(p, fields, pipeline_or_null(build, id), err);
    if (!pipeline_result_slot(p, fields->slots++, &slot, err))
        return false;
    key = ARENA_NEW(build->arena, struct query_group_key);
    *key = (struct query_group_key){
        mongo_collate_expression(p->collator, pipeline_or_null(build, id), build), slot};
    calls = ARENA_ARRAY(build->arena, struct query_aggregate_call, fields->count + 1);
    if (fields->count)
        memcpy(calls, fields->calls, fields->count * sizeof *calls);
    shown = slot;
    if (p->collator) { /* the group shows the value that was there first, not what stands for it */
        if (!pipeline_result_slot(p, fields->slots++, &shown, err))
            return false;
        calls[count++] =
            (struct query_aggregate_call){QUERY_TAKE_FIRST, pipeline_or_null(build, id), shown};
    }
    pipeline_stage(p, QUERY_STAGE_GROUP)->group = (struct query_group){key, 1, calls, count};
    pipeline_project(p, group_document(p, fields, query_variable(build, shown)));
    return true;
}

static struct group_fields *fields_new(struct pipeline *p)
{
    return ARENA_NEW(p->build->arena, struct group_fields);
}

bool stage_group(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct group_fields *fields = fields_new(p);
    const struct query_expression *id;
    struct document_value value;

    if (specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 15947, "a group's fields must be specified in an object");
    if (!document_find(specification->document, SLICE("_id"), &value))
        return mongo_error_set(err, 15955, "a group specification must include an _id");
    return pipeline_expression(p, &value, &id, err) &&
           group_fields_add(p, fields, specification->document, err) &&
           group_append(p, fields, id, err);
}

bool stage_count(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    static const struct slice count = SLICE("\x0f\0\0\0\x10$sum\0\1\0\0\0"); /* {$sum: 1} */
    const struct document_value one = document_object(slice_of(count.data, 15));
    struct group_fields *fields = fields_new(p);
    struct slice name = specification->text;

    if (specification->type != DOCUMENT_STRING)
        return mongo_error_set(err, 40156, "the count field must be a non-empty string");
    if (!name.len)
        return mongo_error_set(err, 40157, "the count field must be a non-empty string");
    if (name.data[0] == '$')
        return mongo_error_set(err, 40158, "the count field cannot be a $-prefixed path");
    if (memchr(name.data, 0, name.len))
        return mongo_error_set(err, 40159, "the count field cannot contain a null byte");
    if (memchr(name.data, '.', name.len))
        return mongo_error_set(err, 40160, "the count field cannot contain '.'");
    if (slice_equal(name, SLICE("_id")))
        return mongo_error_set(err, 15948, "a group's _id may only be specified once");
    return group_field_add(p, fields, name, &one, err) && group_all(p, fields, NULL, err);
}

/* An expression that is one to the eye: a path or an operator. */
static bool is_expression(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_STRING)
        return value->text.len > 1 && value->text.data[0] == '$';
    if (value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static struct slice sort_document(struct pipeline *p, const char *field, int direction)
{
    struct buf buf;
    struct slice document;
    size_t begin;

    buf_init(&buf, 256);
    begin = document_begin(&buf);
    document_append_int32(&buf, slice_of_text(field), direction);
    document_end(&buf, begin);
    document = arena_copy(p->build->arena, buf_slice(&buf));
    buf_done(&buf);
    return document;
}

bool stage_sort_by_count(struct pipeline *p, const struct document_value *specification,
                         struct error *err)
{
    static const struct slice count = SLICE("\x0f\0\0\0\x10$sum\0\1\0\0\0");
    const struct document_value one = document_object(slice_of(count.data, 15));
    struct group_fields *fields = fields_new(p);
    const struct query_expression *id;

    if (specification->type == DOCUMENT_STRING && !is_expression(specification))
        return mongo_error_set(err, 40148,
                               "the sortByCount field must be defined as a $-prefixed path or an "
                               "expression inside an object");
    if (specification->type == DOCUMENT_OBJECT && !is_expression(specification))
        return mongo_error_set(err, 40147,
                               "the sortByCount field must be defined as a $-prefixed path or an "
                               "expression inside an object");
    if (!is_expression(specification))
        return mongo_error_set(err, 40149,
                               "the sortByCount field must be specified as a string or as an "
                               "object");
    return pipeline_expression(p, specification, &id, err) &&
           group_field_add(p, fields, SLICE("count"), &one, err) &&
           group_append(p, fields, id, err) && pipeline_sort(p, sort_document(p, "count", -1), err);
}

/* --- $bucket --------------------------------------------------------------------------------- */

struct bucket {
    const struct document_value *bounds;      /* as they are shown */
    const struct document_value *forms;       /* the same as they are compared */
    const struct document_collator *collator; /* NULL: texts by their bytes */
    size_t count;
    struct document_value otherwise; /* undefined: an error */
};

static bool bucket_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct bucket *bucket = ((const struct pipeline_node *)expression)->data;
    struct document_value value;
    size_t below = 0, above = bucket->count;

    if (!query_evaluate(expression->children[0], context, &value, err) ||
        !mongo_collate(bucket->collator, &value, context, &value, err))
        return false;
    while (below < above) { /* bounds before `below` are not above the value */
        size_t middle = below + (above - below) / 2;

        if (document_compare(DOCUMENT_ORDER_MONGO, &bucket->forms[middle], &value) <= 0)
            below = middle + 1;
        else
            above = middle;
    }
    if (below && below < bucket->count) {
        *ret_value = bucket->bounds[below - 1];
        return true;
    }
    *ret_value = bucket->otherwise;
    return bucket->otherwise.type != DOCUMENT_UNDEFINED ||
           mongo_error_set(err, 40066,
                           "$switch could not find a matching branch for an input, and no default "
                           "was specified.");
}

static const struct query_kind bucket_kind = {"bucket", bucket_evaluate, QUERY_STABLE};

static bool constant_of(struct pipeline *p, const struct document_value *specification, int code,
                        const char *what, struct document_value *ret_value, struct error *err)
{
    const struct query_expression *expression;

    if (!pipeline_expression(p, specification, &expression, err))
        return false;
    if (!query_is_constant(expression))
        return mongo_error_set(err, code, "The $bucket %s must be a constant expression", what);
    *ret_value = *query_constant_value(expression);
    return true;
}

static bool bounds_read(struct pipeline *p, const struct document_value *array,
                        struct bucket *bucket, struct error *err)
{
    struct document_value *bounds, *forms;
    struct document_iter iter;

    bucket->collator = p->collator;
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 40200,
                               "The $bucket 'boundaries' field must be an array, but found type: "
                               "%s.",
                               mongo_type_name(array->type));
    if (document_count(array->document) < 2)
        return mongo_error_set(err, 40192,
                               "The $bucket 'boundaries' field must have at least 2 values, but "
                               "found %zu value(s).",
                               document_count(array->document));
    bounds =
        ARENA_ARRAY(p->build->arena, struct document_value, document_count(array->document) + 1);
    forms =
        ARENA_ARRAY(p->build->arena, struct document_value, document_count(array->document) + 1);
    document_iter_init(&iter, array->document);
    for (; document_iter_next(&iter); bucket->count++) {
        struct document_value *bound = &bounds[bucket->count], *before = bound - 1;

        if (!constant_of(p, &iter.value, 40191, "'boundaries' field", bound, err) ||
            !mongo_collate_constant(p->collator, bound, p->build->arena, &forms[bucket->count],
                                    err))
            return false;
        if (!bucket->count)
            continue;
        if (before->type != bound->type &&
            !(document_is_number(before) && document_is_number(bound)))
            return mongo_error_set(err, 40193,
                                   "All values in the the 'boundaries' option to $bucket must have "
                                   "the same type. Found conflicting types %s and %s.",
                                   mongo_type_name(before->type), mongo_type_name(bound->type));
        if (document_compare(DOCUMENT_ORDER_MONGO, &forms[bucket->count - 1],
                             &forms[bucket->count]) >= 0)
            return mongo_error_set(err, 40194,
                                   "The 'boundaries' option to $bucket must be sorted, but "
                                   "elements %zu and %zu are not in ascending order",
                                   bucket->count - 1, bucket->count);
    }
    bucket->bounds = bounds;
    bucket->forms = forms;
    return true;
}

static bool output_add(struct pipeline *p, const struct document_value *output, const char *stage,
                       int code, struct group_fields *fields, struct error *err)
{
    static const struct slice count = SLICE("\x0f\0\0\0\x10$sum\0\1\0\0\0");
    const struct document_value one = document_object(slice_of(count.data, 15));

    if (output->type == DOCUMENT_UNDEFINED)
        return group_field_add(p, fields, SLICE("count"), &one, err);
    if (output->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, code,
                               "The %s 'output' field must be an object, but found "
                               "type: %s.",
                               stage, mongo_type_name(output->type));
    return group_fields_add(p, fields, output->document, err);
}

bool stage_bucket(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct document_value by, bounds, otherwise, output;
    const struct stage_field arguments[] = {
        {"groupBy", &by}, {"boundaries", &bounds}, {"default", &otherwise}, {"output", &output}};
    const struct stage_terms terms = {"$bucket", 40201, 40197};
    struct bucket *bucket = ARENA_NEW(p->build->arena, struct bucket);
    struct group_fields *fields = fields_new(p);
    const struct query_expression *id;

    if (!pipeline_fields(specification, &terms, arguments, ARRAY_LEN(arguments), err))
        return false;
    if (by.type == DOCUMENT_UNDEFINED || bounds.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40198,
                               "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    if (!is_expression(&by))
        return mongo_error_set(err, 40202,
                               "The $bucket 'groupBy' field must be defined as a $-prefixed path "
                               "or an expression object");
    bucket->otherwise = document_undefined();
    if (!bounds_read(p, &bounds, bucket, err))
        return false;
    if (otherwise.type != DOCUMENT_UNDEFINED) {
        struct document_value form;

        if (!constant_of(p, &otherwise, 40195, "'default' field", &bucket->otherwise, err) ||
            !mongo_collate_constant(p->collator, &bucket->otherwise, p->build->arena, &form, err))
            return false;
        if (document_compare(DOCUMENT_ORDER_MONGO, &form, &bucket->forms[0]) >= 0 &&
            document_compare(DOCUMENT_ORDER_MONGO, &form, &bucket->forms[bucket->count - 1]) < 0)
            return mongo_error_set(err, 40199,
                                   "The $bucket 'default' field must be less than the lowest "
                                   "boundary or greater than or equal to the highest boundary.");
    }
    if (!pipeline_expression(p, &by, &id, err))
        return false;
    id = pipeline_node(p->build, &bucket_kind, bucket, &id, 1);
    return output_add(p, &output, "$bucket", 40196, fields, err) &&
           group_append(p, fields, id, err) && pipeline_sort(p, sort_document(p, "_id", 1), err);
}
