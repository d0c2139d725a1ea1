#include "query/stage/tuple.h"

static bool tuple_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);

    for (uint32_t i = 0; i < expression->child_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(expression->children[i], context, &value, err))
            return query_build_drop(context, mark);
        /* However deep it is: nobody but us sees what is around it. */
        document_append(&context->scratch, document_index_key(i, text), &value);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind kind_tuple = {"tuple", tuple_evaluate, QUERY_STABLE};

const struct query_expression *query_tuple_of(struct query_build *build,
                                              const struct query_expression *const *values,
                                              size_t count)
{
    return query_node(build, &kind_tuple, sizeof(struct query_expression), values, count);
}

const struct query_expression *query_tuple(struct query_build *build, const uint32_t *slots,
                                           size_t count)
{
    const struct query_expression **values =
        ARENA_ARRAY(build->arena, const struct query_expression *, count + 1);

    for (size_t i = 0; i < count; i++)
        values[i] = query_variable(build, slots[i]);
    return query_tuple_of(build, values, count);
}

void query_tuple_write(const struct query_context *context, const uint32_t *slots, size_t count,
                       struct buf *buf)
{
    size_t begin = document_begin(buf);

    for (uint32_t i = 0; i < count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        assert(slots[i] < context->slot_count && !context->slots[slots[i]].hidden);
        document_append(buf, document_index_key(i, text), &context->slots[slots[i]].value);
    }
    document_end(buf, begin);
}

void query_tuple_bind(struct query_context *context, const uint32_t *slots, size_t count,
                      struct slice tuple)
{
    struct document_iter iter;

    document_iter_init(&iter, tuple);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++)
        context->slots[slots[i]] = (struct query_slot){.value = iter.value};
}
