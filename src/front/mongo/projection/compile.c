/* A projection document becomes a tree of names. Whether it includes or excludes is said by the
 * first field that is neither _id nor $slice; all others have to agree. */
#include "front/mongo/projection/projection_private.h"
#include "front/mongo/text.h"

enum mode { MODE_UNKNOWN, MODE_INCLUDE, MODE_EXCLUDE };

struct compile {
    const struct mongo_match_options *options;
    struct query_build *build;
    struct error *err;
    struct mongo_projection *made;
    struct projection_node *root;
    enum mode mode;
    bool id_alone; /* whether _id is shown was said, and nothing else so far */
    bool id_shown;
    bool elements;
    const struct query_expression **expressions;
    size_t count;
    size_t fields; /* of all objects */
};

/* --- The tree --------------------------------------------------------------------------------- */

static struct projection_node *child_find(const struct projection_node *node, struct slice name)
{
    for (size_t i = 0; i < node->count; i++)
        if (slice_equal(node->children[i]->name, name))
            return node->children[i];
    return NULL;
}

static struct projection_node *child_add(struct compile *compile, struct projection_node *node,
                                         struct slice name)
{
    struct arena *arena = compile->build->arena;
    struct projection_node *child = ARENA_NEW(arena, struct projection_node);

    if (node->count == node->capacity) {
        struct projection_node **longer =
            ARENA_ARRAY(arena, struct projection_node *, 2 * node->capacity + 4);

        if (node->count)
            memcpy(longer, node->children, node->count * sizeof *longer);
        node->children = longer;
        node->capacity = 2 * node->capacity + 4;
    }
    child->name = name;
    node->children[node->count++] = child;
    return child;
}

static bool name_check(struct compile *compile, struct slice name, struct slice path)
{
    if (!name.len)
        return mongo_error_set(compile->err, path.len ? 15998 : 40352,
                               path.len ? "FieldPath field names may not be empty strings."
                                        : "FieldPath cannot be constructed with empty string");
    if (name.data[0] == '$')
        return mongo_error_set(compile->err, 16410,
                               "FieldPath field names may not start with '$'. Consider using "
                               "$getField or $setField.");
    return true;
}

/* The node at a path below node; new, for a path is said once. */
static bool node_add(struct compile *compile, struct projection_node *node, struct slice path,
                     bool positional, struct projection_node **ret_node)
{
    struct slice rest = path, name, tail = SLICE_NONE;
    bool more = true;

    for (size_t depth = 0; more; depth++, rest = tail) {
        struct projection_node *child;

        more = slice_split(rest, '.', &name, &tail);
        if (!more)
            name = rest;
        if (depth >= PROJECTION_DEPTH_MAX)
            return mongo_error_set(compile->err, MONGO_OVERFLOW, "FieldPath is too long");
        if (!name_check(compile, name, path))
            return false;
        child = child_find(node, name);
        if (child && (!more || child->kind != PROJECTION_BELOW)) {
            if (!more)
                return mongo_error_set(compile->err, 31250, "Path collision at %.*s",
                                       SLICE_ARG(path));
            return mongo_error_set(compile->err, 31249,
                                   "Path collision at %.*s remaining portion %.*s", SLICE_ARG(path),
                                   SLICE_ARG(tail));
        }
        node = child ? child : child_add(compile, node, name);
        node->positional |= positional;
    }
    *ret_node = node;
    return true;
}

/* --- Including and excluding ------------------------------------------------------------------ */

static bool mode_set(struct compile *compile, enum mode mode, struct slice path)
{
    if (compile->mode == MODE_UNKNOWN)
        compile->mode = mode;
    if (compile->mode == mode)
        return true;
    return mode == MODE_INCLUDE
               ? mongo_error_set(compile->err, 31253,
                                 "Cannot do inclusion on field %.*s in exclusion projection",
                                 SLICE_ARG(path))
               : mongo_error_set(compile->err, 31254,
                                 "Cannot do exclusion on field %.*s in inclusion projection",
                                 SLICE_ARG(path));
}

static bool is_true(const struct document_value *value)
{
    double number;

    if (value->type == DOCUMENT_BOOL)
        return value->boolean;
    return document_to_double(value, &number) && number != 0;
}

static bool positional_read(struct compile *compile, struct slice path, bool include)
{
    if (!include)
        return mongo_error_set(compile->err, 31395,
                               "positional projection cannot be used with exclusion");
    if (compile->made->positional)
        return mongo_error_set(compile->err, 31276,
                               "Cannot specify more than one positional projection per query.");
    if (!compile->made->match)
        return mongo_error_set(compile->err, 51246,
                               "positional operator '.$' couldn't find a matching element in the "
                               "array, in path '%.*s'",
                               SLICE_ARG(path));
    compile->made->positional = true;
    return true;
}

static bool shown_read(struct compile *compile, struct projection_node *parent, struct slice path,
                       bool nested, const struct document_value *value)
{
    bool include = is_true(value), positional = false;
    struct projection_node *node;

    if (!nested && slice_equal(path, SLICE("_id"))) {
        compile->id_alone = true;
        compile->id_shown = include;
        return node_add(compile, parent, path, false, &node) &&
               (node->kind = include ? PROJECTION_INCLUDE : PROJECTION_EXCLUDE, true);
    }
    if (path.len > 2 && memcmp(path.data + path.len - 2, ".$", 2) == 0) {
        path.len -= 2;
        positional = true;
        if (!positional_read(compile, path, include))
            return false;
    }
    if (!mode_set(compile, include ? MODE_INCLUDE : MODE_EXCLUDE, path) ||
        !node_add(compile, parent, path, positional, &node))
        return false;
    node->kind = include ? PROJECTION_INCLUDE : PROJECTION_EXCLUDE;
    return true;
}

/* --- Operators -------------------------------------------------------------------------------- */

static bool slice_number(const struct document_value *value, int64_t *ret_number)
{
    double number;

    if (!document_is_number(value))
        return false;
    if (!document_to_int64(value, ret_number)) {
        (void)document_to_double(value, &number);
        *ret_number = number > 1e9 ? 1000000000 : number < -1e9 ? -1000000000 : (int64_t)number;
    }
    return true;
}

static bool slice_read(struct compile *compile, struct projection_node *node,
                       const struct document_value *value)
{
    struct document_value skip, limit;

    node->kind = PROJECTION_SLICE;
    if (value->type != DOCUMENT_ARRAY) {
        if (slice_number(value, &node->limit))
            return true;
        return mongo_error_set(compile->err, 31273,
                               "$slice only supports numbers and [x, y] arrays");
    }
    if (document_count(value->document) != 2 || !document_find_index(value->document, 0, &skip) ||
        !document_find_index(value->document, 1, &limit) || !slice_number(&skip, &node->skip) ||
        !slice_number(&limit, &node->limit))
        return mongo_error_set(compile->err, 31272,
                               "$slice array argument should be of form [skip, "
                               "limit]");
    if (node->limit <= 0)
        return mongo_error_set(compile->err, 31274, "$slice limit must be positive");
    node->skips = true;
    return true;
}

/* Operators hold for an element itself, a filter for an element that is an object: as in $pull. */
static bool element_read(struct compile *compile, struct projection_node *node, struct slice path,
                         const struct document_value *value)
{
    node->kind = PROJECTION_ELEMENT;
    node->computes = true;
    compile->elements = true;
    if (memchr(path.data, '.', path.len))
        return mongo_error_set(compile->err, 31275,
                               "Cannot use $elemMatch projection on a nested field.");
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 31274,
                               "elemMatch: Invalid argument, object required, but got %s",
                               mongo_type_name(value->type));
    return mongo_match_parse_pull(value, compile->options ? compile->options->collator : NULL,
                                  compile->build, &node->match, compile->err);
}

static bool expression_read(struct compile *compile, struct projection_node *node,
                            const struct document_value *value)
{
    const struct query_expression **longer;

    node->kind = PROJECTION_COMPUTED;
    node->computes = true;
    if (!compile->options || !compile->options->expression)
        return mongo_error_set(compile->err, MONGO_NOT_IMPLEMENTED,
                               "computed fields in a projection are not supported: expressions of "
                               "the aggregation language are not there yet");
    if (!compile->options->expression(compile->options->expression_self, value, compile->build,
                                      &node->expression, compile->err))
        return false;
    longer =
        ARENA_ARRAY(compile->build->arena, const struct query_expression *, compile->count + 1);
    if (compile->count)
        memcpy(longer, compile->expressions, compile->count * sizeof *longer);
    longer[compile->count++] = node->expression;
    compile->expressions = longer;
    return true;
}

/* What is computed below is known on the way there. */
static void computes_mark(struct projection_node *node, struct slice path)
{
    struct slice rest = path, name, tail;

    while (slice_split(rest, '.', &name, &tail)) {
        node = child_find(node, name);
        node->computes = true;
        rest = tail;
    }
}

static bool operator_read(struct compile *compile, struct projection_node *parent,
                          struct slice path, const struct document_value *value)
{
    struct projection_node *node;
    struct document_iter iter;

    if (value->type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, value->document);
        (void)document_iter_next(&iter);
        if (slice_equal(iter.key, SLICE("$slice")))
            return node_add(compile, parent, path, false, &node) &&
                   slice_read(compile, node, &iter.value);
        if (slice_equal(iter.key, SLICE("$elemMatch")))
            return mode_set(compile, MODE_INCLUDE, path) &&
                   node_add(compile, parent, path, false, &node) &&
                   element_read(compile, node, path, &iter.value);
        if (slice_equal(iter.key, SLICE("$meta"))) {
            if (!node_add(compile, parent, path, false, &node) ||
                !expression_read(compile, node, value))
                return false;
            computes_mark(parent, path);
            return true;
        }
    }
    if (!mode_set(compile, MODE_INCLUDE, path) || !node_add(compile, parent, path, false, &node) ||
        !expression_read(compile, node, value))
        return false;
    computes_mark(parent, path);
    return true;
}

static bool is_operators(struct slice object)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool fields_read(struct compile *compile, struct projection_node *node, struct slice fields,
                        unsigned depth);

/* {a: {b: 1}} is the same as {"a.b": 1}. */
static bool nested_read(struct compile *compile, struct projection_node *parent, struct slice path,
                        const struct document_value *value, unsigned depth)
{
    struct projection_node *node =
        memchr(path.data, '.', path.len) ? NULL : child_find(parent, path);

    if (depth >= PROJECTION_DEPTH_MAX)
        return mongo_error_set(compile->err, MONGO_OVERFLOW,
                               "a projection is nested deeper than %d levels",
                               PROJECTION_DEPTH_MAX);
    if (document_count(value->document) == 0)
        return mongo_error_set(
            compile->err, 51270,
            "An empty sub-projection is not a valid value. Found empty object at "
            "path");
    if ((!node || node->kind != PROJECTION_BELOW) && !node_add(compile, parent, path, false, &node))
        return false;
    if (!fields_read(compile, node, value->document, depth + 1))
        return false;
    for (size_t i = 0; i < node->count; i++)
        node->computes |= node->children[i]->computes;
    if (node->computes)
        computes_mark(parent, path);
    return true;
}

static bool fields_read(struct compile *compile, struct projection_node *node, struct slice fields,
                        unsigned depth)
{
    struct document_iter iter;
    bool read;

    document_iter_init(&iter, fields);
    while (document_iter_next(&iter)) {
        if (++compile->fields > PROJECTION_FIELDS_MAX)
            return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                                   "a projection has more than %d fields", PROJECTION_FIELDS_MAX);
        if (!iter.key.len)
            return name_check(compile, iter.key, iter.key);
        if (document_is_number(&iter.value) || iter.value.type == DOCUMENT_BOOL)
            read = shown_read(compile, node, iter.key, depth > 0, &iter.value);
        else if (iter.value.type == DOCUMENT_OBJECT && !is_operators(iter.value.document))
            read = nested_read(compile, node, iter.key, &iter.value, depth);
        else
            read = operator_read(compile, node, iter.key, &iter.value);
        if (!read)
            return false;
    }
    return true;
}

bool mongo_projection_compile(struct slice projection, const struct mongo_match_options *options,
                              const struct mongo_match *match, struct query_build *build,
                              const struct mongo_projection **ret_projection, struct error *err)
{
    struct compile compile = {.options = options, .build = build, .err = err};

    compile.made = ARENA_NEW(build->arena, struct mongo_projection);
    compile.root = ARENA_NEW(build->arena, struct projection_node);
    compile.made->match = match;
    compile.made->slot = options ? options->slot : 0;
    if (!fields_read(&compile, compile.root, arena_copy(build->arena, projection), 0))
        return false;
    if (compile.elements && compile.made->positional)
        return mongo_error_set(err, 31256, "Cannot specify positional operator and $elemMatch.");
    if (build->failed) {
        *err = build->error;
        return false;
    }
    compile.made->root = compile.root;
    compile.made->whole = compile.root->count == 0;
    compile.made->including =
        compile.mode == MODE_INCLUDE ||
        (compile.mode == MODE_UNKNOWN && compile.id_alone && compile.id_shown);
    compile.made->shows_id = !compile.id_alone || compile.id_shown;
    compile.made->expressions = compile.expressions;
    compile.made->expression_count = compile.count;
    *ret_projection = compile.made;
    return true;
}

bool mongo_projection_is_whole(const struct mongo_projection *projection)
{
    return projection->whole;
}
