/* Conflicts arise between write regions. There is one region here, so the feed of every container
 * is there and has nothing in it. */
#include "document/json.h"
#include "front/rest/call.h"
#include "throughput/cost.h"

bool rest_conflicts_list(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rest_call_container(call, &container, err))
        return false;
    BUF_APPEND(&call->body, "{\"_rid\":");
    document_json_write_string(container_info(container)->rid, &call->body);
    BUF_APPEND(&call->body, ",\"Conflicts\":[],\"_count\":0}");
    rest_answer_header_int(call, SLICE("x-ms-item-count"), 0);
    call->status = 200;
    return true;
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
