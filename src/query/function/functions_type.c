/* Type checks, which take undefined and always give a boolean; choices; and an item's number. */
#include "definition/names.h"
#include "definition/rid.h"
#include "document/bson.h"
#include "query/function/date.h"
#include "query/function/functions_private.h"

#include <math.h>

#define TYPE_CHECK(name, condition)                                                                \
    QUERY_FUNCTION(name)                                                                           \
    {                                                                                              \
        const struct document_value *value = &arguments[0];                                        \
                                                                                                   \
        *ret_value = document_bool(condition);                                                     \
        return true;                                                                               \
    }

static bool is_primitive(const struct document_value *value)
{
    uint32_t class = query_class_of(value);

    return class >= QUERY_CLASS_NULL && class <= QUERY_CLASS_STRING;
}

static bool is_integer(const struct document_value *value)
{
    int64_t number;

    return document_to_int64(value, &number);
}

static bool is_finite(const struct document_value *value)
{
    double number;

    return document_to_double(value, &number) && isfinite(number);
}

static bool is_datetime(const struct document_value *value)
{
    int64_t ticks;

    return value->type == DOCUMENT_STRING && query_date_parse(value->text, &ticks);
}

TYPE_CHECK(type_is_array, value->type == DOCUMENT_ARRAY)
TYPE_CHECK(type_is_bool, value->type == DOCUMENT_BOOL)
TYPE_CHECK(type_is_datetime, is_datetime(value))
TYPE_CHECK(type_is_defined, value->type != DOCUMENT_UNDEFINED)
TYPE_CHECK(type_is_finite, is_finite(value))
TYPE_CHECK(type_is_integer, is_integer(value))
TYPE_CHECK(type_is_null, value->type == DOCUMENT_NULL)
TYPE_CHECK(type_is_number, document_is_number(value))
TYPE_CHECK(type_is_object, value->type == DOCUMENT_OBJECT)
TYPE_CHECK(type_is_primitive, is_primitive(value))
TYPE_CHECK(type_is_string, query_class_of(value) == QUERY_CLASS_STRING)

QUERY_FUNCTION(type_iif)
{
    *ret_value = arguments[arguments[0].type == DOCUMENT_BOOL && arguments[0].boolean ? 1 : 2];
    return true;
}

/* One-based. The choices may be undefined, the number may not. */
QUERY_FUNCTION(type_choose)
{
    int64_t number;

    if (document_to_int64(&arguments[0], &number) && number >= 1 && (uint64_t)number < count)
        *ret_value = arguments[number];
    return true;
}

QUERY_FUNCTION(type_document_id)
{
    struct document_value text;
    struct rid rid;

    if (arguments[0].type == DOCUMENT_OBJECT &&
        document_find(arguments[0].document,
                      definition_names(DEFINITION_IDENTITY_ID)->system[DOCUMENT_SYSTEM_RID],
                      &text) &&
        text.type == DOCUMENT_STRING && rid_parse(text.text, &rid) && rid.kind == RID_ITEM)
        *ret_value = query_integer((int64_t)rid.number);
    return true;
}

static const struct query_implied *imply_bool(const struct query_operand *operands,
                                              size_t count UNUSED,
                                              const struct query_implying *implying)
{
    static const struct document_value both[] = {{.type = DOCUMENT_BOOL, .boolean = false},
                                                 {.type = DOCUMENT_BOOL, .boolean = true}};

    return query_implied_points(implying, &operands[0], both, ARRAY_LEN(both));
}

static const struct query_implied *imply_null(const struct query_operand *operands,
                                              size_t count UNUSED,
                                              const struct query_implying *implying)
{
    static const struct document_value null = {.type = DOCUMENT_NULL};

    return query_implied_points(implying, &operands[0], &null, 1);
}

static const struct query_implied *imply_number(const struct query_operand *operands,
                                                size_t count UNUSED,
                                                const struct query_implying *implying)
{
    return query_implied_type(implying, &operands[0], DOCUMENT_INT32);
}

static const struct query_implied *imply_string(const struct query_operand *operands,
                                                size_t count UNUSED,
                                                const struct query_implying *implying)
{
    return query_implied_type(implying, &operands[0], DOCUMENT_STRING);
}

static const struct query_function functions[] = {
    {"CHOOSE", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, type_choose},
    {"DOCUMENTID", 1, 1, false, QUERY_STABLE, type_document_id},
    {"IIF", 3, 3, true, QUERY_STABLE, type_iif},
    {"IS_ARRAY", 1, 1, true, QUERY_STABLE, type_is_array},
    {"IS_BOOL", 1, 1, true, QUERY_STABLE, type_is_bool, imply_bool},
    {"IS_DATETIME", 1, 1, true, QUERY_STABLE, type_is_datetime},
    {"IS_DEFINED", 1, 1, true, QUERY_STABLE, type_is_defined},
    {"IS_FINITE_NUMBER", 1, 1, true, QUERY_STABLE, type_is_finite},
    {"IS_INTEGER", 1, 1, true, QUERY_STABLE, type_is_integer},
    {"IS_NULL", 1, 1, true, QUERY_STABLE, type_is_null, imply_null},
    {"IS_NUMBER", 1, 1, true, QUERY_STABLE, type_is_number, imply_number},
    {"IS_OBJECT", 1, 1, true, QUERY_STABLE, type_is_object},
    {"IS_PRIMITIVE", 1, 1, true, QUERY_STABLE, type_is_primitive},
    {"IS_STRING", 1, 1, true, QUERY_STABLE, type_is_string, imply_string},
};

const struct query_function_family query_functions_type = {functions, ARRAY_LEN(functions)};
