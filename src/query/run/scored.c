/* A heap of the best, the worst of them on top, to make room for a better one. Keys are copied when
 * an item gets in, which of a long walk few do. Equal scores come by number, as the sort has them
 * that rows go through. */
#include "query/run/scored.h"

#include "base/heap.h"
#include "base/memory.h"
#include "search/score.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST_FILTERED = 4 }; /* times as many as wanted, where not all make a row */

struct query_scored {
    const struct query_scoring *scoring;
    double mean;
    struct query_scored_item *list; /* owned */
    size_t count, capacity, allocated, at;
    unsigned walks;  /* begun */
    bool left;       /* the walk passed over items that are not in the list */
    bool given;      /* last is the worst of those that were given */
    uint64_t unsure; /* that got in */
    struct query_scored_item last;
};

struct query_scored *query_scored_new(const struct query_scoring *scoring)
{
    struct query_scored *scored = MEMORY_NEW(struct query_scored);

    scored->scoring = scoring;
    scored->mean = scoring->words / scoring->texts;
    return scored;
}

static void list_clear(struct query_scored *scored)
{
    for (size_t i = 0; i < scored->count; i++)
        memory_free((void *)scored->list[i].key.data);
    scored->count = scored->at = 0;
}

void query_scored_free(struct query_scored *scored)
{
    if (!scored)
        return;
    list_clear(scored);
    memory_free(scored->list);
    memory_free(scored);
}

/* The best first. */
static int item_order(const void *a, const void *b)
{
    const struct query_scored_item *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

bool query_scored_streams(const struct query_scored *scored)
{
    return scored->walks > 2;
}

bool query_scored_wants_walk(struct query_scored *scored, uint64_t taken)
{
    const struct query_scoring *scoring = scored->scoring;
    uint64_t first = scoring->wanted * (scoring->filtered ? FIRST_FILTERED : 1);

    assert(scored->at == scored->count);
    /* Those that were not known may have become rows that are worse than others. */
    if (scored->walks && (!scored->left || taken >= scoring->wanted + scored->unsure ||
                          query_scored_streams(scored)))
        return false;
    if (scored->count) {
        scored->last = scored->list[scored->count - 1];
        scored->last.key = SLICE_NONE;
        scored->given = true;
    }
    list_clear(scored);
    scored->left = false;
    scored->capacity = scored->walks
                           ? QUERY_SCORED_MAX
                           : (size_t)MIN(MAX(first, (uint64_t)1), (uint64_t)QUERY_SCORED_MAX);
    scored->walks++;
    return true;
}

static double score_of(const struct query_scored *scored, const struct query_posting *posting)
{
    const struct query_scoring *scoring = scored->scoring;
    double score = 0;

    if (posting->unsure)
        return INFINITY;
    for (size_t i = 0; i < scoring->phrase_count; i++) {
        uint8_t term = scoring->terms[i];

        if (posting->has >> term & 1)
            score += search_score_part(scoring->weights[i], (double)posting->often[term],
                                       (double)posting->size, scored->mean);
    }
    return score;
}

static struct slice key_copy(struct slice key)
{
    uint8_t *copy = memory_alloc(key.len + 1);

    memcpy(copy, key.data, key.len);
    return slice_of(copy, key.len);
}

static void item_add(struct query_scored *scored, struct query_scored_item item, struct slice key)
{
    if (scored->count == scored->allocated) {
        scored->allocated = MIN(scored->allocated * 2 + 64, (size_t)QUERY_SCORED_MAX);
        scored->list = memory_realloc(scored->list, scored->allocated * sizeof *scored->list);
    }
    item.key = key_copy(key);
    scored->list[scored->count] = item;
    heap_rise(scored->list, sizeof *scored->list, scored->count++, item_order);
}

void query_scored_take(struct query_scored *scored, const struct query_posting *posting,
                       struct query_scored_item *ret_item, bool *ret_now)
{
    struct query_scored_item item = {score_of(scored, posting), posting->hit.number, SLICE_NONE};

    *ret_now = false;
    if (scored->given && item_order(&item, &scored->last) <= 0)
        return;
    if (posting->unsure && !query_scored_streams(scored)) {
        scored->unsure++;
        scored->capacity = MIN(scored->capacity + 1, (size_t)QUERY_SCORED_MAX);
    }
    if (query_scored_streams(scored)) {
        *ret_item = item;
        *ret_now = true;
        return;
    }
    if (scored->count < scored->capacity) {
        item_add(scored, item, posting->hit.key);
        return;
    }
    scored->left = true;
    if (item_order(&item, &scored->list[0]) > 0)
        return;
    memory_free((void *)scored->list[0].key.data);
    item.key = key_copy(posting->hit.key);
    scored->list[0] = item;
    heap_sift(scored->list, scored->count, sizeof *scored->list, 0, item_order);
}

void query_scored_sort(struct query_scored *scored)
{
    if (scored->count > 1)
        qsort(scored->list, scored->count, sizeof *scored->list, item_order);
}

bool query_scored_next(struct query_scored *scored, struct query_scored_item *ret_item)
{
    if (scored->at == scored->count)
        return false;
    *ret_item = scored->list[scored->at++];
    return true;
}
