/* Arrays as sets: values that compare equal are one. */
#include "query/value/set.h"
#include "front/mongo/expression/expression_private.h"

static bool set_of(struct expression_call *call, struct slice array, struct query_set *ret_set)
{
    struct document_iter iter;
    bool is_new;

    query_set_init(ret_set, DOCUMENT_ORDER_MONGO, call->context->arena, 0);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (!query_work(call->context, 1 + (iter.value.type == DOCUMENT_STRING), call->err))
            return false;
        query_set_add(ret_set, &iter.value, &is_new);
    }
    return query_memory_check(call->context, 0, call->err);
}

static bool ordered_give(struct expression_call *call, struct document_value *values, size_t count)
{
    return expression_sort(call->context, values, count, expression_by_value, NULL, call->err) &&
           expression_array_of(call->context, values, count, call->ret, call->err);
}

/* $setUnion and $setIntersection; number 1: the latter. */
EXPRESSION_COMPUTE(expression_set_combine)
{
    bool intersect = call->node->number;
    struct query_set set, other;
    struct document_iter iter;
    bool is_new;

    for (size_t i = 0; i < call->count; i++) {
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, intersect ? 17047 : 17043,
                                   "All operands of %s must be arrays. One argument is of type: %s",
                                   call->node->op->name, expression_type_name(&call->arguments[i]));
    }
    query_set_init(&set, DOCUMENT_ORDER_MONGO, call->context->arena, 0);
    for (size_t i = 0; i < call->count; i++) {
        if (intersect && i) {
            size_t kept = 0;
            struct document_value *values;

            if (!set_of(call, call->arguments[i].document, &other))
                return false;
            values = query_alloc(call->context, (set.count + 1) * sizeof *values, call->err);
            if (!values)
                return false;
            for (size_t j = 0; j < set.count; j++)
                if (query_set_find(&other, &set.values[j]) != SIZE_MAX)
                    values[kept++] = set.values[j];
            query_set_init(&set, DOCUMENT_ORDER_MONGO, call->context->arena, kept);
            for (size_t j = 0; j < kept; j++)
                query_set_add(&set, &values[j], &is_new);
            continue;
        }
        document_iter_init(&iter, call->arguments[i].document);
        while (document_iter_next(&iter)) {
            if (!query_work(call->context, 1, call->err))
                return false;
            query_set_add(&set, &iter.value, &is_new);
        }
        if (!query_memory_check(call->context, 0, call->err))
            return false;
    }
    return ordered_give(call, set.values, set.count);
}

static bool two_arrays(struct expression_call *call, int code_first, int code_second)
{
    for (size_t i = 0; i < 2; i++)
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, i ? code_second : code_first,
                                   "both operands of %s must be arrays. %s argument is of type: %s",
                                   call->node->op->name, i ? "Second" : "First",
                                   expression_type_name(&call->arguments[i]));
    return true;
}

EXPRESSION_COMPUTE(expression_set_difference)
{
    struct query_set other, given;
    struct document_iter iter;
    struct expression_array left;
    bool is_new;

    if (expression_is_nullish(&call->arguments[0]) || expression_is_nullish(&call->arguments[1]))
        return expression_give_null(call);
    if (!two_arrays(call, 17048, 17049) || !set_of(call, call->arguments[1].document, &other))
        return false;
    query_set_init(&given, DOCUMENT_ORDER_MONGO, call->context->arena, 0);
    expression_array_begin(&left, call->context);
    document_iter_init(&iter, call->arguments[0].document);
    while (document_iter_next(&iter)) {
        if (!query_work(call->context, 1, call->err))
            return expression_array_drop(&left);
        if (query_set_find(&other, &iter.value) != SIZE_MAX)
            continue;
        query_set_add(&given, &iter.value, &is_new);
        if (is_new && !expression_array_add(&left, &iter.value, call->err))
            return false;
    }
    return expression_array_end(&left, call->ret, call->err);
}

static bool is_within(const struct query_set *part, const struct query_set *whole)
{
    for (size_t i = 0; i < part->count; i++)
        if (query_set_find(whole, &part->values[i]) == SIZE_MAX)
            return false;
    return true;
}

/* $setEquals and $setIsSubset; number 1: the latter. */
EXPRESSION_COMPUTE(expression_set_compare)
{
    struct query_set first, other;
    bool holds = true;

    if (call->node->number) {
        if (!two_arrays(call, 17046, 17042) || !set_of(call, call->arguments[0].document, &first) ||
            !set_of(call, call->arguments[1].document, &other))
            return false;
        return expression_give(call, document_bool(is_within(&first, &other)));
    }
    for (size_t i = 0; i < call->count; i++)
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, 17044,
                                   "All operands of $setEquals must be arrays. One argument is of "
                                   "type: %s",
                                   expression_type_name(&call->arguments[i]));
    if (!set_of(call, call->arguments[0].document, &first))
        return false;
    for (size_t i = 1; i < call->count && holds; i++) {
        if (!set_of(call, call->arguments[i].document, &other))
            return false;
        holds = first.count == other.count && is_within(&first, &other);
    }
    return expression_give(call, document_bool(holds));
}

/* $allElementsTrue and $anyElementTrue; number: the truth that decides. */
EXPRESSION_COMPUTE(expression_elements_true)
{
    const struct document_value *array = &call->arguments[0];
    bool any = call->node->number;
    struct document_iter iter;

    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, any ? 17041 : 17040,
                               "%s's argument must be an array, but is %s", call->node->op->name,
                               expression_type_name(array));
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter)) {
        if (!query_work(call->context, 1, call->err))
            return false;
        if (mongo_expression_truth(&iter.value) == any)
            return expression_give(call, document_bool(any));
    }
    return expression_give(call, document_bool(!any));
}
