/* Testing values against predicates (special.h). */
#pragma once

#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/special.h"
#include "query/value/context.h"

/* Does a value satisfy a predicate whose values are values (no labels, no traversals)? The context
 * keeps compiled regular expressions and counts their work; only regex and notRegex use it, and
 * only they fail (ERROR_QUERY_LIMIT, ERROR_GREMLIN_COMPILE). */
NODISCARD bool gremlin_predicate_test(const struct gremlin_predicate *predicate,
                                      struct gremlin_value value, struct query_context *context,
                                      enum gremlin_truth *ret_truth, struct error *err);

/* Can it be tested at all? ERROR_GREMLIN_COMPILE for a regular expression that does not compile, a
 * text predicate of something else, an unknown type's name. Ask once, when compiling. */
NODISCARD bool gremlin_predicate_check(const struct gremlin_predicate *predicate,
                                       struct query_context *context, struct error *err);

/* typeOf: is the value of this type, a word of GType? */
bool gremlin_is_of_type(struct gremlin_value value, enum gremlin_enum_word type);
