/* Fetch: items by partition key and id, many at once, as part of a query: on its budget, at its
 * moment, by its threads. One batch of keys for each physical partition. */
#pragma once

#include "item/items.h"
#include "query/run.h"

/* Hands out the items found, in the order of the references, once all are there; those that are
 * missing or over are passed over. The item is good during the call. False with err set ends it. */
struct query_fetch {
    const struct items_reference *references; /* whole keys */
    size_t count;
    bool (*take)(void *self, size_t reference, const struct item *item, struct error *err);
    void *self;
};

/* Of the request space, meters, call, paid, snapshot, overlay, executor, is_short, bound and
 * limits.cancelled count, and bytes_max, above which ERROR_QUERY_LIMIT tells that it was too much
 * at once (0: no limit). Of the page charge and metrics. Errors as of query_run;
 * ERROR_KEY_ELSEWHERE: a key is of another container since a promotion. */
NODISCARD bool query_fetch_run(const struct query_request *request, const struct query_fetch *fetch,
                               struct query_page *ret_page, struct error *err);
