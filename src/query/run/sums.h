/* Sums of an index: what a kind keeps besides entries (index/definition.h), added up over all
 * logical partitions of the container, as part of a query: on its budget and at its moment. One
 * counter is read for each logical partition, no item. */
#pragma once

#include "index/definition.h"
#include "query/run.h"

/* The full-text index that has the terms at this path of all items, with its sums; NULL: there is
 * none, it is still being made, or items expire, which sums do not know of. */
const struct index_definition *query_text_index(const struct item_space *space,
                                                const struct document_path *path);

/* Adds up the sums of that name. Of the request space, meters, call, paid, partial, arena,
 * limits.cancelled and limits.deadline_ms count. Errors as of query_run. */
NODISCARD bool query_sums_run(const struct query_request *request,
                              const struct index_definition *definition, struct slice name,
                              int64_t ret_amounts[INDEX_SUM_NUMBERS], struct query_page *ret_page,
                              struct error *err);
