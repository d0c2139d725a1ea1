/* Functions of one number and their relatives. A decimal gives a decimal, every other number a
 * double, except where whole numbers stay as they are. */
#include "document/decimal_math.h"
#include "front/mongo/expression/expression_private.h"

#include <math.h>

enum { PLACES_MIN = -20, PLACES_MAX = 100 };

static double real(const struct document_value *value)
{
    double number = 0;

    (void)document_to_double(value, &number);
    return number;
}

static bool is_whole(const struct document_value *value)
{
    return value->type == DOCUMENT_INT32 || value->type == DOCUMENT_INT64;
}

/* --- Of one number ---------------------------------------------------------------------------- */

struct function {
    double (*of_double)(double number);
    struct document_decimal (*of_decimal)(struct document_decimal number);
    /* Bounds, inclusive or not; NaN is within all of them. */
    double low, high;
    bool open;         /* the bounds themselves are outside */
    const char *shown; /* as messages name the bounds; NULL: there are none */
};

static double radians(double degrees)
{
    return degrees * (M_PI / 180);
}

static double degrees(double angle)
{
    return angle * (180 / M_PI);
}

static struct document_decimal pi(void)
{
    struct document_decimal value = {0};
    bool read = decimal_from_text(SLICE("3.141592653589793238462643383279503"), &value, NULL);

    assert(read);
    return value;
}

static struct document_decimal decimal_radians(struct document_decimal degrees)
{
    return decimal_multiply(degrees, decimal_divide(pi(), decimal_from_int64(180)));
}

static struct document_decimal decimal_degrees(struct document_decimal angle)
{
    return decimal_multiply(angle, decimal_divide(decimal_from_int64(180), pi()));
}

static const struct function functions[] = {
    [EXPRESSION_CEIL] = {ceil, decimal_ceil},
    [EXPRESSION_FLOOR] = {floor, decimal_floor},
    [EXPRESSION_EXP] = {exp, decimal_exp},
    [EXPRESSION_LN] = {log, decimal_ln},
    [EXPRESSION_LOG10] = {log10, decimal_log10},
    [EXPRESSION_SQRT] = {sqrt, decimal_sqrt},
    [EXPRESSION_SIN] = {sin, decimal_sin, -INFINITY, INFINITY, true, "(-inf,inf)"},
    [EXPRESSION_COS] = {cos, decimal_cos, -INFINITY, INFINITY, true, "(-inf,inf)"},
    [EXPRESSION_TAN] = {tan, decimal_tan, -INFINITY, INFINITY, true, "(-inf,inf)"},
    [EXPRESSION_ASIN] = {asin, decimal_asin, -1, 1, false, "[-1,1]"},
    [EXPRESSION_ACOS] = {acos, decimal_acos, -1, 1, false, "[-1,1]"},
    [EXPRESSION_ATAN] = {atan, decimal_atan},
    [EXPRESSION_SINH] = {sinh, decimal_sinh},
    [EXPRESSION_COSH] = {cosh, decimal_cosh},
    [EXPRESSION_TANH] = {tanh, decimal_tanh},
    [EXPRESSION_ASINH] = {asinh, decimal_asinh},
    [EXPRESSION_ACOSH] = {acosh, decimal_acosh, 1, INFINITY, false, "[1,inf]"},
    [EXPRESSION_ATANH] = {atanh, decimal_atanh, -1, 1, false, "[-1,1]"},
    [EXPRESSION_TO_RADIANS] = {radians, decimal_radians},
    [EXPRESSION_TO_DEGREES] = {degrees, decimal_degrees},
};

static bool absolute(struct expression_call *call)
{
    const struct document_value *value = &call->arguments[0];

    switch (value->type) {
    case DOCUMENT_INT32:
        return expression_give(call, value->int32 == INT32_MIN ? document_int64(-(int64_t)INT32_MIN)
                                                               : document_int32(abs(value->int32)));
    case DOCUMENT_INT64:
        if (value->int64 == INT64_MIN)
            return mongo_error_set(call->err, 28680, "can't take $abs of long long min");
        return expression_give(call,
                               document_int64(value->int64 < 0 ? -value->int64 : value->int64));
    case DOCUMENT_DECIMAL128:
        return expression_give(call, document_decimal_value(decimal_abs(value->decimal)));
    default:
        return expression_give(call, document_double(fabs(value->number)));
    }
}

/* Is the number one the function is defined for? */
static bool argument_check(struct expression_call *call, const struct function *function)
{
    const struct document_value *value = &call->arguments[0];
    double number = real(value);

    if (isnan(number))
        return true;
    switch (call->node->number) {
    case EXPRESSION_SQRT:
        return number >= 0 ||
               mongo_error_set(call->err, 28714,
                               "$sqrt's argument must be greater than or equal to 0");
    case EXPRESSION_LN:
        return number > 0 || mongo_error_set(call->err, 28766,
                                             "$ln's argument must be a positive number, but is %s",
                                             expression_show(call->context, value));
    case EXPRESSION_LOG10:
        return number > 0 ||
               mongo_error_set(call->err, 28761,
                               "$log10's argument must be a positive number, but is %s",
                               expression_show(call->context, value));
    default:
        break;
    }
    if (!function->shown)
        return true;
    if (function->open ? number > function->low && number < function->high
                       : number >= function->low && number <= function->high)
        return true;
    return mongo_error_set(
        call->err, 50989, "cannot apply %s to %s, value must be in %s", call->node->op->name,
        isinf(number) ? number > 0 ? "inf" : "-inf" : expression_show(call->context, value),
        function->shown);
}

EXPRESSION_COMPUTE(expression_number_function)
{
    const struct document_value *value = &call->arguments[0];
    const struct function *function = &functions[call->node->number];

    if (expression_is_nullish(value))
        return expression_give_null(call);
    if (!document_is_number(value))
        return mongo_error_set(call->err, 28765, "%s only supports numeric types, not %s",
                               call->node->op->name, expression_type_name(value));
    if (call->node->number == EXPRESSION_ABS)
        return absolute(call);
    if (is_whole(value) &&
        (call->node->number == EXPRESSION_CEIL || call->node->number == EXPRESSION_FLOOR))
        return expression_give(call, *value);
    if (!argument_check(call, function))
        return false;
    if (value->type == DOCUMENT_DECIMAL128)
        return expression_give(call, document_decimal_value(function->of_decimal(value->decimal)));
    return expression_give(call, document_double(function->of_double(real(value))));
}

/* --- Of two ----------------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_log)
{
    const struct document_value *value = &call->arguments[0], *base = &call->arguments[1];

    if (expression_is_nullish(value) || expression_is_nullish(base))
        return expression_give_null(call);
    if (!document_is_number(value))
        return mongo_error_set(call->err, 28756, "$log's argument must be numeric, not %s",
                               expression_type_name(value));
    if (!document_is_number(base))
        return mongo_error_set(call->err, 28757, "$log's base must be numeric, not %s",
                               expression_type_name(base));
    if (real(value) <= 0)
        return mongo_error_set(call->err, 28758,
                               "$log's argument must be a positive number, but is %s",
                               expression_show(call->context, value));
    if (real(base) <= 0 || real(base) == 1)
        return mongo_error_set(call->err, 28759,
                               "$log's base must be a positive number not equal to 1, but is %s",
                               expression_show(call->context, base));
    if (value->type == DOCUMENT_DECIMAL128 || base->type == DOCUMENT_DECIMAL128)
        return expression_give(
            call, document_decimal_value(decimal_divide(decimal_ln(decimal_from_number(value)),
                                                        decimal_ln(decimal_from_number(base)))));
    return expression_give(call, document_double(log(real(value)) / log(real(base))));
}

EXPRESSION_COMPUTE(expression_atan2)
{
    const struct document_value *y = &call->arguments[0], *x = &call->arguments[1];

    if (expression_is_nullish(y) || expression_is_nullish(x))
        return expression_give_null(call);
    if (!document_is_number(y) || !document_is_number(x))
        return mongo_error_set(call->err, document_is_number(y) ? 51045 : 51044,
                               "$atan2 only supports numeric types, not %s and %s",
                               expression_type_name(y), expression_type_name(x));
    if (y->type == DOCUMENT_DECIMAL128 || x->type == DOCUMENT_DECIMAL128)
        return expression_give(call, document_decimal_value(decimal_atan2(decimal_from_number(y),
                                                                          decimal_from_number(x))));
    return expression_give(call, document_double(atan2(real(y), real(x))));
}

/* --- Rounding --------------------------------------------------------------------------------- */

static bool places_read(struct expression_call *call, int64_t *ret_places)
{
    const struct document_value *value = &call->arguments[1];

    if (!document_to_int64(value, ret_places))
        return mongo_error_set(call->err, 51082,
                               "precision argument to  %s must be a integral value",
                               call->node->op->name);
    if (*ret_places < PLACES_MIN || *ret_places > PLACES_MAX)
        return mongo_error_set(call->err, 51083,
                               "cannot apply %s with precision value %lld value must be in "
                               "[%d, %d]",
                               call->node->op->name, (long long)*ret_places, PLACES_MIN,
                               PLACES_MAX);
    return true;
}

/* To a multiple of a power of ten, half to even, or towards zero. */
static bool whole_round(struct expression_call *call, int64_t places)
{
    const struct document_value *value = &call->arguments[0];
    int64_t number = value->type == DOCUMENT_INT32 ? value->int32 : value->int64;
    __int128 unit = 1, rest, result;

    for (; places < 0; places++)
        unit *= 10;
    rest = number % unit;
    result = number - rest;
    if (!call->node->number) { /* $round */
        __int128 twice = 2 * (rest < 0 ? -rest : rest);

        if (twice > unit || (twice == unit && result / unit % 2 != 0))
            result += number < 0 ? -unit : unit;
    }
    if (result < INT64_MIN || result > INT64_MAX)
        return mongo_error_set(call->err, 51080,
                               "invalid conversion from Decimal128 result in %s resulting from "
                               "arguments: [%s, %s]",
                               call->node->op->name, expression_show(call->context, value),
                               expression_show(call->context, &call->arguments[1]));
    if (value->type == DOCUMENT_INT32 && result >= INT32_MIN && result <= INT32_MAX)
        return expression_give(call, document_int32((int32_t)result));
    return expression_give(call, document_int64((int64_t)result));
}

EXPRESSION_COMPUTE(expression_round)
{
    const struct document_value *value = &call->arguments[0];
    struct document_value rounded;
    struct document_decimal number;
    int64_t places = 0;
    bool cut = call->node->number;

    if (expression_is_nullish(value) ||
        (call->count > 1 && expression_is_nullish(&call->arguments[1])))
        return expression_give_null(call);
    if (!document_is_number(value))
        return mongo_error_set(call->err, 51081, "%s only supports numeric types, not %s",
                               call->node->op->name, expression_type_name(value));
    if (call->count > 1 && !places_read(call, &places))
        return false;
    if (is_whole(value))
        return places >= 0 ? expression_give(call, *value) : whole_round(call, places);
    if (value->type == DOCUMENT_DOUBLE && !isfinite(value->number))
        return expression_give(call, *value);
    number =
        value->type == DOCUMENT_DOUBLE ? decimal_from_double_whole(value->number) : value->decimal;
    number = cut ? decimal_trunc(number, places) : decimal_round(number, places);
    rounded = document_decimal_value(number);
    if (value->type == DOCUMENT_DOUBLE)
        rounded = document_double(real(&rounded));
    return expression_give(call, rounded);
}
