/* Arrays element by element, with a variable for each of them. */
#include "front/mongo/expression/expression_private.h"

struct each_codes {
    int object, unknown, input, body;
    const char *body_name;
};

static const struct each_codes map_codes = {16878, 16879, 16880, 16882, "in"};
static const struct each_codes filter_codes = {28646, 28647, 28648, 28650, "cond"};

/* With one more variable. */
static bool inner_compile(struct expression_compile *compile, struct slice name,
                          const struct document_value *value, const struct query_expression **ret)
{
    const struct expression_local local = {compile->locals, name, compile->depth};
    bool compiled;

    compile->locals = &local;
    compile->depth++;
    compiled = expression_compile_value(compile, value, ret);
    compile->depth--;
    compile->locals = local.outer;
    return compiled;
}

/* $map and $filter. Children: the input, what is done with each element, the limit of $filter. */
EXPRESSION_PARSE(expression_each_parse)
{
    bool filter = op->evaluate == expression_filter;
    const struct each_codes *codes = filter ? &filter_codes : &map_codes;
    struct document_value input = document_undefined(), body = input, limit = input;
    const struct query_expression *children[3];
    bool has_input = false, has_body = false, has_limit = false;
    struct slice as = SLICE("this");
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, codes->object,
                               "%s only supports an object as its argument", op->name);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("input"))) {
            input = iter.value;
            has_input = true;
        } else if (slice_equal(iter.key, SLICE("as"))) {
            if (iter.value.type != DOCUMENT_STRING)
                return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                                       "'as' of %s must be a string, found: %s", op->name,
                                       mongo_type_name(iter.value.type));
            as = iter.value.text;
            if (!mongo_variable_name_check(as, compile->err))
                return false;
        } else if (slice_equal(iter.key, slice_of_text(codes->body_name))) {
            body = iter.value;
            has_body = true;
        } else if (filter && slice_equal(iter.key, SLICE("limit"))) {
            limit = iter.value;
            has_limit = true;
        } else {
            return mongo_error_set(compile->err, codes->unknown,
                                   "Unrecognized parameter to %s: %.*s", op->name,
                                   SLICE_ARG(iter.key));
        }
    }
    if (!has_input)
        return mongo_error_set(compile->err, codes->input, "Missing 'input' parameter to %s",
                               op->name);
    if (!has_body)
        return mongo_error_set(compile->err, codes->body, "Missing '%s' parameter to %s",
                               codes->body_name, op->name);
    if (!expression_compile_value(compile, &input, &children[0]) ||
        !inner_compile(compile, as, &body, &children[1]) ||
        (has_limit && !expression_compile_value(compile, &limit, &children[2])))
        return false;
    *ret = expression_node_make(compile, op, children, has_limit ? 3 : 2);
    return true;
}

EXPRESSION_EVALUATE(expression_map)
{
    struct document_value input, mapped;
    struct expression_array array;
    struct document_iter iter;

    if (!query_evaluate(node->head.children[0], context, &input, err))
        return false;
    if (expression_is_nullish(&input)) {
        *ret_value = document_null();
        return true;
    }
    if (input.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 16883, "input to $map must be an array not %s",
                               expression_type_name(&input));
    expression_array_begin(&array, context);
    document_iter_init(&iter, input.document);
    while (document_iter_next(&iter)) {
        if (!expression_evaluate_with(node->head.children[1], context, &iter.value, &mapped, err))
            return expression_array_drop(&array);
        if (!expression_array_add(&array, &mapped, err))
            return false;
    }
    return expression_array_end(&array, ret_value, err);
}

/* How many elements $filter gives at most. */
static bool limit_read(const struct expression_node *node, struct query_context *context,
                       int64_t *ret_limit, struct error *err)
{
    struct document_value value;
    int32_t limit;

    *ret_limit = INT64_MAX;
    if (node->head.child_count < 3)
        return true;
    if (!query_evaluate(node->head.children[2], context, &value, err))
        return false;
    if (expression_is_nullish(&value))
        return true;
    if (!expression_to_int32(&value, &limit))
        return mongo_error_set(err, 327391,
                               "$filter: limit must be represented as a 32-bit integral value: %s",
                               expression_show(context, &value));
    if (limit <= 0)
        return mongo_error_set(err, 327392, "$filter: limit must be greater than 0: %d", limit);
    *ret_limit = limit;
    return true;
}

EXPRESSION_EVALUATE(expression_filter)
{
    struct document_value input, kept;
    struct expression_array array;
    struct document_iter iter;
    int64_t limit;

    if (!query_evaluate(node->head.children[0], context, &input, err))
        return false;
    if (expression_is_nullish(&input)) {
        *ret_value = document_null();
        return true;
    }
    if (input.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 28651, "input to $filter must be an array not %s",
                               expression_type_name(&input));
    if (!limit_read(node, context, &limit, err))
        return false;
    expression_array_begin(&array, context);
    document_iter_init(&iter, input.document);
    while (array.count < limit && document_iter_next(&iter)) {
        if (!expression_evaluate_with(node->head.children[1], context, &iter.value, &kept, err))
            return expression_array_drop(&array);
        if (mongo_expression_truth(&kept) && !expression_array_add(&array, &iter.value, err))
            return false;
    }
    return expression_array_end(&array, ret_value, err);
}

/* --- $reduce ---------------------------------------------------------------------------------- */

/* Children: the input, the first value, what is done; locals: this, and within it value. */
EXPRESSION_PARSE(expression_reduce_parse)
{
    static const char *const names[] = {"input", "initialValue", "in"};
    const struct expression_local this_one = {compile->locals, SLICE("this"), compile->depth};
    const struct expression_local value_so_far = {&this_one, SLICE("value"), compile->depth + 1};
    const struct query_expression *children[3] = {NULL};
    struct expression_compile inner = *compile;
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 40075,
                               "$reduce requires an object as an argument, found: %s",
                               mongo_type_name(value->type));
    inner.locals = &value_so_far;
    inner.depth += 2;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (i < 3 && !slice_equal(iter.key, slice_of_text(names[i])))
            i++;
        if (i == 3)
            return mongo_error_set(compile->err, 40076, "$reduce found an unknown argument: %.*s",
                                   SLICE_ARG(iter.key));
        if (!expression_compile_value(i == 2 ? &inner : compile, &iter.value, &children[i]))
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (!children[i])
            return mongo_error_set(compile->err, 40077 + i, "$reduce requires '%s' to be specified",
                                   names[i]);
    *ret = expression_node_make(compile, op, children, 3);
    return true;
}

EXPRESSION_EVALUATE(expression_reduce)
{
    const struct query_local *outer = context->locals;
    struct query_local element = {.outer = outer}, so_far = {.outer = &element};
    struct document_iter iter;
    struct document_value input;
    bool evaluated = true;

    if (!query_evaluate(node->head.children[0], context, &input, err))
        return false;
    if (expression_is_nullish(&input)) {
        *ret_value = document_null();
        return true;
    }
    if (input.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 40080, "$reduce requires that 'input' be an array, found: %s",
                               expression_type_name(&input));
    if (!query_evaluate(node->head.children[1], context, &so_far.value, err))
        return false;
    document_iter_init(&iter, input.document);
    context->locals = &so_far;
    while (evaluated && document_iter_next(&iter)) {
        struct document_value next = document_undefined();

        element.value = iter.value;
        evaluated = query_evaluate(node->head.children[2], context, &next, err);
        so_far.value = next;
    }
    context->locals = outer;
    *ret_value = so_far.value;
    return evaluated;
}

/* --- $zip ------------------------------------------------------------------------------------- */

static bool zip_list(struct expression_compile *compile, const struct document_value *value,
                     int code, const char *name, const struct query_expression ***ret_children,
                     size_t *ret_count)
{
    struct document_iter iter;
    size_t i = 0;

    if (value->type != DOCUMENT_ARRAY)
        return mongo_error_set(compile->err, code, "%s must be an array of expressions, found %s",
                               name, mongo_type_name(value->type));
    *ret_count = document_count(value->document);
    *ret_children =
        ARENA_ARRAY(compile->build->arena, const struct query_expression *, *ret_count + 1);
    document_iter_init(&iter, value->document);
    for (; i < *ret_count && document_iter_next(&iter); i++)
        if (!expression_compile_value(compile, &iter.value, &(*ret_children)[i]))
            return false;
    return true;
}

/* Children: the inputs, then as many defaults if there are any; number: 1 for the longest. */
EXPRESSION_PARSE(expression_zip_parse)
{
    const struct query_expression **inputs = NULL, **defaults = NULL, **children;
    size_t count = 0, default_count = 0;
    struct expression_node *node;
    struct document_iter iter;
    bool longest = false;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 34460,
                               "$zip only supports an object as an argument, found %s",
                               mongo_type_name(value->type));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("inputs"))) {
            if (!zip_list(compile, &iter.value, 34461, "inputs", &inputs, &count))
                return false;
        } else if (slice_equal(iter.key, SLICE("defaults"))) {
            if (!zip_list(compile, &iter.value, 34462, "defaults", &defaults, &default_count))
                return false;
        } else if (slice_equal(iter.key, SLICE("useLongestLength"))) {
            if (iter.value.type != DOCUMENT_BOOL)
                return mongo_error_set(compile->err, 34463,
                                       "useLongestLength must be a bool, found %s",
                                       mongo_type_name(iter.value.type));
            longest = iter.value.boolean;
        } else {
            return mongo_error_set(compile->err, 34464, "$zip found an unknown argument: %.*s",
                                   SLICE_ARG(iter.key));
        }
    }
    if (!count)
        return mongo_error_set(compile->err, 34465, "$zip requires at least one input array");
    if (default_count && !longest)
        return mongo_error_set(compile->err, 34466,
                               "cannot specify defaults unless useLongestLength is true");
    if (default_count && default_count != count)
        return mongo_error_set(compile->err, 34467,
                               "defaults and inputs must have the same length");
    children = ARENA_ARRAY(compile->build->arena, const struct query_expression *, 2 * count);
    memcpy(children, inputs, count * sizeof *children);
    if (default_count)
        memcpy(children + count, defaults, count * sizeof *children);
    node = expression_node_new(compile, op, children, count + default_count);
    node->name_count = count;
    node->number = longest;
    *ret = expression_node_fold(compile, node);
    return true;
}

EXPRESSION_COMPUTE(expression_zip)
{
    size_t inputs = call->node->name_count, length = call->node->number ? 0 : SIZE_MAX;
    struct document_value tuple, *values;
    struct expression_array zipped;
    struct document_iter *iters;

    for (size_t i = 0; i < inputs; i++) {
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
        if (call->arguments[i].type != DOCUMENT_ARRAY)
            return mongo_error_set(call->err, 34468,
                                   "$zip found a non-array expression in input: %s",
                                   expression_show(call->context, &call->arguments[i]));
    }
    iters = query_alloc(call->context, inputs * sizeof *iters, call->err);
    values = query_alloc(call->context, inputs * sizeof *values, call->err);
    if (!iters || !values)
        return false;
    for (size_t i = 0; i < inputs; i++) {
        size_t count = document_count(call->arguments[i].document);

        length = call->node->number ? MAX(length, count) : MIN(length, count);
        document_iter_init(&iters[i], call->arguments[i].document);
    }
    expression_array_begin(&zipped, call->context);
    for (size_t row = 0; row < length; row++) {
        for (size_t i = 0; i < inputs; i++) {
            if (document_iter_next(&iters[i]))
                values[i] = iters[i].value;
            else
                values[i] =
                    inputs + i < call->count ? call->arguments[inputs + i] : document_null();
        }
        if (!query_work(call->context, inputs, call->err) ||
            !expression_array_of(call->context, values, inputs, &tuple, call->err))
            return expression_array_drop(&zipped);
        if (!expression_array_add(&zipped, &tuple, call->err))
            return false;
    }
    return expression_array_end(&zipped, call->ret, call->err);
}
