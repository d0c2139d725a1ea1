/* Comparison, arithmetic, bits and concatenation.
 *
 * Integers stay exact: an operation on two stored integers gives an integer where the result is one
 * and fits 64 bits, and a double otherwise. With a double (or decimal) on either side everything is
 * done in doubles; in MongoDB's order a decimal on either side makes it one of decimals. What is
 * not a number makes the result undefined, and so does division by zero.
 */
#include "document/decimal_math.h"
#include "query/expression/imply.h"
#include "query/value/compare.h"
#include "query/value/text.h"
#include "query/value/value.h"

#include <math.h>

enum {
    COMPARE_BYTES_SHIFT = 6, /* bytes walked for a unit of work */
    CALL_OPERANDS_MAX = 4,   /* of a call that is compared, for what it implies */
};

/* --- Comparison ------------------------------------------------------------------------------ */

static enum query_truth compare_values(enum document_order by, enum query_comparison comparison,
                                       const struct document_value *a,
                                       const struct document_value *b)
{
    enum query_truth equal;
    bool holds;
    int order;

    if (comparison <= QUERY_NOT_EQUAL) {
        equal = query_values_equal(by, a, b);
        if (equal == QUERY_UNKNOWN || comparison == QUERY_EQUAL)
            return equal;
        return equal == QUERY_TRUE ? QUERY_FALSE : QUERY_TRUE;
    }
    if (!query_values_order(by, a, b, &order))
        return QUERY_UNKNOWN;
    switch (comparison) {
    case QUERY_LESS:
        holds = order < 0;
        break;
    case QUERY_LESS_EQUAL:
        holds = order <= 0;
        break;
    case QUERY_GREATER:
        holds = order > 0;
        break;
    default:
        holds = order >= 0;
        break;
    }
    return holds ? QUERY_TRUE : QUERY_FALSE;
}

/* The comparison that says the same with its sides exchanged. */
static enum query_comparison exchanged(enum query_comparison comparison)
{
    switch (comparison) {
    case QUERY_LESS:
        return QUERY_GREATER;
    case QUERY_LESS_EQUAL:
        return QUERY_GREATER_EQUAL;
    case QUERY_GREATER:
        return QUERY_LESS;
    case QUERY_GREATER_EQUAL:
        return QUERY_LESS_EQUAL;
    default:
        return comparison;
    }
}

/* A call compared with a number that is given, settled without the call's result if *ret_settled.
 */
static bool call_compare(const struct query_comparison_node *node, struct query_context *context,
                         bool *ret_settled, struct document_value *ret_value, struct error *err)
{
    const struct query_expression *call = node->head.children[0], *given = node->head.children[1];
    enum query_comparison comparison = node->comparison;
    struct document_value result;
    double number;
    int side;

    *ret_settled = false;
    if (query_is_constant(call)) {
        const struct query_expression *constant = call;

        call = given;
        given = constant;
        comparison = exchanged(comparison);
    }
    if (!query_is_constant(given) || !document_is_number(query_constant_value(given)) ||
        !document_to_double(query_constant_value(given), &number))
        return true;
    if (!query_call_side(call, number, context, &side, err))
        return false;
    if (!side)
        return true;
    result = document_double(side < 0 ? -INFINITY : INFINITY);
    *ret_value = query_truth_value(
        compare_values(context->order, comparison, &result, query_constant_value(given)));
    *ret_settled = true;
    return true;
}

static bool comparison_evaluate(const struct query_expression *expression,
                                struct query_context *context, struct document_value *ret_value,
                                struct error *err)
{
    const struct query_comparison_node *node = (const struct query_comparison_node *)expression;
    struct document_value left, right;
    bool settled = false;

    if ((expression->children[0]->kind == &query_kind_call ||
         expression->children[1]->kind == &query_kind_call) &&
        !call_compare(node, context, &settled, ret_value, err))
        return false;
    if (settled)
        return true;
    if (!query_evaluate(expression->children[0], context, &left, err) ||
        !query_evaluate(expression->children[1], context, &right, err))
        return false;
    if (left.type == right.type &&
        !query_work(context, query_value_bytes(&left) >> COMPARE_BYTES_SHIFT, err))
        return false;
    *ret_value = query_truth_value(compare_values(context->order, node->comparison, &left, &right));
    return true;
}

/* The one that is true when it is false. */
static enum query_comparison negated(enum query_comparison comparison)
{
    switch (comparison) {
    case QUERY_EQUAL:
        return QUERY_NOT_EQUAL;
    case QUERY_NOT_EQUAL:
        return QUERY_EQUAL;
    case QUERY_LESS:
        return QUERY_GREATER_EQUAL;
    case QUERY_LESS_EQUAL:
        return QUERY_GREATER;
    case QUERY_GREATER:
        return QUERY_LESS_EQUAL;
    default:
        return QUERY_LESS;
    }
}

/* f(path) = value: those values of the path for which f gives it. */
static const struct query_implied *call_equals(const struct query_expression *side,
                                               const struct query_implying *implying,
                                               const struct document_value *value)
{
    const struct query_function *function;
    struct query_operand operand;

    if (side->kind != &query_kind_call)
        return NULL;
    function = ((const struct query_call *)side)->function;
    if (!function->imply_result)
        return NULL;
    operand = query_operand_of(implying, side->children[0]);
    return function->imply_result(&operand, value, implying);
}

/* f(...) <= value: what is so where f gives no more. */
static const struct query_implied *call_at_most(const struct query_expression *side,
                                                const struct query_implying *implying,
                                                const struct document_value *value)
{
    struct query_operand operands[CALL_OPERANDS_MAX];
    const struct query_function *function;
    double most;

    if (side->kind != &query_kind_call || side->child_count > ARRAY_LEN(operands))
        return NULL;
    function = ((const struct query_call *)side)->function;
    if (!function->imply_most || !document_is_number(value) || !document_to_double(value, &most))
        return NULL;
    for (size_t i = 0; i < side->child_count; i++)
        operands[i] = query_operand_of(implying, side->children[i]);
    return function->imply_most(operands, side->child_count, most, implying);
}

static const struct query_implied *comparison_imply(const struct query_expression *expression,
                                                    const struct query_implying *implying,
                                                    bool truth)
{
    enum query_comparison comparison =
        ((const struct query_comparison_node *)expression)->comparison;
    const struct query_expression *side = expression->children[0];
    struct query_operand left = query_operand_of(implying, side);
    struct query_operand right = query_operand_of(implying, expression->children[1]);

    if (left.constant) {
        struct query_operand constant = left;

        side = expression->children[1];
        left = right;
        right = constant;
        comparison = exchanged(comparison);
    }
    if (!truth)
        comparison = negated(comparison);
    if (!right.constant)
        return NULL;
    switch (comparison) {
    case QUERY_EQUAL:
        return left.is_path ? query_implied_points(implying, &left, right.constant, 1)
                            : call_equals(side, implying, right.constant);
    case QUERY_NOT_EQUAL:
        return query_implied_other(implying, &left, right.constant);
    case QUERY_LESS:
    case QUERY_LESS_EQUAL:
        if (!left.is_path)
            return call_at_most(side, implying, right.constant);
        return query_implied_below(implying, &left, right.constant, comparison == QUERY_LESS_EQUAL);
    default:
        return query_implied_above(implying, &left, right.constant,
                                   comparison == QUERY_GREATER_EQUAL);
    }
}

const struct query_kind query_kind_comparison = {"comparison", comparison_evaluate, QUERY_STABLE,
                                                 comparison_imply};

const struct query_expression *query_compare(struct query_build *build,
                                             enum query_comparison comparison,
                                             const struct query_expression *left,
                                             const struct query_expression *right)
{
    const struct query_expression *children[] = {left, right};
    struct query_comparison_node *node =
        query_node(build, &query_kind_comparison, sizeof *node, children, ARRAY_LEN(children));

    node->comparison = comparison;
    return query_fold(build, &node->head);
}

/* --- Arithmetic ------------------------------------------------------------------------------ */

/* The exact result, if it is a whole number that fits. */
static bool integers_combine(enum query_operator op, int64_t a, int64_t b, int64_t *ret_result)
{
    switch (op) {
    case QUERY_ADD:
        return !__builtin_add_overflow(a, b, ret_result);
    case QUERY_SUBTRACT:
        return !__builtin_sub_overflow(a, b, ret_result);
    case QUERY_MULTIPLY:
        return !__builtin_mul_overflow(a, b, ret_result);
    case QUERY_DIVIDE:
        if (b == 0 || (a == INT64_MIN && b == -1) || a % b != 0)
            return false;
        *ret_result = a / b;
        return true;
    default:
        if (b == 0)
            return false;
        *ret_result = b == -1 ? 0 : a % b;
        return true;
    }
}

static struct document_value doubles_combine(enum query_operator op, double a, double b)
{
    switch (op) {
    case QUERY_ADD:
        return document_double(a + b);
    case QUERY_SUBTRACT:
        return document_double(a - b);
    case QUERY_MULTIPLY:
        return document_double(a * b);
    case QUERY_DIVIDE:
        return b == 0 ? document_undefined() : document_double(a / b);
    default:
        return b == 0 ? document_undefined() : document_double(fmod(a, b));
    }
}

static struct document_value decimals_combine(enum query_operator op,
                                              const struct document_value *left,
                                              const struct document_value *right)
{
    struct document_decimal a = decimal_from_number(left), b = decimal_from_number(right);

    switch (op) {
    case QUERY_ADD:
        return document_decimal_value(decimal_add(a, b));
    case QUERY_SUBTRACT:
        return document_decimal_value(decimal_subtract(a, b));
    case QUERY_MULTIPLY:
        return document_decimal_value(decimal_multiply(a, b));
    default:
        break;
    }
    if (decimal_is_zero(b))
        return document_undefined();
    return document_decimal_value(op == QUERY_DIVIDE ? decimal_divide(a, b) : decimal_modulo(a, b));
}

static struct document_value arithmetic(enum document_order order, enum query_operator op,
                                        const struct document_value *left,
                                        const struct document_value *right)
{
    int64_t a, b, result;
    double x, y;

    if (query_stored_integer(left, &a) && query_stored_integer(right, &b) &&
        integers_combine(op, a, b, &result))
        return query_integer(result);
    if (!document_is_number(left) || !document_is_number(right))
        return document_undefined();
    if (order == DOCUMENT_ORDER_MONGO &&
        (left->type == DOCUMENT_DECIMAL128 || right->type == DOCUMENT_DECIMAL128))
        return decimals_combine(op, left, right);
    document_to_double(left, &x);
    document_to_double(right, &y);
    return doubles_combine(op, x, y);
}

/* --- Bits ------------------------------------------------------------------------------------ */

/* The low 32 bits of the number's whole part, as JavaScript takes them. */
static bool bits_of(const struct document_value *value, uint32_t *ret_bits)
{
    const double modulus = 4294967296.0;
    int64_t integer;
    double number;

    if (query_stored_integer(value, &integer)) {
        *ret_bits = (uint32_t)(uint64_t)integer;
        return true;
    }
    if (!document_to_double(value, &number))
        return false;
    if (!isfinite(number)) {
        *ret_bits = 0;
        return true;
    }
    number = fmod(trunc(number), modulus);
    *ret_bits = (uint32_t)(int64_t)number;
    return true;
}

static struct document_value bits(enum query_operator op, const struct document_value *left,
                                  const struct document_value *right)
{
    uint32_t a, b, result;

    if (!bits_of(left, &a) || !bits_of(right, &b))
        return document_undefined();
    switch (op) {
    case QUERY_BIT_AND:
        result = a & b;
        break;
    case QUERY_BIT_OR:
        result = a | b;
        break;
    case QUERY_BIT_XOR:
        result = a ^ b;
        break;
    case QUERY_SHIFT_LEFT:
        result = a << (b & 31);
        break;
    case QUERY_SHIFT_RIGHT:
        result = (uint32_t)((int32_t)a >> (b & 31));
        break;
    default: /* unsigned: the one whose result may be above the largest int32 */
        return query_integer(a >> (b & 31));
    }
    return document_int32((int32_t)result);
}

/* --- Texts ----------------------------------------------------------------------------------- */

static bool concat(const struct document_value *left, const struct document_value *right,
                   struct query_context *context, struct document_value *ret_value,
                   struct error *err)
{
    size_t mark = query_build_begin(context);

    if (left->type != DOCUMENT_STRING || right->type != DOCUMENT_STRING) {
        *ret_value = document_undefined();
        return true;
    }
    query_text_append(&context->scratch, mark, left->text);
    query_text_append(&context->scratch, mark, right->text);
    return query_text_end(context, mark, ret_value, err);
}

/* --- The nodes ------------------------------------------------------------------------------- */

static struct document_value unary(enum document_order order, enum query_operator op,
                                   const struct document_value *operand)
{
    int64_t integer;
    double number;
    uint32_t low;

    if (op == QUERY_BIT_NOT)
        return bits_of(operand, &low) ? document_int32((int32_t)~low) : document_undefined();
    if (!document_is_number(operand))
        return document_undefined();
    if (op == QUERY_PLUS)
        return *operand;
    /* 0 as well: -0 would print as it is */
    if (query_stored_integer(operand, &integer) && integer != INT64_MIN)
        return query_integer(-integer);
    if (order == DOCUMENT_ORDER_MONGO && operand->type == DOCUMENT_DECIMAL128)
        return document_decimal_value(decimal_negate(operand->decimal));
    document_to_double(operand, &number);
    return document_double(-number);
}

static bool operator_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct query_operator_node *node = (const struct query_operator_node *)expression;
    struct document_value left, right;

    if (!query_evaluate(expression->children[0], context, &left, err))
        return false;
    if (node->op >= QUERY_PLUS) {
        *ret_value = unary(context->order, node->op, &left);
        return true;
    }
    if (!query_evaluate(expression->children[1], context, &right, err))
        return false;
    if (node->op == QUERY_CONCAT)
        return concat(&left, &right, context, ret_value, err);
    *ret_value = node->op <= QUERY_MODULO ? arithmetic(context->order, node->op, &left, &right)
                                          : bits(node->op, &left, &right);
    return true;
}

/* A number or text is neither true nor false. */
static const struct query_implied *operator_imply(const struct query_expression *expression UNUSED,
                                                  const struct query_implying *implying,
                                                  bool truth UNUSED)
{
    return query_implied_never(implying);
}

const struct query_kind query_kind_operator = {"operator", operator_evaluate, QUERY_STABLE,
                                               operator_imply};

const struct query_expression *query_binary(struct query_build *build, enum query_operator op,
                                            const struct query_expression *left,
                                            const struct query_expression *right)
{
    const struct query_expression *children[] = {left, right};
    struct query_operator_node *node =
        query_node(build, &query_kind_operator, sizeof *node, children, ARRAY_LEN(children));

    assert(op < QUERY_PLUS);
    node->op = op;
    return query_fold(build, &node->head);
}

const struct query_expression *query_unary(struct query_build *build, enum query_operator op,
                                           const struct query_expression *operand)
{
    struct query_operator_node *node =
        query_node(build, &query_kind_operator, sizeof *node, &operand, 1);

    assert(op >= QUERY_PLUS);
    node->op = op;
    return query_fold(build, &node->head);
}
