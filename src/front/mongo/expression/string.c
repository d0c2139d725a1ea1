/* Strings: by bytes, or by code points. Case is changed for ASCII letters alone. */
#include "document/decimal.h"
#include "front/mongo/expression/date.h"
#include "front/mongo/expression/expression_private.h"
#include "query/value/text.h"

#include <stdio.h>

bool expression_coerce_text(struct expression_call *call, const struct document_value *value,
                            struct slice *ret_text)
{
    char text[EXPRESSION_NUMBER_TEXT];
    size_t len = 0;
    uint8_t *bytes;

    switch (value->type) {
    case DOCUMENT_NULL:
    case DOCUMENT_UNDEFINED:
        *ret_text = SLICE("");
        return true;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        *ret_text = value->text;
        return true;
    case DOCUMENT_DATE:
        len = expression_date_iso(value->int64, text);
        break;
    case DOCUMENT_TIMESTAMP:
        len = (size_t)snprintf(text, sizeof text, "Timestamp(%u, %u)",
                               (unsigned)(value->timestamp >> 32), (unsigned)value->timestamp);
        break;
    default:
        if (!document_is_number(value))
            return mongo_error_set(call->err, 16007, "can't convert from BSON type %s to String",
                                   expression_type_name(value));
        len = expression_number_text(value, text);
    }
    bytes = query_alloc(call->context, len + 1, call->err);
    if (!bytes)
        return false;
    memcpy(bytes, text, len);
    *ret_text = slice_of(bytes, len);
    return true;
}

/* 16 significant digits, as MongoDB's streams have them. */
size_t expression_number_text(const struct document_value *value, char text[EXPRESSION_NUMBER_TEXT])
{
    int len;

    switch (value->type) {
    case DOCUMENT_INT32:
        len = snprintf(text, EXPRESSION_NUMBER_TEXT, "%d", value->int32);
        return (size_t)len;
    case DOCUMENT_INT64:
        len = snprintf(text, EXPRESSION_NUMBER_TEXT, "%lld", (long long)value->int64);
        return (size_t)len;
    case DOCUMENT_DECIMAL128:
        return decimal_to_text(value->decimal, text);
    default:
        break;
    }
    if (value->number != value->number)
        len = snprintf(text, EXPRESSION_NUMBER_TEXT, "NaN");
    else if (value->number > 1.7976931348623157e308 || value->number < -1.7976931348623157e308)
        len = snprintf(text, EXPRESSION_NUMBER_TEXT, value->number > 0 ? "Infinity" : "-Infinity");
    else
        len = snprintf(text, EXPRESSION_NUMBER_TEXT, "%.16g", value->number);
    return (size_t)len;
}

/* --- Joining, finding ------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_concat)
{
    size_t mark;

    for (size_t i = 0; i < call->count; i++) {
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
        if (call->arguments[i].type != DOCUMENT_STRING)
            return mongo_error_set(call->err, 16702, "$concat only supports strings, not %s",
                                   expression_type_name(&call->arguments[i]));
    }
    mark = query_build_begin(call->context);
    for (size_t i = 0; i < call->count; i++)
        buf_append_slice(&call->context->scratch, call->arguments[i].text);
    return expression_text_end(call, mark);
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

static int64_t points_of(struct slice text)
{
    int64_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !is_continuation(text.data[i]);
    return count;
}

/* The byte where code point number `point` begins; text.len: there is none. */
static size_t point_offset(struct slice text, int64_t point)
{
    size_t i = 0;

    for (; i < text.len; i++)
        if (!is_continuation(text.data[i]) && point-- == 0)
            break;
    return i;
}

static bool text_argument(struct expression_call *call, size_t number, int code, const char *which)
{
    if (call->arguments[number].type == DOCUMENT_STRING)
        return true;
    return mongo_error_set(call->err, code, "%s requires a string as the %s argument, found: %s",
                           call->node->op->name, which,
                           expression_type_name(&call->arguments[number]));
}

/* $indexOfBytes and $indexOfCP; number 1: the latter. */
EXPRESSION_COMPUTE(expression_index_of_text)
{
    bool by_points = call->node->number;
    struct slice text, part;
    int64_t from, to;
    size_t begin, end, found;

    if (expression_is_nullish(&call->arguments[0]))
        return expression_give_null(call);
    if (!text_argument(call, 0, by_points ? 40093 : 40091, "first") ||
        !text_argument(call, 1, by_points ? 40094 : 40092, "second") ||
        !expression_bounds(call, 2, &from, &to))
        return false;
    text = call->arguments[0].text;
    part = call->arguments[1].text;
    if (!query_work(call->context, (text.len >> 4) + 1, call->err))
        return false;
    if (from > (by_points ? points_of(text) : (int64_t)text.len) || to < from)
        return expression_give(call, document_int32(-1));
    begin = by_points ? point_offset(text, from) : (size_t)from;
    end = by_points ? to == INT64_MAX ? text.len : point_offset(text, to)
                    : (size_t)MIN(to, (int64_t)text.len);
    found = query_text_find(slice_of(text.data + begin, end - begin), part);
    if (found == SIZE_MAX)
        return expression_give(call, document_int32(-1));
    found += begin;
    return expression_give(call,
                           document_int32((int32_t)(by_points ? points_of(slice_first(text, found))
                                                              : (int64_t)found)));
}

EXPRESSION_COMPUTE(expression_text_length)
{
    const struct document_value *text = &call->arguments[0];

    if (text->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, call->node->number ? 34471 : 34473,
                               "%s requires a string argument, found: %s", call->node->op->name,
                               expression_type_name(text));
    return query_work(call->context, text->text.len >> 6, call->err) &&
           expression_give(call,
                           document_int32((int32_t)(call->node->number ? points_of(text->text)
                                                                       : (int64_t)text->text.len)));
}

EXPRESSION_COMPUTE(expression_binary_size)
{
    const struct document_value *value = &call->arguments[0];

    if (expression_is_nullish(value))
        return expression_give_null(call);
    if (value->type == DOCUMENT_STRING)
        return expression_give(call, document_int32((int32_t)value->text.len));
    if (value->type == DOCUMENT_BINARY)
        return expression_give(call, document_int32((int32_t)value->binary.bytes.len));
    return mongo_error_set(call->err, 51276,
                           "$binarySize requires a string or BinData argument, found: %s",
                           expression_type_name(value));
}

/* --- Splitting, replacing, trimming ----------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_split)
{
    static const char *const which[] = {"first", "second"};
    struct slice rest, separator;
    struct expression_array parts;
    size_t found;

    for (size_t i = 0; i < 2; i++)
        if (expression_is_nullish(&call->arguments[i]))
            return expression_give_null(call);
    for (size_t i = 0; i < 2; i++)
        if (call->arguments[i].type != DOCUMENT_STRING)
            return mongo_error_set(call->err, 40085 + (int)i,
                                   "$split requires an expression that evaluates to a string as a "
                                   "%s argument, found: %s",
                                   which[i], expression_type_name(&call->arguments[i]));
    rest = call->arguments[0].text;
    separator = call->arguments[1].text;
    if (!separator.len)
        return mongo_error_set(call->err, 40087, "$split requires a non-empty separator");
    expression_array_begin(&parts, call->context);
    do {
        struct document_value part;

        found = query_text_find(rest, separator);
        part = document_string(found == SIZE_MAX ? rest : slice_first(rest, found));
        if (!query_work(call->context, (part.text.len >> 4) + 1, call->err))
            return expression_array_drop(&parts);
        if (!expression_array_add(&parts, &part, call->err))
            return false;
        if (found != SIZE_MAX)
            rest = slice_skip(rest, found + separator.len);
    } while (found != SIZE_MAX);
    return expression_array_end(&parts, call->ret, call->err);
}

/* $replaceOne and $replaceAll; number 1: the latter. */
EXPRESSION_COMPUTE(expression_replace)
{
    static const char *const names[] = {"input", "find", "replacement"};
    struct slice rest, find, replacement;
    size_t mark;
    bool null = false;

    for (int i = 0; i < 3; i++) {
        const struct document_value *value = &call->arguments[i];

        null |= expression_is_nullish(value);
        if (!expression_is_nullish(value) && value->type != DOCUMENT_STRING)
            return mongo_error_set(
                call->err, 51746 - i, "%s requires that '%s' be a string, found: %s",
                call->node->op->name, names[i], expression_show(call->context, value));
    }
    if (null)
        return expression_give_null(call);
    rest = call->arguments[0].text;
    find = call->arguments[1].text;
    replacement = call->arguments[2].text;
    mark = query_build_begin(call->context);
    if (!find.len) { /* before every character, or the first */
        buf_append_slice(&call->context->scratch, replacement);
        for (size_t i = 0; call->node->number && i < rest.len; i++) {
            if (!query_work(call->context, 1, call->err))
                return query_build_drop(call->context, mark);
            buf_append_byte(&call->context->scratch, rest.data[i]);
            if (i + 1 == rest.len || !is_continuation(rest.data[i + 1]))
                buf_append_slice(&call->context->scratch, replacement);
        }
        if (!call->node->number)
            buf_append_slice(&call->context->scratch, rest);
        return expression_text_end(call, mark);
    }
    for (;;) {
        size_t found = query_text_find(rest, find);

        if (found == SIZE_MAX)
            break;
        if (!query_work(call->context, (found >> 4) + 1, call->err))
            return query_build_drop(call->context, mark);
        buf_append_slice(&call->context->scratch, slice_first(rest, found));
        buf_append_slice(&call->context->scratch, replacement);
        rest = slice_skip(rest, found + find.len);
        if (!call->node->number)
            break;
    }
    buf_append_slice(&call->context->scratch, rest);
    return expression_text_end(call, mark);
}

/* Blanks of all kinds, and NUL. */
static bool is_blank(uint32_t point)
{
    return point == 0 || point == ' ' || (point >= '\t' && point <= '\r') || point == 0xA0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200A);
}

static bool is_trimmed(uint32_t point, const struct slice *chars)
{
    const uint8_t *at, *end;
    size_t len;

    if (!chars)
        return is_blank(point);
    for (at = chars->data, end = at + chars->len; at < end; at += len)
        if (query_text_decode(at, end, &len) == point)
            return true;
    return false;
}

/* number: 1 left, 2 right, 3 both. */
EXPRESSION_COMPUTE(expression_trim)
{
    const struct document_value *input = &call->arguments[0], *chars = &call->arguments[1];
    const struct slice *set = NULL;
    struct slice text;
    size_t len;

    if (expression_is_nullish(input))
        return expression_give_null(call);
    if (input->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, 50699,
                               "%s requires its input to be a string, got %s (of type %s) instead.",
                               call->node->op->name, expression_show(call->context, input),
                               expression_type_name(input));
    if (call->node->given & 2) {
        if (expression_is_nullish(chars))
            return expression_give_null(call);
        if (chars->type != DOCUMENT_STRING)
            return mongo_error_set(call->err, 50700,
                                   "%s requires 'chars' to be a string, got %s (of type %s) "
                                   "instead.",
                                   call->node->op->name, expression_show(call->context, chars),
                                   expression_type_name(chars));
        set = &chars->text;
    }
    text = input->text;
    while ((call->node->number & 1) && text.len) {
        if (!query_work(call->context, 1, call->err))
            return false;
        if (!is_trimmed(query_text_decode(text.data, text.data + text.len, &len), set))
            break;
        text = slice_skip(text, len);
    }
    while ((call->node->number & 2) && text.len) {
        size_t begin = text.len - 1;

        while (begin && is_continuation(text.data[begin]))
            begin--;
        if (!query_work(call->context, 1, call->err))
            return false;
        if (!is_trimmed(query_text_decode(text.data + begin, text.data + text.len, &len), set))
            break;
        text.len = begin;
    }
    return expression_text(call, text);
}

/* --- Parts ------------------------------------------------------------------------------------ */

/* A number as $substr takes it, cut to a long. */
static int64_t cut_long(const struct document_value *value)
{
    double number;
    int64_t whole;

    if (document_to_int64(value, &whole))
        return whole;
    (void)document_to_double(value, &number);
    return number >= 0x1p63 ? INT64_MAX : number > -0x1p63 ? (int64_t)number : INT64_MIN;
}

EXPRESSION_COMPUTE(expression_substr_bytes)
{
    const char *name = call->node->op->name;
    const struct document_value *start = &call->arguments[1], *length = &call->arguments[2];
    struct slice text;
    int64_t from, count;
    size_t end;

    if (!expression_coerce_text(call, &call->arguments[0], &text))
        return false;
    if (!document_is_number(start))
        return mongo_error_set(call->err, 16034,
                               "%s:  starting index must be a numeric type (is BSON type %s)", name,
                               expression_type_name(start));
    if (!document_is_number(length))
        return mongo_error_set(call->err, 16035,
                               "%s:  length must be a numeric type (is BSON type %s)", name,
                               expression_type_name(length));
    from = cut_long(start);
    count = cut_long(length);
    if (from < 0)
        return mongo_error_set(call->err, 50752,
                               "%s:  starting index must be non-negative (got: %lld)", name,
                               (long long)from);
    if ((uint64_t)from >= text.len)
        return expression_give(call, document_string(SLICE("")));
    end = count < 0 || (uint64_t)count > text.len - (uint64_t)from ? text.len
                                                                   : (size_t)(from + count);
    if (is_continuation(text.data[from]))
        return mongo_error_set(call->err, 28656,
                               "%s:  Invalid range, starting index is a UTF-8 continuation byte.",
                               name);
    if (end < text.len && is_continuation(text.data[end]))
        return mongo_error_set(call->err, 28657,
                               "%s:  Invalid range, ending index is in the middle of a UTF-8 "
                               "character.",
                               name);
    return expression_text(call, slice_of(text.data + from, end - (size_t)from));
}

static bool point_argument(struct expression_call *call, size_t number, const char *what,
                           int64_t *ret_value)
{
    const struct document_value *value = &call->arguments[number];
    int code = number == 1 ? 34450 : 34452;
    int32_t whole;

    if (!document_is_number(value))
        return mongo_error_set(call->err, code,
                               "$substrCP: %s must be a numeric type (is BSON type %s)", what,
                               expression_type_name(value));
    if (!expression_to_int32(value, &whole))
        return mongo_error_set(call->err, code + 1,
                               "$substrCP: %s cannot be represented as a 32-bit integral value: %s",
                               what, expression_show(call->context, value));
    *ret_value = whole;
    return true;
}

EXPRESSION_COMPUTE(expression_substr_points)
{
    struct slice text;
    int64_t from, count;
    size_t begin, end;

    if (!expression_coerce_text(call, &call->arguments[0], &text) ||
        !point_argument(call, 1, "starting index", &from) ||
        !point_argument(call, 2, "length", &count))
        return false;
    if (count < 0)
        return mongo_error_set(call->err, 34454,
                               "$substrCP: length must be a nonnegative integer.");
    if (from < 0)
        return mongo_error_set(call->err, 34455,
                               "$substrCP: the starting index must be nonnegative integer.");
    if (!query_work(call->context, text.len >> 4, call->err))
        return false;
    begin = point_offset(text, from);
    end = begin + point_offset(slice_skip(text, begin), count);
    return expression_text(call, slice_of(text.data + begin, end - begin));
}

/* --- Case ------------------------------------------------------------------------------------- */

static uint8_t to_case(uint8_t c, bool upper)
{
    if (upper)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* number 1: upper. */
EXPRESSION_COMPUTE(expression_change_case)
{
    struct slice text;
    uint8_t *changed;

    if (!expression_coerce_text(call, &call->arguments[0], &text))
        return false;
    changed = query_alloc(call->context, text.len + 1, call->err);
    if (!changed || !query_work(call->context, text.len >> 4, call->err))
        return false;
    for (size_t i = 0; i < text.len; i++)
        changed[i] = to_case(text.data[i], call->node->number);
    return expression_give(call, document_string(slice_of(changed, text.len)));
}

EXPRESSION_COMPUTE(expression_compare_nocase)
{
    struct slice a, b;
    size_t i = 0;

    if (!expression_coerce_text(call, &call->arguments[0], &a) ||
        !expression_coerce_text(call, &call->arguments[1], &b) ||
        !query_work(call->context, (a.len + b.len) >> 4, call->err))
        return false;
    while (i < a.len && i < b.len && to_case(a.data[i], true) == to_case(b.data[i], true))
        i++;
    if (i < a.len && i < b.len)
        return expression_give(
            call, document_int32(to_case(a.data[i], true) < to_case(b.data[i], true) ? -1 : 1));
    return expression_give(call, document_int32((a.len > b.len) - (a.len < b.len)));
}
