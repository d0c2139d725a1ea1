/* An update document becomes modifiers, sorted by path: that is the order in which MongoDB adds new
 * fields, and it puts paths of which one leads through the other next to each other. */
#include "front/mongo/text.h"
#include "front/mongo/update/update_private.h"
#include "query/value/value.h"

#include <stdlib.h>

struct compile {
    struct query_build *build;
    const struct document_collator *collator;
    struct arena *arena;
    struct error *err;
    struct update_filter *filters;
    size_t filter_count;
    struct update_modifier *modifiers;
    size_t count, capacity;
};

static const char *const names[UPDATE_OPERATORS] = {
    [UPDATE_SET] = "$set",
    [UPDATE_UNSET] = "$unset",
    [UPDATE_INC] = "$inc",
    [UPDATE_MUL] = "$mul",
    [UPDATE_MIN] = "$min",
    [UPDATE_MAX] = "$max",
    [UPDATE_RENAME] = "$rename",
    [UPDATE_SET_ON_INSERT] = "$setOnInsert",
    [UPDATE_CURRENT_DATE] = "$currentDate",
    [UPDATE_PUSH] = "$push",
    [UPDATE_ADD_TO_SET] = "$addToSet",
    [UPDATE_POP] = "$pop",
    [UPDATE_PULL] = "$pull",
    [UPDATE_PULL_ALL] = "$pullAll",
    [UPDATE_BIT] = "$bit",
};

/* --- Array filters ---------------------------------------------------------------------------- */

static bool is_identifier(struct slice name)
{
    if (!name.len || name.data[0] < 'a' || name.data[0] > 'z')
        return false;
    for (size_t i = 1; i < name.len; i++) {
        uint8_t c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

static bool filter_read(struct compile *compile, const struct document_value *value,
                        struct update_filter *filter)
{
    const struct mongo_match_options options = {.collator = compile->collator};
    struct slice other;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                               "BSON field 'update.updates.arrayFilters' is the wrong type '%s', "
                               "expected type 'object'",
                               mongo_type_name(value->type));
    if (!mongo_match_parse(value->document, &options, compile->build, &filter->match, compile->err))
        return error_prefix(compile->err, "Error parsing array filter :: caused by :");
    if (!mongo_match_top_name(filter->match, &filter->name, &other)) {
        if (!filter->name.data)
            return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                                   "Cannot use an expression without a top-level field name in "
                                   "arrayFilters");
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "Error parsing array filter :: caused by :: Expected a single "
                               "top-level field name, found '%.*s' and '%.*s'",
                               SLICE_ARG(filter->name), SLICE_ARG(other));
    }
    if (!is_identifier(filter->name))
        return mongo_error_set(
            compile->err, MONGO_BAD_VALUE,
            "Error parsing array filter :: caused by :: The top-level field name "
            "must be an alphanumeric string beginning with a lowercase letter, "
            "found '%.*s'",
            SLICE_ARG(filter->name));
    return true;
}

static bool filters_read(struct compile *compile, struct slice array)
{
    struct document_iter iter;

    if (!array.len)
        return true;
    if (document_count(array) > UPDATE_FILTERS_MAX)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "there are more than %d array filters", UPDATE_FILTERS_MAX);
    compile->filters =
        arena_alloc_zero(compile->arena, (document_count(array) + 1) * sizeof *compile->filters);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct update_filter *filter = &compile->filters[compile->filter_count];

        if (!filter_read(compile, &iter.value, filter))
            return false;
        for (size_t i = 0; i < compile->filter_count; i++)
            if (slice_equal(compile->filters[i].name, filter->name))
                return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                                       "Found multiple array filters with the same top-level field "
                                       "name %.*s",
                                       SLICE_ARG(filter->name));
        compile->filter_count++;
    }
    return true;
}

static bool filters_check(struct compile *compile, const struct document_value *update)
{
    for (size_t i = 0; i < compile->filter_count; i++)
        if (!compile->filters[i].used)
            return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                                   "The array filter for identifier '%.*s' was not used in the "
                                   "update %.*s",
                                   SLICE_ARG(compile->filters[i].name),
                                   SLICE_ARG(mongo_text_value(update, compile->arena)));
    return true;
}

/* --- Operands --------------------------------------------------------------------------------- */

static bool number_read(struct compile *compile, struct slice key, struct update_modifier *modifier)
{
    if (document_is_number(&modifier->value))
        return true;
    return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                           "Cannot %s with non-numeric argument: %.*s",
                           modifier->op == UPDATE_INC ? "increment" : "multiply",
                           SLICE_ARG(mongo_text_element(key, &modifier->value, compile->arena)));
}

static void values_of(struct compile *compile, struct slice array, struct update_modifier *modifier)
{
    struct document_value *values =
        ARENA_ARRAY(compile->arena, struct document_value, document_count(array) + 1);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        values[count++] = iter.value;
    modifier->values = values;
    modifier->value_count = count;
}

static void value_alone(struct compile *compile, struct update_modifier *modifier)
{
    struct document_value *one = ARENA_ARRAY(compile->arena, struct document_value, 1);

    *one = modifier->value;
    modifier->values = one;
    modifier->value_count = 1;
}

static bool direction_read(const struct document_value *value, bool *ret_descending)
{
    int64_t number;

    if (!document_to_int64(value, &number) || (number != 1 && number != -1))
        return false;
    *ret_descending = number < 0;
    return true;
}

static bool sort_read(struct compile *compile, const struct document_value *value,
                      struct update_modifier *modifier)
{
    struct document_iter iter;
    struct update_sort *sorts;
    size_t count = 1;

    if (value->type == DOCUMENT_OBJECT)
        count = document_count(value->document);
    sorts = arena_alloc_zero(compile->arena, (count + 1) * sizeof *sorts);
    modifier->sorts = sorts;
    modifier->sort_count = count;
    if (value->type != DOCUMENT_OBJECT) {
        if (document_is_number(value) && direction_read(value, &sorts[0].descending))
            return true;
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The $sort element value must be either 1 or -1");
    }
    if (!count)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The $sort pattern is empty when it should be a set of fields.");
    document_iter_init(&iter, value->document);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        if (!iter.key.len)
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "The $sort field cannot be empty");
        sorts[i].path = iter.key;
        if (!direction_read(&iter.value, &sorts[i].descending))
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "The $sort element value must be either 1 or -1");
    }
    return true;
}

static bool whole_read(struct compile *compile, const char *name,
                       const struct document_value *value, int64_t *ret_number)
{
    if (document_is_number(value) && document_to_int64(value, ret_number))
        return true;
    return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                           "The value for %s must be an integer value but was given type: %s", name,
                           mongo_type_name(value->type));
}

static bool push_clause(struct compile *compile, struct slice name,
                        const struct document_value *value, struct update_modifier *modifier)
{
    if (slice_equal(name, SLICE("$each"))) {
        if (value->type != DOCUMENT_ARRAY)
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "The argument to $each in $push must be an array but it was of "
                                   "type: %s",
                                   mongo_type_name(value->type));
        values_of(compile, value->document, modifier);
        return true;
    }
    if (slice_equal(name, SLICE("$position"))) {
        modifier->has_position = true;
        return whole_read(compile, "$position", value, &modifier->position);
    }
    if (slice_equal(name, SLICE("$slice"))) {
        modifier->has_slice = true;
        return whole_read(compile, "$slice", value, &modifier->slice);
    }
    if (slice_equal(name, SLICE("$sort")))
        return sort_read(compile, value, modifier);
    return mongo_error_set(compile->err, MONGO_BAD_VALUE, "Unrecognized clause in $push: %.*s",
                           SLICE_ARG(name));
}

static bool push_read(struct compile *compile, struct update_modifier *modifier)
{
    struct document_value each;
    struct document_iter iter;

    if (modifier->value.type != DOCUMENT_OBJECT ||
        !document_find(modifier->value.document, SLICE("$each"), &each)) {
        value_alone(compile, modifier);
        return true;
    }
    document_iter_init(&iter, modifier->value.document);
    while (document_iter_next(&iter))
        if (!push_clause(compile, iter.key, &iter.value, modifier))
            return false;
    return true;
}

static bool add_to_set_read(struct compile *compile, struct update_modifier *modifier)
{
    struct document_iter iter;

    if (modifier->value.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, modifier->value.document);
        if (document_iter_next(&iter) && slice_equal(iter.key, SLICE("$each"))) {
            if (iter.value.type != DOCUMENT_ARRAY)
                return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                                       "The argument to $each in $addToSet must be an array but it "
                                       "was of type %s",
                                       mongo_type_name(iter.value.type));
            values_of(compile, iter.value.document, modifier);
            if (document_iter_next(&iter))
                return mongo_error_set(
                    compile->err, MONGO_BAD_VALUE,
                    "Found unexpected fields after $each in $addToSet: %.*s",
                    SLICE_ARG(mongo_text_value(&modifier->value, compile->arena)));
            return true;
        }
    }
    value_alone(compile, modifier);
    return true;
}

static bool pop_read(struct compile *compile, struct slice key, struct update_modifier *modifier)
{
    int64_t number;

    if (!document_is_number(&modifier->value))
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "Expected a number in: %.*s: %.*s", SLICE_ARG(key),
                               SLICE_ARG(mongo_text_value(&modifier->value, compile->arena)));
    if (!document_to_int64(&modifier->value, &number) || (number != 1 && number != -1))
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "$pop expects 1 or -1, found: %.*s",
                               SLICE_ARG(mongo_text_value(&modifier->value, compile->arena)));
    modifier->last = number > 0;
    return true;
}

static bool bits_read(struct compile *compile, struct update_modifier *modifier)
{
    struct document_iter iter;

    if (modifier->value.type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The $bit modifier is not compatible with a %s. You must pass in an "
                               "embedded document: {$bit: {field: {and/or/xor: #}}",
                               mongo_type_name(modifier->value.type));
    document_iter_init(&iter, modifier->value.document);
    while (document_iter_next(&iter)) {
        struct slice text = mongo_text_element(iter.key, &iter.value, compile->arena);

        if (!slice_equal(iter.key, SLICE("and")) && !slice_equal(iter.key, SLICE("or")) &&
            !slice_equal(iter.key, SLICE("xor")))
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "The $bit modifier only supports 'and', 'or', and 'xor', not "
                                   "'%.*s' which is an unknown operator: %.*s",
                                   SLICE_ARG(iter.key), SLICE_ARG(text));
        if (iter.value.type != DOCUMENT_INT32 && iter.value.type != DOCUMENT_INT64)
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "The $bit modifier field must be an Integer(32/64 bit); a '%s' "
                                   "is not supported here: %.*s",
                                   mongo_type_name(iter.value.type), SLICE_ARG(text));
    }
    if (document_count(modifier->value.document) == 0)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "You must pass in at least one bitwise operation. The format is: "
                               "{$bit: {field: {and/or/xor: #}}");
    return true;
}

static bool date_read(struct compile *compile, struct update_modifier *modifier)
{
    struct document_value *value = &modifier->value, type;

    if (value->type == DOCUMENT_BOOL)
        return true;
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "%s is not valid type for $currentDate. Please use a boolean "
                               "('true') or a $type expression ({$type: 'timestamp/date'}).",
                               mongo_type_name(value->type));
    if (document_count(value->document) != 1 ||
        !document_find(value->document, SLICE("$type"), &type) || type.type != DOCUMENT_STRING ||
        !(slice_equal(type.text, SLICE("date")) || slice_equal(type.text, SLICE("timestamp"))))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The '$type' string field is required to be 'date' or 'timestamp': "
                               "{$currentDate: {field : {$type: 'date'}}}");
    modifier->timestamp = slice_equal(type.text, SLICE("timestamp"));
    return true;
}

static bool is_dynamic(const struct update_path *path)
{
    for (size_t i = 0; i < path->count; i++)
        if (path->components[i].kind != UPDATE_NAME)
            return true;
    return false;
}

/* The field names where from, its value where to: the modifier stands where to. */
static bool rename_read(struct compile *compile, struct slice key, struct update_modifier *modifier)
{
    struct update_path *from = ARENA_NEW(compile->arena, struct update_path);
    struct slice text = mongo_text_value(&modifier->value, compile->arena);

    *from = modifier->path;
    modifier->from = from;
    if (modifier->value.type != DOCUMENT_STRING)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The 'to' field for $rename must be a string: %.*s: %.*s",
                               SLICE_ARG(key), SLICE_ARG(text));
    if (!update_path_parse(modifier->value.text, compile->filters, compile->filter_count,
                           compile->arena, &modifier->path, compile->err))
        return false;
    if (update_path_compare(from, &modifier->path) == 0)
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The source and target field for $rename must differ: %.*s: %.*s",
                               SLICE_ARG(key), SLICE_ARG(text));
    if (is_dynamic(from) || is_dynamic(&modifier->path))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "The %s field for $rename may not be dynamic: %.*s",
                               is_dynamic(from) ? "source" : "destination",
                               SLICE_ARG(is_dynamic(from) ? key : modifier->path.text));
    return true;
}

static bool operand_read(struct compile *compile, struct slice key,
                         struct update_modifier *modifier)
{
    switch (modifier->op) {
    case UPDATE_INC:
    case UPDATE_MUL:
        return number_read(compile, key, modifier);
    case UPDATE_RENAME:
        return rename_read(compile, key, modifier);
    case UPDATE_CURRENT_DATE:
        return date_read(compile, modifier);
    case UPDATE_PUSH:
        return push_read(compile, modifier);
    case UPDATE_ADD_TO_SET:
        return add_to_set_read(compile, modifier);
    case UPDATE_POP:
        return pop_read(compile, key, modifier);
    case UPDATE_PULL:
        return mongo_match_parse_pull(&modifier->value, compile->collator, compile->build,
                                      &modifier->match, compile->err);
    case UPDATE_PULL_ALL:
        if (modifier->value.type != DOCUMENT_ARRAY)
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "$pullAll requires an array argument but was given a %s",
                                   mongo_type_name(modifier->value.type));
        values_of(compile, modifier->value.document, modifier);
        return true;
    case UPDATE_BIT:
        return bits_read(compile, modifier);
    default:
        return true;
    }
}

/* --- Modifiers -------------------------------------------------------------------------------- */

static struct update_modifier *modifier_new(struct compile *compile)
{
    struct update_modifier *modifier;

    if (compile->count == compile->capacity) {
        size_t capacity = 2 * compile->capacity + 8;
        struct update_modifier *longer =
            ARENA_ARRAY(compile->arena, struct update_modifier, capacity);

        if (compile->count)
            memcpy(longer, compile->modifiers, compile->count * sizeof *longer);
        compile->modifiers = longer;
        compile->capacity = capacity;
    }
    modifier = &compile->modifiers[compile->count];
    *modifier = (struct update_modifier){.number = compile->count++};
    return modifier;
}

static bool operator_read(struct compile *compile, struct slice name,
                          const struct document_value *value)
{
    struct document_iter iter;
    int op = 0;

    while (op < UPDATE_OPERATORS && !slice_equal(name, slice_of_text(names[op])))
        op++;
    if (op == UPDATE_OPERATORS)
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "Unknown modifier: %.*s. Expected a valid update modifier or "
                               "pipeline-style update specified as an array",
                               SLICE_ARG(name));
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "Modifiers operate on fields but we found type %s instead. For "
                               "example: {$mod: {<field>: ...}} not {%.*s: %.*s}",
                               mongo_type_name(value->type), SLICE_ARG(name),
                               SLICE_ARG(mongo_text_value(value, compile->arena)));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        struct update_modifier *modifier = modifier_new(compile);

        modifier->op = (enum update_operator)op;
        modifier->value = iter.value;
        if (!update_path_parse(iter.key, compile->filters, compile->filter_count, compile->arena,
                               &modifier->path, compile->err) ||
            !operand_read(compile, iter.key, modifier))
            return false;
    }
    return true;
}

/* A path that is written, and when it was given. */
struct claim {
    const struct update_path *path;
    size_t number;
};

static int by_path(const void *a, const void *b)
{
    return update_path_compare(((const struct claim *)a)->path, ((const struct claim *)b)->path);
}

static int by_modifier_path(const void *a, const void *b)
{
    return update_path_compare(&((const struct update_modifier *)a)->path,
                               &((const struct update_modifier *)b)->path);
}

static bool leads_through(const struct update_path *path, const struct update_path *through)
{
    struct update_path start = *path;

    if (path->count < through->count)
        return false;
    start.count = through->count;
    return update_path_compare(&start, through) == 0;
}

static bool conflicts_check(struct compile *compile)
{
    struct claim *claims = ARENA_ARRAY(compile->arena, struct claim, 2 * compile->count + 1);
    size_t count = 0;

    for (size_t i = 0; i < compile->count; i++) {
        const struct update_modifier *modifier = &compile->modifiers[i];

        claims[count++] = (struct claim){&modifier->path, i};
        if (modifier->from)
            claims[count++] = (struct claim){modifier->from, i};
    }
    if (count > 1)
        qsort(claims, count, sizeof *claims, by_path);
    for (size_t i = 1; i < count; i++)
        if (leads_through(claims[i].path, claims[i - 1].path))
            return mongo_error_set(compile->err, MONGO_CONFLICTING_UPDATE_OPERATORS,
                                   "Updating the path '%.*s' would create a conflict at '%.*s'",
                                   SLICE_ARG(claims[i].number > claims[i - 1].number
                                                 ? claims[i].path->text
                                                 : claims[i - 1].path->text),
                                   SLICE_ARG(claims[i - 1].path->text));
    return true;
}

static bool modifiers_read(struct compile *compile, struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!operator_read(compile, iter.key, &iter.value))
            return false;
    if (!conflicts_check(compile))
        return false;
    if (compile->count > 1)
        qsort(compile->modifiers, compile->count, sizeof *compile->modifiers, by_modifier_path);
    return true;
}

/* --- Replacements ----------------------------------------------------------------------------- */

static bool is_modifiers(struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool replacement_check(struct compile *compile, struct slice document,
                              const struct mongo_update_options *options)
{
    struct document_iter iter;

    if (options->multi)
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "multi update is not supported for replacement-style update");
    if (options->array_filters.len && document_count(options->array_filters))
        return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                               "arrayFilters may not be specified for replacement-style updates");
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (iter.key.len && iter.key.data[0] == '$')
            return mongo_error_set(compile->err, MONGO_DOLLAR_PREFIXED_FIELD_NAME,
                                   "The dollar ($) prefixed field '%.*s' in '%.*s' is not allowed "
                                   "in the context of an update's replacement document. Consider "
                                   "using an aggregation pipeline with $replaceWith.",
                                   SLICE_ARG(iter.key), SLICE_ARG(iter.key));
    return true;
}

bool mongo_update_compile(const struct document_value *update,
                          const struct mongo_update_options *options, struct query_build *build,
                          const struct mongo_update **ret_update, struct error *err)
{
    static const struct mongo_update_options none;
    struct compile compile = {.build = build, .arena = build->arena, .err = err};
    struct mongo_update *made = ARENA_NEW(build->arena, struct mongo_update);

    options = options ? options : &none;
    compile.collator = made->collator = options->collator;
    if (update->type == DOCUMENT_ARRAY && !options->pipeline)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "updates by an aggregation pipeline are not supported");
    if (update->type == DOCUMENT_ARRAY) {
        if (options->array_filters.data)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "arrayFilters may not be specified for pipeline-syle updates");
        *ret_update = made;
        return options->pipeline(options->pipeline_self, update->document, build, &made->pipeline,
                                 err);
    }
    if (update->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Update argument must be either an object or an array");
    made->document = arena_copy(build->arena, update->document);
    made->replacement = !is_modifiers(made->document);
    if (made->replacement) {
        if (!replacement_check(&compile, made->document, options))
            return false;
    } else if (!filters_read(&compile, options->array_filters) ||
               !modifiers_read(&compile, made->document) || !filters_check(&compile, update)) {
        return false;
    }
    made->modifiers = compile.modifiers;
    made->count = compile.count;
    for (size_t i = 0; i < made->count; i++)
        for (size_t c = 0; c < made->modifiers[i].path.count; c++)
            made->positional |= made->modifiers[i].path.components[c].kind == UPDATE_POSITION;
    *ret_update = made;
    return true;
}

bool mongo_update_is_replacement(const struct mongo_update *update)
{
    return update->replacement;
}

bool mongo_update_is_positional(const struct mongo_update *update)
{
    return update->positional;
}
