/* Mathematics. Integers stay integers where the result is one; all else is done in doubles. In
 * MongoDB's order decimals stay decimals in functions that are known for them. */
#include "document/decimal_math.h"
#include "query/function/functions_private.h"

#include <math.h>

enum { DIGITS_MAX = 308 };

/* One double in, one out. */
static bool apply(const struct document_value *argument, double (*function)(double),
                  struct document_value *ret_value)
{
    double number;

    if (document_to_double(argument, &number))
        *ret_value = document_double(function(number));
    return true;
}

/* The same for functions that leave whole numbers as they are. */
static bool apply_to_fraction(const struct document_value *argument, double (*function)(double),
                              struct document_value *ret_value)
{
    int64_t integer;

    if (query_stored_integer(argument, &integer)) {
        *ret_value = *argument;
        return true;
    }
    return apply(argument, function, ret_value);
}

static double cotangent(double x)
{
    return 1 / tan(x);
}

static double to_degrees(double x)
{
    return x * (180 / M_PI);
}

static double to_radians(double x)
{
    return x * (M_PI / 180);
}

typedef struct document_decimal (*of_decimal)(struct document_decimal);

/* Is it to be done in decimals? Then it is. */
static bool apply_decimal(const struct query_context *context,
                          const struct document_value *argument, of_decimal function,
                          struct document_value *ret_value)
{
    if (context->order != DOCUMENT_ORDER_MONGO || argument->type != DOCUMENT_DECIMAL128)
        return false;
    *ret_value = document_decimal_value(function(argument->decimal));
    return true;
}

static struct document_decimal decimal_cut(struct document_decimal a)
{
    return decimal_trunc(a, 0);
}

#define MATH(name, how, function)                                                                  \
    QUERY_FUNCTION(name)                                                                           \
    {                                                                                              \
        return how(&arguments[0], function, ret_value);                                            \
    }

/* The same, with a function of decimals. */
#define MATH_DECIMAL(name, how, function, decimal)                                                 \
    QUERY_FUNCTION(name)                                                                           \
    {                                                                                              \
        return apply_decimal(context, &arguments[0], decimal, ret_value) ||                        \
               how(&arguments[0], function, ret_value);                                            \
    }

MATH(math_acos, apply, acos)
MATH(math_asin, apply, asin)
MATH(math_atan, apply, atan)
MATH_DECIMAL(math_ceiling, apply_to_fraction, ceil, decimal_ceil)
MATH(math_cos, apply, cos)
MATH(math_cot, apply, cotangent)
MATH(math_degrees, apply, to_degrees)
MATH_DECIMAL(math_exp, apply, exp, decimal_exp)
MATH_DECIMAL(math_floor, apply_to_fraction, floor, decimal_floor)
MATH_DECIMAL(math_log10, apply, log10, decimal_log10)
MATH(math_radians, apply, to_radians)
MATH(math_sin, apply, sin)
MATH_DECIMAL(math_sqrt, apply, sqrt, decimal_sqrt)
MATH(math_tan, apply, tan)
MATH_DECIMAL(math_trunc, apply_to_fraction, trunc, decimal_cut)

QUERY_FUNCTION(math_abs)
{
    int64_t integer;

    if (apply_decimal(context, &arguments[0], decimal_abs, ret_value))
        return true;
    if (!query_stored_integer(&arguments[0], &integer) || integer == INT64_MIN)
        return apply(&arguments[0], fabs, ret_value);
    *ret_value = query_integer(integer < 0 ? -integer : integer);
    return true;
}

QUERY_FUNCTION(math_atn2)
{
    double y, x;

    if (document_to_double(&arguments[0], &y) && document_to_double(&arguments[1], &x))
        *ret_value = document_double(atan2(y, x));
    return true;
}

/* Is either of two numbers to be done in decimals? Then both are. */
static bool are_decimals(const struct query_context *context, const struct document_value *pair,
                         struct document_decimal *ret_a, struct document_decimal *ret_b)
{
    if (context->order != DOCUMENT_ORDER_MONGO || !document_is_number(&pair[0]) ||
        !document_is_number(&pair[1]) ||
        (pair[0].type != DOCUMENT_DECIMAL128 && pair[1].type != DOCUMENT_DECIMAL128))
        return false;
    *ret_a = decimal_from_number(&pair[0]);
    *ret_b = decimal_from_number(&pair[1]);
    return true;
}

QUERY_FUNCTION(math_log)
{
    struct document_decimal a, b;
    double x, base;

    if (count == 1 && apply_decimal(context, &arguments[0], decimal_ln, ret_value))
        return true;
    if (count == 2 && are_decimals(context, arguments, &a, &b)) {
        *ret_value = document_decimal_value(decimal_divide(decimal_ln(a), decimal_ln(b)));
        return true;
    }
    if (!document_to_double(&arguments[0], &x))
        return true;
    if (count == 1)
        *ret_value = document_double(log(x));
    else if (document_to_double(&arguments[1], &base))
        *ret_value = document_double(log(x) / log(base));
    return true;
}

/* The largest multiple of the size that is not above the number. */
QUERY_FUNCTION(math_number_bin)
{
    double x, size = 1;

    if (!document_to_double(&arguments[0], &x) ||
        (count > 1 && !document_to_double(&arguments[1], &size)) || size == 0)
        return true;
    *ret_value = document_double(floor(x / size) * size);
    return true;
}

QUERY_FUNCTION(math_pi)
{
    *ret_value = document_double(M_PI);
    return true;
}

QUERY_FUNCTION(math_power)
{
    struct document_decimal a, b;
    double x, y;

    if (are_decimals(context, arguments, &a, &b))
        *ret_value = document_decimal_value(decimal_power(a, b));
    else if (document_to_double(&arguments[0], &x) && document_to_double(&arguments[1], &y))
        *ret_value = document_double(pow(x, y));
    return true;
}

/* At least 0, below 1, in steps of 2^-53. */
QUERY_FUNCTION(math_rand)
{
    *ret_value = document_double((double)(query_random(context) >> 11) * 0x1p-53);
    return true;
}

/* Half away from zero. A power of ten that is exact is multiplied with, not its inverse. */
static double round_digits(double x, int64_t digits)
{
    double scale, scaled;

    if (digits > DIGITS_MAX)
        return x;
    if (digits < -DIGITS_MAX)
        return 0;
    scale = pow(10, (double)(digits < 0 ? -digits : digits));
    scaled = digits < 0 ? round(x / scale) * scale : round(x * scale) / scale;
    return isfinite(scaled) ? scaled : x;
}

QUERY_FUNCTION(math_round)
{
    int64_t digits = 0, integer;
    double x;

    if (count > 1 && !document_to_int64(&arguments[1], &digits))
        return true;
    if (digits >= 0 && query_stored_integer(&arguments[0], &integer))
        *ret_value = arguments[0];
    else if (context->order == DOCUMENT_ORDER_MONGO && arguments[0].type == DOCUMENT_DECIMAL128)
        *ret_value = document_decimal_value(decimal_round(arguments[0].decimal, digits));
    else if (document_to_double(&arguments[0], &x))
        *ret_value = document_double(digits ? round_digits(x, digits) : round(x));
    return true;
}

QUERY_FUNCTION(math_sign)
{
    double x;

    if (document_to_double(&arguments[0], &x))
        *ret_value = isnan(x) ? document_double(x) : document_int32((x > 0) - (x < 0));
    return true;
}

QUERY_FUNCTION(math_square)
{
    int64_t integer, result;
    double x;

    if (query_stored_integer(&arguments[0], &integer) &&
        !__builtin_mul_overflow(integer, integer, &result))
        *ret_value = query_integer(result);
    else if (document_to_double(&arguments[0], &x))
        *ret_value = document_double(x * x);
    return true;
}

/* Two values, one, or none. */
static const struct query_implied *abs_imply_result(const struct query_operand *operand,
                                                    const struct document_value *value,
                                                    const struct query_implying *implying)
{
    struct document_value both[2];
    int64_t integer;
    double number;

    if (value->type == DOCUMENT_DECIMAL128)
        return NULL;
    if (!document_to_double(value, &number) || number < 0)
        return query_implied_never(implying);
    if (query_stored_integer(value, &integer)) {
        both[0] = document_int64(-integer);
        both[1] = document_int64(integer);
    } else {
        both[0] = document_double(-number);
        both[1] = document_double(number);
    }
    return query_implied_points(implying, operand, both, number == 0 ? 1 : 2);
}

static const struct query_function functions[] = {
    {"ABS", 1, 1, false, QUERY_STABLE, math_abs, .imply_result = abs_imply_result},
    {"ACOS", 1, 1, false, QUERY_STABLE, math_acos},
    {"ASIN", 1, 1, false, QUERY_STABLE, math_asin},
    {"ATAN", 1, 1, false, QUERY_STABLE, math_atan},
    {"ATN2", 2, 2, false, QUERY_STABLE, math_atn2},
    {"CEILING", 1, 1, false, QUERY_STABLE, math_ceiling},
    {"COS", 1, 1, false, QUERY_STABLE, math_cos},
    {"COT", 1, 1, false, QUERY_STABLE, math_cot},
    {"DEGREES", 1, 1, false, QUERY_STABLE, math_degrees},
    {"EXP", 1, 1, false, QUERY_STABLE, math_exp},
    {"FLOOR", 1, 1, false, QUERY_STABLE, math_floor},
    {"LOG", 1, 2, false, QUERY_STABLE, math_log},
    {"LOG10", 1, 1, false, QUERY_STABLE, math_log10},
    {"NumberBin", 1, 2, false, QUERY_STABLE, math_number_bin},
    {"PI", 0, 0, false, QUERY_STABLE, math_pi},
    {"POWER", 2, 2, false, QUERY_STABLE, math_power},
    {"RADIANS", 1, 1, false, QUERY_STABLE, math_radians},
    {"RAND", 0, 0, false, QUERY_UNSTABLE, math_rand},
    {"ROUND", 1, 2, false, QUERY_STABLE, math_round},
    {"SIGN", 1, 1, false, QUERY_STABLE, math_sign},
    {"SIN", 1, 1, false, QUERY_STABLE, math_sin},
    {"SQRT", 1, 1, false, QUERY_STABLE, math_sqrt},
    {"SQUARE", 1, 1, false, QUERY_STABLE, math_square},
    {"TAN", 1, 1, false, QUERY_STABLE, math_tan},
    {"TRUNC", 1, 1, false, QUERY_STABLE, math_trunc},
};

const struct query_function_family query_functions_math = {functions, ARRAY_LEN(functions)};
