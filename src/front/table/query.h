/* Queries over entities and over tables. */
#pragma once

#include "front/table/call.h"
#include "front/table/filter.h"

/* Runs the query of the call's parameters over a table and appends the answer to body; header
 * lines for where it goes on are appended to lines. Blocks. */
NODISCARD bool table_query_run(struct table_call *call, struct slice table, struct buf *lines,
                               struct buf *body, struct error *err);
