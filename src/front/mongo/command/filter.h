/* Filters of commands, for plans over items and for lists at hand. */
#pragma once

#include "front/mongo/command/call.h"
#include "query/run.h"

/* The filter as an expression over slot 0. *ret_filter NULL: it is empty, or absent. */
NODISCARD bool mongo_filter_compile(struct slice filter, struct query_build *build,
                                    const struct query_expression **ret_filter, struct error *err);

/* The value that the filter wants _id to have, if that is all it says. */
bool mongo_filter_is_id(struct slice filter, struct document_value *ret_id);

/* Those of the documents that the filter holds for, in their order, in the arena. */
NODISCARD bool mongo_filter_documents(struct mongo_call *call, struct slice filter,
                                      struct slice *documents, size_t *count, struct error *err);
