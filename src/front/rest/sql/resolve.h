/* Resolve: what the names in a query mean, and whether its clauses make sense together.
 *
 * Fills the fields of the tree marked "resolved". Names are looked up from the innermost query
 * outwards: a source sees those before it and those of the queries around its own. The first name
 * of the outermost FROM stands for the container, whatever it is; so does ROOT anywhere.
 *
 * Run it after sql_bind where amounts (TOP, OFFSET, LIMIT) may be parameters: those not bound are
 * not checked. */
#pragma once

#include "document/path.h"
#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"

/* ERROR_BAD_QUERY with the service's codes, among them SC2001 (a name), SC2005 (a function), SC2050
 * (its arguments), SC2060 to SC2062 (amounts), SC2101, SC2102, SC2104 (aggregates and GROUP BY) and
 * 2206 (ORDER BY); ERROR_QUERY_NOT_SUPPORTED for functions that are known and not offered. */
NODISCARD bool sql_resolve(struct sql_query *query, struct arena *arena,
                           struct sql_error *ret_error, struct error *err);

/* May a resolved query define a computed property? SELECT VALUE of one expression FROM the whole
 * item, and nothing else. */
NODISCARD bool sql_resolve_computed(const struct sql_query *query, struct arena *arena,
                                    struct sql_error *ret_error, struct error *err);

/* --- Reading off a resolved query --------------------------------------------------------------
 */

/* The number that TOP, OFFSET or LIMIT says. False before its parameter is bound. */
bool sql_amount(const struct sql_expr *amount, uint32_t *ret_number);

/* An aggregate call itself, as opposed to an expression with one in it. */
bool sql_is_aggregate(const struct sql_expr *expr);

/* Is there an aggregate of this level in the expression? Subqueries have levels of their own. */
bool sql_has_aggregate(const struct sql_expr *expr);

/* The path that the expression names in every item, as index policies write it, through the aliases
 * of FROM: with `FROM c JOIN t IN c.tags`, `t.name` is /tags/[]/name. The whole item is the path of
 * no segments. False when it is no such path: an index in brackets, a parameter, a subquery. The
 * segments are in the arena, the names borrowed. */
bool sql_path(const struct sql_expr *expr, struct arena *arena, struct document_path *ret_path);

/* The row of a list in a policy (fullTextPaths, vectorEmbeddings) whose "path" the expression
 * names. */
bool sql_policy_row(struct slice policy, struct slice list, const struct sql_expr *expr,
                    struct arena *arena, struct slice *ret_row);
