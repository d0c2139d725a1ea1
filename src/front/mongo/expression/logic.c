/* Truth, comparison, choice and variables. What is not needed is not evaluated. */
#include "front/mongo/expression/expression_private.h"

/* --- Truth ------------------------------------------------------------------------------------ */

static bool any_with_truth(const struct expression_node *node, struct query_context *context,
                           bool truth, bool *ret_found, struct error *err)
{
    struct document_value value;

    *ret_found = false;
    for (size_t i = 0; i < node->head.child_count && !*ret_found; i++) {
        if (!query_evaluate(node->head.children[i], context, &value, err))
            return false;
        *ret_found = mongo_expression_truth(&value) == truth;
    }
    return true;
}

EXPRESSION_EVALUATE(expression_and)
{
    bool found;

    if (!any_with_truth(node, context, false, &found, err))
        return false;
    *ret_value = document_bool(!found);
    return true;
}

EXPRESSION_EVALUATE(expression_or)
{
    bool found;

    if (!any_with_truth(node, context, true, &found, err))
        return false;
    *ret_value = document_bool(found);
    return true;
}

EXPRESSION_COMPUTE(expression_not)
{
    return expression_give(call, document_bool(!mongo_expression_truth(&call->arguments[0])));
}

/* --- Comparison ------------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_compare)
{
    bool holds = false;
    int order;

    if (!expression_order(call, &call->arguments[0], &call->arguments[1], &order))
        return false;
    switch (call->node->number) {
    case QUERY_EQUAL:
        holds = order == 0;
        break;
    case QUERY_NOT_EQUAL:
        holds = order != 0;
        break;
    case QUERY_LESS:
        holds = order < 0;
        break;
    case QUERY_LESS_EQUAL:
        holds = order <= 0;
        break;
    case QUERY_GREATER:
        holds = order > 0;
        break;
    case QUERY_GREATER_EQUAL:
        holds = order >= 0;
        break;
    default:
        return expression_give(call, document_int32((order > 0) - (order < 0)));
    }
    return expression_give(call, document_bool(holds));
}

/* --- Choice ----------------------------------------------------------------------------------- */

EXPRESSION_PARSE(expression_cond_parse)
{
    static const char *const names[] = {"if", "then", "else"};
    const struct query_expression *children[3] = {NULL};
    struct document_iter iter;
    size_t count = 0;

    if (value->type == DOCUMENT_ARRAY) {
        if (document_count(value->document) != 3)
            return mongo_error_set(compile->err, 16020,
                                   "Expression %s takes exactly 3 arguments. %zu were passed in.",
                                   op->name, document_count(value->document));
    } else if (value->type != DOCUMENT_OBJECT) {
        return mongo_error_set(compile->err, 16020,
                               "Expression %s takes exactly 3 arguments. 1 were passed in.",
                               op->name);
    }
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t i = count++;

        if (value->type == DOCUMENT_OBJECT)
            for (i = 0; i < 3 && !slice_equal(iter.key, slice_of_text(names[i]));)
                i++;
        if (i >= 3)
            return mongo_error_set(compile->err, 17083, "Unrecognized parameter to $cond: %.*s",
                                   SLICE_ARG(iter.key));
        if (!expression_compile_value(compile, &iter.value, &children[i]))
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (!children[i])
            return mongo_error_set(compile->err, 17080 + i, "Missing '%s' parameter to $cond",
                                   names[i]);
    *ret = expression_node_make(compile, op, children, 3);
    return true;
}

EXPRESSION_EVALUATE(expression_cond)
{
    struct document_value condition;

    return query_evaluate(node->head.children[0], context, &condition, err) &&
           query_evaluate(node->head.children[mongo_expression_truth(&condition) ? 1 : 2], context,
                          ret_value, err);
}

EXPRESSION_EVALUATE(expression_if_null)
{
    for (size_t i = 0; i < node->head.child_count; i++) {
        if (!query_evaluate(node->head.children[i], context, ret_value, err))
            return false;
        if (!expression_is_nullish(ret_value))
            return true;
    }
    return true; /* the last, whatever it is */
}

static bool branch_parse(struct expression_compile *compile, const struct document_value *branch,
                         const struct query_expression *children[2])
{
    struct document_iter iter;

    children[0] = children[1] = NULL;
    if (branch->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 40062,
                               "$switch expected each branch to be an object, found: %s",
                               mongo_type_name(branch->type));
    document_iter_init(&iter, branch->document);
    while (document_iter_next(&iter)) {
        bool is_case = slice_equal(iter.key, SLICE("case"));

        if (!is_case && !slice_equal(iter.key, SLICE("then")))
            return mongo_error_set(compile->err, 40063,
                                   "$switch found an unknown argument to a branch: '%.*s'",
                                   SLICE_ARG(iter.key));
        if (!expression_compile_value(compile, &iter.value, &children[is_case ? 0 : 1]))
            return false;
    }
    if (!children[0])
        return mongo_error_set(compile->err, 40064,
                               "$switch requires each branch have a 'case' expression");
    if (!children[1])
        return mongo_error_set(compile->err, 40065,
                               "$switch requires each branch have a 'then' expression.");
    return true;
}

/* Children: case and then of each branch, then the default if there is one. */
EXPRESSION_PARSE(expression_switch_parse)
{
    struct document_value branches = document_undefined(), otherwise = document_undefined();
    const struct query_expression **children;
    bool has_default = false;
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 40060,
                               "$switch requires an object as an argument, found: %s",
                               mongo_type_name(value->type));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("branches"))) {
            if (iter.value.type != DOCUMENT_ARRAY)
                return mongo_error_set(compile->err, 40061,
                                       "$switch expected an array for 'branches', found: %s",
                                       mongo_type_name(iter.value.type));
            branches = iter.value;
        } else if (slice_equal(iter.key, SLICE("default"))) {
            otherwise = iter.value;
            has_default = true;
        } else {
            return mongo_error_set(compile->err, 40067, "$switch found an unknown argument: %.*s",
                                   SLICE_ARG(iter.key));
        }
    }
    if (branches.type != DOCUMENT_ARRAY || !document_count(branches.document))
        return mongo_error_set(compile->err, 40068, "$switch requires at least one branch.");
    children = ARENA_ARRAY(compile->build->arena, const struct query_expression *,
                           2 * document_count(branches.document) + 1);
    document_iter_init(&iter, branches.document);
    for (; document_iter_next(&iter); count += 2)
        if (!branch_parse(compile, &iter.value, children + count))
            return false;
    if (has_default && !expression_compile_value(compile, &otherwise, &children[count++]))
        return false;
    *ret = expression_node_make(compile, op, children, count);
    return true;
}

EXPRESSION_EVALUATE(expression_switch)
{
    size_t count = node->head.child_count;
    struct document_value condition;

    for (size_t i = 0; i + 1 < count; i += 2) {
        if (!query_evaluate(node->head.children[i], context, &condition, err))
            return false;
        if (mongo_expression_truth(&condition))
            return query_evaluate(node->head.children[i + 1], context, ret_value, err);
    }
    if (count % 2)
        return query_evaluate(node->head.children[count - 1], context, ret_value, err);
    return mongo_error_set(err, 40066,
                           "$switch could not find a matching branch for an input, and no default "
                           "was specified.");
}

/* --- Variables -------------------------------------------------------------------------------- */

/* Children: what the variables are, then what is computed with them. */
EXPRESSION_PARSE(expression_let_parse)
{
    struct expression_compile inner = *compile;
    struct document_value vars = document_undefined(), in = document_undefined();
    const struct query_expression **children;
    struct expression_local *local;
    bool has_in = false, compiled;
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 16874, "$let only supports an object as its argument");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("vars"))) {
            vars = iter.value;
        } else if (slice_equal(iter.key, SLICE("in"))) {
            in = iter.value;
            has_in = true;
        } else {
            return mongo_error_set(compile->err, 16875, "Unrecognized parameter to $let: %.*s",
                                   SLICE_ARG(iter.key));
        }
    }
    if (vars.type != DOCUMENT_OBJECT)
        return vars.type == DOCUMENT_UNDEFINED
                   ? mongo_error_set(compile->err, 16876, "Missing 'vars' parameter to $let")
                   : mongo_error_set(compile->err, 10065,
                                     "invalid parameter: expected an object (vars)");
    if (compile->depth + document_count(vars.document) > EXPRESSION_LOCALS_MAX)
        return mongo_error_set(compile->err, MONGO_OVERFLOW,
                               "an expression binds more than %d variables at one place",
                               EXPRESSION_LOCALS_MAX);
    if (!has_in)
        return mongo_error_set(compile->err, 16877, "Missing 'in' parameter to $let");
    children = ARENA_ARRAY(compile->build->arena, const struct query_expression *,
                           document_count(vars.document) + 1);
    document_iter_init(&iter, vars.document);
    while (document_iter_next(&iter)) {
        if (!mongo_variable_name_check(iter.key, compile->err) ||
            !expression_compile_value(compile, &iter.value, &children[count++]))
            return false;
        local = ARENA_NEW(compile->build->arena, struct expression_local);
        *local = (struct expression_local){inner.locals, iter.key, inner.depth++};
        inner.locals = local;
    }
    compiled = expression_compile_value(&inner, &in, &children[count++]);
    if (!compiled)
        return false;
    *ret = expression_node_make(compile, op, children, count);
    return true;
}

EXPRESSION_EVALUATE(expression_let)
{
    const struct query_local *outer = context->locals;
    size_t count = node->head.child_count - 1;
    struct query_local *locals = query_alloc(context, (count + 1) * sizeof *locals, err);
    bool evaluated;

    if (!locals)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!query_evaluate(node->head.children[i], context, &locals[i].value, err))
            return false;
        locals[i].outer = i ? &locals[i - 1] : outer;
    }
    if (count)
        context->locals = &locals[count - 1];
    evaluated = query_evaluate(node->head.children[count], context, ret_value, err);
    context->locals = outer;
    return evaluated;
}

EXPRESSION_PARSE(expression_literal_parse)
{
    (void)op;
    *ret = query_constant(compile->build, *value);
    return true;
}
