/* Ahead: calls of user-defined functions, made for many rows at once before the rows are looked at.
 *
 * A function of the user runs in another process: to ask it for one row costs more than the rest of
 * the row. So hits are fetched in batches. For all rows of a batch the arguments of every call in
 * the plan that follow from the item alone are evaluated, and the function is asked once. When a
 * row is then evaluated its calls find their results here; what is not here is called there and
 * then.
 *
 * Nothing is seen of it but speed. A call whose row would never have made it may fail: its error
 * counts only if the row asks for the result. Rows that the parts of the filter without such calls
 * turn away are not asked about, nor those behind the filter for what SELECT wants. */
#pragma once

#include "query/expression/item.h"
#include "query/run/hits.h"

struct query_ahead; /* opaque, owned */

/* NULL: the plan has no call that could be made ahead, or the host makes none. */
struct query_ahead *query_ahead_new(const struct query_plan *plan,
                                    const struct query_udf_host *host,
                                    const struct document_names *names, struct rid container);
void query_ahead_free(struct query_ahead *ahead); /* NULL is fine */
CLEANUP_FN(struct query_ahead *, query_ahead_free)

/* The next hit, as query_hits_next gives it. *ret_judged: the filter has been asked already, and
 * *ret_holds is what it said. */
NODISCARD bool query_ahead_next(struct query_ahead *ahead, struct query_hits *feed,
                                struct query_context *context, struct query_hit *ret_hit,
                                bool *ret_more, bool *ret_held, bool *ret_judged, bool *ret_holds,
                                struct error *err);

/* For the evaluation of a call: its result for the present row, and the bytes of its arguments.
 * *ret_found false: it was not made. */
NODISCARD bool query_ahead_find(const struct query_ahead *ahead,
                                const struct query_expression *call, bool *ret_found,
                                struct document_value *ret_value, uint64_t *ret_bytes,
                                struct error *err);

/* There is no present row any more, until the next hit. */
void query_ahead_leave(struct query_ahead *ahead);
