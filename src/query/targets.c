/* Where to look: the partition key as the request and the filter give it. */
#include "query/access_private.h"

#include <stdlib.h>

static struct query_target base_target(const struct query_request *request, struct arena *arena)
{
    const struct partition_definition *definition = &request->space->definition->key;
    const struct query_scope *scope = &request->scope;
    struct query_target target = {.range = {PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX}};

    switch (scope->kind) {
    case QUERY_SCOPE_CONTAINER:
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

struct combining {
    const struct partition_definition *definition;
    const struct query_condition *levels[PARTITION_PATHS_MAX];
    size_t level_count, total; /* combinations */
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

/* The combination of that number: one value for each level. */
static void combine(struct combining *c, size_t number)
{
    struct document_value values[PARTITION_PATHS_MAX];
    struct query_target target = {0};
    struct partition_key key;

    for (size_t i = 0; i < MIN(c->level_count, ARRAY_LEN(values)); i++) {
        values[i] = c->levels[i]->points[number % c->levels[i]->point_count];
        number /= c->levels[i]->point_count;
    }
    key = partition_key_of(c->definition, values, c->level_count);
    target.range = partition_route_range(c->definition, &key, c->arena);
    if (!key.partial)
        target.logical = item_logical(c->definition, &key, c->arena);
    if (target_narrow(&target, c->base))
        c->list[c->count++] = target;
}

static int by_range(const void *a, const void *b)
{
    return slice_compare(((const struct query_target *)a)->range.min,
                         ((const struct query_target *)b)->range.min);
}

/* Equal keys once. False: two keys share a routing key, so that the targets would not be apart. */
static bool targets_sort(struct combining *c)
{
    size_t kept = 0;

    if (c->count > 1)
        qsort(c->list, c->count, sizeof *c->list, by_range);
    for (size_t i = 0; i < c->count; i++) {
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

static bool levels_find(struct combining *c, const struct query_conditions *conditions)
{
    size_t total = 1;

    for (; c->level_count < c->definition->path_count; c->level_count++) {
        const struct query_condition *condition =
            key_condition(conditions, &c->definition->paths[c->level_count]);

        if (!condition || !condition->point_count ||
            total * condition->point_count > QUERY_TARGETS_MAX)
            break;
        total *= condition->point_count;
        c->levels[c->level_count] = condition;
    }
    if (!c->level_count ||
        (c->level_count < c->definition->path_count && c->definition->kind != PARTITION_MULTI_HASH))
        return false;
    c->total = total;
    c->list = ARENA_ARRAY(c->arena, struct query_target, total);
    return true;
}

struct query_targets query_targets_find(const struct query_request *request,
                                        const struct query_conditions *conditions,
                                        struct arena *arena)
{
    const struct partition_definition *definition = &request->space->definition->key;
    struct query_target *base = ARENA_NEW(arena, struct query_target);
    struct combining c = {.definition = definition, .base = base, .arena = arena};
    struct query_targets targets = {.list = base, .count = 1};

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
            targets.conjuncts |= c.levels[i]->conjuncts;
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
