/* Most clients read the ranges as a change feed and come again with the etag of the last answer
 * until they get 304. The etag is the container's number and the version of its map, and the last
 * range told where a page had no room for all:
 *
 *     "{container}-{version}"    "{container}-{version}-{range}"
 *
 * With another container, another version or anything else the feed begins anew, which clients
 * take for the changes. */
#include "catalogue/shares.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/rest/metadata/metadata.h"
#include "partition/epk.h"
#include "throughput/cost.h"

#include <inttypes.h>

enum { INLINE_RANGES_MAX = 32 }; /* more of them take longer to show than a loop has time for */

/* --- As a document --------------------------------------------------------------------------- */

/* The spans of a container. */
struct ranges {
    const struct container *container;
    const struct partition_span *spans;
    double *rates; /* RU/s of each */
    size_t count;
    struct slice self; /* of the container */
};

static void bound_append(struct buf *document, struct slice name, struct slice bound)
{
    CLEANUP(buf_done) struct buf hex;

    buf_init(&hex, 2 * PARTITION_ROUTING_KEY_MAX + 2);
    partition_epk_hex(bound, &hex);
    document_append_string(document, name, buf_slice(&hex));
}

static void parents_append(struct buf *document, const struct partition_span *span)
{
    size_t array = document_append_array_begin(document, SLICE("parents"));
    char name[DOCUMENT_INDEX_SIZE], id[16];

    for (size_t i = 0; i < span->parent_count; i++) {
        (void)snprintf(id, sizeof id, "%u", span->parents[i]);
        document_append_string(document, document_index_key((uint32_t)i, name), slice_of_text(id));
    }
    document_end(document, array);
}

static uint64_t span_lsn(const struct ranges *ranges, const struct partition_span *span)
{
    struct error ignored;
    uint64_t lsn;

    return commit_partition_lsn(container_commit(ranges->container, span->node), span->id, &lsn,
                                &ignored)
               ? lsn
               : 0; /* it has just gone */
}

static struct slice range_etag(struct rest_call *call, const struct partition_span *span)
{
    return arena_printf(call->arena, "\"%08x-0000-0000-0000-%012" PRIx64 "\"", span->id,
                        span->epoch & UINT64_C(0xFFFFFFFFFFFF));
}

static struct slice range_document(struct rest_call *call, const void *context, size_t index)
{
    const struct ranges *ranges = context;
    const struct partition_span *span = &ranges->spans[index];
    char rid[RID_TEXT_SIZE];
    CLEANUP(buf_done) struct buf document;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    (void)rid_format(container_rid_below(ranges->container, RID_PKRANGE, span->id), rid);
    begin = document_begin(&document);
    document_append_string(&document, SLICE("_rid"), slice_of_text(rid));
    document_append_string(&document, SLICE("id"), arena_printf(call->arena, "%u", span->id));
    document_append_string(&document, SLICE("_etag"), range_etag(call, span));
    bound_append(&document, SLICE("minInclusive"), span->min);
    bound_append(&document, SLICE("maxExclusive"), span->max);
    document_append_int64(&document, SLICE("ridPrefix"), span->id);
    document_append_string(
        &document, SLICE("_self"),
        arena_printf(call->arena, "%.*spkranges/%s/", SLICE_ARG(ranges->self), rid));
    document_append_double(&document, SLICE("throughputFraction"),
                           ranges->rates[index] /
                               (double)MAX(container_offer(ranges->container)->ru, (uint64_t)1));
    document_append_string(&document, SLICE("status"), SLICE("online"));
    parents_append(&document, span);
    document_end(&document,
                 document_append_array_begin(&document, SLICE("ownedArchivalPKRangeIds")));
    document_append_int64(&document, SLICE("_ts"), container_info(ranges->container)->ts_ms / 1000);
    document_append_int64(&document, SLICE("_lsn"), (int64_t)span_lsn(ranges, span));
    document_end(&document, begin);
    return arena_copy(call->arena, buf_slice(&document));
}

static uint64_t range_number(const void *context, size_t index)
{
    return ((const struct ranges *)context)->spans[index].id;
}

/* --- Opening --------------------------------------------------------------------------------- */

static struct ranges ranges_of(struct rest_call *call, const struct container *container)
{
    struct ranges ranges = {.container = container};

    ranges.spans = partition_map_spans(container_map(container), &ranges.count);
    ranges.rates = ARENA_ARRAY(call->arena, double, ranges.count);
    container_rates(container, container_map(container), ranges.rates);
    ranges.self = rest_metadata_container_self(call, container_database_number(container),
                                               container_info(container)->number);
    return ranges;
}

static struct rest_feed feed_of(const struct ranges *ranges)
{
    return (struct rest_feed){
        .name = SLICE("PartitionKeyRanges"),
        .owner = container_info(ranges->container)->rid,
        .rid = container_rid_below(ranges->container, RID_PKRANGE, 0),
        .count = ranges->count,
        .context = ranges,
        .number = range_number,
        .document = range_document,
    };
}

static bool ranges_open(struct rest_call *call, struct container **ret_container, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    if (!rest_call_database(call, &database, err) || !rest_call_container(call, ret_container, err))
        return false;
    rest_metadata_owner(call, database, *ret_container);
    return true;
}

static bool too_many_for_loop(struct rest_call *call, const struct ranges *ranges)
{
    call->cold = !call->may_block && ranges->count > INLINE_RANGES_MAX;
    return call->cold;
}

/* --- As a plain feed ------------------------------------------------------------------------- */

static struct slice map_etag(struct rest_call *call, const struct container *container)
{
    return arena_printf(call->arena, "\"%u-%" PRIu64 "\"", container_info(container)->number,
                        partition_map_version(container_map(container)));
}

static bool feed_answer(struct rest_call *call, bool query, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct ranges ranges;
    struct rest_feed feed;
    struct slice etag;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!ranges_open(call, &container, err))
        return false;
    ranges = ranges_of(call, container);
    feed = feed_of(&ranges);
    if (query)
        return rest_feed_query(call, &feed, err);
    etag = map_etag(call, container);
    rest_answer_etag(call, etag);
    if (!rest_metadata_seen(call, etag))
        return !too_many_for_loop(call, &ranges) && rest_feed_list(call, &feed, err);
    call->status = 304;
    return true;
}

bool rest_pkranges_list(struct rest_call *call, struct error *err)
{
    return feed_answer(call, false, err);
}

bool rest_pkranges_query(struct rest_call *call, struct error *err)
{
    return feed_answer(call, true, err);
}

bool rest_pkranges_read(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct ranges ranges;
    struct rid rid;
    uint64_t id;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!ranges_open(call, &container, err))
        return false;
    ranges = ranges_of(call, container);
    if (!slice_to_uint64(call->route.id, &id))
        id = rid_parse(call->route.id, &rid) && rid.kind == RID_PKRANGE ? rid.number : UINT64_MAX;
    for (size_t i = 0; i < ranges.count; i++) {
        if (ranges.spans[i].id != id)
            continue;
        rest_metadata_answer(call, 200, range_document(call, &ranges, i),
                             range_etag(call, &ranges.spans[i]),
                             span_lsn(&ranges, &ranges.spans[i]));
        return true;
    }
    return error_set(err, ERROR_NOT_FOUND, "the container has no partition key range \"%.*s\"",
                     (int)MIN(call->route.id.len, (size_t)64), (const char *)call->route.id.data);
}

/* --- As a change feed ------------------------------------------------------------------------ */

/* Where the client stands: all of this version told, or those up to a range. */
static bool seen_parse(struct slice seen, const struct container *container, bool *ret_all,
                       uint64_t *ret_after)
{
    uint64_t number, version;
    struct slice head, rest;

    if (!slice_split(seen, '-', &head, &rest) || !slice_to_uint64(head, &number))
        return false;
    *ret_all = !slice_split(rest, '-', &head, &rest);
    if (*ret_all)
        head = rest;
    return slice_to_uint64(head, &version) && (*ret_all || slice_to_uint64(rest, ret_after)) &&
           number == container_info(container)->number &&
           version == partition_map_version(container_map(container));
}

static int ids_order(const void *a, const void *b)
{
    const struct partition_span *left = *(const struct partition_span *const *)a;
    const struct partition_span *right = *(const struct partition_span *const *)b;

    return (left->id > right->id) - (left->id < right->id);
}

/* The spans behind a range, by id. */
static const struct partition_span **spans_behind(const struct ranges *ranges, bool any,
                                                  uint64_t after, struct arena *arena,
                                                  size_t *ret_count)
{
    const struct partition_span **spans =
        ARENA_ARRAY(arena, const struct partition_span *, ranges->count);
    size_t count = 0;

    for (size_t i = 0; i < ranges->count; i++)
        if (!any || ranges->spans[i].id > after)
            spans[count++] = &ranges->spans[i];
    qsort(spans, count, sizeof *spans, ids_order);
    *ret_count = count;
    return spans;
}

static void changes_answer(struct rest_call *call, const struct ranges *ranges,
                           const struct partition_span **spans, size_t count)
{
    BUF_APPEND(&call->body, "{\"_rid\":");
    document_json_write_string(container_info(ranges->container)->rid, &call->body);
    BUF_APPEND(&call->body, ",\"PartitionKeyRanges\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_append_byte(&call->body, ',');
        document_json_write(range_document(call, ranges, (size_t)(spans[i] - ranges->spans)),
                            &call->body);
    }
    buf_printf(&call->body, "],\"_count\":%zu}", count);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)count);
    call->status = 200;
}

bool rest_pkranges_changes(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice seen = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH);
    const struct partition_span **spans;
    struct ranges ranges;
    uint64_t after = 0;
    size_t size, count;
    bool asked, all = false, known;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rest_page_size(call, &size, &asked, err) || !ranges_open(call, &container, err))
        return false;
    ranges = ranges_of(call, container);
    known = seen.data && seen_parse(seen, container, &all, &after);
    if (slice_equal(seen, SLICE("*")) || (known && all)) {
        rest_answer_etag(call, map_etag(call, container));
        call->status = 304;
        return true;
    }
    if (too_many_for_loop(call, &ranges))
        return false;
    spans = spans_behind(&ranges, known, after, call->arena, &count);
    if (asked && rest_call_header(call, REST_HEADER_MAX_ITEM_COUNT).len && count > size) {
        count = size;
        rest_answer_etag(call, arena_printf(call->arena, "\"%u-%" PRIu64 "-%u\"",
                                            container_info(container)->number,
                                            partition_map_version(container_map(container)),
                                            spans[count - 1]->id));
    } else {
        rest_answer_etag(call, map_etag(call, container));
    }
    changes_answer(call, &ranges, spans, count);
    return true;
}
