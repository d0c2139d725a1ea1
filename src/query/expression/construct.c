/* Objects and arrays made from expressions, and user functions' argument lists: BSON is written
 * straight into the context's scratch, a stack that inner constructions use above the outer. */
#include "document/bson.h"
#include "query/expression/expression.h"
#include "query/value/compare.h"
#include "query/value/set.h"

static bool shows(const struct query_context *context, const struct document_value *value)
{
    return query_value_shows(value) || (context->keep_nonfinite && value->type == DOCUMENT_DOUBLE);
}

static bool array_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    uint32_t index = 0;

    for (size_t i = 0; i < expression->child_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(expression->children[i], context, &value, err))
            return query_build_drop(context, mark);
        if (shows(context, &value) &&
            !query_build_append(context, document_index_key(index++, text), &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

const struct query_kind query_kind_array = {"array", array_evaluate, QUERY_STABLE};

const struct query_expression *
query_array(struct query_build *build, const struct query_expression *const *elements, size_t count)
{
    return query_fold(build, query_node(build, &query_kind_array, sizeof(struct query_expression),
                                        elements, count));
}

static bool object_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct query_object *node = (const struct query_object *)expression;
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);

    for (size_t i = 0; i < expression->child_count; i++) {
        struct document_value value;

        if (!query_evaluate(expression->children[i], context, &value, err))
            return query_build_drop(context, mark);
        if (shows(context, &value) && !query_build_append(context, node->names[i], &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

const struct query_kind query_kind_object = {"object", object_evaluate, QUERY_STABLE};

/* Names are found by hash: a hostile query may have very many. */
static bool names_check(struct query_build *build, const struct slice *names, size_t count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_set seen;

    query_set_init(&seen, build->order, arena, count);
    for (size_t i = 0; i < count; i++) {
        struct document_value name = document_string(names[i]);
        bool is_new;

        if (names[i].len && memchr(names[i].data, 0, names[i].len)) {
            query_build_fail(build, ERROR_BAD_REQUEST, "a property name holds a NUL");
            return false;
        }
        query_set_add(&seen, &name, &is_new);
        if (!is_new) {
            query_build_fail(build, ERROR_DUPLICATE_PROPERTY, "property \"%.*s\" is named twice",
                             (int)MIN(names[i].len, (size_t)100), (const char *)names[i].data);
            return false;
        }
    }
    return true;
}

const struct query_expression *query_object(struct query_build *build, const struct slice *names,
                                            const struct query_expression *const *values,
                                            size_t count)
{
    struct query_object *node = query_node(build, &query_kind_object, sizeof *node, values, count);
    struct slice *copies = ARENA_ARRAY(build->arena, struct slice, count ? count : 1);

    if (!names_check(build, names, count))
        return query_constant(build, document_undefined());
    for (size_t i = 0; i < count; i++)
        copies[i] = arena_copy(build->arena, names[i]);
    node->names = copies;
    return query_fold(build, &node->head);
}
