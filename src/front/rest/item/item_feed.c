/* GET of all items. A page comes from one physical partition, so that its session token, range id
 * and charge are those of one; partitions that have nothing are passed over. */
#include "document/json.h"
#include "front/rest/continuation.h"
#include "front/rest/item/read_feed.h"
#include "front/rest/target/feed_target.h"
#include "front/rest/target/former.h"

#include "base/bytes.h"
#include "throughput/cost.h"

enum {
    STEPS_PER_PAGE = 64, /* that find nothing; then the client is asked to come again */
    ENTRIES_PER_STEP = 20000,
};

static const struct slice purpose = {(const uint8_t *)"items 1", 7};

struct reading {
    struct rest_call *call;
    const struct rest_items *items;
    struct rest_feed_target target;
    struct rest_read_feed feed;
    struct metered_call metered;
    size_t items_max;
    size_t count; /* in the page so far */
    uint32_t partition;
};

static bool invalid(struct error *err)
{
    return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
}

/* Where the feed goes on. What the request names must be what the first page was asked for. */
static bool position_find(struct reading *r, struct error *err)
{
    struct slice text = rest_call_header(r->call, REST_HEADER_CONTINUATION);
    const struct partition_range *range = &r->target.range;
    struct slice bytes;

    if (text.len == 0) {
        rest_read_feed_init(&r->feed, *range);
        return true;
    }
    if (!rest_continuation_open(r->call, container_info(r->items->container)->rid,
                                rest_items_purpose(r->items, purpose, r->call->arena), text, &bytes,
                                err))
        return false;
    if (!rest_read_feed_decode(bytes, &r->feed) ||
        slice_compare(r->feed.parts[0].range.min, range->min) < 0 ||
        !slice_equal(r->feed.parts[r->feed.count - 1].range.max, range->max))
        return invalid(err);
    return true;
}

static bool scan_span(struct reading *r, const struct partition_span *span,
                      struct item_scan_page *ret_page, struct error *err)
{
    const struct rest_read_feed_part *part = &r->feed.parts[0];
    struct item_scope scope = item_space_span_scope(&r->items->space, span);
    struct item_scan_request request = {
        .order = SCAN_BY_NUMBER,
        .logical = r->target.logical,
        .items_max = r->items_max,
        .bytes_max = REST_FEED_BYTES_MAX,
        .entries_max = ENTRIES_PER_STEP,
    };
    uint8_t after[8];

    if (slice_compare(part->range.min, span->min) > 0)
        request.routing_min = part->range.min;
    if (slice_compare(part->range.max, span->max) < 0)
        request.routing_max = part->range.max;
    bytes_put_be64(after, part->after);
    if (part->after)
        request.after = slice_of(after, sizeof after);
    return item_scan_items(&scope, &request, r->call->arena, ret_page, err);
}

/* Renders items until the page is full, and says how many. */
static size_t items_show(struct reading *r, const struct item_scan_page *page, uint64_t *ret_bytes)
{
    struct buf *body = &r->call->body;
    size_t i = 0;

    *ret_bytes = 0;
    for (; i < page->count; i++) {
        if (i && body->len >= REST_FEED_BYTES_MAX)
            break;
        if (i)
            buf_append_byte(body, ',');
        rest_item_append(r->items, &page->items[i], 0, body);
        rest_call_breathe(r->call);
        *ret_bytes += page->items[i].document.len;
    }
    return i;
}

/* Reads one physical partition, the first that the feed has still to see. */
static bool span_read(struct reading *r, struct error *err)
{
    const struct partition_span *span =
        partition_map_find(r->items->space.map, r->feed.parts[0].range.min);
    struct metering_request request = {
        .partition = span->id,
        .price_cru =
            cost_query(&(struct cost_query){.partitions_begun = 1, .strong = r->metered.strong}),
    };
    struct cost_query cost = {.strong = r->metered.strong};
    size_t begin = r->call->body.len;
    struct metering metering;
    struct item_scan_page page;
    uint64_t number;

    r->partition = span->id;
    if (r->target.keyed)
        request.pk = metering_pk(&r->target.key, r->call->arena);
    if (!metering_begin(&metering, r->call->services->meters, &request, &r->metered, err))
        return false;
    if (!scan_span(r, span, &page, err) || !rest_call_grown(r->call, err)) {
        metering_drop(&metering);
        return false;
    }
    if (r->target.former)
        page.count =
            rest_former_keep(r->items, r->target.former, r->call->arena, page.items, page.count);
    *(r->feed.parts[0].after ? &cost.partitions_resumed : &cost.partitions_begun) = 1;
    r->count = items_show(r, &page, &cost.loaded_bytes);
    cost.items_loaded = r->count;
    /* What was passed over; a key's items are sorted by us, which is nobody's concern. */
    cost.index_entries = r->target.keyed ? 0 : page.entries_read - page.count;
    cost.output_bytes = r->call->body.len - begin;
    metering.bytes_out = cost.output_bytes;
    metering_end(&metering, cost_query(&cost));
    r->call->charge_cru = cost_add(r->call->charge_cru, r->metered.charge_cru);
    if (!page.more && r->count == page.count) {
        rest_read_feed_finish(&r->feed, span->max);
        return true;
    }
    number = r->count < page.count ? page.items[r->count - 1].header.number
                                   : bytes_get_be64(page.position.data);
    if (!rest_read_feed_advance(&r->feed, span->max, number))
        return error_set(err, ERROR_RANGE_GONE,
                         "the ranges have changed too often since the first page: begin anew");
    return true;
}

/* The continuation, unless all is read. */
static bool position_answer(struct reading *r, struct error *err)
{
    struct slice bytes;

    if (r->feed.count == 0)
        return true;
    bytes = rest_read_feed_encode(&r->feed, r->call->arena);
    if (bytes.len > REST_CONTINUATION_BYTES_MAX)
        return error_set(err, ERROR_RANGE_GONE,
                         "the ranges have changed too often since the first page: begin anew");
    rest_continuation_answer(
        r->call,
        rest_continuation_seal(r->call, container_info(r->items->container)->rid,
                               rest_items_purpose(r->items, purpose, r->call->arena), bytes));
    return true;
}

bool rest_items_list(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct reading reading = {.call = call, .items = &items};

    if (!rest_items_open(call, &items, err))
        return false;
    rest_items_look(call, &items);
    if (!rest_feed_target(call, &items, &reading.target, err) ||
        !rest_feed_whole(&reading.target, err) ||
        !rest_feed_page_size(call, &reading.items_max, err) ||
        !rest_continuation_limit_check(call, err) ||
        !rest_items_metered(call, &reading.metered, err) || !position_find(&reading, err) ||
        !rest_feed_hold(call, err))
        return false;
    rest_feed_begin(call, &items);
    for (int i = 0; i < STEPS_PER_PAGE && reading.feed.count && !reading.count; i++)
        if (!span_read(&reading, err)) {
            call->wait_ms = reading.metered.wait_ms;
            return false;
        }
    rest_feed_end(call, reading.count);
    if (!position_answer(&reading, err))
        return false;
    rest_items_headers(call, &items, reading.partition, 0);
    rest_items_served(call, &items, partition_map_find_id(items.space.map, reading.partition), 1);
    call->status = 200;
    return true;
}
