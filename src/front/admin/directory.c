/* The directory of a container whose strategy is lookup: which virtual shard its keys belong to. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "definition/strategy.h"
#include "document/json.h"
#include "front/admin/migrations.h"
#include "migration/migrator.h"
#include "partition/lookup.h"
#include "partition/strategy.h"

enum { EDITS_MAX = 1000, KEY_DEPTH_MAX = 8, KEY_BYTES_MAX = 64 * 1024 };

static bool lookup_of(const struct container *container, const struct partition_lookup **ret_lookup,
                      struct error *err)
{
    *ret_lookup = definition_fields(container_definition(container))->key.lookup;
    return *ret_lookup ||
           error_set(err, ERROR_BAD_REQUEST,
                     "container \"%.*s\" has no directory: its strategy is not lookup",
                     SLICE_ARG(container_info(container)->id));
}

/* The first component: in an array alone, or as it is; {} is undefined. */
static bool component_read(const struct document_value *value, struct document_value *ret_component,
                           struct error *err)
{
    struct document_value component = *value;

    if (value->type == DOCUMENT_ARRAY && (document_count(value->document) != 1 ||
                                          !document_find_index(value->document, 0, &component)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a key of a directory is the first component of a partition key, as "
                         "[\"tenant-7\"]");
    if (component.type == DOCUMENT_OBJECT && document_count(component.document) == 0)
        component = document_undefined();
    if (component.type == DOCUMENT_OBJECT || component.type == DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "a key of a directory is no object or array");
    *ret_component = component;
    return true;
}

/* --- Showing --------------------------------------------------------------------------------- */

static void rule_append(struct buf *out, const struct partition_lookup *lookup)
{
    admin_number_append(out, "shards", lookup->shards);
    if (lookup->hashes)
        admin_text(out, "default", SLICE("hash"));
    else
        admin_number_append(out, "default", lookup->preset);
    admin_number_append(out, "lines", lookup->line_count);
}

/* Where one key is: what its application would ask. */
static bool key_append(struct admin_call *call, const struct container *container,
                       const struct partition_lookup *lookup, struct slice text, struct error *err)
{
    const struct document_limits limits = {.depth_max = KEY_DEPTH_MAX, .bytes_max = KEY_BYTES_MAX};
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf read;
    struct document_value value, component;
    const struct partition_span *span;
    struct partition_key key;
    struct slice bytes;
    size_t spans;

    buf_init(&read, KEY_BYTES_MAX + 1024);
    if (!document_json_read_value(text, &limits, &read, &value, err))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the parameter key is not JSON, as [\"tenant-7\"]");
    if (!component_read(&value, &component, err))
        return false;
    bytes = partition_component(&component, call->arena);
    key = partition_key_of(definition, &component, 1);
    span = partition_map_overlap(container_map(container),
                                 partition_route_range(definition, &key, call->arena), &spans);
    BUF_APPEND(&call->body, ",\"key\":");
    partition_key_json(definition, &key, &call->body);
    admin_number_append(&call->body, "shard", partition_lookup_shard(lookup, bytes));
    buf_printf(&call->body, ",\"listed\":%s,\"partitions\":[",
               partition_lookup_find(lookup, bytes) ? "true" : "false");
    for (size_t i = 0; i < spans; i++)
        buf_printf(&call->body, "%s\"%u\"", i ? "," : "", span[i].id);
    BUF_APPEND(&call->body, "]");
    return true;
}

bool admin_directory_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice key = admin_parameter(call, SLICE("key"));
    const struct partition_lookup *lookup;
    struct document_value directory;

    if (!admin_container_open(call, &container, err) || !lookup_of(container, &lookup, err))
        return false;
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "database", call->names[0]);
    admin_text(&call->body, "container", container_info(container)->id);
    rule_append(&call->body, lookup);
    if (key.data) {
        if (!key_append(call, container, lookup, key, err))
            return false;
    } else {
        directory = document_array(
            definition_directory(definition_fields(container_definition(container))));
        BUF_APPEND(&call->body, ",\"directory\":");
        document_json_write_value(&directory, &call->body);
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- Editing --------------------------------------------------------------------------------- */

static bool edit_read(const struct document_value *value,
                      struct definition_directory_change *ret_edit, struct error *err)
{
    struct document_value key, shard;
    int64_t number = 0;

    if (value->type != DOCUMENT_OBJECT || document_count(value->document) != 2 ||
        !document_find(value->document, SLICE("key"), &key) ||
        !document_find(value->document, SLICE("shard"), &shard))
        return error_set(err, ERROR_BAD_REQUEST, "an edit is {\"key\":[...],\"shard\":N}");
    if (shard.type != DOCUMENT_NULL &&
        (!document_to_int64(&shard, &number) || number < 0 || number >= PARTITION_SHARDS_MAX))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the shard of an edit is its number, or null to remove the line");
    *ret_edit = (struct definition_directory_change){.shard = (uint32_t)number,
                                                     .removes = shard.type == DOCUMENT_NULL};
    return component_read(&key, &ret_edit->value, err);
}

/* What is asked for. */
struct asked {
    struct definition_directory_change *edits;
    size_t count;
    bool dry_run;
};

static bool edits_read(struct admin_call *call, const struct document_value *list,
                       struct asked *asked, struct error *err)
{
    struct document_iter iter;

    asked->count = list->type == DOCUMENT_ARRAY ? document_count(list->document) : 0;
    if (asked->count == 0 || asked->count > EDITS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "edits is an array of 1 to %d", EDITS_MAX);
    asked->edits = ARENA_ARRAY(call->arena, struct definition_directory_change, asked->count);
    document_iter_init(&iter, list->document);
    for (size_t i = 0; i < asked->count && document_iter_next(&iter); i++)
        if (!edit_read(&iter.value, &asked->edits[i], err))
            return false;
    return true;
}

static bool asked_read(struct admin_call *call, struct asked *ret_asked, struct error *err)
{
    struct document_iter iter;
    struct slice body;

    *ret_asked = (struct asked){0};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("dryRun")) && iter.value.type == DOCUMENT_BOOL)
            ret_asked->dry_run = iter.value.boolean;
        else if (!slice_equal(iter.key, SLICE("edits")))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the body is {\"edits\":[...],\"dryRun\":BOOL}; it has \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
        else if (!edits_read(call, &iter.value, ret_asked, err))
            return false;
    }
    return ret_asked->count ||
           error_set(err, ERROR_BAD_REQUEST, "the body has no member \"edits\"");
}

/* --- Tried out ------------------------------------------------------------------------------- */

/* Edits, and what they come to. */
struct trial {
    const struct container *container;
    const struct partition_lookup *before, *after;
    int64_t *moved; /* of each span of the map: bytes that come less those that go */
};

static void ids_append(struct buf *out, const char *name, const struct partition_span *spans,
                       size_t count)
{
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s\"%u\"", i ? "," : "", spans[i].id);
    BUF_APPEND(out, "]");
}

/* Where a key is, where it would be, and what it takes along. What it brings is shown in the first
 * partition of its new place, which is the only one unless that place was cut within it. */
static bool trial_append(struct admin_call *call, struct trial *trial,
                         const struct document_value *value, struct buf *out, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(trial->container))->key;
    const struct partition_map *map = container_map(trial->container);
    struct partition_key key = partition_key_of(definition, value, 1);
    struct slice component = partition_component(value, call->arena);
    uint32_t from = partition_lookup_shard(trial->before, component),
             to = partition_lookup_shard(trial->after, component);
    struct partition_range range = partition_lookup_range(from, component, call->arena);
    struct container_usage sum = {0};
    size_t all, count, count_after;
    const struct partition_span *first = partition_map_spans(map, &all),
                                *spans = partition_map_overlap(map, range, &count),
                                *after = partition_map_overlap(
                                    map, partition_lookup_range(to, component, call->arena),
                                    &count_after);

    for (size_t i = 0; i < count; i++) {
        struct container_usage usage;

        if (!container_usage_range(trial->container, &spans[i], range, call->arena, &usage, err))
            return false;
        sum.items += usage.items;
        sum.bytes += usage.bytes;
        trial->moved[&spans[i] - first] -= from == to ? 0 : (int64_t)usage.bytes;
    }
    trial->moved[after - first] += from == to ? 0 : (int64_t)sum.bytes;
    BUF_APPEND(out, "{\"key\":");
    partition_key_json(definition, &key, out);
    admin_number_append(out, "shard", from);
    admin_number_append(out, "shardAfter", to);
    ids_append(out, "partitions", spans, count);
    ids_append(out, "partitionsAfter", after, count_after);
    admin_number_append(out, "items", sum.items);
    admin_number_append(out, "bytes", sum.bytes);
    BUF_APPEND(out, "}");
    return true;
}

static bool edits_try(struct admin_call *call, const struct container *container,
                      const struct asked *asked, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    CLEANUP(buf_done) struct buf keys;
    struct trial trial = {.container = container};
    size_t spans;

    buf_init(&keys, BUF_DEFAULT_MAX);
    if (!lookup_of(container, &trial.before, err))
        return false;
    if (!migrator_reroute_plan(call->services->migrator, container, asked->edits, asked->count,
                               &definition, &plan, err))
        return admin_migration_refused(err);
    (void)partition_map_spans(container_map(container), &spans);
    trial.moved = arena_alloc_zero(call->arena, memory_array_size(spans, sizeof *trial.moved));
    trial.after = definition_fields(definition)->key.lookup;
    for (size_t i = 0; i < asked->count; i++) {
        if (i)
            BUF_APPEND(&keys, ",");
        if (!trial_append(call, &trial, &asked->edits[i].value, &keys, err))
            return false;
        front_call_breathe(&call->front);
    }
    if (!admin_plan_append(call, container, plan, MIGRATION_REROUTE, trial.moved, err))
        return false;
    admin_number_append(&call->body, "lines", trial.before->line_count);
    admin_number_append(&call->body, "linesAfter", trial.after->line_count);
    BUF_APPEND(&call->body, ",\"keys\":[");
    buf_append_slice(&call->body, buf_slice(&keys));
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

bool admin_directory_edit(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct asked asked;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err) ||
        !asked_read(call, &asked, err))
        return false;
    if (asked.dry_run)
        return edits_try(call, container, &asked, err);
    return admin_migration_begun(
        call, container,
        migrator_reroute(call->services->migrator, container, asked.edits, asked.count, err), err);
}
