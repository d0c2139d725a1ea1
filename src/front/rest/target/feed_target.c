#include "front/rest/target/feed_target.h"

#include "front/rest/target/former.h"
#include "partition/former.h"

bool rest_feed_span(struct rest_call *call, const struct rest_items *items,
                    const struct partition_span **ret_span, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_PARTITION_RANGE_ID), rid;
    const struct partition_span *span;
    uint64_t id;

    /* .NET may write the container's _rid before it: "AAAAAA==,0". */
    if (slice_split(text, ',', &rid, &text) &&
        !slice_equal(slice_trim(rid), container_info(items->container)->rid))
        return error_set(err, ERROR_RANGE_GONE, "the range is of another container");
    if (!slice_to_uint64(slice_trim(text), &id))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-documentdb-partitionkeyrangeid is no range id");
    span = id <= UINT32_MAX ? partition_map_find_id(items->space.map, (uint32_t)id) : NULL;
    if (!span)
        return error_set(err, ERROR_RANGE_GONE,
                         "range %llu has split, merged or never was: read the ranges again",
                         (unsigned long long)id);
    *ret_span = span;
    return true;
}

static bool bound_read(struct rest_call *call, enum rest_header header, struct slice *bound,
                       struct error *err)
{
    struct slice hex = rest_call_header(call, header);

    return !hex.data || partition_epk_from_hex(hex, call->arena, bound, err);
}

/* Narrows the target's range to the bounds of the request. */
static bool bounds_apply(struct rest_call *call, const struct rest_items *items,
                         struct rest_feed_target *target, struct error *err)
{
    const struct partition_definition *key = &items->space.definition->key;
    struct slice type = rest_call_header(call, REST_HEADER_READ_KEY_TYPE);
    struct slice min = target->range.min, max = target->range.max;

    if (!rest_call_header(call, REST_HEADER_START_EPK).data &&
        !rest_call_header(call, REST_HEADER_END_EPK).data)
        return true;
    if (type.data && !slice_equal_nocase(type, SLICE("EffectivePartitionKeyRange")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-read-key-type must be EffectivePartitionKeyRange");
    if (!bound_read(call, REST_HEADER_START_EPK, &min, err) ||
        !bound_read(call, REST_HEADER_END_EPK, &max, err))
        return false;
    if (!partition_route_is_bound(key, min) || !partition_route_is_bound(key, max))
        return error_set(
            err, ERROR_BAD_REQUEST,
            "x-ms-start-epk and x-ms-end-epk are no bounds of this container: its keys "
            "are not hashed, so a library cannot compute them");
    if (partition_route_compare(key, min, max) >= 0)
        return error_set(err, ERROR_BAD_REQUEST, "x-ms-start-epk is not below x-ms-end-epk");
    if (partition_route_compare(key, min, target->range.min) > 0)
        target->range.min = min;
    if (partition_route_compare(key, max, target->range.max) < 0)
        target->range.max = max;
    if (partition_route_compare(key, target->range.min, target->range.max) >= 0)
        return error_set(err, ERROR_RANGE_GONE,
                         "the bounds are outside of the range: read the ranges again");
    return true;
}

bool rest_feed_target(struct rest_call *call, const struct rest_items *items,
                      struct rest_feed_target *ret_target, struct error *err)
{
    const struct partition_definition *definition = &items->space.definition->key;
    struct slice key = rest_call_header(call, REST_HEADER_PARTITION_KEY);
    struct rest_feed_target target = {
        .range = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX}};

    if (key.data) {
        bool former;

        if (!partition_key_parse_either(definition, key, PARTITION_KEY_ANY, call->arena,
                                        &target.key, err) ||
            !rest_former_is_meant(items, &target.key, call->arena, &former, err))
            return false;
        if (former) {
            target.former = target.key.former;
            target.key = (struct partition_key){.partial = true};
            *ret_target = target;
            return true;
        }
        target.keyed = !target.key.partial && !target.key.open;
        if (!target.key.open)
            target.range = partition_route_range(definition, &target.key, call->arena);
        if (target.keyed)
            target.logical = item_logical(definition, &target.key, call->arena);
        if (target.keyed && !item_space_admits(&items->space, target.logical, err))
            return false;
    } else {
        if (rest_call_header(call, REST_HEADER_PARTITION_RANGE_ID).data) {
            if (!rest_feed_span(call, items, &target.span, err))
                return false;
            target.range =
                (struct partition_range){.min = target.span->min, .max = target.span->max};
        }
        if (!bounds_apply(call, items, &target, err))
            return false;
    }
    *ret_target = target;
    return true;
}

bool rest_feed_whole(const struct rest_feed_target *target, struct error *err)
{
    return !target->key.open ||
           error_set(
               err, ERROR_NOT_SUPPORTED,
               "a feed of a partition key needs its suffix too; a query can do with the base");
}

bool rest_feed_admits(const struct rest_items *items, const struct rest_feed_target *target,
                      struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(items->space.map, target->range, &count);

    for (size_t i = 0; i < count && !target->keyed; i++)
        if (!item_space_admits_range(&items->space, &spans[i], target->range, err))
            return false;
    return true;
}

bool rest_feed_page_size(const struct rest_call *call, size_t *ret_items, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_MAX_ITEM_COUNT);
    uint64_t count = REST_FEED_ITEMS_DEFAULT;

    if (text.data && slice_equal(text, SLICE("-1")))
        count = REST_FEED_ITEMS_MAX;
    else if (text.data && (!slice_to_uint64(text, &count) || count == 0 || count > INT32_MAX))
        return error_set(err, ERROR_BAD_REQUEST, "x-ms-max-item-count must be -1, or 1 and more");
    *ret_items = (size_t)MIN(count, (uint64_t)REST_FEED_ITEMS_MAX);
    return true;
}

bool rest_feed_hold(struct rest_call *call, struct error *err)
{
    return rest_call_hold(call, 2 * (size_t)REST_FEED_BYTES_MAX, err);
}

void rest_feed_begin(struct rest_call *call, const struct rest_items *items)
{
    BUF_APPEND(&call->body, "{\"_rid\":\"");
    buf_append_slice(&call->body, container_info(items->container)->rid);
    BUF_APPEND(&call->body, "\",\"Documents\":[");
}

void rest_feed_end(struct rest_call *call, size_t count)
{
    BUF_APPEND(&call->body, "],\"_count\":");
    buf_append_uint64(&call->body, count);
    buf_append_byte(&call->body, '}');
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)count);
}
