/* Reading an expression: what is a path, a variable, an operator, an object that is made.
 *
 * A subtree that uses local variables bound outside of it is not constant, though it reads no slot:
 * so every node knows the outermost level it looks at, and is folded where all levels it uses are
 * bound below. */
#include "front/mongo/expression/expression_private.h"
#include "query/value/set.h"

enum {
    NESTED_MAX = 150, /* evaluation recurses, at some nodes for each level */
    STEPS_MAX = 200,
};

static const struct mongo_expression_options no_options;

/* --- Nodes ------------------------------------------------------------------------------------ */

static bool node_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const struct expression_node *node = (const struct expression_node *)expression;
    struct document_value stacked[EXPRESSION_STACKED], *arguments = stacked;
    struct expression_call call;
    size_t count = expression->child_count;

    if (node->op->evaluate)
        return node->op->evaluate(node, context, ret_value, err);
    if (count > EXPRESSION_STACKED) {
        arguments = query_alloc(context, count * sizeof *arguments, err);
        if (!arguments)
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!query_evaluate(expression->children[i], context, &arguments[i], err))
            return false;
    call = (struct expression_call){node, context, arguments, count, ret_value, err};
    return node->op->compute(&call);
}

static const struct query_implied *node_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    return expression_imply((const struct expression_node *)expression, implying, truth);
}

static const struct query_kind kind_stable = {"expression", node_evaluate, QUERY_STABLE,
                                              node_imply};
static const struct query_kind kind_unstable = {"expression by chance", node_evaluate,
                                                QUERY_UNSTABLE, NULL};

static bool local_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err UNUSED)
{
    const struct query_local *local = context->locals;

    context->work += ((const struct expression_node *)expression)->up >> 3;
    for (uint32_t up = ((const struct expression_node *)expression)->up; up; up--)
        local = local->outer;
    *ret_value = local->value;
    return true;
}

static const struct query_kind kind_local = {"local variable", local_evaluate, QUERY_STABLE, NULL};

static bool root_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err UNUSED)
{
    uint32_t slot = ((const struct expression_node *)expression)->slot;

    assert(slot < context->slot_count);
    *ret_value = context->slots[slot].value; /* of an item: without what is not stored */
    return true;
}

static const struct query_kind kind_root = {"document", root_evaluate, QUERY_STABLE, NULL};
static const struct query_kind kind_now = {"now", expression_now, QUERY_STABLE_FOR_QUERY, NULL};

static bool path_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err);
static bool object_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err);
static bool array_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err);

const struct query_kind expression_kind_path = {"field path", path_evaluate, QUERY_STABLE, NULL};
static const struct query_kind kind_object = {"object", object_evaluate, QUERY_STABLE, NULL};
static const struct query_kind kind_array = {"array", array_evaluate, QUERY_STABLE, NULL};

/* Nodes of this folder alone know about local variables. */
static uint32_t lowest_of(const struct query_expression *expression)
{
    const struct query_kind *kind = expression->kind;

    if (kind == &kind_stable || kind == &kind_unstable || kind == &kind_local ||
        kind == &expression_kind_path || kind == &kind_object || kind == &kind_array)
        return ((const struct expression_node *)expression)->lowest;
    return EXPRESSION_NEVER;
}

bool expression_is_operator(const struct query_expression *expression)
{
    return expression->kind == &kind_stable || expression->kind == &kind_unstable;
}

static struct expression_node *node_of_kind(struct query_build *build,
                                            const struct query_kind *kind,
                                            const struct query_expression *const *children,
                                            size_t count)
{
    struct expression_node *node = query_node(build, kind, sizeof *node, children, count);

    node->lowest = EXPRESSION_NEVER;
    for (size_t i = 0; i < count; i++)
        node->lowest = MIN(node->lowest, lowest_of(children[i]));
    return node;
}

struct expression_node *expression_node_new(struct expression_compile *compile,
                                            const struct expression_operator *op,
                                            const struct query_expression *const *children,
                                            size_t count)
{
    struct expression_node *node =
        node_of_kind(compile->build, op->unstable ? &kind_unstable : &kind_stable, children, count);

    node->op = op;
    node->collator = compile->options->collator;
    return node;
}

const struct query_expression *expression_node_fold(struct expression_compile *compile,
                                                    struct expression_node *node)
{
    return node->lowest < compile->depth ? &node->head : query_fold(compile->build, &node->head);
}

const struct query_expression *expression_node_make(struct expression_compile *compile,
                                                    const struct expression_operator *op,
                                                    const struct query_expression *const *children,
                                                    size_t count)
{
    return expression_node_fold(compile, expression_node_new(compile, op, children, count));
}

const struct query_expression *expression_nothing(struct expression_compile *compile)
{
    return query_constant(compile->build, document_undefined());
}

/* --- Paths ------------------------------------------------------------------------------------ */

/* What the steps from `at` on lead to. Arrays are gone through, element by element; what has no
 * such field is left out of them. */
static bool path_walk(const struct expression_node *node, size_t at, struct query_context *context,
                      struct document_value *value, struct error *err)
{
    struct expression_array array;
    struct document_iter iter;

    for (; at < node->name_count; at++) {
        if (value->type == DOCUMENT_OBJECT) {
            context->work += value->document.len >> 6;
            if (document_find(value->document, node->names[at], value))
                continue;
        }
        if (value->type == DOCUMENT_ARRAY)
            break;
        *value = document_undefined();
        return true;
    }
    if (at == node->name_count)
        return true;
    expression_array_begin(&array, context);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        struct document_value element = iter.value;

        if (!query_work(context, 1, err))
            return expression_array_drop(&array);
        if (element.type != DOCUMENT_OBJECT) /* arrays in arrays are not looked into */
            continue;
        if (!path_walk(node, at, context, &element, err))
            return expression_array_drop(&array);
        if (element.type != DOCUMENT_UNDEFINED && !expression_array_add(&array, &element, err))
            return false;
    }
    return expression_array_end(&array, value, err);
}

static bool path_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    return query_evaluate(expression->children[0], context, ret_value, err) &&
           path_walk((const struct expression_node *)expression, 0, context, ret_value, err);
}

static bool step_check(struct slice name, struct error *err)
{
    if (!name.len)
        return mongo_error_set(err, 15998, "FieldPath field names may not be empty strings.");
    if (name.data[0] == '$')
        return mongo_error_set(err, 16410,
                               "FieldPath field names may not start with '$'. Consider using "
                               "$getField or $setField.");
    if (memchr(name.data, 0, name.len))
        return mongo_error_set(err, 16411, "FieldPath field names may not contain '\\0'.");
    return true;
}

static bool steps_read(struct slice path, struct query_build *build, struct slice **ret_names,
                       size_t *ret_count, struct error *err)
{
    struct slice rest = arena_copy(build->arena, path), name, tail = SLICE_NONE;
    size_t room = 1;
    bool more = true;

    if (!path.len)
        return mongo_error_set(err, 40352, "FieldPath cannot be constructed with empty string");
    if (path.data[path.len - 1] == '.')
        return mongo_error_set(err, 40353, "FieldPath must not end with a '.'.");
    for (size_t i = 0; i < path.len; i++)
        room += path.data[i] == '.';
    if (room > STEPS_MAX)
        return mongo_error_set(err, MONGO_OVERFLOW, "FieldPath is too long");
    *ret_names = ARENA_ARRAY(build->arena, struct slice, room);
    for (*ret_count = 0; more; rest = tail) {
        more = slice_split(rest, '.', &name, &tail);
        if (!more)
            name = rest;
        if (!step_check(name, err))
            return false;
        (*ret_names)[(*ret_count)++] = name;
    }
    return true;
}

bool expression_steps_read(struct expression_compile *compile, struct slice path,
                           const struct slice **ret_names, size_t *ret_count)
{
    struct slice *names;

    if (!steps_read(path, compile->build, &names, ret_count, compile->err))
        return false;
    *ret_names = names;
    return true;
}

static struct expression_node *path_node(const struct query_expression *base, struct slice *names,
                                         size_t count, struct query_build *build)
{
    const struct query_expression *children[2] = {base};
    struct expression_node *node;
    size_t children_count = 1;

    /* the first step as planners know it */
    if (base->kind == &kind_root)
        children[children_count++] = query_property_of(build, base->children[0], names[0]);
    node = node_of_kind(build, &expression_kind_path, children, children_count);
    node->names = names;
    node->name_count = count;
    return node;
}

bool mongo_expression_path(struct slice path, const struct query_expression *base,
                           struct query_build *build,
                           const struct query_expression **ret_expression, struct error *err)
{
    struct slice *names;
    size_t count;

    if (!steps_read(path, build, &names, &count, err))
        return false;
    *ret_expression = &path_node(base, names, count, build)->head;
    return true;
}

const struct query_expression *mongo_expression_root(struct query_build *build, uint32_t slot)
{
    const struct query_expression *variable = query_variable(build, slot);
    struct expression_node *node = node_of_kind(build, &kind_root, &variable, 1);

    node->slot = slot;
    return &node->head;
}

/* --- Variables -------------------------------------------------------------------------------- */

static bool is_alphanumeric(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
}

static bool name_characters_check(struct slice name, struct error *err)
{
    for (size_t i = 1; i < name.len; i++)
        if (!is_alphanumeric(name.data[i]))
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "'%.*s' contains an invalid character for a variable name: '%c'",
                                   SLICE_ARG(name), name.data[i]);
    return true;
}

bool mongo_variable_name_check(struct slice name, struct error *err)
{
    if (!name.len)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "empty variable names are not allowed");
    if (slice_equal(name, SLICE("CURRENT")))
        return true;
    if (!((name.data[0] >= 'a' && name.data[0] <= 'z') || name.data[0] >= 0x80))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "'%.*s' starts with an invalid character for a user variable name",
                               SLICE_ARG(name));
    return name_characters_check(name, err);
}

static bool reference_check(struct slice name, struct error *err)
{
    if (!name.len)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "empty variable names are not allowed");
    if (!is_alphanumeric(name.data[0]) || name.data[0] == '_' ||
        (name.data[0] >= '0' && name.data[0] <= '9'))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "'%.*s' starts with an invalid character for a variable name",
                               SLICE_ARG(name));
    return name_characters_check(name, err);
}

static const struct query_expression *local_node(struct expression_compile *compile, uint32_t level)
{
    struct expression_node *node = node_of_kind(compile->build, &kind_local, NULL, 0);

    node->up = compile->depth - 1 - level;
    node->lowest = level;
    return &node->head;
}

static const struct query_expression *now_node(struct expression_compile *compile)
{
    return &node_of_kind(compile->build, &kind_now, NULL, 0)->head;
}

static bool variable_find(struct expression_compile *compile, struct slice name,
                          const struct query_expression **ret)
{
    const struct mongo_expression_options *options = compile->options;

    for (const struct expression_local *local = compile->locals; local; local = local->outer) {
        if (slice_equal(local->name, name)) {
            *ret = local_node(compile, local->level);
            return true;
        }
    }
    for (size_t i = options->variable_count; i-- > 0;) {
        if (slice_equal(options->variables[i].name, name)) {
            *ret = options->variables[i].value;
            return true;
        }
    }
    if (slice_equal(name, SLICE("ROOT")) || slice_equal(name, SLICE("CURRENT")))
        *ret = mongo_expression_root(compile->build, options->slot);
    else if (slice_equal(name, SLICE("REMOVE")))
        *ret = expression_nothing(compile);
    else if (slice_equal(name, SLICE("NOW")))
        *ret = now_node(compile);
    else if (slice_equal(name, SLICE("CLUSTER_TIME")) || slice_equal(name, SLICE("USER_ROLES")) ||
             slice_equal(name, SLICE("SEARCH_META")))
        return mongo_error_set(compile->err, 51144, "Builtin variable '$$%.*s' is not available",
                               SLICE_ARG(name));
    else
        return mongo_error_set(compile->err, 17276, "Use of undefined variable: %.*s",
                               SLICE_ARG(name));
    return true;
}

/* "$a.b" and "$$v.a.b". */
static bool reference_compile(struct expression_compile *compile, struct slice text,
                              const struct query_expression **ret)
{
    bool named = text.len > 1 && text.data[1] == '$';
    struct slice rest = slice_skip(text, named ? 2 : 1), name = SLICE("CURRENT"), *names;
    const struct query_expression *base = NULL;
    size_t count;

    if (!named && !rest.len)
        return mongo_error_set(compile->err, 16872, "'$' by itself is not a valid FieldPath");
    if (named) {
        bool more = slice_split(rest, '.', &name, &rest);

        if (!more) {
            name = rest;
            rest = SLICE_NONE;
        }
        if (!reference_check(name, compile->err))
            return false;
        if (more && !rest.len)
            return mongo_error_set(compile->err, 40353, "FieldPath must not end with a '.'.");
    }
    if (!variable_find(compile, name, &base))
        return false;
    *ret = base;
    if (!rest.len)
        return true;
    if (!steps_read(rest, compile->build, &names, &count, compile->err))
        return false;
    *ret = expression_node_fold(compile, path_node(base, names, count, compile->build));
    return true;
}

/* --- Objects and arrays ----------------------------------------------------------------------- */

static bool object_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct expression_node *node = (const struct expression_node *)expression;
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    struct document_value value;

    for (size_t i = 0; i < expression->child_count; i++) {
        if (!query_evaluate(expression->children[i], context, &value, err))
            return query_build_drop(context, mark);
        if (value.type != DOCUMENT_UNDEFINED &&
            !query_build_append(context, node->names[i], &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

static bool array_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    struct expression_array array;
    struct document_value value;

    expression_array_begin(&array, context);
    for (size_t i = 0; i < expression->child_count; i++) {
        if (!query_evaluate(expression->children[i], context, &value, err))
            return expression_array_drop(&array);
        if (!expression_array_add(&array, &value, err))
            return false;
    }
    return expression_array_end(&array, ret_value, err);
}

static bool is_operator(const struct document_value *value)
{
    struct document_iter iter;

    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool field_check(struct expression_compile *compile, struct slice name,
                        const struct document_value *object)
{
    if (!name.len)
        return mongo_error_set(compile->err, 40352,
                               "FieldPath cannot be constructed with empty string");
    if (name.data[0] == '$')
        return mongo_error_set(
            compile->err, 15983,
            "An object representing an expression must have exactly one field: %.*s",
            SLICE_ARG(mongo_text_value(object, compile->build->arena)));
    if (memchr(name.data, '.', name.len))
        return mongo_error_set(compile->err, 16412, "FieldPath field names may not contain '.'.");
    return true;
}

static bool object_compile(struct expression_compile *compile, const struct document_value *value,
                           const struct query_expression **ret)
{
    size_t count = document_count(value->document), i = 0;
    const struct query_expression **children =
        ARENA_ARRAY(compile->build->arena, const struct query_expression *, count + 1);
    struct slice *names = ARENA_ARRAY(compile->build->arena, struct slice, count + 1);
    struct expression_node *node;
    struct document_iter iter;
    struct query_set seen;

    query_set_init(&seen, DOCUMENT_ORDER_MONGO, compile->build->arena, count);
    document_iter_init(&iter, value->document);
    for (; i < count && document_iter_next(&iter); i++) {
        struct document_value name = document_string(iter.key);
        bool is_new;

        if (!field_check(compile, iter.key, value) ||
            !expression_compile_value(compile, &iter.value, &children[i]))
            return false;
        names[i] = arena_copy(compile->build->arena, iter.key);
        query_set_add(&seen, &name, &is_new);
        if (!is_new)
            return mongo_error_set(compile->err, 16406,
                                   "duplicate field name specified in object literal: %.*s",
                                   SLICE_ARG(names[i]));
    }
    node = node_of_kind(compile->build, &kind_object, children, count);
    node->names = names;
    *ret = expression_node_fold(compile, node);
    return true;
}

static bool list_compile(struct expression_compile *compile, struct slice array,
                         const struct query_expression ***ret_children, size_t *ret_count)
{
    size_t count = document_count(array), i = 0;
    struct document_iter iter;

    *ret_children = ARENA_ARRAY(compile->build->arena, const struct query_expression *, count + 1);
    *ret_count = count;
    document_iter_init(&iter, array);
    for (; i < count && document_iter_next(&iter); i++)
        if (!expression_compile_value(compile, &iter.value, &(*ret_children)[i]))
            return false;
    return true;
}

static bool array_compile(struct expression_compile *compile, const struct document_value *value,
                          const struct query_expression **ret)
{
    const struct query_expression **children;
    size_t count;

    if (!list_compile(compile, value->document, &children, &count))
        return false;
    *ret =
        expression_node_fold(compile, node_of_kind(compile->build, &kind_array, children, count));
    return true;
}

/* --- Operators -------------------------------------------------------------------------------- */

static bool count_check(struct expression_compile *compile, const struct expression_operator *op,
                        size_t count)
{
    if (op->evaluate == expression_if_null && count < op->min)
        return mongo_error_set(compile->err, 1257300,
                               "$ifNull needs at least two arguments, had: %zu", count);
    if (op->min == op->max && count != op->min)
        return mongo_error_set(compile->err, 16020,
                               "Expression %s takes exactly %u arguments. %zu were passed in.",
                               op->name, op->min, count);
    if (count >= op->min && (op->max == EXPRESSION_ANY || count <= op->max))
        return true;
    if (op->max == EXPRESSION_ANY)
        return mongo_error_set(compile->err, 28667,
                               "Expression %s takes at least %u arguments, but %zu were passed in.",
                               op->name, op->min, count);
    return mongo_error_set(
        compile->err, 28667,
        "Expression %s takes at least %u arguments, and at most %u, but %zu were passed in.",
        op->name, op->min, op->max, count);
}

static bool list_operator_compile(struct expression_compile *compile,
                                  const struct expression_operator *op,
                                  const struct document_value *value,
                                  const struct query_expression **ret)
{
    const struct query_expression *single, **children = &single;
    struct expression_node *node;
    size_t count = 1;

    if (value->type == DOCUMENT_ARRAY) {
        if (!count_check(compile, op, document_count(value->document)) ||
            !list_compile(compile, value->document, &children, &count))
            return false;
    } else if (!count_check(compile, op, 1) || !expression_compile_value(compile, value, &single)) {
        return false;
    }
    node = expression_node_new(compile, op, children, count);
    node->number = op->number;
    *ret = expression_node_fold(compile, node);
    return true;
}

static bool missing_argument(struct expression_compile *compile,
                             const struct expression_operator *op, size_t number)
{
    size_t last = ARRAY_LEN(op->code_missing) - 1;
    int code = 0;

    for (size_t i = MIN(number, last) + 1; !code && i-- > 0;)
        code = op->code_missing[i];
    return mongo_error_set(compile->err, code ? code : MONGO_FAILED_TO_PARSE,
                           "%s requires '%s' to be specified", op->name, op->names[number]);
}

bool expression_compile_named(struct expression_compile *compile,
                              const struct expression_operator *op,
                              const struct document_value *value,
                              const struct query_expression **arguments, uint32_t *ret_given)
{
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err,
                               op->code_object ? op->code_object : MONGO_FAILED_TO_PARSE,
                               "%s only supports an object as its argument, found: %s", op->name,
                               mongo_type_name(value->type));
    while (count < EXPRESSION_NAMES_MAX && op->names[count])
        arguments[count++] = expression_nothing(compile);
    *ret_given = 0;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (i < count && !slice_equal(iter.key, slice_of_text(op->names[i])))
            i++;
        if (i == count)
            return mongo_error_set(
                compile->err, op->code_unknown ? op->code_unknown : MONGO_FAILED_TO_PARSE,
                "%s found an unknown argument: %.*s", op->name, SLICE_ARG(iter.key));
        if (!expression_compile_value(compile, &iter.value, &arguments[i]))
            return false;
        *ret_given |= 1u << i;
    }
    for (size_t i = 0; i < op->required; i++)
        if (!(*ret_given & 1u << i))
            return missing_argument(compile, op, i);
    return true;
}

static bool named_operator_compile(struct expression_compile *compile,
                                   const struct expression_operator *op,
                                   const struct document_value *value,
                                   const struct query_expression **ret)
{
    const struct query_expression *arguments[EXPRESSION_NAMES_MAX];
    struct expression_node *node;
    uint32_t given;
    size_t count = 0;

    if (!expression_compile_named(compile, op, value, arguments, &given))
        return false;
    while (count < EXPRESSION_NAMES_MAX && op->names[count])
        count++;
    node = expression_node_new(compile, op, arguments, count);
    node->given = given;
    if (op->zoned)
        expression_zone_prepare(compile, node);
    else
        node->number = op->number;
    *ret = expression_node_fold(compile, node);
    return true;
}

static bool operator_compile(struct expression_compile *compile, const struct document_value *value,
                             const struct query_expression **ret)
{
    const struct expression_operator *op;
    struct document_iter iter;

    document_iter_init(&iter, value->document);
    (void)document_iter_next(&iter);
    if (document_count(value->document) > 1)
        return mongo_error_set(
            compile->err, 15983,
            "An object representing an expression must have exactly one field: %.*s",
            SLICE_ARG(mongo_text_value(value, compile->build->arena)));
    op = expression_operator_find(iter.key);
    if (!op)
        return mongo_error_set(compile->err, MONGO_INVALID_PIPELINE_OPERATOR,
                               "Unrecognized expression '%.*s'", SLICE_ARG(iter.key));
    switch (op->form) {
    case EXPRESSION_LIST:
        return list_operator_compile(compile, op, &iter.value, ret);
    case EXPRESSION_NAMED:
        return named_operator_compile(compile, op, &iter.value, ret);
    case EXPRESSION_OWN:
        break;
    }
    return op->parse(compile, op, &iter.value, ret);
}

static bool value_compile(struct expression_compile *compile, const struct document_value *value,
                          const struct query_expression **ret)
{
    switch (value->type) {
    case DOCUMENT_STRING:
        if (value->text.len && value->text.data[0] == '$')
            return reference_compile(compile, value->text, ret);
        break;
    case DOCUMENT_OBJECT:
        return is_operator(value) ? operator_compile(compile, value, ret)
                                  : object_compile(compile, value, ret);
    case DOCUMENT_ARRAY:
        return array_compile(compile, value, ret);
    default:
        break;
    }
    *ret = query_constant(compile->build, *value);
    return true;
}

bool expression_compile_value(struct expression_compile *compile,
                              const struct document_value *value,
                              const struct query_expression **ret)
{
    bool compiled;

    if (compile->nested >= NESTED_MAX)
        return mongo_error_set(compile->err, MONGO_OVERFLOW,
                               "an expression is nested deeper than %d levels", NESTED_MAX);
    compile->nested++;
    compiled = value_compile(compile, value, ret);
    compile->nested--;
    return compiled;
}

/* --- The contract ----------------------------------------------------------------------------- */

bool mongo_expression_compile(const struct document_value *expression,
                              const struct mongo_expression_options *options,
                              struct query_build *build,
                              const struct query_expression **ret_expression, struct error *err)
{
    struct expression_compile compile = {
        .build = build, .options = options ? options : &no_options, .err = err};
    const struct query_expression *made = NULL;

    if (!build->failed && !expression_compile_value(&compile, expression, &made))
        return false;
    if (build->failed) {
        *err = build->error;
        return false;
    }
    *ret_expression = made;
    return true;
}

bool mongo_expression_hook(void *self, const struct document_value *expression,
                           struct query_build *build,
                           const struct query_expression **ret_expression, struct error *err)
{
    return mongo_expression_compile(expression, self, build, ret_expression, err);
}

bool mongo_expression_let(struct slice let, const struct mongo_expression_options *options,
                          struct query_build *build, const struct mongo_variable **ret_variables,
                          size_t *ret_count, struct error *err)
{
    const struct mongo_expression_options *given = options ? options : &no_options;
    size_t count = given->variable_count;
    struct mongo_variable *variables = ARENA_ARRAY(
        build->arena, struct mongo_variable, count + (let.data ? document_count(let) : 0) + 1);
    struct document_iter iter;

    if (count)
        memcpy(variables, given->variables, count * sizeof *variables);
    document_iter_init(&iter, let.data ? let : SLICE("\5\0\0\0\0"));
    while (document_iter_next(&iter)) {
        if (!mongo_variable_name_check(iter.key, err) ||
            !mongo_expression_compile(&iter.value, given, build, &variables[count].value, err))
            return false;
        variables[count++].name = arena_copy(build->arena, iter.key);
    }
    *ret_variables = variables;
    *ret_count = count;
    return true;
}

bool mongo_expression_truth(const struct document_value *value)
{
    double number;

    switch (value->type) {
    case DOCUMENT_NULL:
    case DOCUMENT_UNDEFINED:
        return false;
    case DOCUMENT_BOOL:
        return value->boolean;
    default:
        return !document_to_double(value, &number) || number != 0;
    }
}
