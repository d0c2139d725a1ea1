/* Arrays as a whole: elements, parts, order. */
#include "front/mongo/expression/expression_private.h"

/* --- Elements --------------------------------------------------------------------------------- */

static bool element_give(struct expression_call *call, struct slice array, int64_t index)
{
    if (index < 0)
        index += (int64_t)document_count(array);
    if (!query_work(call->context, array.len >> 6, call->err))
        return false;
    if (index < 0 || !document_find_index(array, (uint64_t)index, call->ret))
        *call->ret = document_undefined();
    return true;
}

EXPRESSION_COMPUTE(expression_element_at)
{
    const struct document_value *array = &call->arguments[0], *at = &call->arguments[1];
    int32_t index;

    if (expression_is_nullish(array) || expression_is_nullish(at))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 28689,
                               "$arrayElemAt's first argument must be an array, but is %s",
                               expression_type_name(array));
    if (!document_is_number(at))
        return mongo_error_set(call->err, 28690,
                               "$arrayElemAt's second argument must be a numeric value, but is %s",
                               expression_type_name(at));
    if (!expression_to_int32(at, &index))
        return mongo_error_set(
            call->err, 28691,
            "$arrayElemAt's second argument must be representable as a 32-bit integer: %s",
            expression_show(call->context, at));
    return element_give(call, array->document, index);
}

EXPRESSION_COMPUTE(expression_first)
{
    const struct document_value *array = &call->arguments[0];

    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 28689, "%s's argument must be an array, but is %s",
                               call->node->op->name, expression_type_name(array));
    return element_give(call, array->document, call->node->number);
}

EXPRESSION_COMPUTE(expression_in)
{
    const struct document_value *array = &call->arguments[1];
    struct document_iter iter;
    int order;

    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 40081,
                               "$in requires an array as a second argument, found: %s",
                               expression_type_name(array));
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter)) {
        if (!query_work(call->context, 1, call->err) ||
            !expression_order(call, &call->arguments[0], &iter.value, &order))
            return false;
        if (order == 0)
            return expression_give(call, document_bool(true));
    }
    return expression_give(call, document_bool(false));
}

bool expression_bounds(struct expression_call *call, size_t first, int64_t *ret_from,
                       int64_t *ret_to)
{
    static const char *const names[] = {"starting", "ending"};
    int64_t *const bounds[] = {ret_from, ret_to};

    *ret_from = 0;
    *ret_to = INT64_MAX;
    for (size_t i = 0; i < 2 && first + i < call->count; i++) {
        const struct document_value *value = &call->arguments[first + i];
        int32_t bound;

        if (!expression_to_int32(value, &bound))
            return mongo_error_set(call->err, 40096,
                                   "%s requires an integral %s index, found a value of type: %s, "
                                   "with value: %s",
                                   call->node->op->name, names[i], expression_type_name(value),
                                   expression_show(call->context, value));
        if (bound < 0)
            return mongo_error_set(call->err, 40097,
                                   "%s requires a nonnegative %s index, found: %d",
                                   call->node->op->name, names[i], bound);
        *bounds[i] = bound;
    }
    return true;
}

EXPRESSION_COMPUTE(expression_index_of_array)
{
    const struct document_value *array = &call->arguments[0];
    struct document_iter iter;
    int64_t from, to;
    int order;

    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 40090,
                               "$indexOfArray requires an array as a first argument, found: %s",
                               expression_type_name(array));
    if (!expression_bounds(call, 2, &from, &to))
        return false;
    document_iter_init(&iter, array->document);
    for (int64_t i = 0; i < to && document_iter_next(&iter); i++) {
        if (!query_work(call->context, 1, call->err) ||
            !expression_order(call, &call->arguments[1], &iter.value, &order))
            return false;
        if (i >= from && order == 0)
            return expression_give(call, document_int32((int32_t)i));
    }
    return expression_give(call, document_int32(-1));
}

EXPRESSION_COMPUTE(expression_is_array)
{
    return expression_give(call, document_bool(call->arguments[0].type == DOCUMENT_ARRAY));
}

EXPRESSION_COMPUTE(expression_size)
{
    const struct document_value *array = &call->arguments[0];

    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 17124,
                               "The argument to $size must be an array, but was of type: %s",
                               expression_type_name(array));
    return query_work(call->context, array->document.len >> 6, call->err) &&
           expression_give(call, document_int32((int32_t)document_count(array->document)));
}

/* --- Arrays of arrays ------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_concat_arrays)
{
    struct expression_array joined;
    struct document_iter iter;

    for (size_t i = 0; i < call->count; i++) {
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, 28664, "$concatArrays only supports arrays, not %s",
                                   expression_type_name(&call->arguments[i]));
    }
    expression_array_begin(&joined, call->context);
    for (size_t i = 0; i < call->count; i++) {
        document_iter_init(&iter, call->arguments[i].document);
        while (document_iter_next(&iter)) {
            if (!query_work(call->context, 1, call->err))
                return expression_array_drop(&joined);
            if (!expression_array_add(&joined, &iter.value, call->err))
                return false;
        }
    }
    return expression_array_end(&joined, call->ret, call->err);
}

static bool range_argument(struct expression_call *call, size_t number, int32_t *ret_value)
{
    static const char *const names[] = {"starting value", "ending value", "step value"};
    static const char *const articles[] = {"a", "an", "a"};
    const struct document_value *value = &call->arguments[number];

    if (!document_is_number(value))
        return mongo_error_set(call->err, 34443 + 2 * (int)number,
                               "$range requires a numeric %s, found value of type: %s",
                               names[number], expression_type_name(value));
    if (!expression_to_int32(value, ret_value))
        return mongo_error_set(call->err, 34444 + 2 * (int)number,
                               "$range requires %s %s that can be represented as a 32-bit "
                               "integer, found value: %s",
                               articles[number], names[number],
                               expression_show(call->context, value));
    return true;
}

EXPRESSION_COMPUTE(expression_range)
{
    struct expression_array range;
    int32_t from, to, step = 1;

    if (!range_argument(call, 0, &from) || !range_argument(call, 1, &to) ||
        (call->count > 2 && !range_argument(call, 2, &step)))
        return false;
    if (!step)
        return mongo_error_set(call->err, 34449, "$range requires a non-zero step value");
    expression_array_begin(&range, call->context);
    for (int64_t at = from; step > 0 ? at < to : at > to; at += step) {
        const struct document_value value = document_int32((int32_t)at);

        if (!query_work(call->context, 1, call->err))
            return expression_array_drop(&range);
        if (!expression_array_add(&range, &value, call->err))
            return false;
    }
    return expression_array_end(&range, call->ret, call->err);
}

EXPRESSION_COMPUTE(expression_reverse)
{
    const struct document_value *array = &call->arguments[0];
    struct document_value *values;
    size_t count;

    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 34435,
                               "The argument to $reverseArray must be an array, but was of type: "
                               "%s",
                               expression_type_name(array));
    values = expression_elements(call->context, array->document, &count, call->err);
    if (!values)
        return false;
    for (size_t i = 0; i < count / 2; i++) {
        struct document_value other = values[i];

        values[i] = values[count - 1 - i];
        values[count - 1 - i] = other;
    }
    return expression_array_of(call->context, values, count, call->ret, call->err);
}

/* --- Parts ------------------------------------------------------------------------------------ */

static bool slice_argument(struct expression_call *call, size_t number, int32_t *ret_value)
{
    static const char *const names[] = {"", "Second", "Third"};
    const struct document_value *value = &call->arguments[number];

    if (!document_is_number(value))
        return mongo_error_set(call->err, 28725 + 2 * ((int)number - 1),
                               "%s argument to $slice must be a numeric value, but is of type: %s",
                               names[number], expression_type_name(value));
    if (!expression_to_int32(value, ret_value))
        return mongo_error_set(call->err, 28726 + 2 * ((int)number - 1),
                               "%s argument to $slice can't be represented as a 32-bit integer: %s",
                               names[number], expression_show(call->context, value));
    return true;
}

/* count elements from `from` on, as far as they are there. */
static bool part_give(struct expression_call *call, struct slice array, int64_t from, int64_t count)
{
    struct expression_array part;
    struct document_iter iter;

    expression_array_begin(&part, call->context);
    document_iter_init(&iter, array);
    for (int64_t i = 0; i < from + count && document_iter_next(&iter); i++) {
        if (!query_work(call->context, 1, call->err))
            return expression_array_drop(&part);
        if (i >= from && !expression_array_add(&part, &iter.value, call->err))
            return false;
    }
    return expression_array_end(&part, call->ret, call->err);
}

EXPRESSION_COMPUTE(expression_slice)
{
    const struct document_value *array = &call->arguments[0];
    int64_t length, from = 0, count;
    int32_t first, second = 0;

    for (size_t i = 0; i < call->count; i++)
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 28724,
                               "First argument to $slice must be an array, but is of type: %s",
                               expression_type_name(array));
    if (!slice_argument(call, 1, &first) || (call->count > 2 && !slice_argument(call, 2, &second)))
        return false;
    length = (int64_t)document_count(array->document);
    if (call->count == 2) {
        from = first < 0 ? MAX(length + first, (int64_t)0) : 0;
        count = first < 0 ? length - from : first;
        return part_give(call, array->document, from, count);
    }
    if (second <= 0)
        return mongo_error_set(call->err, 28729, "Third argument to $slice must be positive: %d",
                               second);
    from = first < 0 ? MAX(length + first, (int64_t)0) : MIN((int64_t)first, length);
    return part_give(call, array->document, from, second);
}

/* $firstN, $lastN, $minN and $maxN of an array. */
EXPRESSION_COMPUTE(expression_some)
{
    const struct document_value *n = &call->arguments[0], *array = &call->arguments[1];
    struct document_value *values;
    size_t count, kept = 0;
    int64_t wanted;

    if (!document_is_number(n) || !document_to_int64(n, &wanted))
        return mongo_error_set(call->err, 5787902,
                               "Value for 'n' must be of integral type, but found %s",
                               expression_show(call->context, n));
    if (wanted <= 0)
        return mongo_error_set(call->err, 5787908, "'n' must be greater than 0, found %lld",
                               (long long)wanted);
    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 5788200, "Input must be an array");
    values = expression_elements(call->context, array->document, &count, call->err);
    if (!values)
        return false;
    if (call->node->number == EXPRESSION_MIN_N || call->node->number == EXPRESSION_MAX_N) {
        for (size_t i = 0; i < count; i++)
            if (!expression_is_nullish(&values[i]))
                values[kept++] = values[i];
        count = kept;
        if (!expression_sort_values(call, values, count, call->node->number == EXPRESSION_MAX_N))
            return false;
    }
    if ((uint64_t)wanted < count) {
        if (call->node->number == EXPRESSION_LAST_N)
            values += count - (size_t)wanted;
        count = (size_t)wanted;
    }
    return expression_array_of(call->context, values, count, call->ret, call->err);
}

/* --- Order ------------------------------------------------------------------------------------ */

bool expression_sort_read(struct expression_compile *compile, const struct document_value *pattern,
                          const struct expression_sort **ret_sort)
{
    struct expression_sort *sort = ARENA_NEW(compile->build->arena, struct expression_sort);
    size_t room = pattern->type == DOCUMENT_OBJECT ? document_count(pattern->document) : 1;
    struct document_iter iter;
    int64_t direction;

    sort->keys = ARENA_ARRAY(compile->build->arena, struct expression_sort_key, room + 1);
    *ret_sort = sort;
    if (pattern->type != DOCUMENT_OBJECT) {
        if (!document_to_int64(pattern, &direction) || (direction != 1 && direction != -1))
            return mongo_error_set(compile->err, 2942507,
                                   "The sortBy argument must be 1, -1 or an object such as "
                                   "{field: 1}");
        sort->keys[0].descending = direction < 0;
        return true;
    }
    if (!room)
        return mongo_error_set(compile->err, 15976, "$sort stage must have at least one sort key");
    document_iter_init(&iter, pattern->document);
    while (document_iter_next(&iter)) {
        struct expression_sort_key *key = &sort->keys[sort->count];

        if (!document_to_int64(&iter.value, &direction) || (direction != 1 && direction != -1))
            return mongo_error_set(compile->err, 15975,
                                   "$sort key ordering must be 1 (for ascending) or -1 (for "
                                   "descending)");
        key->descending = direction < 0;
        if (!expression_steps_read(compile, iter.key, &key->names, &key->count))
            return false;
        sort->count++;
    }
    return true;
}

/* What the key leads to. */
static struct document_value key_found(const struct expression_sort_key *key,
                                       const struct document_value *value)
{
    struct document_value found = *value;

    for (size_t i = 0; i < key->count; i++)
        if (found.type != DOCUMENT_OBJECT || !document_find(found.document, key->names[i], &found))
            return document_null();
    return found.type == DOCUMENT_UNDEFINED ? document_null() : found;
}

/* Of an array the least element, or the greatest. */
static struct document_value key_end(const struct expression_sort_key *key,
                                     const struct document_value *found)
{
    struct document_value best = document_undefined();
    struct document_iter iter;

    if (found->type != DOCUMENT_ARRAY)
        return *found;
    document_iter_init(&iter, found->document);
    while (document_iter_next(&iter)) {
        int order = best.type == DOCUMENT_UNDEFINED
                        ? -1
                        : document_compare(DOCUMENT_ORDER_MONGO, &iter.value, &best);

        if (key->descending ? order > 0 || best.type == DOCUMENT_UNDEFINED : order < 0)
            best = iter.value;
    }
    return best;
}

bool expression_sort_key_form(struct expression_call *call, const struct expression_sort_key *key,
                              const struct document_value *value, struct document_value *ret_key)
{
    struct document_value found = key_found(key, value), form;

    if (!mongo_collate(call->node->collator, &found, call->context, &form, call->err))
        return false;
    *ret_key = key_end(key, &form);
    return true;
}

/* The keys of all elements, one behind the other: those of the first element first. */
struct keyed {
    const struct expression_sort *sort;
    const struct document_value *keys;
};

static int by_numbered_keys(const void *self, const struct document_value *a,
                            const struct document_value *b)
{
    const struct keyed *keyed = self;
    const struct expression_sort *sort = keyed->sort;
    const struct document_value *left = keyed->keys + (size_t)a->int64 * sort->count;
    const struct document_value *right = keyed->keys + (size_t)b->int64 * sort->count;

    for (size_t i = 0; i < sort->count; i++) {
        int order = document_compare(DOCUMENT_ORDER_MONGO, &left[i], &right[i]);

        if (order)
            return sort->keys[i].descending ? -order : order;
    }
    return 0;
}

/* Elements by their keys, in comparison form. */
static bool sort_by_keys(struct expression_call *call, const struct expression_sort *sort,
                         struct document_value *values, size_t count)
{
    struct document_value *keys =
        query_alloc(call->context, (count * sort->count + 1) * sizeof *keys, call->err);
    struct keyed keyed = {sort, keys};

    for (size_t i = 0; keys && i < count; i++)
        for (size_t k = 0; k < sort->count; k++)
            if (!expression_sort_key_form(call, &sort->keys[k], &values[i],
                                          &keys[i * sort->count + k]))
                return false;
    return keys && expression_sort_numbered(call, values, count, by_numbered_keys, &keyed);
}

EXPRESSION_PARSE(expression_sort_parse)
{
    struct document_value by = document_undefined(), input = document_undefined();
    const struct query_expression *child;
    const struct expression_sort *sort;
    struct expression_node *node;
    struct document_iter iter;
    bool has_input = false;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 2942500,
                               "$sortArray requires an object as an argument, found: %s",
                               mongo_type_name(value->type));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("input"))) {
            input = iter.value;
            has_input = true;
        } else if (slice_equal(iter.key, SLICE("sortBy"))) {
            by = iter.value;
        } else {
            return mongo_error_set(compile->err, 2942501,
                                   "$sortArray found an unknown argument: %.*s",
                                   SLICE_ARG(iter.key));
        }
    }
    if (!has_input)
        return mongo_error_set(compile->err, 2942502,
                               "$sortArray requires 'input' to be specified");
    if (by.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(compile->err, 2942503,
                               "$sortArray requires 'sortBy' to be specified");
    if (!expression_sort_read(compile, &by, &sort) ||
        !expression_compile_value(compile, &input, &child))
        return false;
    node = expression_node_new(compile, op, &child, 1);
    node->sort = sort;
    *ret = expression_node_fold(compile, node);
    return true;
}

EXPRESSION_COMPUTE(expression_sort_array)
{
    const struct document_value *array = &call->arguments[0];
    const struct expression_sort *sort = call->node->sort;
    struct document_value *values;
    size_t count;

    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 2942504,
                               "The input argument to $sortArray must be an array, but was of "
                               "type: %s",
                               expression_type_name(array));
    values = expression_elements(call->context, array->document, &count, call->err);
    if (!values ||
        !(sort->count ? sort_by_keys(call, sort, values, count)
                      : expression_sort_values(call, values, count, sort->keys[0].descending)))
        return false;
    return expression_array_of(call->context, values, count, call->ret, call->err);
}
