/* Objects: their fields as a list and back, merged, and single fields whatever their names. */
#include "front/mongo/expression/expression_private.h"

/* Fields that are put together; of several of one name the last value counts, in the place of the
 * first. Names are found by comparing with all that are there: objects are small, and the work is
 * counted. */
struct fields {
    struct slice *names;
    struct document_value *values;
    size_t count, capacity;
};

static bool field_set(struct expression_call *call, struct fields *fields, struct slice name,
                      const struct document_value *value)
{
    if (!query_work(call->context, 1 + fields->count / 8, call->err))
        return false;
    for (size_t i = 0; i < fields->count; i++) {
        if (slice_equal(fields->names[i], name)) {
            fields->values[i] = *value;
            return true;
        }
    }
    if (fields->count == fields->capacity) {
        size_t capacity = 2 * fields->capacity + 8;
        struct slice *names = query_alloc(call->context, capacity * sizeof *names, call->err);
        struct document_value *values =
            query_alloc(call->context, capacity * sizeof *values, call->err);

        if (!names || !values)
            return false;
        if (fields->count) {
            memcpy(names, fields->names, fields->count * sizeof *names);
            memcpy(values, fields->values, fields->count * sizeof *values);
        }
        fields->names = names;
        fields->values = values;
        fields->capacity = capacity;
    }
    fields->names[fields->count] = name;
    fields->values[fields->count++] = *value;
    return true;
}

static bool fields_give(struct expression_call *call, const struct fields *fields)
{
    size_t mark = query_build_begin(call->context);
    size_t begin = document_begin(&call->context->scratch);

    for (size_t i = 0; i < fields->count; i++)
        if (fields->values[i].type != DOCUMENT_UNDEFINED &&
            !query_build_append(call->context, fields->names[i], &fields->values[i], call->err))
            return query_build_drop(call->context, mark);
    return query_build_close(call->context, mark, begin, DOCUMENT_OBJECT, call->ret, call->err);
}

/* --- Lists ------------------------------------------------------------------------------------ */

EXPRESSION_COMPUTE(expression_object_to_array)
{
    const struct document_value *object = &call->arguments[0];
    struct query_context *context = call->context;
    struct expression_array list;
    struct document_iter iter;

    if (expression_is_nullish(object))
        return expression_give_null(call);
    if (object->type != DOCUMENT_OBJECT)
        return mongo_error_set(call->err, 40390,
                               "$objectToArray requires a document input, found: %s",
                               expression_type_name(object));
    expression_array_begin(&list, context);
    document_iter_init(&iter, object->document);
    while (document_iter_next(&iter)) {
        size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
        struct document_value pair;

        document_append_string(&context->scratch, SLICE("k"), iter.key);
        if (!query_work(context, 1, call->err) ||
            !query_build_append(context, SLICE("v"), &iter.value, call->err) ||
            !query_build_close(context, mark, begin, DOCUMENT_OBJECT, &pair, call->err))
            return expression_array_drop(&list);
        if (!expression_array_add(&list, &pair, call->err))
            return false;
    }
    return expression_array_end(&list, call->ret, call->err);
}

static bool key_check(struct expression_call *call, const struct document_value *key, int code,
                      int code_nul)
{
    if (key->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, code,
                               "$arrayToObject requires an array of key-value pairs, where the key "
                               "must be of type string. Found key type: %s",
                               expression_type_name(key));
    if (key->text.len && memchr(key->text.data, 0, key->text.len))
        return mongo_error_set(call->err, code_nul,
                               "Key field cannot contain an embedded null byte");
    return true;
}

static bool pair_of_array(struct expression_call *call, const struct document_value *pair,
                          struct document_value *ret_key, struct document_value *ret_value)
{
    size_t count;

    if (pair->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 40396,
                               "$arrayToObject requires a consistent input format. Elements must"
                               "all be arrays or all be objects. Array was detected, now found: %s",
                               expression_type_name(pair));
    count = document_count(pair->document);
    if (count != 2)
        return mongo_error_set(call->err, 40397,
                               "$arrayToObject requires an array of size 2 arrays,found array of "
                               "size: %zu",
                               count);
    return document_find_index(pair->document, 0, ret_key) &&
           document_find_index(pair->document, 1, ret_value) &&
           key_check(call, ret_key, 40395, 4940400);
}

static bool pair_of_object(struct expression_call *call, const struct document_value *pair,
                           struct document_value *ret_key, struct document_value *ret_value)
{
    size_t count;

    if (pair->type != DOCUMENT_OBJECT)
        return mongo_error_set(
            call->err, 40391,
            "$arrayToObject requires a consistent input format. Elements must"
            "all be arrays or all be objects. Object was detected, now found: %s",
            expression_type_name(pair));
    count = document_count(pair->document);
    if (count != 2)
        return mongo_error_set(call->err, 40392,
                               "$arrayToObject requires an object keys of 'k' and 'v'. Found "
                               "incorrect number of keys:%zu",
                               count);
    if (!document_find(pair->document, SLICE("k"), ret_key) ||
        !document_find(pair->document, SLICE("v"), ret_value))
        return mongo_error_set(call->err, 40393,
                               "$arrayToObject requires an object with keys 'k' and 'v'. Missing "
                               "either or both keys from: %s",
                               expression_show(call->context, pair));
    return key_check(call, ret_key, 40394, 4940401);
}

EXPRESSION_COMPUTE(expression_array_to_object)
{
    const struct document_value *array = &call->arguments[0];
    struct document_value key = document_undefined(), value = key;
    struct fields fields = {0};
    struct document_iter iter;
    bool arrays = false, first = true;

    if (expression_is_nullish(array))
        return expression_give_null(call);
    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 40386,
                               "$arrayToObject requires an array input, found: %s",
                               expression_type_name(array));
    document_iter_init(&iter, array->document);
    for (; document_iter_next(&iter); first = false) {
        if (first) {
            if (iter.value.type != DOCUMENT_ARRAY && iter.value.type != DOCUMENT_OBJECT)
                return mongo_error_set(call->err, 40398,
                                       "Unrecognised input type format for $arrayToObject: %s",
                                       expression_type_name(&iter.value));
            arrays = iter.value.type == DOCUMENT_ARRAY;
        }
        if (!(arrays ? pair_of_array(call, &iter.value, &key, &value)
                     : pair_of_object(call, &iter.value, &key, &value)) ||
            !field_set(call, &fields, key.text, &value))
            return false;
    }
    return fields_give(call, &fields);
}

/* --- Merging ---------------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_merge_objects)
{
    struct fields fields = {0};
    struct document_iter iter;

    for (size_t i = 0; i < call->count; i++) {
        const struct document_value *object = &call->arguments[i];

        if (expression_is_nullish(object))
            continue;
        if (object->type != DOCUMENT_OBJECT)
            return mongo_error_set(call->err, 40400,
                                   "$mergeObjects requires object inputs, but input %s is of type "
                                   "%s",
                                   expression_show(call->context, object),
                                   expression_type_name(object));
        document_iter_init(&iter, object->document);
        while (document_iter_next(&iter))
            if (!field_set(call, &fields, iter.key, &iter.value))
                return false;
    }
    return fields_give(call, &fields);
}

bool expression_merge_list(struct expression_call *call)
{
    struct expression_call each = *call;
    size_t count;

    if (call->arguments[0].type != DOCUMENT_ARRAY)
        return fields_give(call, &(struct fields){0});
    each.arguments =
        expression_elements(call->context, call->arguments[0].document, &count, call->err);
    each.count = count;
    return each.arguments && expression_merge_objects(&each);
}

/* --- Single fields ---------------------------------------------------------------------------- */

/* The name of a field: a string, as it is, or an expression that comes to a constant one. */
static bool name_compile(struct expression_compile *compile, const struct expression_operator *op,
                         const struct document_value *field, int code_constant, int code_string,
                         const struct query_expression **ret)
{
    const struct document_value *name;

    if (field->type == DOCUMENT_STRING && field->text.len && field->text.data[0] == '$')
        return mongo_error_set(compile->err, code_constant,
                               "%s requires 'field' to evaluate to a constant, but got a "
                               "non-constant argument",
                               op->name);
    if (!expression_compile_value(compile, field, ret))
        return false;
    if (!query_is_constant(*ret))
        return mongo_error_set(compile->err, code_constant,
                               "%s requires 'field' to evaluate to a constant, but got a "
                               "non-constant argument",
                               op->name);
    name = query_constant_value(*ret);
    if (name->type != DOCUMENT_STRING)
        return mongo_error_set(compile->err, code_string,
                               "%s requires 'field' to evaluate to type String, but got %s",
                               op->name, expression_type_name(name));
    if (name->text.len && memchr(name->text.data, 0, name->text.len))
        return mongo_error_set(compile->err, 16411, "FieldPath field names may not contain '\\0'.");
    return true;
}

/* {field, input}, or the field alone. Children: the name, the input. */
EXPRESSION_PARSE(expression_get_field_parse)
{
    const struct document_value current = document_string(SLICE("$$CURRENT"));
    struct document_value field = document_undefined(), input = current;
    const struct query_expression *children[2];
    struct document_iter iter;
    bool named = value->type == DOCUMENT_OBJECT;

    if (named) {
        document_iter_init(&iter, value->document);
        named = !(document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$');
    }
    if (!named) {
        field = *value;
    } else {
        document_iter_init(&iter, value->document);
        input = document_undefined();
        while (document_iter_next(&iter)) {
            if (slice_equal(iter.key, SLICE("field")))
                field = iter.value;
            else if (slice_equal(iter.key, SLICE("input")))
                input = iter.value;
            else
                return mongo_error_set(compile->err, 3041701,
                                       "$getField found an unknown argument: %.*s",
                                       SLICE_ARG(iter.key));
        }
        if (field.type == DOCUMENT_UNDEFINED)
            return mongo_error_set(compile->err, 3041702,
                                   "$getField requires 'field' to be specified");
        if (input.type == DOCUMENT_UNDEFINED)
            return mongo_error_set(compile->err, 3041703,
                                   "$getField requires 'input' to be specified");
    }
    if (!name_compile(compile, op, &field, 5654600, 5654602, &children[0]) ||
        !expression_compile_value(compile, &input, &children[1]))
        return false;
    *ret = expression_node_make(compile, op, children, 2);
    return true;
}

EXPRESSION_COMPUTE(expression_get_field)
{
    const struct document_value *object = &call->arguments[1];

    if (object->type == DOCUMENT_NULL)
        return expression_give_null(call);
    if (object->type != DOCUMENT_OBJECT ||
        !document_find(object->document, call->arguments[0].text, call->ret))
        *call->ret = document_undefined();
    return query_work(call->context, 1, call->err);
}

/* $setField and $unsetField. Children: the name, the input, the value. */
EXPRESSION_PARSE(expression_set_field_parse)
{
    static const char *const names[] = {"field", "input", "value"};
    bool unset = op->number;
    struct document_value given[3] = {document_undefined(), document_undefined(),
                                      document_undefined()};
    const struct query_expression *children[3];
    bool is_given[3] = {false, false, unset};
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 4161100,
                               "%s requires an object as an argument, found: %s", op->name,
                               mongo_type_name(value->type));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t i = 0, known = unset ? 2 : 3;

        while (i < known && !slice_equal(iter.key, slice_of_text(names[i])))
            i++;
        if (i == known)
            return mongo_error_set(compile->err, 4161101, "%s found an unknown argument: %.*s",
                                   op->name, SLICE_ARG(iter.key));
        given[i] = iter.value;
        is_given[i] = true;
    }
    for (int i = 0; i < 3; i++)
        if (!is_given[i])
            return mongo_error_set(compile->err,
                                   i == 0   ? 4161102
                                   : i == 1 ? 4161109
                                            : 4161103,
                                   "%s requires '%s' to be specified", op->name, names[i]);
    if (!name_compile(compile, op, &given[0], 4161106, 4161107, &children[0]) ||
        !expression_compile_value(compile, &given[1], &children[1]))
        return false;
    children[2] = expression_nothing(compile);
    if (!unset && !expression_compile_value(compile, &given[2], &children[2]))
        return false;
    *ret = expression_node_make(compile, op, children, 3);
    return true;
}

EXPRESSION_COMPUTE(expression_set_field)
{
    const struct document_value *object = &call->arguments[1];
    struct fields fields = {0};
    struct document_iter iter;

    if (expression_is_nullish(object))
        return expression_give_null(call);
    if (object->type != DOCUMENT_OBJECT)
        return mongo_error_set(call->err, 4161105, "%s requires 'input' to evaluate to type Object",
                               call->node->op->name);
    document_iter_init(&iter, object->document);
    while (document_iter_next(&iter))
        if (!field_set(call, &fields, iter.key, &iter.value))
            return false;
    return field_set(call, &fields, call->arguments[0].text, &call->arguments[2]) &&
           fields_give(call, &fields);
}
