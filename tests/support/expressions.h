/* Expressions for tests, from a short notation, so that a case is one line:
 *
 *     LEFT('abc', 2)           a built-in function; 'texts' are JSON strings in single quotes
 *     eq(c.a, 5)               an operator: eq ne lt le gt ge, add sub mul div mod, band bor bxor
 *                              shl shr ushr, cat, plus neg bnot, and or not, if coalesce between in
 *                              like, index
 *     array(1, c.a)            an array made when evaluated; object('n', c.a) likewise
 *     [1, {'a': 2}]            a constant
 *     c.a.b[0]                 a path; c, x, y, z are the slots 0 to 3
 *     undefined NaN Infinity -Infinity
 */
#pragma once

#include "query/expression/expression.h"

enum { EXPRESSION_SLOTS = 64 };

struct expression_case {
    const char *text; /* in the notation above */
    const char
        *expected; /* JSON in single quotes, or undefined, NaN, Infinity, or an error's name */
};

/* Builds the expression; fails the test where the text is none. With slots, every constant is put
 * into one of these, from slot 4 on, and read as a variable: nothing is folded. */
const struct query_expression *expression_of(struct query_build *build, const char *text,
                                             struct query_slot *slots);

/* The value as the notation has it, in the arena. */
const char *expression_print(const struct document_value *value, struct arena *arena);

/* Evaluates with slot 0 standing for the JSON object (NULL: {}), prints the value, or the name of
 * the error's code. */
const char *expression_result(const char *text, const char *item, bool folded, struct arena *arena);

/* Every case, folded and not, over the item. */
void expression_cases(const struct expression_case *cases, size_t count, const char *item);
