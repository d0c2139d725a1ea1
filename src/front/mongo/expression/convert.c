/* Types, and values of one made into another. What cannot be is an error 241, which $convert hands
 * to its onError. */
#include "document/decimal_math.h"
#include "document/double.h"
#include "front/mongo/expression/date.h"

#include <math.h>
#include <stdio.h>

enum { ID_DIGITS = 2 * DOCUMENT_OBJECT_ID_SIZE };

EXPRESSION_COMPUTE(expression_type)
{
    const char *name = expression_type_name(&call->arguments[0]);

    return expression_give(call, document_string(slice_of_text(name)));
}

EXPRESSION_COMPUTE(expression_is_number)
{
    return expression_give(call, document_bool(document_is_number(&call->arguments[0])));
}

#define WITHOUT "in $convert with no onError value"

static bool unsupported(struct expression_call *call, const struct document_value *value,
                        enum document_type to)
{
    return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                           "Unsupported conversion from %s to %s " WITHOUT,
                           expression_type_name(value), mongo_type_name(to));
}

static bool would_overflow(struct expression_call *call, const struct document_value *value)
{
    return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                           "Conversion would overflow target type " WITHOUT ": %s",
                           expression_show(call->context, value));
}

static bool not_a_number(struct expression_call *call, struct slice text, const char *why)
{
    return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                           "Failed to parse number '%.*s' " WITHOUT ": %s", SLICE_ARG(text), why);
}

/* --- Numbers ---------------------------------------------------------------------------------- */

static bool text_to_whole(struct expression_call *call, struct slice text, int64_t *ret_number)
{
    bool negative = text.len && text.data[0] == '-';
    size_t at = text.len && (negative || text.data[0] == '+');
    __int128 number = 0;

    if (at == text.len)
        return not_a_number(call, text, "No digits");
    for (; at < text.len; at++) {
        if (text.data[at] < '0' || text.data[at] > '9')
            return not_a_number(call, text, "Did not consume whole string.");
        number = number * 10 + (text.data[at] - '0');
        if (number > (__int128)INT64_MAX + 1)
            return not_a_number(call, text, "Overflow");
    }
    if (negative)
        number = -number;
    if (number > INT64_MAX)
        return not_a_number(call, text, "Overflow");
    *ret_number = (int64_t)number;
    return true;
}

/* Cut towards zero. */
static bool number_to_whole(struct expression_call *call, const struct document_value *value,
                            int64_t *ret_number)
{
    struct document_value cut;
    double number = 0;

    if (value->type == DOCUMENT_DECIMAL128) {
        cut = document_decimal_value(decimal_trunc(value->decimal, 0));
        if (document_to_int64(&cut, ret_number))
            return true;
    }
    (void)document_to_double(value, &number);
    if (isnan(number))
        return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                               "Attempt to convert NaN value to integer type " WITHOUT);
    if (isinf(number))
        return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                               "Attempt to convert infinity value to integer type " WITHOUT);
    if (value->type == DOCUMENT_DECIMAL128 || !(number >= -0x1p63 && number < 0x1p63))
        return would_overflow(call, value);
    *ret_number = (int64_t)number;
    return true;
}

static bool to_whole(struct expression_call *call, const struct document_value *value,
                     enum document_type to)
{
    int64_t number = 0;

    switch (value->type) {
    case DOCUMENT_BOOL:
        number = value->boolean;
        break;
    case DOCUMENT_INT32:
        number = value->int32;
        break;
    case DOCUMENT_INT64:
        number = value->int64;
        break;
    case DOCUMENT_DATE:
        if (to == DOCUMENT_INT32)
            return unsupported(call, value, to);
        number = value->int64;
        break;
    case DOCUMENT_STRING:
        if (!text_to_whole(call, value->text, &number))
            return false;
        if (to == DOCUMENT_INT32 && (number < INT32_MIN || number > INT32_MAX))
            return not_a_number(call, value->text, "Overflow");
        break;
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        if (!number_to_whole(call, value, &number))
            return false;
        break;
    default:
        return unsupported(call, value, to);
    }
    if (to == DOCUMENT_INT64)
        return expression_give(call, document_int64(number));
    if (number < INT32_MIN || number > INT32_MAX)
        return would_overflow(call, value);
    return expression_give(call, document_int32((int32_t)number));
}

static bool to_double(struct expression_call *call, const struct document_value *value)
{
    struct document_decimal decimal;
    double number = 0;

    switch (value->type) {
    case DOCUMENT_BOOL:
        return expression_give(call, document_double(value->boolean));
    case DOCUMENT_DATE:
        return expression_give(call, document_double((double)value->int64));
    case DOCUMENT_STRING:
        if (double_from_text((const char *)value->text.data, value->text.len, &number))
            return expression_give(call, document_double(number));
        if (!decimal_from_text(value->text, &decimal, NULL))
            return not_a_number(call, value->text, "Did not consume whole string.");
        if (decimal_unpack(decimal).kind == DECIMAL_FINITE)
            return not_a_number(call, value->text, "Out of range");
        (void)document_to_double(
            &(struct document_value){.type = DOCUMENT_DECIMAL128, .decimal = decimal}, &number);
        return expression_give(call, document_double(number));
    default:
        if (!document_to_double(value, &number))
            return unsupported(call, value, DOCUMENT_DOUBLE);
    }
    if (value->type == DOCUMENT_DECIMAL128 && isinf(number) &&
        decimal_unpack(value->decimal).kind == DECIMAL_FINITE)
        return would_overflow(call, value);
    return expression_give(call, document_double(number));
}

static bool to_decimal(struct expression_call *call, const struct document_value *value)
{
    struct document_decimal decimal;

    if (document_is_number(value)) {
        decimal = decimal_from_number(value);
    } else if (value->type == DOCUMENT_BOOL) {
        decimal = decimal_from_int64(value->boolean);
    } else if (value->type == DOCUMENT_DATE) {
        decimal = decimal_from_int64(value->int64);
    } else if (value->type == DOCUMENT_STRING) {
        if (!decimal_from_text(value->text, &decimal, NULL))
            return not_a_number(call, value->text, "Failed to parse string to decimal");
    } else {
        return unsupported(call, value, DOCUMENT_DECIMAL128);
    }
    return expression_give(call, document_decimal_value(decimal));
}

/* --- Others ----------------------------------------------------------------------------------- */

static bool to_bool(struct expression_call *call, const struct document_value *value)
{
    return expression_give(call, document_bool(mongo_expression_truth(value)));
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool to_object_id(struct expression_call *call, const struct document_value *value)
{
    uint8_t *id;

    if (value->type == DOCUMENT_OBJECT_ID)
        return expression_give(call, *value);
    if (value->type != DOCUMENT_STRING)
        return unsupported(call, value, DOCUMENT_OBJECT_ID);
    if (value->text.len != ID_DIGITS)
        return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                               "Failed to parse objectId '%.*s' " WITHOUT ": Invalid string length "
                               "for parsing to OID, expected 24 but found %zu",
                               SLICE_ARG(value->text), value->text.len);
    id = query_alloc(call->context, DOCUMENT_OBJECT_ID_SIZE, call->err);
    if (!id)
        return false;
    for (size_t i = 0; i < DOCUMENT_OBJECT_ID_SIZE; i++) {
        int high = digit_of(value->text.data[2 * i]), low = digit_of(value->text.data[2 * i + 1]);

        if (high < 0 || low < 0)
            return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                                   "Failed to parse objectId '%.*s' " WITHOUT ": Invalid character "
                                   "found in hex string",
                                   SLICE_ARG(value->text));
        id[i] = (uint8_t)(high << 4 | low);
    }
    return expression_give(call, (struct document_value){.type = DOCUMENT_OBJECT_ID, .id = id});
}

static bool to_text(struct expression_call *call, const struct document_value *value)
{
    char text[EXPRESSION_NUMBER_TEXT];
    size_t len = 0;

    switch (value->type) {
    case DOCUMENT_STRING:
        return expression_give(call, *value);
    case DOCUMENT_BOOL:
        return expression_give(call,
                               document_string(value->boolean ? SLICE("true") : SLICE("false")));
    case DOCUMENT_DATE:
        if (value->int64 < -62167219200000 || value->int64 > 253402300799999)
            return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                                   "$convert: dates outside of years 0-9999 have no text");
        len = expression_date_iso(value->int64, text);
        break;
    case DOCUMENT_OBJECT_ID:
        for (size_t i = 0; i < DOCUMENT_OBJECT_ID_SIZE; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%02x", value->id[i]);
        break;
    default:
        if (!document_is_number(value))
            return unsupported(call, value, DOCUMENT_STRING);
        len = expression_number_text(value, text);
    }
    return expression_text(call, slice_of(text, len));
}

static bool to_date(struct expression_call *call, const struct document_value *value)
{
    int64_t ms;

    if (expression_to_date(value, &ms))
        return expression_give(call, document_date(ms));
    switch (value->type) {
    case DOCUMENT_INT64:
        return expression_give(call, document_date(value->int64));
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        return number_to_whole(call, value, &ms) && expression_give(call, document_date(ms));
    case DOCUMENT_STRING:
        return expression_date_parse(value->text, SLICE_NONE, NULL, call->context->arena, &ms,
                                     call->err) &&
               expression_give(call, document_date(ms));
    default:
        return unsupported(call, value, DOCUMENT_DATE);
    }
}

static bool convert_to(struct expression_call *call, const struct document_value *value,
                       enum document_type to)
{
    switch (to) {
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
        return to_whole(call, value, to);
    case DOCUMENT_DOUBLE:
        return to_double(call, value);
    case DOCUMENT_DECIMAL128:
        return to_decimal(call, value);
    case DOCUMENT_BOOL:
        return to_bool(call, value);
    case DOCUMENT_OBJECT_ID:
        return to_object_id(call, value);
    case DOCUMENT_STRING:
        return to_text(call, value);
    case DOCUMENT_DATE:
        return to_date(call, value);
    default:
        return unsupported(call, value, to);
    }
}

/* $toInt and the like; number: the type. */
EXPRESSION_COMPUTE(expression_convert_to)
{
    if (expression_is_nullish(&call->arguments[0]))
        return expression_give_null(call);
    return convert_to(call, &call->arguments[0], (enum document_type)call->node->number);
}

/* --- $convert --------------------------------------------------------------------------------- */

static bool type_read(struct query_context *context, const struct document_value *to,
                      enum document_type *ret_type, struct error *err)
{
    static const enum document_type types[] = {
        DOCUMENT_DOUBLE,    DOCUMENT_STRING,    DOCUMENT_OBJECT,          DOCUMENT_ARRAY,
        DOCUMENT_BINARY,    DOCUMENT_UNDEFINED, DOCUMENT_OBJECT_ID,       DOCUMENT_BOOL,
        DOCUMENT_DATE,      DOCUMENT_NULL,      DOCUMENT_REGEX,           DOCUMENT_DB_POINTER,
        DOCUMENT_CODE,      DOCUMENT_SYMBOL,    DOCUMENT_CODE_WITH_SCOPE, DOCUMENT_INT32,
        DOCUMENT_TIMESTAMP, DOCUMENT_INT64,     DOCUMENT_DECIMAL128,      DOCUMENT_MIN_KEY,
        DOCUMENT_MAX_KEY};
    int64_t number;
    bool whole = document_to_int64(to, &number);

    if (to->type != DOCUMENT_STRING && !document_is_number(to))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$convert's 'to' argument must be a string or number, but is %s",
                               expression_type_name(to));
    if (to->type != DOCUMENT_STRING && !whole)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "In $convert, numeric 'to' argument is not an integer");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (whole ? number == (types[i] == DOCUMENT_MIN_KEY ? -1 : (int64_t)types[i])
                  : slice_equal(to->text, slice_of_text(mongo_type_name(types[i])))) {
            *ret_type = types[i];
            return true;
        }
    }
    if (whole)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "In $convert, numeric value for 'to' does not correspond to a BSON "
                               "type: %lld",
                               (long long)number);
    return mongo_error_set(err, MONGO_BAD_VALUE, "Unknown type name: %s",
                           expression_show(context, to));
}

/* Children: input, to, onError, onNull. */
EXPRESSION_EVALUATE(expression_convert)
{
    const struct query_expression *const *children = node->head.children;
    struct document_value input, to;
    struct expression_call call = {node, context, &input, 1, ret_value, err};
    enum document_type type = DOCUMENT_NULL;

    if (!query_evaluate(children[0], context, &input, err) ||
        !query_evaluate(children[1], context, &to, err))
        return false;
    if (expression_is_nullish(&input) && (node->given & 8))
        return query_evaluate(children[3], context, ret_value, err);
    if (expression_is_nullish(&input) || expression_is_nullish(&to)) {
        *ret_value = document_null();
        return true;
    }
    if (!type_read(context, &to, &type, err))
        return false;
    if (convert_to(&call, &input, type))
        return true;
    if (!(node->given & 4) || mongo_error_code(err) != MONGO_CONVERSION_FAILURE)
        return false;
    return query_evaluate(children[2], context, ret_value, err);
}

/* --- $dateFromString -------------------------------------------------------------------------- */

static bool string_to_date(struct expression_call *call, const struct expression_zone *zone)
{
    const struct document_value *text = &call->arguments[0], *format = &call->arguments[1];
    int64_t ms;

    if (text->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, MONGO_CONVERSION_FAILURE,
                               "$dateFromString requires that 'dateString' be a string, found: %s "
                               "with value %s",
                               expression_type_name(text), expression_show(call->context, text));
    return query_work(call->context, text->text.len, call->err) &&
           expression_date_parse(text->text, call->node->given & 2 ? format->text : SLICE_NONE,
                                 call->node->given & 4 ? zone : NULL, call->context->arena, &ms,
                                 call->err) &&
           expression_give(call, document_date(ms));
}

/* Children: dateString, format, timezone, onError, onNull. */
EXPRESSION_EVALUATE(expression_date_from_string)
{
    const struct query_expression *const *children = node->head.children;
    struct document_value arguments[3];
    struct expression_call call = {node, context, arguments, 3, ret_value, err};
    const struct expression_zone *zone;

    for (size_t i = 0; i < 3; i++)
        if (!query_evaluate(children[i], context, &arguments[i], err))
            return false;
    if ((node->given & 2) && !expression_is_nullish(&arguments[1]) &&
        arguments[1].type != DOCUMENT_STRING)
        return mongo_error_set(err, 40684,
                               "$dateFromString requires that 'format' be a string, found: %s with "
                               "value %s",
                               expression_type_name(&arguments[1]),
                               expression_show(context, &arguments[1]));
    if (!expression_zone_read(&call, 2, &zone))
        return false;
    if (expression_is_nullish(&arguments[0]) && (node->given & 16))
        return query_evaluate(children[4], context, ret_value, err);
    if (expression_is_nullish(&arguments[0]) || !zone ||
        ((node->given & 2) && expression_is_nullish(&arguments[1]))) {
        *ret_value = document_null();
        return true;
    }
    if (string_to_date(&call, zone))
        return true;
    if (!(node->given & 8) || mongo_error_code(err) != MONGO_CONVERSION_FAILURE)
        return false;
    return query_evaluate(children[3], context, ret_value, err);
}
