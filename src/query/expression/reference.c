#include "query/expression/reference.h"

#include "query/value/value.h"

static bool reference_evaluate(const struct query_expression *expression,
                               struct query_context *context, struct document_value *ret_value,
                               struct error *err)
{
    const struct query_reference_node *node = (const struct query_reference_node *)expression;
    struct document_value keys[QUERY_REFERENCE_KEYS_MAX];
    struct document_value items = document_undefined();

    if (!context->reference.find)
        return error_set(err, ERROR_QUERY_NOT_SUPPORTED,
                         "reference containers cannot be joined here");
    for (uint32_t i = 0; i < expression->child_count; i++) {
        if (!query_evaluate(expression->children[i], context, &keys[i], err))
            return false;
        if (keys[i].type == DOCUMENT_UNDEFINED) {
            *ret_value = document_undefined();
            return true;
        }
    }
    if (!context->reference.find(context->reference.self, node->number, keys,
                                 expression->child_count, context, &items, err))
        return false;
    if (items.type == DOCUMENT_ARRAY) {
        context->joined_items += document_count(items.document);
        context->joined_bytes += items.document.len;
    }
    *ret_value = items;
    return query_work(context, 1 + query_value_bytes(&items) / 16, err);
}

const struct query_kind query_kind_reference = {"reference", reference_evaluate, QUERY_UNSTABLE};

const struct query_expression *query_reference_new(struct query_build *build, size_t number,
                                                   const struct query_expression *const *keys,
                                                   size_t count)
{
    struct query_reference_node *node;

    assert(count <= QUERY_REFERENCE_KEYS_MAX);
    node = query_node(build, &query_kind_reference, sizeof *node, keys, count);
    node->number = number;
    return &node->head;
}
