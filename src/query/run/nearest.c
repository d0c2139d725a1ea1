/* A heap of the best, the worst of them on top, to make room for a better one. Keys are copied when
 * an entry gets in, which of a long walk few do. */
#include "query/run/nearest.h"

#include "base/memory.h"
#include "index/policy.h"

#include <stdlib.h>

enum { GONE_SHARE = 4, GONE_LEAST = 8 }; /* entries more, where some lead to nothing */

struct near {
    double distance;
    uint64_t number;
    struct slice key; /* owned */
};

struct query_near {
    const struct query_nearest *nearest;
    struct near *list;
    size_t count, capacity, at;
    unsigned walks; /* begun */
    bool left;      /* the walk passed over entries that are not in the list */
    bool given;     /* last is the worst of those that were given */
    struct near last;
    bool gone;        /* entries may lead to nothing */
    bool picked;      /* the present walk has some of the entries alone */
    uint64_t *passed; /* numbers of those that were picked and given, sorted; owned */
    size_t passed_count;
};

struct query_near *query_near_new(const struct query_nearest *nearest)
{
    struct query_near *near = MEMORY_NEW(struct query_near);

    near->nearest = nearest;
    return near;
}

static void list_clear(struct query_near *near)
{
    for (size_t i = 0; i < near->count; i++)
        memory_free((void *)near->list[i].key.data);
    near->count = near->at = 0;
}

void query_near_free(struct query_near *near)
{
    if (!near)
        return;
    list_clear(near);
    memory_free(near->list);
    memory_free(near->passed);
    memory_free(near);
}

/* By distance, then by number. */
static int near_order(const void *a, const void *b)
{
    const struct near *x = a, *y = b;

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void query_near_expect_gone(struct query_near *near)
{
    assert(!near->walks);
    near->gone = true;
}

void query_near_pick(struct query_near *near)
{
    near->picked = true;
    near->left = true;
}

size_t query_near_capacity(const struct query_near *near)
{
    return near->capacity;
}

static int numbers_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What a graph has missed may be better than what it has found: so those that were given are known
 * by their numbers, where walks of all entries need no more than the last of them. */
static void picked_pass(struct query_near *near)
{
    near->passed = memory_alloc(memory_array_size(near->count + 1, sizeof *near->passed));
    near->passed_count = near->count;
    for (size_t i = 0; i < near->count; i++)
        near->passed[i] = near->list[i].number;
    qsort(near->passed, near->passed_count, sizeof *near->passed, numbers_order);
    near->picked = false;
}

static bool was_given(const struct query_near *near, const struct near *entry)
{
    return (near->given && near_order(entry, &near->last) <= 0) ||
           (near->passed_count && bsearch(&entry->number, near->passed, near->passed_count,
                                          sizeof *near->passed, numbers_order));
}

bool query_near_streams(const struct query_near *near)
{
    return near->walks > 2;
}

bool query_near_wants_walk(struct query_near *near, uint64_t taken)
{
    const struct query_nearest *nearest = near->nearest;
    uint64_t first = nearest->first;

    if (near->gone)
        first += first / GONE_SHARE + GONE_LEAST;
    assert(near->at == near->count);
    if (near->walks && (!near->left || taken >= nearest->wanted || query_near_streams(near)))
        return false;
    if (near->picked) {
        picked_pass(near);
    } else if (near->count) {
        near->last = near->list[near->count - 1];
        near->last.key = SLICE_NONE;
        near->given = true;
    }
    list_clear(near);
    memory_free(near->list);
    near->list = NULL; /* the next walk may keep more */
    near->left = false;
    near->capacity = near->walks ? QUERY_NEAR_MAX
                                 : (size_t)MIN(MAX(first, (uint64_t)1), (uint64_t)QUERY_NEAR_MAX);
    near->walks++;
    return true;
}

static void sift(struct query_near *near, size_t at)
{
    struct near *heap = near->list;

    for (;;) {
        size_t most = at, left = 2 * at + 1;
        struct near moved = heap[at];

        for (size_t child = left; child < left + 2 && child < near->count; child++)
            if (near_order(&heap[child], &heap[most]) > 0)
                most = child;
        if (most == at)
            return;
        heap[at] = heap[most];
        heap[most] = moved;
        at = most;
    }
}

static void rise(struct query_near *near, size_t at)
{
    struct near *heap = near->list;

    while (at > 0 && near_order(&heap[at], &heap[(at - 1) / 2]) > 0) {
        struct near moved = heap[at];

        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static struct slice key_copy(struct slice key)
{
    uint8_t *copy = memory_alloc(key.len + 1);

    memcpy(copy, key.data, key.len);
    return slice_of(copy, key.len);
}

void query_near_take(struct query_near *near, const struct cursor_hit *hit, bool *ret_now)
{
    struct near entry = {.number = hit->number};

    *ret_now = false;
    if (!index_vector_distance(near->nearest->index, &near->nearest->asked, hit->value,
                               &entry.distance))
        return;
    if (was_given(near, &entry))
        return;
    if (query_near_streams(near)) {
        *ret_now = true;
        return;
    }
    if (!near->list)
        near->list = memory_alloc(memory_array_size(near->capacity, sizeof *near->list));
    if (near->count < near->capacity) {
        entry.key = key_copy(hit->key);
        near->list[near->count] = entry;
        rise(near, near->count++);
        return;
    }
    near->left = true;
    if (near_order(&entry, &near->list[0]) > 0)
        return;
    memory_free((void *)near->list[0].key.data);
    entry.key = key_copy(hit->key);
    near->list[0] = entry;
    sift(near, 0);
}

void query_near_sort(struct query_near *near)
{
    if (near->count > 1)
        qsort(near->list, near->count, sizeof *near->list, near_order);
}

bool query_near_next(struct query_near *near, uint64_t *ret_number, struct slice *ret_key)
{
    if (near->at == near->count)
        return false;
    *ret_number = near->list[near->at].number;
    *ret_key = near->list[near->at++].key;
    return true;
}
