/* Text to values and back. The text is JSON, blanks around it are allowed; whatever it is not, or
 * is another type than asked for, is undefined. */
#include "document/json.h"
#include "query/function/functions_private.h"
#include "query/value/text.h"
#include "query/value/value.h"

#include <math.h>

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static struct slice without_blanks(struct slice text)
{
    while (text.len && is_blank(text.data[0]))
        text = slice_skip(text, 1);
    while (text.len && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* The value is read into the scratch and copied from there. */
static bool read_json(const struct document_value *argument, struct query_context *context,
                      struct document_value *ret_value, bool *ret_read, struct error *err)
{
    size_t mark = query_build_begin(context);
    struct document_value value;
    struct error fault;

    *ret_read = false;
    if (argument->type != DOCUMENT_STRING)
        return true;
    if (!query_work(context, argument->text.len >> 3, err))
        return false;
    if (document_json_read_value(without_blanks(argument->text), NULL, &context->scratch, &value,
                                 &fault)) {
        *ret_value = query_value_copy(&value, context->arena);
        *ret_read = true;
    }
    query_build_drop(context, mark);
    return query_memory_check(context, 0, err);
}

/* Keeps what was read only if it is of that class. */
static bool read_class(const struct document_value *argument, uint32_t class,
                       struct query_context *context, struct document_value *ret_value,
                       struct error *err)
{
    struct document_value value;
    bool read;

    if (!read_json(argument, context, &value, &read, err))
        return false;
    if (read && query_class_of(&value) == class)
        *ret_value = value;
    return true;
}

#define CONVERT(name, class)                                                                       \
    QUERY_FUNCTION(name)                                                                           \
    {                                                                                              \
        return read_class(&arguments[0], class, context, ret_value, err);                          \
    }

CONVERT(convert_to_array, QUERY_CLASS_ARRAY)
CONVERT(convert_to_boolean, QUERY_CLASS_BOOL)
CONVERT(convert_to_null, QUERY_CLASS_NULL)
CONVERT(convert_to_number, QUERY_CLASS_NUMBER)
CONVERT(convert_to_object, QUERY_CLASS_OBJECT)

/* A string is itself; NaN and infinities, which JSON lacks, have their names. */
QUERY_FUNCTION(convert_to_string)
{
    const struct document_value *value = &arguments[0];
    size_t mark = query_build_begin(context);

    if (value->type == DOCUMENT_STRING) {
        *ret_value = *value;
        return true;
    }
    if (value->type == DOCUMENT_DOUBLE && isnan(value->number)) {
        *ret_value = document_string(SLICE("NaN"));
        return true;
    }
    if (value->type == DOCUMENT_DOUBLE && isinf(value->number)) {
        *ret_value = document_string(value->number > 0 ? SLICE("Infinity") : SLICE("-Infinity"));
        return true;
    }
    if (!query_work(context, query_value_bytes(value) >> 3, err))
        return false;
    document_json_write_value(value, &context->scratch);
    return query_text_end(context, mark, ret_value, err);
}

static const struct query_function functions[] = {
    {"StringToArray", 1, 1, false, QUERY_STABLE, convert_to_array},
    {"StringToBoolean", 1, 1, false, QUERY_STABLE, convert_to_boolean},
    {"StringToNull", 1, 1, false, QUERY_STABLE, convert_to_null},
    {"StringToNumber", 1, 1, false, QUERY_STABLE, convert_to_number},
    {"StringToObject", 1, 1, false, QUERY_STABLE, convert_to_object},
    {"ToString", 1, 1, false, QUERY_STABLE, convert_to_string},
};

const struct query_function_family query_functions_convert = {functions, ARRAY_LEN(functions)};
