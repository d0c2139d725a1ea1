/* What belongs to no family. */
#include "front/mongo/expression/expression_private.h"

enum { TICKS_PER_MS = 10000 };

bool expression_now(const struct query_expression *expression, struct query_context *context,
                    struct document_value *ret_value, struct error *err)
{
    (void)expression;
    (void)err;
    *ret_value = document_date(context->now_ticks / TICKS_PER_MS);
    return true;
}
