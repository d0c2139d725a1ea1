/* Numbers of two types give the wider one: int, long, double, decimal. An int that overflows
 * becomes a long, a long a double. A date takes part in $add and $subtract as milliseconds. */
#include "document/decimal_math.h"
#include "front/mongo/expression/expression_private.h"
#include "query/value/sum.h"

#include <math.h>

/* The widest type among the numbers. */
static enum document_type wider(enum document_type a, enum document_type b)
{
    static const enum document_type by_width[] = {DOCUMENT_DECIMAL128, DOCUMENT_DOUBLE,
                                                  DOCUMENT_INT64};

    for (size_t i = 0; i < ARRAY_LEN(by_width); i++)
        if (a == by_width[i] || b == by_width[i])
            return by_width[i];
    return DOCUMENT_INT32;
}

static struct document_value whole_of(int64_t number, enum document_type type)
{
    if (type == DOCUMENT_INT32 && number >= INT32_MIN && number <= INT32_MAX)
        return document_int32((int32_t)number);
    return document_int64(number);
}

static int64_t whole(const struct document_value *value)
{
    return value->type == DOCUMENT_INT32 ? value->int32 : value->int64;
}

static double real(const struct document_value *value)
{
    double number = 0;

    (void)document_to_double(value, &number);
    return number;
}

static struct document_decimal decimal(const struct document_value *value)
{
    return decimal_from_number(value);
}

/* --- Dates ------------------------------------------------------------------------------------ */

/* A number of milliseconds; false: no long holds it. */
static bool to_milliseconds(const struct document_value *number, int64_t *ret_ms)
{
    double value;

    if (number->type == DOCUMENT_INT32 || number->type == DOCUMENT_INT64) {
        *ret_ms = whole(number);
        return true;
    }
    value = round(real(number));
    if (!(value >= -0x1p63 && value < 0x1p63))
        return false;
    *ret_ms = (int64_t)value;
    return true;
}

static bool date_overflow(struct expression_call *call, const char *name)
{
    return mongo_error_set(call->err, MONGO_OVERFLOW, "date overflow in %s", name);
}

/* --- Adding ----------------------------------------------------------------------------------- */

static struct document_value sum_of(struct expression_call *call, enum document_type type)
{
    struct document_value result;
    struct query_sum sum = {0};
    struct document_decimal total = decimal_from_int64(0);

    if (type == DOCUMENT_DECIMAL128) {
        for (size_t i = 0; i < call->count; i++)
            total =
                i ? decimal_add(total, decimal(&call->arguments[i])) : decimal(&call->arguments[i]);
        return document_decimal_value(total);
    }
    for (size_t i = 0; i < call->count; i++)
        (void)query_sum_add(&sum, &call->arguments[i], false);
    result = query_sum_value(&sum);
    query_sum_done(&sum);
    if (type == DOCUMENT_INT64 && result.type == DOCUMENT_INT32)
        return document_int64(result.int32);
    return result;
}

static bool date_sum(struct expression_call *call, size_t date)
{
    int64_t total = call->arguments[date].int64, ms;

    for (size_t i = 0; i < call->count; i++) {
        if (i == date)
            continue;
        if (!to_milliseconds(&call->arguments[i], &ms) || __builtin_add_overflow(total, ms, &total))
            return date_overflow(call, "$add");
    }
    return expression_give(call, document_date(total));
}

EXPRESSION_COMPUTE(expression_add)
{
    enum document_type type = DOCUMENT_INT32;
    size_t date = SIZE_MAX;

    for (size_t i = 0; i < call->count; i++) {
        const struct document_value *value = &call->arguments[i];

        if (expression_is_nullish(value))
            return expression_give_null(call);
        if (value->type == DOCUMENT_DATE) {
            if (date != SIZE_MAX)
                return mongo_error_set(call->err, 16612,
                                       "only one date allowed in an $add expression");
            date = i;
        } else if (document_is_number(value)) {
            type = wider(type, value->type);
        } else {
            return mongo_error_set(call->err, MONGO_TYPE_MISMATCH,
                                   "$add only supports numeric or date types, not %s",
                                   expression_type_name(value));
        }
    }
    return date != SIZE_MAX ? date_sum(call, date) : expression_give(call, sum_of(call, type));
}

static bool date_subtract(struct expression_call *call)
{
    const struct document_value *left = &call->arguments[0], *right = &call->arguments[1];
    int64_t ms, result;

    if (right->type == DOCUMENT_DATE) {
        if (__builtin_sub_overflow(left->int64, right->int64, &result))
            return date_overflow(call, "$subtract");
        return expression_give(call, document_int64(result));
    }
    if (!to_milliseconds(right, &ms) || __builtin_sub_overflow(left->int64, ms, &result))
        return date_overflow(call, "$subtract");
    return expression_give(call, document_date(result));
}

EXPRESSION_COMPUTE(expression_subtract)
{
    const struct document_value *left = &call->arguments[0], *right = &call->arguments[1];
    int64_t result;

    if (expression_is_nullish(left) || expression_is_nullish(right))
        return expression_give_null(call);
    if (left->type == DOCUMENT_DATE && (right->type == DOCUMENT_DATE || document_is_number(right)))
        return date_subtract(call);
    if (!document_is_number(left) || !document_is_number(right))
        return mongo_error_set(call->err, MONGO_TYPE_MISMATCH, "can't $subtract %s from %s",
                               expression_type_name(right), expression_type_name(left));
    switch (wider(left->type, right->type)) {
    case DOCUMENT_DECIMAL128:
        return expression_give(
            call, document_decimal_value(decimal_subtract(decimal(left), decimal(right))));
    case DOCUMENT_DOUBLE:
        return expression_give(call, document_double(real(left) - real(right)));
    default:
        break;
    }
    if (__builtin_sub_overflow(whole(left), whole(right), &result))
        return expression_give(call, document_double(real(left) - real(right)));
    return expression_give(call, whole_of(result, wider(left->type, right->type)));
}

EXPRESSION_COMPUTE(expression_multiply)
{
    enum document_type type = DOCUMENT_INT32;
    struct document_decimal decimals = decimal_from_int64(1);
    double reals = 1;
    int64_t wholes = 1;
    bool overflowed = false;

    for (size_t i = 0; i < call->count; i++) {
        const struct document_value *value = &call->arguments[i];

        if (expression_is_nullish(value))
            return expression_give_null(call);
        if (!document_is_number(value))
            return mongo_error_set(call->err, MONGO_TYPE_MISMATCH,
                                   "$multiply only supports numeric types, not %s",
                                   expression_type_name(value));
        type = wider(type, value->type);
        reals *= real(value);
        if (type == DOCUMENT_INT32 || type == DOCUMENT_INT64)
            overflowed |= __builtin_mul_overflow(wholes, whole(value), &wholes);
    }
    if (type == DOCUMENT_DECIMAL128) {
        for (size_t i = 0; i < call->count; i++)
            decimals = decimal_multiply(decimals, decimal(&call->arguments[i]));
        return expression_give(call, document_decimal_value(decimals));
    }
    if (type == DOCUMENT_DOUBLE || overflowed)
        return expression_give(call, document_double(reals));
    return expression_give(call, whole_of(wholes, type));
}

EXPRESSION_COMPUTE(expression_divide)
{
    const struct document_value *left = &call->arguments[0], *right = &call->arguments[1];

    if (expression_is_nullish(left) || expression_is_nullish(right))
        return expression_give_null(call);
    if (!document_is_number(left) || !document_is_number(right))
        return mongo_error_set(call->err, MONGO_TYPE_MISMATCH,
                               "$divide only supports numeric types, not %s and %s",
                               expression_type_name(left), expression_type_name(right));
    if (real(right) == 0)
        return mongo_error_set(call->err, MONGO_BAD_VALUE, "can't $divide by zero");
    if (wider(left->type, right->type) == DOCUMENT_DECIMAL128)
        return expression_give(
            call, document_decimal_value(decimal_divide(decimal(left), decimal(right))));
    return expression_give(call, document_double(real(left) / real(right)));
}

EXPRESSION_COMPUTE(expression_modulo)
{
    const struct document_value *left = &call->arguments[0], *right = &call->arguments[1];
    enum document_type type;
    int64_t remainder;

    if (expression_is_nullish(left) || expression_is_nullish(right))
        return expression_give_null(call);
    if (!document_is_number(left) || !document_is_number(right))
        return mongo_error_set(call->err, 16611, "$mod only supports numeric types, not %s and %s",
                               expression_type_name(left), expression_type_name(right));
    if (real(right) == 0)
        return mongo_error_set(call->err, 16610, "can't $mod by zero");
    type = wider(left->type, right->type);
    if (type == DOCUMENT_DECIMAL128)
        return expression_give(
            call, document_decimal_value(decimal_modulo(decimal(left), decimal(right))));
    if (type == DOCUMENT_DOUBLE)
        return expression_give(call, document_double(fmod(real(left), real(right))));
    remainder = whole(right) == -1 ? 0 : whole(left) % whole(right);
    return expression_give(call, whole_of(remainder, type));
}

/* --- Powers ----------------------------------------------------------------------------------- */

static struct document_value whole_power(const struct document_value *base,
                                         const struct document_value *exponent)
{
    enum document_type type = wider(base->type, exponent->type);
    int64_t factor = whole(base), left = whole(exponent), result = 1;

    if (factor == 0 || factor == 1)
        return whole_of(left ? factor : 1, type);
    if (factor == -1)
        return whole_of(left % 2 ? -1 : 1, type);
    if (left < 0 || left > 63)
        return document_double(pow((double)factor, (double)left));
    for (; left > 0; left--)
        if (__builtin_mul_overflow(result, factor, &result))
            return document_double(pow((double)factor, (double)whole(exponent)));
    return whole_of(result, type);
}

EXPRESSION_COMPUTE(expression_power)
{
    const struct document_value *base = &call->arguments[0], *exponent = &call->arguments[1];

    if (expression_is_nullish(base) || expression_is_nullish(exponent))
        return expression_give_null(call);
    if (!document_is_number(base))
        return mongo_error_set(call->err, 28762, "$pow's base must be numeric, not %s",
                               expression_type_name(base));
    if (!document_is_number(exponent))
        return mongo_error_set(call->err, 28763, "$pow's exponent must be numeric, not %s",
                               expression_type_name(exponent));
    if (real(base) == 0 && real(exponent) < 0)
        return mongo_error_set(call->err, 28764, "$pow cannot raise 0 to a negative exponent");
    switch (wider(base->type, exponent->type)) {
    case DOCUMENT_DECIMAL128:
        return expression_give(
            call, document_decimal_value(decimal_power(decimal(base), decimal(exponent))));
    case DOCUMENT_DOUBLE:
        return expression_give(call, document_double(pow(real(base), real(exponent))));
    default:
        return expression_give(call, whole_power(base, exponent));
    }
}

/* --- Bits ------------------------------------------------------------------------------------- */

static bool is_whole(const struct document_value *value)
{
    return value->type == DOCUMENT_INT32 || value->type == DOCUMENT_INT64;
}

EXPRESSION_COMPUTE(expression_bits)
{
    enum document_type type = DOCUMENT_INT32;
    int64_t result = call->node->number == QUERY_BIT_AND ? -1 : 0;

    for (size_t i = 0; i < call->count; i++) {
        const struct document_value *value = &call->arguments[i];

        if (expression_is_nullish(value))
            return expression_give_null(call);
        if (!is_whole(value))
            return mongo_error_set(call->err, MONGO_TYPE_MISMATCH,
                                   "%s only supports int and long operands.", call->node->op->name);
        type = wider(type, value->type);
        if (call->node->number == QUERY_BIT_AND)
            result &= whole(value);
        else if (call->node->number == QUERY_BIT_OR)
            result |= whole(value);
        else
            result ^= whole(value);
    }
    return expression_give(call, whole_of(result, type));
}

EXPRESSION_COMPUTE(expression_bit_not)
{
    const struct document_value *value = &call->arguments[0];

    if (expression_is_nullish(value))
        return expression_give_null(call);
    if (!is_whole(value))
        return mongo_error_set(call->err, 28765, "$bitNot only supports numeric types, not %s",
                               expression_type_name(value));
    return expression_give(call, whole_of(~whole(value), value->type));
}
