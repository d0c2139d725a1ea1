/* JavaScript in filters and pipelines: $where, $function and $accumulator, as calls of functions of
 * users (query/value/context.h, struct query_udf_host).
 *
 * The name of such a call is the whole text that a worker is given (prelude.js around that of the
 * user), so whoever serves it needs to know nothing of operators. A build notes in `script` by
 * which operator it calls any; whether that may be run is said by whoever compiles. */
#pragma once

#include "front/mongo/expression/expression.h"

/* $where of a filter, for match.h: code is a string or code, true for documents it holds for. self
 * is unused; documents stand in slot 0. */
bool mongo_where_hook(void *self, const struct document_value *code, struct query_build *build,
                      const struct query_expression **ret_expression, struct error *err);
