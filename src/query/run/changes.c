/* Pages of changes that never move, so that a search reads them without the lock once it was told
 * how many there are. Marks say how many there were at an LSN: a search may be older than the last
 * one that added something. */
#include "query/run/changes.h"

#include "base/memory.h"
#include "base/thread.h"
#include "index/policy.h"
#include "item/feed_read.h"

enum {
    PAGE = 256,
    MARKS = 64,
    FETCHED = 64,   /* items at a time */
    READ_SHARE = 2, /* of all: more at once are rather walked as entries */
};

/* The log has all that was written up to here. */
struct mark {
    uint64_t lsn;
    size_t count;
};

struct query_changes {
    struct mutex lock;
    size_t max, count;
    struct mark marks[MARKS]; /* rising; the last ones */
    size_t mark_count;
    struct query_change **pages; /* room for max */
    struct arena *arena;         /* of keys, values and pages */
};

struct query_changes *query_changes_new(uint64_t lsn, size_t max)
{
    struct query_changes *changes = MEMORY_NEW(struct query_changes);

    mutex_init(&changes->lock);
    changes->max = max;
    changes->marks[0] = (struct mark){lsn, 0};
    changes->mark_count = 1;
    changes->arena = arena_new();
    changes->pages = ARENA_ARRAY(changes->arena, struct query_change *, max / PAGE + 1);
    return changes;
}

void query_changes_free(struct query_changes *changes)
{
    if (!changes)
        return;
    arena_free(changes->arena);
    mutex_done(&changes->lock);
    memory_free(changes);
}

size_t query_changes_count(struct query_changes *changes)
{
    size_t count = 0;

    WITH_LOCK (&changes->lock)
        count = changes->count;
    return count;
}

/* What so many take in the log. */
static size_t changes_bytes(const struct query_change *list, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += sizeof *list + list[i].key.len + list[i].value.len + 16;
    return bytes;
}

/* The last mark not above the LSN. False: that is too long ago. */
static bool mark_find(struct query_changes *changes, uint64_t lsn, struct mark *ret_mark)
{
    bool found = false;

    WITH_LOCK (&changes->lock) {
        for (size_t i = 0; i < changes->mark_count && changes->marks[i].lsn <= lsn; i++) {
            *ret_mark = changes->marks[i];
            found = true;
        }
    }
    return found;
}

static void change_append(struct query_changes *changes, const struct query_change *change)
{
    struct query_change **page = &changes->pages[changes->count / PAGE];

    if (changes->count % PAGE == 0)
        *page = ARENA_ARRAY(changes->arena, struct query_change, PAGE);
    (*page)[changes->count % PAGE] = (struct query_change){
        change->number, arena_copy(changes->arena, change->key),
        change->value.data ? arena_copy(changes->arena, change->value) : SLICE_NONE};
    changes->count++;
}

/* The log reaches a later LSN. False: another has added something since the mark, or there is no
 * room. */
static bool changes_add(struct query_changes *changes, const struct mark *from, uint64_t lsn,
                        const struct query_change *list, size_t count)
{
    bool added = false;

    WITH_LOCK (&changes->lock) {
        struct mark *last = &changes->marks[changes->mark_count - 1];

        added = last->lsn == from->lsn && changes->count + count <= changes->max;
        if (added) {
            for (size_t i = 0; i < count; i++)
                change_append(changes, &list[i]);
            if (changes->mark_count == MARKS)
                memmove(changes->marks, changes->marks + 1,
                        --changes->mark_count * sizeof *changes->marks);
            changes->marks[changes->mark_count++] = (struct mark){lsn, changes->count};
        }
    }
    return added;
}

/* --- Reading --------------------------------------------------------------------------------- */

/* The items behind some records, as the view has them. */
static bool records_fetch(const struct view *view, const struct index_definition *index,
                          const struct feed_record *records, size_t count,
                          struct query_change *ret_changes, struct arena *arena, struct error *err)
{
    CLEANUP(arena_free) struct arena *items_arena = arena_new();
    CLEANUP(buf_done) struct buf value;
    struct item items[FETCHED];
    struct slice keys[FETCHED];

    buf_init(&value, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++)
        keys[i] = records[i].key;
    if (!view_fetch(view, keys, count, items_arena, items, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        ret_changes[i] = (struct query_change){.number = records[i].number, .key = records[i].key};
        /* another may have the key by now, and has a record of its own */
        if (!items[i].document.data || items[i].header.number != records[i].number)
            continue;
        buf_clear(&value);
        if (index_vector_value(index, items[i].document, &value))
            ret_changes[i].value = arena_copy(arena, buf_slice(&value));
    }
    return true;
}

static bool changes_read(const struct view *view, const struct index_definition *index,
                         uint64_t after, size_t max, struct arena *arena,
                         struct query_change **ret_list, size_t *ret_count, bool *ret_more,
                         struct error *err)
{
    struct feed_record *records;
    struct query_change *list;

    if (!feed_written(&view->scope, view->snapshot, after, max, arena, &records, ret_count,
                      ret_more, err))
        return false;
    if (*ret_more)
        return true;
    list = ARENA_ARRAY(arena, struct query_change, *ret_count + 1);
    for (size_t at = 0; at < *ret_count; at += FETCHED)
        if (!records_fetch(view, index, records + at, MIN(*ret_count - at, (size_t)FETCHED),
                           list + at, arena, err))
            return false;
    *ret_list = list;
    return true;
}

/* --- Since ----------------------------------------------------------------------------------- */

void query_since_done(struct query_since *since)
{
    memory_free(since->list);
    memory_free(since->numbers);
    arena_free(since->arena);
    *since = (struct query_since){0};
}

/* Where a number is, or would be. Numbers of items are above 0. */
static size_t number_place(const struct query_since *since, uint64_t number)
{
    size_t at = (size_t)(number * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (since->numbers_size - 1);

    while (since->numbers[at] && since->numbers[at] != number)
        at = (at + 1) & (since->numbers_size - 1);
    return at;
}

bool query_since_has(const struct query_since *since, uint64_t number)
{
    return since->numbers && since->numbers[number_place(since, number)] == number;
}

static void since_take(struct query_since *since, const struct query_change *change)
{
    size_t at = number_place(since, change->number);

    if (since->numbers[at] == change->number)
        return; /* it was written again later */
    since->numbers[at] = change->number;
    since->list[since->count++] = change;
}

/* From the last to the first, so that of each item its last comes first. */
static void since_fill(struct query_since *since, const struct query_changes *changes, size_t count,
                       const struct query_change *own, size_t own_count)
{
    size_t size = 16;

    if (!count && !own_count)
        return;
    while (size < (count + own_count) * 2)
        size *= 2;
    since->numbers_size = size;
    since->numbers = memory_alloc_zero(memory_array_size(size, sizeof *since->numbers));
    since->list = memory_alloc(memory_array_size(count + own_count, sizeof *since->list));
    while (own_count-- > 0)
        since_take(since, &own[own_count]);
    while (count-- > 0)
        since_take(since, &changes->pages[count / PAGE][count % PAGE]);
}

bool query_changes_since(struct query_changes *changes, const struct view *view, uint64_t lsn,
                         const struct index_definition *index,
                         void (*grown)(void *self, size_t bytes), void *self,
                         struct query_since *ret_since, enum query_since_state *ret_state,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct query_change *own = NULL;
    struct query_since since = {0};
    struct mark mark;
    size_t own_count = 0;
    bool more;

    *ret_state = QUERY_SINCE_FORGOTTEN;
    if (!mark_find(changes, lsn, &mark))
        return true;
    if (mark.lsn < lsn) {
        arena = arena_new();
        if (!changes_read(view, index, mark.lsn,
                          MIN(changes->max - mark.count, changes->max / READ_SHARE), arena, &own,
                          &own_count, &more, err))
            return false;
        *ret_state = QUERY_SINCE_WORN;
        if (more)
            return true;
        since.read = own_count;
        if (changes_add(changes, &mark, lsn, own, own_count)) {
            grown(self, changes_bytes(own, own_count));
            mark.count += own_count;
            own_count = 0;
        }
    }
    since_fill(&since, changes, mark.count, own, own_count);
    if (own_count)
        since.arena = TAKE(arena);
    *ret_since = since;
    *ret_state = QUERY_SINCE_WHOLE;
    return true;
}
