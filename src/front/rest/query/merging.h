/* Merging: who puts the results of several ranges together, the server or the client.
 *
 * The server can run every query whole. The JavaScript and Python libraries send a query that spans
 * ranges without a plan first, expect 400 with substatus 1004 for what they merge themselves, and
 * give their users what they know of it only then. They are told by their User-Agent; everybody
 * else, who may not be able to merge, gets rows. */
#pragma once

#include "front/rest/sql/ast.h"
#include "front/rest/target/feed_target.h"

/* Is the query, of a request without a key, a range or a continuation, left to the client? If so
 * err is ERROR_CROSS_PARTITION_QUERY, and the answer will carry the plan. */
NODISCARD bool rest_merging_is_left(struct rest_call *call, const struct rest_items *items,
                                    const struct sql_query *query, struct error *err);

/* A range that a query names has been split, merged or moved since. Libraries that merge do badly
 * on 410 then: JavaScript repeats the request at once and for ever, for it looks at the error only
 * behind a row; Python begins the range again and gives its rows twice. To them those answer who
 * have its keys now: *ret_range. err is ERROR_RANGE_GONE when this is called; it stays so for other
 * clients, which read the ranges again. ERROR_RANGE_FORGOTTEN: the bounds of the range are
 * forgotten, or mean nothing after a re-key; of all 410 it is one such a library ends a query on.
 */
NODISCARD bool rest_merging_span_lives_on(const struct rest_call *call,
                                          const struct rest_items *items,
                                          struct partition_range *ret_range, struct error *err);
