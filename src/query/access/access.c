/* Choosing. Indexes are compared by how many entries they would have to walk (estimate.c). A point
 * beats everything, an index beats a scan, values that are all frequent are intersected
 * (together.c).
 *
 * An order that an index has is taken from it, unless the filter is so selective that sorting what
 * it leaves costs less than walking the order. Objects and arrays have no entries at their own
 * path; where some are, the order is made by sorting, for the index would leave them out. */
#include "query/access/access_private.h"

#include <math.h>
#include <xxhash.h>

enum { FURTHER_FEW = 1024, FURTHER_MAX = 16384 }; /* entries that are counted, if it must be */

uint32_t query_access_mark(const struct query_access *access)
{
    uint64_t hash = (uint64_t)access->kind;

    if (access->index)
        hash = XXH3_64bits_withSeed(access->index->prefix.data, access->index->prefix.len, hash);
    for (size_t i = 0; i < access->with_count; i++)
        hash =
            XXH3_64bits_withSeed(access->with[i]->prefix.data, access->with[i]->prefix.len, hash);
    if (access->without) /* another name than that of one to be in */
        hash =
            XXH3_64bits_withSeed(access->without->prefix.data, access->without->prefix.len, ~hash);
    return (uint32_t)(hash ^ hash >> 32) | 2; /* 0 and 1 mean other things to continuations */
}

/* --- Orders ---------------------------------------------------------------------------------- */

/* Has an item of the targets an array or object at the path? */
static bool nested_probe(struct query_choosing *c, const struct document_path *path, bool *ret_some)
{
    CLEANUP(buf_done) struct buf below;

    *ret_some = false;
    buf_init(&below, BUF_DEFAULT_MAX);
    index_path_append_below(path, &below);
    for (size_t t = 0; t < c->targets.count && !*ret_some; t++) {
        size_t first, count = query_spans_overlap(c->spans, c->targets.list[t].range, &first);

        for (size_t i = first; i < first + count && !*ret_some; i++) {
            CLEANUP(view_walk_done) struct view_walk walk = {0};
            struct slice min = item_family_key(c->arena, 'i', buf_slice(&below));
            struct engine_range range = {min, cursor_prefix_end(c->arena, min)};
            struct engine_entry entry;
            struct view *view;

            if (!query_spans_view(c->spans, i, &view, c->err) ||
                !view_walk_open(&walk,
                                &(struct view_walk_options){.engine = view->scope.engine,
                                                            .snapshot = view->snapshot,
                                                            .partition = view->scope.partition,
                                                            .range = range,
                                                            .section = view->planned,
                                                            .bound = view->bound},
                                c->err) ||
                !view_walk_next(&walk, &entry, c->err))
                return false;
            *ret_some = entry.found == ENGINE_FOUND;
        }
    }
    return true;
}

static bool ranges_reach_nested(const struct query_ranges *ranges)
{
    struct slice max = ranges->list[ranges->count - 1].max;

    /* The rank of arrays in SQL's order, of objects in MongoDB's: document/key.c. */
    return slice_compare(max, SLICE("\x1C")) > 0;
}

/* The index that gives the order, if there is one and it holds all that belongs in it. */
static bool order_find(struct query_choosing *c, const struct query_access_wish *wish,
                       struct query_index_use *use, bool *ret_backwards, bool *ret_found)
{
    struct document_path path, below;
    bool nested = false;

    *ret_found = false;
    if (wish->order_sorted || c->spans->request->hint.kind == QUERY_HINT_SCAN ||
        !query_index_for_order(c->plan, c->space, &c->filter, use, ret_backwards, &path))
        return true;
    below = path;
    below.end = DOCUMENT_PATH_END_ALL;
    if (c->plan->order_free && path.count &&
        (!query_index_covers_undefined(c->space, &path) ||
         !query_index_covers(c->space, &below))) /* nothing tells of arrays and objects there */
        return true;
    if (path.count && ranges_reach_nested(&use->ranges) && query_index_covers(c->space, &below) &&
        !nested_probe(c, &path, &nested))
        return false;
    *ret_found = !nested;
    return true;
}

/* --- Choosing -------------------------------------------------------------------------------- */

static void index_take(const struct query_index_use *use, struct query_access *access)
{
    access->kind = QUERY_ACCESS_INDEX;
    access->index = use;
}

/* A container without a partition key has one logical partition. */
static void target_fixed(struct query_choosing *c, struct query_access *access)
{
    const struct partition_definition *definition = &c->space->definition->key;
    const struct document_value none = document_undefined();
    struct partition_key key = partition_key_of(definition, &none, 1);
    struct query_target *target = ARENA_NEW(c->arena, struct query_target);

    *target = (struct query_target){.range = partition_route_range(definition, &key, c->arena),
                                    .logical = item_logical(definition, &key, c->arena)};
    access->targets = target;
    access->target_count = 1;
}

/* An id for every logical partition that is asked: no index is needed. */
static void point_find(struct query_choosing *c, struct query_access *access)
{
    bool fixed = c->space->definition->key.system_key && c->targets.count == 1 &&
                 c->spans->request->scope.kind == QUERY_SCOPE_CONTAINER &&
                 definition_names_of(c->space->definition)->identity_order == DOCUMENT_ORDER_MONGO;
    bool any_id = definition_names_of(c->space->definition)->identity_order == DOCUMENT_ORDER_MONGO;

    for (size_t i = 0; i < c->targets.count && !fixed; i++) {
        if (!c->targets.list[i].logical.len)
            return;
    }
    for (size_t i = 0; i < c->conditions->part_count; i++) {
        const struct query_condition *part = &c->conditions->parts[i];

        if (part->elements || (part->nested && !any_id) || !part->points ||
            part->point_count != 1 || part->path.count != 1 ||
            !slice_equal(part->path.segments[0].name,
                         definition_names_of(c->space->definition)->identity))
            continue;
        access->kind = QUERY_ACCESS_POINT;
        access->ids = part->points;
        access->id_count = 1;
        if (fixed && !c->targets.list[0].logical.len)
            target_fixed(c, access);
        return;
    }
}

/* The value that the items of a logical partition have at a path of the partition key. False: there
 * is none, or the index has none of it. */
static bool key_ranges(const struct query_choosing *c, const struct query_target *target,
                       size_t path, struct query_ranges *ret_ranges)
{
    const struct partition_definition *definition = &c->space->definition->key;
    struct slice bytes = target->logical;
    struct partition_key key;
    struct error ignored;
    bool exact;

    if (!bytes.len || !partition_route_skip(definition, &bytes, &ignored) ||
        !partition_key_read(definition, &bytes, c->arena, &key, &ignored) ||
        key.components[path].type == DOCUMENT_UNDEFINED)
        return false;
    *ret_ranges =
        query_ranges_point(query_paths_order(c->space), &key.components[path], &exact, c->arena);
    return true;
}

/* Where a logical partition is read without a better index, the one of its key has its items in
 * order of creation. */
static void key_index_find(struct query_choosing *c, struct query_access *access)
{
    const struct partition_definition *definition = &c->space->definition->key;

    if (c->targets.count != 1 || definition->system_key)
        return;
    for (size_t i = 0; i < definition->path_count; i++) {
        struct document_path path = definition->paths[i];
        struct query_ranges ranges;
        struct query_index_use *use;

        path.end = DOCUMENT_PATH_END_SCALAR;
        if (!query_index_covers(c->space, &path) || !key_ranges(c, &c->targets.list[0], i, &ranges))
            continue;
        use = ARENA_NEW(c->arena, struct query_index_use);
        *use = (struct query_index_use){.prefix = query_path_prefix(&path, c->arena),
                                        .value_count = 1,
                                        .order = query_paths_order(c->space),
                                        .ranges = ranges,
                                        .single = true,
                                        .exact = true, /* of no conjunct */
                                        .name = definition->texts[i]};
        index_take(use, access);
        return;
    }
}

/* Of an index on the partition key, each logical partition wants its own value alone. */
static void targets_value(struct query_choosing *c, struct query_access *access)
{
    const struct partition_definition *definition = &c->space->definition->key;
    struct query_target *list;

    if (access->kind != QUERY_ACCESS_INDEX || access->index->value_count != 1 ||
        c->targets.count < 2)
        return;
    for (size_t i = 0; i < definition->path_count; i++) {
        if (!slice_equal(query_path_prefix(&definition->paths[i], c->arena), access->index->prefix))
            continue;
        list = ARENA_ARRAY(c->arena, struct query_target, c->targets.count);
        memcpy(list, c->targets.list, c->targets.count * sizeof *list);
        for (size_t t = 0; t < c->targets.count; t++)
            (void)key_ranges(c, &list[t], i, &list[t].values);
        access->targets = list;
        return;
    }
}

/* Does the index say no more than the targets do? */
static bool is_idle(const struct query_choosing *c, const struct query_index_use *use)
{
    return c->targets.list[0].logical.len && !(use->conjuncts & ~c->targets.conjuncts);
}

/* All values of a path, if its index holds them all: none of them is an array or object. */
static bool cover_find(struct query_choosing *c, const struct document_path *path,
                       struct query_access *access)
{
    struct document_path below = *path;
    struct query_index_use *use;
    bool nested;

    below.end = DOCUMENT_PATH_END_ALL;
    if (c->space->definition->default_ttl || !query_index_covers(c->space, path) ||
        !query_index_covers(c->space, &below))
        return true;
    if (!nested_probe(c, path, &nested))
        return false;
    if (nested)
        return true;
    use = ARENA_NEW(c->arena, struct query_index_use);
    *use = (struct query_index_use){.prefix = query_path_prefix(path, c->arena),
                                    .value_count = 1,
                                    .order = query_paths_order(c->space),
                                    .exact = true,
                                    .ranges = query_ranges_all(c->arena),
                                    .name = query_path_name(path, c->arena)};
    index_take(use, access);
    return true;
}

static bool choose_unordered(struct query_choosing *c, const struct query_access_wish *wish,
                             struct query_access *access)
{
    const struct query_index_use *best;

    if (c->spans->request->hint.kind == QUERY_HINT_NONE)
        point_find(c, access);
    if (access->kind == QUERY_ACCESS_POINT)
        return true;
    if (!query_best_find(c, c->uses.count > 1, &best))
        return false;
    if (best && (wish->number_order || !is_idle(c, best))) {
        index_take(best, access);
        query_others_take(c, wish, access);
    } else if (wish->number_order) {
        key_index_find(c, access);
    }
    return access->kind != QUERY_ACCESS_SCAN || !wish->cover || cover_find(c, wish->cover, access);
}

/* A count that takes one item, or no item at all. */
static bool settled_find(struct query_choosing *c, const struct query_access_wish *wish,
                         struct query_access *access)
{
    if (wish->counts && c->spans->request->hint.kind == QUERY_HINT_NONE)
        point_find(c, access);
    return access->kind == QUERY_ACCESS_POINT || query_settle_first(c, wish, access);
}

/* Does the filter say more than the index of the order knows? Otherwise there is nothing to weigh.
 */
static bool others_help(const struct query_choosing *c, const struct query_index_use *use)
{
    for (size_t i = 0; i < c->uses.count; i++)
        if (c->uses.list[i].conjuncts & ~use->conjuncts)
            return true;
    return false;
}

static bool choose_ordered(struct query_choosing *c, const struct query_access_wish *wish,
                           struct query_access *access)
{
    struct query_index_use *use = ARENA_NEW(c->arena, struct query_index_use);
    const struct query_index_use *best;
    bool backwards = false, found;

    if (c->spans->request->hint.kind == QUERY_HINT_NONE)
        point_find(c, access);
    if (access->kind == QUERY_ACCESS_POINT)
        return true;
    if (!order_find(c, wish, use, &backwards, &found))
        return false;
    if (found) /* many entries are as good as very many */
        c->further = QUERY_ESTIMATE_MAX;
    if (!query_best_find(c, found ? others_help(c, use) : c->uses.count > 1, &best))
        return false;
    if (found &&
        !(best && best->estimate < QUERY_ESTIMATE_MAX && (best->conjuncts & ~use->conjuncts))) {
        index_take(use, access);
        access->backwards = backwards;
        access->ordered = true;
        return true;
    }
    if (best) {
        index_take(best, access);
        query_others_take(c, wish, access);
    }
    return true;
}

/* The same choice as the page before. */
static bool choose_again(struct query_choosing *c, const struct query_access_wish *wish,
                         struct query_access *access)
{
    uint32_t mark = wish->mark;
    struct query_access again;

    again = *access;
    if (query_access_mark(&again) == mark)
        return true;
    point_find(c, &again);
    if (query_access_mark(&again) == mark) {
        *access = again;
        return true;
    }
    again = *access;
    key_index_find(c, &again);
    if (again.index && query_access_mark(&again) == mark) {
        *access = again;
        return true;
    }
    again = *access;
    if (wish->cover) {
        if (!cover_find(c, wish->cover, &again))
            return false;
        if (query_access_mark(&again) == mark) {
            *access = again;
            return true;
        }
    }
    for (size_t i = 0; i < c->uses.count; i++) {
        for (size_t j = 0; j <= c->uses.count + 1; j++) {
            again = *access;
            index_take(&c->uses.list[i], &again);
            if (j < c->uses.count) {
                if (!c->uses.list[j].single || !query_use_is_numbered(again.index))
                    continue;
                again.with[again.with_count++] = &c->uses.list[j];
            } else if (j == c->uses.count) {
                query_settle_find(c, &again);
            }
            if (query_access_mark(&again) == mark) {
                *access = again;
                return true;
            }
        }
    }
    return error_set(c->err, ERROR_BAD_REQUEST,
                     "the index that this continuation goes by is no longer there; run the query "
                     "again from its beginning");
}

static void missing_find(struct query_choosing *c, struct query_access *access)
{
    struct query_condition *missing =
        ARENA_ARRAY(c->arena, struct query_condition, c->conditions->count + 1);

    access->missing = missing;
    for (size_t i = 0; i < c->conditions->count; i++) {
        const struct query_condition *condition = &c->conditions->list[i];

        if (!query_index_covers(c->space, &condition->path) &&
            condition->path.segments[0].name.len && condition->path.segments[0].name.data[0] != '_')
            missing[access->missing_count++] = *condition;
    }
    for (size_t i = 0; i < c->conditions->part_count; i++) {
        const struct query_condition *part = &c->conditions->parts[i];

        if (part->words && !part->words->index.data && !query_text_at(c->space, &part->path))
            access->search_missing = &part->path;
    }
}

static bool is_value(const struct query_condition *condition)
{
    return condition->points && condition->point_count == 1;
}

/* Two conditions or more that only a composite index would answer together. */
static void together_find(struct query_choosing *c, struct query_access *access)
{
    const struct query_condition **list =
        ARENA_ARRAY(c->arena, const struct query_condition *, INDEX_COMPOSITE_PATHS_MAX + 1);
    const struct query_condition *range = NULL;
    size_t count = 0;

    for (size_t i = 0; i < c->conditions->count && count < INDEX_COMPOSITE_PATHS_MAX - 1; i++) {
        const struct query_condition *condition = &c->conditions->list[i];

        if (condition->elements || (condition->conjuncts & c->targets.conjuncts))
            continue;
        if (is_value(condition))
            list[count++] = condition;
        else if (!range)
            range = condition;
    }
    if (range)
        list[count++] = range;
    if (count < 2 || (range && count == 1) || (access->index && access->index->value_count > 1) ||
        access->kind == QUERY_ACCESS_POINT)
        return;
    access->together = list;
    access->together_count = count;
}

static void advice_find(struct query_choosing *c, struct query_access *access)
{
    struct document_path *path = ARENA_NEW(c->arena, struct document_path);
    bool elements;

    missing_find(c, access);
    together_find(c, access);
    if (c->plan->query.order_count == 1 &&
        query_path_find(c->plan, c->plan->query.order[0].expression, c->arena, path, &elements) &&
        !elements && !query_index_covers(c->space, path))
        access->order_missing = path;
}

/* Without joins a filter need not be evaluated where targets and indexes say all of it. */
static bool is_exact(const struct query_choosing *c, const struct query_access *access)
{
    uint64_t known = c->targets.conjuncts | c->conditions->settled, all = query_conjuncts_all(c);

    if (c->plan->query.source_count || !c->conditions->all)
        return false;
    if (access->index && access->index->exact)
        known |= access->index->conjuncts;
    for (size_t i = 0; i < access->with_count; i++)
        if (access->with[i]->exact)
            known |= access->with[i]->conjuncts;
    if (access->without)
        known |= access->without->conjuncts;
    return (known & all) == all;
}

/* For explanations: what the choice did not need to know. */
static bool uses_count(struct query_choosing *c)
{
    for (size_t i = 0; i < c->uses.count; i++)
        if (!query_use_estimate(c, &c->uses.list[i], QUERY_ESTIMATE_MAX))
            return false;
    return true;
}

static bool index_count(struct query_choosing *c, struct query_access *access)
{
    struct query_index_use *use;

    if (!access->index || access->index->estimate || access->index->member_count)
        return true;
    use = ARENA_NEW(c->arena, struct query_index_use);
    *use = *access->index;
    access->index = use;
    return query_use_estimate(c, use, QUERY_ESTIMATE_MAX);
}

/* What a hint leaves: nothing for a scan, of an index what it offers, or all of it. */
static void hint_apply(struct query_choosing *c)
{
    const struct query_hint *hint = &c->spans->request->hint;
    struct query_index_use whole;
    size_t kept = 0;

    if (hint->kind == QUERY_HINT_NONE)
        return;
    for (size_t i = 0; i < c->uses.count && hint->kind == QUERY_HINT_INDEX; i++)
        if (c->uses.list[i].definition && slice_equal(c->uses.list[i].definition->name, hint->name))
            c->uses.list[kept++] = c->uses.list[i];
    c->uses.count = kept;
    if (!kept && hint->kind == QUERY_HINT_INDEX &&
        query_definition_whole(c->space, &c->filter, hint->name, &whole))
        *query_index_use_add(&c->uses, c->arena) = whole;
}

bool query_access_choose(const struct query_plan *plan, struct query_spans *spans,
                         const struct query_access_wish *wish, struct arena *arena,
                         struct query_access *ret_access, struct error *err)
{
    struct query_choosing c = {
        .plan = plan,
        .spans = spans,
        .space = spans->request->space,
        .arena = arena,
        .counted = wish->counted,
        .further = wish->rows
                       ? MIN(MAX(4 * wish->rows, (uint64_t)FURTHER_FEW), (uint64_t)FURTHER_MAX)
                       : FURTHER_MAX,
        .err = err};
    struct query_filter *filter = &c.filter;
    struct query_access access = {.kind = QUERY_ACCESS_SCAN};
    bool never, settled = false;

    *filter = (struct query_filter){.plan = plan,
                                    .arena = arena,
                                    .spans = spans,
                                    .targets = &c.targets,
                                    .hint = spans->request->hint.kind == QUERY_HINT_INDEX
                                                ? spans->request->hint.name
                                                : SLICE_NONE,
                                    .arrays_shown = wish->counted,
                                    .context = wish->context,
                                    .within = wish->within > 0 ? wish->within : INFINITY,
                                    .near_rows = wish->near_rows,
                                    .bounds = spans->request->hint.bounds};
    c.conditions = query_filter_in(filter, query_paths_order(c.space));
    /* Routing keys have the bytes of SQL's order, whatever the entries of indexes have. Without a
     * partition key no filter says anything of one. */
    c.targets = query_targets_find(spans->request,
                                   c.space->definition->key.system_key
                                       ? c.conditions
                                       : query_filter_in(filter, DOCUMENT_ORDER_SQL),
                                   arena);
    if (spans->request->scope.kind == QUERY_SCOPE_KEYS && !c.targets.count)
        return error_set(err, ERROR_QUERY_NOT_SUPPORTED,
                         "two suffixes of this base share their hash: name the base in the filter "
                         "instead of the partition key header");
    /* Entries in the order of the plan may tell that nothing can be in all ranges, others not. */
    never = c.conditions->never || query_filter_in(filter, plan->order)->never;
    if (!never && !query_targets_serve(spans, &c.targets, arena, err))
        return false;
    access.targets = c.targets.list;
    access.target_count = c.targets.count;
    if (never || !c.targets.count) {
        access.kind = QUERY_ACCESS_NOTHING;
        access.target_count = 0;
        *ret_access = access;
        return true;
    }
    query_index_uses_find(c.space, filter, &c.uses);
    hint_apply(&c);
    if (filter->failed) {
        *err = filter->error;
        return false;
    }
    if (!wish->resumed && !wish->order)
        settled = settled_find(&c, wish, &access);
    if (!settled && !wish->resumed && !query_unions_weigh(&c))
        return false;
    if (!settled && (wish->resumed ? !choose_again(&c, wish, &access)
                     : wish->order ? !choose_ordered(&c, wish, &access)
                                   : !choose_unordered(&c, wish, &access)))
        return false;
    advice_find(&c, &access);
    targets_value(&c, &access);
    if (wish->counted && !(settled ? uses_count(&c) : index_count(&c, &access)))
        return false;
    access.exact = is_exact(&c, &access);
    access.within = filter->within;
    access.work = filter->work;
    access.weighed = c.uses.list;
    access.weighed_count = c.uses.count;
    *ret_access = access;
    return true;
}
