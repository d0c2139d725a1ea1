/* Stages made of windows: $fill, $densify and $bucketAuto. */
#include "front/mongo/pipeline/window.h"

#include "query/function/date.h"

#include <math.h>

/* --- $fill ----------------------------------------------------------------------------------- */

/* The first child, or the second where that is nothing. */
static bool either_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type != DOCUMENT_UNDEFINED && ret_value->type != DOCUMENT_NULL)
        return true;
    return query_evaluate(expression->children[1], context, ret_value, err);
}

static const struct query_kind either_kind = {"either", either_evaluate, QUERY_STABLE};

/* {$a, $b} as the key of a window. */
static bool fields_key(struct pipeline *p, const struct document_value *fields,
                       const struct query_expression **ret_key, struct error *err)
{
    const struct query_expression **values;
    struct document_iter iter;
    size_t count = 0;

    if (fields->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "partitionByFields must be an array of strings");
    if (!document_count(fields->document))
        return true;
    values = ARENA_ARRAY(p->build->arena, const struct query_expression *,
                         document_count(fields->document));
    document_iter_init(&iter, fields->document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "partitionByFields must be an array of strings");
        if (!pipeline_path_check(iter.value.text, err) ||
            !mongo_expression_path(iter.value.text, pipeline_root(p), p->build, &values[count],
                                   err))
            return false;
        values[count] = pipeline_or_null(p->build, values[count]);
        count++;
    }
    *ret_key = query_array(p->build, values, count);
    return true;
}

static bool fill_add(struct pipeline *p, struct pipeline_window *window, struct slice path,
                     const struct document_value *how, struct error *err)
{
    struct document_value value, method;
    const struct stage_field fields[] = {{"value", &value}, {"method", &method}};
    const struct stage_terms terms = {"$fill", MONGO_FAILED_TO_PARSE, 40415};
    const struct query_expression *input, *children[2], **ret;

    if (!pipeline_fields(how, &terms, fields, ARRAY_LEN(fields), err) ||
        !pipeline_path_check(path, err) ||
        !mongo_expression_path(path, pipeline_root(p), p->build, &input, err))
        return false;
    if ((value.type == DOCUMENT_UNDEFINED) == (method.type == DOCUMENT_UNDEFINED))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Each fill output must have exactly one of 'value' and 'method'");
    if (window->field_count == SLOT_RESULTS_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "a stage has too many results");
    ret = &window->values[window->field_count];
    window->paths[window->field_count++] = arena_copy(p->build->arena, path);
    if (value.type != DOCUMENT_UNDEFINED) {
        children[0] = input;
        if (!pipeline_expression(p, &value, &children[1], err))
            return false;
        *ret = pipeline_node(p->build, &either_kind, NULL, children, 2);
        return true;
    }
    if (method.type == DOCUMENT_STRING && slice_equal(method.text, SLICE("locf"))) {
        if (!window->sort.data)
            return mongo_error_set(err, 6050202, "Method 'locf' requires a sortBy");
        return pipeline_window_locf(p, window, input, ret, err);
    }
    if (method.type == DOCUMENT_STRING && slice_equal(method.text, SLICE("linear")))
        return pipeline_window_linear(p, window, input, ret, err);
    return mongo_error_set(err, 6050202, "Method must be either locf or linear");
}

bool stage_fill(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct document_value by, by_fields, sort, output;
    const struct stage_field fields[] = {{"partitionBy", &by},
                                         {"partitionByFields", &by_fields},
                                         {"sortBy", &sort},
                                         {"output", &output}};
    const struct stage_terms terms = {"$fill", MONGO_FAILED_TO_PARSE, 40415};
    struct pipeline_window *window = ARENA_NEW(p->build->arena, struct pipeline_window);
    struct document_iter iter;

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (output.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, output.type == DOCUMENT_UNDEFINED ? 40414 : 14,
                               "BSON field '$fill.output' is missing or no object");
    if (by.type != DOCUMENT_UNDEFINED && by_fields.type != DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 6050204,
                               "Maximum one of 'partitionBy' and 'partitionByFields can be "
                               "specified in '$fill'");
    pipeline_settle(p);
    if (!pipeline_window_sort(p, window, &sort, err))
        return false;
    if (by.type != DOCUMENT_UNDEFINED) {
        if (!pipeline_expression(p, &by, &window->key, err))
            return false;
        window->key = pipeline_or_null(p->build, window->key);
    }
    if (by_fields.type != DOCUMENT_UNDEFINED && !fields_key(p, &by_fields, &window->key, err))
        return false;
    document_iter_init(&iter, output.document);
    while (document_iter_next(&iter))
        if (!fill_add(p, window, iter.key, &iter.value, err))
            return false;
    return !window->field_count || pipeline_window_append(p, window, err);
}

/* --- $densify -------------------------------------------------------------------------------- */

enum { DENSIFY_MAX = 500000 };

enum densify_bounds { DENSIFY_PARTITION, DENSIFY_FULL, DENSIFY_BETWEEN };

struct densify {
    struct slice field;
    const struct slice *keys; /* fields that made documents have besides */
    size_t key_count;
    enum densify_bounds bounds;
    struct document_value low, high; /* of DENSIFY_BETWEEN */
    struct document_value step;
    int64_t ms, months; /* of a unit; both 0: numbers */
};

static bool is_place(const struct densify *densify, const struct document_value *value)
{
    return densify->ms || densify->months ? value->type == DOCUMENT_DATE
                                          : document_is_number(value);
}

static struct document_value months_add(int64_t ms, int64_t months)
{
    struct query_date date = query_date_of_ticks(ms * 10000);
    int64_t all = date.year * 12 + date.month - 1 + months, ticks;

    date.year = all >= 0 ? all / 12 : -((-all + 11) / 12);
    date.month = (int)(all - date.year * 12) + 1;
    date.day = MIN(date.day, query_date_month_days(date.year, date.month));
    return query_date_to_ticks(&date, &ticks) ? document_date(ticks / 10000) : document_undefined();
}

/* base and so many steps; undefined: there is no such value. */
static struct document_value place_at(const struct densify *densify,
                                      const struct document_value *base, int64_t steps)
{
    int64_t a, b, product, sum;
    double x, y;

    if (densify->ms || densify->months) {
        if (!document_to_int64(&densify->step, &b) || __builtin_mul_overflow(b, steps, &product))
            return document_undefined();
        if (densify->months)
            return product > 120000 || product < -120000
                       ? document_undefined()
                       : months_add(base->int64, product * densify->months);
        if (__builtin_mul_overflow(product, densify->ms, &product) ||
            __builtin_add_overflow(base->int64, product, &sum))
            return document_undefined();
        return document_date(sum);
    }
    if ((base->type == DOCUMENT_INT32 || base->type == DOCUMENT_INT64) &&
        (densify->step.type == DOCUMENT_INT32 || densify->step.type == DOCUMENT_INT64) &&
        document_to_int64(base, &a) && document_to_int64(&densify->step, &b) &&
        !__builtin_mul_overflow(b, steps, &product) && !__builtin_add_overflow(a, product, &sum))
        return base->type == DOCUMENT_INT64 || densify->step.type == DOCUMENT_INT64 ||
                       sum < INT32_MIN || sum > INT32_MAX
                   ? document_int64(sum)
                   : document_int32((int32_t)sum);
    (void)document_to_double(base, &x);
    (void)document_to_double(&densify->step, &y);
    return document_double(x + y * (double)steps);
}

static double place_double(const struct document_value *value)
{
    double number = 0;

    if (value->type == DOCUMENT_DATE)
        return (double)value->int64;
    (void)document_to_double(value, &number);
    return number;
}

/* About how many steps lie between; never more than there are. */
static int64_t steps_between(const struct densify *densify, const struct document_value *base,
                             const struct document_value *value)
{
    double step = place_double(&densify->step), away = place_double(value) - place_double(base);

    if (densify->ms)
        step *= (double)densify->ms;
    if (densify->months)
        step *= (double)densify->months * 31 * 86400000;
    away = floor(away / step) - 1;
    return away < 0 ? 0 : away > 1e15 ? (int64_t)1e15 : (int64_t)away;
}

struct densifying {
    const struct densify *densify;
    struct query_context *context;
    const struct document_value *document;
    uint32_t count;
    struct error *err;
};

static bool document_make(struct densifying *d, const struct document_value *value)
{
    struct buf *out = &d->context->scratch;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    if (d->count >= DENSIFY_MAX)
        return mongo_error_set(d->err, 5897900,
                               "Generated %d documents in $densify, which is over the limit",
                               DENSIFY_MAX);
    begin = document_append_object_begin(out, document_index_key(d->count++, text));
    for (size_t i = 0; i < d->densify->key_count; i++) {
        struct document_value key;

        if (document_find(d->document->document, d->densify->keys[i], &key))
            document_append(out, d->densify->keys[i], &key);
    }
    document_append(out, d->densify->field, value);
    document_end(out, begin);
    return query_work(d->context, 4, d->err) && query_memory_check(d->context, out->len, d->err);
}

/* Values of the base's row that are above `above` (or at it, if `at`) and below `below` (or at it).
 */
struct densify_gap {
    const struct document_value *above, *below;
    bool at_above, at_below;
};

static bool gap_fill(struct densifying *d, const struct document_value *base,
                     const struct densify_gap *gap)
{
    for (int64_t step = steps_between(d->densify, base, gap->above);; step++) {
        struct document_value value = place_at(d->densify, base, step);
        int order;

        if (!query_work(d->context, 1, d->err))
            return false;
        if (value.type == DOCUMENT_UNDEFINED)
            return true;
        order = document_compare(DOCUMENT_ORDER_MONGO, &value, gap->below);
        if (order > 0 || (order == 0 && !gap->at_below))
            return true;
        order = document_compare(DOCUMENT_ORDER_MONGO, &value, gap->above);
        if ((order > 0 || (order == 0 && gap->at_above)) && !document_make(d, &value))
            return false;
    }
}

static const struct document_value *later(const struct document_value *a,
                                          const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, a, b) >= 0 ? a : b;
}

static const struct document_value *earlier(const struct document_value *a,
                                            const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, a, b) <= 0 ? a : b;
}

/* children: document, value, value before, value behind, least, greatest. */
static bool densify_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    const struct densify *densify = ((const struct pipeline_node *)expression)->data;
    struct document_value parts[6];
    struct densifying d = {densify, context, &parts[0], 0, err};
    bool between = densify->bounds == DENSIFY_BETWEEN, first, last;
    const struct document_value *low, *high;
    char text[DOCUMENT_INDEX_SIZE];
    size_t mark, begin;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!query_evaluate(expression->children[i], context, &parts[i], err))
            return false;
    if (parts[1].type != DOCUMENT_UNDEFINED && parts[1].type != DOCUMENT_NULL &&
        !is_place(densify, &parts[1]))
        return mongo_error_set(err, 5733201,
                               "Densify field type must be numeric, or a date where the step has a "
                               "unit");
    low = between ? &densify->low : &parts[4];
    high = between ? &densify->high : &parts[5];
    first = !is_place(densify, &parts[2]);
    last = !is_place(densify, &parts[3]);
    mark = query_build_begin(context);
    begin = document_begin(&context->scratch);
    if (is_place(densify, &parts[1])) {
        struct densify_gap gap = {.above = first ? low : later(&parts[2], low),
                                  .below = between ? earlier(&parts[1], high) : &parts[1],
                                  .at_above = first || &parts[2] != later(&parts[2], low)};

        if (!gap_fill(&d, low, &gap))
            return query_build_drop(context, mark);
    }
    document_append(&context->scratch, document_index_key(d.count++, text), &parts[0]);
    if (is_place(densify, &parts[1]) && last && densify->bounds != DENSIFY_PARTITION) {
        struct densify_gap gap = {.above = later(&parts[1], low),
                                  .below = high,
                                  .at_above = &parts[1] != later(&parts[1], low),
                                  .at_below = !between};

        if (!gap_fill(&d, low, &gap))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind densify_kind = {"densify", densify_evaluate, QUERY_STABLE};

static bool range_read(struct pipeline *p, const struct document_value *range,
                       struct densify *densify, struct error *err)
{
    struct document_value step, unit, bounds;
    const struct stage_field fields[] = {{"step", &step}, {"unit", &unit}, {"bounds", &bounds}};
    const struct stage_terms terms = {"$densify.range", MONGO_TYPE_MISMATCH, 40415};

    if (!pipeline_fields(range, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (step.type == DOCUMENT_UNDEFINED || bounds.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40414,
                               "BSON field '$densify.range.%s' is missing but a required field",
                               step.type == DOCUMENT_UNDEFINED ? "step" : "bounds");
    if (!document_is_number(&step) || place_double(&step) <= 0)
        return mongo_error_set(err, 5733401,
                               "the step parameter in a range statement must be a "
                               "strictly positive numeric value");
    densify->step = step;
    if (unit.type != DOCUMENT_UNDEFINED &&
        (unit.type != DOCUMENT_STRING || !pipeline_unit(unit.text, &densify->ms, &densify->months)))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "unknown time unit value");
    if (bounds.type == DOCUMENT_STRING) {
        bool full = slice_equal(bounds.text, SLICE("full"));

        if (!full && !slice_equal(bounds.text, SLICE("partition")))
            return mongo_error_set(err, 5946802,
                                   "Bounds string must either be 'full' or 'partition'");
        densify->bounds = full ? DENSIFY_FULL : DENSIFY_PARTITION;
        return true;
    }
    densify->bounds = DENSIFY_BETWEEN;
    if (bounds.type != DOCUMENT_ARRAY || document_count(bounds.document) != 2 ||
        !document_find_index(bounds.document, 0, &densify->low) ||
        !document_find_index(bounds.document, 1, &densify->high))
        return mongo_error_set(err, 5733403,
                               "a bounding array in a range statement must have "
                               "exactly two elements");
    (void)p;
    if (!is_place(densify, &densify->low) || !is_place(densify, &densify->high))
        return mongo_error_set(err, 5733406,
                               "A bounding array must contain either both dates or both numeric "
                               "types, dates with a unit");
    if (document_compare(DOCUMENT_ORDER_MONGO, &densify->low, &densify->high) > 0)
        return mongo_error_set(err, 5733402,
                               "the bounds in a range statement must be the string "
                               "'full', 'partition', or an ascending array of two "
                               "numbers or two dates");
    return true;
}

static bool keys_read(struct pipeline *p, const struct document_value *fields,
                      struct densify *densify, struct error *err)
{
    struct document_iter iter;
    struct slice *keys;

    if (fields->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "partitionByFields must be an array of strings");
    keys = ARENA_ARRAY(p->build->arena, struct slice, document_count(fields->document) + 1);
    document_iter_init(&iter, fields->document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "partitionByFields must be an array of strings");
        if (memchr(iter.value.text.data, '.', iter.value.text.len))
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "$densify: partitionByFields with dots are not offered");
        keys[densify->key_count++] = arena_copy(p->build->arena, iter.value.text);
    }
    densify->keys = keys;
    return true;
}

static struct slice sort_of(struct pipeline *p, struct slice field)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, SIZE_MAX / 2);
    begin = document_begin(&buf);
    document_append_int32(&buf, field, 1);
    document_end(&buf, begin);
    return arena_copy(p->build->arena, buf_slice(&buf));
}

static bool extreme_add(struct pipeline *p, struct pipeline_window *window,
                        enum query_aggregate_kind kind, const struct query_expression *value,
                        const struct query_expression **ret_value, struct error *err)
{
    return pipeline_window_output(p, window,
                                  (struct query_window_output){.kind = QUERY_WINDOW_AGGREGATE,
                                                               .aggregate = kind,
                                                               .argument = value},
                                  ret_value, err);
}

/* The value where it is a place, else undefined: null does not count among the least. */
static bool place_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct densify *densify = ((const struct pipeline_node *)expression)->data;

    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (!is_place(densify, ret_value))
        *ret_value = document_undefined();
    return true;
}

static const struct query_kind place_kind = {"place", place_evaluate, QUERY_STABLE};

bool stage_densify(struct pipeline *p, const struct document_value *specification,
                   struct error *err)
{
    struct document_value field, by, range;
    const struct stage_field fields[] = {
        {"field", &field}, {"partitionByFields", &by}, {"range", &range}};
    const struct stage_terms terms = {"$densify", 5733200, 40415};
    struct query_build *build = p->build;
    struct densify *densify = ARENA_NEW(build->arena, struct densify);
    struct pipeline_window *around = ARENA_NEW(build->arena, struct pipeline_window),
                           *window = ARENA_NEW(build->arena, struct pipeline_window);
    const struct query_expression *children[6], *value, *place, *array, *element;
    struct query_window_output shift = {.kind = QUERY_WINDOW_SHIFT};

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (field.type != DOCUMENT_STRING || range.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40414, "$densify requires 'field' and 'range'");
    if (memchr(field.text.data, '.', field.text.len))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$densify: a field with dots is not offered");
    if (!pipeline_path_check(field.text, err) || !range_read(p, &range, densify, err) ||
        (by.type != DOCUMENT_UNDEFINED && !keys_read(p, &by, densify, err)))
        return false;
    densify->field = arena_copy(build->arena, field.text);
    pipeline_settle(p);
    value = pipeline_nested(p, densify->field);
    place = pipeline_node(build, &place_kind, densify, &value, 1);
    children[0] = pipeline_root(p);
    children[1] = value;
    window->sort = sort_of(p, densify->field);
    if (by.type != DOCUMENT_UNDEFINED && !fields_key(p, &by, &window->key, err))
        return false;
    shift.argument = place;
    shift.shift = -1;
    if (!pipeline_window_output(p, window, shift, &children[2], err))
        return false;
    shift.shift = 1;
    if (!pipeline_window_output(p, window, shift, &children[3], err))
        return false;
    if (densify->bounds == DENSIFY_FULL) { /* over all documents: slots behind those of the other */
        around->output_count = 2;
        if (!extreme_add(p, around, QUERY_MIN, place, &children[4], err) ||
            !extreme_add(p, around, QUERY_MAX, place, &children[5], err))
            return false;
        memmove(around->outputs, around->outputs + 2, 2 * sizeof *around->outputs);
        around->output_count = 2;
        if (!pipeline_window_stage(p, around, err))
            return false;
    } else if (!extreme_add(p, window, QUERY_MIN, place, &children[4], err) ||
               !extreme_add(p, window, QUERY_MAX, place, &children[5], err)) {
        return false;
    }
    if (!pipeline_window_stage(p, window, err))
        return false;
    array = pipeline_node(build, &densify_kind, densify, children, ARRAY_LEN(children));
    pipeline_stage(p, QUERY_STAGE_UNWIND)->unwind =
        (struct query_unwind){.array = array, .slot = SLOT_BESIDE};
    element = query_variable(build, SLOT_BESIDE);
    pipeline_project(p, element);
    return true;
}

/* --- $bucketAuto ----------------------------------------------------------------------------- */

/* From document to document: [number of the bucket, documents in it, key]; the argument is [key,
 * documents in all]. */
static bool bucket_fold_evaluate(const struct query_expression *expression,
                                 struct query_context *context, struct document_value *ret_value,
                                 struct error *err)
{
    const int64_t *buckets = ((const struct pipeline_node *)expression)->data;
    const struct document_value *before = &context->slots[SLOT_BESIDE].value,
                                *argument = &context->slots[SLOT_INDEX].value;
    struct document_value key = document_null(), last = key, number = key;
    int64_t bucket = 1, filled = 0, all = 0, size;
    size_t mark = query_build_begin(context), begin;

    (void)document_find_index(argument->document, 0, &key);
    if (document_find_index(argument->document, 1, &number))
        (void)document_to_int64(&number, &all);
    size = MAX((int64_t)llround((double)all / (double)*buckets), INT64_C(1));
    if (before->type == DOCUMENT_ARRAY) {
        if (document_find_index(before->document, 0, &number))
            (void)document_to_int64(&number, &bucket);
        if (document_find_index(before->document, 1, &number))
            (void)document_to_int64(&number, &filled);
        (void)document_find_index(before->document, 2, &last);
        if (bucket < *buckets && filled >= size &&
            document_compare(DOCUMENT_ORDER_MONGO, &last, &key) != 0) {
            bucket++;
            filled = 0;
        }
    }
    begin = document_begin(&context->scratch);
    document_append_int64(&context->scratch, SLICE("0"), bucket);
    document_append_int64(&context->scratch, SLICE("1"), filled + 1);
    document_append(&context->scratch, SLICE("2"), &key);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind bucket_fold_kind = {"bucket", bucket_fold_evaluate, QUERY_STABLE};

struct bucket_auto {
    const struct query_expression *key;
    int64_t buckets;
    struct document_value output;
};

static bool bucket_auto_read(struct pipeline *p, const struct document_value *specification,
                             struct bucket_auto *ret, struct error *err)
{
    struct document_value by, buckets, granularity;
    const struct stage_field fields[] = {{"groupBy", &by},
                                         {"buckets", &buckets},
                                         {"output", &ret->output},
                                         {"granularity", &granularity}};
    const struct stage_terms terms = {"$bucketAuto", 40240, 40245};

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (by.type == DOCUMENT_UNDEFINED || buckets.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40246,
                               "$bucketAuto requires 'groupBy' and 'buckets' to be specified.");
    if (granularity.type != DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$bucketAuto: granularity is not offered");
    if (!document_is_number(&buckets))
        return mongo_error_set(err, 40241,
                               "The $bucketAuto 'buckets' field must be a numeric value, but "
                               "found type: %s.",
                               mongo_type_name(buckets.type));
    if (!document_to_int64(&buckets, &ret->buckets) || ret->buckets > INT32_MAX)
        return mongo_error_set(err, 40242,
                               "The $bucketAuto 'buckets' field must be representable as a 32-bit "
                               "integer");
    if (ret->buckets <= 0)
        return mongo_error_set(err, 40243,
                               "The $bucketAuto 'buckets' field must be greater than 0");
    if (ret->output.type != DOCUMENT_UNDEFINED && ret->output.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 40244, "The $bucketAuto 'output' field must be an object");
    pipeline_settle(p);
    if (!pipeline_expression(p, &by, &ret->key, err))
        return false;
    ret->key = pipeline_or_null(p->build, ret->key);
    return true;
}

/* All documents are counted, then numbered by buckets in the order of their keys. */
static bool buckets_number(struct pipeline *p, const struct bucket_auto *bucket,
                           uint32_t slot_count, uint32_t slot_bucket)
{
    struct query_build *build = p->build;
    struct query_window_output *outputs = ARENA_ARRAY(build->arena, struct query_window_output, 2);
    struct query_order *order = ARENA_NEW(build->arena, struct query_order);
    const struct query_expression *compared =
        mongo_collate_expression(p->collator, bucket->key, build);
    const struct query_expression *pair[2] = {compared, query_variable(build, slot_count)};
    const struct query_expression *children[2] = {query_variable(build, SLOT_BESIDE),
                                                  query_variable(build, SLOT_INDEX)};
    int64_t *buckets = ARENA_NEW(build->arena, int64_t);

    *buckets = bucket->buckets;
    *order = (struct query_order){compared, false};
    outputs[0] = (struct query_window_output){.kind = QUERY_WINDOW_AGGREGATE,
                                              .aggregate = QUERY_COUNT,
                                              .argument = query_constant(build, document_int32(1)),
                                              .slot = slot_count};
    outputs[1] = (struct query_window_output){
        .kind = QUERY_WINDOW_FOLD,
        .argument = query_array(build, pair, 2),
        .fold = pipeline_node(build, &bucket_fold_kind, buckets, children, 2),
        .fold_slot = SLOT_BESIDE,
        .fold_argument = SLOT_INDEX,
        .slot = slot_bucket};
    pipeline_stage(p, QUERY_STAGE_WINDOW)->window =
        (struct query_window){.outputs = outputs, .output_count = 1};
    pipeline_stage(p, QUERY_STAGE_WINDOW)->window = (struct query_window){
        .order = order, .order_count = 1, .outputs = outputs + 1, .output_count = 1};
    return true;
}

bool stage_bucket_auto(struct pipeline *p, const struct document_value *specification,
                       struct error *err)
{
    static const struct slice count = SLICE("\x0f\0\0\0\x10$sum\0\1\0\0\0"); /* {$sum: 1} */
    const struct document_value one = document_object(slice_of(count.data, 15));
    const struct slice bounds[] = {SLICE("min"), SLICE("max")};
    struct query_build *build = p->build;
    struct group_fields *fields = ARENA_NEW(build->arena, struct group_fields);
    struct bucket_auto bucket;
    struct query_group_key *key = ARENA_NEW(build->arena, struct query_group_key);
    struct query_order *order = ARENA_NEW(build->arena, struct query_order);
    struct query_window_output *next = ARENA_NEW(build->arena, struct query_window_output);
    const struct query_expression **values, *least, *greatest, *edge[2], *compared;
    struct query_aggregate_call *calls;
    uint32_t slots[6];
    struct slice *names;
    struct document_iter iter;

    if (!bucket_auto_read(p, specification, &bucket, err))
        return false;
    for (; fields->slots < ARRAY_LEN(slots); fields->slots++)
        if (!pipeline_result_slot(p, fields->slots, &slots[fields->slots], err))
            return false;
    if (!buckets_number(p, &bucket, slots[0], slots[1]))
        return false;
    if (bucket.output.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, bucket.output.document);
        while (document_iter_next(&iter))
            if (!group_field_add(p, fields, iter.key, &iter.value, err))
                return false;
    } else if (!group_field_add(p, fields, SLICE("count"), &one, err)) {
        return false;
    }
    calls = ARENA_ARRAY(build->arena, struct query_aggregate_call, fields->count + 2);
    memcpy(calls, fields->calls, fields->count * sizeof *calls);
    compared = p->collator ? mongo_collate_pair(p->collator, bucket.key, build) : bucket.key;
    calls[fields->count] = (struct query_aggregate_call){QUERY_MIN, compared, slots[3]};
    calls[fields->count + 1] = (struct query_aggregate_call){QUERY_MAX, compared, slots[4]};
    *key = (struct query_group_key){query_element_of(build, query_variable(build, slots[1]), 0),
                                    slots[2]};
    pipeline_stage(p, QUERY_STAGE_GROUP)->group =
        (struct query_group){key, 1, calls, fields->count + 2};
    least = query_variable(build, slots[3]);
    greatest = query_variable(build, slots[4]);
    if (p->collator) {
        least = mongo_collate_unpair(least, build);
        greatest = mongo_collate_unpair(greatest, build);
    }
    *order = (struct query_order){query_variable(build, slots[2]), false};
    *next = (struct query_window_output){.kind = QUERY_WINDOW_SHIFT,
                                         .argument = least,
                                         .otherwise = greatest,
                                         .shift = 1,
                                         .slot = slots[5]};
    pipeline_stage(p, QUERY_STAGE_WINDOW)->window =
        (struct query_window){.order = order, .order_count = 1, .outputs = next, .output_count = 1};
    edge[0] = least;
    edge[1] = query_variable(build, slots[5]);
    names = ARENA_ARRAY(build->arena, struct slice, fields->count + 1);
    values = ARENA_ARRAY(build->arena, const struct query_expression *, fields->count + 1);
    names[0] = SLICE("_id");
    values[0] = query_object(build, bounds, edge, 2);
    memcpy(names + 1, fields->names, fields->count * sizeof *names);
    memcpy(values + 1, fields->results, fields->count * sizeof *values);
    pipeline_project(p, query_object(build, names, values, fields->count + 1));
    return true;
}
