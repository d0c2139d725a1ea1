/* Sums, means and the like over arguments, or over the elements of a single array. */
#include "front/mongo/expression/expression_private.h"
#include "query/value/aggregate.h"

#include <math.h>

static const enum query_aggregate_kind kinds[] = {
    [EXPRESSION_SUM] = QUERY_SUM,
    [EXPRESSION_AVG] = QUERY_AVG,
    [EXPRESSION_MIN] = QUERY_MIN,
    [EXPRESSION_MAX] = QUERY_MAX,
    [EXPRESSION_STD_DEV_POP] = QUERY_STD_DEV_POP,
    [EXPRESSION_STD_DEV_SAMP] = QUERY_STD_DEV_SAMP,
};

static bool counts(const struct expression_call *call, const struct document_value *value)
{
    if (call->node->number == EXPRESSION_MIN || call->node->number == EXPRESSION_MAX)
        return !expression_is_nullish(value);
    return document_is_number(value);
}

static bool value_add(struct expression_call *call, struct query_aggregate *state,
                      const struct document_value *value)
{
    return query_work(call->context, 1, call->err) &&
           (!counts(call, value) || query_aggregate_add(state, value, call->err));
}

/* The least or greatest of them by a collation. */
static bool end_by_collation(struct expression_call *call)
{
    bool down = call->node->number == EXPRESSION_MAX, array = call->count == 1;
    struct document_value *values =
        query_alloc(call->context, (call->count + 1) * sizeof *values, call->err);
    size_t count = call->count, kept = 0;

    array = array && call->arguments[0].type == DOCUMENT_ARRAY;
    if (array)
        values = expression_elements(call->context, call->arguments[0].document, &count, call->err);
    if (!values)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct document_value value = array ? values[i] : call->arguments[i];

        if (!expression_is_nullish(&value))
            values[kept++] = value;
    }
    return expression_sort_values(call, values, kept, down) &&
           expression_give(call, kept ? values[0] : document_null());
}

EXPRESSION_COMPUTE(expression_statistic)
{
    CLEANUP(query_aggregate_done) struct query_aggregate state = {0};
    struct document_value result;
    struct document_iter iter;

    if (call->node->collator &&
        (call->node->number == EXPRESSION_MIN || call->node->number == EXPRESSION_MAX))
        return end_by_collation(call);
    query_aggregate_init(&state, kinds[call->node->number], DOCUMENT_ORDER_MONGO,
                         call->context->limits.bytes_max);
    if (call->count == 1 && call->arguments[0].type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, call->arguments[0].document);
        while (document_iter_next(&iter))
            if (!value_add(call, &state, &iter.value))
                return false;
    } else {
        for (size_t i = 0; i < call->count; i++)
            if (!value_add(call, &state, &call->arguments[i]))
                return false;
    }
    result = query_aggregate_finish(&state);
    if (result.type == DOCUMENT_UNDEFINED)
        result = call->node->number == EXPRESSION_SUM ? document_int32(0) : document_null();
    *call->ret = query_value_copy(&result, call->context->arena);
    return query_memory_check(call->context, 0, call->err);
}

/* --- Percentiles ------------------------------------------------------------------------------ */

static bool p_check(const struct document_value *p, double *ret_p)
{
    return document_to_double(p, ret_p) && *ret_p >= 0 && *ret_p <= 1;
}

static bool percentile_fields(struct expression_compile *compile, const char *name,
                              const struct document_value *value, struct document_value given[3])
{
    static const char *const names[] = {"input", "method", "p"};
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 7429703,
                               "specification must be an object; found %s: %s", name,
                               mongo_type_name(value->type));
    given[0] = given[1] = given[2] = document_undefined();
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (i < 3 && !slice_equal(iter.key, slice_of_text(names[i])))
            i++;
        if (i == 3)
            return mongo_error_set(compile->err, MONGO_IDL_UNKNOWN_FIELD,
                                   "BSON field '%s.%.*s' is an unknown field.", name,
                                   SLICE_ARG(iter.key));
        given[i] = iter.value;
    }
    return true;
}

/* The percentiles that are asked for: an array, or null for the median. */
static bool ps_compile(struct expression_compile *compile, const struct document_value *p,
                       struct document_value *ret_p)
{
    const struct query_expression *made;
    struct document_iter iter;
    double number;

    if (!expression_compile_value(compile, p, &made))
        return false;
    if (!query_is_constant(made) || query_constant_value(made)->type != DOCUMENT_ARRAY ||
        !document_count(query_constant_value(made)->document))
        return mongo_error_set(compile->err, 7750301,
                               "The $percentile 'p' field must be an array of numbers from [0.0, "
                               "1.0], but found: %.*s",
                               SLICE_ARG(mongo_text_value(p, compile->build->arena)));
    *ret_p = *query_constant_value(made);
    document_iter_init(&iter, ret_p->document);
    while (document_iter_next(&iter))
        if (!p_check(&iter.value, &number))
            return mongo_error_set(compile->err, 7750303,
                                   "The $percentile 'p' field must be an array of numbers from "
                                   "[0.0, 1.0], but found: %.*s",
                                   SLICE_ARG(mongo_text_value(p, compile->build->arena)));
    return true;
}

bool expression_percentile_read(struct expression_compile *compile, bool median,
                                const struct document_value *value,
                                struct document_value *ret_input, struct document_value *ret_p)
{
    const char *name = median ? "$median" : "$percentile";
    struct document_value given[3];

    if (!percentile_fields(compile, name, value, given))
        return false;
    for (size_t i = 0; i < (median ? 2u : 3u); i++)
        if (given[i].type == DOCUMENT_UNDEFINED)
            return mongo_error_set(compile->err, MONGO_IDL_FAILED_TO_PARSE,
                                   "BSON field '%s.%s' is missing but a required field", name,
                                   i == 0   ? "input"
                                   : i == 1 ? "method"
                                            : "p");
    if (median && given[2].type != DOCUMENT_UNDEFINED)
        return mongo_error_set(compile->err, MONGO_IDL_UNKNOWN_FIELD,
                               "BSON field '$median.p' is an unknown field.");
    if (given[1].type != DOCUMENT_STRING || !slice_equal(given[1].text, SLICE("approximate")))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "Currently only 'approximate' can be used as percentile 'method'.");
    *ret_input = given[0];
    *ret_p = document_null();
    return median || ps_compile(compile, &given[2], ret_p);
}

/* Of one argument an array's elements are taken; of a list, each. Child: the input. */
EXPRESSION_PARSE(expression_percentile_parse)
{
    const struct query_expression *children[2];
    struct document_value input, p;

    if (!expression_percentile_read(compile, op->number, value, &input, &p) ||
        !expression_compile_value(compile, &input, &children[0]))
        return false;
    children[1] = query_constant(compile->build, p);
    *ret = expression_node_make(compile, op, children, 2);
    return true;
}

/* The value of which so large a part is at or below it. */
static struct document_value percentile(const struct document_value *sorted, size_t count, double p)
{
    double rank = ceil(p * (double)count) - 1, number = 0;

    if (!count)
        return document_null();
    (void)document_to_double(&sorted[rank <= 0 ? 0 : MIN((size_t)rank, count - 1)], &number);
    return document_double(number);
}

bool expression_percentile_of(struct query_context *context, struct document_value *values,
                              size_t count, const struct document_value *p,
                              struct document_value *ret_value, struct error *err)
{
    struct expression_array array;
    struct document_iter iter;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (document_is_number(&values[i]))
            values[kept++] = values[i];
    if (!expression_sort(context, values, kept, expression_by_value, NULL, err))
        return false;
    if (p->type != DOCUMENT_ARRAY) {
        *ret_value = percentile(values, kept, 0.5);
        return true;
    }
    expression_array_begin(&array, context);
    document_iter_init(&iter, p->document);
    while (document_iter_next(&iter)) {
        struct document_value value;
        double part = 0;

        (void)document_to_double(&iter.value, &part);
        value = percentile(values, kept, part);
        if (!expression_array_add(&array, &value, err))
            return false;
    }
    return expression_array_end(&array, ret_value, err);
}

EXPRESSION_COMPUTE(expression_percentile)
{
    const struct document_value *input = &call->arguments[0];
    struct document_value single = *input, *values = &single;
    size_t count = 1;

    if (input->type == DOCUMENT_ARRAY)
        values = expression_elements(call->context, input->document, &count, call->err);
    return values && expression_percentile_of(call->context, values, count, &call->arguments[1],
                                              call->ret, call->err);
}
