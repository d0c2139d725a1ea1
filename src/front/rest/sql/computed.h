/* Computed properties: expressions over one item that queries use by name as if they were stored.
 *
 * A container defines them as an array of {"name": "cp_x", "query": "SELECT VALUE ... FROM c"}.
 * They are no part of the item itself, so SELECT * does not show them, and they do not see each
 * other. */
#pragma once

#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"

enum { SQL_COMPUTED_MAX = 20 };

/* May a container have these? definitions is a BSON array. ERROR_BAD_QUERY: entries of another
 * shape, too many, two of one name, the name of a system property, a query that is not of the kind
 * (sql_resolve_computed). */
NODISCARD bool sql_computed_check(struct slice definitions, struct arena *arena,
                                  struct sql_error *ret_error, struct error *err);

/* The query text of the property of that name; false: there is none. definitions may be absent. */
bool sql_computed_find(struct slice definitions, struct slice name, struct slice *ret_query);

/* The tree of such a text, parsed and resolved. */
NODISCARD bool sql_computed_parse(struct slice text, struct arena *arena,
                                  struct sql_query **ret_query, struct sql_error *ret_error,
                                  struct error *err);
