/* How many entries indexes have: in the first physical partition that is asked and no further than
 * QUERY_ESTIMATE_MAX: exact where it matters, a function of what is committed, and never dear.
 *
 * Where all have that many and no intersection tells them apart, they are counted further, each as
 * far as the others, until one is at its end: not to do so, and to take the first, read thirty
 * thousand items for the three hundred that another index led to. Such counts are work, and paid.
 */
#include "query/access/access_private.h"

static struct cursor_request cursor_of(const struct query_choosing *c,
                                       const struct query_index_use *use)
{
    return (struct cursor_request){.kind = CURSOR_INDEX,
                                   .path = use->prefix,
                                   .value_count = use->value_count,
                                   .kept_count = use->kept_count,
                                   .descending = use->descending,
                                   .order = use->order,
                                   .ranges = use->ranges.list,
                                   .range_count = use->ranges.count,
                                   .logical = c->targets.list[0].logical};
}

static bool first_view(struct query_choosing *c, struct view **ret_view)
{
    size_t first;

    (void)query_spans_overlap(c->spans, c->targets.list[0].range, &first);
    return query_spans_view(c->spans, first, ret_view, c->err);
}

/* A union that leads to half of the items is worth less than a scan. */
static bool union_serves(struct query_choosing *c, const struct query_index_use *use,
                         bool *ret_serves)
{
    uint64_t items, bytes;
    struct view *view;

    *ret_serves = false;
    if (!first_view(c, &view) ||
        !view_count(view, c->targets.list[0].logical, &items, &bytes, c->err))
        return false;
    *ret_serves = 2 * use->estimate <= MAX(items, (uint64_t)2);
    return true;
}

static bool union_estimate(struct query_choosing *c, struct query_index_use *use, uint64_t max)
{
    use->estimate = 0;
    for (size_t i = 0; i < use->member_count; i++) {
        struct query_index_use *member = (struct query_index_use *)&use->members[i];

        if (!query_use_estimate(c, member, max))
            return false;
        use->estimate += member->estimate;
    }
    return true;
}

bool query_unions_weigh(struct query_choosing *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->uses.count; i++) {
        struct query_index_use *use = &c->uses.list[i];
        bool serves = true;

        if (use->member_count &&
            (!union_estimate(c, use, QUERY_ESTIMATE_MAX) || !union_serves(c, use, &serves)))
            return false;
        if (serves)
            c->uses.list[kept++] = *use;
    }
    c->uses.count = kept;
    return true;
}

/* Of items that must have all of several terms, those that the rarest has. */
static bool terms_estimate(struct query_choosing *c, struct query_index_use *use, uint64_t max)
{
    uint64_t least = MAX(max, (uint64_t)QUERY_ESTIMATE_MAX);

    for (size_t i = 0; i < use->terms->count; i++) {
        struct query_index_use term = *use;

        term.terms = NULL;
        term.estimate = 0;
        term.ranges = (struct query_ranges){(struct cursor_range *)&use->terms->ranges[i], 1};
        if (!query_use_estimate(c, &term, MIN(max, least)))
            return false;
        least = MIN(least, term.estimate);
    }
    use->estimate = least;
    return true;
}

/* No further than max: more is as good as max, or QUERY_ESTIMATE_MAX, to who asks. */
bool query_use_estimate(struct query_choosing *c, struct query_index_use *use, uint64_t max)
{
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_request request = cursor_of(c, use);
    uint64_t entries_max = 2 * MAX(max, (uint64_t)QUERY_ESTIMATE_MAX);
    struct cursor_hit hit;
    struct view *view;
    bool more = true;

    if (use->member_count)
        return union_estimate(c, use, max);
    if (use->terms && use->terms->group_count == 1)
        return terms_estimate(c, use, max);
    if (!first_view(c, &view) || !cursor_open(view, &request, &cursor, c->err))
        return false;
    use->estimate = 0;
    while (more && use->estimate < max && cursor_entries(cursor) < entries_max) {
        if (!cursor_next(cursor, &hit, &more, c->err))
            return false;
        use->estimate += more;
    }
    if (more)
        use->estimate = MAX(max, (uint64_t)QUERY_ESTIMATE_MAX);
    if (cursor_entries(cursor) > 2 * QUERY_ESTIMATE_MAX)
        c->filter.work += cursor_entries(cursor) - 2 * QUERY_ESTIMATE_MAX;
    return true;
}

enum { ENTRIES_PER_ITEM = 8 }; /* that are walked while an item is read, about */

/* Items that are read by way of it, and what walking a range again comes to. */
static uint64_t use_cost(const struct query_index_use *use)
{
    uint64_t cost = use->estimate;

    for (size_t i = 0; i < use->member_count; i++)
        if (use->members[i].gathered)
            cost += use->members[i].estimate / QUERY_GATHERED_MAX * use->members[i].estimate /
                    ENTRIES_PER_ITEM;
    return cost;
}

/* Single values first among equals, then those that settle more of the filter. */
bool query_use_is_better(const struct query_index_use *a, const struct query_index_use *b)
{
    uint64_t costs[] = {use_cost(a), use_cost(b)};

    if (costs[0] != costs[1])
        return costs[0] < costs[1];
    if (a->single != b->single)
        return a->single;
    return __builtin_popcountll(a->conjuncts) > __builtin_popcountll(b->conjuncts);
}

bool query_use_is_numbered(const struct query_index_use *use)
{
    for (size_t i = 0; i < use->member_count; i++)
        if (!use->members[i].single)
            return false;
    return use->member_count || use->single;
}

/* May every one be intersected with another? Then it matters little which of them leads. */
static bool all_meet(const struct query_choosing *c)
{
    bool single = false;

    for (size_t i = 0; i < c->uses.count; i++) {
        if (!query_use_is_numbered(&c->uses.list[i]))
            return false;
        single |= c->uses.list[i].single;
    }
    return single;
}

/* A range is gathered by walking it again and again, so its end had better be known. */
static bool has_no_end(const struct query_index_use *use, uint64_t reached)
{
    for (size_t i = 0; i < use->member_count; i++)
        if (use->members[i].gathered && use->members[i].estimate >= reached)
            return true;
    return false;
}

/* Drops unions that turned out to be of no use; the best of the others. */
static bool best_again(struct query_choosing *c, uint64_t reached,
                       const struct query_index_use **ret_best)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->uses.count; i++) {
        struct query_index_use *use = &c->uses.list[i];
        bool serves = true;

        if (use->member_count && !union_serves(c, use, &serves))
            return false;
        if (serves && !has_no_end(use, reached))
            c->uses.list[kept++] = *use;
    }
    c->uses.count = kept;
    *ret_best = NULL;
    for (size_t i = 0; i < kept; i++)
        if (!*ret_best || query_use_is_better(&c->uses.list[i], *ret_best))
            *ret_best = &c->uses.list[i];
    return true;
}

/* Counts further, each as far as the others, until one is at its end. */
static bool best_find_further(struct query_choosing *c, const struct query_index_use **best)
{
    uint64_t reached = QUERY_ESTIMATE_MAX, least = QUERY_ESTIMATE_MAX;

    while (reached < c->further && least >= reached) {
        uint64_t before = reached;

        reached = MIN(4 * reached, c->further);
        least = UINT64_MAX;
        for (size_t i = 0; i < c->uses.count; i++) {
            struct query_index_use *use = &c->uses.list[i];

            if (use->estimate >= before && !query_use_estimate(c, use, reached))
                return false;
            least = MIN(least, use_cost(use));
        }
    }
    return best_again(c, reached, best);
}

/* What an index that leads may have for the others not to be looked at. */
enum { FEW_ENTRIES = 64 };

bool query_best_find(struct query_choosing *c, bool count, const struct query_index_use **ret_best)
{
    const struct query_index_use *best = NULL;
    bool leads = c->plan->first_leads && !c->counted;

    for (size_t i = 0; i < c->uses.count; i++) {
        /* one that has more than the best is out, however many there are */
        uint64_t max = best && !c->counted ? MIN(best->estimate + 1, (uint64_t)QUERY_ESTIMATE_MAX)
                                           : QUERY_ESTIMATE_MAX;

        if (count && !c->uses.list[i].member_count && !query_use_estimate(c, &c->uses.list[i], max))
            return false;
        if (!best || query_use_is_better(&c->uses.list[i], best))
            best = &c->uses.list[i];
        if (count && leads && best->estimate < FEW_ENTRIES)
            break;
        leads = false;
    }
    if (best && best->estimate >= QUERY_ESTIMATE_MAX &&
        (has_no_end(best, QUERY_ESTIMATE_MAX) || (count && !all_meet(c))) &&
        !best_find_further(c, &best))
        return false;
    *ret_best = best;
    return true;
}
