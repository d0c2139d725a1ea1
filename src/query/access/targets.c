/* Where to look: the partition key as the request and the filter give it. Single values lead to
 * logical partitions, whatever the strategy; where the routing keys have the order of the values,
 * ranges of the first component that has no single values lead to ranges of them. A component that
 * the server makes is also given by what it is made of; of suffixes the base alone gives all. */
#include "query/access/access_private.h"

#include "partition/synthetic.h"

#include <stdlib.h>

static struct query_target base_target(const struct query_request *request, struct arena *arena)
{
    const struct partition_definition *definition = &request->space->definition->key;
    const struct query_scope *scope = &request->scope;
    struct query_target target = {.range = {PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX}};

    switch (scope->kind) {
    case QUERY_SCOPE_CONTAINER:
    case QUERY_SCOPE_KEYS:
        break;
    case QUERY_SCOPE_RANGE:
        target.range = scope->range;
        break;
    case QUERY_SCOPE_KEY:
        target.range = partition_route_range(definition, &scope->key, arena);
        if (!scope->key.partial)
            target.logical = item_logical(definition, &scope->key, arena);
        break;
    }
    return target;
}

/* The values a part of the filter allows at a path of the partition key. */
static const struct query_condition *key_condition(const struct query_conditions *conditions,
                                                   const struct document_path *path)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    index_path_append(path, &prefix);
    for (size_t i = 0; i < conditions->part_count; i++) {
        const struct query_condition *part = &conditions->parts[i];

        if (!part->elements && part->points && slice_equal(part->prefix, buf_slice(&prefix)))
            return part;
    }
    return NULL;
}

/* All that the filter says of a path of the partition key, as ranges of its values. */
static const struct query_condition *range_condition(const struct query_conditions *conditions,
                                                     const struct document_path *path)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    index_path_append(path, &prefix);
    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];

        if (!condition->elements && slice_equal(condition->prefix, buf_slice(&prefix)))
            return condition;
    }
    return NULL;
}

/* The values of one component. */
struct level {
    const struct document_value *points;
    size_t count;
    uint64_t conjuncts; /* that say no more than this */
};

struct combining {
    const struct partition_definition *definition;
    struct level levels[PARTITION_PATHS_MAX];
    size_t level_count, total;         /* combinations */
    const struct query_ranges *ranges; /* of the level behind them, or NULL */
    const struct query_target *base;
    struct query_target *list;
    size_t count;
    struct arena *arena;
};

static bool target_narrow(struct query_target *target, const struct query_target *base)
{
    if (base->logical.len && target->logical.len)
        return slice_equal(base->logical, target->logical);
    if (slice_compare(base->range.min, target->range.min) > 0)
        target->range.min = base->range.min;
    if (slice_compare(base->range.max, target->range.max) < 0)
        target->range.max = base->range.max;
    if (base->logical.len)
        target->logical = base->logical;
    return slice_compare(target->range.min, target->range.max) < 0;
}

static void target_add(struct combining *c, struct query_target target)
{
    if (target_narrow(&target, c->base))
        c->list[c->count++] = target;
}

/* The combination of that number: one value for each level. */
static void combine(struct combining *c, size_t number)
{
    struct document_value values[PARTITION_PATHS_MAX];
    struct query_target target = {0};
    struct partition_key key;

    for (size_t i = 0; i < MIN(c->level_count, ARRAY_LEN(values)); i++) {
        values[i] = c->levels[i].points[number % c->levels[i].count];
        number /= c->levels[i].count;
    }
    key = partition_key_of(c->definition, values, c->level_count);
    for (size_t i = 0; c->ranges && i < c->ranges->count; i++)
        target_add(c, (struct query_target){.range = partition_route_between(
                                                c->definition, &key, c->ranges->list[i].min,
                                                c->ranges->list[i].max, c->arena)});
    if (c->ranges)
        return;
    target.range = partition_route_range(c->definition, &key, c->arena);
    if (!key.partial)
        target.logical = item_logical(c->definition, &key, c->arena);
    target_add(c, target);
}

static int by_range(const void *a, const void *b)
{
    return slice_compare(((const struct query_target *)a)->range.min,
                         ((const struct query_target *)b)->range.min);
}

/* Equal keys once; ranges that meet, as long texts may make them, become one. False: two keys share
 * a routing key, so that the targets would not be apart. */
static bool targets_sort(struct combining *c)
{
    size_t kept = 0;

    if (c->count > 1)
        qsort(c->list, c->count, sizeof *c->list, by_range);
    for (size_t i = 0; i < c->count; i++) {
        struct query_target *last = kept ? &c->list[kept - 1] : NULL;

        if (c->ranges && last && slice_compare(c->list[i].range.min, last->range.max) <= 0) {
            if (slice_compare(c->list[i].range.max, last->range.max) > 0)
                last->range.max = c->list[i].range.max;
            continue;
        }
        if (kept && slice_equal(c->list[kept - 1].range.min, c->list[i].range.min)) {
            if (!slice_equal(c->list[kept - 1].logical, c->list[i].logical))
                return false;
            continue;
        }
        c->list[kept++] = c->list[i];
    }
    c->count = kept;
    return true;
}

/* The level behind those with single values. */
static size_t ranges_find(struct combining *c, const struct query_conditions *conditions,
                          size_t total)
{
    const struct query_condition *condition = NULL;

    if (c->level_count < c->definition->path_count && partition_route_is_ordered(c->definition))
        condition = range_condition(conditions, &c->definition->paths[c->level_count]);
    if (!condition || total * condition->ranges.count > QUERY_TARGETS_MAX)
        return total;
    c->ranges = &condition->ranges;
    return total * condition->ranges.count;
}

/* One combination of source values, made a point or, of the base of suffixes alone, all of them. */
static bool points_make(const struct combining *c, const struct document_value *values,
                        bool base_alone, struct document_value *points, size_t *count)
{
    const struct partition_synthetic *synthetic = c->definition->synthetic;
    struct error ignored;

    if (!base_alone)
        return partition_synthetic_compute(synthetic, values, 0, c->arena, &points[(*count)++],
                                           &ignored);
    for (uint32_t i = 1; i <= synthetic->suffixes; i++)
        if (!partition_synthetic_suffixed(synthetic, &values[0], i, c->arena, &points[(*count)++],
                                          &ignored))
            return false;
    return true;
}

/* The values that a made component can have by what the filter says of its sources. The filter says
 * more than that, so it is looked at all the same. */
static bool level_make(const struct combining *c, const struct query_conditions *conditions,
                       struct level *ret_level)
{
    const struct partition_synthetic *synthetic = c->definition->synthetic;
    const struct query_condition *sources[PARTITION_SOURCES_MAX];
    size_t known = 0, total = 1, count = 0;
    struct document_value *points;
    bool base_alone;

    for (; known < synthetic->source_count; known++) {
        sources[known] = key_condition(conditions, &synthetic->sources[known]);
        if (!sources[known] || !sources[known]->point_count ||
            total * sources[known]->point_count > QUERY_TARGETS_MAX)
            break;
        total *= sources[known]->point_count;
    }
    base_alone = synthetic->suffixes && known == 1;
    if ((known < synthetic->source_count && !base_alone) ||
        (base_alone && total * synthetic->suffixes > QUERY_TARGETS_MAX))
        return false;
    points = ARENA_ARRAY(c->arena, struct document_value,
                         total * (base_alone ? synthetic->suffixes : 1));
    for (size_t i = 0; i < total; i++) {
        struct document_value values[PARTITION_SOURCES_MAX];

        for (size_t at = 0, number = i; at < known; at++) {
            values[at] = sources[at]->points[number % sources[at]->point_count];
            number /= sources[at]->point_count;
        }
        if (!points_make(c, values, base_alone, points, &count))
            return false;
    }
    *ret_level = (struct level){.points = points, .count = count};
    return true;
}

static bool level_find(const struct combining *c, const struct query_conditions *conditions,
                       size_t at, struct level *ret_level)
{
    const struct query_condition *condition = key_condition(conditions, &c->definition->paths[at]);

    if (condition) {
        *ret_level =
            (struct level){condition->points, condition->point_count, condition->conjuncts};
        return true;
    }
    return c->definition->synthetic && c->definition->synthetic->target == at &&
           level_make(c, conditions, ret_level);
}

static bool levels_find(struct combining *c, const struct query_conditions *conditions)
{
    size_t total = 1, room;

    for (; c->level_count < c->definition->path_count; c->level_count++) {
        struct level *level = &c->levels[c->level_count];

        if (!level_find(c, conditions, c->level_count, level) || !level->count ||
            total * level->count > QUERY_TARGETS_MAX)
            break;
        total *= level->count;
    }
    room = ranges_find(c, conditions, total);
    if (!c->level_count && !c->ranges)
        return false;
    c->total = total;
    c->list = ARENA_ARRAY(c->arena, struct query_target, room + 1);
    return true;
}

/* Each of the keys of the request; none: two of them share a routing key. What the filter says of
 * the key does not narrow them further. */
static struct query_targets targets_of_keys(const struct query_scope *scope, struct combining *c)
{
    c->list = ARENA_ARRAY(c->arena, struct query_target, scope->key_count);
    for (size_t i = 0; i < scope->key_count; i++) {
        const struct partition_key *key = &scope->keys[i];
        struct query_target target = {.range = partition_route_range(c->definition, key, c->arena)};

        if (!key->partial)
            target.logical = item_logical(c->definition, key, c->arena);
        c->list[c->count++] = target;
    }
    return (struct query_targets){.list = c->list, .count = targets_sort(c) ? c->count : 0};
}

struct query_targets query_targets_find(const struct query_request *request,
                                        const struct query_conditions *conditions,
                                        struct arena *arena)
{
    const struct partition_definition *definition = &request->space->definition->key;
    struct query_target *base = ARENA_NEW(arena, struct query_target);
    struct combining c = {.definition = definition, .base = base, .arena = arena};
    struct query_targets targets = {.list = base, .count = 1};

    if (request->scope.kind == QUERY_SCOPE_KEYS)
        return targets_of_keys(&request->scope, &c);
    *base = base_target(request, arena);
    if (slice_compare(base->range.min, base->range.max) >= 0)
        targets.count = 0;
    if (definition->system_key || !levels_find(&c, conditions))
        return targets;
    for (size_t i = 0; i < c.total; i++)
        combine(&c, i);
    if (!targets_sort(&c))
        return targets;
    targets.list = c.list;
    targets.count = c.count;
    if (c.level_count == definition->path_count) {
        for (size_t i = 0; i < c.level_count; i++)
            targets.conjuncts |= c.levels[i].conjuncts;
    }
    return targets;
}

/* --- What serves ------------------------------------------------------------------------------ */

enum { NAMED_MAX = 8 }; /* partitions that a message names */

static bool span_serves(const struct query_spans *spans, size_t span, struct error *err)
{
    const struct item_space *space = spans->request->space;

    return engine_serves(space->engine(space->nodes, spans->list[span].span->node), err);
}

/* Notes which of the spans a target needs are away; err says why the last of them is. */
static void target_look(struct query_spans *spans, const struct query_target *target,
                        struct error *err)
{
    size_t first, count = query_spans_overlap(spans, target->range, &first);

    for (size_t i = first; i < first + count; i++) {
        if (spans->list[i].missing || span_serves(spans, i, err))
            continue;
        spans->list[i].missing = true;
        spans->missing++;
    }
}

static bool missing_tell(const struct query_spans *spans, struct error *err)
{
    CLEANUP(buf_done) struct buf names;
    struct error why = *err;
    size_t named = 0;

    buf_init(&names, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < spans->count && named < NAMED_MAX; i++)
        if (spans->list[i].missing)
            buf_printf(&names, "%s%u", named++ ? ", " : "", spans->list[i].span->id);
    return error_set(err, why.code, "%s %.*s%s of %zu not serving: %.140s",
                     spans->missing == 1 ? "partition" : "partitions", SLICE_ARG(buf_slice(&names)),
                     spans->missing > named ? " and others" : "", spans->count, why.message);
}

/* A target less the missing spans: pieces, added to the list. */
static void target_cut(const struct query_spans *spans, const struct query_target *target,
                       struct query_target *list, size_t *count)
{
    size_t first, overlaps = query_spans_overlap(spans, target->range, &first);

    for (size_t i = first; i < first + overlaps; i++) {
        const struct partition_span *span = spans->list[i].span;
        struct query_target piece = *target;

        if (spans->list[i].missing)
            continue;
        if (slice_compare(piece.range.min, span->min) < 0)
            piece.range.min = span->min;
        if (slice_compare(piece.range.max, span->max) > 0)
            piece.range.max = span->max;
        if (i > first && !spans->list[i - 1].missing) /* goes on where the last piece ends */
            list[*count - 1].range.max = piece.range.max;
        else
            list[(*count)++] = piece;
    }
}

bool query_targets_serve(struct query_spans *spans, struct query_targets *targets,
                         struct arena *arena, struct error *err)
{
    struct query_target *list;
    size_t count = 0;

    for (size_t i = 0; i < targets->count; i++)
        if (targets->list[i].logical.len &&
            !item_space_admits(spans->request->space, targets->list[i].logical, err))
            return false;
    for (size_t i = 0; i < targets->count; i++)
        target_look(spans, &targets->list[i], err);
    if (!spans->missing)
        return true;
    if (!spans->request->partial)
        return missing_tell(spans, err);
    list = ARENA_ARRAY(arena, struct query_target, targets->count + spans->count);
    for (size_t i = 0; i < targets->count; i++)
        target_cut(spans, &targets->list[i], list, &count);
    targets->list = list;
    targets->count = count;
    return true;
}
