/* Logic of three values, and the choices between expressions. What is no boolean counts as
 * undefined everywhere here. */
#include "query/expression/imply.h"
#include "query/value/compare.h"

static enum query_truth truth_of(const struct document_value *value)
{
    if (value->type != DOCUMENT_BOOL)
        return QUERY_UNKNOWN;
    return value->boolean ? QUERY_TRUE : QUERY_FALSE;
}

/* --- AND, OR, NOT ---------------------------------------------------------------------------- */

/* deciding: the value that settles it, false for AND and true for OR. A later operand can still
 * settle what an undefined one left open, so all are asked until then. */
static bool chain_evaluate(const struct query_expression *expression, enum query_truth deciding,
                           struct query_context *context, struct document_value *ret_value,
                           struct error *err)
{
    bool open = false;

    for (size_t i = 0; i < expression->child_count; i++) {
        enum query_truth truth;

        if (!query_evaluate(expression->children[i], context, ret_value, err))
            return false;
        truth = truth_of(ret_value);
        if (truth == deciding)
            return true;
        open |= truth == QUERY_UNKNOWN;
    }
    *ret_value = open ? document_undefined() : document_bool(deciding != QUERY_TRUE);
    return true;
}

static bool and_evaluate(const struct query_expression *expression, struct query_context *context,
                         struct document_value *ret_value, struct error *err)
{
    return chain_evaluate(expression, QUERY_FALSE, context, ret_value, err);
}

static bool or_evaluate(const struct query_expression *expression, struct query_context *context,
                        struct document_value *ret_value, struct error *err)
{
    return chain_evaluate(expression, QUERY_TRUE, context, ret_value, err);
}

/* all: every operand must be as asked; otherwise one of them. */
static const struct query_implied *chain_imply(const struct query_expression *expression,
                                               const struct query_implying *implying, bool truth,
                                               bool all)
{
    const struct query_implied **parts =
        ARENA_ARRAY(implying->arena, const struct query_implied *, expression->child_count + 1);

    for (size_t i = 0; i < expression->child_count; i++)
        parts[i] = query_imply(implying, expression->children[i], truth);
    return all ? query_implied_all(implying, parts, expression->child_count)
               : query_implied_any(implying, parts, expression->child_count);
}

static const struct query_implied *and_imply(const struct query_expression *expression,
                                             const struct query_implying *implying, bool truth)
{
    return chain_imply(expression, implying, truth, truth);
}

static const struct query_implied *or_imply(const struct query_expression *expression,
                                            const struct query_implying *implying, bool truth)
{
    return chain_imply(expression, implying, truth, !truth);
}

const struct query_kind query_kind_and = {"and", and_evaluate, QUERY_STABLE, and_imply};
const struct query_kind query_kind_or = {"or", or_evaluate, QUERY_STABLE, or_imply};

/* Operands of a chain, in memory that the chain one longer may share: clients send thousands of
 * ANDs, and copying all operands for each would take a hundred megabytes. */
struct operands {
    const struct query_expression **list;
    size_t used, capacity;
};

struct chain_node {
    struct query_expression head;
    struct operands *operands;
};

/* Appends behind the first `count`, in place if nobody else has. */
static struct operands *operands_append(struct query_build *build, struct operands *operands,
                                        size_t count, const struct query_expression *operand)
{
    struct operands *longer = operands;

    if (!operands || operands->used != count || count == operands->capacity) {
        longer = ARENA_NEW(build->arena, struct operands);
        longer->capacity = count < 4 ? 4 : count * 2;
        longer->list = ARENA_ARRAY(build->arena, const struct query_expression *, longer->capacity);
        if (count)
            memcpy(longer->list, operands->list, count * sizeof *longer->list);
        longer->used = count;
    }
    longer->list[longer->used++] = operand;
    return longer;
}

static const struct query_expression *chain_append(struct query_build *build,
                                                   const struct query_kind *kind,
                                                   const struct chain_node *before,
                                                   const struct query_expression *operand)
{
    struct chain_node *node = query_node(build, kind, sizeof *node, &operand, 1);
    size_t count = before ? before->head.child_count : 0;

    node->operands = operands_append(build, before ? before->operands : NULL, count, operand);
    node->head.children = node->operands->list;
    node->head.child_count = (uint32_t)count + 1;
    if (before) {
        node->head.depth = MAX(node->head.depth, before->head.depth);
        node->head.stability = MAX(node->head.stability, before->head.stability);
        node->head.slots_used |= before->head.slots_used;
        build->nodes--; /* it takes the place of the one before */
    }
    return &node->head;
}

static bool settles(const struct query_expression *operand, enum query_truth deciding)
{
    return query_is_constant(operand) && truth_of(query_constant_value(operand)) == deciding;
}

/* A constant that settles it alone makes the rest superfluous. Other constants stay: true AND x is
 * not x, unless x is a boolean. */
static const struct query_expression *
chain_build(struct query_build *build, const struct query_kind *kind, enum query_truth deciding,
            const struct query_expression *left, const struct query_expression *right)
{
    const struct query_expression *chain = left;

    if (settles(left, deciding))
        return left;
    if (settles(right, deciding))
        return right;
    if (left->kind != kind)
        chain = chain_append(build, kind, NULL, left);
    if (right->kind != kind)
        return query_fold(build,
                          chain_append(build, kind, (const struct chain_node *)chain, right));
    for (size_t i = 0; i < right->child_count; i++)
        chain = chain_append(build, kind, (const struct chain_node *)chain, right->children[i]);
    return query_fold(build, chain);
}

const struct query_expression *query_and(struct query_build *build,
                                         const struct query_expression *left,
                                         const struct query_expression *right)
{
    return chain_build(build, &query_kind_and, QUERY_FALSE, left, right);
}

const struct query_expression *query_or(struct query_build *build,
                                        const struct query_expression *left,
                                        const struct query_expression *right)
{
    return chain_build(build, &query_kind_or, QUERY_TRUE, left, right);
}

static bool not_evaluate(const struct query_expression *expression, struct query_context *context,
                         struct document_value *ret_value, struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type == DOCUMENT_BOOL)
        ret_value->boolean = !ret_value->boolean;
    else
        *ret_value = document_undefined();
    return true;
}

static const struct query_implied *not_imply(const struct query_expression *expression,
                                             const struct query_implying *implying, bool truth)
{
    return query_imply(implying, expression->children[0], !truth);
}

const struct query_kind query_kind_not = {"not", not_evaluate, QUERY_STABLE, not_imply};

const struct query_expression *query_not(struct query_build *build,
                                         const struct query_expression *operand)
{
    return query_fold(
        build, query_node(build, &query_kind_not, sizeof(struct query_expression), &operand, 1));
}

/* --- Choices --------------------------------------------------------------------------------- */

static bool conditional_evaluate(const struct query_expression *expression,
                                 struct query_context *context, struct document_value *ret_value,
                                 struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type != DOCUMENT_BOOL) {
        *ret_value = document_undefined();
        return true;
    }
    return query_evaluate(expression->children[ret_value->boolean ? 1 : 2], context, ret_value,
                          err);
}

const struct query_kind query_kind_conditional = {"conditional", conditional_evaluate,
                                                  QUERY_STABLE};

const struct query_expression *query_conditional(struct query_build *build,
                                                 const struct query_expression *condition,
                                                 const struct query_expression *yes,
                                                 const struct query_expression *no)
{
    const struct query_expression *children[] = {condition, yes, no};

    return query_fold(build,
                      query_node(build, &query_kind_conditional, sizeof(struct query_expression),
                                 children, ARRAY_LEN(children)));
}

static bool coalesce_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type != DOCUMENT_UNDEFINED)
        return true;
    return query_evaluate(expression->children[1], context, ret_value, err);
}

const struct query_kind query_kind_coalesce = {"coalesce", coalesce_evaluate, QUERY_STABLE};

const struct query_expression *query_coalesce(struct query_build *build,
                                              const struct query_expression *left,
                                              const struct query_expression *right)
{
    const struct query_expression *children[] = {left, right};

    return query_fold(build,
                      query_node(build, &query_kind_coalesce, sizeof(struct query_expression),
                                 children, ARRAY_LEN(children)));
}

/* --- BETWEEN --------------------------------------------------------------------------------- */

/* low <= value AND value <= high: one side that fails decides, whatever the other is. */
static bool between_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct document_value value, low, high;
    int order;
    bool open = false;

    if (!query_evaluate(expression->children[0], context, &value, err) ||
        !query_evaluate(expression->children[1], context, &low, err) ||
        !query_evaluate(expression->children[2], context, &high, err))
        return false;
    *ret_value = document_bool(false);
    if (!query_values_order(context->order, &low, &value, &order))
        open = true;
    else if (order > 0)
        return true;
    if (!query_values_order(context->order, &value, &high, &order))
        open = true;
    else if (order > 0)
        return true;
    *ret_value = open ? document_undefined() : document_bool(true);
    return true;
}

/* It is false below the one and above the other. */
static const struct query_implied *between_imply(const struct query_expression *expression,
                                                 const struct query_implying *implying, bool truth)
{
    struct query_operand value = query_operand_of(implying, expression->children[0]);
    struct query_operand low = query_operand_of(implying, expression->children[1]);
    struct query_operand high = query_operand_of(implying, expression->children[2]);
    const struct query_implied *sides[2];

    if (!low.constant || !high.constant || !value.is_path)
        return NULL;
    if (truth)
        return query_implied_both(implying,
                                  query_implied_above(implying, &value, low.constant, true),
                                  query_implied_below(implying, &value, high.constant, true));
    sides[0] = query_implied_below(implying, &value, low.constant, false);
    sides[1] = query_implied_above(implying, &value, high.constant, false);
    return query_implied_any(implying, sides, 2);
}

const struct query_kind query_kind_between = {"between", between_evaluate, QUERY_STABLE,
                                              between_imply};

const struct query_expression *query_between(struct query_build *build,
                                             const struct query_expression *value,
                                             const struct query_expression *low,
                                             const struct query_expression *high)
{
    const struct query_expression *children[] = {value, low, high};

    return query_fold(build, query_node(build, &query_kind_between, sizeof(struct query_expression),
                                        children, ARRAY_LEN(children)));
}
