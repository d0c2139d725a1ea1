/* A specification becomes a tree of names; a document is walked with it, fields in the order they
 * are stored. What is computed sees the whole document as it was before, and takes the place of a
 * field that stays ($addFields) or comes behind the others ($project). */
#include "front/mongo/pipeline/shape.h"

#include "query/value/value.h"

enum { SHAPE_DEPTH_MAX = 100, SHAPE_FIELDS_MAX = 10000, NAMES_PER_WORK_SHIFT = 4 };

enum shape_kind { SHAPE_BELOW, SHAPE_INCLUDE, SHAPE_EXCLUDE, SHAPE_COMPUTED };

struct shape_node {
    enum shape_kind kind;
    struct slice name;
    struct shape_node **children;
    size_t count, capacity;
    bool computes; /* a field here or below */
    const struct query_expression *expression;
};

struct shape {
    struct query_expression head;
    const struct shape_node *root;
    uint32_t slot;
    bool including; /* what is not named goes */
    bool drops_id;  /* though it was not named */
};

/* --- Compiling ------------------------------------------------------------------------------- */

enum shaping { SHAPING_PROJECT, SHAPING_ADD, SHAPING_UNSET };

struct compile {
    enum shaping shaping;
    const char *name; /* of the stage */
    const struct mongo_expression_options *options;
    struct query_build *build;
    struct shape_node *root;
    bool decided, including;
    bool id_excluded, id_included; /* by itself, while the rest says otherwise */
    const struct query_expression **expressions;
    size_t expression_count, expression_capacity, fields;
    struct error *err;
};

static bool refuse(struct compile *c, int code, const char *text, struct slice path)
{
    if (c->shaping == SHAPING_UNSET)
        return mongo_error_set(c->err, code, "Invalid $unset :: caused by :: %s%.*s", text,
                               (int)MIN(path.len, (size_t)80), (const char *)path.data);
    return mongo_error_set(c->err, code, "Invalid %s :: caused by :: %s%.*s", c->name, text,
                           (int)MIN(path.len, (size_t)80), (const char *)path.data);
}

static struct shape_node *node_new(struct compile *c, struct shape_node *parent, struct slice name)
{
    struct arena *arena = c->build->arena;
    struct shape_node *node = ARENA_NEW(arena, struct shape_node);

    node->name = arena_copy(arena, name);
    if (parent->count == parent->capacity) {
        struct shape_node **before = parent->children;

        parent->capacity = parent->capacity ? 2 * parent->capacity : 4;
        parent->children = ARENA_ARRAY(arena, struct shape_node *, parent->capacity);
        if (parent->count)
            memcpy(parent->children, before, parent->count * sizeof *before);
    }
    parent->children[parent->count++] = node;
    return node;
}

static struct shape_node *child_find(const struct shape_node *node, struct slice name)
{
    for (size_t i = 0; i < node->count; i++)
        if (slice_equal(node->children[i]->name, name))
            return node->children[i];
    return NULL;
}

static bool name_check(struct compile *c, struct slice name, struct slice path)
{
    if (!name.len)
        return refuse(c, path.len ? 15998 : 40352,
                      path.len ? "FieldPath field names may not be empty strings."
                               : "FieldPath cannot be constructed with empty string",
                      SLICE(""));
    if (name.data[0] == '$')
        return refuse(c, 16410,
                      "FieldPath field names may not start with '$'. Consider using $getField or "
                      "$setField.",
                      SLICE(""));
    return true;
}

static bool collision(struct compile *c, struct slice path)
{
    if (c->shaping == SHAPING_ADD)
        return refuse(c, 40176,
                      "specification contains two conflicting paths. Cannot specify both: ", path);
    return refuse(c, 31250, "Path collision at ", path);
}

/* The node of a dotted path below parent, made; one that is there already is a collision, unless
 * both only lead on. */
static bool path_make(struct compile *c, struct shape_node *parent, struct slice path,
                      struct shape_node **ret_node)
{
    struct slice rest = path, head, tail;
    unsigned depth = 0;

    if (++c->fields > SHAPE_FIELDS_MAX)
        return refuse(c, MONGO_BAD_VALUE, "too many fields", SLICE(""));
    for (;;) {
        bool last = !slice_split(rest, '.', &head, &tail);
        struct shape_node *child;

        if (last)
            head = rest;
        if (!name_check(c, head, path))
            return false;
        if (++depth > SHAPE_DEPTH_MAX)
            return refuse(c, MONGO_OVERFLOW, "a path has too many fields", SLICE(""));
        child = child_find(parent, head);
        if (child && (last || child->kind != SHAPE_BELOW))
            return collision(c, path);
        parent = child ? child : node_new(c, parent, head);
        if (last)
            break;
        rest = tail;
    }
    *ret_node = parent;
    return true;
}

static void expression_keep(struct compile *c, const struct query_expression *expression)
{
    if (c->expression_count == c->expression_capacity) {
        const struct query_expression **before = c->expressions;

        c->expression_capacity = c->expression_capacity ? 2 * c->expression_capacity : 8;
        c->expressions =
            ARENA_ARRAY(c->build->arena, const struct query_expression *, c->expression_capacity);
        if (c->expression_count)
            memcpy(c->expressions, before, c->expression_count * sizeof *before);
    }
    c->expressions[c->expression_count++] = expression;
}

static bool is_truth(const struct document_value *value, bool *ret_truth)
{
    double number;

    if (value->type == DOCUMENT_BOOL)
        *ret_truth = value->boolean;
    else if (document_is_number(value) && document_to_double(value, &number))
        *ret_truth = number != 0;
    else
        return false;
    return true;
}

static bool is_operator(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool decide(struct compile *c, bool including, bool computed, struct slice path, bool is_id)
{
    if (is_id && !computed) {
        *(including ? &c->id_included : &c->id_excluded) = true;
        return true;
    }
    if (!c->decided) {
        c->decided = true;
        c->including = including;
        return true;
    }
    if (c->including == including)
        return true;
    if (computed)
        return refuse(c, 31252, "Cannot use an expression in an exclusion projection: ", path);
    return including
               ? refuse(c, 31253, "Cannot do inclusion on field in exclusion projection: ", path)
               : refuse(c, 31254, "Cannot do exclusion on field in inclusion projection: ", path);
}

static bool compute(struct compile *c, struct shape_node *parent, struct slice name,
                    const struct document_value *value)
{
    struct shape_node *node;

    if (!path_make(c, parent, name, &node))
        return false;
    node->kind = SHAPE_COMPUTED;
    if (!mongo_expression_compile(value, c->options, c->build, &node->expression, c->err))
        return false;
    expression_keep(c, node->expression);
    return true;
}

static bool fields_compile(struct compile *c, struct shape_node *parent, struct slice fields,
                           unsigned depth);

static bool below_compile(struct compile *c, struct shape_node *parent, struct slice name,
                          struct slice fields, unsigned depth)
{
    struct shape_node *node = NULL, *child;
    struct slice head, tail;

    if (depth > SHAPE_DEPTH_MAX)
        return refuse(c, MONGO_OVERFLOW, "a specification is nested too deep", SLICE(""));
    /* {a: {b: 1}, "a.c": 1}: the same name may lead on twice. */
    if (!slice_split(name, '.', &head, &tail) && (child = child_find(parent, name)) &&
        child->kind == SHAPE_BELOW && child->count)
        node = child;
    return (node || path_make(c, parent, name, &node)) && fields_compile(c, node, fields, depth);
}

static bool field_compile(struct compile *c, struct shape_node *parent, struct slice name,
                          const struct document_value *value, unsigned depth)
{
    bool is_id = parent == c->root && slice_equal(name, SLICE("_id")), truth;
    struct shape_node *node;

    if (c->shaping == SHAPING_PROJECT && is_truth(value, &truth)) {
        if (!decide(c, truth, false, name, is_id) || !path_make(c, parent, name, &node))
            return false;
        node->kind = truth ? SHAPE_INCLUDE : SHAPE_EXCLUDE;
        return true;
    }
    if (value->type == DOCUMENT_OBJECT && !is_operator(value)) {
        if (!document_count(value->document))
            return c->shaping == SHAPING_ADD
                       ? refuse(c, 40180,
                                "an empty object is not a valid value. Found empty object at path ",
                                name)
                       : refuse(c, 51270,
                                "An empty sub-projection is not a valid value. Found empty object "
                                "at path",
                                SLICE(""));
        return below_compile(c, parent, name, value->document, depth + 1);
    }
    return (c->shaping == SHAPING_ADD || decide(c, true, true, name, is_id)) &&
           compute(c, parent, name, value);
}

static bool fields_compile(struct compile *c, struct shape_node *parent, struct slice fields,
                           unsigned depth)
{
    struct document_iter iter;
    struct slice head, tail;

    document_iter_init(&iter, fields);
    while (document_iter_next(&iter)) {
        if (depth && c->shaping == SHAPING_ADD && slice_split(iter.key, '.', &head, &tail))
            return refuse(c, 40183, "cannot use dotted field name in a sub object: ", iter.key);
        if (!field_compile(c, parent, iter.key, &iter.value, depth))
            return false;
    }
    return true;
}

static bool computes_mark(struct shape_node *node)
{
    node->computes = node->kind == SHAPE_COMPUTED;
    for (size_t i = 0; i < node->count; i++)
        node->computes |= computes_mark(node->children[i]);
    return node->computes;
}

static bool shape_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err);
static const struct query_kind shape_kind = {"shape", shape_evaluate, QUERY_STABLE};

static bool shape_finish(struct compile *c, uint32_t slot,
                         const struct query_expression **ret_document)
{
    struct shape *shape;
    struct shape_node *id;

    computes_mark(c->root);
    expression_keep(c, mongo_expression_root(c->build, slot));
    shape = query_node(c->build, &shape_kind, sizeof *shape, c->expressions, c->expression_count);
    if (c->build->failed) {
        *c->err = c->build->error;
        return false;
    }
    shape->root = c->root;
    shape->slot = slot;
    if (c->shaping == SHAPING_PROJECT) {
        shape->including = c->decided ? c->including : c->id_included;
        id = child_find(c->root, SLICE("_id"));
        shape->drops_id = id && id->kind == SHAPE_EXCLUDE;
    }
    *ret_document = &shape->head;
    return true;
}

static struct compile compile_begin(enum shaping shaping, const char *name,
                                    const struct mongo_expression_options *options,
                                    struct query_build *build, struct error *err)
{
    return (struct compile){.shaping = shaping,
                            .name = name,
                            .options = options,
                            .build = build,
                            .root = ARENA_NEW(build->arena, struct shape_node),
                            .err = err};
}

bool mongo_shape_project(struct slice specification, const char *name,
                         const struct mongo_expression_options *options, struct query_build *build,
                         const struct query_expression **ret_document, struct error *err)
{
    struct compile c = compile_begin(SHAPING_PROJECT, name, options, build, err);

    if (!document_count(specification))
        return refuse(&c, 51272, "projection specification must have at least one field",
                      SLICE(""));
    return fields_compile(&c, c.root, specification, 0) &&
           shape_finish(&c, options->slot, ret_document);
}

bool mongo_shape_add(struct slice specification, const char *name,
                     const struct mongo_expression_options *options, struct query_build *build,
                     const struct query_expression **ret_document, struct error *err)
{
    struct compile c = compile_begin(SHAPING_ADD, name, options, build, err);

    if (!document_count(specification))
        return refuse(&c, 40177, "specification must have at least one field", SLICE(""));
    return fields_compile(&c, c.root, specification, 0) &&
           shape_finish(&c, options->slot, ret_document);
}

static bool path_unset(struct compile *c, const struct document_value *path, int code)
{
    struct shape_node *node;

    if (path->type != DOCUMENT_STRING)
        return mongo_error_set(c->err, code,
                               "$unset specification must be a string or an array containing only "
                               "string values");
    if (!path_make(c, c->root, path->text, &node))
        return false;
    node->kind = SHAPE_EXCLUDE;
    return true;
}

bool mongo_shape_unset(const struct document_value *paths,
                       const struct mongo_expression_options *options, struct query_build *build,
                       const struct query_expression **ret_document, struct error *err)
{
    struct compile c = compile_begin(SHAPING_UNSET, "$unset", options, build, err);
    struct document_iter iter;

    if (paths->type != DOCUMENT_ARRAY)
        return path_unset(&c, paths, 31002) && shape_finish(&c, options->slot, ret_document);
    if (!document_count(paths->document))
        return mongo_error_set(err, 31119,
                               "$unset specification must be a string or an array with at least "
                               "one field");
    document_iter_init(&iter, paths->document);
    while (document_iter_next(&iter))
        if (!path_unset(&c, &iter.value, 31120))
            return false;
    return shape_finish(&c, options->slot, ret_document);
}

bool mongo_shape_set_all(const struct slice *paths, const struct query_expression *const *values,
                         size_t count, uint32_t slot, struct query_build *build,
                         const struct query_expression **ret_document, struct error *err)
{
    struct compile c = compile_begin(SHAPING_ADD, "$addFields", NULL, build, err);

    for (size_t i = 0; i < count; i++) {
        struct shape_node *node;

        if (!path_make(&c, c.root, paths[i], &node))
            return false;
        node->kind = SHAPE_COMPUTED;
        node->expression = values[i];
        expression_keep(&c, values[i]);
    }
    return shape_finish(&c, slot, ret_document);
}

bool mongo_shape_set(struct slice path, const struct query_expression *value, uint32_t slot,
                     struct query_build *build, const struct query_expression **ret_document,
                     struct error *err)
{
    return mongo_shape_set_all(&path, &value, 1, slot, build, ret_document, err);
}

/* --- At work --------------------------------------------------------------------------------- */

struct walk {
    const struct shape *shape;
    struct query_context *context;
    struct error *err;
};

static const struct slice nothing = SLICE("\5\0\0\0\0");

static bool object_write(struct walk *walk, const struct shape_node *node, struct slice object,
                         unsigned depth);

static bool object_append(struct walk *walk, const struct shape_node *node, struct slice key,
                          struct slice object, unsigned depth)
{
    size_t begin = document_append_object_begin(&walk->context->scratch, key);

    if (!object_write(walk, node, object, depth + 1))
        return false;
    document_end(&walk->context->scratch, begin);
    return true;
}

static bool array_append(struct walk *walk, const struct shape_node *node, struct slice key,
                         struct slice array, unsigned depth)
{
    struct buf *out = &walk->context->scratch;
    size_t begin = document_append_array_begin(out, key);
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t written = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct slice place = document_index_key(written, text);

        if (!query_work(walk->context, 1, walk->err))
            return false;
        if (iter.value.type == DOCUMENT_OBJECT) {
            if (!object_append(walk, node, place, iter.value.document, depth + 1))
                return false;
        } else if (iter.value.type == DOCUMENT_ARRAY) {
            if (!array_append(walk, node, place, iter.value.document, depth + 1))
                return false;
        } else if (node->computes) { /* an object takes its place */
            if (!object_append(walk, node, place, nothing, depth + 1))
                return false;
        } else if (walk->shape->including) {
            continue;
        } else {
            document_append(out, place, &iter.value);
        }
        written++;
    }
    document_end(out, begin);
    return true;
}

static bool computed_append(struct walk *walk, const struct shape_node *node, unsigned depth)
{
    struct document_value value;

    if (!query_evaluate(node->expression, walk->context, &value, walk->err))
        return false;
    if (value.type == DOCUMENT_UNDEFINED)
        return true;
    if (!query_value_nests_within(&value, QUERY_VALUE_DEPTH_MAX - MIN(depth, 200u)))
        return error_set(walk->err, ERROR_TOO_DEEP, "a value would be nested deeper than %d levels",
                         QUERY_VALUE_DEPTH_MAX);
    document_append(&walk->context->scratch, node->name, &value);
    return true;
}

/* A field of the document that the tree says something of. *ret_done false: it is as if it were not
 * there. */
static bool field_append(struct walk *walk, const struct shape_node *node,
                         const struct document_value *value, unsigned depth, bool *ret_done)
{
    struct buf *out = &walk->context->scratch;

    *ret_done = true;
    switch (node->kind) {
    case SHAPE_INCLUDE:
        document_append(out, node->name, value);
        return true;
    case SHAPE_EXCLUDE:
        return true;
    case SHAPE_COMPUTED:
        *ret_done = !walk->shape->including;
        return walk->shape->including || computed_append(walk, node, depth);
    case SHAPE_BELOW:
        break;
    }
    if (value->type == DOCUMENT_OBJECT)
        return object_append(walk, node, node->name, value->document, depth);
    if (value->type == DOCUMENT_ARRAY)
        return array_append(walk, node, node->name, value->document, depth);
    if (node->computes && walk->shape->including)
        *ret_done = false;
    else if (node->computes)
        return object_append(walk, node, node->name, nothing, depth);
    else if (!walk->shape->including)
        document_append(out, node->name, value);
    return true;
}

static size_t child_index(const struct shape_node *node, struct slice name)
{
    for (size_t i = 0; i < node->count; i++)
        if (slice_equal(node->children[i]->name, name))
            return i;
    return SIZE_MAX;
}

static bool object_write(struct walk *walk, const struct shape_node *node, struct slice object,
                         unsigned depth)
{
    bool top = node == walk->shape->root, keeps = !walk->shape->including;
    struct query_context *context = walk->context;
    struct document_iter iter;
    bool *done = query_alloc(context, node->count + 1, walk->err);

    if (!done)
        return false;
    memset(done, 0, node->count);
    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        size_t i = child_index(node, iter.key);

        if (!query_work(context, 1 + (node->count >> NAMES_PER_WORK_SHIFT), walk->err))
            return false;
        if (i == SIZE_MAX) {
            if (keeps || (top && !walk->shape->drops_id && slice_equal(iter.key, SLICE("_id"))))
                document_append(&context->scratch, iter.key, &iter.value);
        } else if (!done[i] &&
                   !field_append(walk, node->children[i], &iter.value, depth, &done[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct shape_node *child = node->children[i];

        if (done[i] || !child->computes)
            continue;
        if (child->kind == SHAPE_COMPUTED
                ? !computed_append(walk, child, depth)
                : !object_append(walk, child, child->name, nothing, depth))
            return false;
    }
    return true;
}

static bool shape_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct shape *shape = (const struct shape *)expression;
    struct walk walk = {shape, context, err};
    const struct document_value *document = &context->slots[shape->slot].value;
    size_t mark = query_build_begin(context), begin;

    if (document->type != DOCUMENT_OBJECT) {
        *ret_value = document_undefined();
        return true;
    }
    if (!query_work(context, document->document.len >> 4, err))
        return false;
    begin = document_begin(&context->scratch);
    if (!object_write(&walk, shape->root, document->document, 1))
        return query_build_drop(context, mark);
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}
