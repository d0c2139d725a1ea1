/* A filter document becomes a tree: fields and operators, and what MongoDB says of wrong ones.
 *
 * Negations ($ne, $nin, $nor) are the positive form below a NOT, so that nothing has to know what
 * "no element matches" means for itself. $all is every one of its values, each for itself. */
#include "front/mongo/match/match_private.h"
#include "front/mongo/text.h"
#include "query/value/value.h"

#include <stdlib.h>

enum { CHILDREN_FIRST = 4 };

/* --- Nodes ------------------------------------------------------------------------------------ */

struct match_node *match_node_new(struct match_parse *parse, enum match_kind kind,
                                  const struct match_path *path)
{
    struct match_node *node = ARENA_NEW(parse->build->arena, struct match_node);

    node->kind = kind;
    node->path = path;
    return node;
}

struct children {
    const struct match_node **list;
    size_t count, capacity;
};

static void children_add(struct match_parse *parse, struct children *children,
                         const struct match_node *child)
{
    if (children->count == children->capacity) {
        size_t capacity = children->capacity ? 2 * children->capacity : CHILDREN_FIRST;
        const struct match_node **list =
            ARENA_ARRAY(parse->build->arena, const struct match_node *, capacity);

        if (children->count)
            memcpy(list, children->list, children->count * sizeof *list);
        children->list = list;
        children->capacity = capacity;
    }
    children->list[children->count++] = child;
}

static const struct match_node *node_of(struct match_parse *parse, enum match_kind kind,
                                        const struct children *children)
{
    struct match_node *node;

    if (children->count == 1 && kind != MATCH_NOT)
        return children->list[0];
    node = match_node_new(parse, kind, NULL);
    node->children = children->list;
    node->count = children->count;
    return node;
}

static const struct match_node *not_of(struct match_parse *parse, const struct match_node *child)
{
    struct children children = {0};

    if (!child)
        return NULL;
    children_add(parse, &children, child);
    return node_of(parse, MATCH_NOT, &children);
}

static const struct match_node *always(struct match_parse *parse)
{
    return match_node_new(parse, MATCH_ALL, NULL);
}

static const struct match_node *never(struct match_parse *parse)
{
    return match_node_new(parse, MATCH_ANY, NULL);
}

/* --- Paths ------------------------------------------------------------------------------------ */

/* "0", "12", but not "01", as elements are numbered. */
static int64_t index_of(struct slice name)
{
    uint64_t number;

    if (!name.len || name.len > 9 || (name.data[0] == '0' && name.len > 1) ||
        !slice_to_uint64(name, &number))
        return -1;
    return (int64_t)number;
}

static const struct match_path *path_new(struct match_parse *parse, struct slice text)
{
    struct match_path *path = ARENA_NEW(parse->build->arena, struct match_path);
    struct match_component *components;
    struct slice rest, name;
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '.';
    if (count > MATCH_COMPONENTS_MAX) {
        mongo_error_set(parse->err, MONGO_OVERFLOW, "FieldPath is too long");
        return NULL;
    }
    path->text = arena_copy(parse->build->arena, text);
    components = ARENA_ARRAY(parse->build->arena, struct match_component, count);
    rest = path->text;
    while (path->count < count) {
        struct slice tail = SLICE_NONE;

        if (!slice_split(rest, '.', &name, &tail))
            name = rest;
        components[path->count++] = (struct match_component){name, index_of(name)};
        rest = tail;
    }
    path->components = components;
    if (!parse->inner)
        path->first = query_property_of(
            parse->build, query_variable(parse->build, parse->options->slot), components[0].name);
    return path;
}

/* --- Single operators ------------------------------------------------------------------------- */

static bool is_nan(const struct document_value *value)
{
    double number;

    return document_is_number(value) && document_to_double(value, &number) && number != number;
}

static const struct match_node *regex_node(struct match_parse *parse, const struct match_path *path,
                                           const struct document_value *value)
{
    return match_parse_regex(parse, path, value->regex.pattern, value->regex.options);
}

bool match_operand_set(struct match_parse *parse, struct match_node *node,
                       const struct document_value *value)
{
    node->value = node->compared = query_value_copy(value, parse->build->arena);
    if (!parse->collator || !document_collate_matters(value))
        return true;
    node->collator = parse->collator;
    return mongo_collate_constant(parse->collator, value, parse->build->arena, &node->compared,
                                  parse->err);
}

static const struct match_node *comparison(struct match_parse *parse, enum match_kind kind,
                                           const struct match_path *path,
                                           const struct document_value *value)
{
    struct match_node *node;

    if (value->type == DOCUMENT_UNDEFINED) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "cannot compare to undefined");
        return NULL;
    }
    if (value->type == DOCUMENT_REGEX && kind != MATCH_EQUAL) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "Can't have RegEx as arg to predicate over field '%.*s'.",
                        SLICE_ARG(path ? path->text : SLICE("")));
        return NULL;
    }
    /* Nothing is less or greater than these within their bracket. */
    if ((kind == MATCH_LESS || kind == MATCH_GREATER) &&
        (value->type == DOCUMENT_NULL || is_nan(value)))
        return never(parse);
    if ((kind == MATCH_LESS_EQUAL || kind == MATCH_GREATER_EQUAL) &&
        (value->type == DOCUMENT_NULL || is_nan(value)))
        kind = MATCH_EQUAL;
    node = match_node_new(parse, kind, path);
    return match_operand_set(parse, node, value) ? node : NULL;
}

static int by_value(const void *a, const void *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, a, b);
}

static void values_sort(struct match_node *node, struct document_value *values, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < count; i++)
        if (!kept || by_value(&values[kept - 1], &values[i]) != 0)
            values[kept++] = values[i];
    node->in.values = values;
    node->in.count = kept;
}

static const struct match_node *in_node(struct match_parse *parse, const struct match_path *path,
                                        struct slice name, const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_IN, path);
    struct children regexes = {0};
    struct document_value *values;
    struct document_iter iter;
    struct slice array;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "%.*s needs an array", SLICE_ARG(name));
        return NULL;
    }
    array = arena_copy(parse->build->arena, value->document);
    values = ARENA_ARRAY(parse->build->arena, struct document_value, document_count(array) + 1);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (match_is_operators(&iter.value)) {
            mongo_error_set(parse->err, MONGO_BAD_VALUE, "cannot nest $ under %.*s",
                            SLICE_ARG(name));
            return NULL;
        }
        if (iter.value.type == DOCUMENT_UNDEFINED) {
            mongo_error_set(parse->err, MONGO_BAD_VALUE,
                            "InMatchExpression equality cannot be undefined");
            return NULL;
        }
        if (iter.value.type == DOCUMENT_REGEX) {
            const struct match_node *regex = regex_node(parse, NULL, &iter.value);

            if (!regex)
                return NULL;
            children_add(parse, &regexes, regex);
            continue;
        }
        node->in.null |= iter.value.type == DOCUMENT_NULL;
        if (!count)
            node->value = iter.value;
        values[count] = iter.value;
        if (parse->collator && document_collate_matters(&iter.value)) {
            node->collator = parse->collator;
            if (!mongo_collate_constant(parse->collator, &iter.value, parse->build->arena,
                                        &values[count], parse->err))
                return NULL;
        }
        count++;
    }
    values_sort(node, values, count);
    node->children = regexes.list;
    node->count = regexes.count;
    return node;
}

static const struct match_node *element_node(struct match_parse *parse,
                                             const struct match_path *path,
                                             const struct document_value *value);

/* Is it {$elemMatch: ...}? */
static bool is_element_match(const struct document_value *value)
{
    struct document_value inner;

    return value->type == DOCUMENT_OBJECT &&
           document_find(value->document, SLICE("$elemMatch"), &inner);
}

static const struct match_node *all_child(struct match_parse *parse, const struct match_path *path,
                                          const struct document_value *value, bool elements)
{
    struct document_value inner;

    if (elements != is_element_match(value)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        elements ? "$all/$elemMatch has to be consistent"
                                 : "no $ expressions in $all");
        return NULL;
    }
    if (elements)
        return document_find(value->document, SLICE("$elemMatch"), &inner)
                   ? element_node(parse, path, &inner)
                   : NULL;
    if (match_is_operators(value)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "no $ expressions in $all");
        return NULL;
    }
    if (value->type == DOCUMENT_REGEX)
        return regex_node(parse, path, value);
    return comparison(parse, MATCH_EQUAL, path, value);
}

static const struct match_node *all_node(struct match_parse *parse, const struct match_path *path,
                                         const struct document_value *value)
{
    struct children children = {0};
    struct document_iter iter;
    bool elements = false;

    if (value->type != DOCUMENT_ARRAY) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$all needs an array");
        return NULL;
    }
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        const struct match_node *child;

        if (!children.count)
            elements = is_element_match(&iter.value);
        child = all_child(parse, path, &iter.value, elements);
        if (!child)
            return NULL;
        children_add(parse, &children, child);
    }
    return children.count ? node_of(parse, MATCH_ALL, &children) : never(parse);
}

static bool is_logical(struct slice name)
{
    return slice_equal(name, SLICE("$and")) || slice_equal(name, SLICE("$or")) ||
           slice_equal(name, SLICE("$nor"));
}

/* Operators that hold for one element, or a filter that one matches. */
static const struct match_node *element_node(struct match_parse *parse,
                                             const struct match_path *path,
                                             const struct document_value *value)
{
    bool outer = parse->inner;
    struct children children = {0};
    const struct match_node *child;
    struct match_node *node;
    bool operators = match_is_of_value(value);

    if (value->type != DOCUMENT_OBJECT) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$elemMatch needs an Object");
        return NULL;
    }
    parse->inner = true;
    child = operators ? match_parse_operators(parse, NULL, value->document)
                      : match_parse_filter(parse, value->document);
    parse->inner = outer;
    if (!child)
        return NULL;
    node = match_node_new(parse, operators ? MATCH_ELEMENT : MATCH_ELEMENT_OBJECT, path);
    children_add(parse, &children, child);
    node->children = children.list;
    node->count = 1;
    return node;
}

static const struct match_node *not_node(struct match_parse *parse, const struct match_path *path,
                                         const struct document_value *value)
{
    const struct match_node *node;
    bool outer = parse->optional;

    if (value->type == DOCUMENT_REGEX)
        return not_of(parse, regex_node(parse, path, value));
    if (value->type != DOCUMENT_OBJECT) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$not needs a regex or a document");
        return NULL;
    }
    if (document_count(value->document) == 0) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$not cannot be empty");
        return NULL;
    }
    parse->optional = true;
    node = match_parse_operators(parse, path, value->document);
    parse->optional = outer;
    return not_of(parse, node);
}

static bool is_true(const struct document_value *value)
{
    double number;

    if (document_is_number(value))
        return document_to_double(value, &number) && number != 0;
    if (value->type == DOCUMENT_BOOL)
        return value->boolean;
    return value->type != DOCUMENT_NULL && value->type != DOCUMENT_UNDEFINED;
}

static const struct match_node *exists_node(struct match_parse *parse,
                                            const struct match_path *path,
                                            const struct document_value *value)
{
    const struct match_node *node = match_node_new(parse, MATCH_EXISTS, path);

    return is_true(value) ? node : not_of(parse, node);
}

/* $regex and its $options, which may stand in either order. */
static const struct match_node *regex_operator(struct match_parse *parse,
                                               const struct match_path *path,
                                               struct slice operators,
                                               const struct document_value *value)
{
    struct document_value options = document_string(SLICE(""));
    bool given = document_find(operators, SLICE("$options"), &options);

    if (value->type != DOCUMENT_STRING && value->type != DOCUMENT_REGEX) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$regex has to be a string");
        return NULL;
    }
    if (given && options.type != DOCUMENT_STRING) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$options has to be a string");
        return NULL;
    }
    if (value->type == DOCUMENT_STRING)
        return match_parse_regex(parse, path, value->text, options.text);
    if (given && value->regex.options.len) {
        mongo_error_set(parse->err, 51075, "options set in both $regex and $options");
        return NULL;
    }
    return match_parse_regex(parse, path, value->regex.pattern,
                             given ? options.text : value->regex.options);
}

static const struct match_node *refused(struct match_parse *parse, struct slice name,
                                        const char *why)
{
    mongo_error_set(parse->err, MONGO_NOT_IMPLEMENTED, "%.*s is not supported: %s", SLICE_ARG(name),
                    why);
    return NULL;
}

static bool is_near(struct slice name)
{
    return slice_equal(name, SLICE("$near")) || slice_equal(name, SLICE("$nearSphere")) ||
           slice_equal(name, SLICE("$geoNear"));
}

/* What may stand beside $near of a pair. */
static bool is_near_term(struct slice name)
{
    return slice_equal(name, SLICE("$maxDistance")) || slice_equal(name, SLICE("$minDistance")) ||
           slice_equal(name, SLICE("$uniqueDocs"));
}

static bool has_near(struct slice operators)
{
    struct document_iter iter;

    document_iter_init(&iter, operators);
    while (document_iter_next(&iter))
        if (is_near(iter.key))
            return true;
    return false;
}

/* --- Operators by name ------------------------------------------------------------------------ */

enum operator_kind {
    OPERATOR_EQ,
    OPERATOR_NE,
    OPERATOR_GT,
    OPERATOR_GTE,
    OPERATOR_LT,
    OPERATOR_LTE,
    OPERATOR_IN,
    OPERATOR_NIN,
    OPERATOR_NOT,
    OPERATOR_EXISTS,
    OPERATOR_TYPE,
    OPERATOR_ALL,
    OPERATOR_ELEM_MATCH,
    OPERATOR_SIZE,
    OPERATOR_MOD,
    OPERATOR_REGEX,
    OPERATOR_OPTIONS,
    OPERATOR_BITS_ALL_SET,
    OPERATOR_BITS_ALL_CLEAR,
    OPERATOR_BITS_ANY_SET,
    OPERATOR_BITS_ANY_CLEAR,
    OPERATOR_COMMENT,
    OPERATORS,
};

static const char *const operator_names[OPERATORS] = {
    "$eq",           "$ne",         "$gt",           "$gte",     "$lt",      "$lte",
    "$in",           "$nin",        "$not",          "$exists",  "$type",    "$all",
    "$elemMatch",    "$size",       "$mod",          "$regex",   "$options", "$bitsAllSet",
    "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear", "$comment",
};

static enum operator_kind operator_find(struct slice name)
{
    int at = 0;

    while (at < OPERATORS && !slice_equal(name, slice_of_text(operator_names[at])))
        at++;
    return (enum operator_kind)at;
}

static const struct match_node *operator_node(struct match_parse *parse,
                                              const struct match_path *path, struct slice operators,
                                              struct slice name, const struct document_value *value)
{
    struct document_value other;

    switch (operator_find(name)) {
    case OPERATOR_EQ:
        return comparison(parse, MATCH_EQUAL, path, value);
    case OPERATOR_NE:
        if (value->type == DOCUMENT_REGEX) {
            mongo_error_set(parse->err, MONGO_BAD_VALUE, "Can't have regex as arg to $ne.");
            return NULL;
        }
        return not_of(parse, comparison(parse, MATCH_EQUAL, path, value));
    case OPERATOR_GT:
        return comparison(parse, MATCH_GREATER, path, value);
    case OPERATOR_GTE:
        return comparison(parse, MATCH_GREATER_EQUAL, path, value);
    case OPERATOR_LT:
        return comparison(parse, MATCH_LESS, path, value);
    case OPERATOR_LTE:
        return comparison(parse, MATCH_LESS_EQUAL, path, value);
    case OPERATOR_IN:
        return in_node(parse, path, name, value);
    case OPERATOR_NIN:
        return not_of(parse, in_node(parse, path, name, value));
    case OPERATOR_NOT:
        return not_node(parse, path, value);
    case OPERATOR_EXISTS:
        return exists_node(parse, path, value);
    case OPERATOR_TYPE:
        return match_parse_type(parse, path, value);
    case OPERATOR_ALL:
        return all_node(parse, path, value);
    case OPERATOR_ELEM_MATCH:
        return element_node(parse, path, value);
    case OPERATOR_SIZE:
        return match_parse_size(parse, path, value);
    case OPERATOR_MOD:
        return match_parse_mod(parse, path, value);
    case OPERATOR_REGEX:
        return regex_operator(parse, path, operators, value);
    case OPERATOR_OPTIONS:
        if (document_find(operators, SLICE("$regex"), &other))
            return always(parse);
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$options needs a $regex");
        return NULL;
    case OPERATOR_BITS_ALL_SET:
        return match_parse_bits(parse, path, name, MATCH_BITS_ALL_SET, value);
    case OPERATOR_BITS_ALL_CLEAR:
        return match_parse_bits(parse, path, name, MATCH_BITS_ALL_CLEAR, value);
    case OPERATOR_BITS_ANY_SET:
        return match_parse_bits(parse, path, name, MATCH_BITS_ANY_SET, value);
    case OPERATOR_BITS_ANY_CLEAR:
        return match_parse_bits(parse, path, name, MATCH_BITS_ANY_CLEAR, value);
    case OPERATOR_COMMENT:
        return always(parse);
    default:
        if (slice_equal(name, SLICE("$geoWithin")) || slice_equal(name, SLICE("$within")) ||
            slice_equal(name, SLICE("$geoIntersects")))
            return match_parse_geo(parse, path, name, value);
        if (is_near(name))
            return match_parse_near(parse, path, operators, name, value);
        if (is_near_term(name) && has_near(operators))
            return always(parse);
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "unknown operator: %.*s", SLICE_ARG(name));
        return NULL;
    }
}

/* A reference, {$ref: ..., $id: ...}, is a value. */
static bool is_reference(struct slice object)
{
    struct document_value found;

    return document_find(object, SLICE("$ref"), &found) &&
           document_find(object, SLICE("$id"), &found);
}

bool match_is_operators(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$' &&
           !is_reference(value->document);
}

bool match_is_of_value(const struct document_value *value)
{
    struct document_iter iter;

    if (!match_is_operators(value))
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && !is_logical(iter.key);
}

static bool deeper(struct match_parse *parse)
{
    if (++parse->depth <= MATCH_DEPTH_MAX)
        return true;
    return mongo_error_set(parse->err, MONGO_BAD_VALUE, "exceeded maximum query tree depth of %d",
                           MATCH_DEPTH_MAX);
}

const struct match_node *match_parse_operators(struct match_parse *parse,
                                               const struct match_path *path,
                                               struct slice operators)
{
    struct children children = {0};
    struct document_iter iter;

    if (!deeper(parse))
        return NULL;
    document_iter_init(&iter, operators);
    while (document_iter_next(&iter)) {
        const struct match_node *child =
            operator_node(parse, path, operators, iter.key, &iter.value);

        if (!child)
            return NULL;
        if (child->kind != MATCH_ALL || child->count)
            children_add(parse, &children, child);
    }
    parse->depth--;
    return node_of(parse, MATCH_ALL, &children);
}

/* --- Filters ---------------------------------------------------------------------------------- */

static const struct match_node *logical_node(struct match_parse *parse, struct slice name,
                                             const struct document_value *value)
{
    bool all = slice_equal(name, SLICE("$and")), outer = parse->optional;
    struct children children = {0};
    struct document_iter iter;
    const struct match_node *node;

    if (value->type != DOCUMENT_ARRAY) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "%.*s must be an array", SLICE_ARG(name));
        return NULL;
    }
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT) {
            mongo_error_set(parse->err, MONGO_BAD_VALUE,
                            "$or/$and/$nor entries need to be full objects");
            return NULL;
        }
        parse->optional |= !all;
        node = match_parse_filter(parse, iter.value.document);
        parse->optional = outer;
        if (!node)
            return NULL;
        children_add(parse, &children, node);
    }
    if (!children.count) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$and/$or/$nor must be a nonempty array");
        return NULL;
    }
    node = node_of(parse, all ? MATCH_ALL : MATCH_ANY, &children);
    return slice_equal(name, SLICE("$nor")) ? not_of(parse, node) : node;
}

/* A node that holds where what hook makes of the value is true for the whole document. */
static const struct match_node *document_node(
    struct match_parse *parse, const struct document_value *value,
    bool (*hook)(void *self, const struct document_value *value, struct query_build *build,
                 const struct query_expression **ret_expression, struct error *err),
    void *self)
{
    struct match_node *node = match_node_new(parse, MATCH_EXPRESSION, NULL);
    const struct query_expression **longer;

    if (!hook(self, value, parse->build, &node->expression, parse->err))
        return NULL;
    longer = ARENA_ARRAY(parse->build->arena, const struct query_expression *,
                         parse->expression_count + 1);
    if (parse->expression_count)
        memcpy(longer, parse->expressions, parse->expression_count * sizeof *longer);
    longer[parse->expression_count++] = node->expression;
    parse->expressions = longer;
    return node;
}

static const struct match_node *expression_node(struct match_parse *parse,
                                                const struct document_value *value)
{
    if (parse->inner) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "$expr can only be applied to the top-level document");
        return NULL;
    }
    if (!parse->options->expression)
        return refused(parse, SLICE("$expr"),
                       "expressions of the aggregation language are not "
                       "there yet");
    return document_node(parse, value, parse->options->expression, parse->options->expression_self);
}

static const struct match_node *where_node(struct match_parse *parse,
                                           const struct document_value *value)
{
    if (parse->inner) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "$where can only be applied to the top-level document");
        return NULL;
    }
    if (!parse->options->where) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$where is not allowed in this context");
        return NULL;
    }
    return document_node(parse, value, parse->options->where, parse->options->where_self);
}

static const struct match_node *sample_node(struct match_parse *parse,
                                            const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_SAMPLE, NULL);

    if (!document_is_number(value)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "argument to $sampleRate must be a numeric type");
        return NULL;
    }
    (void)document_to_double(value, &node->rate);
    if (!(node->rate >= 0 && node->rate <= 1)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "numeric argument to $sampleRate must be in "
                        "[0, 1]");
        return NULL;
    }
    parse->sampled = true;
    return node;
}

static const struct match_node *constant_node(struct match_parse *parse, struct slice name,
                                              const struct document_value *value)
{
    int64_t number;

    if (!document_to_int64(value, &number) || number != 1) {
        mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE, "%.*s must be an integer value of 1",
                        SLICE_ARG(name));
        return NULL;
    }
    return slice_equal(name, SLICE("$alwaysTrue")) ? always(parse) : never(parse);
}

static const struct match_node *schema_node(struct match_parse *parse,
                                            const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_SCHEMA, NULL);

    if (value->type != DOCUMENT_OBJECT) {
        mongo_error_set(parse->err, MONGO_TYPE_MISMATCH, "$jsonSchema must be an object");
        return NULL;
    }
    node->schema = match_schema_parse(parse, value->document);
    return node->schema ? node : NULL;
}

/* One search of a command: its score is that of the document. */
static const struct match_node *text_node(struct match_parse *parse,
                                          const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_TEXT, NULL);

    if (!parse->options->searches || parse->inner) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "$text is not allowed in this context");
        return NULL;
    }
    if (parse->build->searched) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "Too many text expressions");
        return NULL;
    }
    if (!mongo_text_compile(value, parse->options->text, parse->build, &node->text, parse->err))
        return NULL;
    parse->build->searched = node->text;
    return node;
}

static const struct match_node *top_level(struct match_parse *parse, struct slice name,
                                          const struct document_value *value)
{
    if (is_logical(name))
        return logical_node(parse, name, value);
    if (slice_equal(name, SLICE("$expr")))
        return expression_node(parse, value);
    if (slice_equal(name, SLICE("$comment")))
        return always(parse);
    if (slice_equal(name, SLICE("$jsonSchema")))
        return schema_node(parse, value);
    if (slice_equal(name, SLICE("$sampleRate")))
        return sample_node(parse, value);
    if (slice_equal(name, SLICE("$alwaysTrue")) || slice_equal(name, SLICE("$alwaysFalse")))
        return constant_node(parse, name, value);
    if (slice_equal(name, SLICE("$where")))
        return where_node(parse, value);
    if (slice_equal(name, SLICE("$text")))
        return text_node(parse, value);
    mongo_error_set(parse->err, MONGO_BAD_VALUE,
                    "unknown top level operator: %.*s. If you have a field name that starts with a "
                    "'$' symbol, consider using $getField or $setField.",
                    SLICE_ARG(name));
    return NULL;
}

static bool is_reference_name(struct slice name)
{
    return slice_equal(name, SLICE("$ref")) || slice_equal(name, SLICE("$id")) ||
           slice_equal(name, SLICE("$db"));
}

static const struct match_node *field_node(struct match_parse *parse, struct slice name,
                                           const struct document_value *value)
{
    const struct match_path *path;

    if (name.len && name.data[0] == '$' && !is_reference_name(name))
        return top_level(parse, name, value);
    path = path_new(parse, name);
    if (!path)
        return NULL;
    if (match_is_operators(value))
        return match_parse_operators(parse, path, value->document);
    if (value->type == DOCUMENT_REGEX)
        return regex_node(parse, path, value);
    return comparison(parse, MATCH_EQUAL, path, value);
}

const struct match_node *match_parse_filter(struct match_parse *parse, struct slice filter)
{
    struct children children = {0};
    struct document_iter iter;

    if (!deeper(parse))
        return NULL;
    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        const struct match_node *child = field_node(parse, iter.key, &iter.value);

        if (!child)
            return NULL;
        if (child->kind != MATCH_ALL || child->count)
            children_add(parse, &children, child);
    }
    parse->depth--;
    return node_of(parse, MATCH_ALL, &children);
}
