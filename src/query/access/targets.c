/* Where to look: the partition key as the request and the filter give it. What the filter pins of
 * it (pins.h) are logical partitions where the values of all components are known, and ranges of
 * routing keys otherwise. */
#include "engine/guard.h"
#include "query/access/access_private.h"
#include "query/access/pins.h"

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

/* While targets are put together. */
struct combining {
    const struct partition_definition *definition;
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

static void target_add(struct combining *c, const struct query_pinned *pinned)
{
    struct query_target target = {0};

    if (pinned->between.max.data) {
        target.range = partition_route_between(c->definition, &pinned->key, pinned->between.min,
                                               pinned->between.max, c->arena);
    } else {
        target.range = partition_route_range(c->definition, &pinned->key, c->arena);
        if (!pinned->key.partial)
            target.logical = item_logical(c->definition, &pinned->key, c->arena);
    }
    if (target_narrow(&target, c->base))
        c->list[c->count++] = target;
}

/* Those that begin alike: the widest first. */
static int by_range(const void *a, const void *b)
{
    const struct query_target *x = a, *y = b;
    int order = slice_compare(x->range.min, y->range.min);

    return order ? order : slice_compare(y->range.max, x->range.max);
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
        const struct query_target *next = &c->list[i];

        if (!last || slice_compare(next->range.min, last->range.max) > 0 ||
            ((last->logical.len || next->logical.len) &&
             slice_equal(next->range.min, last->range.max))) {
            c->list[kept++] = *next;
            continue;
        }
        if (last->logical.len) {
            if (!slice_equal(last->logical, next->logical))
                return false;
            continue;
        }
        if (slice_compare(next->range.max, last->range.max) > 0)
            last->range.max = next->range.max;
    }
    c->count = kept;
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

/* Which conjuncts are true for all items of the keys. */
static uint64_t conjuncts_settled(const struct query_conditions *conditions,
                                  const struct query_pinning *pinning,
                                  const struct partition_definition *definition)
{
    uint64_t settled = 0;

    if (!pinning->sure)
        return 0;
    for (size_t i = 0; i < pinning->count; i++)
        if (pinning->list[i].key.partial)
            return 0;
    for (size_t i = 0; i < conditions->conjunct_count; i++)
        if (query_pins_settle(query_conjunct(conditions, i), definition))
            settled |= (uint64_t)1 << i;
    return settled;
}

struct query_targets query_targets_find(const struct query_request *request,
                                        const struct query_conditions *conditions,
                                        struct arena *arena)
{
    const struct partition_definition *definition = &request->space->definition->key;
    struct query_target *base = ARENA_NEW(arena, struct query_target);
    struct combining c = {.definition = definition, .base = base, .arena = arena};
    struct query_targets targets = {.list = base, .count = 1};
    struct query_pinning pinning;

    if (request->scope.kind == QUERY_SCOPE_KEYS)
        return targets_of_keys(&request->scope, &c);
    *base = base_target(request, arena);
    if (slice_compare(base->range.min, base->range.max) >= 0)
        targets.count = 0;
    if (definition->system_key || !conditions->implied)
        return targets;
    pinning = query_pins_find(conditions->implied, definition, arena);
    if (pinning.anywhere)
        return targets;
    c.list = ARENA_ARRAY(arena, struct query_target, pinning.count + 1);
    for (size_t i = 0; i < pinning.count; i++)
        target_add(&c, &pinning.list[i]);
    if (!targets_sort(&c))
        return targets;
    targets.list = c.list;
    targets.count = c.count;
    targets.conjuncts = conjuncts_settled(conditions, &pinning, definition);
    return targets;
}

/* --- What serves ------------------------------------------------------------------------------ */

enum { NAMED_MAX = 8 }; /* partitions that a message names */

static bool span_serves(const struct query_spans *spans, size_t span, struct error *err)
{
    const struct item_space *space = spans->request->space;

    return engine_guard_await(item_space_engine(space, spans->list[span].span), err);
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
