/* Comparisons of Cosmos SQL are true only between values of one type, so each of them is a range of
 * keys; where keys are cut, or a pattern says more than its beginning, the range holds more than
 * the condition and is not exact.
 *
 * An array holds many values: two conditions on its elements may be true for two of them. So these
 * are never intersected, and serve as an access path only one by one. */
#include "query/access/condition.h"

#include "index/policy.h"

struct finder {
    const struct query_plan *plan;
    const struct query_subquery *inner; /* the subquery being looked into, or NULL */
    struct arena *arena;
};

/* --- Paths ----------------------------------------------------------------------------------- */

enum { STEPS_MAX = DOCUMENT_PATH_SEGMENTS_MAX };

struct steps {
    struct document_segment list[STEPS_MAX];
    size_t count;
    bool elements;
};

static const struct query_source *source_in(const struct query_subquery *query, uint32_t slot)
{
    for (size_t i = 0; query && i < query->source_count; i++) {
        if (query->sources[i].slot == slot)
            return &query->sources[i];
    }
    return NULL;
}

static const struct query_source *source_of(const struct finder *f, uint32_t slot)
{
    const struct query_source *source = source_in(f->inner, slot);

    return source ? source : source_in(&f->plan->query, slot);
}

/* Sources are few and each refers to one before it, so this ends. */
static bool steps_find(const struct finder *f, const struct query_expression *expression,
                       size_t depth, struct steps *steps)
{
    const struct query_step *list;
    uint32_t slot;
    size_t count;

    if (!query_is_path(expression, &slot, &list, &count))
        return false;
    if (slot != 0) {
        const struct query_source *source = source_of(f, slot);

        if (!source || source->kind == QUERY_SOURCE_ROWS || depth > QUERY_SLOTS_MAX ||
            !steps_find(f, source->expression, depth + 1, steps))
            return false;
        if (source->kind == QUERY_SOURCE_EACH) {
            if (!steps->count || steps->count == STEPS_MAX)
                return false;
            steps->list[steps->count++] =
                (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS};
            steps->elements = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!list[i].name.data || steps->count == STEPS_MAX)
            return false;
        steps->list[steps->count++] = (struct document_segment){.name = list[i].name};
    }
    return true;
}

static bool path_find(const struct finder *f, const struct query_expression *expression,
                      struct document_path *ret_path, bool *ret_elements)
{
    struct steps steps = {.count = 0};
    struct document_segment *segments;

    if (!steps_find(f, expression, 0, &steps) || !steps.count)
        return false;
    segments = ARENA_ARRAY(f->arena, struct document_segment, steps.count + 1);
    memcpy(segments, steps.list, steps.count * sizeof *segments);
    *ret_path = (struct document_path){
        .segments = segments, .count = steps.count, .end = DOCUMENT_PATH_END_SCALAR};
    *ret_elements = steps.elements;
    return true;
}

bool query_path_find(const struct query_plan *plan, const struct query_expression *expression,
                     struct arena *arena, struct document_path *ret_path, bool *ret_elements)
{
    struct finder f = {.plan = plan, .arena = arena};

    return path_find(&f, expression, ret_path, ret_elements);
}

struct slice query_path_prefix(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    index_path_append(path, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

static bool path_of(const struct finder *f, const struct query_expression *expression,
                    struct query_condition *ret)
{
    *ret = (struct query_condition){.exact = true};
    if (!path_find(f, expression, &ret->path, &ret->elements))
        return false;
    ret->prefix = query_path_prefix(&ret->path, f->arena);
    return true;
}

/* --- One part of a filter --------------------------------------------------------------------- */

/* Objects and arrays have no entry of their own, or only when they are empty. */
static bool is_scalar(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY &&
           value->type != DOCUMENT_CODE_WITH_SCOPE;
}

static bool has_order(const struct document_value *value)
{
    return document_is_number(value) || value->type == DOCUMENT_STRING ||
           value->type == DOCUMENT_BOOL || value->type == DOCUMENT_NULL ||
           value->type == DOCUMENT_DATE;
}

static bool never(struct query_condition *ret)
{
    ret->ranges = (struct query_ranges){0};
    ret->points = NULL;
    return true;
}

static void points_one(const struct finder *f, const struct document_value *value,
                       struct query_condition *ret)
{
    ret->ranges = query_ranges_point(value, &ret->exact, f->arena);
    ret->points = value;
    ret->point_count = 1;
}

static void points_bool(const struct finder *f, bool value, struct query_condition *ret)
{
    struct document_value *point = ARENA_NEW(f->arena, struct document_value);

    *point = document_bool(value);
    points_one(f, point, ret);
}

static enum query_comparison turned(enum query_comparison comparison)
{
    switch (comparison) {
    case QUERY_LESS:
        return QUERY_GREATER;
    case QUERY_LESS_EQUAL:
        return QUERY_GREATER_EQUAL;
    case QUERY_GREATER:
        return QUERY_LESS;
    case QUERY_GREATER_EQUAL:
        return QUERY_LESS_EQUAL;
    default:
        return comparison;
    }
}

static bool not_equal(const struct finder *f, const struct document_value *value,
                      struct query_condition *ret)
{
    bool below_exact, above_exact;
    struct query_ranges below = query_ranges_below(value, false, &below_exact, f->arena);
    struct query_ranges above = query_ranges_above(value, false, &above_exact, f->arena);
    struct cursor_range both[] = {below.list[0], above.list[0]};

    if (!has_order(value))
        return false;
    ret->exact = below_exact && above_exact;
    ret->ranges = query_ranges_union(both, 2, f->arena);
    return true;
}

static bool compared(const struct finder *f, enum query_comparison comparison,
                     const struct document_value *value, struct query_condition *ret)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return never(ret);
    if (!is_scalar(value))
        return false;
    switch (comparison) {
    case QUERY_EQUAL:
        points_one(f, value, ret);
        return true;
    case QUERY_NOT_EQUAL:
        return not_equal(f, value, ret);
    default:
        break;
    }
    if (!has_order(value))
        return never(ret);
    if (comparison == QUERY_LESS || comparison == QUERY_LESS_EQUAL)
        ret->ranges =
            query_ranges_below(value, comparison == QUERY_LESS_EQUAL, &ret->exact, f->arena);
    else
        ret->ranges =
            query_ranges_above(value, comparison == QUERY_GREATER_EQUAL, &ret->exact, f->arena);
    return true;
}

static bool of_comparison(const struct finder *f, const struct query_expression *expression,
                          struct query_condition *ret)
{
    enum query_comparison comparison =
        ((const struct query_comparison_node *)expression)->comparison;
    const struct query_expression *left = expression->children[0], *right = expression->children[1];

    if (query_is_constant(left)) {
        const struct query_expression *constant = left;

        left = right;
        right = constant;
        comparison = turned(comparison);
    }
    return query_is_constant(right) && path_of(f, left, ret) &&
           compared(f, comparison, query_constant_value(right), ret);
}

static bool of_between(const struct finder *f, const struct query_expression *expression,
                       struct query_condition *ret)
{
    const struct document_value *low, *high;
    struct query_ranges above, below;
    bool above_exact, below_exact;

    if (!query_is_constant(expression->children[1]) ||
        !query_is_constant(expression->children[2]) || !path_of(f, expression->children[0], ret))
        return false;
    low = query_constant_value(expression->children[1]);
    high = query_constant_value(expression->children[2]);
    if (!has_order(low) || !has_order(high))
        return never(ret);
    above = query_ranges_above(low, true, &above_exact, f->arena);
    below = query_ranges_below(high, true, &below_exact, f->arena);
    ret->exact = above_exact && below_exact;
    ret->ranges = query_ranges_intersect(above, below, f->arena);
    return true;
}

static bool of_in(const struct finder *f, const struct query_expression *expression,
                  struct query_condition *ret)
{
    size_t count = expression->child_count - 1;
    struct document_value *points;
    struct cursor_range *list;
    size_t point_count = 0;

    if (!path_of(f, expression->children[0], ret))
        return false;
    points = ARENA_ARRAY(f->arena, struct document_value, count + 1);
    list = ARENA_ARRAY(f->arena, struct cursor_range, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct document_value *value;
        bool exact;

        if (!query_is_constant(expression->children[i + 1]))
            return false;
        value = query_constant_value(expression->children[i + 1]);
        if (value->type == DOCUMENT_UNDEFINED)
            continue;
        if (!is_scalar(value))
            return false;
        points[point_count] = *value;
        list[point_count++] = query_ranges_point(value, &exact, f->arena).list[0];
        ret->exact &= exact;
    }
    ret->ranges = query_ranges_union(list, point_count, f->arena);
    ret->points = points;
    ret->point_count = point_count;
    return true;
}

static bool of_like(const struct finder *f, const struct query_expression *expression,
                    struct query_condition *ret)
{
    struct document_value *text;
    struct slice prefix;
    bool whole, exact;

    if (!query_like_prefix(expression, &prefix, &whole) ||
        !path_of(f, expression->children[0], ret))
        return false;
    if (whole) {
        text = ARENA_NEW(f->arena, struct document_value);
        *text = document_string(prefix);
        points_one(f, text, ret);
        return true;
    }
    ret->ranges = query_ranges_prefix(prefix, &exact, f->arena);
    ret->exact = false;
    return true;
}

static bool is_call(const struct query_expression *expression, const char *name)
{
    return expression->kind == &query_kind_call &&
           slice_equal_nocase(
               slice_of_text(((const struct query_call *)expression)->function->name),
               slice_of_text(name));
}

/* ARRAY_CONTAINS([values], path): the same as IN. */
static bool of_constant_array(const struct finder *f, const struct document_value *array,
                              const struct query_expression *value, struct query_condition *ret)
{
    struct document_value *points;
    struct cursor_range *list;
    struct document_iter iter;
    size_t count;

    if (array->type != DOCUMENT_ARRAY || !path_of(f, value, ret))
        return false;
    count = document_count(array->document);
    points = ARENA_ARRAY(f->arena, struct document_value, count + 1);
    list = ARENA_ARRAY(f->arena, struct cursor_range, count + 1);
    document_iter_init(&iter, array->document);
    while (document_iter_next(&iter)) {
        bool exact;

        if (!is_scalar(&iter.value))
            return false;
        points[ret->point_count] = iter.value;
        list[ret->point_count++] = query_ranges_point(&iter.value, &exact, f->arena).list[0];
        ret->exact &= exact;
    }
    ret->points = points;
    ret->ranges = query_ranges_union(list, ret->point_count, f->arena);
    return true;
}

/* ARRAY_CONTAINS(path, value). */
static bool of_array_contains(const struct finder *f, const struct query_expression *expression,
                              struct query_condition *ret)
{
    const struct query_expression *array = expression->children[0],
                                  *value = expression->children[1];
    struct document_segment *segments;

    if (expression->child_count == 2 && query_is_constant(array))
        return of_constant_array(f, query_constant_value(array), value, ret);
    if (expression->child_count != 2 || !query_is_constant(value) || !path_of(f, array, ret) ||
        ret->path.count == STEPS_MAX)
        return false;
    if (query_constant_value(value)->type == DOCUMENT_UNDEFINED)
        return never(ret);
    if (!is_scalar(query_constant_value(value)))
        return false;
    segments = ARENA_ARRAY(f->arena, struct document_segment, ret->path.count + 1);
    memcpy(segments, ret->path.segments, ret->path.count * sizeof *segments);
    segments[ret->path.count] = (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS};
    ret->path.segments = segments;
    ret->path.count++;
    ret->prefix = query_path_prefix(&ret->path, f->arena);
    ret->elements = true;
    points_one(f, query_constant_value(value), ret);
    return true;
}

static bool of_starts_with(const struct finder *f, const struct query_expression *expression,
                           struct query_condition *ret)
{
    const struct query_expression *const *arguments = expression->children;
    const struct document_value *prefix;

    if (!query_is_constant(arguments[1]) || !path_of(f, arguments[0], ret))
        return false;
    if (expression->child_count == 3) {
        const struct document_value *fold;

        if (!query_is_constant(arguments[2]))
            return false;
        fold = query_constant_value(arguments[2]);
        if (fold->type != DOCUMENT_BOOL || fold->boolean)
            return false;
    }
    prefix = query_constant_value(arguments[1]);
    if (prefix->type != DOCUMENT_STRING)
        return never(ret);
    ret->ranges = query_ranges_prefix(prefix->text, &ret->exact, f->arena);
    return true;
}

static bool of_call(const struct finder *f, const struct query_expression *expression,
                    struct query_condition *ret)
{
    static const struct {
        const char *name;
        enum document_type type;
    } types[] = {{"IS_NULL", DOCUMENT_NULL},
                 {"IS_BOOL", DOCUMENT_BOOL},
                 {"IS_NUMBER", DOCUMENT_INT32},
                 {"IS_STRING", DOCUMENT_STRING}};

    if (is_call(expression, "ARRAY_CONTAINS"))
        return of_array_contains(f, expression, ret);
    if (is_call(expression, "STARTSWITH"))
        return of_starts_with(f, expression, ret);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!is_call(expression, types[i].name))
            continue;
        if (!path_of(f, expression->children[0], ret))
            return false;
        if (types[i].type == DOCUMENT_NULL) {
            struct document_value *null = ARENA_NEW(f->arena, struct document_value);

            *null = document_null();
            points_one(f, null, ret);
        } else {
            ret->ranges = query_ranges_of_type(types[i].type, f->arena);
        }
        if (types[i].type == DOCUMENT_BOOL) {
            static const struct document_value both[] = {{.type = DOCUMENT_BOOL, .boolean = false},
                                                         {.type = DOCUMENT_BOOL, .boolean = true}};

            ret->points = both;
            ret->point_count = ARRAY_LEN(both);
        }
        return true;
    }
    return false;
}

static bool condition_of(const struct finder *f, const struct query_expression *expression,
                         struct query_condition *ret);

/* All sides speak of the same path: the values of any of them. */
static bool of_or(const struct finder *f, const struct query_expression *expression,
                  struct query_condition *ret)
{
    struct cursor_range *list = NULL;
    struct document_value *points = NULL;
    size_t count = 0, point_count = 0;
    bool counted = true;

    for (size_t i = 0; i < expression->child_count; i++) {
        struct query_condition side;
        struct cursor_range *longer;
        struct document_value *more;

        if (!condition_of(f, expression->children[i], &side) ||
            (i && !slice_equal(side.prefix, ret->prefix)))
            return false;
        if (i == 0)
            *ret = side;
        ret->exact &= side.exact;
        counted &= side.points != NULL;
        longer = ARENA_ARRAY(f->arena, struct cursor_range, count + side.ranges.count + 1);
        if (count)
            memcpy(longer, list, count * sizeof *list);
        if (side.ranges.count)
            memcpy(longer + count, side.ranges.list, side.ranges.count * sizeof *list);
        count += side.ranges.count;
        list = longer;
        if (!counted)
            continue;
        more = ARENA_ARRAY(f->arena, struct document_value, point_count + side.point_count + 1);
        if (point_count)
            memcpy(more, points, point_count * sizeof *points);
        memcpy(more + point_count, side.points, side.point_count * sizeof *points);
        point_count += side.point_count;
        points = more;
    }
    ret->ranges = query_ranges_union(list, count, f->arena);
    ret->points = counted ? points : NULL;
    ret->point_count = point_count;
    return true;
}

/* EXISTS(SELECT ... FROM x IN c.array WHERE ...): the first part of its filter that an index can
 * serve. The item has such an element; whether the rest holds for it is left to evaluation. */
static bool of_exists(const struct finder *f, const struct query_expression *expression,
                      struct query_condition *ret)
{
    const struct query_subquery_node *node = (const struct query_subquery_node *)expression;
    struct finder inside = {.plan = f->plan, .inner = node->subquery, .arena = f->arena};
    const struct query_expression *filter = node->subquery->filter;
    const struct query_expression *const *parts = &filter;
    size_t count = 1;

    if (f->inner || node->quantifier != QUERY_EXISTS || !filter)
        return false;
    if (filter->kind == &query_kind_and) {
        parts = filter->children;
        count = filter->child_count;
    }
    for (size_t i = 0; i < count; i++) {
        if (!condition_of(&inside, parts[i], ret) || !ret->elements || ret->point_count != 1)
            continue;
        ret->exact = false;
        return true;
    }
    return false;
}

static bool condition_of(const struct finder *f, const struct query_expression *expression,
                         struct query_condition *ret)
{
    const struct query_kind *kind = expression->kind;

    if (kind == &query_kind_comparison)
        return of_comparison(f, expression, ret);
    if (kind == &query_kind_between)
        return of_between(f, expression, ret);
    if (kind == &query_kind_in)
        return of_in(f, expression, ret);
    if (kind == &query_kind_like)
        return of_like(f, expression, ret);
    if (kind == &query_kind_call)
        return of_call(f, expression, ret);
    if (kind == &query_kind_or)
        return of_or(f, expression, ret);
    if (kind == &query_kind_subquery)
        return of_exists(f, expression, ret);
    if (kind == &query_kind_not && path_of(f, expression->children[0], ret)) {
        points_bool(f, false, ret);
        return true;
    }
    if (kind == &query_kind_property && path_of(f, expression, ret)) {
        points_bool(f, true, ret);
        return true;
    }
    return false;
}

/* --- The filter ------------------------------------------------------------------------------- */

/* A path that is in the list already gets the values both allow. */
static void condition_add(const struct finder *f, struct query_conditions *conditions,
                          const struct query_condition *condition)
{
    for (size_t i = 0; i < conditions->count && !condition->elements; i++) {
        struct query_condition *known = &conditions->list[i];

        if (known->elements || !slice_equal(known->prefix, condition->prefix))
            continue;
        known->ranges = query_ranges_intersect(known->ranges, condition->ranges, f->arena);
        known->exact &= condition->exact;
        known->conjuncts |= condition->conjuncts;
        known->points = NULL;
        conditions->never |= known->ranges.count == 0;
        return;
    }
    conditions->list[conditions->count++] = *condition;
    conditions->never |= condition->ranges.count == 0;
}

struct query_conditions query_conditions_find(const struct query_plan *plan, struct arena *arena)
{
    struct finder f = {.plan = plan, .arena = arena};
    const struct query_expression *filter = plan->query.filter;
    struct query_conditions found = {
        .list = ARENA_ARRAY(arena, struct query_condition, QUERY_CONJUNCTS_MAX), .all = true};
    struct query_condition *parts = ARENA_ARRAY(arena, struct query_condition, QUERY_CONJUNCTS_MAX);
    const struct query_expression *const *conjuncts = &filter;
    size_t count = filter ? 1 : 0;

    if (filter && filter->kind == &query_kind_and) {
        conjuncts = filter->children;
        count = filter->child_count;
    }
    found.all = count <= QUERY_CONJUNCTS_MAX;
    found.conjunct_count = MIN(count, (size_t)QUERY_CONJUNCTS_MAX);
    found.parts = parts;
    for (size_t i = 0; i < found.conjunct_count; i++) {
        struct query_condition condition;

        if (query_is_constant(conjuncts[i])) {
            const struct document_value *value = query_constant_value(conjuncts[i]);

            found.never |= value->type != DOCUMENT_BOOL || !value->boolean;
            found.settled |= (uint64_t)1 << i;
            continue;
        }
        if (!condition_of(&f, conjuncts[i], &condition))
            continue;
        condition.conjuncts = (uint64_t)1 << i;
        parts[found.part_count++] = condition;
        condition_add(&f, &found, &condition);
    }
    return found;
}
