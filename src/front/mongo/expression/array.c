/* Arrays as a whole. */
#include "front/mongo/expression/expression_private.h"

EXPRESSION_COMPUTE(expression_in)
{
    const struct document_value *array = &call->arguments[1];
    struct document_iter iter;

    if (array->type != DOCUMENT_ARRAY)
        return mongo_error_set(call->err, 40081,
                               "$in requires an array as a second argument, found: %s",
                               expression_type_name(array));
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter)) {
        if (!query_work(call->context, 1, call->err))
            return false;
        if (document_compare(DOCUMENT_ORDER_MONGO, &call->arguments[0], &iter.value) == 0)
            return expression_give(call, document_bool(true));
    }
    return expression_give(call, document_bool(false));
}
