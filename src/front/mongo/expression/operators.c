/* The table of operators, by name. */
#include "front/mongo/expression/expression_private.h"

#include <stdlib.h>

#define LIST(name, min, max, function, number)                                                     \
    {                                                                                              \
        "$" name, EXPRESSION_LIST, min, max, number, .compute = function                           \
    }
#define ONE(name, which) LIST(name, 1, 1, expression_number_function, which)

/* In the order of their names: they are found by bisection. */
const struct expression_operator expression_operators[] = {
    ONE("abs", EXPRESSION_ABS),
    ONE("acos", EXPRESSION_ACOS),
    ONE("acosh", EXPRESSION_ACOSH),
    LIST("add", 0, EXPRESSION_ANY, expression_add, 0),
    {"$and", EXPRESSION_LIST, 0, EXPRESSION_ANY, 0, .evaluate = expression_and},
    ONE("asin", EXPRESSION_ASIN),
    ONE("asinh", EXPRESSION_ASINH),
    ONE("atan", EXPRESSION_ATAN),
    LIST("atan2", 2, 2, expression_atan2, 0),
    ONE("atanh", EXPRESSION_ATANH),
    LIST("bitAnd", 0, EXPRESSION_ANY, expression_bits, QUERY_BIT_AND),
    LIST("bitNot", 1, 1, expression_bit_not, 0),
    LIST("bitOr", 0, EXPRESSION_ANY, expression_bits, QUERY_BIT_OR),
    LIST("bitXor", 0, EXPRESSION_ANY, expression_bits, QUERY_BIT_XOR),
    ONE("ceil", EXPRESSION_CEIL),
    LIST("cmp", 2, 2, expression_compare, -1),
    {"$cond", EXPRESSION_OWN, .parse = expression_cond_parse, .evaluate = expression_cond},
    {"$const", EXPRESSION_OWN, .parse = expression_literal_parse},
    ONE("cos", EXPRESSION_COS),
    ONE("cosh", EXPRESSION_COSH),
    ONE("degreesToRadians", EXPRESSION_TO_RADIANS),
    LIST("divide", 2, 2, expression_divide, 0),
    LIST("eq", 2, 2, expression_compare, QUERY_EQUAL),
    ONE("exp", EXPRESSION_EXP),
    ONE("floor", EXPRESSION_FLOOR),
    LIST("gt", 2, 2, expression_compare, QUERY_GREATER),
    LIST("gte", 2, 2, expression_compare, QUERY_GREATER_EQUAL),
    {"$ifNull", EXPRESSION_LIST, 2, EXPRESSION_ANY, 0, .evaluate = expression_if_null},
    LIST("in", 2, 2, expression_in, 0),
    {"$let", EXPRESSION_OWN, .parse = expression_let_parse, .evaluate = expression_let},
    {"$literal", EXPRESSION_OWN, .parse = expression_literal_parse},
    ONE("ln", EXPRESSION_LN),
    LIST("log", 2, 2, expression_log, 0),
    ONE("log10", EXPRESSION_LOG10),
    LIST("lt", 2, 2, expression_compare, QUERY_LESS),
    LIST("lte", 2, 2, expression_compare, QUERY_LESS_EQUAL),
    LIST("mod", 2, 2, expression_modulo, 0),
    LIST("multiply", 0, EXPRESSION_ANY, expression_multiply, 0),
    LIST("ne", 2, 2, expression_compare, QUERY_NOT_EQUAL),
    LIST("not", 1, 1, expression_not, 0),
    {"$or", EXPRESSION_LIST, 0, EXPRESSION_ANY, 0, .evaluate = expression_or},
    LIST("pow", 2, 2, expression_power, 0),
    ONE("radiansToDegrees", EXPRESSION_TO_DEGREES),
    LIST("round", 1, 2, expression_round, 0),
    ONE("sin", EXPRESSION_SIN),
    ONE("sinh", EXPRESSION_SINH),
    ONE("sqrt", EXPRESSION_SQRT),
    LIST("subtract", 2, 2, expression_subtract, 0),
    {"$switch", EXPRESSION_OWN, .parse = expression_switch_parse, .evaluate = expression_switch},
    ONE("tan", EXPRESSION_TAN),
    ONE("tanh", EXPRESSION_TANH),
    LIST("trunc", 1, 2, expression_round, 1),
};

const size_t expression_operator_count = ARRAY_LEN(expression_operators);

static int by_name(const void *name, const void *op)
{
    return slice_compare(*(const struct slice *)name,
                         slice_of_text(((const struct expression_operator *)op)->name));
}

const struct expression_operator *expression_operator_find(struct slice name)
{
    return bsearch(&name, expression_operators, expression_operator_count,
                   sizeof *expression_operators, by_name);
}

bool mongo_expression_exists(struct slice name)
{
    return expression_operator_find(name) != NULL;
}

const char *mongo_expression_name(size_t number)
{
    return number < expression_operator_count ? expression_operators[number].name : NULL;
}
