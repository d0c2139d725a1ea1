/* Intersections: entries that several indexes have, without those of another. Frequent values are
 * intersected so that fewer items are read; where nothing is wanted but how many there are, all
 * indexes that it takes to settle the filter, so that none is. */
#include "query/access/access_private.h"

/* The best one besides the first that is of the kind; NULL: there is none. */
static const struct query_index_use *other_find(const struct query_choosing *c,
                                                const struct query_index_use *first, bool single)
{
    const struct query_index_use *best = NULL;

    for (size_t i = 0; i < c->uses.count; i++) {
        const struct query_index_use *use = &c->uses.list[i];

        if (use != first && (single ? use->single : query_use_is_numbered(use) && !use->single) &&
            (!best || query_use_is_better(use, best)))
            best = use;
    }
    return best;
}

/* Frequent ones are intersected. A union can only be the first of them. */
static void second_find(const struct query_choosing *c, struct query_access *access)
{
    const struct query_index_use *first = access->index, *second, *united;

    if (!query_use_is_numbered(first) || first->estimate < QUERY_ESTIMATE_MAX)
        return;
    second = other_find(c, first, true);
    united = first->single ? other_find(c, first, false) : NULL;
    if (united) {
        second = first;
        first = united;
    }
    if (!second)
        return;
    access->index = first;
    access->with[access->with_count++] = second;
}

uint64_t query_conjuncts_all(const struct query_choosing *c)
{
    size_t count = c->conditions->conjunct_count;

    return count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

/* The entries of items that an absent value would be at; NULL: no index has them all. */
static const struct query_index_use *absent_use(const struct query_choosing *c,
                                                const struct query_condition *condition)
{
    struct query_index_use *use;

    if (condition->elements || condition->nested || condition->ranges.count != 1 ||
        condition->point_count != 1 || !query_index_covers(c->space, &condition->path))
        return NULL;
    use = ARENA_NEW(c->arena, struct query_index_use);
    *use = (struct query_index_use){.prefix = condition->prefix,
                                    .value_count = 1,
                                    .order = query_paths_order(c->space),
                                    .ranges = condition->ranges,
                                    .single = true,
                                    .exact = true,
                                    .conjuncts = condition->conjuncts,
                                    .name = query_path_name(&condition->path, c->arena)};
    return use;
}

void query_settle_find(const struct query_choosing *c, struct query_access *access)
{
    struct query_access settled = *access;
    uint64_t known = c->targets.conjuncts | c->conditions->settled, all = query_conjuncts_all(c);

    if (!query_use_is_numbered(access->index) || !access->index->exact ||
        c->plan->query.source_count || !c->conditions->all)
        return;
    known |= access->index->conjuncts;
    for (size_t i = 0; i < c->uses.count && settled.with_count < QUERY_WITH_MAX; i++) {
        const struct query_index_use *use = &c->uses.list[i];

        if (!use->single || !use->exact || use->repeats || !(use->conjuncts & ~known))
            continue;
        settled.with[settled.with_count++] = use;
        known |= use->conjuncts;
    }
    for (size_t i = 0; i < c->conditions->absent_count && !settled.without; i++) {
        if (!(c->conditions->absents[i].conjuncts & ~known))
            continue;
        settled.without = absent_use(c, &c->conditions->absents[i]);
        if (settled.without)
            known |= settled.without->conjuncts;
    }
    if ((known & all) == all)
        *access = settled;
}

static bool is_settled(const struct query_access *access)
{
    return access->with_count || access->without;
}

/* The single use, or the union, that may lead an intersection and says most besides the targets;
 * NULL: there is none. */
static const struct query_index_use *lead_find(const struct query_choosing *c, bool united)
{
    const struct query_index_use *lead = NULL;
    int most = 0;

    for (size_t i = 0; i < c->uses.count; i++) {
        const struct query_index_use *use = &c->uses.list[i];
        int says = __builtin_popcountll(use->conjuncts & ~c->targets.conjuncts);

        if ((use->member_count != 0) == united && query_use_is_numbered(use) && use->exact &&
            !use->repeats && says > most) {
            lead = use;
            most = says;
        }
    }
    return lead;
}

/* Is there an index that needs no other? */
static bool one_says_all(const struct query_choosing *c)
{
    uint64_t known = c->targets.conjuncts | c->conditions->settled, all = query_conjuncts_all(c);

    for (size_t i = 0; i < c->uses.count; i++)
        if (c->uses.list[i].exact && ((known | c->uses.list[i].conjuncts) & all) == all)
            return true;
    return false;
}

bool query_settle_first(const struct query_choosing *c, const struct query_access_wish *wish,
                        struct query_access *access)
{
    struct query_access led = *access;

    if (!wish->counts || c->spans->request->hint.kind != QUERY_HINT_NONE || one_says_all(c))
        return false;
    led.kind = QUERY_ACCESS_INDEX;
    for (size_t united = 2; united-- > 0 && !is_settled(&led);) {
        led.index = lead_find(c, united);
        if (led.index)
            query_settle_find(c, &led);
    }
    if (!is_settled(&led))
        return false;
    *access = led;
    return true;
}

void query_others_take(const struct query_choosing *c, const struct query_access_wish *wish,
                       struct query_access *access)
{
    struct query_access led = *access;

    if (wish->counts && c->spans->request->hint.kind == QUERY_HINT_NONE) {
        query_settle_find(c, access);
        /* a union can only be the first of them, and it matters little which one is */
        led.index = access->index->single ? other_find(c, access->index, false) : NULL;
        if (!is_settled(access) && led.index) {
            query_settle_find(c, &led);
            if (is_settled(&led))
                *access = led;
        }
    }
    if (!is_settled(access))
        second_find(c, access);
}
