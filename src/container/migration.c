/* A plan is the map to be published, which of its spans are new, and what they come from. So
 * publishing decides nothing.
 *
 * Format 1, a BSON document:
 *
 *     {format: 1, kind: int32, state: int32, map: {...} as partition_map_append writes it,
 *      first: int64, count: int64 (ids of the targets),
 *      sources: [{id: int64, node: int64, epoch: int64}, ...]} */
#include "container/migration.h"

#include "document/bson.h"

#include <stdatomic.h>

enum { FORMAT = 1 };

struct migration {
    atomic_uint refs;
    enum migration_kind kind;
    enum migration_state state;
    struct partition_map *map; /* a reference */
    const struct partition_span *targets;
    size_t target_count;
    size_t source_count;
    struct migration_source sources[MIGRATION_SOURCES_MAX];
};

/* --- Planning -------------------------------------------------------------------------------- */

/* What is being planned. */
struct planning {
    const struct partition_map *map;
    const struct migration_request *request;
    const struct partition_span *sources; /* in the map, in key order */
    struct arena *arena;
};

static bool refused(struct error *err, const char *why)
{
    return error_set(err, ERROR_BAD_REQUEST, "physical partitions cannot be changed so: %s", why);
}

/* Sources may be named in any order, but must be neighbours. */
static bool sources_find(struct planning *p, struct error *err)
{
    const struct migration_request *request = p->request;
    const struct partition_span *first = NULL, *last = NULL;

    if (request->source_count == 0 || request->source_count > MIGRATION_SOURCES_MAX)
        return refused(err, "there are no sources, or too many");
    for (size_t i = 0; i < request->source_count; i++) {
        const struct partition_span *span = partition_map_find_id(p->map, request->sources[i]);

        if (!span)
            return error_set(err, ERROR_PARTITION_UNKNOWN, "the container has no partition %u",
                             request->sources[i]);
        for (size_t j = 0; j < i; j++)
            if (request->sources[j] == span->id)
                return refused(err, "a source is named twice");
        first = !first || span < first ? span : first;
        last = !last || span > last ? span : last;
    }
    if ((size_t)(last - first) + 1 != request->source_count)
        return refused(err, "sources are not neighbours");
    p->sources = first;
    return true;
}

static bool bounds_check(const struct planning *p, struct error *err)
{
    const struct migration_request *request = p->request;
    struct slice reached = p->sources[0].min, end = p->sources[request->source_count - 1].max;

    if (request->target_count == 0 || request->target_count > MIGRATION_TARGETS_MAX)
        return refused(err, "there are no targets, or too many");
    for (size_t i = 0; i + 1 < request->target_count; i++) {
        if (slice_compare(request->bounds[i], reached) <= 0 ||
            slice_compare(request->bounds[i], end) >= 0)
            return refused(err, "a bound is not within the sources and behind the one before it");
        reached = request->bounds[i];
    }
    if (request->source_count == 1 && request->target_count == 1 &&
        (!request->nodes || request->nodes[0] == p->sources[0].node))
        return refused(err, "nothing would change");
    return true;
}

static double share_of_sources(const struct planning *p)
{
    double share = 0;

    for (size_t i = 0; i < p->request->source_count; i++)
        share += p->sources[i].share;
    return share;
}

static bool weights_check(const struct migration_request *request, double *ret_sum,
                          struct error *err)
{
    double sum = 0;

    for (size_t i = 0; i < request->target_count; i++) {
        double weight = request->weights ? request->weights[i] : 1;

        if (!(weight >= 0 && weight <= 1e12)) /* so written, it refuses NaN too */
            return refused(err, "a weight is negative or too large");
        sum += weight;
    }
    if (sum <= 0)
        return refused(err, "all weights are zero");
    *ret_sum = sum;
    return true;
}

static bool is_among(const uint32_t *ids, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* All ancestors, oldest first: clients find a position of any of them. */
static void parents_set(const struct planning *p, struct partition_span *target)
{
    size_t count = 0, room = 0;
    uint32_t *parents;

    for (size_t i = 0; i < p->request->source_count; i++)
        room += p->sources[i].parent_count + 1;
    parents = ARENA_ARRAY(p->arena, uint32_t, room);
    for (size_t i = 0; i < p->request->source_count; i++) {
        const struct partition_span *source = &p->sources[i];

        if (slice_compare(source->min, target->max) >= 0 ||
            slice_compare(source->max, target->min) <= 0)
            continue;
        for (size_t j = 0; j < source->parent_count; j++)
            if (!is_among(parents, count, source->parents[j]))
                parents[count++] = source->parents[j];
        parents[count++] = source->id;
    }
    target->parents = parents;
    target->parent_count = count;
}

static struct partition_span target_of(const struct planning *p, size_t i, uint32_t id,
                                       double share)
{
    const struct migration_request *request = p->request;
    struct partition_span target = {
        .id = id,
        .epoch = 1,
        .share = share,
        .min = i ? request->bounds[i - 1] : p->sources[0].min,
        .max = i + 1 < request->target_count ? request->bounds[i]
                                             : p->sources[request->source_count - 1].max,
    };

    target.node = request->nodes ? request->nodes[i] : partition_map_find(p->map, target.min)->node;
    parents_set(p, &target);
    return target;
}

static bool map_make(const struct planning *p, uint32_t first_id, double weights,
                     struct partition_map **ret_map, struct error *err)
{
    const struct migration_request *request = p->request;
    size_t before, count = 0;
    const struct partition_span *spans = partition_map_spans(p->map, &before);
    struct partition_span *after =
        ARENA_ARRAY(p->arena, struct partition_span, before + request->target_count);

    for (size_t i = 0; i < before; i++)
        if (&spans[i] < p->sources || &spans[i] >= p->sources + request->source_count)
            after[count++] = spans[i];
    for (size_t i = 0; i < request->target_count; i++) {
        double weight = request->weights ? request->weights[i] : 1;

        after[count++] =
            target_of(p, i, first_id + (uint32_t)i, share_of_sources(p) * weight / weights);
    }
    return partition_map_new(after, count, partition_map_version(p->map) + 1, ret_map, err);
}

static struct migration *migration_make(enum migration_kind kind, enum migration_state state,
                                        struct partition_map *map)
{
    struct migration *migration = MEMORY_NEW(struct migration);

    atomic_init(&migration->refs, 1);
    migration->kind = kind;
    migration->state = state;
    migration->map = map;
    return migration;
}

bool migration_new(const struct partition_map *map, const struct migration_request *request,
                   uint32_t first_id, struct migration **ret_migration, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct planning planning = {.map = map, .request = request, .arena = arena};
    struct migration *migration;
    struct partition_map *next;
    double weights = 0;

    if (!sources_find(&planning, err) || !bounds_check(&planning, err) ||
        !weights_check(request, &weights, err) ||
        !map_make(&planning, first_id, weights, &next, err))
        return false;
    migration = migration_make(request->kind, MIGRATION_MOVING, next);
    migration->targets = partition_map_find_id(next, first_id);
    migration->target_count = request->target_count;
    migration->source_count = request->source_count;
    for (size_t i = 0; i < request->source_count; i++)
        migration->sources[i] = (struct migration_source){.id = planning.sources[i].id,
                                                          .node = planning.sources[i].node,
                                                          .epoch = planning.sources[i].epoch};
    *ret_migration = migration;
    return true;
}

struct migration *migration_with_state(const struct migration *migration,
                                       enum migration_state state)
{
    struct migration *copy =
        migration_make(migration->kind, state, partition_map_ref(migration->map));

    copy->targets = migration->targets;
    copy->target_count = migration->target_count;
    copy->source_count = migration->source_count;
    memcpy(copy->sources, migration->sources, sizeof copy->sources);
    return copy;
}

/* --- Looking --------------------------------------------------------------------------------- */

struct migration *migration_ref(struct migration *migration)
{
    if (migration)
        atomic_fetch_add_explicit(&migration->refs, 1, memory_order_relaxed);
    return migration;
}

void migration_unref(struct migration *migration)
{
    if (!migration || atomic_fetch_sub(&migration->refs, 1) != 1)
        return;
    partition_map_unref(migration->map);
    memory_free(migration);
}

enum migration_kind migration_kind(const struct migration *migration)
{
    return migration->kind;
}

const char *migration_kind_name(enum migration_kind kind)
{
    static const char *const names[MIGRATION_KINDS] = {
        [MIGRATION_SPLIT] = "split",
        [MIGRATION_MERGE] = "merge",
        [MIGRATION_MOVE] = "move",
        [MIGRATION_ISOLATE] = "isolate",
    };

    return names[kind];
}

enum migration_state migration_state(const struct migration *migration)
{
    return migration->state;
}

struct partition_map *migration_map(const struct migration *migration)
{
    return migration->map;
}

uint32_t migration_id(const struct migration *migration)
{
    return migration->targets->id;
}

const struct migration_source *migration_sources(const struct migration *migration,
                                                 size_t *ret_count)
{
    *ret_count = migration->source_count;
    return migration->sources;
}

const struct partition_span *migration_targets(const struct migration *migration, size_t *ret_count)
{
    *ret_count = migration->target_count;
    return migration->targets;
}

/* --- BSON ------------------------------------------------------------------------------------ */

void migration_append(const struct migration *migration, struct buf *buf)
{
    CLEANUP(buf_done) struct buf map;
    struct document_value value;
    char index[DOCUMENT_INDEX_SIZE];
    size_t document, array;

    buf_init(&map, BUF_DEFAULT_MAX);
    partition_map_append(migration->map, &map);
    value = document_object(buf_slice(&map));
    document = document_begin(buf);
    document_append_int32(buf, SLICE("format"), FORMAT);
    document_append_int32(buf, SLICE("kind"), (int32_t)migration->kind);
    document_append_int32(buf, SLICE("state"), (int32_t)migration->state);
    document_append(buf, SLICE("map"), &value);
    document_append_int64(buf, SLICE("first"), migration->targets[0].id);
    document_append_int64(buf, SLICE("count"), (int64_t)migration->target_count);
    array = document_append_array_begin(buf, SLICE("sources"));
    for (uint32_t i = 0; i < migration->source_count; i++) {
        const struct migration_source *source = &migration->sources[i];
        size_t object = document_append_object_begin(buf, document_index_key(i, index));

        document_append_int64(buf, SLICE("id"), source->id);
        document_append_int64(buf, SLICE("node"), source->node);
        document_append_int64(buf, SLICE("epoch"), (int64_t)source->epoch);
        document_end(buf, object);
    }
    document_end(buf, array);
    document_end(buf, document);
}

static bool damaged(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a migration in the catalogue is damaged");
}

static bool number_of(struct slice document, struct slice name, int64_t max, int64_t *ret_number)
{
    struct document_value value;

    return document_find(document, name, &value) && document_to_int64(&value, ret_number) &&
           *ret_number >= 0 && *ret_number <= max;
}

static bool sources_read(struct slice array, struct migration *migration)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        int64_t id, node, epoch;

        if (migration->source_count == MIGRATION_SOURCES_MAX ||
            iter.value.type != DOCUMENT_OBJECT ||
            !number_of(iter.value.document, SLICE("id"), UINT32_MAX, &id) ||
            !number_of(iter.value.document, SLICE("node"), UINT32_MAX, &node) ||
            !number_of(iter.value.document, SLICE("epoch"), INT64_MAX, &epoch))
            return false;
        migration->sources[migration->source_count++] = (struct migration_source){
            .id = (uint32_t)id, .node = (uint32_t)node, .epoch = (uint64_t)epoch};
    }
    return migration->source_count > 0;
}

/* The targets follow one another in the map, by ids as by keys. */
static bool targets_find(struct migration *migration, int64_t first, int64_t count)
{
    size_t spans;
    const struct partition_span *begin = partition_map_spans(migration->map, &spans);
    const struct partition_span *target = partition_map_find_id(migration->map, (uint32_t)first);

    if (!target || count < 1 || (size_t)count > spans - (size_t)(target - begin))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (target[i].id != (uint32_t)(first + i))
            return false;
    migration->targets = target;
    migration->target_count = (size_t)count;
    return true;
}

bool migration_parse(struct slice document, struct migration **ret_migration, struct error *err)
{
    CLEANUP(migration_unref) struct migration *migration = NULL;
    struct document_value map, sources;
    struct partition_map *next;
    int64_t format, kind, state, first, count;

    if (!number_of(document, SLICE("format"), INT32_MAX, &format))
        return damaged(err);
    if (format > FORMAT)
        return error_set(err, ERROR_STORE_VERSION, "a migration of format %d is newer than %d",
                         (int)format, FORMAT);
    if (!number_of(document, SLICE("kind"), MIGRATION_KINDS - 1, &kind) ||
        !number_of(document, SLICE("state"), MIGRATION_CANCELLED, &state) ||
        !number_of(document, SLICE("first"), UINT32_MAX, &first) ||
        !number_of(document, SLICE("count"), MIGRATION_TARGETS_MAX, &count) ||
        !document_find(document, SLICE("map"), &map) || map.type != DOCUMENT_OBJECT ||
        !document_find(document, SLICE("sources"), &sources) || sources.type != DOCUMENT_ARRAY)
        return damaged(err);
    if (!partition_map_read(map.document, &next, err))
        return false;
    migration = migration_make((enum migration_kind)kind, (enum migration_state)state, next);
    if (!sources_read(sources.document, migration) || !targets_find(migration, first, count))
        return damaged(err);
    *ret_migration = TAKE(migration);
    return true;
}
