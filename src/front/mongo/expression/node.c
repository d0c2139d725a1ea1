/* What operators share: variables that are bound, arrays and texts that are put together, values in
 * messages. */
#include "front/mongo/expression/expression_private.h"

const char *expression_type_name(const struct document_value *value)
{
    return value->type == DOCUMENT_UNDEFINED ? "missing" : mongo_type_name(value->type);
}

const char *expression_show(struct query_context *context, const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return "missing";
    return arena_text(context->arena, mongo_text_value(value, context->arena));
}

bool expression_evaluate_with(const struct query_expression *child, struct query_context *context,
                              const struct document_value *value, struct document_value *ret_value,
                              struct error *err)
{
    struct query_local local = {.outer = context->locals, .value = *value};
    bool evaluated;

    context->locals = &local;
    evaluated = query_evaluate(child, context, ret_value, err);
    context->locals = local.outer;
    return evaluated;
}

bool expression_to_int32(const struct document_value *value, int32_t *ret_number)
{
    int64_t number;

    if (!document_to_int64(value, &number) || number < INT32_MIN || number > INT32_MAX)
        return false;
    *ret_number = (int32_t)number;
    return true;
}

/* --- Arrays ----------------------------------------------------------------------------------- */

void expression_array_begin(struct expression_array *array, struct query_context *context)
{
    *array = (struct expression_array){.context = context, .mark = query_build_begin(context)};
    array->begin = document_begin(&context->scratch);
}

bool expression_array_drop(struct expression_array *array)
{
    return query_build_drop(array->context, array->mark);
}

bool expression_array_add(struct expression_array *array, const struct document_value *value,
                          struct error *err)
{
    const struct document_value null = document_null();
    char text[DOCUMENT_INDEX_SIZE];

    if (!query_build_append(array->context, document_index_key(array->count++, text),
                            value->type == DOCUMENT_UNDEFINED ? &null : value, err))
        return expression_array_drop(array);
    return true;
}

bool expression_array_end(struct expression_array *array, struct document_value *ret_value,
                          struct error *err)
{
    return query_build_close(array->context, array->mark, array->begin, DOCUMENT_ARRAY, ret_value,
                             err);
}

struct document_value *expression_elements(struct query_context *context, struct slice array,
                                           size_t *ret_count, struct error *err)
{
    size_t count = document_count(array), i = 0;
    struct document_value *values;
    struct document_iter iter;

    if (!query_work(context, count + 1, err))
        return NULL;
    values = query_alloc(context, (count + 1) * sizeof *values, err);
    if (!values)
        return NULL;
    document_iter_init(&iter, array);
    while (i < count && document_iter_next(&iter))
        values[i++] = iter.value;
    *ret_count = i;
    return values;
}

bool expression_array_of(struct query_context *context, const struct document_value *values,
                         size_t count, struct document_value *ret_value, struct error *err)
{
    struct expression_array array;

    expression_array_begin(&array, context);
    for (size_t i = 0; i < count; i++)
        if (!expression_array_add(&array, &values[i], err))
            return false;
    return expression_array_end(&array, ret_value, err);
}

/* --- Texts ------------------------------------------------------------------------------------ */

bool expression_text(struct expression_call *call, struct slice text)
{
    uint8_t *bytes = query_alloc(call->context, text.len + 1, call->err);

    if (!bytes)
        return false;
    if (text.len)
        memcpy(bytes, text.data, text.len);
    return expression_give(call, document_string(slice_of(bytes, text.len)));
}

bool expression_text_end(struct expression_call *call, size_t mark)
{
    struct slice text;

    return query_build_end(call->context, mark, &text, call->err) &&
           expression_give(call, document_string(text));
}

/* --- Order ------------------------------------------------------------------------------------ */

int expression_by_value(const void *self UNUSED, const struct document_value *a,
                        const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, a, b);
}

int expression_by_value_down(const void *self UNUSED, const struct document_value *a,
                             const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, b, a);
}

/* Merging from runs of one up: stable, bounded, and the work is counted as it is done. */
bool expression_sort(struct query_context *context, struct document_value *values, size_t count,
                     int (*compare)(const void *self, const struct document_value *a,
                                    const struct document_value *b),
                     const void *self, struct error *err)
{
    struct document_value *other, *from = values, *to;

    if (count < 2)
        return true;
    other = query_alloc(context, count * sizeof *other, err);
    if (!other)
        return false;
    to = other;
    for (size_t width = 1; width < count; width *= 2) {
        if (!query_work(context, count, err))
            return false;
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = MIN(begin + width, count), end = MIN(begin + 2 * width, count);
            size_t left = begin, right = middle;

            for (size_t at = begin; at < end; at++) {
                bool take_left = right == end;

                if (!take_left && left < middle)
                    take_left = compare(self, &from[left], &from[right]) <= 0;
                to[at] = take_left ? from[left++] : from[right++];
            }
        }
        to = from;
        from = from == values ? other : values;
    }
    if (from != values)
        memcpy(values, from, count * sizeof *values);
    return true;
}

bool expression_sort_numbered(struct expression_call *call, struct document_value *values,
                              size_t count,
                              int (*compare)(const void *self, const struct document_value *a,
                                             const struct document_value *b),
                              const void *self)
{
    size_t bytes = (count + 1) * sizeof *values;
    struct document_value *numbers = query_alloc(call->context, bytes, call->err);
    struct document_value *before = query_alloc(call->context, bytes, call->err);

    if (!numbers || !before)
        return false;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = document_int64((int64_t)i);
        before[i] = values[i];
    }
    if (!expression_sort(call->context, numbers, count, compare, self, call->err))
        return false;
    for (size_t i = 0; i < count; i++)
        values[i] = before[numbers[i].int64];
    return true;
}

static int by_form(const void *self, const struct document_value *a, const struct document_value *b)
{
    const struct document_value *forms = self;

    return document_compare(DOCUMENT_ORDER_MONGO, &forms[a->int64], &forms[b->int64]);
}

static int by_form_down(const void *self, const struct document_value *a,
                        const struct document_value *b)
{
    return by_form(self, b, a);
}

bool expression_sort_values(struct expression_call *call, struct document_value *values,
                            size_t count, bool down)
{
    struct document_value *forms;

    if (!call->node->collator)
        return expression_sort(call->context, values, count,
                               down ? expression_by_value_down : expression_by_value, NULL,
                               call->err);
    forms = query_alloc(call->context, (count + 1) * sizeof *forms, call->err);
    for (size_t i = 0; forms && i < count; i++)
        if (!mongo_collate(call->node->collator, &values[i], call->context, &forms[i], call->err))
            return false;
    return forms &&
           expression_sort_numbered(call, values, count, down ? by_form_down : by_form, forms);
}
