/* Which paths of an item must have which values where an expression is true, so that $expr is
 * served by indexes.
 *
 * "$a.b" is a scalar only where no array is on the way, so {$eq: ["$a.b", 5]} says exactly that the
 * value at /a/b is 5. Comparisons other than $eq are across types here, which no range of an index
 * is; nothing is said of null, of objects and of arrays. */
#include "query/expression/imply.h"
#include "front/mongo/expression/expression_private.h"

static struct query_operand operand_of(const struct query_implying *implying,
                                       const struct query_expression *expression)
{
    const struct expression_node *node = (const struct expression_node *)expression;
    struct query_operand operand = {0};

    if (query_is_constant(expression)) {
        operand.constant = query_constant_value(expression);
        return operand;
    }
    if (expression->kind != &expression_kind_path || expression->child_count < 2)
        return operand;
    operand = query_operand_of(implying, expression->children[1]);
    for (size_t i = 1; i < node->name_count && operand.is_path; i++)
        operand = query_operand_property(implying, &operand, node->names[i]);
    return operand;
}

static bool is_scalar(const struct document_value *value)
{
    return !expression_is_nullish(value) && value->type != DOCUMENT_OBJECT &&
           value->type != DOCUMENT_ARRAY;
}

static const struct query_implied *equal_imply(const struct expression_node *node,
                                               const struct query_implying *implying)
{
    struct query_operand left = operand_of(implying, node->head.children[0]);
    struct query_operand right = operand_of(implying, node->head.children[1]);

    if (left.constant) {
        struct query_operand other = left;

        left = right;
        right = other;
    }
    if (!left.is_path || !right.constant || !is_scalar(right.constant))
        return NULL;
    return query_implied_points(implying, &left, right.constant, 1);
}

static const struct query_implied *in_imply(const struct expression_node *node,
                                            const struct query_implying *implying)
{
    struct query_operand value = operand_of(implying, node->head.children[0]);
    struct query_operand list = operand_of(implying, node->head.children[1]);
    struct document_value *points;
    struct document_iter iter;
    size_t count = 0;

    if (!value.is_path || !list.constant || list.constant->type != DOCUMENT_ARRAY)
        return NULL;
    points = ARENA_ARRAY(implying->arena, struct document_value,
                         document_count(list.constant->document) + 1);
    document_iter_init(&iter, list.constant->document);
    while (document_iter_next(&iter)) {
        if (!is_scalar(&iter.value))
            return NULL;
        points[count++] = iter.value;
    }
    return count ? query_implied_points(implying, &value, points, count)
                 : query_implied_never(implying);
}

static const struct query_implied *parts_imply(const struct expression_node *node,
                                               const struct query_implying *implying, bool all)
{
    size_t count = node->head.child_count;
    const struct query_implied **parts =
        ARENA_ARRAY(implying->arena, const struct query_implied *, count + 1);

    for (size_t i = 0; i < count; i++) {
        parts[i] = expression_truth_imply(node->head.children[i], implying);
        if (!parts[i] && !all)
            return NULL;
    }
    return all ? query_implied_all(implying, parts, count)
               : query_implied_any(implying, parts, count);
}

const struct query_implied *expression_imply(const struct expression_node *node,
                                             const struct query_implying *implying, bool truth)
{
    if (!truth)
        return NULL;
    if ((node->collator || implying->collator) &&
        (node->op->compute == expression_compare || node->op->compute == expression_in))
        return NULL; /* constants are not in comparison form here */
    if (node->op->compute == expression_compare && node->number == QUERY_EQUAL)
        return equal_imply(node, implying);
    if (node->op->compute == expression_in)
        return in_imply(node, implying);
    if (node->op->evaluate == expression_and)
        return parts_imply(node, implying, true);
    if (node->op->evaluate == expression_or && node->head.child_count)
        return parts_imply(node, implying, false);
    return NULL;
}

/* As operands of $and are asked: a constant by its truth, an operator that gives a boolean by what
 * it implies. A path is true for more than one value. */
const struct query_implied *expression_truth_imply(const struct query_expression *expression,
                                                   const struct query_implying *implying)
{
    if (query_is_constant(expression))
        return mongo_expression_truth(query_constant_value(expression))
                   ? query_implied_always(implying)
                   : query_implied_never(implying);
    if (!expression_is_operator(expression))
        return NULL;
    return expression_imply((const struct expression_node *)expression, implying, true);
}
