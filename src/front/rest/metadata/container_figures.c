#include "front/rest/metadata/container_figures.h"

#include "catalogue/child.h"
#include "catalogue/container_usage.h"
#include "document/bson.h"
#include "document/json.h"

#include <inttypes.h>

enum {
    KEYS_SHOWN_MAX = 3,
    KEY_PERCENT_MIN = 1,
    KEYS_SEEN_MAX = 100000, /* in one answer; the partitions have even parts of it, */
    KEYS_SEEN_MIN = 100,    /* but at least this much each */
};

static uint64_t kilobytes(uint64_t bytes)
{
    return bytes / 1024 + (bytes % 1024 != 0);
}

#define PARTITION_BYTES_SHOWN (UINT64_C(10) << 30)

/* --- Quota ----------------------------------------------------------------------------------- */

/* What the physical partitions there are may hold, or the container's own limit. */
static uint64_t room_of(const struct container *container)
{
    uint64_t own = container_bytes_max(container);
    uint64_t each = container_limits(container)->partition_bytes_max;
    size_t count;

    if (own != UINT64_MAX)
        return own;
    (void)partition_map_spans(container_map(container), &count);
    return each > UINT64_MAX / count ? UINT64_MAX : each * count;
}

/* What libraries expect to read as the size of a container: 10 GB for each physical partition,
 * whatever it may hold, unless that is less. */
static uint64_t size_shown(const struct container *container)
{
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    return MIN(room_of(container), PARTITION_BYTES_SHOWN * count);
}

bool rest_container_quota(struct rest_call *call, const struct container *container,
                          struct error *err)
{
    const struct definition_limits *limits = container_limits(container);
    uint64_t room = kilobytes(room_of(container)), used;
    struct container_usage usage;

    if (!container_usage_all(container, call->arena, &usage, err))
        return false;
    used = kilobytes(usage.bytes);
    buf_printf(&call->lines,
               "x-ms-resource-quota: functions=%u;storedProcedures=%u;triggers=%u;"
               "documentSize=%" PRIu64 ";documentsSize=%" PRIu64
               ";documentsCount=-1;collectionSize=%" PRIu64 ";\r\n",
               limits->functions_max, limits->procedures_max, limits->triggers_max,
               kilobytes(limits->item_bytes_max), room, kilobytes(size_shown(container)));
    buf_printf(&call->lines,
               "x-ms-resource-usage: functions=%zu;storedProcedures=%zu;triggers=%zu;"
               "documentSize=0;documentsSize=%" PRIu64 ";documentsCount=%" PRIu64
               ";collectionSize=%" PRIu64 ";\r\n",
               catalogue_children_count(container_children(container, CHILD_FUNCTION)),
               catalogue_children_count(container_children(container, CHILD_PROCEDURE)),
               catalogue_children_count(container_children(container, CHILD_TRIGGER)), used,
               usage.items, used);
    return true;
}

/* --- Statistics ------------------------------------------------------------------------------ */

static bool key_append(const struct partition_definition *definition,
                       const struct container_usage_key *key, struct slice name,
                       struct buf *document, struct error *err)
{
    CLEANUP(buf_done) struct buf json, values;
    size_t object;

    buf_init(&json, BUF_DEFAULT_MAX);
    buf_init(&values, BUF_DEFAULT_MAX);
    BUF_APPEND(&json, "{\"partitionKey\":");
    partition_key_json(definition, &key->key, &json);
    buf_printf(&json, ",\"sizeInKB\":%" PRIu64 "}", kilobytes(key->usage.bytes));
    if (!document_json_read(buf_slice(&json), NULL, &values, err))
        return false;
    object = document_append_object_begin(document, name);
    buf_append(document, values.data + 4, values.len - 5); /* its elements */
    document_end(document, object);
    return true;
}

static bool keys_append(struct rest_call *call, const struct container *container,
                        const struct partition_span *span, uint64_t bytes, size_t seen_max,
                        struct buf *document, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct container_usage_key *keys;
    char name[DOCUMENT_INDEX_SIZE];
    size_t count, seen, array;

    if (!container_usage_largest(container, span, KEYS_SHOWN_MAX, seen_max, call->arena, &keys,
                                 &count, &seen, err))
        return false;
    document_append_int64(document, SLICE("sampledDistinctPartitionKeyCount"), (int64_t)seen);
    array = document_append_array_begin(document, SLICE("partitionKeys"));
    for (size_t i = 0; i < count && keys[i].usage.bytes >= bytes / 100 * KEY_PERCENT_MIN; i++)
        if (!key_append(definition, &keys[i], document_index_key((uint32_t)i, name), document, err))
            return false;
    document_end(document, array);
    return true;
}

bool rest_container_statistics(struct rest_call *call, const struct container *container,
                               struct buf *document, struct error *err)
{
    size_t count, array = document_append_array_begin(document, SLICE("statistics"));
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    char name[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < count; i++) {
        size_t object =
            document_append_object_begin(document, document_index_key((uint32_t)i, name));
        struct container_usage usage;

        if (!container_usage_partition(container, &spans[i], call->arena, &usage, err))
            return false;
        document_append_string(document, SLICE("id"), arena_printf(call->arena, "%u", spans[i].id));
        document_append_int64(document, SLICE("sizeInKB"), (int64_t)kilobytes(usage.bytes));
        document_append_int64(document, SLICE("documentCount"), (int64_t)usage.items);
        if (!keys_append(call, container, &spans[i], usage.bytes,
                         MAX(KEYS_SEEN_MAX / count, (size_t)KEYS_SEEN_MIN), document, err))
            return false;
        document_end(document, object);
    }
    document_end(document, array);
    return true;
}
