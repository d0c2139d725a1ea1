/* Comparisons are true only between values of one type, so each of them is a range of keys; where
 * keys are cut, or a pattern says more than its beginning, the range holds more than the condition
 * and is not exact. Texts stand in two orders, by UTF-16 unit and by byte, and so does what is made
 * of texts: where the entries have another one than the plan, bounds between them say no more than
 * the type. */
#include "query/value/condition.h"

#include "index/policy.h"
#include "query/value/compare.h"

enum { GROUPS_MAX = 64 }; /* paths that an `any` sorts its conditions by */

struct slice query_path_prefix(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    index_path_append(path, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

/* Objects and arrays have no entry of their own, or only when they are empty. */
static bool is_scalar(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY &&
           value->type != DOCUMENT_CODE_WITH_SCOPE;
}

/* Between two values of such a type both orders say the same (order.h). */
static bool orders_agree(const struct document_value *value)
{
    return document_is_number(value) || value->type == DOCUMENT_BOOL ||
           value->type == DOCUMENT_NULL || value->type == DOCUMENT_DATE ||
           value->type == DOCUMENT_OBJECT_ID || value->type == DOCUMENT_BINARY ||
           value->type == DOCUMENT_TIMESTAMP;
}

/* Are there values above or below it, to the language of the plan? */
static bool has_order(const struct query_implying *implying, const struct document_value *value)
{
    int order;

    return query_values_order(implying->order, value, value, &order);
}

/* --- Single ones ------------------------------------------------------------------------------ */

static struct query_implied *implied_new(const struct query_implying *implying,
                                         enum query_implied_kind kind)
{
    struct query_implied *implied = ARENA_NEW(implying->arena, struct query_implied);

    implied->kind = kind;
    implied->exact = true;
    return implied;
}

const struct query_implied *query_implied_never(const struct query_implying *implying)
{
    return implied_new(implying, QUERY_IMPLIED_NEVER);
}

const struct query_implied *query_implied_always(const struct query_implying *implying)
{
    return implied_new(implying, QUERY_IMPLIED_ALWAYS);
}

static struct query_implied *condition_new(const struct query_implying *implying,
                                           const struct query_operand *operand)
{
    struct query_implied *implied = implied_new(implying, QUERY_IMPLIED_CONDITION);

    implied->condition =
        (struct query_condition){.path = operand->path,
                                 .prefix = query_path_prefix(&operand->path, implying->arena),
                                 .elements = operand->elements,
                                 .through = operand->through,
                                 .exact = true};
    return implied;
}

static const struct query_implied *of_ranges(const struct query_implying *implying,
                                             const struct query_operand *operand,
                                             struct query_ranges ranges, bool exact)
{
    struct query_implied *implied = condition_new(implying, operand);

    implied->condition.ranges = ranges;
    implied->condition.exact = implied->exact = exact;
    return implied;
}

const struct query_implied *query_implied_points(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct document_value *values, size_t count)
{
    struct query_implied *implied;
    struct query_condition *condition;
    struct document_value *points;
    struct cursor_range *list;
    size_t kept = 0;

    if (!operand->is_path)
        return NULL;
    implied = condition_new(implying, operand);
    condition = &implied->condition;
    points = ARENA_ARRAY(implying->arena, struct document_value, count + 1);
    list = ARENA_ARRAY(implying->arena, struct cursor_range, count + 1);
    for (size_t i = 0; i < count; i++) {
        bool exact;

        if (values[i].type == DOCUMENT_UNDEFINED)
            continue;
        points[kept++] = values[i];
        condition->wholes |= !is_scalar(&values[i]);
        condition->nested = condition->wholes && !operand->through;
        if (condition->nested)
            continue;
        list[kept - 1] =
            query_ranges_point(implying->entries, &values[i], &exact, implying->arena).list[0];
        condition->exact &= exact;
    }
    if (!kept)
        return query_implied_never(implying);
    condition->points = points;
    condition->point_count = kept;
    condition->points_exact = !condition->nested;
    if (condition->nested)
        condition->exact = false;
    else if (kept == 1)
        condition->ranges = (struct query_ranges){list, 1};
    else
        condition->ranges = query_ranges_union(list, kept, implying->arena);
    implied->exact = condition->exact;
    return implied;
}

const struct query_implied *query_implied_absent(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct document_value *values, size_t count)
{
    const struct query_implied *present = query_implied_points(implying, operand, values, count);
    struct query_implied *absent;

    /* what is cut is found among others, which are not meant */
    if (!present || present->kind != QUERY_IMPLIED_CONDITION || !present->exact)
        return NULL;
    absent = ARENA_NEW(implying->arena, struct query_implied);
    *absent = *present;
    absent->kind = QUERY_IMPLIED_ABSENT;
    return absent;
}

/* Do entries have this value among others as the plan compares them? */
static bool is_in_order(const struct query_implying *implying, const struct document_value *value)
{
    return implying->order == implying->entries || orders_agree(value);
}

const struct query_implied *query_implied_below(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value, bool at_too)
{
    struct query_ranges ranges;
    bool exact;

    if (!operand->is_path)
        return NULL;
    if (!has_order(implying, value))
        return query_implied_never(implying);
    if (!is_scalar(value))
        return NULL;
    if (!is_in_order(implying, value))
        return of_ranges(implying, operand,
                         query_ranges_of_type_as(implying->entries, value, implying->arena), false);
    ranges = query_ranges_below(implying->entries, value, at_too, &exact, implying->arena);
    return of_ranges(implying, operand, ranges, exact);
}

const struct query_implied *query_implied_above(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value, bool at_too)
{
    struct query_ranges ranges;
    bool exact;

    if (!operand->is_path)
        return NULL;
    if (!has_order(implying, value))
        return query_implied_never(implying);
    if (!is_scalar(value))
        return NULL;
    if (!is_in_order(implying, value))
        return of_ranges(implying, operand,
                         query_ranges_of_type_as(implying->entries, value, implying->arena), false);
    ranges = query_ranges_above(implying->entries, value, at_too, &exact, implying->arena);
    return of_ranges(implying, operand, ranges, exact);
}

const struct query_implied *query_implied_other(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *value)
{
    const struct query_implied *sides[2];

    if (value->type == DOCUMENT_UNDEFINED)
        return query_implied_never(implying);
    if (!operand->is_path || !has_order(implying, value) || !is_scalar(value))
        return NULL;
    sides[0] = query_implied_below(implying, operand, value, false);
    sides[1] = query_implied_above(implying, operand, value, false);
    return query_implied_any(implying, sides, 2);
}

const struct query_implied *query_implied_prefix(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 struct slice prefix)
{
    struct query_ranges ranges;
    bool exact;

    if (!operand->is_path)
        return NULL;
    ranges = query_ranges_prefix(implying->entries, prefix, &exact, implying->arena);
    return of_ranges(implying, operand, ranges, exact);
}

const struct query_implied *query_implied_type(const struct query_implying *implying,
                                               const struct query_operand *operand,
                                               enum document_type type)
{
    if (!operand->is_path)
        return NULL;
    return of_ranges(implying, operand,
                     query_ranges_of_type(implying->entries, type, implying->arena), true);
}

const struct query_implied *query_implied_region(const struct query_implying *implying,
                                                 const struct query_operand *operand,
                                                 const struct query_region *region)
{
    struct query_implied *implied;
    struct query_region *copy;

    if (!operand->is_path)
        return NULL;
    implied = condition_new(implying, operand);
    copy = ARENA_NEW(implying->arena, struct query_region);
    *copy = *region;
    implied->condition.region = copy;
    implied->condition.nested = true;
    implied->condition.exact = implied->exact = false;
    return implied;
}

const struct query_implied *query_implied_words(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct query_words *words)
{
    struct query_implied *implied;
    struct query_words *copy;

    if (!operand->is_path)
        return NULL;
    implied = condition_new(implying, operand);
    copy = ARENA_NEW(implying->arena, struct query_words);
    *copy = *words;
    implied->condition.words = copy;
    implied->condition.nested = true;
    implied->condition.exact = implied->exact = words->exact;
    return implied;
}

const struct query_implied *query_implied_whatever(const struct query_implying *implying,
                                                   const struct query_operand *operand)
{
    return operand->is_path ? of_ranges(implying, operand, query_ranges_all(implying->arena), false)
                            : NULL;
}

/* The operand one segment longer; no path where it would be too long. */
static struct query_operand operand_extend(const struct query_implying *implying,
                                           const struct query_operand *operand,
                                           struct document_segment segment)
{
    struct query_operand longer = *operand;
    struct document_segment *segments;

    if (!operand->is_path || operand->path.count == DOCUMENT_PATH_SEGMENTS_MAX)
        return (struct query_operand){0};
    segments = ARENA_ARRAY(implying->arena, struct document_segment, operand->path.count + 1);
    memcpy(segments, operand->path.segments, operand->path.count * sizeof *segments);
    segments[operand->path.count] = segment;
    longer.path.segments = segments;
    longer.path.count++;
    longer.elements |= segment.kind == DOCUMENT_SEGMENT_ELEMENTS;
    return longer;
}

struct query_operand query_operand_elements(const struct query_implying *implying,
                                            const struct query_operand *operand)
{
    return operand_extend(implying, operand,
                          (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS});
}

struct query_operand query_operand_property(const struct query_implying *implying,
                                            const struct query_operand *operand, struct slice name)
{
    return operand_extend(implying, operand, (struct document_segment){.name = name});
}

/* --- Several ---------------------------------------------------------------------------------- */

const struct query_implied *query_implied_all(const struct query_implying *implying,
                                              const struct query_implied *const *parts,
                                              size_t count)
{
    struct query_implied *all = implied_new(implying, QUERY_IMPLIED_ALL);
    const struct query_implied **copy =
        ARENA_ARRAY(implying->arena, const struct query_implied *, count + 1);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        if (parts[i] && parts[i]->kind == QUERY_IMPLIED_NEVER)
            return parts[i];
        copy[i] = parts[i];
        known += parts[i] != NULL;
        all->exact &= parts[i] && parts[i]->exact;
    }
    if (count && !known)
        return NULL;
    all->parts = copy;
    all->count = count;
    return count ? all : query_implied_always(implying);
}

/* Parts of an `any`, those on one path together. */
struct group {
    struct slice prefix;
    size_t ranges, points, parts;
    struct query_implied *merged;
    const struct query_implied **originals;
};

static struct group *group_of(struct group *groups, size_t *count, const struct query_implied *part)
{
    for (size_t i = 0; i < *count; i++)
        if (slice_equal(groups[i].prefix, part->condition.prefix))
            return &groups[i];
    if (*count == GROUPS_MAX)
        return NULL;
    groups[*count] = (struct group){.prefix = part->condition.prefix};
    return &groups[(*count)++];
}

/* A condition with room for what all of a group says. */
static void group_open(const struct query_implying *implying, struct group *group,
                       const struct query_implied *first)
{
    struct query_condition *condition;

    group->merged = implied_new(implying, QUERY_IMPLIED_CONDITION);
    group->merged->condition = first->condition;
    condition = &group->merged->condition;
    condition->exact = condition->points_exact = true;
    condition->ranges.list = ARENA_ARRAY(implying->arena, struct cursor_range, group->ranges + 1);
    condition->ranges.count = 0;
    condition->points = ARENA_ARRAY(implying->arena, struct document_value, group->points + 1);
    condition->point_count = 0;
    condition->nested = false;
    condition->region = NULL; /* any of several is no single one */
    condition->words = NULL;
    group->originals = ARENA_ARRAY(implying->arena, const struct query_implied *, group->parts);
    group->parts = 0;
}

static void group_take(struct group *group, const struct query_implied *part)
{
    struct query_condition *to = &group->merged->condition;
    const struct query_condition *from = &part->condition;

    group->originals[group->parts++] = part;
    to->exact &= from->exact && !from->words; /* which are dropped */
    to->points_exact &= from->points_exact;
    to->nested |= from->nested;
    to->present &= from->present;
    to->wholes |= from->wholes;
    if (from->ranges.count)
        memcpy(to->ranges.list + to->ranges.count, from->ranges.list,
               from->ranges.count * sizeof *from->ranges.list);
    to->ranges.count += from->ranges.count;
    if (!from->points)
        to->points = NULL;
    if (to->points)
        memcpy((struct document_value *)to->points + to->point_count, from->points,
               from->point_count * sizeof *from->points);
    to->point_count = to->points ? to->point_count + from->point_count : 0;
}

static void group_close(const struct query_implying *implying, struct group *group)
{
    struct query_condition *condition = &group->merged->condition;

    condition->ranges =
        query_ranges_union(condition->ranges.list, condition->ranges.count, implying->arena);
    group->merged->exact = condition->exact;
    if (condition->points)
        return;
    condition->points_exact = false;
    group->merged->parts = group->originals;
    group->merged->count = group->parts;
}

/* The conditions on one path become one; the others stay as they are. */
static const struct query_implied *any_merge(const struct query_implying *implying,
                                             const struct query_implied **parts, size_t count)
{
    struct group groups[GROUPS_MAX];
    struct query_implied *any = implied_new(implying, QUERY_IMPLIED_ANY);
    size_t group_count = 0, kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct group *group = parts[i]->kind == QUERY_IMPLIED_CONDITION
                                  ? group_of(groups, &group_count, parts[i])
                                  : NULL;

        if (!group)
            continue;
        group->ranges += parts[i]->condition.ranges.count;
        group->points += parts[i]->condition.point_count;
        group->parts++;
    }
    for (size_t i = 0; i < count; i++) {
        const struct query_implied *part = parts[i]; /* its place may be taken by what is kept */
        size_t known = group_count;
        struct group *group =
            part->kind == QUERY_IMPLIED_CONDITION ? group_of(groups, &known, part) : NULL;

        any->exact &= part->exact;
        if (!group || (group->parts == 1 && !group->merged)) {
            parts[kept++] = part;
            continue;
        }
        if (!group->merged) {
            group_open(implying, group, part);
            parts[kept++] = group->merged;
        }
        group_take(group, part);
    }
    for (size_t i = 0; i < group_count; i++)
        if (groups[i].merged)
            group_close(implying, &groups[i]);
    any->parts = parts;
    any->count = kept;
    if (kept > 1)
        return any;
    return parts[0]->kind == QUERY_IMPLIED_CONDITION && !parts[0]->condition.nested &&
                   !parts[0]->condition.ranges.count
               ? query_implied_never(implying)
               : parts[0];
}

const struct query_implied *query_implied_any(const struct query_implying *implying,
                                              const struct query_implied *const *parts,
                                              size_t count)
{
    const struct query_implied **flat;
    size_t total = 0, kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (!parts[i])
            return NULL;
        if (parts[i]->kind == QUERY_IMPLIED_ALWAYS)
            return parts[i];
        total += parts[i]->kind == QUERY_IMPLIED_ANY ? parts[i]->count : 1;
    }
    flat = ARENA_ARRAY(implying->arena, const struct query_implied *, total + 1);
    for (size_t i = 0; i < count; i++) {
        if (parts[i]->kind == QUERY_IMPLIED_NEVER)
            continue;
        if (parts[i]->kind != QUERY_IMPLIED_ANY) {
            flat[kept++] = parts[i];
            continue;
        }
        memcpy(flat + kept, parts[i]->parts, parts[i]->count * sizeof *flat);
        kept += parts[i]->count;
    }
    if (!kept)
        return query_implied_never(implying);
    return kept == 1 ? flat[0] : any_merge(implying, flat, kept);
}

const struct query_implied *query_implied_both(const struct query_implying *implying,
                                               const struct query_implied *a,
                                               const struct query_implied *b)
{
    struct query_implied *both;

    if (!a || !b)
        return a ? query_implied_inexact(implying, a) : query_implied_inexact(implying, b);
    if (a->kind == QUERY_IMPLIED_NEVER || b->kind == QUERY_IMPLIED_NEVER)
        return a->kind == QUERY_IMPLIED_NEVER ? a : b;
    assert(a->kind == QUERY_IMPLIED_CONDITION && b->kind == QUERY_IMPLIED_CONDITION &&
           slice_equal(a->condition.prefix, b->condition.prefix));
    both = implied_new(implying, QUERY_IMPLIED_CONDITION);
    both->condition = a->condition;
    both->condition.ranges =
        query_ranges_intersect(a->condition.ranges, b->condition.ranges, implying->arena);
    both->condition.exact = both->exact = a->exact && b->exact;
    both->condition.points = NULL;
    both->condition.point_count = 0;
    both->condition.points_exact = false;
    return both->condition.ranges.count ? both : query_implied_never(implying);
}

const struct query_implied *query_implied_inexact(const struct query_implying *implying,
                                                  const struct query_implied *implied)
{
    struct query_implied *copy;
    const struct query_implied **parts;

    if (!implied || implied->kind == QUERY_IMPLIED_NEVER)
        return implied;
    if (implied->kind == QUERY_IMPLIED_ALWAYS)
        return NULL;
    copy = ARENA_NEW(implying->arena, struct query_implied);
    *copy = *implied;
    copy->exact = copy->condition.exact = copy->condition.points_exact = false;
    if (implied->count) {
        parts = ARENA_ARRAY(implying->arena, const struct query_implied *, implied->count);
        for (size_t i = 0; i < implied->count; i++)
            parts[i] = query_implied_inexact(implying, implied->parts[i]);
        copy->parts = parts;
    }
    return copy;
}
