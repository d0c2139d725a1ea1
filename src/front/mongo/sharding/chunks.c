/* split, mergeChunks, moveChunk and moveRange. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/sharding/changing.h"
#include "front/mongo/sharding/chunk.h"
#include "front/mongo/sharding/shard.h"
#include "throughput/cost.h"

enum { ROUNDS_MAX = 4096 }; /* of moving a range: its chunks, each cut twice and moved */

/* Which chunk, or where; and where to. */
struct asked {
    struct slice find, middle, bounds, min, max, to, to_shard;

    struct arena *arena;
    uint32_t node;
    bool done;
};

static bool asked_read(struct mongo_call *call, const struct mongo_field *fields, size_t count,
                       struct mongo_namespace *ret_name, struct asked *ret_asked, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};

    ret_asked->arena = call->arena;
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    return mongo_change_check(call, err) &&
           mongo_change_namespace(call, &call->target, ret_name, err) &&
           mongo_arguments_read(call, fields, count, ret_asked, err) &&
           mongo_sharded_open(call, ret_name, &collection, err);
}

static bool one_of(const struct mongo_call *call, size_t given, const char *names,
                   struct error *err)
{
    return given == 1 || mongo_error_set(err, MONGO_INVALID_OPTIONS, "%s needs exactly one of %s",
                                         call->command->name, names);
}

/* --- split ----------------------------------------------------------------------------------- */

static bool middle_begin(struct migrator *migrator, struct container *container,
                         const struct asked *asked, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    const struct partition_span *span;
    struct partition_range behind;

    if (!mongo_bound_read(definition, asked->middle, asked->arena, &behind.min, err))
        return false;
    span = partition_map_find(container_map(container), behind.min);
    behind.max = span->max;
    if (slice_compare(behind.min, span->min) <= 0 || slice_compare(behind.min, span->max) >= 0)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "new split key is a boundary key of an existing chunk");
    return migrator_carve(migrator, container, span->id, &behind, err);
}

static bool split_begin(struct migrator *migrator, struct container *container, void *context,
                        bool *ret_needed UNUSED, struct error *err)
{
    const struct asked *asked = context;
    const struct partition_span *span;

    if (asked->middle.data)
        return middle_begin(migrator, container, asked, err);
    if (!(asked->find.data
              ? mongo_chunk_of_document(container, asked->find, asked->arena, &span, err)
              : mongo_chunk_of_bounds(container, asked->bounds, asked->arena, &span, err)))
        return false;
    return migrator_split(migrator, container, span->id, 2, NULL, err);
}

bool mongo_split(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"find", MONGO_FIELD_OBJECT, offsetof(struct asked, find)},
        {"middle", MONGO_FIELD_OBJECT, offsetof(struct asked, middle)},
        {"bounds", MONGO_FIELD_ARRAY, offsetof(struct asked, bounds)},
    };
    struct asked asked = {0};
    struct mongo_namespace name;

    if (!asked_read(call, fields, ARRAY_LEN(fields), &name, &asked, err) ||
        !one_of(call,
                (size_t)(asked.find.data != NULL) + (asked.middle.data != NULL) +
                    (asked.bounds.data != NULL),
                "find, middle and bounds", err))
        return false;
    return mongo_change_run(call, &name, split_begin, &asked, err);
}

/* --- mergeChunks ----------------------------------------------------------------------------- */

static bool merge_begin(struct migrator *migrator, struct container *container, void *context,
                        bool *ret_needed UNUSED, struct error *err)
{
    const struct asked *asked = context;
    const struct partition_span *spans;
    uint32_t ids[MIGRATION_SOURCES_MAX];
    size_t count;

    if (!mongo_chunks_between(container, asked->bounds, asked->arena, &spans, &count, err))
        return false;
    if (count < 2)
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                               "could not merge chunks: there is one between the bounds");
    if (count > MIGRATION_SOURCES_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "at most %d chunks are merged at once",
                               MIGRATION_SOURCES_MAX);
    for (size_t i = 0; i < count; i++)
        ids[i] = spans[i].id;
    return migrator_merge(migrator, container, ids, count, err);
}

bool mongo_merge_chunks(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"bounds", MONGO_FIELD_ARRAY, offsetof(struct asked, bounds), true},
    };
    struct asked asked = {0};
    struct mongo_namespace name;

    return asked_read(call, fields, ARRAY_LEN(fields), &name, &asked, err) &&
           mongo_change_run(call, &name, merge_begin, &asked, err);
}

/* --- moveChunk ------------------------------------------------------------------------------- */

static bool move_begin(struct migrator *migrator, struct container *container, void *context,
                       bool *ret_needed, struct error *err)
{
    const struct asked *asked = context;
    const struct partition_span *span;

    if (!(asked->find.data
              ? mongo_chunk_of_document(container, asked->find, asked->arena, &span, err)
              : mongo_chunk_of_bounds(container, asked->bounds, asked->arena, &span, err)))
        return false;
    *ret_needed = span->node != asked->node;
    return !*ret_needed || migrator_move(migrator, container, span->id, asked->node, err);
}

static void duration_append(struct mongo_call *call, int64_t began_ms)
{
    document_append_int64(&call->reply, SLICE("millis"),
                          clock_read_monotonic_ms(call->services->clock) - began_ms);
}

/* What a move waits for besides its documents makes no difference to the answer: it always does. */
bool mongo_move_chunk(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"find", MONGO_FIELD_OBJECT, offsetof(struct asked, find)},
        {"bounds", MONGO_FIELD_ARRAY, offsetof(struct asked, bounds)},
        {"to", MONGO_FIELD_STRING, offsetof(struct asked, to), true},
        {"forceJumbo", MONGO_FIELD_ANY},
        {"_secondaryThrottle", MONGO_FIELD_ANY},
        {"secondaryThrottle", MONGO_FIELD_ANY},
        {"_waitForDelete", MONGO_FIELD_ANY},
        {"waitForDelete", MONGO_FIELD_ANY},
    };
    int64_t began_ms = clock_read_monotonic_ms(call->services->clock);
    struct asked asked = {0};
    struct mongo_namespace name;

    if (!mongo_shards_owned(call, err) ||
        !asked_read(call, fields, ARRAY_LEN(fields), &name, &asked, err) ||
        !one_of(call, (size_t)(asked.find.data != NULL) + (asked.bounds.data != NULL),
                "find and bounds", err) ||
        !mongo_shard_find(call, asked.to, &asked.node, err) ||
        !mongo_change_run(call, &name, move_begin, &asked, err))
        return false;
    duration_append(call, began_ms);
    return true;
}

/* --- moveRange ------------------------------------------------------------------------------- */

/* What is not said is where the chunk ends that the other bound is in. */
static bool range_read(const struct container *container, const struct asked *asked,
                       struct partition_range *ret_range, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    const struct partition_map *map = container_map(container);
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);
    struct slice min = {0}, max = {0};

    if ((asked->min.data && !mongo_bound_read(definition, asked->min, asked->arena, &min, err)) ||
        (asked->max.data && !mongo_bound_read(definition, asked->max, asked->arena, &max, err)))
        return false;
    if (!asked->max.data)
        max = partition_map_find(map, min)->max;
    if (!asked->min.data) {
        size_t i = 0;

        while (i + 1 < count && slice_compare(spans[i].max, max) < 0)
            i++;
        min = spans[i].min;
    }
    *ret_range = (struct partition_range){min, max};
    return slice_compare(min, max) < 0 ||
           mongo_error_set(err, MONGO_BAD_VALUE, "the range from min to max is empty");
}

/* One step: the first chunk of the range that is elsewhere is cut out, or moved. */
static bool range_begin(struct migrator *migrator, struct container *container, void *context,
                        bool *ret_needed, struct error *err)
{
    struct asked *asked = context;
    struct partition_range range;
    const struct partition_span *spans;
    size_t count;

    if (!range_read(container, asked, &range, err))
        return false;
    spans = partition_map_overlap(container_map(container), range, &count);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].node == asked->node)
            continue;
        if (slice_compare(spans[i].min, range.min) < 0 ||
            slice_compare(spans[i].max, range.max) > 0)
            return migrator_carve(migrator, container, spans[i].id, &range, err);
        return migrator_move(migrator, container, spans[i].id, asked->node, err);
    }
    *ret_needed = false;
    asked->done = true;
    return true;
}

bool mongo_move_range(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"min", MONGO_FIELD_OBJECT, offsetof(struct asked, min)},
        {"max", MONGO_FIELD_OBJECT, offsetof(struct asked, max)},
        {"toShard", MONGO_FIELD_STRING, offsetof(struct asked, to_shard), true},
        {"forceJumbo", MONGO_FIELD_ANY},
        {"secondaryThrottle", MONGO_FIELD_ANY},
        {"_secondaryThrottle", MONGO_FIELD_ANY},
        {"waitForDelete", MONGO_FIELD_ANY},
        {"_waitForDelete", MONGO_FIELD_ANY},
    };
    struct asked asked = {0};
    struct mongo_namespace name;

    if (!mongo_shards_owned(call, err) ||
        !asked_read(call, fields, ARRAY_LEN(fields), &name, &asked, err) ||
        !mongo_shard_find(call, asked.to_shard, &asked.node, err))
        return false;
    if (!asked.min.data && !asked.max.data)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "moveRange needs min, max or both");
    for (int i = 0; i < ROUNDS_MAX && !asked.done; i++)
        if (!mongo_change_run(call, &name, range_begin, &asked, err))
            return false;
    return asked.done || mongo_error_set(err, MONGO_CONFLICTING_OPERATION,
                                         "the chunks of the range are changed by others all the "
                                         "time");
}
