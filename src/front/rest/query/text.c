#include "front/rest/query/text.h"

#include "front/rest/query/query.h"
#include "throughput/cost.h"

enum {
    TREE_BYTES = 64,             /* of a plan and what it is made from, for a byte of text */
    TEXT_FREE_BYTES = 16 * 1024, /* of a text come with its page */
    TEXT_BYTE_WORK = 16,         /* units, for each byte beyond */
};

bool rest_query_body(struct rest_call *call, struct sql_body *ret_body, struct error *err)
{
    struct sql_error fault = {0};
    struct slice body;

    if (!rest_call_body(call, &body, err))
        return false;
    if (sql_body_read(body, ret_body, call->arena, &fault, err))
        return true;
    rest_query_fault(call, &fault);
    return false;
}

bool rest_query_text_hold(struct rest_call *call, size_t bytes, struct error *err)
{
    return rest_call_hold(call, bytes * TREE_BYTES, err);
}

static int64_t text_price(struct slice text)
{
    return text.len > TEXT_FREE_BYTES
               ? cost_work((uint64_t)(text.len - TEXT_FREE_BYTES) * TEXT_BYTE_WORK)
               : 0;
}

bool rest_query_text_begin(struct rest_call *call, const struct rest_items *items,
                           struct partition_range range, struct slice text,
                           struct metering *metering, struct metered_call *metered,
                           struct error *err)
{
    struct metering_request request = {.price_cru = text_price(text)};
    size_t count;

    *metering = (struct metering){0};
    if (!rest_query_text_hold(call, text.len, err))
        return false;
    if (!request.price_cru)
        return true;
    request.partition = partition_map_overlap(items->space.map, range, &count)->id;
    if (metering_begin(metering, call->services->meters, &request, metered, err))
        return true;
    rest_items_charged(call, metered);
    return false;
}

void rest_query_text_end(struct rest_call *call, struct slice text, struct metering *metering)
{
    if (!text_price(text))
        return;
    metering_end(metering, text_price(text));
    call->charge_cru = cost_add(call->charge_cru, text_price(text));
}
