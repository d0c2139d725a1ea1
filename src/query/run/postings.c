/* A list of entries for each term, all in one order. Where an item must have all of them, each list
 * is moved to where the others are, so that a rare term spares most of a frequent one; where any of
 * several groups will do, the least place of all lists is next. Texts with too many terms for the
 * index have a list of their own, and no entry in another.
 *
 * A list is walked by a cursor, or is in memory (lists.h). Both go the same steps, so that what a
 * search is charged does not depend on it. */
#include "query/run/postings.h"

#include "base/memory.h"
#include "query/run/lists.h"

enum {
    STEPS_BEFORE_SEEK = 6, /* a seek costs about what ten steps do */
    /* Entries that a search puts into memory besides those it needs, for which nobody pays: what
     * several terms have in common is found without walking all of them. */
    KEPT_BESIDES_MAX = 8192,
};

struct list {
    struct cursor *cursor;   /* or: */
    struct query_list *kept; /* with the next at `at` */
    size_t at;
    uint64_t entries;      /* of those that are kept */
    struct cursor_hit hit; /* has: the present one, of the cursor's memory */
    bool has, begun;
};

struct query_postings {
    const struct query_terms *terms;
    size_t said; /* bytes, of the request */
    struct query_posting now;
    bool given;          /* now was: what it stands at is left behind by the next call */
    bool common_done;    /* of all: the lists have nothing more in common */
    struct list lists[]; /* of the terms; the last is that of texts with too many */
};

static int place_order(const struct cursor_hit *a, const struct cursor_hit *b)
{
    int order = slice_compare(a->routing, b->routing);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* --- Lists in memory ---------------------------------------------------------------------------
 */

/* Where entries may be in memory, and how many may be put there. */
struct keeping {
    struct query_lists *lists; /* NULL: nowhere */
    struct query_list_key key;
    size_t left; /* entries that are read for it; 0: none */
};

/* Reads all entries of a term. NULL in *ret_list: they are too many. */
static bool kept_make(const struct view *view, const struct cursor_request *request,
                      struct keeping *keeping, struct query_list **ret_list, struct error *err)
{
    CLEANUP(query_list_unref) struct query_list *list = query_list_begin(&keeping->key);
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_hit hit;
    bool more, room = true;

    if (!cursor_open(view, request, &cursor, err))
        return false;
    for (;;) {
        if (!cursor_next(cursor, &hit, &more, err))
            return false;
        if (!more)
            break;
        if (keeping->left == 0)
            query_list_give_up(list);
        room = keeping->left && query_list_add(list, &hit);
        if (!room)
            break;
        keeping->left--;
    }
    query_lists_put(keeping->lists, list);
    *ret_list = room ? TAKE(list) : NULL;
    return true;
}

/* The entries of a term in memory, from there or put there; NULL in *ret_list: they are walked. */
static bool kept_find(const struct view *view, const struct cursor_request *request,
                      struct keeping *keeping, struct query_list **ret_list, struct error *err)
{
    struct query_list *list = query_lists_find(keeping->lists, &keeping->key);
    bool makes = keeping->left &&
                 (!list || (query_list_is_long(list) && query_list_tried(list) < keeping->left));

    *ret_list = NULL;
    if (list && !query_list_is_long(list)) {
        *ret_list = list;
        return true;
    }
    query_list_unref(list);
    return !makes || kept_make(view, request, keeping, ret_list, err);
}

static bool list_open(struct list *list, const struct view *view,
                      const struct cursor_request *request, struct keeping *keeping,
                      struct error *err)
{
    keeping->key.value = request->ranges->min;
    if (keeping->lists && !kept_find(view, request, keeping, &list->kept, err))
        return false;
    return list->kept || cursor_open(view, request, &list->cursor, err);
}

bool query_postings_open(const struct view *view, const struct cursor_request *request,
                         const struct query_terms *terms, struct query_lists *lists,
                         struct query_postings **ret_postings, struct error *err)
{
    CLEANUP(query_postings_free)
    struct query_postings *postings =
        memory_alloc_zero(sizeof *postings + (terms->count + 1) * sizeof *postings->lists);
    struct cursor_request asked = *request;
    struct keeping keeping = {.lists = lists,
                              .key = {.node = view->scope.node,
                                      .partition = view->scope.partition,
                                      .epoch = view->scope.epoch,
                                      .prefix = request->path}};

    assert(terms->count > 0 && terms->count <= QUERY_TERMS_MAX);
    postings->terms = terms;
    postings->said = request->said;
    if (lists && !view_lsn(view, &keeping.key.lsn, err))
        return false;
    if (lists && query_lists_again(lists, &keeping.key))
        keeping.left = terms->count > 1 && terms->group_count == 1 ? KEPT_BESIDES_MAX : SIZE_MAX;
    asked.range_count = 1;
    for (size_t i = 0; i <= terms->count; i++) {
        asked.ranges = &terms->ranges[i];
        if (!list_open(&postings->lists[i], view, &asked, &keeping, err))
            return false;
    }
    *ret_postings = TAKE(postings);
    return true;
}

void query_postings_free(struct query_postings *postings)
{
    if (!postings)
        return;
    for (size_t i = 0; i <= postings->terms->count; i++) {
        cursor_free(postings->lists[i].cursor);
        query_list_unref(postings->lists[i].kept);
    }
    memory_free(postings);
}

uint64_t query_postings_entries(const struct query_postings *postings)
{
    uint64_t entries = 0;

    for (size_t i = 0; i <= postings->terms->count; i++)
        entries += postings->lists[i].kept ? postings->lists[i].entries
                                           : cursor_entries(postings->lists[i].cursor);
    return entries;
}

/* --- Moving ------------------------------------------------------------------------------------
 */

static bool list_next(struct list *list, struct error *err)
{
    list->begun = true;
    if (!list->kept)
        return cursor_next(list->cursor, &list->hit, &list->has, err);
    list->has = list->at < query_list_count(list->kept);
    if (list->has) {
        query_list_at(list->kept, list->at++, &list->hit);
        list->entries++;
    }
    return true;
}

/* The first behind the place will be next. */
static void kept_seek(struct list *list, size_t from, const struct cursor_hit *place)
{
    size_t end = query_list_count(list->kept);

    while (from < end) {
        size_t middle = from + (end - from) / 2;
        struct cursor_hit hit;

        query_list_at(list->kept, middle, &hit);
        if (place_order(&hit, place) > 0)
            end = middle;
        else
            from = middle + 1;
    }
    list->at = from;
}

static bool list_seek(struct query_postings *p, size_t at, struct slice routing, uint64_t number,
                      struct error *err)
{
    struct list *list = &p->lists[at];

    if (!list->kept)
        return cursor_seek_behind(list->cursor, p->terms->ranges[at].min, routing, number, err);
    kept_seek(list, list->begun ? list->at : 0,
              &(struct cursor_hit){.routing = routing, .number = number});
    return true;
}

bool query_postings_seek_behind(struct query_postings *postings, struct slice routing,
                                uint64_t number, struct error *err)
{
    for (size_t i = 0; i <= postings->terms->count; i++) {
        postings->lists[i].begun = postings->lists[i].has = false;
        if (!list_seek(postings, i, routing, number, err))
            return false;
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
        if (steps == STEPS_BEFORE_SEEK && !list_seek(p, at, place->routing, place->number - 1, err))
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

uint64_t query_postings_pass(struct query_postings *postings, uint64_t max)
{
    struct list *list = &postings->lists[0];
    const struct list *many = &postings->lists[1];
    uint64_t count;

    if (postings->terms->count != 1 || !list->kept || !list->has || !postings->given ||
        postings->now.unsure || !many->begun || many->has)
        return 0;
    count = MIN(max, (uint64_t)(query_list_count(list->kept) - list->at));
    if (count == 0)
        return 0;
    list->at += count;
    list->entries += count;
    query_list_at(list->kept, list->at - 1, &list->hit);
    postings->now.hit = list->hit;
    said_take(postings, 0);
    return count;
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
