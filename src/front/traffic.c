#include "front/traffic.h"

#include "advise/traffic.h"
#include "document/bson.h"
#include "document/order.h"
#include "query/condition.h"

#include <xxhash.h>

static uint64_t container_number(const struct container *container)
{
    return container_rid(container).owner;
}

static uint32_t wanted(const struct front_services *services, const struct container *container,
                       int64_t *ret_now_ms)
{
    if (!services->traffic)
        return 0;
    *ret_now_ms = clock_read_wall_ms(services->clock);
    return traffic_wants(services->traffic, container_number(container), *ret_now_ms);
}

/* What the client named to get at the item: its key's paths. */
static void key_append(const struct partition_definition *definition,
                       const struct partition_key *key, struct buf *out)
{
    for (size_t i = 0; i < key->count && i < definition->path_count; i++) {
        CLEANUP(buf_done) struct buf path;

        buf_init(&path, BUF_DEFAULT_MAX);
        document_path_append(&definition->paths[i], &path);
        if (key->components[i].type != DOCUMENT_UNDEFINED && !buf_overflowed(&path))
            document_append(out, buf_slice(&path), &key->components[i]);
    }
}

static uint64_t identity_of(const struct partition_key *key, const struct document_value *id)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(key, &bytes);
    document_key_append(DOCUMENT_ORDER_SQL, id, &bytes);
    return XXH3_64bits(bytes.data, bytes.len) | 1;
}

void front_traffic_item(const struct front_services *services, const struct container *container,
                        const struct front_traffic_item *item)
{
    const struct definition_fields *definition = definition_fields(container_definition(container));
    CLEANUP(buf_done) struct buf where;
    struct advise_operation_parts parts = {.kind = item->kind,
                                           .cru = item->cru,
                                           .bytes = (uint32_t)item->document.len,
                                           .transaction = item->transaction,
                                           .item = item->document};
    uint32_t weight = wanted(services, container, &parts.time_ms);
    size_t begin;

    buf_init(&where, BUF_DEFAULT_MAX);
    if (!weight)
        return;
    begin = document_begin(&where);
    document_append(&where, SLICE("/id"), item->id);
    key_append(&definition->key, item->key, &where);
    document_end(&where, begin);
    parts.where = buf_slice(&where);
    parts.identity = identity_of(item->key, item->id);
    traffic_note(services->traffic, container_number(container), weight, &parts);
}

/* The paths of a filter: those that must equal one value, and those bounded otherwise. */
static void conditions_append(const struct query_conditions *conditions, struct buf *where,
                              struct buf *ranges)
{
    uint32_t range_count = 0;

    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];
        CLEANUP(buf_done) struct buf path;
        char index[DOCUMENT_INDEX_SIZE];

        buf_init(&path, BUF_DEFAULT_MAX);
        if (condition->elements)
            continue;
        document_path_append(&(struct document_path){condition->path.segments,
                                                     condition->path.count, DOCUMENT_PATH_END_NONE},
                             &path);
        if (condition->points && condition->point_count == 1)
            document_append(where, buf_slice(&path), &condition->points[0]);
        else
            document_append_string(ranges, document_index_key(range_count++, index),
                                   buf_slice(&path));
    }
}

void front_traffic_query(const struct front_services *services, const struct container *container,
                         const struct query_plan *plan, const struct partition_key *key,
                         int64_t cru, size_t bytes)
{
    const struct definition_fields *definition = definition_fields(container_definition(container));
    CLEANUP(arena_free) struct arena *arena = NULL;
    CLEANUP(buf_done) struct buf where;
    CLEANUP(buf_done) struct buf ranges;
    struct advise_operation_parts parts = {
        .kind = ADVISE_QUERY, .cru = cru, .bytes = (uint32_t)MIN(bytes, (size_t)UINT32_MAX)};
    uint32_t weight = wanted(services, container, &parts.time_ms);
    struct query_conditions conditions;
    size_t where_begin, ranges_begin;

    buf_init(&where, BUF_DEFAULT_MAX);
    buf_init(&ranges, BUF_DEFAULT_MAX);
    if (!weight)
        return;
    arena = arena_new();
    conditions = query_conditions_find(plan, arena);
    where_begin = document_begin(&where);
    ranges_begin = document_begin(&ranges);
    if (key)
        key_append(&definition->key, key, &where);
    conditions_append(&conditions, &where, &ranges);
    document_end(&where, where_begin);
    document_end(&ranges, ranges_begin);
    parts.where = buf_slice(&where);
    parts.ranges = buf_slice(&ranges);
    traffic_note(services->traffic, container_number(container), weight, &parts);
}
