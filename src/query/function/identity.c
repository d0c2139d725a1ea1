/* The identity of an item as clients of JSON see it, where it is not the text that they take it
 * for: c.id is this of c._id. A text means one value (document/extended.h), so that it is found by
 * the index of the identity, and in a logical partition by key; numbers that are equal may have
 * different texts, so that it is looked at again. */
#include "document/extended.h"
#include "query/function/function.h"
#include "query/value/condition.h"

static bool identity_evaluate(const struct document_value *arguments, size_t count UNUSED,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err UNUSED)
{
    *ret_value = document_string(document_extended_text(&arguments[0], context->arena));
    return true;
}

static const struct query_implied *identity_imply_result(const struct query_operand *operand,
                                                         const struct document_value *value,
                                                         const struct query_implying *implying)
{
    struct document_value identity;

    if (value->type != DOCUMENT_STRING)
        return query_implied_never(implying);
    identity = document_extended_of_text(value->text, implying->arena);
    return query_implied_inexact(implying, query_implied_points(implying, operand, &identity, 1));
}

const struct query_function query_function_identity = {"identity",
                                                       1,
                                                       1,
                                                       false,
                                                       QUERY_STABLE,
                                                       identity_evaluate,
                                                       .imply_result = identity_imply_result};
