/* By view: a query on a container that is answered through one of its views.
 *
 * A view whose partition key the query gives a value for, and that keeps what the query needs
 * (views/cover.h), answers from one logical partition where the container would ask several
 * physical ones. It does so for whoever may read it, where the consistency level of the request
 * allows what the view has by then:
 *
 *     Strong            never
 *     BoundedStaleness  the view is no further behind than the account's bounds
 *     Session           it has what the session token names; without one, all that is committed
 *     ConsistentPrefix  however far it is
 *     Eventual          the same
 *
 * Session tokens are honoured at every level. Requests that name a range are asked of that range:
 * clients that fan out by themselves put the answers of all ranges together, and a view has the
 * items of all of them. A query goes on where it began: the continuation names the view. */
#pragma once

#include "front/rest/sql/documents.h"
#include "front/rest/target/items.h"

/* What is asked. All borrowed. */
struct rest_by_view_asked {
    const struct rest_items *source;
    const struct sql_body *body;
    const struct query_plan *plan; /* on the source */
    bool order_unindexed;
    struct slice view_rid; /* of the view that the continuation names; data NULL: it begins */
};

struct rest_by_view {
    struct arena *arena;     /* of the plan; NULL: there is none */
    struct rest_items items; /* of the view; container NULL: the source answers */
    struct query_plan plan;
    const struct partition_span *span; /* of the view, that answers; borrowed from its map */
    int64_t lag_ms;
    size_t instead;       /* physical partitions that the source would be asked for */
    struct slice refused; /* BSON array of views that do not serve, with the reason; in the call's
                             arena; data NULL: no view was looked at */
};

/* Finds the view, or none. On a loop the call may be cold; of a page that goes on it may be parked
 * (views.h): false without an error code. ERROR_BAD_CONTINUATION: the view is gone or the query no
 * longer its; ERROR_FORBIDDEN, ERROR_TIMED_OUT: it did not catch up. */
NODISCARD bool rest_by_view_find(struct rest_call *call, const struct rest_by_view_asked *asked,
                                 struct rest_by_view *ret_by, struct error *err);
void rest_by_view_done(struct rest_by_view *by);

/* An explanation (BSON) with what became of views; in the call's arena. */
struct slice rest_by_view_explain(const struct rest_by_view *by, struct slice explain,
                                  struct arena *arena);
