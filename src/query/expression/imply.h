/* What expressions imply: asked of their kinds, which answer with the makers of
 * query/value/condition.h. A kind of another language does it like this:
 *
 *     static const struct query_implied *
 *     equal_imply(const struct query_expression *expression, const struct query_implying *implying,
 *                 bool truth)
 *     {
 *         struct query_operand a = query_operand_of(implying, expression->children[0]);
 *         struct query_operand each = query_operand_elements(implying, &a);
 *         const struct query_implied *sides[] = {query_implied_points(implying, &a, value, 1),
 *                                                query_implied_points(implying, &each, value, 1)};
 *
 *         return truth ? query_implied_any(implying, sides, 2) : NULL;
 *     }
 */
#pragma once

#include "query/expression/expression.h"
#include "query/value/condition.h"

/* Where the expression can be true, or, with truth false, false; undefined is neither. NULL:
 * anywhere. */
const struct query_implied *query_imply(const struct query_implying *implying,
                                        const struct query_expression *expression, bool truth);

/* What an operand is: a constant, a path of the item (through variables of sources as well), or
 * neither. Of objects and arrays that are put together only the type is told. */
struct query_operand query_operand_of(const struct query_implying *implying,
                                      const struct query_expression *expression);
