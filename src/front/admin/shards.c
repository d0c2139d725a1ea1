/* The shard list: the map of a container as data, for programs that route by themselves
 * (include/orrery/route.h reads it). It changes when the map does, so the etag is the map's. */
#include "front/admin/call.h"

#include "document/bson.h"
#include "document/json.h"

#include <inttypes.h>

static void shard_append(struct admin_call *call, const struct partition_span *span,
                         struct slice where)
{
    struct buf *out = &call->body;

    buf_printf(out, "{\"id\":\"%u\"", span->id);
    admin_hex(out, "minInclusive", span->min);
    admin_hex(out, "maxExclusive", span->max);
    admin_node(call, span->node);
    admin_text(out, "endpoint", where);
    admin_text(out, "rangeId", arena_printf(call->arena, "%u", span->id));
    admin_number_append(out, "epoch", span->epoch);
    BUF_APPEND(out, "}");
}

static void member_copy(struct buf *out, struct slice document, const char *name)
{
    struct document_value value;

    if (!document_find(document, slice_of_text(name), &value))
        return;
    buf_printf(out, ",\"%s\":", name);
    document_json_write_value(&value, out);
}

/* As the container's definition says it: "range", or {"kind": "range", ...}. */
static struct slice strategy_of(struct slice document)
{
    struct document_value orrery, strategy, kind;

    if (!document_find(document, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("strategy"), &strategy))
        return SLICE("hash");
    if (strategy.type == DOCUMENT_OBJECT && document_find(strategy.document, SLICE("kind"), &kind))
        strategy = kind;
    return strategy.type == DOCUMENT_STRING ? strategy.text : SLICE("hash");
}

static void list_append(struct admin_call *call, const struct container *container,
                        struct slice rid)
{
    struct slice document = definition_fields(container_definition(container))->document;
    struct slice where = admin_endpoint(call);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct buf *out = &call->body;

    buf_printf(out, "{\"format\":1");
    admin_text(out, "container", rid);
    admin_number_append(out, "version", partition_map_version(container_map(container)));
    admin_text(out, "strategy", strategy_of(document));
    member_copy(out, document, "partitionKey");
    member_copy(out, document, "orrery");
    BUF_APPEND(out, ",\"shards\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(out, ",");
        shard_append(call, &spans[i], where);
    }
    BUF_APPEND(out, "]}");
}

bool admin_shards_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice seen = front_http_etag_bare(net_http_header(call->http, SLICE("if-none-match")));
    struct slice etag;

    if (!admin_container_open(call, &container, err))
        return false;
    etag = arena_printf(call->arena, "%u-%" PRIu64, container_info(container)->number,
                        partition_map_version(container_map(container)));
    front_http_header(&call->over_http, SLICE("etag"),
                      arena_printf(call->arena, "\"%.*s\"", SLICE_ARG(etag)));
    if (seen.data && (slice_equal(seen, etag) || slice_equal(seen, SLICE("*")))) {
        call->status = 304;
        return true;
    }
    list_append(call, container, container_info(container)->rid);
    call->status = 200;
    return true;
}
