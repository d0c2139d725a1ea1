/* The directory of a container whose strategy is lookup: which virtual shard its keys belong to. */
#include "front/admin/call.h"

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

static bool edits_read(struct admin_call *call, struct definition_directory_change **ret_edits,
                       size_t *ret_count, struct error *err)
{
    struct document_value list;
    struct document_iter iter;
    struct slice body;
    size_t count = 0;

    if (!front_http_body(&call->over_http, &body, err))
        return false;
    if (!document_find(body, SLICE("edits"), &list) || list.type != DOCUMENT_ARRAY ||
        document_count(body) != 1)
        return error_set(err, ERROR_BAD_REQUEST, "the body is {\"edits\":[...]}");
    count = document_count(list.document);
    if (count == 0 || count > EDITS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "edits are 1 to %d at a time", EDITS_MAX);
    *ret_edits = ARENA_ARRAY(call->arena, struct definition_directory_change, count);
    document_iter_init(&iter, list.document);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++)
        if (!edit_read(&iter.value, &(*ret_edits)[i], err))
            return false;
    *ret_count = count;
    return true;
}

bool admin_directory_edit(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct definition_directory_change *edits = NULL;
    size_t count = 0;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err) ||
        !edits_read(call, &edits, &count, err))
        return false;
    return admin_migration_begun(
        call, container, migrator_reroute(call->services->migrator, container, edits, count, err),
        err);
}
