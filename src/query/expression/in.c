/* IN: the OR of equalities, with the constants found by hash.
 *
 * An equality across types is undefined, and so is the OR when none is true and one is undefined.
 * So a value that is not found is known not to be in the list only if every candidate has its type;
 * the classes of the constants are kept as a mask for that. */
#include "query/expression/imply.h"
#include "query/value/compare.h"
#include "query/value/set.h"
#include "query/value/value.h"

enum { VALUE_BYTES_SHIFT = 6 }; /* bytes walked for a unit of work */

struct in_node {
    struct query_expression head;
    struct query_set constants;
    uint64_t classes;       /* of the constants, a bit each; undefined included */
    const uint32_t *others; /* children that are not constant */
    uint32_t other_count;
};

static bool others_evaluate(const struct in_node *node, const struct document_value *value,
                            struct query_context *context, enum query_truth *truth,
                            struct error *err)
{
    for (uint32_t i = 0; i < node->other_count; i++) {
        struct document_value candidate;
        enum query_truth equal;

        if (!query_evaluate(node->head.children[node->others[i]], context, &candidate, err) ||
            !query_work(context, query_value_bytes(value) >> VALUE_BYTES_SHIFT, err))
            return false;
        equal = query_values_equal(context->order, value, &candidate);
        if (equal == QUERY_TRUE) {
            *truth = QUERY_TRUE;
            return true;
        }
        if (equal == QUERY_UNKNOWN)
            *truth = QUERY_UNKNOWN;
    }
    return true;
}

static bool in_evaluate(const struct query_expression *expression, struct query_context *context,
                        struct document_value *ret_value, struct error *err)
{
    const struct in_node *node = (const struct in_node *)expression;
    enum query_truth truth = QUERY_FALSE;
    struct document_value value;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    *ret_value = document_undefined();
    if (value.type == DOCUMENT_UNDEFINED)
        return true;
    if (!query_work(context, query_value_bytes(&value) >> VALUE_BYTES_SHIFT, err))
        return false;
    if (node->constants.count && query_set_find(&node->constants, &value) != SIZE_MAX) {
        *ret_value = document_bool(true);
        return true;
    }
    if (node->classes & ~((uint64_t)1 << query_class_of(&value)))
        truth = QUERY_UNKNOWN;
    if (!others_evaluate(node, &value, context, &truth, err))
        return false;
    *ret_value = query_truth_value(truth);
    return true;
}

static const struct query_implied *in_imply(const struct query_expression *expression,
                                            const struct query_implying *implying, bool truth)
{
    const struct in_node *node = (const struct in_node *)expression;
    struct query_operand value = query_operand_of(implying, expression->children[0]);

    if (!truth || node->other_count)
        return NULL;
    return query_implied_points(implying, &value, node->constants.values, node->constants.count);
}

const struct query_kind query_kind_in = {"in", in_evaluate, QUERY_STABLE, in_imply};

const struct query_expression *query_in(struct query_build *build,
                                        const struct query_expression *value,
                                        const struct query_expression *const *candidates,
                                        size_t count)
{
    const struct query_expression **children;
    struct in_node *node;
    uint32_t *others;

    if (count > QUERY_IN_MAX)
        return query_build_fail(build, ERROR_TOO_LARGE, "IN has %zu values, more than %d", count,
                                QUERY_IN_MAX);
    children = ARENA_ARRAY(build->arena, const struct query_expression *, count + 1);
    others = ARENA_ARRAY(build->arena, uint32_t, count + 1);
    children[0] = value;
    if (count)
        memcpy(children + 1, candidates, count * sizeof *children);
    node = query_node(build, &query_kind_in, sizeof *node, children, count + 1);
    query_set_init(&node->constants, build->order, build->arena, count);
    node->others = others;
    for (size_t i = 1; i <= count; i++) {
        bool is_new;

        if (query_is_constant(children[i])) {
            const struct document_value *constant = query_constant_value(children[i]);

            node->classes |= (uint64_t)1 << query_class_of(constant);
            if (constant->type != DOCUMENT_UNDEFINED)
                query_set_add(&node->constants, constant, &is_new);
        } else {
            others[node->other_count++] = (uint32_t)i;
        }
    }
    return query_fold(build, &node->head);
}
