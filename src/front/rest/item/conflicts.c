/* Conflicts arise between write regions. There is one region here, so the feed of every container
 * is there and has nothing in it. */
#include "front/rest/metadata/metadata.h"
#include "front/rest/query/query.h"
#include "throughput/cost.h"

static bool feed_answer(struct rest_call *call,
                        bool (*answer)(struct rest_call *call, const struct rest_feed *feed,
                                       struct error *err),
                        struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct rest_feed feed = {.name = SLICE("Conflicts")};

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rest_call_container(call, &container, err))
        return false;
    feed.owner = container_info(container)->rid;
    feed.rid = container_rid_below(container, RID_CONFLICT, 0);
    return answer(call, &feed, err);
}

bool rest_conflicts_list(struct rest_call *call, struct error *err)
{
    return feed_answer(call, rest_feed_list, err);
}

/* Conflicts lie where their items do: a query of them spans partitions as one of items does. */
bool rest_conflicts_query(struct rest_call *call, struct error *err)
{
    if (!rest_call_header(call, REST_HEADER_PARTITION_KEY).data &&
        !rest_call_header(call, REST_HEADER_PARTITION_RANGE_ID).data &&
        !rest_headers_true(&call->headers, REST_HEADER_QUERY_CROSS_PARTITION))
        return error_set(err, ERROR_BAD_REQUEST, "%s", REST_CROSS_PARTITION_TEXT);
    return feed_answer(call, rest_feed_query, err);
}

/* Reading and deleting one: there is none. */
bool rest_conflicts_one(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!rest_call_container(call, &container, err))
        return false;
    return error_set(err, ERROR_NOT_FOUND, "the container has no conflict \"%.*s\"",
                     (int)MIN(call->route.id.len, (size_t)64), (const char *)call->route.id.data);
}
