/* What indexes offer: for the conditions of a filter, and for an order. */
#include "query/access/access_private.h"

/* The definition of the paths is the first of every policy. */
enum document_order query_paths_order(const struct item_space *space)
{
    size_t count;

    return index_policy_definitions(space->definition->policy, &count)[0]->order;
}

const struct query_conditions *query_filter_in(struct query_filter *filter,
                                               enum document_order order)
{
    if (!filter->made[order])
        filter->orders[order] = query_conditions_find(filter->plan, order, filter->arena);
    filter->made[order] = true;
    return &filter->orders[order];
}

/* --- Coverage -------------------------------------------------------------------------------- */

bool query_index_covers(const struct item_space *space, const struct document_path *path)
{
    if (!index_policy_covers(space->definition->policy, path))
        return false;
    for (size_t i = 0; i < space->policies_before_count; i++) {
        if (!index_policy_covers(space->policies_before[i], path))
            return false;
    }
    return true;
}

bool query_index_covers_undefined(const struct item_space *space, const struct document_path *path)
{
    if (!index_policy_covers_undefined(space->definition->policy, path))
        return false;
    for (size_t i = 0; i < space->policies_before_count; i++) {
        if (!index_policy_covers_undefined(space->policies_before[i], path))
            return false;
    }
    return true;
}

static bool policy_has_composite(const struct index_policy *policy,
                                 const struct index_composite *wanted)
{
    size_t count;
    const struct index_composite *list = index_policy_composites(policy, &count);

    for (size_t i = 0; i < count; i++) {
        if (index_composite_same(&list[i], wanted))
            return true;
    }
    return false;
}

static bool composite_is_whole(const struct item_space *space,
                               const struct index_composite *composite)
{
    for (size_t i = 0; i < space->policies_before_count; i++) {
        if (!policy_has_composite(space->policies_before[i], composite))
            return false;
    }
    return true;
}

/* --- Names ----------------------------------------------------------------------------------- */

struct slice query_path_name(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    document_path_append(path, &name);
    return arena_copy(arena, buf_slice(&name));
}

static bool is_of_policy(const struct index_composite *composite)
{
    return composite->definition->format == INDEX_FORMAT_POLICY;
}

static struct slice composite_name(const struct index_composite *composite, struct arena *arena)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    if (!is_of_policy(composite))
        return composite->definition->name;
    for (size_t i = 0; i < composite->count; i++) {
        buf_append_text(&name, i ? ", " : "(");
        document_path_append(&composite->paths[i], &name);
        buf_append_text(&name, composite->descending[i] ? " DESC" : " ASC");
    }
    BUF_APPEND(&name, ")");
    return arena_copy(arena, buf_slice(&name));
}

/* --- Filters --------------------------------------------------------------------------------- */

struct query_index_use *query_index_use_add(struct query_index_uses *uses, struct arena *arena)
{
    if (uses->count == uses->capacity) {
        struct query_index_use *longer =
            ARENA_ARRAY(arena, struct query_index_use, uses->capacity * 2 + 8);

        if (uses->count)
            memcpy(longer, uses->list, uses->count * sizeof *longer);
        uses->list = longer;
        uses->capacity = uses->capacity * 2 + 8;
    }
    uses->list[uses->count] = (struct query_index_use){.value_count = 1};
    return &uses->list[uses->count++];
}

static bool is_single(const struct query_condition *condition)
{
    return condition->points && condition->point_count == 1 && condition->ranges.count == 1;
}

static const struct query_condition *condition_at(const struct query_conditions *conditions,
                                                  const struct document_path *path)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    index_path_append(path, &prefix);
    for (size_t i = 0; i < conditions->count; i++) {
        if (!conditions->list[i].elements &&
            slice_equal(conditions->list[i].prefix, buf_slice(&prefix)))
            return &conditions->list[i];
    }
    return NULL;
}

/* The bytes of a value behind those of the values before it. */
static struct slice key_behind(struct slice before, struct slice key, bool descending,
                               struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, before.len + key.len);

    if (before.len)
        memcpy(bytes, before.data, before.len);
    for (size_t i = 0; i < key.len; i++)
        bytes[before.len + i] = descending ? (uint8_t)~key.data[i] : key.data[i];
    return slice_of(bytes, before.len + key.len);
}

/* Values for the first paths, a range for the next: the part of a composite index that has them.
 * Returns how many paths are bound. */
static size_t composite_use(const struct index_composite *composite,
                            const struct query_conditions *conditions, struct arena *arena,
                            struct query_index_use *use)
{
    struct slice before = SLICE_NONE;
    size_t bound = 0;

    *use = (struct query_index_use){.prefix = composite->prefix,
                                    .value_count = composite->count,
                                    .descending = composite->descending,
                                    .order = composite->definition->order,
                                    .exact = true,
                                    .ranges = query_ranges_all(arena),
                                    .name = composite_name(composite, arena)};
    for (; bound < composite->count; bound++) {
        const struct query_condition *condition =
            condition_at(conditions, &composite->paths[bound]);
        struct query_ranges ranges;

        if (!condition)
            break;
        ranges = composite->descending[bound] ? query_ranges_invert(condition->ranges, arena)
                                              : condition->ranges;
        use->ranges = query_ranges_behind(before, ranges, arena);
        use->exact &= condition->exact;
        use->conjuncts |= condition->conjuncts;
        /* Cut keys say nothing of where the next value begins, nor do ranges. */
        if (!is_single(condition) || !condition->exact) {
            bound++;
            break;
        }
        before =
            key_behind(before, condition->ranges.list[0].min, composite->descending[bound], arena);
    }
    use->single = false;
    return bound;
}

/* --- Unions ---------------------------------------------------------------------------------- */

struct uniting {
    const struct item_space *space;
    struct arena *arena;
    struct query_index_use *members;
    size_t count;
    bool exact;
    bool gather; /* there is no room for a member for each value */
};

static bool condition_serves(const struct item_space *space,
                             const struct query_condition *condition)
{
    return !condition->nested && query_index_covers(space, &condition->path);
}

static struct query_index_use *member_add(struct uniting *u,
                                          const struct query_condition *condition)
{
    struct query_index_use *member;

    if (u->count == QUERY_UNION_MAX)
        return NULL;
    member = &u->members[u->count++];
    *member = (struct query_index_use){.prefix = condition->prefix,
                                       .value_count = 1,
                                       .order = query_paths_order(u->space),
                                       .ranges = condition->ranges,
                                       .gathered = true,
                                       .exact = condition->exact,
                                       .name = query_path_name(&condition->path, u->arena)};
    return member;
}

/* The entries of a single value come by routing key and number, so each value is walked by itself;
 * ranges are gathered. */
static bool members_of_condition(struct uniting *u, const struct query_condition *condition)
{
    if (!condition_serves(u->space, condition))
        return false;
    u->exact &= condition->exact;
    if (!condition->ranges.count)
        return true; /* it is never so */
    if (!condition->points || condition->point_count > QUERY_UNION_MAX ||
        (u->gather && condition->point_count > 1))
        return member_add(u, condition) != NULL;
    for (size_t i = 0; i < condition->ranges.count; i++) {
        struct query_index_use *member = member_add(u, condition);

        if (!member)
            return false;
        /* Values that are neighbours, or share their bytes, may have become one range. */
        member->ranges = (struct query_ranges){&condition->ranges.list[i], 1};
        member->single = condition->ranges.count == condition->point_count;
        member->gathered = !member->single;
    }
    return true;
}

/* Of several that must all be so, the one that seems to leave the fewest. */
static const struct query_condition *part_choose(const struct uniting *u,
                                                 const struct query_implied *all)
{
    const struct query_condition *best = NULL;

    for (size_t i = 0; i < all->count; i++) {
        const struct query_condition *condition;

        if (!all->parts[i] || all->parts[i]->kind != QUERY_IMPLIED_CONDITION ||
            !condition_serves(u->space, &all->parts[i]->condition))
            continue;
        condition = &all->parts[i]->condition;
        if (!best ||
            (condition->points && (!best->points || condition->point_count < best->point_count)))
            best = condition;
    }
    return best;
}

static bool members_of(struct uniting *u, const struct query_implied *implied)
{
    const struct query_condition *condition;

    if (!implied)
        return false;
    switch (implied->kind) {
    case QUERY_IMPLIED_CONDITION:
        return members_of_condition(u, &implied->condition);
    case QUERY_IMPLIED_ANY:
        for (size_t i = 0; i < implied->count; i++)
            if (!members_of(u, implied->parts[i]))
                return false;
        return true;
    case QUERY_IMPLIED_ALL:
        condition = part_choose(u, implied);
        u->exact = false;
        return condition && members_of_condition(u, condition);
    default:
        return false;
    }
}

static struct slice members_join(const struct uniting *u, bool names)
{
    CLEANUP(buf_done) struct buf joined;

    buf_init(&joined, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < u->count; i++) {
        struct slice text = names ? u->members[i].name : u->members[i].prefix;

        /* Of a path with several values once. */
        if (i && slice_equal(u->members[i - 1].prefix, u->members[i].prefix))
            continue;
        if (names && i)
            BUF_APPEND(&joined, " OR ");
        buf_append_slice(&joined, text);
    }
    return arena_copy(u->arena, buf_slice(&joined));
}

/* Indexes that have between them every item for which this is so; false: some of it has none. */
static bool union_use(const struct item_space *space, const struct query_implied *implied,
                      uint64_t conjuncts, struct arena *arena, struct query_index_use *use)
{
    struct uniting u = {.space = space,
                        .arena = arena,
                        .members = ARENA_ARRAY(arena, struct query_index_use, QUERY_UNION_MAX),
                        .exact = true};

    if (!members_of(&u, implied)) {
        if (u.count < QUERY_UNION_MAX)
            return false;
        u.count = 0;
        u.exact = u.gather = true;
        if (!members_of(&u, implied))
            return false;
    }
    if (!u.count)
        return false;
    *use = (struct query_index_use){.members = u.members,
                                    .member_count = u.count,
                                    .prefix = members_join(&u, false),
                                    .exact = u.exact,
                                    .conjuncts = conjuncts,
                                    .name = members_join(&u, true)};
    for (size_t i = 0; i < u.count; i++)
        use->ranges.count += u.members[i].ranges.count; /* for people: it has no list */
    return true;
}

static void unions_find(const struct item_space *space, const struct query_conditions *conditions,
                        struct query_index_uses *uses, struct arena *arena)
{
    struct query_index_use use;

    for (size_t i = 0; i < conditions->alternative_count; i++)
        if (union_use(space, conditions->alternatives[i].implied,
                      conditions->alternatives[i].conjuncts, arena, &use))
            *query_index_use_add(uses, arena) = use;
    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];
        struct query_implied implied = {.kind = QUERY_IMPLIED_CONDITION, .condition = *condition};

        if (condition->elements && !is_single(condition) &&
            union_use(space, &implied, condition->conjuncts, arena, &use))
            *query_index_use_add(uses, arena) = use;
    }
}

/* Values for two paths or more are worth a composite index; one is, where the policy has no index
 * of the path. */
static bool composite_helps(const struct item_space *space, const struct index_composite *composite,
                            size_t bound)
{
    return bound > 1 || (bound == 1 && !is_of_policy(composite) &&
                         !query_index_covers(space, &composite->paths[0]));
}

static void composites_use(const struct item_space *space, struct query_filter *filter,
                           struct query_index_uses *uses)
{
    size_t count;
    const struct index_composite *list = index_policy_composites(space->definition->policy, &count);

    for (size_t i = 0; i < count; i++) {
        struct query_index_use use;
        size_t bound;

        if (!composite_is_whole(space, &list[i]) ||
            query_filter_in(filter, list[i].definition->order)->never)
            continue;
        bound = composite_use(&list[i], query_filter_in(filter, list[i].definition->order),
                              filter->arena, &use);
        if (composite_helps(space, &list[i], bound))
            *query_index_use_add(uses, filter->arena) = use;
    }
}

void query_index_uses_find(const struct item_space *space, struct query_filter *filter,
                           struct query_index_uses *uses)
{
    enum document_order order = query_paths_order(space);
    const struct query_conditions *conditions = query_filter_in(filter, order);

    for (size_t i = 0; i < conditions->count; i++) {
        const struct query_condition *condition = &conditions->list[i];
        struct query_index_use *use;

        if (!query_index_covers(space, &condition->path) ||
            (condition->elements && !is_single(condition)))
            continue;
        use = query_index_use_add(uses, filter->arena);
        use->prefix = condition->prefix;
        use->order = order;
        use->ranges = condition->ranges;
        use->single = is_single(condition);
        use->exact = condition->exact;
        use->conjuncts = condition->conjuncts;
        use->name = query_path_name(&condition->path, filter->arena);
    }
    composites_use(space, filter, uses);
    query_definition_uses_find(space, filter, uses);
    query_spatial_uses_find(space, filter, uses);
    query_text_uses_find(space, filter, uses);
    unions_find(space, conditions, uses, filter->arena);
}

/* --- Orders ---------------------------------------------------------------------------------- */

static bool same_path(const struct document_path *a, const struct document_path *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->segments[i].kind != b->segments[i].kind ||
            !slice_equal(a->segments[i].name, b->segments[i].name))
            return false;
    }
    return true;
}

const struct index_composite *query_composite_for_order(const struct query_plan *plan,
                                                        const struct item_space *space,
                                                        struct arena *arena, bool *ret_backwards)
{
    size_t count, order_count = plan->query.order_count;
    const struct index_composite *list = index_policy_composites(space->definition->policy, &count);
    struct document_path *paths = ARENA_ARRAY(arena, struct document_path, order_count + 1);

    for (size_t i = 0; i < order_count; i++) {
        bool elements;

        if (!query_path_find(plan, plan->query.order[i].expression, arena, &paths[i], &elements) ||
            elements)
            return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t same = 0, forwards = 0;

        if (list[i].count != order_count || list[i].definition->order != plan->order ||
            !composite_is_whole(space, &list[i]))
            continue;
        for (size_t j = 0; j < order_count; j++) {
            same += same_path(&paths[j], &list[i].paths[j]);
            forwards += plan->query.order[j].descending == list[i].descending[j];
        }
        if (same != order_count || (forwards != 0 && forwards != order_count))
            continue;
        *ret_backwards = forwards == 0;
        return &list[i];
    }
    return NULL;
}

/* A single path in the order of the policy. */
static bool path_for_order(const struct query_plan *plan, const struct item_space *space,
                           struct query_filter *filter, struct query_index_use *ret_use,
                           bool *ret_backwards, struct document_path *ret_path)
{
    struct arena *arena = filter->arena;
    const struct query_condition *condition;
    bool elements;

    if (plan->order != query_paths_order(space) ||
        !query_path_find(plan, plan->query.order[0].expression, arena, ret_path, &elements) ||
        elements || !query_index_covers(space, ret_path))
        return false;
    condition = condition_at(query_filter_in(filter, plan->order), ret_path);
    *ret_use = (struct query_index_use){.value_count = 1,
                                        .order = plan->order,
                                        .exact = true,
                                        .ranges = query_ranges_all(arena),
                                        .name = query_path_name(ret_path, arena)};
    if (condition) {
        ret_use->ranges = condition->ranges;
        ret_use->exact = condition->exact;
        ret_use->conjuncts = condition->conjuncts;
    }
    *ret_backwards = plan->query.order[0].descending;
    ret_use->prefix = query_path_prefix(ret_path, arena);
    return true;
}

/* Composite indexes have every item. By the rules of Cosmos DB they give orders of several paths; a
 * plan with an order of its own takes one for a single path too, and before that of the path. */
bool query_index_for_order(const struct query_plan *plan, const struct item_space *space,
                           struct query_filter *filter, struct query_index_use *ret_use,
                           bool *ret_backwards, struct document_path *ret_path)
{
    const struct index_composite *composite = NULL;

    if (query_definition_for_order(space, filter, ret_use, ret_backwards)) {
        *ret_path = (struct document_path){0};
        return true;
    }
    if (plan->query.order_count != 1 || plan->order_free)
        composite = query_composite_for_order(plan, space, filter->arena, ret_backwards);
    if (composite) {
        composite_use(composite, query_filter_in(filter, plan->order), filter->arena, ret_use);
        *ret_path = (struct document_path){0};
        return true;
    }
    return plan->query.order_count == 1 &&
           path_for_order(plan, space, filter, ret_use, ret_backwards, ret_path);
}

bool query_order_check(const struct query_plan *plan, const struct query_request *request,
                       struct arena *arena, struct query_order_rules *ret_rules, struct error *err)
{
    const struct item_space *space = request->space;
    struct query_order_rules rules = {true, true};
    struct document_path path;
    bool elements, backwards;

    if (plan->order_free || plan->query.order_count == 0 || plan->order_defined) {
        rules.keeps_undefined = !plan->order_defined;
        *ret_rules = rules;
        return true;
    }
    if (plan->query.order_count > 1 && !query_composite_for_order(plan, space, arena, &backwards))
        return error_set(err, ERROR_BAD_REQUEST,
                         "The order by query does not have a corresponding composite index that it "
                         "can be served from.");
    if (plan->query.order_count == 1 &&
        query_path_find(plan, plan->query.order[0].expression, arena, &path, &elements)) {
        struct document_path below = path;

        if (!request->order_unindexed && !elements &&
            index_policy_excludes(space->definition->policy, &path))
            return error_set(err, ERROR_BAD_REQUEST,
                             "The index path corresponding to the specified order-by item is "
                             "excluded.");
        below.end = DOCUMENT_PATH_END_ALL;
        rules.keeps_undefined = !elements && query_index_covers_undefined(space, &path);
        rules.keeps_nested =
            elements || !query_index_covers(space, &path) || query_index_covers(space, &below);
    }
    *ret_rules = rules;
    return true;
}
