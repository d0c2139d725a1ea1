/* Calls of built-in functions and of functions of the user. */
#include "query/expression/imply.h"
#include "query/value/value.h"

#include <stdio.h>

enum { ARGUMENTS_INLINE = 8 };

/* The arguments for the present row: few on the caller's stack, more in the arena. */
static bool arguments_evaluate(const struct query_expression *expression,
                               struct query_context *context, struct document_value **arguments,
                               bool *ret_undefined, struct error *err)
{
    *ret_undefined = false;
    if (expression->child_count > ARGUMENTS_INLINE) {
        *arguments = query_alloc(context, expression->child_count * sizeof **arguments, err);
        if (!*arguments)
            return false;
    }
    for (size_t i = 0; i < expression->child_count; i++) {
        if (!query_evaluate(expression->children[i], context, &(*arguments)[i], err))
            return false;
        *ret_undefined |= (*arguments)[i].type == DOCUMENT_UNDEFINED;
    }
    return true;
}

static bool call_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const struct query_function *function = ((const struct query_call *)expression)->function;
    struct document_value few[ARGUMENTS_INLINE], *arguments = few;
    bool undefined;

    if (!arguments_evaluate(expression, context, &arguments, &undefined, err))
        return false;
    *ret_value = document_undefined();
    if (undefined && !function->takes_undefined)
        return true;
    return function->evaluate(arguments, expression->child_count, context, ret_value, err);
}

bool query_call_side(const struct query_expression *expression, double number,
                     struct query_context *context, int *ret_side, struct error *err)
{
    struct document_value few[ARGUMENTS_INLINE], *arguments = few;
    const struct query_function *function;
    bool undefined;

    *ret_side = 0;
    if (expression->kind != &query_kind_call)
        return true;
    function = ((const struct query_call *)expression)->function;
    if (!function->side)
        return true;
    if (!arguments_evaluate(expression, context, &arguments, &undefined, err))
        return false;
    return undefined || function->side(arguments, number, context, ret_side, err);
}

static const struct query_implied *call_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    const struct query_function *function = ((const struct query_call *)expression)->function;
    struct query_operand few[ARGUMENTS_INLINE], *operands = few;

    if (!truth || !function->imply)
        return NULL;
    if (expression->child_count > ARGUMENTS_INLINE)
        operands = ARENA_ARRAY(implying->arena, struct query_operand, expression->child_count);
    for (size_t i = 0; i < expression->child_count; i++)
        operands[i] = query_operand_of(implying, expression->children[i]);
    return function->imply(operands, expression->child_count, implying);
}

const struct query_kind query_kind_call = {"call", call_evaluate, QUERY_STABLE, call_imply};

/* "one argument", "2 to 3 arguments", "at least 2 arguments". */
static void describe_arity(const struct query_function *function, char *text, size_t size)
{
    unsigned min = function->arguments_min, max = function->arguments_max;

    if (max == QUERY_ARGUMENTS_ANY)
        snprintf(text, size, "at least %u argument%s", min, PLURAL(min));
    else if (min != max)
        snprintf(text, size, "%u to %u arguments", min, max);
    else
        snprintf(text, size, "%u argument%s", min, PLURAL(min));
}

const struct query_expression *query_call(struct query_build *build,
                                          const struct query_function *function,
                                          const struct query_expression *const *arguments,
                                          size_t count)
{
    struct query_call *node;

    if (count < function->arguments_min ||
        (function->arguments_max != QUERY_ARGUMENTS_ANY && count > function->arguments_max)) {
        char arity[48];

        describe_arity(function, arity, sizeof arity);
        return query_build_fail(build, ERROR_BAD_REQUEST, "function %s takes %s, not %zu",
                                function->name, arity, count);
    }
    node = query_node(build, &query_kind_call, sizeof *node, arguments, count);
    node->function = function;
    node->head.stability = MAX(node->head.stability, (uint8_t)function->stability);
    return query_fold(build, &node->head);
}

uint64_t query_udf_bytes(const struct document_value *arguments, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += query_value_bytes(&arguments[i]);
    return bytes;
}

static bool udf_evaluate(const struct query_expression *expression, struct query_context *context,
                         struct document_value *ret_value, struct error *err)
{
    const struct query_udf_call *node = (const struct query_udf_call *)expression;
    struct document_value few[ARGUMENTS_INLINE], *arguments = few;
    bool undefined, found = false;
    uint64_t bytes;

    if (context->ahead.find &&
        !context->ahead.find(context->ahead.self, expression, &found, ret_value, &bytes, err))
        return false;
    if (found) {
        context->udf_bytes += bytes + query_value_bytes(ret_value);
        return true;
    }
    if (!context->udf.call)
        return error_set(
            err, ERROR_QUERY_NOT_SUPPORTED,
            "user-defined function \"%.*s\" cannot be called: scripts are not run here",
            (int)MIN(node->name.len, (size_t)100), (const char *)node->name.data);
    if (!arguments_evaluate(expression, context, &arguments, &undefined, err))
        return false;
    if (!context->udf.call(context->udf.self, node->name, arguments, expression->child_count,
                           context, ret_value, err))
        return false;
    context->udf_bytes +=
        query_udf_bytes(arguments, expression->child_count) + query_value_bytes(ret_value);
    return true;
}

const struct query_kind query_kind_udf_call = {"udf call", udf_evaluate, QUERY_UNSTABLE};

const struct query_expression *query_udf_call(struct query_build *build, struct slice name,
                                              const struct query_expression *const *arguments,
                                              size_t count)
{
    struct query_udf_call *node =
        query_node(build, &query_kind_udf_call, sizeof *node, arguments, count);

    node->name = arena_copy(build->arena, name);
    return &node->head;
}
