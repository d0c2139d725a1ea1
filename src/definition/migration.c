/* A plan is the map to be published, which of its spans are new, and what they come from. So
 * publishing decides nothing.
 *
 * Formats 1 to 3, a BSON document:
 *
 *     {format: int32, kind: int32, state: int32, map: {...} as partition_map_append writes it,
 *      first: int64, count: int64 (ids of the targets),
 *      sources: [{id: int64, node: int64, epoch: int64}, ...],
 *      definition: {...} of the container, era: int64}
 *
 * The last two are there, and the format is 2, where keys are placed otherwise from then on; and
 * `missing: true` where items without a value for the new key are carried. Format 3 is a copy, with
 * `copy`: the id of the container it becomes. */
#include "definition/migration.h"

#include "document/bson.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { FORMAT = 1, FORMAT_DEFINITION = 2, FORMAT_COPY = 3, COPY_ID_MAX = 1024 };

struct migration {
    atomic_uint refs;
    enum migration_kind kind;
    enum migration_state state;
    struct partition_map *map;     /* a reference */
    struct definition *definition; /* a reference, or NULL */
    uint64_t era;
    bool allows_missing;
    char copy[COPY_ID_MAX]; /* of a copy: the id of the container it becomes */
    size_t copy_len;
    uint32_t first_id;
    struct partition_span targets[MIGRATION_TARGETS_MAX]; /* bounds and parents in the map */
    size_t target_count;
    size_t source_count;
    struct migration_source sources[MIGRATION_SOURCES_MAX];
};

/* --- Planning -------------------------------------------------------------------------------- */

/* What is being planned. */
struct planning {
    const struct partition_map *map;
    const struct migration_request *request;
    const struct partition_span *sources[MIGRATION_SOURCES_MAX]; /* of the map, in key order */
    struct arena *arena;
};

static bool refused(struct error *err, const char *why)
{
    return error_set(err, ERROR_BAD_REQUEST, "physical partitions cannot be changed so: %s", why);
}

/* Copies of what a reroute leaves as it is are not made. */
static bool keeps_sources(const struct migration_request *request)
{
    return request->kind == MIGRATION_REROUTE && request->target_count == 0;
}

static int source_compare(const void *a, const void *b)
{
    const struct partition_span *const *left = a, *const *right = b;

    return (*left > *right) - (*left < *right);
}

/* Sources may be named in any order, but must be neighbours, except to be rerouted. */
static bool sources_find(struct planning *p, struct error *err)
{
    const struct migration_request *request = p->request;
    size_t count = request->source_count;

    if (count == 0 || count > MIGRATION_SOURCES_MAX)
        return refused(err, "there are no sources, or too many");
    for (size_t i = 0; i < count; i++) {
        p->sources[i] = partition_map_find_id(p->map, request->sources[i]);
        if (!p->sources[i])
            return error_set(err, ERROR_PARTITION_UNKNOWN, "the container has no partition %u",
                             request->sources[i]);
        for (size_t j = 0; j < i; j++)
            if (p->sources[j] == p->sources[i])
                return refused(err, "a source is named twice");
    }
    qsort(p->sources, count, sizeof *p->sources, source_compare);
    if (request->kind != MIGRATION_REROUTE &&
        (size_t)(p->sources[count - 1] - p->sources[0]) + 1 != count)
        return refused(err, "sources are not neighbours");
    return true;
}

/* A part of a key goes nowhere without the others, and what is in it cannot be told apart by
 * routing keys. */
static bool parts_check(const struct planning *p, struct error *err)
{
    for (size_t i = 0; p->request->kind != MIGRATION_GATHER && i < p->request->source_count; i++)
        if (partition_map_is_part(p->map, p->sources[i]))
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "partition %u is a part of a key that is spread, and cannot be %s: "
                             "gather the key first",
                             p->sources[i]->id,
                             p->request->kind == MIGRATION_MOVE    ? "moved"
                             : p->request->kind == MIGRATION_MERGE ? "merged"
                             : p->request->kind == MIGRATION_SPLIT ? "split"
                             : p->request->kind == MIGRATION_COPY  ? "copied"
                                                                   : "changed");
    return true;
}

static bool bounds_check(const struct planning *p, struct error *err)
{
    const struct migration_request *request = p->request;
    struct slice reached = p->sources[0]->min, end = p->sources[request->source_count - 1]->max;

    if ((request->kind == MIGRATION_REROUTE || request->kind == MIGRATION_REKEY) !=
        (request->definition != NULL))
        return refused(err, "only to be rerouted or re-keyed they need another definition");
    if (request->kind == MIGRATION_REROUTE)
        return keeps_sources(request) || request->target_count == request->source_count ||
               refused(err, "there is not one target for each source");
    if (request->kind == MIGRATION_COPY) {
        size_t all;

        (void)partition_map_spans(p->map, &all);
        return (request->source_count == all && request->target_count == all && request->copy.len &&
                request->copy.len <= COPY_ID_MAX) ||
               refused(err, "only all partitions can be copied together, and under a name");
    }
    if (request->target_count == 0 || request->target_count > MIGRATION_TARGETS_MAX)
        return refused(err, "there are no targets, or too many");
    if (request->kind == MIGRATION_REKEY) {
        size_t all;

        (void)partition_map_spans(p->map, &all);
        if (request->source_count != all)
            return refused(err, "only all partitions can be re-keyed together");
    }
    for (size_t i = 0; i + 1 < request->target_count; i++) {
        if (slice_compare(request->bounds[i], reached) <= 0 ||
            slice_compare(request->bounds[i], end) >= 0)
            return refused(err, "a bound is not within the sources and behind the one before it");
        reached = request->bounds[i];
    }
    if (request->kind != MIGRATION_REKEY && request->source_count == 1 &&
        request->target_count == 1 && (!request->nodes || request->nodes[0] == p->sources[0]->node))
        return refused(err, "nothing would change");
    return true;
}

static double share_of_sources(const struct planning *p)
{
    double share = 0;

    for (size_t i = 0; i < p->request->source_count; i++)
        share += p->sources[i]->share;
    return MIN(share, 1.0); /* of all of them, rounding may make it more */
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
    if (sum <= 0 && !keeps_sources(request))
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
        room += p->sources[i]->parent_count + 1;
    parents = ARENA_ARRAY(p->arena, uint32_t, room);
    for (size_t i = 0; i < p->request->source_count; i++) {
        const struct partition_span *source = p->sources[i];

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

/* The target of a reroute, or of a copy, has what its source had. */
static struct partition_span target_of_source(const struct planning *p, size_t i, uint32_t id)
{
    struct partition_span target = *p->sources[i];

    target.id = id;
    target.epoch = 1;
    parents_set(p, &target);
    if (p->request->kind == MIGRATION_COPY) /* whose clients know no position of before */
        target.parent_count = 0;
    return target;
}

static enum partition_cut cut_of(const struct migration_request *request, struct slice bound)
{
    return request->spread.max.len && slice_compare(request->spread.min, bound) < 0 &&
                   slice_compare(bound, request->spread.max) < 0
               ? PARTITION_CUT_SPREAD
               : request->cut;
}

static struct partition_span target_of(const struct planning *p, size_t i, uint32_t id,
                                       double share)
{
    const struct migration_request *request = p->request;
    struct partition_span target = {
        .id = id,
        .epoch = 1,
        .share = share,
        .cut = i ? cut_of(request, request->bounds[i - 1]) : p->sources[0]->cut,
        .min = i ? request->bounds[i - 1] : p->sources[0]->min,
        .max = i + 1 < request->target_count ? request->bounds[i]
                                             : p->sources[request->source_count - 1]->max,
    };

    target.node = request->nodes ? request->nodes[i] : partition_map_find(p->map, target.min)->node;
    parents_set(p, &target);
    return target;
}

static bool is_source(const struct planning *p, const struct partition_span *span)
{
    for (size_t i = 0; i < p->request->source_count; i++)
        if (p->sources[i] == span)
            return true;
    return false;
}

/* A key value or a rule may begin or end at a bound that was there before, for another reason. */
static void ends_mark(const struct migration_request *request, struct partition_span *spans,
                      size_t count)
{
    for (size_t i = 0; i < count && request->ended.max.len; i++)
        if (slice_equal(spans[i].min, request->ended.min) ||
            slice_equal(spans[i].min, request->ended.max))
            spans[i].cut = request->cut;
}

static bool map_make(const struct planning *p, uint32_t first_id, double weights,
                     struct partition_map **ret_map, struct error *err)
{
    const struct migration_request *request = p->request;
    size_t before, count = 0;
    const struct partition_span *spans = partition_map_spans(p->map, &before);
    struct partition_span *after =
        ARENA_ARRAY(p->arena, struct partition_span, before + request->target_count);
    double had = share_of_sources(p);

    for (size_t i = 0; i < before; i++) {
        if (is_source(p, &spans[i]) && !keeps_sources(request))
            continue;
        after[count] = spans[i];
        if (is_source(p, &spans[i]))
            after[count].epoch++; /* behind the fence */
        else if (request->shares)
            after[count].share = request->shares[i];
        count++;
    }
    for (size_t i = 0; i < request->target_count; i++) {
        double weight = request->weights ? request->weights[i] : 1;
        double share = request->shares ? request->shares[before + i] : had * weight / weights;
        uint32_t id = first_id + (uint32_t)i;

        after[count++] = request->kind == MIGRATION_REROUTE || request->kind == MIGRATION_COPY
                             ? target_of_source(p, i, id)
                             : target_of(p, i, id, share);
    }
    ends_mark(request, after, count);
    if (request->kind == MIGRATION_REKEY || request->kind == MIGRATION_COPY)
        /* bounds of before mean other items now, or it is the map of another container */
        return partition_map_new(after, count, partition_map_version(p->map) + 1, ret_map, err);
    return partition_map_next(p->map, after, count, partition_map_version(p->map) + 1, ret_map,
                              err);
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

/* Targets have the ids that follow one another. */
static bool targets_find(struct migration *migration, size_t count)
{
    migration->target_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span =
            partition_map_find_id(migration->map, migration->first_id + (uint32_t)i);

        if (!span)
            return false;
        migration->targets[i] = *span;
    }
    return true;
}

bool migration_new(const struct partition_map *map, const struct migration_request *request,
                   uint32_t first_id, struct migration **ret_migration, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct planning planning = {.map = map, .request = request, .arena = arena};
    struct migration *migration;
    struct partition_map *next;
    double weights = 0;

    if (!sources_find(&planning, err) || !parts_check(&planning, err) ||
        !bounds_check(&planning, err) || !weights_check(request, &weights, err) ||
        !map_make(&planning, first_id, weights, &next, err))
        return false;
    migration = migration_make(request->kind, MIGRATION_MOVING, next);
    migration->definition = request->definition ? definition_ref(request->definition) : NULL;
    migration->era = request->era;
    migration->allows_missing = request->allows_missing;
    migration->copy_len = request->copy.len;
    if (request->copy.len)
        memcpy(migration->copy, request->copy.data, request->copy.len);
    migration->first_id = first_id;
    if (!targets_find(migration, request->target_count))
        assert(!"the map was made with them");
    migration->source_count = request->source_count;
    for (size_t i = 0; i < request->source_count; i++)
        migration->sources[i] = (struct migration_source){.id = planning.sources[i]->id,
                                                          .node = planning.sources[i]->node,
                                                          .epoch = planning.sources[i]->epoch};
    *ret_migration = migration;
    return true;
}

struct migration *migration_with_state(const struct migration *migration,
                                       enum migration_state state)
{
    struct migration *copy = MEMORY_NEW(struct migration);

    memcpy(copy, migration, sizeof *copy);
    atomic_init(&copy->refs, 1);
    copy->state = state;
    partition_map_ref(copy->map);
    if (copy->definition)
        definition_ref(copy->definition);
    return copy;
}

bool migration_reopened(const struct migration *migration, const struct partition_map *map,
                        struct migration **ret_migration, struct error *err)
{
    CLEANUP(migration_unref)
    struct migration *copy = migration_with_state(migration, migration->state);
    struct partition_map *next;
    size_t count;
    const struct partition_span *spans = partition_map_spans(migration->map, &count);

    for (size_t i = 0; i < copy->source_count; i++) {
        const struct partition_span *span = partition_map_find_id(map, copy->sources[i].id);

        if (!span)
            return error_set(err, ERROR_PARTITION_UNKNOWN, "the container has no partition %u",
                             copy->sources[i].id);
        copy->sources[i].epoch = span->epoch;
    }
    if (!partition_map_next(migration->map, spans, count, partition_map_version(map) + 1, &next,
                            err))
        return false;
    partition_map_unref(copy->map);
    copy->map = next;
    if (!targets_find(copy, copy->target_count))
        assert(!"the map has the spans it had");
    *ret_migration = TAKE(copy);
    return true;
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
    definition_unref(migration->definition);
    memory_free(migration);
}

enum migration_kind migration_kind(const struct migration *migration)
{
    return migration->kind;
}

const char *migration_kind_name(enum migration_kind kind)
{
    static const char *const names[MIGRATION_KINDS] = {
        [MIGRATION_SPLIT] = "split",     [MIGRATION_MERGE] = "merge",
        [MIGRATION_MOVE] = "move",       [MIGRATION_ISOLATE] = "isolate",
        [MIGRATION_REROUTE] = "reroute", [MIGRATION_REKEY] = "rekey",
        [MIGRATION_COPY] = "copy",       [MIGRATION_SPREAD] = "spread",
        [MIGRATION_GATHER] = "gather",
    };

    return names[kind];
}

enum migration_state migration_state(const struct migration *migration)
{
    return migration->state;
}

struct definition *migration_definition(const struct migration *migration)
{
    return migration->definition;
}

uint64_t migration_era(const struct migration *migration)
{
    return migration->era;
}

bool migration_allows_missing(const struct migration *migration)
{
    return migration->allows_missing;
}

uint32_t migration_id(const struct migration *migration)
{
    return migration->first_id;
}

struct partition_map *migration_map(const struct migration *migration)
{
    return migration->map;
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

struct slice migration_copy(const struct migration *migration)
{
    return slice_of(migration->copy, migration->copy_len);
}

bool migration_keeps_sources(const struct migration *migration)
{
    return migration->target_count == 0 || migration->kind == MIGRATION_COPY;
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
    document_append_int32(buf, SLICE("format"),
                          migration->copy_len     ? FORMAT_COPY
                          : migration->definition ? FORMAT_DEFINITION
                                                  : FORMAT);
    document_append_int32(buf, SLICE("kind"), (int32_t)migration->kind);
    document_append_int32(buf, SLICE("state"), (int32_t)migration->state);
    document_append(buf, SLICE("map"), &value);
    document_append_int64(buf, SLICE("first"), migration->first_id);
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
    if (migration->copy_len)
        document_append_string(buf, SLICE("copy"), migration_copy(migration));
    if (migration->definition) {
        value = document_object(definition_fields(migration->definition)->document);
        document_append(buf, SLICE("definition"), &value);
        document_append_int64(buf, SLICE("era"), (int64_t)migration->era);
        if (migration->allows_missing)
            document_append_bool(buf, SLICE("missing"), true);
    }
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

static bool definition_read(struct slice document, struct migration *migration, struct error *err)
{
    struct document_value definition, missing;
    int64_t era;

    if (!document_find(document, SLICE("definition"), &definition))
        return migration->target_count > 0 || damaged(err);
    if (definition.type != DOCUMENT_OBJECT || !number_of(document, SLICE("era"), INT64_MAX, &era))
        return damaged(err);
    migration->era = (uint64_t)era;
    migration->allows_missing = document_find(document, SLICE("missing"), &missing);
    return definition_new(definition.document, NULL, &migration->definition, err);
}

static bool copy_read(struct slice document, struct migration *migration, struct error *err)
{
    struct document_value copy;

    if (migration->kind != MIGRATION_COPY)
        return true;
    if (!document_find(document, SLICE("copy"), &copy) || copy.type != DOCUMENT_STRING ||
        copy.text.len == 0 || copy.text.len > COPY_ID_MAX ||
        migration->target_count != migration->source_count)
        return damaged(err);
    memcpy(migration->copy, copy.text.data, copy.text.len);
    migration->copy_len = copy.text.len;
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
    if (format > FORMAT_COPY)
        return error_set(err, ERROR_STORE_VERSION, "a migration of format %d is newer than %d",
                         (int)format, FORMAT_COPY);
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
    migration->first_id = (uint32_t)first;
    if (!sources_read(sources.document, migration) || !targets_find(migration, (size_t)count))
        return damaged(err);
    if (!definition_read(document, migration, err) || !copy_read(document, migration, err))
        return false;
    *ret_migration = TAKE(migration);
    return true;
}
