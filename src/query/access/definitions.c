/* Definitions that have all values of their paths: MongoDB's indexes, and others that are multikey
 * and in its order.
 *
 * What one has of an item depends on the arrays that the item has on the way. Without any it has
 * one entry, and all that a filter says of a path is said of one value: ranges are put together,
 * and an order can begin anywhere in it. With arrays each predicate may be met by another element,
 * so one of them bounds the walk, the others are evaluated; of two paths through the same array
 * only the first is bound, for an entry has both values of one element; and an item has several
 * entries, of which the first within the walk stands for it (query_entry_is_first), which needs no
 * memory and lets any page go on. Where arrays are is counted by the definitions that are `counted`
 * (index/definition.h): a page looks at these counts once, and takes arrays for granted where there
 * are more of them than it wants to look at.
 *
 * A sparse definition has an item where one of its paths leads to something: it is used where the
 * filter says so of a part that is bound. A partial one is used where the filter implies its own:
 * for each of its conditions there is one of the filter whose ranges lie within. A hashed part is
 * found by single values. Of a wildcard every scalar has an entry, below its path; nothing tells
 * what is missing, or an object as a whole. */
#include "query/access/access_private.h"

#include "index/policy.h"
#include "partition/counters.h"
#include "partition/layout.h"

enum { COUNTS_MAX = 1024 };

#define ARRAYS_ANYWHERE UINT64_MAX
#define EARTH_HALF_M 20e6 /* of the Earth next to nothing is further away */
#define PLANE_FAR 1e12

/* --- Where arrays are ------------------------------------------------------------------------- */

struct looking {
    const struct item_space *space;
    struct query_filter *filter;
    const struct index_definition *const *list;
    size_t count;
    uint64_t *arrays;
    size_t seen;
};

static void anywhere(struct looking *l)
{
    for (size_t i = 0; i < l->count * INDEX_PARTS_MAX; i++)
        l->arrays[i] = ARRAYS_ANYWHERE;
}

/* c | k | routing key | pk | number of the index | name (item/write_set.c) */
static bool count_note(struct looking *l, const struct engine_entry *entry, struct error *err)
{
    const struct partition_definition *key = &l->space->definition->key;
    struct slice rest = slice_skip(entry->key, 2);
    int64_t numbers[COUNTER_NUMBERS];
    struct index_array array;
    struct partition_key ignored;

    if (!partition_route_skip(key, &rest, err) ||
        !partition_key_read(key, &rest, l->filter->arena, &ignored, err) ||
        !counter_decode(entry->value, numbers, err))
        return false;
    if (!rest.len || numbers[0] <= 0 || !index_array_read(slice_skip(rest, 1), &array))
        return true;
    for (size_t i = 0; i < l->count; i++)
        if (l->list[i]->number == rest.data[0] && l->list[i]->counted &&
            array.part < l->list[i]->part_count)
            l->arrays[i * INDEX_PARTS_MAX + array.part] |=
                (uint64_t)1 << MIN(array.depth, (uint8_t)QUERY_ARRAYS_DEPTH_MAX);
    return true;
}

static bool span_look(struct looking *l, size_t span, const struct query_target *target,
                      struct error *err)
{
    CLEANUP(view_walk_done) struct view_walk walk = {0};
    struct arena *arena = l->filter->arena;
    struct slice min = arena_join(arena, (struct slice[]){SLICE("ck"), target->logical}, 2);
    struct engine_range range = {min, cursor_prefix_end(arena, min)};
    struct engine_entry entry;
    struct view *view;

    if (!query_spans_view(l->filter->spans, span, &view, err) ||
        !view_walk_open(&walk,
                        &(struct view_walk_options){.engine = view->scope.engine,
                                                    .snapshot = view->snapshot,
                                                    .partition = view->scope.partition,
                                                    .range = range,
                                                    .bound = view->bound},
                        err))
        return false;
    for (;;) {
        if (!view_walk_next(&walk, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (l->seen++ == COUNTS_MAX) {
            anywhere(l);
            return true;
        }
        if (!count_note(l, &entry, err))
            return false;
    }
}

static bool targets_look(struct looking *l, struct error *err)
{
    const struct query_targets *targets = l->filter->targets;

    for (size_t t = 0; t < targets->count && l->seen <= COUNTS_MAX; t++) {
        size_t first, count = query_spans_overlap(l->filter->spans, targets->list[t].range, &first);

        for (size_t i = first; i < first + count && l->seen <= COUNTS_MAX; i++)
            if (!l->filter->spans->list[i].missing && !span_look(l, i, &targets->list[t], err))
                return false;
    }
    return true;
}

/* For each part of the definition: behind how many segments arrays stand. */
static const uint64_t *arrays_of(const struct item_space *space, struct query_filter *filter,
                                 size_t which)
{
    struct looking l = {.space = space, .filter = filter};
    bool counted = false;

    if (!filter->arrays) {
        l.list = index_policy_besides(space->definition->policy, &l.count);
        l.arrays = ARENA_ARRAY(filter->arena, uint64_t, l.count * INDEX_PARTS_MAX);
        memset(l.arrays, 0, l.count * INDEX_PARTS_MAX * sizeof *l.arrays);
        for (size_t i = 0; i < l.count; i++) {
            counted |= l.list[i]->counted;
            for (size_t p = 0; !l.list[i]->counted && p < INDEX_PARTS_MAX; p++)
                l.arrays[i * INDEX_PARTS_MAX + p] = ARRAYS_ANYWHERE;
        }
        if (counted && !filter->failed && !targets_look(&l, &filter->error))
            filter->failed = true;
        filter->arrays = l.arrays;
    }
    return filter->arrays + which * INDEX_PARTS_MAX;
}

static const struct query_conditions *through(struct query_filter *filter,
                                              const struct document_collator *collator, bool arrays)
{
    enum query_ways ways = arrays ? QUERY_WAYS_MANY_VALUES : QUERY_WAYS_ONE_VALUE;
    struct query_through *known = filter->through;

    while (known && known->collator != collator)
        known = known->next;
    if (!known) {
        known = ARENA_NEW(filter->arena, struct query_through);
        *known = (struct query_through){.collator = collator, .next = filter->through};
        filter->through = known;
    }
    if (!known->made[arrays])
        known->ways[arrays] = query_conditions_through(filter->plan, ways, collator, filter->arena);
    known->made[arrays] = true;
    return &known->ways[arrays];
}

/* --- Which may be used ------------------------------------------------------------------------ */

static bool paths_same(const struct document_path *a, const struct document_path *b, size_t count)
{
    if (a->count < count || b->count < count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (a->segments[i].kind != b->segments[i].kind ||
            !slice_equal(a->segments[i].name, b->segments[i].name))
            return false;
    return true;
}

static bool path_is(const struct document_path *a, const struct document_path *b)
{
    return a->count == b->count && paths_same(a, b, a->count);
}

/* Items that an older policy has made the entries of have them too. */
bool query_definition_is_whole(const struct item_space *space,
                               const struct index_definition *definition)
{
    for (size_t i = 0; i < space->policies_before_count; i++) {
        size_t count, at = 0;
        const struct index_definition *const *list =
            index_policy_besides(space->policies_before[i], &count);

        while (at < count && !index_definition_same(list[at], definition))
            at++;
        if (at == count)
            return false;
    }
    return true;
}

static bool is_of_kind(const struct item_space *space, const struct index_definition *definition)
{
    return definition->multikey && definition->order == DOCUMENT_ORDER_MONGO &&
           (definition->kind == &index_kind_ordered || definition->kind == &index_kind_wildcard ||
            definition->kind == &index_kind_spatial) &&
           definition->state == INDEX_READY && !definition->stale &&
           query_definition_is_whole(space, definition);
}

/* The ranges of a condition of a partial index; false: there are none. */
static bool condition_ranges(const struct index_condition *condition, struct arena *arena,
                             struct query_ranges *ret_ranges)
{
    const struct document_value *value = &condition->value;
    bool exact = true;

    switch (condition->comparison) {
    case INDEX_EQUAL:
        *ret_ranges = query_ranges_point(DOCUMENT_ORDER_MONGO, value, &exact, arena);
        return exact;
    case INDEX_LESS:
    case INDEX_LESS_EQUAL:
        *ret_ranges = query_ranges_below(DOCUMENT_ORDER_MONGO, value,
                                         condition->comparison == INDEX_LESS_EQUAL, &exact, arena);
        return exact;
    case INDEX_GREATER:
    case INDEX_GREATER_EQUAL:
        *ret_ranges =
            query_ranges_above(DOCUMENT_ORDER_MONGO, value,
                               condition->comparison == INDEX_GREATER_EQUAL, &exact, arena);
        return exact;
    default:
        return false;
    }
}

static bool ranges_within(const struct query_ranges *inner, const struct query_ranges *outer)
{
    for (size_t i = 0; i < inner->count; i++) {
        size_t at = 0;

        while (at < outer->count && (slice_compare(inner->list[i].min, outer->list[at].min) < 0 ||
                                     slice_compare(inner->list[i].max, outer->list[at].max) > 0))
            at++;
        if (at == outer->count)
            return false;
    }
    return inner->count > 0;
}

/* Does the filter say so, of one value of the path? alternatives: the ranges of several. */
static bool filter_says(struct query_filter *filter, const struct index_definition *definition,
                        size_t at)
{
    const struct index_condition *wanted = &definition->filter[at];
    const struct query_conditions *conditions = through(filter, definition->collator, true);
    struct cursor_range *all =
        ARENA_ARRAY(filter->arena, struct cursor_range, INDEX_CONDITIONS_MAX);
    struct query_ranges ranges = {all, 0};

    for (size_t i = at; i < definition->filter_count && wanted->comparison != INDEX_EXISTS; i++) {
        const struct index_condition *other = &definition->filter[i];
        struct query_ranges one;

        if (i != at && (!wanted->any || other->any != wanted->any))
            continue;
        if (path_is(&other->path, &wanted->path) && condition_ranges(other, filter->arena, &one))
            all[ranges.count++] = one.list[0];
    }
    if (ranges.count)
        ranges = query_ranges_union(ranges.list, ranges.count, filter->arena);
    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];

        if (!condition->through || !path_is(&condition->path, &wanted->path))
            continue;
        if (wanted->comparison == INDEX_EXISTS ? condition->present
                                               : ranges_within(&condition->ranges, &ranges))
            return true;
    }
    return false;
}

static bool filter_is_implied(struct query_filter *filter,
                              const struct index_definition *definition)
{
    for (size_t i = 0; i < definition->filter_count; i++) {
        uint32_t any = definition->filter[i].any;
        bool said = false;

        if (!any && !filter_says(filter, definition, i))
            return false;
        for (size_t n = 0; any && n < definition->filter_count && !said; n++)
            said = definition->filter[n].any == any && filter_says(filter, definition, n);
        if (any && !said)
            return false;
    }
    return true;
}

/* --- Bounds ------------------------------------------------------------------------------------
 */

/* A definition being put to use. */
struct using
{
    const struct item_space *space;
    struct query_filter *filter;
    const struct index_definition *definition;
    const uint64_t *arrays;
    const struct query_conditions *branch; /* of a filter, instead of the whole; NULL: that */
    struct query_index_use *use;
    struct buf prefix; /* of the use: that of the definition, and values of the first parts */
    size_t bound;      /* parts that something is said of */
    bool single;
    bool present; /* one of them leads to something */
    struct query_ranges bounds[INDEX_PARTS_MAX];
};

/* Nothing but that something is there. */
static bool is_all(const struct query_ranges *ranges)
{
    return ranges->count == 1 && slice_equal(ranges->list[0].min, SLICE("\x01")) &&
           slice_equal(ranges->list[0].max, SLICE("\xFF"));
}

static bool is_better(const struct query_condition *a, const struct query_condition *b)
{
    size_t a_points = a->points ? a->point_count : SIZE_MAX;
    size_t b_points = b->points ? b->point_count : SIZE_MAX;

    if (is_all(&a->ranges) != is_all(&b->ranges))
        return is_all(&b->ranges);
    return a_points < b_points;
}

/* What bounds a part; NULL: nothing does. To walk all of a definition is worth it only where it
 * leaves items out. */
static const struct query_condition *part_condition(const struct using *u, size_t part)
{
    const struct query_conditions *conditions =
        u->branch ? u->branch : through(u->filter, u->definition->collator, u->arrays[part] != 0);
    const struct query_condition *best = NULL;

    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];

        if (condition->through && condition->ranges.count &&
            (!is_all(&condition->ranges) || u->definition->sparse) &&
            path_is(&condition->path, &u->definition->parts[part].path) &&
            (!best || is_better(condition, best)))
            best = condition;
    }
    return best;
}

/* Do two parts go through the same array? Then an entry has both values of one element. */
static bool parts_share(const struct using *u, size_t a, size_t b)
{
    uint64_t common = u->arrays[a] & u->arrays[b];

    if (u->arrays[a] == ARRAYS_ANYWHERE || u->arrays[b] == ARRAYS_ANYWHERE)
        return u->definition->parts[a].path.count && u->definition->parts[b].path.count &&
               slice_equal(u->definition->parts[a].path.segments[0].name,
                           u->definition->parts[b].path.segments[0].name);
    for (size_t depth = 1; depth <= QUERY_ARRAYS_DEPTH_MAX; depth++)
        if (common >> depth & 1 &&
            (depth == QUERY_ARRAYS_DEPTH_MAX ||
             paths_same(&u->definition->parts[a].path, &u->definition->parts[b].path, depth)))
            return true;
    return false;
}

static bool shares_before(const struct using *u, size_t part)
{
    for (size_t i = 0; i < part; i++)
        if (parts_share(u, i, part))
            return true;
    return false;
}

/* The hashes of single values, as ranges. */
static bool hashed_ranges(const struct using *u, const struct query_condition *condition,
                          struct query_ranges *ret_ranges)
{
    struct arena *arena = u->filter->arena;
    struct cursor_range *list;

    if (!condition->points)
        return false;
    list = ARENA_ARRAY(arena, struct cursor_range, condition->point_count + 1);
    for (size_t i = 0; i < condition->point_count; i++) {
        struct document_value hash = condition->points[i];
        bool exact;

        if (hash.type == DOCUMENT_ARRAY)
            return false;
        hash = index_value_hash(DOCUMENT_ORDER_MONGO, &hash);
        list[i] = query_ranges_point(DOCUMENT_ORDER_MONGO, &hash, &exact, arena).list[0];
    }
    *ret_ranges = query_ranges_union(list, condition->point_count, arena);
    return true;
}

static void prefix_take(struct using *u, size_t part, struct slice key)
{
    size_t at = u->prefix.len;

    buf_append_slice(&u->prefix, key);
    for (; u->definition->parts[part].descending && at < u->prefix.len; at++)
        u->prefix.data[at] = (uint8_t)~u->prefix.data[at];
}

/* Nothing is gained by an index where all that has a figure is asked for. */
static bool is_everywhere(const struct query_filter *filter,
                          const struct query_condition *condition)
{
    const struct query_region *region = condition->region;
    double far = region->ordered ? MIN(region->distance, filter->within) : region->distance;

    return !(far < (region->rules.surface == SEARCH_EARTH ? EARTH_HALF_M : PLANE_FAR));
}

/* How far to look for rows by distance, where that is to be found. */
static bool ring_find(struct using *u, size_t part, const struct query_region *region)
{
    size_t len = u->prefix.len;
    struct query_density density = {.definition = u->definition, .part = part, .region = region};
    double radius;

    if (!region->ordered || !u->filter->near_rows || u->filter->failed)
        return true;
    for (size_t i = 0; i < part; i++)
        prefix_take(u, i, u->bounds[i].list[0].min);
    density.prefix = arena_copy(u->filter->arena, buf_slice(&u->prefix));
    u->prefix.len = len;
    if (!query_density_radius(u->filter, &density, &radius)) {
        u->filter->failed = true;
        return false;
    }
    u->filter->within = MIN(radius, QUERY_RING_EVERYWHERE);
    u->filter->near_rows = 0;
    return true;
}

/* Binds a part that has cells, by a region. */
static bool cells_bind(struct using *u, size_t part)
{
    const struct query_conditions *conditions = through(u->filter, u->definition->collator, true);

    for (size_t i = 0; !u->branch && i < conditions->part_count; i++) {
        const struct query_condition *condition = &conditions->parts[i];

        if (!condition->region || !condition->through || is_everywhere(u->filter, condition) ||
            condition->region->rules.surface != u->definition->spatial->rules.surface ||
            !path_is(&condition->path, &u->definition->parts[part].path) ||
            !ring_find(u, part, condition->region) ||
            !query_region_ranges(condition->region, u->definition->spatial, DOCUMENT_ORDER_MONGO,
                                 u->filter, &u->bounds[part]))
            continue;
        u->use->within |= condition->region->ordered;
        u->use->circle = query_region_circle(condition->region, u->filter);
        u->use->conjuncts |= condition->conjuncts;
        u->use->exact = false;
        u->bound = part + 1;
        return true;
    }
    return false;
}

/* Binds the next part. *ret_point: by a single value, so that the one behind it can be, too. */
static bool part_bind(struct using *u, size_t part, bool *ret_point)
{
    const struct query_condition *condition = part_condition(u, part);
    struct query_ranges ranges;
    bool hashed = u->definition->parts[part].hashed;

    *ret_point = false;
    if (u->definition->parts[part].cells)
        return cells_bind(u, part);
    if (!condition || shares_before(u, part))
        return false;
    ranges = condition->ranges;
    if (hashed && !hashed_ranges(u, condition, &ranges))
        return false;
    u->bounds[part] = ranges;
    u->present |= condition->present;
    u->use->conjuncts |= condition->conjuncts;
    u->use->exact &= condition->exact && !hashed;
    u->bound = part + 1;
    /* A key that was cut does not say where the next value begins. */
    *ret_point = condition->points && condition->point_count == 1 && ranges.count == 1 &&
                 ranges.list[0].min.len < INDEX_VALUE_MAX;
    return true;
}

static void using_begin(struct using *u, const struct item_space *space,
                        struct query_filter *filter, const struct index_definition *definition,
                        const uint64_t *arrays, struct query_index_use *use)
{
    *u = (struct using){
        .space = space, .filter = filter, .definition = definition, .arrays = arrays, .use = use};
    *use = (struct query_index_use){.order = DOCUMENT_ORDER_MONGO,
                                    .exact = true,
                                    .name = definition->name,
                                    .definition = definition,
                                    .arrays = arrays};
    buf_init(&u->prefix, BUF_DEFAULT_MAX);
    buf_append_slice(&u->prefix, definition->prefix);
}

/* The use of the parts from `first` on, in these ranges of the first of them. */
static void using_end(struct using *u, size_t first, const struct query_ranges *ranges)
{
    const struct index_definition *definition = u->definition;
    struct query_index_use *use = u->use;
    struct arena *arena = u->filter->arena;
    bool *descending = ARENA_ARRAY(arena, bool, definition->part_count);
    struct query_ranges *bounds = ARENA_ARRAY(arena, struct query_ranges, definition->part_count);

    for (size_t i = first; i < definition->part_count; i++) {
        descending[i - first] = definition->parts[i].descending;
        use->repeats |= u->arrays[i] != 0;
    }
    for (size_t i = 0; i < first; i++)
        use->repeats |= u->arrays[i] != 0;
    use->prefix = arena_copy(arena, buf_slice(&u->prefix));
    use->value_count = definition->part_count - first;
    use->descending = descending;
    if (!ranges)
        use->ranges = query_ranges_all(arena);
    else if (definition->parts[first].descending)
        use->ranges = query_ranges_invert(*ranges, arena);
    else
        use->ranges = *ranges;
    if (!first && u->filter->bounds.min.data && slice_equal(definition->name, u->filter->hint))
        use->ranges = query_ranges_intersect(
            use->ranges, (struct query_ranges){.list = &u->filter->bounds, .count = 1}, arena);
    use->single = u->single;
    use->exact &= !definition->collator; /* parts of the filter are counted without collations */
    use->repeats &= !use->single;
    memcpy(bounds, u->bounds, definition->part_count * sizeof *bounds);
    use->bounds = bounds;
    use->bound_count = definition->part_count;
    if (definition->spatial && definition->part_count == 1)
        use->place = query_one_place(&definition->parts[0].path, arena);
    buf_done(&u->prefix);
}

/* An item without a figure is not in an index of cells. */
static bool cells_are_bound(const struct using *u)
{
    for (size_t i = u->bound; u->definition->spatial && i < u->definition->part_count; i++)
        if (u->definition->parts[i].cells)
            return false;
    return true;
}

/* Values for the first parts, ranges for the next. */
static bool ordered_use(struct using *u)
{
    const struct index_definition *definition = u->definition;
    const struct query_ranges *ranges = NULL;
    size_t given = 0;
    bool point = true;

    while (point && given < definition->part_count && part_bind(u, given, &point))
        given += point;
    if (!u->bound || !cells_are_bound(u) || (definition->sparse && !u->present) ||
        !filter_is_implied(u->filter, definition)) {
        buf_done(&u->prefix);
        return false;
    }
    u->single = given == definition->part_count;
    given -= u->single;
    if (u->bound > given)
        ranges = &u->bounds[given];
    for (size_t i = 0; i < given; i++)
        prefix_take(u, i, u->bounds[i].list[0].min);
    using_end(u, given, ranges);
    return true;
}

static void wildcard_uses(const struct item_space *space, struct query_filter *filter,
                          const struct index_definition *definition, struct query_index_uses *uses)
{
    const struct query_conditions *conditions = through(filter, definition->collator, true);

    if (!filter_is_implied(filter, definition))
        return;
    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];
        struct query_ranges *bounds;
        struct query_index_use *use;
        bool known = false;

        if (!condition->through || !condition->present || condition->wholes ||
            !condition->ranges.count || is_all(&condition->ranges) ||
            !index_definition_covers(definition, &condition->path))
            continue;
        for (size_t n = 0; n < uses->count && !known; n++)
            known = uses->list[n].definition == definition &&
                    slice_equal(
                        uses->list[n].prefix,
                        index_definition_path_prefix(definition, &condition->path, filter->arena));
        if (known)
            continue;
        use = query_index_use_add(uses, filter->arena);
        bounds = ARENA_NEW(filter->arena, struct query_ranges);
        *bounds = condition->ranges;
        *use = (struct query_index_use){
            .prefix = index_definition_path_prefix(definition, &condition->path, filter->arena),
            .value_count = 1,
            .order = DOCUMENT_ORDER_MONGO,
            .ranges = condition->ranges,
            .single =
                condition->points && condition->point_count == 1 && condition->ranges.count == 1,
            .conjuncts = condition->conjuncts,
            .name = definition->name,
            .definition = definition,
            .bounds = bounds,
            .bound_count = 1};
        use->repeats = !use->single;
    }
    (void)space;
}

/* --- Unions ------------------------------------------------------------------------------------
 */

/* What one side of an `any` says, as a list. */
static bool branch_read(const struct query_implied *side, struct arena *arena,
                        struct query_conditions *ret_branch)
{
    struct query_condition *list;
    size_t count = 0;

    if (!side || (side->kind != QUERY_IMPLIED_CONDITION && side->kind != QUERY_IMPLIED_ALL))
        return false;
    list = ARENA_ARRAY(arena, struct query_condition, side->count + 1);
    if (side->kind == QUERY_IMPLIED_CONDITION)
        list[count++] = side->condition;
    else
        for (size_t i = 0; i < side->count; i++)
            if (side->parts[i] && side->parts[i]->kind == QUERY_IMPLIED_CONDITION)
                list[count++] = side->parts[i]->condition;
    *ret_branch = (struct query_conditions){.list = list, .count = count};
    return count > 0;
}

/* The definition that says most of the branch. */
static bool branch_use(const struct item_space *space, struct query_filter *filter,
                       const struct query_conditions *branch,
                       const struct document_collator *collator, struct query_index_use *ret_use)
{
    size_t count, best = 0;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);

    for (size_t i = 0; i < count; i++) {
        struct query_index_use use;
        struct using u;

        if (list[i]->hidden || list[i]->kind != &index_kind_ordered ||
            list[i]->collator != collator || !is_of_kind(space, list[i]))
            continue;
        using_begin(&u, space, filter, list[i], arrays_of(space, filter, i), &use);
        u.branch = branch;
        if (!ordered_use(&u) || 2 * u.bound + u.single <= best)
            continue;
        best = 2 * u.bound + u.single;
        *ret_use = use;
        ret_use->gathered = !use.single;
        ret_use->repeats = false; /* members are told apart by number */
    }
    return best > 0;
}

static void union_find(const struct item_space *space, struct query_filter *filter,
                       const struct query_alternative *alternative,
                       const struct document_collator *collator, struct query_index_uses *uses)
{
    const struct query_implied *any = alternative->implied;
    CLEANUP(buf_done) struct buf prefix, name;
    struct query_index_use *members, *use;
    size_t ranges = 0;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    buf_init(&name, BUF_DEFAULT_MAX);
    if (any->count > QUERY_UNION_MAX)
        return;
    members = ARENA_ARRAY(filter->arena, struct query_index_use, any->count + 1);
    for (size_t i = 0; i < any->count; i++) {
        struct query_conditions branch;

        if (!branch_read(any->parts[i], filter->arena, &branch) ||
            !branch_use(space, filter, &branch, collator, &members[i]))
            return;
        buf_append_slice(&prefix, members[i].prefix);
        buf_append_text(&name, i ? " OR " : "");
        buf_append_slice(&name, members[i].name);
        ranges += members[i].ranges.count;
    }
    use = query_index_use_add(uses, filter->arena);
    *use = (struct query_index_use){.members = members,
                                    .member_count = any->count,
                                    .prefix = arena_copy(filter->arena, buf_slice(&prefix)),
                                    .ranges = {.count = ranges},
                                    .conjuncts = alternative->conjuncts,
                                    .name = arena_copy(filter->arena, buf_slice(&name))};
}

/* By indexes of one collation, for each that there is. */
static void unions_find(const struct item_space *space, struct query_filter *filter,
                        struct query_index_uses *uses)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);

    for (size_t i = 0; i < count; i++) {
        const struct query_conditions *conditions;
        size_t before = 0;

        while (before < i && list[before]->collator != list[i]->collator)
            before++;
        if (before < i)
            continue;
        conditions = through(filter, list[i]->collator, true);
        for (size_t n = 0; n < conditions->alternative_count; n++)
            union_find(space, filter, &conditions->alternatives[n], list[i]->collator, uses);
    }
}

/* One value of the only part, or cells: which arrays there are makes no difference, and to look for
 * them costs as much as to find a few items. False: it is asked for something else, and they do. */
static bool point_use(const struct item_space *space, struct query_filter *filter,
                      const struct index_definition *definition, struct query_index_uses *uses)
{
    static const uint64_t anywhere[] = {ARRAYS_ANYWHERE};
    struct query_index_use use;
    struct using u;

    if (definition->part_count != 1 || filter->arrays || filter->arrays_shown)
        return false;
    using_begin(&u, space, filter, definition, anywhere, &use);
    if (!ordered_use(&u))
        return true;
    if (!use.single && !definition->spatial)
        return false;
    *query_index_use_add(uses, filter->arena) = use;
    return true;
}

void query_definition_uses_find(const struct item_space *space, struct query_filter *filter,
                                struct query_index_uses *uses)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);

    if (filter->plan->order != DOCUMENT_ORDER_MONGO || !filter->plan->query.filter)
        return;
    for (size_t i = 0; i < count; i++) {
        struct query_index_use use;
        struct using u;

        if (list[i]->hidden || !is_of_kind(space, list[i]))
            continue;
        if (list[i]->kind == &index_kind_wildcard) {
            wildcard_uses(space, filter, list[i], uses);
            continue;
        }
        if (point_use(space, filter, list[i], uses))
            continue;
        using_begin(&u, space, filter, list[i], arrays_of(space, filter, i), &use);
        if (ordered_use(&u))
            *query_index_use_add(uses, filter->arena) = use;
    }
    if (count)
        unions_find(space, filter, uses);
}

/* --- Orders ------------------------------------------------------------------------------------
 */

/* The paths that the plan orders by, and the collator of all; false: it orders by something else.
 */
static bool order_paths(const struct query_plan *plan, struct arena *arena,
                        struct document_path *paths, const struct document_collator **ret_collator)
{
    for (size_t i = 0; i < plan->query.order_count; i++) {
        const struct query_order *order = &plan->query.order[i];
        struct query_end end;

        if (!order->expression->kind->is_end_of ||
            !order->expression->kind->is_end_of(order->expression, arena, &end) ||
            end.greatest != order->descending || (i && end.collator != *ret_collator))
            return false;
        paths[i] = end.path;
        *ret_collator = end.collator;
    }
    return true;
}

/* Does the order begin at this part and go on in its directions, or all of them turned? */
static bool order_matches(const struct using *u, size_t first, const struct document_path *paths,
                          bool *ret_backwards)
{
    const struct query_subquery *query = &u->filter->plan->query;
    size_t forwards = 0;

    if (u->definition->part_count - first < query->order_count)
        return false;
    for (size_t i = 0; i < query->order_count; i++) {
        const struct index_part *part = &u->definition->parts[first + i];

        /* Several paths are ordered by each by itself, an index has tuples of one element. */
        if (part->hashed || !path_is(&part->path, &paths[i]) ||
            (u->arrays[first + i] && query->order_count > 1) || shares_before(u, first + i))
            return false;
        forwards += part->descending == query->order[i].descending;
    }
    *ret_backwards = forwards == 0;
    return forwards == 0 || forwards == query->order_count;
}

static bool order_use(struct using *u, const struct document_path *paths, bool *ret_backwards)
{
    const struct query_subquery *query = &u->filter->plan->query;
    size_t part = 0;
    bool point;

    while (!order_matches(u, part, paths, ret_backwards)) {
        if (part + query->order_count >= u->definition->part_count || !query->filter ||
            !part_bind(u, part, &point) || !point) {
            buf_done(&u->prefix);
            return false;
        }
        prefix_take(u, part, u->bounds[part].list[0].min);
        part++;
    }
    if (query->filter && !u->arrays[part])
        (void)part_bind(u, part, &point);
    if ((u->definition->sparse && !u->present) || !filter_is_implied(u->filter, u->definition)) {
        buf_done(&u->prefix);
        return false;
    }
    using_end(u, part, u->bound == part + 1 ? &u->bounds[part] : NULL);
    u->use->single = false;
    if (query->order_count < u->use->value_count)
        u->use->kept_count = query->order_count;
    return true;
}

bool query_definition_for_order(const struct item_space *space, struct query_filter *filter,
                                struct query_index_use *ret_use, bool *ret_backwards)
{
    const struct query_plan *plan = filter->plan;
    struct document_path *paths =
        ARENA_ARRAY(filter->arena, struct document_path, plan->query.order_count + 1);
    const struct document_collator *collator = NULL;
    struct query_index_use best = {0};
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);
    bool found = false;

    if (plan->order != DOCUMENT_ORDER_MONGO || !plan->query.order_count || !count ||
        !order_paths(plan, filter->arena, paths, &collator))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct query_index_use use;
        struct using u;
        bool backwards;

        if (list[i]->placed || (list[i]->hidden && !slice_equal(list[i]->name, filter->hint)) ||
            (filter->hint.data && !slice_equal(list[i]->name, filter->hint)) ||
            list[i]->kind != &index_kind_ordered || list[i]->collator != collator ||
            !is_of_kind(space, list[i]))
            continue;
        using_begin(&u, space, filter, list[i], arrays_of(space, filter, i), &use);
        if (!order_use(&u, paths, &backwards))
            continue;
        /* The one that says most of the filter. */
        if (found && __builtin_popcountll(use.conjuncts) <= __builtin_popcountll(best.conjuncts))
            continue;
        found = true;
        best = use;
        *ret_backwards = backwards;
    }
    if (found)
        *ret_use = best;
    return found;
}

bool query_definition_whole(const struct item_space *space, struct query_filter *filter,
                            struct slice name, struct query_index_use *ret_use)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);
    struct using u;

    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(list[i]->name, name) || list[i]->kind != &index_kind_ordered ||
            !is_of_kind(space, list[i]))
            continue;
        using_begin(&u, space, filter, list[i], arrays_of(space, filter, i), ret_use);
        using_end(&u, 0, NULL);
        return true;
    }
    return false;
}

/* --- Items with several entries ----------------------------------------------------------------
 */

static bool ranges_have(const struct query_ranges *ranges, struct slice value)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (slice_compare(value, ranges->list[i].min) >= 0 &&
            slice_compare(value, ranges->list[i].max) < 0)
            return true;
    return false;
}

bool query_entry_is_first(const struct query_index_use *use, bool backwards, struct slice document,
                          struct slice value, struct arena *arena, bool *ret_first,
                          struct error *err)
{
    uint8_t *turned = arena_alloc(arena, value.len + 1);
    struct index_entry *entries;
    struct slice first = SLICE_NONE;
    size_t count;

    for (size_t i = 0; i < value.len; i++)
        turned[i] = backwards ? (uint8_t)~value.data[i] : value.data[i];
    if (!index_definition_entries(use->definition, document, arena, &entries, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct slice rest;

        if (!slice_starts_with(entries[i].bytes, use->prefix))
            continue;
        rest = slice_skip(entries[i].bytes, use->prefix.len);
        if (ranges_have(&use->ranges, rest) && !query_entry_is_out(use, rest) &&
            (!first.data || backwards))
            first = rest; /* entries are sorted */
    }
    *ret_first = first.data && slice_starts_with(first, slice_of(turned, value.len));
    return true;
}
