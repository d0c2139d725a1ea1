/* $jsonSchema: draft 4, without references and formats, and with bsonType.
 *
 * A schema is a tree of its own: it knows no arrays on the way, and what it says of a property that
 * is not there is nothing, unless it is required. */
#include "document/utf8.h"
#include "front/mongo/match/match_private.h"
#include "front/mongo/text.h"
#include "query/value/regex.h"
#include "query/value/value.h"

#include <math.h>

enum { NAMES_MAX = 10000 }; /* of one list */

struct schema_property {
    struct slice name; /* or a pattern */
    const struct match_schema *schema;
};

struct schema_dependency {
    struct slice name;
    const struct match_schema *schema; /* NULL: these properties have to be there */
    const struct slice *names;
    size_t count;
};

struct schema_list {
    const struct match_schema **list;
    size_t count;
};

struct match_schema {
    uint32_t types; /* 0: any */
    bool has_minimum, has_maximum, above_minimum, below_maximum, has_multiple;
    struct document_value minimum, maximum, multiple;
    int64_t length_min, length_max, items_min, items_max, properties_min, properties_max; /* -1 */
    bool unique;
    struct slice pattern; /* data NULL: none */
    const struct document_value *values;
    size_t value_count; /* SIZE_MAX: any */
    const struct slice *required;
    size_t required_count;
    const struct schema_property *properties, *patterns;
    size_t property_count, pattern_count;
    const struct match_schema *additional; /* of properties; NULL: any */
    const struct match_schema *items;      /* of every item; NULL: any */
    struct schema_list places;             /* of the items by their place */
    const struct match_schema *additional_items;
    const struct schema_dependency *dependencies;
    size_t dependency_count;
    struct schema_list all, any, one;
    const struct match_schema *negated;
    bool never; /* additionalProperties: false */
};

/* --- Reading ---------------------------------------------------------------------------------- */

static struct match_schema *schema_new(struct match_parse *parse)
{
    struct match_schema *schema = ARENA_NEW(parse->build->arena, struct match_schema);

    schema->length_min = schema->length_max = -1;
    schema->items_min = schema->items_max = -1;
    schema->properties_min = schema->properties_max = -1;
    schema->value_count = SIZE_MAX;
    return schema;
}

static bool wrong_type(struct match_parse *parse, struct slice keyword, const char *what)
{
    return mongo_error_set(parse->err, MONGO_TYPE_MISMATCH, "$jsonSchema keyword '%.*s' must be %s",
                           SLICE_ARG(keyword), what);
}

static const struct match_schema *schema_of(struct match_parse *parse, struct slice keyword,
                                            const struct document_value *value)
{
    if (value->type == DOCUMENT_OBJECT)
        return match_schema_parse(parse, value->document);
    wrong_type(parse, keyword, "an object");
    return NULL;
}

static bool json_type(struct slice alias, uint32_t *ret_types)
{
    if (slice_equal(alias, SLICE("boolean"))) {
        *ret_types = match_type_bit(DOCUMENT_BOOL);
        return true;
    }
    return (slice_equal(alias, SLICE("array")) || slice_equal(alias, SLICE("number")) ||
            slice_equal(alias, SLICE("null")) || slice_equal(alias, SLICE("object")) ||
            slice_equal(alias, SLICE("string"))) &&
           match_type_named(alias, ret_types);
}

static bool type_add(struct match_parse *parse, struct slice keyword, bool json,
                     const struct document_value *value, uint32_t *types)
{
    uint32_t found;

    if (value->type != DOCUMENT_STRING)
        return wrong_type(parse, keyword, "either a string or an array of strings");
    if (json && slice_equal(value->text, SLICE("integer")))
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "$jsonSchema type 'integer' is not currently supported.");
    if (!(json ? json_type(value->text, &found) : match_type_named(value->text, &found)))
        return mongo_error_set(parse->err, MONGO_BAD_VALUE, "Unknown type name alias: %.*s",
                               SLICE_ARG(value->text));
    *types |= found;
    return true;
}

static bool types_read(struct match_parse *parse, struct match_schema *schema, struct slice keyword,
                       const struct document_value *value)
{
    bool json = slice_equal(keyword, SLICE("type"));
    struct document_iter iter;

    if (schema->types)
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
    if (value->type != DOCUMENT_ARRAY)
        return type_add(parse, keyword, json, value, &schema->types);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!type_add(parse, keyword, json, &iter.value, &schema->types))
            return false;
    return schema->types ||
           mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                           "$jsonSchema keyword '%.*s' must name at least one type",
                           SLICE_ARG(keyword));
}

static bool count_read(struct match_parse *parse, struct slice keyword,
                       const struct document_value *value, int64_t *ret_count)
{
    if (!document_is_number(value))
        return wrong_type(parse, keyword, "a number");
    if (!document_to_int64(value, ret_count) || *ret_count < 0)
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "Expected a non-negative integer in: %.*s: %.*s", SLICE_ARG(keyword),
                               SLICE_ARG(mongo_text_value(value, parse->build->arena)));
    return true;
}

static bool bool_read(struct match_parse *parse, struct slice keyword,
                      const struct document_value *value, bool *ret_bool)
{
    if (value->type != DOCUMENT_BOOL)
        return wrong_type(parse, keyword, "a boolean");
    *ret_bool = value->boolean;
    return true;
}

static bool number_read(struct match_parse *parse, struct slice keyword,
                        const struct document_value *value, struct document_value *ret_value,
                        bool *ret_given)
{
    if (!document_is_number(value))
        return wrong_type(parse, keyword, "a number");
    *ret_value = *value;
    *ret_given = true;
    return true;
}

static bool multiple_read(struct match_parse *parse, struct match_schema *schema,
                          struct slice keyword, const struct document_value *value)
{
    double number;

    if (!number_read(parse, keyword, value, &schema->multiple, &schema->has_multiple))
        return false;
    if (!document_to_double(value, &number) || !(number > 0) || isinf(number))
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "$jsonSchema keyword 'multipleOf' must have a positive value");
    return true;
}

static bool pattern_check(struct match_parse *parse, struct slice pattern)
{
    /* As a regular expression of a filter, whose refusal it shares. */
    return match_parse_regex(parse, NULL, pattern, SLICE("")) != NULL;
}

static bool names_read(struct match_parse *parse, struct slice keyword, struct slice array,
                       const struct slice **ret_names, size_t *ret_count)
{
    struct slice *names = ARENA_ARRAY(parse->build->arena, struct slice, document_count(array) + 1);
    struct document_iter iter;
    size_t count = 0;

    if (document_count(array) > NAMES_MAX)
        return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                               "$jsonSchema keyword '%.*s' has more than %d names",
                               SLICE_ARG(keyword), NAMES_MAX);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return wrong_type(parse, keyword, "an array of strings");
        for (size_t i = 0; i < count; i++)
            if (slice_equal(names[i], iter.value.text))
                return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                                       "$jsonSchema keyword '%.*s' array cannot contain duplicate "
                                       "values",
                                       SLICE_ARG(keyword));
        names[count++] = iter.value.text;
    }
    if (!count)
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "$jsonSchema keyword '%.*s' cannot be an empty array",
                               SLICE_ARG(keyword));
    *ret_names = names;
    *ret_count = count;
    return true;
}

static bool properties_read(struct match_parse *parse, struct slice keyword, bool patterns,
                            const struct document_value *value,
                            const struct schema_property **ret_properties, size_t *ret_count)
{
    struct schema_property *list;
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_OBJECT)
        return wrong_type(parse, keyword, "an object");
    list = ARENA_ARRAY(parse->build->arena, struct schema_property,
                       document_count(value->document) + 1);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        list[count].name = iter.key;
        list[count].schema = schema_of(parse, iter.key, &iter.value);
        if (!list[count].schema || (patterns && !pattern_check(parse, iter.key)))
            return false;
        count++;
    }
    *ret_properties = list;
    *ret_count = count;
    return true;
}

static bool list_read(struct match_parse *parse, struct slice keyword,
                      const struct document_value *value, struct schema_list *ret_list)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return wrong_type(parse, keyword, "an array");
    ret_list->list = ARENA_ARRAY(parse->build->arena, const struct match_schema *,
                                 document_count(value->document) + 1);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        const struct match_schema *schema = schema_of(parse, keyword, &iter.value);

        if (!schema)
            return false;
        ret_list->list[ret_list->count++] = schema;
    }
    return ret_list->count ||
           mongo_error_set(parse->err, MONGO_BAD_VALUE,
                           "$jsonSchema keyword '%.*s' must be a non-empty array",
                           SLICE_ARG(keyword));
}

/* A schema, or true for any and false for none. */
static bool allowed_read(struct match_parse *parse, struct slice keyword,
                         const struct document_value *value, const struct match_schema **ret_schema)
{
    struct match_schema *none;

    if (value->type == DOCUMENT_OBJECT) {
        *ret_schema = match_schema_parse(parse, value->document);
        return *ret_schema != NULL;
    }
    if (value->type != DOCUMENT_BOOL)
        return wrong_type(parse, keyword, "either an object or a boolean");
    if (!value->boolean) {
        none = schema_new(parse);
        none->never = true;
        *ret_schema = none;
    }
    return true;
}

static bool dependencies_read(struct match_parse *parse, struct match_schema *schema,
                              struct slice keyword, const struct document_value *value)
{
    struct schema_dependency *list;
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_OBJECT)
        return wrong_type(parse, keyword, "an object");
    list =
        arena_alloc_zero(parse->build->arena, (document_count(value->document) + 1) * sizeof *list);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        struct schema_dependency *dependency = &list[count++];

        dependency->name = iter.key;
        if (iter.value.type == DOCUMENT_ARRAY) {
            if (!names_read(parse, keyword, iter.value.document, &dependency->names,
                            &dependency->count))
                return false;
            continue;
        }
        dependency->schema = schema_of(parse, iter.key, &iter.value);
        if (!dependency->schema)
            return false;
    }
    schema->dependencies = list;
    schema->dependency_count = count;
    return true;
}

static bool enum_read(struct match_parse *parse, struct match_schema *schema, struct slice keyword,
                      const struct document_value *value)
{
    struct document_value *values;
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY)
        return wrong_type(parse, keyword, "an array");
    values = ARENA_ARRAY(parse->build->arena, struct document_value,
                         document_count(value->document) + 1);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        values[count++] = iter.value;
    if (!count)
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "$jsonSchema keyword 'enum' cannot be an empty array");
    schema->values = values;
    schema->value_count = count;
    return true;
}

static bool items_read(struct match_parse *parse, struct match_schema *schema, struct slice keyword,
                       const struct document_value *value)
{
    if (value->type == DOCUMENT_ARRAY)
        return list_read(parse, keyword, value, &schema->places);
    schema->items = schema_of(parse, keyword, value);
    return schema->items != NULL;
}

static bool text_check(struct match_parse *parse, struct slice keyword,
                       const struct document_value *value)
{
    return value->type == DOCUMENT_STRING || wrong_type(parse, keyword, "a string");
}

static bool pattern_read(struct match_parse *parse, struct match_schema *schema,
                         struct slice keyword, const struct document_value *value)
{
    if (!text_check(parse, keyword, value) || !pattern_check(parse, value->text))
        return false;
    schema->pattern = value->text.data ? value->text : SLICE("");
    return true;
}

static bool required_read(struct match_parse *parse, struct match_schema *schema,
                          struct slice keyword, const struct document_value *value)
{
    if (value->type != DOCUMENT_ARRAY)
        return wrong_type(parse, keyword, "an array");
    return names_read(parse, keyword, value->document, &schema->required, &schema->required_count);
}

#define IS(literal) slice_equal(keyword, SLICE(literal))

static bool keyword_read(struct match_parse *parse, struct match_schema *schema,
                         struct slice keyword, const struct document_value *value)
{
    if (IS("bsonType") || IS("type"))
        return types_read(parse, schema, keyword, value);
    if (IS("minimum"))
        return number_read(parse, keyword, value, &schema->minimum, &schema->has_minimum);
    if (IS("maximum"))
        return number_read(parse, keyword, value, &schema->maximum, &schema->has_maximum);
    if (IS("exclusiveMinimum"))
        return bool_read(parse, keyword, value, &schema->above_minimum);
    if (IS("exclusiveMaximum"))
        return bool_read(parse, keyword, value, &schema->below_maximum);
    if (IS("multipleOf"))
        return multiple_read(parse, schema, keyword, value);
    if (IS("minLength"))
        return count_read(parse, keyword, value, &schema->length_min);
    if (IS("maxLength"))
        return count_read(parse, keyword, value, &schema->length_max);
    if (IS("pattern"))
        return pattern_read(parse, schema, keyword, value);
    if (IS("enum"))
        return enum_read(parse, schema, keyword, value);
    if (IS("required"))
        return required_read(parse, schema, keyword, value);
    if (IS("properties"))
        return properties_read(parse, keyword, false, value, &schema->properties,
                               &schema->property_count);
    if (IS("patternProperties"))
        return properties_read(parse, keyword, true, value, &schema->patterns,
                               &schema->pattern_count);
    if (IS("additionalProperties"))
        return allowed_read(parse, keyword, value, &schema->additional);
    if (IS("minProperties"))
        return count_read(parse, keyword, value, &schema->properties_min);
    if (IS("maxProperties"))
        return count_read(parse, keyword, value, &schema->properties_max);
    if (IS("dependencies"))
        return dependencies_read(parse, schema, keyword, value);
    if (IS("items"))
        return items_read(parse, schema, keyword, value);
    if (IS("additionalItems"))
        return allowed_read(parse, keyword, value, &schema->additional_items);
    if (IS("minItems"))
        return count_read(parse, keyword, value, &schema->items_min);
    if (IS("maxItems"))
        return count_read(parse, keyword, value, &schema->items_max);
    if (IS("uniqueItems"))
        return bool_read(parse, keyword, value, &schema->unique);
    if (IS("allOf"))
        return list_read(parse, keyword, value, &schema->all);
    if (IS("anyOf"))
        return list_read(parse, keyword, value, &schema->any);
    if (IS("oneOf"))
        return list_read(parse, keyword, value, &schema->one);
    if (IS("not")) {
        schema->negated = schema_of(parse, keyword, value);
        return schema->negated != NULL;
    }
    if (IS("title") || IS("description"))
        return text_check(parse, keyword, value);
    if (IS("$ref") || IS("$schema") || IS("default") || IS("definitions") || IS("format") ||
        IS("id"))
        return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                               "$jsonSchema keyword '%.*s' is not currently supported",
                               SLICE_ARG(keyword));
    return mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE, "Unknown $jsonSchema keyword: %.*s",
                           SLICE_ARG(keyword));
}

const struct match_schema *match_schema_parse(struct match_parse *parse, struct slice document)
{
    struct match_schema *schema = schema_new(parse);
    struct document_iter iter;

    if (++parse->depth > MATCH_DEPTH_MAX) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$jsonSchema is nested deeper than %d levels",
                        MATCH_DEPTH_MAX);
        return NULL;
    }
    document = arena_copy(parse->build->arena, document);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!keyword_read(parse, schema, iter.key, &iter.value))
            return NULL;
    if ((schema->above_minimum && !schema->has_minimum) ||
        (schema->below_maximum && !schema->has_maximum)) {
        mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE,
                        "$jsonSchema keyword '%s' must be a present if %s is present",
                        schema->has_minimum || !schema->above_minimum ? "maximum" : "minimum",
                        schema->has_minimum || !schema->above_minimum ? "exclusiveMaximum"
                                                                      : "exclusiveMinimum");
        return NULL;
    }
    parse->depth--;
    return schema;
}

/* --- Asking ----------------------------------------------------------------------------------- */

static bool work(struct match_evaluation *evaluation, size_t units)
{
    if (query_work(evaluation->context, units, evaluation->err))
        return true;
    evaluation->failed = true;
    return false;
}

static bool matches(struct match_evaluation *evaluation, struct slice pattern, struct slice text)
{
    struct match_node node = {.kind = MATCH_REGEX, .regex = {pattern, SLICE_NONE, SLICE_NONE}};
    struct document_value value = document_string(text);

    return match_value_holds(evaluation, &node, &value);
}

static int64_t characters(struct slice text)
{
    int64_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !utf8_continues(text.data[i]);
    return count;
}

static bool within(int64_t count, int64_t min, int64_t max)
{
    return (min < 0 || count >= min) && (max < 0 || count <= max);
}

static bool is_multiple(const struct document_value *value, const struct document_value *of)
{
    int64_t whole, divisor;
    double number, by;

    if (document_to_int64(value, &whole) && document_to_int64(of, &divisor))
        return divisor == 1 || whole % divisor == 0;
    return document_to_double(value, &number) && document_to_double(of, &by) &&
           fmod(number, by) == 0;
}

static bool number_holds(const struct match_schema *schema, const struct document_value *value)
{
    int order;

    if (schema->has_minimum) {
        order = document_compare(DOCUMENT_ORDER_MONGO, value, &schema->minimum);
        if (order < 0 || (order == 0 && schema->above_minimum))
            return false;
    }
    if (schema->has_maximum) {
        order = document_compare(DOCUMENT_ORDER_MONGO, value, &schema->maximum);
        if (order > 0 || (order == 0 && schema->below_maximum))
            return false;
    }
    return !schema->has_multiple || is_multiple(value, &schema->multiple);
}

static bool text_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                       struct slice text)
{
    if (schema->length_min >= 0 || schema->length_max >= 0)
        if (!within(characters(text), schema->length_min, schema->length_max))
            return false;
    return !schema->pattern.data || matches(evaluation, schema->pattern, text);
}

static bool values_unique(struct match_evaluation *evaluation, struct slice array)
{
    struct document_iter a, b;

    document_iter_init(&a, array);
    while (document_iter_next(&a)) {
        b = a;
        while (document_iter_next(&b)) {
            if (!work(evaluation, 1))
                return false;
            if (document_compare(DOCUMENT_ORDER_MONGO, &a.value, &b.value) == 0)
                return false;
        }
    }
    return true;
}

static bool array_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                        struct slice array)
{
    struct document_iter iter;
    size_t count = document_count(array);

    if (!within((int64_t)count, schema->items_min, schema->items_max))
        return false;
    document_iter_init(&iter, array);
    for (size_t i = 0; document_iter_next(&iter) && !evaluation->failed; i++) {
        const struct match_schema *item = schema->items;

        if (schema->places.count)
            item = i < schema->places.count ? schema->places.list[i] : schema->additional_items;
        if (item && !match_schema_holds(evaluation, item, &iter.value))
            return false;
    }
    return !schema->unique || values_unique(evaluation, array);
}

static bool property_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                           struct slice name, const struct document_value *value)
{
    bool named = false;

    if (!work(evaluation, (schema->property_count + schema->pattern_count) >> 4))
        return false;
    for (size_t i = 0; i < schema->property_count; i++) {
        if (!slice_equal(schema->properties[i].name, name))
            continue;
        named = true;
        if (!match_schema_holds(evaluation, schema->properties[i].schema, value))
            return false;
    }
    for (size_t i = 0; i < schema->pattern_count; i++) {
        if (!matches(evaluation, schema->patterns[i].name, name))
            continue;
        named = true;
        if (!match_schema_holds(evaluation, schema->patterns[i].schema, value))
            return false;
    }
    return named || !schema->additional ||
           match_schema_holds(evaluation, schema->additional, value);
}

static bool names_present(struct slice object, const struct slice *names, size_t count)
{
    struct document_value found;

    for (size_t i = 0; i < count; i++)
        if (!document_find(object, names[i], &found))
            return false;
    return true;
}

static bool object_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                         const struct document_value *value)
{
    struct slice object = value->document;
    struct document_iter iter;
    struct document_value found;

    if ((schema->properties_min >= 0 || schema->properties_max >= 0) &&
        !within((int64_t)document_count(object), schema->properties_min, schema->properties_max))
        return false;
    if (!names_present(object, schema->required, schema->required_count))
        return false;
    for (size_t i = 0; i < schema->dependency_count; i++) {
        const struct schema_dependency *dependency = &schema->dependencies[i];

        if (!document_find(object, dependency->name, &found))
            continue;
        if (dependency->schema ? !match_schema_holds(evaluation, dependency->schema, value)
                               : !names_present(object, dependency->names, dependency->count))
            return false;
    }
    if (!schema->property_count && !schema->pattern_count && !schema->additional)
        return true;
    document_iter_init(&iter, object);
    while (document_iter_next(&iter) && !evaluation->failed)
        if (!property_holds(evaluation, schema, iter.key, &iter.value))
            return false;
    return true;
}

static bool is_listed(struct match_evaluation *evaluation, const struct match_schema *schema,
                      const struct document_value *value)
{
    if (schema->value_count == SIZE_MAX)
        return true;
    if (!work(evaluation, schema->value_count))
        return false;
    for (size_t i = 0; i < schema->value_count; i++)
        if (document_compare(DOCUMENT_ORDER_MONGO, value, &schema->values[i]) == 0)
            return true;
    return false;
}

/* How many of them hold; no more are counted than enough. */
static size_t count_holding(struct match_evaluation *evaluation, const struct schema_list *list,
                            const struct document_value *value, size_t enough)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count && count < enough && !evaluation->failed; i++)
        count += match_schema_holds(evaluation, list->list[i], value);
    return count;
}

static bool lists_hold(struct match_evaluation *evaluation, const struct match_schema *schema,
                       const struct document_value *value)
{
    if (count_holding(evaluation, &schema->all, value, SIZE_MAX) != schema->all.count)
        return false;
    if (schema->any.count && !count_holding(evaluation, &schema->any, value, 1))
        return false;
    if (schema->one.count && count_holding(evaluation, &schema->one, value, 2) != 1)
        return false;
    return !schema->negated || !match_schema_holds(evaluation, schema->negated, value);
}

bool match_schema_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                        const struct document_value *value)
{
    if (!work(evaluation, 1))
        return false;
    if (schema->never || (schema->types && !(schema->types & match_type_bit(value->type))) ||
        !is_listed(evaluation, schema, value))
        return false;
    if (document_is_number(value) && !number_holds(schema, value))
        return false;
    if (value->type == DOCUMENT_STRING && !text_holds(evaluation, schema, value->text))
        return false;
    if (value->type == DOCUMENT_ARRAY && !array_holds(evaluation, schema, value->document))
        return false;
    if (value->type == DOCUMENT_OBJECT && !object_holds(evaluation, schema, value))
        return false;
    return lists_hold(evaluation, schema, value) && !evaluation->failed;
}
