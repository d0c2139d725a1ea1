/* What key a document would get, and which partition. Nothing is written.
 *
 * POST /_orrery/containers/DB/COLL/key asks it of a container; the body is the document, or an
 * array as the header of a request names a key. POST /_orrery/key asks it of a definition that no
 * container has: it is read by the rules of a create, and placed on a map as a create makes it. */
#include "front/admin/call.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "document/json.h"
#include "item/scan.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"

enum { TRIED_PARTITIONS_MAX = 1000 };

/* Where keys are placed: a container, or one that is thought of. */
struct place {
    const struct partition_definition *definition;
    const struct partition_map *map;
    bool thought_of; /* its partitions have neither ids nor nodes */
};

static const struct partition_span *span_of(const struct place *place,
                                            const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf routing;

    buf_init(&routing, BUF_DEFAULT_MAX);
    partition_route(place->definition, key, &routing);
    return partition_map_find(place->map, buf_slice(&routing));
}

static void span_append(struct admin_call *call, const struct place *place,
                        const struct partition_span *span)
{
    buf_printf(&call->body, "{\"id\":\"%u\"", span->id);
    admin_hex(&call->body, "minInclusive", span->min);
    admin_hex(&call->body, "maxExclusive", span->max);
    if (!place->thought_of)
        admin_node(call, span->node);
}

/* How many of the suffixes of a base are in each partition. */
static bool spans_append(struct admin_call *call, const struct place *place,
                         const struct partition_key *key, struct error *err)
{
    size_t span_count, key_count, *held;
    const struct partition_span *spans = partition_map_spans(place->map, &span_count);
    struct partition_key *keys;
    bool first = true;

    if (!partition_synthetic_keys(place->definition, key, call->arena, &keys, &key_count, err))
        return false;
    held = arena_alloc_zero(call->arena, memory_array_size(span_count, sizeof *held));
    for (size_t i = 0; i < key_count; i++)
        held[span_of(place, &keys[i]) - spans]++;
    BUF_APPEND(&call->body, ",\"partitions\":[");
    for (size_t i = 0; i < span_count; i++) {
        if (!held[i])
            continue;
        if (!first)
            BUF_APPEND(&call->body, ",");
        first = false;
        span_append(call, place, &spans[i]);
        admin_number_append(&call->body, "suffixes", held[i]);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
    return true;
}

/* The members that say what the key is. text: the value as it was sent. */
static bool key_append(struct admin_call *call, const struct partition_definition *definition,
                       const struct document_value *value, struct slice text,
                       struct partition_key *ret_key, struct error *err)
{
    if (value->type == DOCUMENT_OBJECT)
        return partition_key_explain(definition, value->document, call->arena, &call->body, ret_key,
                                     err);
    if (value->type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST,
                         "what is tried must be a document, or a partition key as an array");
    if (!partition_key_parse(definition, text, PARTITION_KEY_WHOLE, call->arena, ret_key, err))
        return false;
    partition_key_show(definition, ret_key, &call->body);
    return true;
}

static bool answer(struct admin_call *call, const struct place *place,
                   const struct document_value *value, struct slice text, struct error *err)
{
    const struct partition_definition *definition = place->definition;
    struct partition_key key;

    BUF_APPEND(&call->body, "{");
    if (!key_append(call, definition, value, text, &key, err))
        return false;
    if (!key.open) {
        BUF_APPEND(&call->body, ",\"partition\":");
        span_append(call, place, span_of(place, &key));
        BUF_APPEND(&call->body, "}");
    } else if (key.components[definition->synthetic->target].type == DOCUMENT_STRING &&
               !spans_append(call, place, &key, err)) {
        return false;
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_containers_key(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct document_value body;

    if (!catalogue_container_open(call->services->catalogue, call->account.id, call->names[0],
                                  call->names[1], &container, err) ||
        !front_http_body_value(&call->over_http, 0, &body, err))
        return false;
    return answer(
        call,
        &(struct place){.definition = &definition_fields(container_definition(container))->key,
                        .map = container_map(container)},
        &body, call->http->body, err);
}

/* --- Of a container that is thought of ------------------------------------------------------- */

struct trial {
    struct document_value definition, document;
    int64_t partitions;
};

static bool trial_read(struct admin_call *call, struct trial *ret_trial, struct error *err)
{
    struct document_iter iter;
    struct slice body;

    *ret_trial = (struct trial){
        .definition = document_undefined(), .document = document_undefined(), .partitions = 1};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("definition")) && iter.value.type == DOCUMENT_OBJECT)
            ret_trial->definition = iter.value;
        else if (slice_equal(iter.key, SLICE("document")))
            ret_trial->document = iter.value;
        else if (!slice_equal(iter.key, SLICE("partitions")) ||
                 !document_to_int64(&iter.value, &ret_trial->partitions) ||
                 ret_trial->partitions < 1 || ret_trial->partitions > TRIED_PARTITIONS_MAX)
            return error_set(
                err, ERROR_BAD_REQUEST,
                "the body is {\"definition\":{\"partitionKey\":{...},\"orrery\":{...}},"
                "\"document\":{...},\"partitions\":1 to %d}; it has another \"%.*s\"",
                TRIED_PARTITIONS_MAX, (int)MIN(iter.key.len, (size_t)60),
                (const char *)iter.key.data);
    }
    if (ret_trial->definition.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "the body has no object \"definition\"");
    return ret_trial->document.type != DOCUMENT_UNDEFINED ||
           error_set(err, ERROR_BAD_REQUEST, "the body has no member \"document\"");
}

/* The definition as a create takes it: it needs an id, which nobody sees. */
static bool definition_think(struct admin_call *call, struct slice given,
                             struct definition **ret_definition, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct document_iter iter;
    struct document_value id;
    size_t begun;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (document_find(given, SLICE("id"), &id))
        return definition_new(definition_fresh(given, call->arena), NULL, ret_definition, err);
    begun = document_begin(&body);
    document_append_string(&body, SLICE("id"), SLICE("tried"));
    document_iter_init(&iter, given);
    while (document_iter_next(&iter))
        document_append(&body, iter.key, &iter.value);
    document_end(&body, begun);
    return definition_new(definition_fresh(buf_slice(&body), call->arena), NULL, ret_definition,
                          err);
}

bool admin_key_try(struct admin_call *call, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    CLEANUP(buf_done) struct buf text;
    const uint32_t nobody = 0;
    struct partition_map_plan plan;
    struct trial trial;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!trial_read(call, &trial, err) ||
        !definition_think(call, trial.definition.document, &definition, err))
        return false;
    plan = (struct partition_map_plan){.definition = &definition_fields(definition)->key,
                                       .count = (size_t)trial.partitions,
                                       .epoch = 1,
                                       .nodes = &nobody,
                                       .node_count = 1};
    if (!partition_map_new_even(&plan, &map, err))
        return false;
    document_json_write_value(&trial.document, &text);
    return answer(call,
                  &(struct place){.definition = plan.definition, .map = map, .thought_of = true},
                  &trial.document, buf_slice(&text), err);
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
