/* Filters of commands, for plans over items and for lists at hand. */
#pragma once

#include "front/mongo/command/call.h"
#include "query/run.h"

/* The filter as an expression over slot 0. *ret_filter NULL: it is empty, or absent. */
NODISCARD bool mongo_filter_compile(struct slice filter, struct query_build *build,
                                    const struct query_expression **ret_filter, struct error *err);

/* Does the value of a field of a filter stand for itself and for nothing else? Operators, patterns,
 * arrays and null do not. */
bool mongo_filter_is_plain(const struct document_value *value);

/* Those of the documents that the filter holds for, in their order, in the arena. */
NODISCARD bool mongo_filter_documents(struct mongo_call *call, struct slice filter,
                                      struct slice *documents, size_t *count, struct error *err);
