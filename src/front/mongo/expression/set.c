/* Arrays as sets: values that compare equal, by the collation of the operator, are one, which is
 * the first of them. */
#include "query/value/set.h"
#include "front/mongo/expression/expression_private.h"

/* Values once each: found by their comparison form, shown as they are. */
struct members {
    struct query_set forms;
    struct document_value *shown; /* NULL: the forms are what is shown */
    size_t capacity;
};

static void members_init(struct expression_call *call, struct members *members)
{
    *members = (struct members){0};
    query_set_init(&members->forms, DOCUMENT_ORDER_MONGO, call->context->arena, 0);
}

static bool shown_grow(struct expression_call *call, struct members *members)
{
    size_t capacity = members->capacity * 2 + 16;
    struct document_value *longer =
        query_alloc(call->context, capacity * sizeof *longer, call->err);

    if (!longer)
        return false;
    if (members->capacity)
        memcpy(longer, members->shown, members->capacity * sizeof *longer);
    members->shown = longer;
    members->capacity = capacity;
    return true;
}

static bool members_add(struct expression_call *call, struct members *members,
                        const struct document_value *value, bool *ret_new)
{
    struct document_value form;

    if (!query_work(call->context, 1 + (value->type == DOCUMENT_STRING), call->err) ||
        !mongo_collate(call->node->collator, value, call->context, &form, call->err))
        return false;
    query_set_add(&members->forms, &form, ret_new);
    if (!*ret_new || !call->node->collator)
        return true;
    if (members->forms.count > members->capacity && !shown_grow(call, members))
        return false;
    members->shown[members->forms.count - 1] = *value;
    return true;
}

static bool members_of(struct expression_call *call, struct slice array,
                       struct members *ret_members)
{
    struct document_iter iter;
    bool is_new;

    members_init(call, ret_members);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (!members_add(call, ret_members, &iter.value, &is_new))
            return false;
    return query_memory_check(call->context, 0, call->err);
}

static bool has(const struct members *members, const struct document_value *form)
{
    return query_set_find(&members->forms, form) != SIZE_MAX;
}

static struct document_value *values_of(const struct members *members)
{
    return members->shown ? members->shown : members->forms.values;
}

static bool ordered_give(struct expression_call *call, struct members *members)
{
    struct document_value *values = values_of(members);

    return expression_sort_values(call, values, members->forms.count, false) &&
           expression_array_of(call->context, values, members->forms.count, call->ret, call->err);
}

/* Leaves those that are among the others too. */
static bool members_intersect(struct expression_call *call, struct members *members,
                              struct slice array)
{
    struct members other, kept;
    const struct document_value *values = values_of(members);
    bool is_new;

    if (!members_of(call, array, &other))
        return false;
    members_init(call, &kept);
    for (size_t i = 0; i < members->forms.count; i++)
        if (has(&other, &members->forms.values[i]) &&
            !members_add(call, &kept, &values[i], &is_new))
            return false;
    *members = kept;
    return true;
}

/* $setUnion and $setIntersection; number 1: the latter. */
EXPRESSION_COMPUTE(expression_set_combine)
{
    bool intersect = call->node->number;
    struct document_iter iter;
    struct members members;
    bool is_new;

    for (size_t i = 0; i < call->count; i++) {
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, intersect ? 17047 : 17043,
                                   "All operands of %s must be arrays. One argument is of type: %s",
                                   call->node->op->name, expression_type_name(&call->arguments[i]));
    }
    members_init(call, &members);
    for (size_t i = 0; i < call->count; i++) {
        if (intersect && i) {
            if (!members_intersect(call, &members, call->arguments[i].document))
                return false;
            continue;
        }
        document_iter_init(&iter, call->arguments[i].document);
        while (document_iter_next(&iter))
            if (!members_add(call, &members, &iter.value, &is_new))
                return false;
        if (!query_memory_check(call->context, 0, call->err))
            return false;
    }
    return ordered_give(call, &members);
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
    struct members other, given;
    const struct document_value *values;
    struct expression_array left;

    if (expression_is_nullish(&call->arguments[0]) || expression_is_nullish(&call->arguments[1]))
        return expression_give_null(call);
    if (!two_arrays(call, 17048, 17049) || !members_of(call, call->arguments[1].document, &other) ||
        !members_of(call, call->arguments[0].document, &given))
        return false;
    values = values_of(&given);
    expression_array_begin(&left, call->context);
    for (size_t i = 0; i < given.forms.count; i++)
        if (!has(&other, &given.forms.values[i]) &&
            !expression_array_add(&left, &values[i], call->err))
            return false;
    return expression_array_end(&left, call->ret, call->err);
}

static bool is_within(const struct members *part, const struct members *whole)
{
    for (size_t i = 0; i < part->forms.count; i++)
        if (!has(whole, &part->forms.values[i]))
            return false;
    return true;
}

/* $setEquals and $setIsSubset; number 1: the latter. */
EXPRESSION_COMPUTE(expression_set_compare)
{
    struct members first, other;
    bool holds = true;

    if (call->node->number) {
        if (!two_arrays(call, 17046, 17042) ||
            !members_of(call, call->arguments[0].document, &first) ||
            !members_of(call, call->arguments[1].document, &other))
            return false;
        return expression_give(call, document_bool(is_within(&first, &other)));
    }
    for (size_t i = 0; i < call->count; i++)
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, 17044,
                                   "All operands of $setEquals must be arrays. One argument is of "
                                   "type: %s",
                                   expression_type_name(&call->arguments[i]));
    if (!members_of(call, call->arguments[0].document, &first))
        return false;
    for (size_t i = 1; i < call->count && holds; i++) {
        if (!members_of(call, call->arguments[i].document, &other))
            return false;
        holds = first.forms.count == other.forms.count && is_within(&first, &other);
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
