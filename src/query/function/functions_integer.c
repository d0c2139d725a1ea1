/* 64-bit integers, which wrap around. A whole double counts as an integer, a fraction makes the
 * result undefined, and so does division by zero. Shifts take the low six bits of their count. */
#include "query/function/functions_private.h"

typedef int64_t integer_operation(int64_t a, int64_t b);

static bool combine(const struct document_value *arguments, integer_operation *operation,
                    struct document_value *ret_value)
{
    int64_t a, b;

    if (document_to_int64(&arguments[0], &a) && document_to_int64(&arguments[1], &b))
        *ret_value = query_integer(operation(a, b));
    return true;
}

#define INTEGER(name, expression)                                                                  \
    static int64_t name##_of(int64_t a, int64_t b)                                                 \
    {                                                                                              \
        uint64_t x = (uint64_t)a, y = (uint64_t)b;                                                 \
                                                                                                   \
        return (int64_t)(expression);                                                              \
    }                                                                                              \
    QUERY_FUNCTION(name)                                                                           \
    {                                                                                              \
        return combine(arguments, name##_of, ret_value);                                           \
    }

INTEGER(integer_add, x + y)
INTEGER(integer_sub, x - y)
INTEGER(integer_mul, x *y)
INTEGER(integer_and, x &y)
INTEGER(integer_or, x | y)
INTEGER(integer_xor, x ^ y)
INTEGER(integer_shift_left, x << (y & 63))

/* The sign comes along. */
static int64_t shift_right(int64_t a, int64_t b)
{
    return a >> (b & 63);
}

QUERY_FUNCTION(integer_shift_right)
{
    return combine(arguments, shift_right, ret_value);
}

static int64_t divide(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t modulo(int64_t a, int64_t b)
{
    return b == -1 ? 0 : a % b;
}

static bool divides(const struct document_value *divisor)
{
    int64_t number;

    return document_to_int64(divisor, &number) && number != 0;
}

QUERY_FUNCTION(integer_div)
{
    return !divides(&arguments[1]) || combine(arguments, divide, ret_value);
}

QUERY_FUNCTION(integer_mod)
{
    return !divides(&arguments[1]) || combine(arguments, modulo, ret_value);
}

QUERY_FUNCTION(integer_not)
{
    int64_t a;

    if (document_to_int64(&arguments[0], &a))
        *ret_value = query_integer(~a);
    return true;
}

static const struct query_function functions[] = {
    {"IntAdd", 2, 2, false, QUERY_STABLE, integer_add},
    {"IntBitAnd", 2, 2, false, QUERY_STABLE, integer_and},
    {"IntBitLeftShift", 2, 2, false, QUERY_STABLE, integer_shift_left},
    {"IntBitNot", 1, 1, false, QUERY_STABLE, integer_not},
    {"IntBitOr", 2, 2, false, QUERY_STABLE, integer_or},
    {"IntBitRightShift", 2, 2, false, QUERY_STABLE, integer_shift_right},
    {"IntBitXor", 2, 2, false, QUERY_STABLE, integer_xor},
    {"IntBitwiseAnd", 2, 2, false, QUERY_STABLE, integer_and},
    {"IntBitwiseLeftShift", 2, 2, false, QUERY_STABLE, integer_shift_left},
    {"IntBitwiseNot", 1, 1, false, QUERY_STABLE, integer_not},
    {"IntBitwiseOr", 2, 2, false, QUERY_STABLE, integer_or},
    {"IntBitwiseRightShift", 2, 2, false, QUERY_STABLE, integer_shift_right},
    {"IntBitwiseXor", 2, 2, false, QUERY_STABLE, integer_xor},
    {"IntDiv", 2, 2, false, QUERY_STABLE, integer_div},
    {"IntMod", 2, 2, false, QUERY_STABLE, integer_mod},
    {"IntMul", 2, 2, false, QUERY_STABLE, integer_mul},
    {"IntSub", 2, 2, false, QUERY_STABLE, integer_sub},
};

const struct query_function_family query_functions_integer = {functions, ARRAY_LEN(functions)};
