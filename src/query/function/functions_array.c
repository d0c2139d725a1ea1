/* Arrays: what is in them, parts of them, and numbers made of them. */
#include "document/bson.h"
#include "query/function/functions_private.h"
#include "query/value/aggregate.h"

#include <math.h>

/* --- Containment ----------------------------------------------------------------------------- */

static bool match_in_part(const struct document_value *whole, const struct document_value *part,
                          struct query_context *context, bool *ret_match, struct error *err);

/* Has the object every property of the other, with the same value or one that has its parts? Each
 * is looked for anew, which a large object makes dear: it counts as work. */
static bool match_object(struct slice object, struct slice part, struct query_context *context,
                         bool *ret_match, struct error *err)
{
    struct document_iter iter;

    *ret_match = true;
    document_iter_init(&iter, part);
    while (*ret_match && document_iter_next(&iter)) {
        struct document_value value;

        if (!query_work(context, 1 + (object.len >> 6), err))
            return false;
        *ret_match = document_find(object, iter.key, &value);
        if (*ret_match && !match_in_part(&value, &iter.value, context, ret_match, err))
            return false;
    }
    return true;
}

static bool match_in_part(const struct document_value *whole, const struct document_value *part,
                          struct query_context *context, bool *ret_match, struct error *err)
{
    if (whole->type == DOCUMENT_OBJECT && part->type == DOCUMENT_OBJECT)
        return match_object(whole->document, part->document, context, ret_match, err);
    *ret_match = query_values_same(context->order, whole, part);
    return true;
}

static bool array_holds(struct slice array, const struct document_value *value, bool partial,
                        struct query_context *context, enum query_truth *ret_truth,
                        struct error *err)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_UNDEFINED) {
        *ret_truth = QUERY_UNKNOWN;
        return true;
    }
    if (!query_work(context, array.len >> 4, err))
        return false;
    *ret_truth = QUERY_FALSE;
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        bool match = query_values_equal(context->order, &iter.value, value) == QUERY_TRUE;

        if (partial && !match && !match_in_part(&iter.value, value, context, &match, err))
            return false;
        if (match) {
            *ret_truth = QUERY_TRUE;
            break;
        }
    }
    return true;
}

QUERY_FUNCTION(array_contains)
{
    enum query_truth truth;

    if (arguments[0].type != DOCUMENT_ARRAY || (count > 2 && arguments[2].type != DOCUMENT_BOOL))
        return true;
    if (!array_holds(arguments[0].document, &arguments[1], count > 2 && arguments[2].boolean,
                     context, &truth, err))
        return false;
    *ret_value = query_truth_value(truth);
    return true;
}

static bool contains_several(const struct document_value *arguments, size_t count, bool all,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    enum query_truth truth = all ? QUERY_TRUE : QUERY_FALSE;

    if (arguments[0].type != DOCUMENT_ARRAY)
        return true;
    for (size_t i = 1; i < count; i++) {
        enum query_truth test;

        if (!array_holds(arguments[0].document, &arguments[i], false, context, &test, err))
            return false;
        if (!query_truth_combine(all, test, &truth))
            break;
    }
    *ret_value = query_truth_value(truth);
    return true;
}

QUERY_FUNCTION(array_contains_all)
{
    return contains_several(arguments, count, true, context, ret_value, err);
}

QUERY_FUNCTION(array_contains_any)
{
    return contains_several(arguments, count, false, context, ret_value, err);
}

/* --- Parts ----------------------------------------------------------------------------------- */

QUERY_FUNCTION(array_length)
{
    if (arguments[0].type == DOCUMENT_ARRAY)
        *ret_value = query_integer((int64_t)document_count(arguments[0].document));
    return true;
}

/* Appends elements number from .. to - 1 to the array open in the scratch. */
static void elements_append(struct query_context *context, struct slice array, uint64_t from,
                            uint64_t to, uint32_t *index)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    for (uint64_t at = 0; at < to && document_iter_next(&iter); at++) {
        char key[DOCUMENT_INDEX_SIZE];

        if (at >= from)
            document_append(&context->scratch, document_index_key((*index)++, key), &iter.value);
    }
}

QUERY_FUNCTION(array_concat)
{
    size_t mark = query_build_begin(context), begin;
    uint32_t index = 0;

    for (size_t i = 0; i < count; i++) {
        if (arguments[i].type != DOCUMENT_ARRAY)
            return true;
    }
    begin = document_begin(&context->scratch);
    for (size_t i = 0; i < count; i++)
        elements_append(context, arguments[i].document, 0, UINT64_MAX, &index);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

QUERY_FUNCTION(array_slice)
{
    size_t mark = query_build_begin(context), begin;
    int64_t start, length = INT64_MAX, size;
    uint32_t index = 0;

    if (arguments[0].type != DOCUMENT_ARRAY || !document_to_int64(&arguments[1], &start) ||
        (count > 2 && !document_to_int64(&arguments[2], &length)))
        return true;
    size = (int64_t)document_count(arguments[0].document);
    if (start < 0)
        start = start < -size ? 0 : size + start;
    start = MIN(start, size);
    length = MAX(MIN(length, size - start), (int64_t)0);
    begin = document_begin(&context->scratch);
    elements_append(context, arguments[0].document, (uint64_t)start, (uint64_t)(start + length),
                    &index);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

/* {"k": name, "v": value} for each property, under names that may be given. */
QUERY_FUNCTION(array_of_object)
{
    struct slice name_key = SLICE("k"), value_key = SLICE("v");
    size_t mark = query_build_begin(context), begin;
    struct document_iter iter;
    uint32_t index = 0;

    if (arguments[0].type != DOCUMENT_OBJECT || !query_all_strings(arguments + 1, count - 1))
        return true;
    if (count > 1)
        name_key = arguments[1].text;
    if (count > 2)
        value_key = arguments[2].text;
    if ((name_key.len && memchr(name_key.data, 0, name_key.len)) ||
        (value_key.len && memchr(value_key.data, 0, value_key.len)) ||
        slice_equal(name_key, value_key))
        return true; /* no object has such properties */
    begin = document_begin(&context->scratch);
    document_iter_init(&iter, arguments[0].document);
    while (document_iter_next(&iter)) {
        char key[DOCUMENT_INDEX_SIZE];
        size_t pair =
            document_append_object_begin(&context->scratch, document_index_key(index++, key));

        document_append_string(&context->scratch, name_key, iter.key);
        if (!query_build_append(context, value_key, &iter.value, err))
            return query_build_drop(context, mark);
        document_end(&context->scratch, pair);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

/* --- Numbers of arrays ----------------------------------------------------------------------- */

/* What an aggregate over the elements gives. */
static bool aggregate(const struct document_value *array, enum query_aggregate_kind kind,
                      struct query_context *context, struct document_value *ret_value,
                      struct error *err)
{
    CLEANUP(query_aggregate_done) struct query_aggregate state = {0};
    struct document_iter iter;
    struct document_value result;

    if (array->type != DOCUMENT_ARRAY)
        return true;
    if (!query_work(context, array->document.len >> 4, err))
        return false;
    query_aggregate_init(&state, kind, context->order, context->limits.bytes_max);
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter)) {
        if (!query_aggregate_add(&state, &iter.value, err))
            return false;
    }
    result = query_aggregate_finish(&state);
    if (result.type == DOCUMENT_STRING) { /* its bytes go with the state */
        uint8_t *copy = query_alloc(context, result.text.len + 1, err);

        if (!copy)
            return false;
        if (result.text.len)
            memcpy(copy, result.text.data, result.text.len);
        result.text.data = copy;
    }
    *ret_value = result;
    return true;
}

QUERY_FUNCTION(array_avg)
{
    return aggregate(&arguments[0], QUERY_AVG, context, ret_value, err);
}

QUERY_FUNCTION(array_max)
{
    return aggregate(&arguments[0], QUERY_MAX, context, ret_value, err);
}

QUERY_FUNCTION(array_min)
{
    return aggregate(&arguments[0], QUERY_MIN, context, ret_value, err);
}

QUERY_FUNCTION(array_sum)
{
    return aggregate(&arguments[0], QUERY_SUM, context, ret_value, err);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The middle number, or the mean of the two in the middle. */
QUERY_FUNCTION(array_median)
{
    struct document_iter iter;
    size_t numbers = 0, size;
    double *list;

    if (arguments[0].type != DOCUMENT_ARRAY)
        return true;
    size = document_count(arguments[0].document);
    list = query_alloc(context, (size + 1) * sizeof *list, err);
    if (!list || !query_work(context, size * 8, err))
        return false;
    document_iter_init(&iter, arguments[0].document);
    while (document_iter_next(&iter)) {
        if (iter.value.type == DOCUMENT_UNDEFINED)
            continue;
        if (!document_to_double(&iter.value, &list[numbers++]))
            return true;
    }
    if (numbers == 0)
        return true;
    qsort(list, numbers, sizeof *list, compare_doubles);
    *ret_value = document_double(numbers % 2 ? list[numbers / 2]
                                             : (list[numbers / 2 - 1] + list[numbers / 2]) / 2);
    return true;
}

/* The path is one of the values of a constant array: the same as IN. */
static const struct query_implied *value_imply(const struct query_operand *path,
                                               const struct document_value *array,
                                               const struct query_implying *implying)
{
    struct document_value *values;
    struct document_iter iter;
    size_t count = 0;

    if (array->type != DOCUMENT_ARRAY || !array->document.data)
        return NULL;
    values =
        ARENA_ARRAY(implying->arena, struct document_value, document_count(array->document) + 1);
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter))
        values[count++] = iter.value;
    return query_implied_points(implying, path, values, count);
}

static const struct query_implied *contains_imply(const struct query_operand *operands,
                                                  size_t count,
                                                  const struct query_implying *implying)
{
    struct query_operand elements;

    if (count != 2)
        return NULL; /* parts of objects match too */
    if (operands[0].constant)
        return value_imply(&operands[1], operands[0].constant, implying);
    if (!operands[1].constant)
        return NULL;
    elements = query_operand_elements(implying, &operands[0]);
    return query_implied_points(implying, &elements, operands[1].constant, 1);
}

static const struct query_function functions[] = {
    {"ARRAY_AVG", 1, 1, false, QUERY_STABLE, array_avg},
    {"ARRAY_CONCAT", 2, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, array_concat},
    {"ARRAY_CONTAINS", 2, 3, false, QUERY_STABLE, array_contains, contains_imply},
    {"ARRAY_CONTAINS_ALL", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, array_contains_all},
    {"ARRAY_CONTAINS_ANY", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, array_contains_any},
    {"ARRAY_LENGTH", 1, 1, false, QUERY_STABLE, array_length},
    {"ARRAY_MAX", 1, 1, false, QUERY_STABLE, array_max},
    {"ARRAY_MEDIAN", 1, 1, false, QUERY_STABLE, array_median},
    {"ARRAY_MIN", 1, 1, false, QUERY_STABLE, array_min},
    {"ARRAY_SLICE", 2, 3, false, QUERY_STABLE, array_slice},
    {"ARRAY_SUM", 1, 1, false, QUERY_STABLE, array_sum},
    {"ObjectToArray", 1, 3, false, QUERY_STABLE, array_of_object},
};

const struct query_function_family query_functions_array = {functions, ARRAY_LEN(functions)};
