/* A list of entries for each term, all in one order. Where an item must have all of them, each list
 * is moved to where the others are, so that a rare term spares most of a frequent one; where any of
 * several groups will do, the least place of all lists is next. Texts with too many terms for the
 * index have a list of their own, and no entry in another. */
#include "query/run/postings.h"

#include "base/memory.h"

enum { STEPS_BEFORE_SEEK = 6 }; /* a seek costs about what ten steps do */

struct list {
    struct cursor *cursor;
    struct cursor_hit hit; /* has: the present one, of the cursor's memory */
    bool has, begun;
};

struct query_postings {
    const struct query_terms *terms;
    size_t said; /* bytes, of the request */
    struct query_posting now;
    bool given;       /* now was: what it stands at is left behind by the next call */
    bool common_done; /* of all: the lists have nothing more in common */
    struct list lists[]; /* of the terms; the last is that of texts with too many */
};

static int place_order(const struct cursor_hit *a, const struct cursor_hit *b)
{
    int order = slice_compare(a->routing, b->routing);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

bool query_postings_open(const struct view *view, const struct cursor_request *request,
                         const struct query_terms *terms, struct query_postings **ret_postings,
                         struct error *err)
{
    CLEANUP(query_postings_free)
    struct query_postings *postings =
        memory_alloc_zero(sizeof *postings + (terms->count + 1) * sizeof *postings->lists);
    struct cursor_request asked = *request;

    assert(terms->count > 0 && terms->count <= QUERY_TERMS_MAX);
    postings->terms = terms;
    postings->said = request->said;
    asked.range_count = 1;
    for (size_t i = 0; i <= terms->count; i++) {
        asked.ranges = &terms->ranges[i];
        if (!cursor_open(view, &asked, &postings->lists[i].cursor, err))
            return false;
    }
    *ret_postings = TAKE(postings);
    return true;
}

void query_postings_free(struct query_postings *postings)
{
    if (!postings)
        return;
    for (size_t i = 0; i <= postings->terms->count; i++)
        cursor_free(postings->lists[i].cursor);
    memory_free(postings);
}

uint64_t query_postings_entries(const struct query_postings *postings)
{
    uint64_t entries = 0;

    for (size_t i = 0; i <= postings->terms->count; i++)
        entries += cursor_entries(postings->lists[i].cursor);
    return entries;
}

static bool list_next(struct list *list, struct error *err)
{
    list->begun = true;
    return cursor_next(list->cursor, &list->hit, &list->has, err);
}

static bool list_seek(struct query_postings *p, size_t at, struct slice routing, uint64_t number,
                      struct error *err)
{
    return cursor_seek_behind(p->lists[at].cursor, p->terms->ranges[at].min, routing, number, err);
}

bool query_postings_seek_behind(struct query_postings *postings, struct slice routing,
                                uint64_t number, struct error *err)
{
    for (size_t i = 0; i <= postings->terms->count; i++) {
        if (!list_seek(postings, i, routing, number, err))
            return false;
        postings->lists[i].begun = postings->lists[i].has = false;
    }
    postings->given = postings->common_done = false;
    return true;
}

/* Moves a list to a place, or to the first behind it. */
static bool list_reach(struct query_postings *p, size_t at, const struct cursor_hit *place,
                       struct error *err)
{
    struct list *list = &p->lists[at];

    for (unsigned steps = 0; list->has && place_order(&list->hit, place) < 0; steps++) {
        if (steps == STEPS_BEFORE_SEEK &&
            !list_seek(p, at, place->routing, place->number - 1, err))
            return false;
        if (!list_next(list, err))
            return false;
    }
    return true;
}

/* Brings all lists of terms to the next place that they have in common. */
static bool common_find(struct query_postings *p, struct error *err)
{
    size_t same = 1, at = 0, target = 0;

    while (same < p->terms->count) {
        at = (at + 1) % p->terms->count;
        if (at == target)
            continue;
        if (!list_reach(p, at, &p->lists[target].hit, err))
            return false;
        if (!p->lists[at].has) {
            p->common_done = true;
            return true;
        }
        if (place_order(&p->lists[at].hit, &p->lists[target].hit) == 0) {
            same++;
        } else {
            target = at;
            same = 1;
        }
    }
    return true;
}

static bool common_next(struct query_postings *p, bool advance, struct error *err)
{
    if (p->common_done)
        return true;
    for (size_t i = 0; i < p->terms->count; i++) {
        if ((!p->lists[i].begun || (advance && i == 0)) && !list_next(&p->lists[i], err))
            return false;
        if (!p->lists[i].has) {
            p->common_done = true;
            return true;
        }
    }
    return common_find(p, err);
}

static void said_take(struct query_postings *p, size_t at)
{
    const struct list *list = &p->lists[at];

    p->now.has |= (uint64_t)1 << at;
    if (p->said)
        index_term_said(list->hit.said, &p->now.often[at], &p->now.size);
}

/* What stands at the least place becomes the present posting. False in *ret_wanted: no group has
 * all its terms there. */
static bool least_take(struct query_postings *p, bool all, bool *ret_wanted)
{
    size_t count = p->terms->count;
    const struct list *least = NULL, *many = &p->lists[count];

    for (size_t i = 0; i < count && !(all && p->common_done); i++)
        if (p->lists[i].has && (!least || place_order(&p->lists[i].hit, &least->hit) < 0))
            least = &p->lists[i];
    *ret_wanted = false;
    p->now.has = 0;
    p->now.unsure = many->has && (!least || place_order(&many->hit, &least->hit) < 0);
    if (p->now.unsure)
        least = many;
    if (!least)
        return false;
    p->now.hit = least->hit;
    for (size_t i = 0; i < count && !p->now.unsure; i++)
        if (p->lists[i].has && place_order(&p->lists[i].hit, &least->hit) == 0)
            said_take(p, i);
    *ret_wanted = p->now.unsure || all;
    for (size_t i = 0; i < p->terms->group_count && !*ret_wanted; i++)
        *ret_wanted = (p->now.has & p->terms->groups[i]) == p->terms->groups[i];
    return true;
}

/* Leaves the present posting behind. */
static bool leave(struct query_postings *p, bool all, struct error *err)
{
    struct list *many = &p->lists[p->terms->count];

    if ((!many->begun || (p->given && p->now.unsure)) && !list_next(many, err))
        return false;
    if (all)
        return common_next(p, p->given && !p->now.unsure, err);
    for (size_t i = 0; i < p->terms->count; i++)
        if ((!p->lists[i].begun || (p->given && p->now.has >> i & 1)) &&
            !list_next(&p->lists[i], err))
            return false;
    return true;
}

const struct query_posting *query_postings_last(const struct query_postings *postings)
{
    return postings->given ? &postings->now : NULL;
}

bool query_postings_next(struct query_postings *postings, const struct query_posting **ret_posting,
                         struct error *err)
{
    bool all = postings->terms->group_count == 1, wanted;

    do {
        if (!leave(postings, all, err))
            return false;
        postings->given = true;
        if (!least_take(postings, all, &wanted)) {
            postings->given = false;
            *ret_posting = NULL;
            return true;
        }
    } while (!wanted);
    *ret_posting = &postings->now;
    return true;
}
