/* What key a document would get, and which partition: POST /_orrery/containers/DB/COLL/key. Nothing
 * is written. The body is the document, or an array as the header of a request names a key. */
#include "front/admin/call.h"

#include "catalogue/container_space.h"
#include "document/json.h"
#include "item/scan.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"

static const struct partition_span *span_of(const struct container *container,
                                            const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf routing;

    buf_init(&routing, BUF_DEFAULT_MAX);
    partition_route(&definition_fields(container_definition(container))->key, key, &routing);
    return partition_map_find(container_map(container), buf_slice(&routing));
}

static void span_append(struct admin_call *call, const struct partition_span *span)
{
    const struct admin_hooks *hooks = call->hooks;
    const char *node = hooks->node_name ? hooks->node_name(hooks->context, span->node) : NULL;

    buf_printf(&call->body, "{\"id\":\"%u\"", span->id);
    BUF_APPEND(&call->body, ",\"minInclusive\":\"");
    partition_epk_hex(span->min, &call->body);
    BUF_APPEND(&call->body, "\",\"maxExclusive\":\"");
    partition_epk_hex(span->max, &call->body);
    BUF_APPEND(&call->body, "\"");
    if (node)
        admin_text(&call->body, "node", slice_of_text(node));
    else
        admin_number_append(&call->body, "node", span->node);
}

/* How many of the suffixes of a base are in each partition. */
static bool spans_append(struct admin_call *call, const struct container *container,
                         const struct partition_key *key, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    size_t span_count, key_count, *held;
    const struct partition_span *spans = partition_map_spans(container_map(container), &span_count);
    struct partition_key *keys;
    bool first = true;

    if (!partition_synthetic_keys(definition, key, call->arena, &keys, &key_count, err))
        return false;
    held = arena_alloc_zero(call->arena, memory_array_size(span_count, sizeof *held));
    for (size_t i = 0; i < key_count; i++)
        held[span_of(container, &keys[i]) - spans]++;
    BUF_APPEND(&call->body, ",\"partitions\":[");
    for (size_t i = 0; i < span_count; i++) {
        if (!held[i])
            continue;
        if (!first)
            BUF_APPEND(&call->body, ",");
        first = false;
        span_append(call, &spans[i]);
        admin_number_append(&call->body, "suffixes", held[i]);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
    return true;
}

/* The members that say what the key is. */
static bool key_append(struct admin_call *call, const struct partition_definition *definition,
                       struct partition_key *ret_key, struct error *err)
{
    struct document_value body;

    if (!front_http_body_value(&call->over_http, 0, &body, err))
        return false;
    if (body.type == DOCUMENT_OBJECT)
        return partition_key_explain(definition, body.document, call->arena, &call->body, ret_key,
                                     err);
    if (body.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the body must be a document, or a partition key as an array");
    if (!partition_key_parse(definition, call->http->body, PARTITION_KEY_WHOLE, call->arena,
                             ret_key, err))
        return false;
    partition_key_show(definition, ret_key, &call->body);
    return true;
}

bool admin_containers_key(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_definition *definition;
    struct partition_key key;

    if (!catalogue_container_open(call->services->catalogue, call->account.id, call->names[0],
                                  call->names[1], &container, err))
        return false;
    definition = &definition_fields(container_definition(container))->key;
    BUF_APPEND(&call->body, "{");
    if (!key_append(call, definition, &key, err))
        return false;
    if (!key.open) {
        BUF_APPEND(&call->body, ",\"partition\":");
        span_append(call, span_of(container, &key));
        BUF_APPEND(&call->body, "}");
    } else if (key.components[definition->synthetic->target].type == DOCUMENT_STRING &&
               !spans_append(call, container, &key, err)) {
        return false;
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- Is there such a key? -------------------------------------------------------------------- */

static bool span_has(const struct item_scope *scope, const struct partition_range *range,
                     struct arena *arena, bool *has, struct error *err)
{
    const struct item_scan_request request = {
        .order = SCAN_BY_KEY, .routing_min = range->min, .routing_max = range->max, .items_max = 1};
    struct item_scan_page page;

    if (!item_scan_items(scope, &request, arena, &page, err))
        return false;
    *has = *has || page.count > 0;
    return true;
}

bool admin_key_check(struct admin_call *call, struct container *container,
                     const struct partition_key *key, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    const struct item_space space =
        container_space(container, call->services->clock, call->services->gates);
    const struct partition_range range = partition_route_range(definition, key, call->arena);
    CLEANUP(buf_done) struct buf text;
    bool has = slice_equal(admin_parameter(call, SLICE("empty")), SLICE("true"));
    const struct partition_span *spans;
    size_t count;

    buf_init(&text, BUF_DEFAULT_MAX);
    spans = partition_map_overlap(container_map(container), range, &count);
    for (size_t i = 0; i < count && !has; i++) {
        const struct item_scope scope = item_space_span_scope(&space, &spans[i]);

        if (!span_has(&scope, &range, call->arena, &has, err))
            return false;
    }
    if (has)
        return true;
    partition_key_json(definition, key, &text);
    return error_set(err, ERROR_NOT_FOUND,
                     "no item has the partition key %.*s, and nothing was changed: for a key that "
                     "is to come say empty=true (--empty)",
                     (int)MIN(text.len, (size_t)80), (const char *)text.data);
}
