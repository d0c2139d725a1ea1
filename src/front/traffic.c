/* A client that asks the physical partitions one by one, as those of Cosmos DB do for queries
 * without a key, makes as many requests of one query. The one to the first partition stands for all
 * of them.
 *
 * Second attempts are told by a mark of the client's: .NET, Java and Python send one
 * x-ms-activity-id with all attempts of an operation, JavaScript none, but it signs once and so
 * sends one x-ms-date. */
#include "front/traffic.h"

#include "advise/traffic.h"
#include "document/bson.h"
#include "document/order.h"
#include "query/access/conditions.h"

#include <xxhash.h>

enum { AGE_MS_MAX = 60 * 1000 };

static uint64_t container_number(const struct container *container)
{
    return container_rid(container).owner;
}

bool front_traffic_is_refusal(const struct error *err)
{
    return err->code == ERROR_TOO_MANY_REQUESTS || err->code == ERROR_BUCKET_THROTTLED ||
           err->code == ERROR_KEY_THROTTLED;
}

/* How long ago the request came. */
static double age_ms(const struct front_traffic_attempt *attempt)
{
    double ms = 0;

    if (attempt->started_ns)
        ms = ((double)clock_monotonic_ns() - (double)attempt->started_ns) / 1e6;
    return MIN(MAX(ms, 0.0), (double)AGE_MS_MAX);
}

/* Is there a use for tickets? */
static bool tickets_count(const struct front_services *services, const struct container *container,
                          const struct front_traffic_attempt *attempt, int64_t now_ms)
{
    return attempt->mark.len &&
           (attempt->refused ||
            traffic_awaits(services->traffic, container_number(container), now_ms));
}

static struct traffic_wish wanted(const struct front_services *services,
                                  const struct container *container,
                                  const struct front_traffic_attempt *attempt, uint64_t ticket,
                                  uint32_t *weight, int64_t now_ms)
{
    return traffic_wants(services->traffic, container_number(container),
                         &(struct traffic_attempt){.ticket = ticket,
                                                   .now_ms = now_ms,
                                                   .refused = attempt->refused,
                                                   .weight = weight,
                                                   .wait_ms = MAX(attempt->wait_ms, (int64_t)1)});
}

static uint64_t ticket_of(const struct front_traffic_attempt *attempt, uint64_t of)
{
    return XXH3_64bits_withSeed(attempt->mark.data, attempt->mark.len, of) | 1;
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

/* A read and a write of one item at one time are two operations. */
static uint64_t item_ticket(const struct front_traffic_item *item)
{
    return ticket_of(&item->attempt,
                     identity_of(item->key, item->id) + (item->kind == ADVISE_READ));
}

void front_traffic_item(const struct front_services *services, const struct container *container,
                        const struct front_traffic_item *item)
{
    const struct definition_fields *definition = definition_fields(container_definition(container));
    CLEANUP(buf_done) struct buf where;
    CLEANUP(buf_done) struct buf id_path;
    struct advise_operation_parts parts = {.kind = item->kind,
                                           .cru = item->cru,
                                           .bytes = (uint32_t)item->document.len,
                                           .failed = item->attempt.refused,
                                           .transaction = item->transaction,
                                           .item = item->document};
    struct traffic_wish wish;
    uint64_t ticket = 0;
    int64_t now_ms;
    size_t begin;

    buf_init(&where, BUF_DEFAULT_MAX);
    buf_init(&id_path, BUF_DEFAULT_MAX);
    if (!services->traffic)
        return;
    parts.ms = age_ms(&item->attempt);
    now_ms = clock_read_wall_ms(services->clock) - (int64_t)parts.ms; /* when it asked to spend */
    parts.due_ms = now_ms + item->attempt.wait_ms;
    if (tickets_count(services, container, &item->attempt, now_ms))
        ticket = item_ticket(item);
    wish = wanted(services, container, &item->attempt, ticket, item->weight, now_ms);
    if (!wish.weight)
        return;
    begin = document_begin(&where);
    buf_printf(&id_path, "/%.*s", SLICE_ARG(definition_names_of(definition)->identity));
    document_append(&where, buf_slice(&id_path), item->id);
    if (!item->key->open)
        key_append(&definition->key, item->key, &where);
    document_end(&where, begin);
    parts.where = buf_slice(&where);
    if (!item->key->open)
        parts.identity = identity_of(item->key, item->id);
    traffic_note(services->traffic, container_number(container), &wish, &parts);
}

static void condition_path(const struct query_condition *condition, struct buf *out)
{
    document_path_append(&(struct document_path){condition->path.segments, condition->path.count,
                                                 DOCUMENT_PATH_END_NONE},
                         out);
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
        condition_path(condition, &path);
        if (condition->points && condition->point_count == 1)
            document_append(where, buf_slice(&path), &condition->points[0]);
        else
            document_append_string(ranges, document_index_key(range_count++, index),
                                   buf_slice(&path));
    }
}

/* Does the filter give the first property of the key one value? */
static bool names_key(const struct partition_definition *definition,
                      const struct query_conditions *conditions)
{
    CLEANUP(buf_done) struct buf wanted_path;
    bool named = false;

    buf_init(&wanted_path, BUF_DEFAULT_MAX);
    document_path_append(&definition->paths[0], &wanted_path);
    for (size_t i = 0; i < conditions->count && !named; i++) {
        const struct query_condition *condition = &conditions->list[i];
        CLEANUP(buf_done) struct buf path;

        buf_init(&path, BUF_DEFAULT_MAX);
        condition_path(condition, &path);
        named = !condition->elements && condition->points && condition->point_count == 1 &&
                slice_equal(buf_slice(&path), buf_slice(&wanted_path));
    }
    return named;
}

/* For how many requests of the kind this one stands; 0: another one stands for it. */
static size_t stands_for(const struct container *container, const struct front_traffic_query *query,
                         const struct query_conditions *conditions)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    const struct partition_span *spans;
    size_t count;

    if (!query->span || !definition->path_count || names_key(definition, conditions))
        return 1;
    spans = partition_map_spans(container_map(container), &count);
    return query->span->id == spans[0].id ? count : 0;
}

void front_traffic_query(const struct front_services *services, const struct container *container,
                         const struct front_traffic_query *query)
{
    const struct definition_fields *definition = definition_fields(container_definition(container));
    CLEANUP(arena_free) struct arena *arena = NULL;
    CLEANUP(buf_done) struct buf where;
    CLEANUP(buf_done) struct buf ranges;
    struct advise_operation_parts parts = {.kind = ADVISE_QUERY,
                                           .bytes = (uint32_t)MIN(query->bytes, (size_t)UINT32_MAX),
                                           .failed = query->attempt.refused};
    struct query_conditions conditions;
    size_t where_begin, ranges_begin, requests = 1;
    struct traffic_wish wish;
    uint64_t ticket = 0;
    int64_t now_ms;

    buf_init(&where, BUF_DEFAULT_MAX);
    buf_init(&ranges, BUF_DEFAULT_MAX);
    if (!services->traffic)
        return;
    if (query->span) {
        arena = arena_new();
        conditions = query_conditions_find(query->plan, DOCUMENT_ORDER_SQL, arena);
        requests = stands_for(container, query, &conditions);
        if (!requests)
            return;
    }
    parts.ms = age_ms(&query->attempt);
    now_ms = clock_read_wall_ms(services->clock) - (int64_t)parts.ms; /* when it asked to spend */
    parts.due_ms = now_ms + query->attempt.wait_ms;
    if (tickets_count(services, container, &query->attempt, now_ms))
        ticket = ticket_of(&query->attempt, XXH3_64bits(query->text.data, query->text.len));
    wish = wanted(services, container, &query->attempt, ticket, NULL, now_ms);
    if (!wish.weight)
        return;
    if (!arena) {
        arena = arena_new();
        conditions = query_conditions_find(query->plan, DOCUMENT_ORDER_SQL, arena);
    }
    where_begin = document_begin(&where);
    ranges_begin = document_begin(&ranges);
    if (query->key && !query->key->open)
        key_append(&definition->key, query->key, &where);
    if (query->named.data) {
        struct document_iter iter;

        document_iter_init(&iter, query->named);
        while (document_iter_next(&iter))
            document_append(&where, iter.key, &iter.value);
    }
    conditions_append(&conditions, &where, &ranges);
    document_end(&where, where_begin);
    document_end(&ranges, ranges_begin);
    parts.where = buf_slice(&where);
    parts.ranges = buf_slice(&ranges);
    parts.cru = query->cru * (int64_t)requests;
    traffic_note(services->traffic, container_number(container), &wish, &parts);
}
