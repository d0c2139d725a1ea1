/* Print: a syntax tree as query text again.
 *
 * The text parses to an equal tree (sql_query_equal). Every unary and binary expression stands in
 * parentheses, as in what the service prints; names that are no plain words stand in brackets and
 * quotes; parameters stay parameters. One line, keywords in capitals. */
#pragma once

#include "base/buf.h"
#include "front/rest/sql/ast.h"

void sql_print(const struct sql_query *query, struct buf *buf);
void sql_print_expr(const struct sql_expr *expr, struct buf *buf);
