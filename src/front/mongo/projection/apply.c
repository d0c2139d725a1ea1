/* A projection at work: the document is walked with the tree, fields in the order they are stored;
 * what is computed comes behind them. */
#include "front/mongo/projection/projection_private.h"

enum { NAMES_PER_WORK_SHIFT = 4 };

struct apply {
    const struct mongo_projection *projection;
    struct query_context *context;
    struct error *err;
    int64_t position; /* the element that `$` stands for */
};

static bool object_write(struct apply *apply, const struct projection_node *node,
                         struct slice object, bool positional, struct buf *out);

/* --- Arrays ----------------------------------------------------------------------------------- */

static bool array_slice(const struct projection_node *node, struct slice array, struct slice key,
                        struct buf *out)
{
    int64_t count = (int64_t)document_count(array), from = 0, to, i = 0;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t written = 0;
    size_t begin;

    if (node->skips) {
        from = node->skip < 0 ? MAX(count + node->skip, INT64_C(0)) : MIN(node->skip, count);
        to = MIN(count, from + MIN(node->limit, count));
    } else if (node->limit < 0) {
        from = MAX(count + node->limit, INT64_C(0));
        to = count;
    } else {
        to = MIN(node->limit, count);
    }
    begin = document_append_array_begin(out, key);
    document_iter_init(&iter, array);
    for (; i < to && document_iter_next(&iter); i++)
        if (i >= from)
            document_append(out, document_index_key(written++, text), &iter.value);
    document_end(out, begin);
    return true;
}

/* Each element that is an object with what is said of its fields; others stay where fields are left
 * out, and go where fields are chosen. At the first array on the way to `$` one element stays. */
static bool array_write(struct apply *apply, const struct projection_node *node, struct slice array,
                        bool positional, struct slice key, struct buf *out)
{
    size_t begin = document_append_array_begin(out, key);
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t written = 0;

    document_iter_init(&iter, array);
    for (int64_t i = 0; document_iter_next(&iter); i++) {
        struct slice place = document_index_key(written, text);

        if (positional && i != apply->position)
            continue;
        if (!query_work(apply->context, 1, apply->err))
            return false;
        if (node->kind == PROJECTION_INCLUDE) {
            document_append(out, place, &iter.value);
        } else if (iter.value.type == DOCUMENT_OBJECT) {
            size_t inner = document_append_object_begin(out, place);

            if (!object_write(apply, node, iter.value.document, false, out))
                return false;
            document_end(out, inner);
        } else if (iter.value.type == DOCUMENT_ARRAY) {
            if (!array_write(apply, node, iter.value.document, false, place, out))
                return false;
        } else if (!apply->projection->including) {
            document_append(out, place, &iter.value);
        } else {
            continue;
        }
        written++;
    }
    document_end(out, begin);
    return true;
}

static bool element_write(struct apply *apply, const struct projection_node *node,
                          const struct document_value *value, struct buf *out)
{
    struct document_iter iter;
    bool holds = false;
    size_t begin;

    if (value->type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, value->document);
    while (!holds && document_iter_next(&iter))
        if (!mongo_match_holds(node->match, &iter.value, apply->context, &holds, apply->err))
            return false;
    if (!holds)
        return true;
    begin = document_append_array_begin(out, node->name);
    document_append(out, SLICE("0"), &iter.value);
    document_end(out, begin);
    return true;
}

/* --- Fields ----------------------------------------------------------------------------------- */

static bool below_write(struct apply *apply, const struct projection_node *node,
                        const struct document_value *value, bool positional, struct buf *out)
{
    size_t begin;

    if (value->type == DOCUMENT_ARRAY)
        return array_write(apply, node, value->document, positional && node->positional, node->name,
                           out);
    if (value->type != DOCUMENT_OBJECT) {
        if (!apply->projection->including)
            document_append(out, node->name, value);
        return true;
    }
    begin = document_append_object_begin(out, node->name);
    if (!object_write(apply, node, value->document, positional, out))
        return false;
    document_end(out, begin);
    return true;
}

static bool field_write(struct apply *apply, const struct projection_node *node,
                        const struct document_value *value, bool positional, struct buf *out)
{
    switch (node->kind) {
    case PROJECTION_INCLUDE:
        if (positional && node->positional && value->type == DOCUMENT_ARRAY)
            return array_write(apply, node, value->document, true, node->name, out);
        document_append(out, node->name, value);
        return true;
    case PROJECTION_SLICE:
        if (value->type == DOCUMENT_ARRAY)
            return array_slice(node, value->document, node->name, out);
        document_append(out, node->name, value);
        return true;
    case PROJECTION_BELOW:
        return below_write(apply, node, value, positional, out);
    default: /* excluded, or computed behind the others */
        return true;
    }
}

static const struct projection_node *child_find(const struct projection_node *node,
                                                struct slice name)
{
    for (size_t i = 0; i < node->count; i++)
        if (slice_equal(node->children[i]->name, name))
            return node->children[i];
    return NULL;
}

static bool computed_write(struct apply *apply, const struct projection_node *node,
                           struct slice object, struct buf *out)
{
    struct document_value value;
    size_t begin;

    if (node->kind == PROJECTION_ELEMENT)
        return !document_find(object, node->name, &value) ||
               element_write(apply, node, &value, out);
    if (node->kind == PROJECTION_COMPUTED) {
        if (!query_evaluate(node->expression, apply->context, &value, apply->err))
            return false;
        if (value.type != DOCUMENT_UNDEFINED)
            document_append(out, node->name, &value);
        return true;
    }
    /* What is computed below a field that is not there. */
    if (node->kind != PROJECTION_BELOW || document_find(object, node->name, &value))
        return true;
    begin = document_append_object_begin(out, node->name);
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->computes &&
            !computed_write(apply, node->children[i], SLICE("\5\0\0\0\0"), out))
            return false;
    document_end(out, begin);
    return true;
}

static bool object_write(struct apply *apply, const struct projection_node *node,
                         struct slice object, bool positional, struct buf *out)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        const struct projection_node *child = child_find(node, iter.key);

        if (!query_work(apply->context, node->count >> NAMES_PER_WORK_SHIFT, apply->err))
            return false;
        if (child) {
            if (!field_write(apply, child, &iter.value, positional, out))
                return false;
        } else if (!apply->projection->including ||
                   (node == apply->projection->root && apply->projection->shows_id &&
                    slice_equal(iter.key, SLICE("_id")))) {
            document_append(out, iter.key, &iter.value);
        }
    }
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->computes && !computed_write(apply, node->children[i], object, out))
            return false;
    return true;
}

/* --- The contract ----------------------------------------------------------------------------- */

static bool position_find(struct apply *apply, const struct document_value *document)
{
    bool holds;

    if (!mongo_match_position(apply->projection->match, document, apply->context, &holds,
                              &apply->position, apply->err))
        return false;
    if (apply->position >= 0)
        return true;
    return mongo_error_set(apply->err, 51246,
                           "Executor error during find command :: caused by :: positional operator "
                           "'.$' couldn't find a matching element in the array");
}

bool mongo_projection_apply(const struct mongo_projection *projection,
                            const struct document_value *document, struct query_context *context,
                            struct document_value *ret_value, struct error *err)
{
    CLEANUP(buf_done) struct buf out = {0};
    struct apply apply = {projection, context, err, -1};
    size_t begin;
    uint8_t *bytes;

    if (projection->whole || document->type != DOCUMENT_OBJECT) {
        *ret_value = *document;
        return true;
    }
    if (projection->positional && !position_find(&apply, document))
        return false;
    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (!object_write(&apply, projection->root, document->document, true, &out))
        return false;
    document_end(&out, begin);
    if (buf_overflowed(&out))
        return error_set(err, ERROR_TOO_LARGE, "a projected document is over the limit");
    bytes = query_alloc(context, out.len, err);
    if (!bytes)
        return false;
    memcpy(bytes, out.data, out.len);
    *ret_value = document_object(slice_of(bytes, out.len));
    return true;
}

struct projection_expression {
    struct query_expression head; /* children: the variable, then what is computed */
    const struct mongo_projection *projection;
};

static bool expression_evaluate(const struct query_expression *expression,
                                struct query_context *context, struct document_value *ret_value,
                                struct error *err)
{
    const struct mongo_projection *projection =
        ((const struct projection_expression *)expression)->projection;

    return mongo_projection_apply(projection, &context->slots[projection->slot].value, context,
                                  ret_value, err);
}

static const struct query_kind kind_projection = {"projection", expression_evaluate, QUERY_STABLE,
                                                  NULL};

const struct query_expression *
mongo_projection_expression(const struct mongo_projection *projection, struct query_build *build)
{
    const struct query_expression **children = ARENA_ARRAY(
        build->arena, const struct query_expression *, projection->expression_count + 1);
    struct projection_expression *node;

    children[0] = query_variable(build, projection->slot);
    if (projection->expression_count)
        memcpy(children + 1, projection->expressions,
               projection->expression_count * sizeof *children);
    node = query_node(build, &kind_projection, sizeof *node, children,
                      projection->expression_count + 1);
    node->projection = projection;
    return &node->head;
}
