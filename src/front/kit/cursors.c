/* A table of buckets by id, and for each account that has any a list of its own, under one lock.
 * Cursors are few and live long compared with what is done here, so one lock is enough; nothing is
 * closed while it is held, since closing may take long and come back here.
 *
 * Those whose time is over are looked for when they are asked for, when somebody calls
 * front_cursors_expire, and when there is no room: a heap by deadline would be moved with every
 * page of every cursor, to save a look at a few thousand of them now and then. */
#include "front/kit/cursors.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"

enum { BUCKETS = 1024 };

/* Kept while it has any. */
struct front_cursors_of_account {
    uint32_t account;
    size_t count;
    struct front_cursor *newest;
    struct front_cursors_of_account *next;
};

struct front_cursors {
    struct front_cursors_options options;
    struct mutex lock; /* of all below */
    size_t count;
    struct front_cursor *by_id[BUCKETS];
    struct front_cursors_of_account *by_account[BUCKETS];
};

struct front_cursors *front_cursors_new(const struct front_cursors_options *options)
{
    struct front_cursors *cursors = MEMORY_NEW(struct front_cursors);

    cursors->options = *options;
    mutex_init(&cursors->lock);
    return cursors;
}

/* --- Under the lock -------------------------------------------------------------------------- */

static struct front_cursors_of_account **account_place(struct front_cursors *cursors,
                                                       uint32_t account)
{
    struct front_cursors_of_account **place = &cursors->by_account[account % BUCKETS];

    while (*place && (*place)->account != account)
        place = &(*place)->next;
    return place;
}

static struct front_cursor **cursor_place(struct front_cursors *cursors, uint64_t id)
{
    struct front_cursor **place = &cursors->by_id[id % BUCKETS];

    while (*place && (*place)->id != id)
        place = &(*place)->next;
    return place;
}

static struct front_cursor *cursor_find(struct front_cursors *cursors, uint32_t account,
                                        uint64_t id)
{
    struct front_cursor *cursor = *cursor_place(cursors, id);

    return cursor && cursor->account == account ? cursor : NULL;
}

static void cursor_link(struct front_cursors *cursors, struct front_cursor *cursor)
{
    struct front_cursors_of_account **place = account_place(cursors, cursor->account);
    struct front_cursor **bucket;

    if (!*place) {
        *place = MEMORY_NEW(struct front_cursors_of_account);
        (*place)->account = cursor->account;
    }
    cursor->of_account = *place;
    cursor->newer = NULL;
    cursor->older = cursor->of_account->newest;
    if (cursor->older)
        cursor->older->newer = cursor;
    cursor->of_account->newest = cursor;
    cursor->of_account->count++;
    do {
        random_secret(&cursor->id, sizeof cursor->id);
        cursor->id = (cursor->id >> 2) | FRONT_CURSOR_ID_MIN;
        bucket = cursor_place(cursors, cursor->id);
    } while (*bucket);
    cursor->next = NULL;
    *bucket = cursor;
    cursors->count++;
}

static void cursor_unlink(struct front_cursors *cursors, struct front_cursor *cursor)
{
    struct front_cursors_of_account *owner = cursor->of_account;

    assert(*cursor_place(cursors, cursor->id) == cursor);
    assert(owner->count > 0 && cursors->count >= owner->count);
    *cursor_place(cursors, cursor->id) = cursor->next;
    *(cursor->newer ? &cursor->newer->older : &owner->newest) = cursor->older;
    if (cursor->older)
        cursor->older->newer = cursor->newer;
    cursors->count--;
    if (--owner->count == 0) {
        *account_place(cursors, owner->account) = owner->next;
        memory_free(owner);
    }
}

/* Out of the table and onto the list; one in use is closed by whoever uses it. */
static void cursor_condemn(struct front_cursors *cursors, struct front_cursor *cursor,
                           struct front_cursor **list)
{
    if (cursor->in_use) {
        atomic_store(&cursor->cancelled, true);
        return;
    }
    cursor_unlink(cursors, cursor);
    cursor->next = *list;
    *list = cursor;
}

static size_t overdue_condemn(struct front_cursors *cursors, int64_t now_ms,
                              struct front_cursor **list)
{
    size_t found = 0;

    for (size_t i = 0; i < BUCKETS; i++)
        for (struct front_cursor *cursor = cursors->by_id[i], *next; cursor; cursor = next) {
            next = cursor->next;
            if (cursor->in_use || cursor->deadline_ms > now_ms)
                continue;
            cursor_condemn(cursors, cursor, list);
            found++;
        }
    return found;
}

static bool has_room(struct front_cursors *cursors, uint32_t account)
{
    const struct front_cursors_of_account *own = *account_place(cursors, account);

    return cursors->count < cursors->options.count_max &&
           (!own || own->count < cursors->options.account_count_max);
}

/* --- Without it ------------------------------------------------------------------------------ */

static void list_close(struct front_cursor *list)
{
    while (list) {
        struct front_cursor *next = list->next;

        front_owner_let_go(list->owner, list->bytes);
        list->close(list);
        list = next;
    }
}

void front_cursors_free(struct front_cursors *cursors)
{
    struct front_cursor *list = NULL;

    if (!cursors)
        return;
    (void)overdue_condemn(cursors, INT64_MAX, &list);
    assert(cursors->count == 0);
    list_close(list);
    mutex_done(&cursors->lock);
    memory_free(cursors);
}

bool front_cursors_open(struct front_cursors *cursors, struct front_cursor *cursor,
                        const struct front_cursor_terms *terms, int64_t now_ms, uint64_t *ret_id,
                        struct error *err)
{
    struct front_cursor *overdue = NULL;
    bool room = false;

    assert(cursor->close);
    if (!front_owner_hold(terms->owner, terms->bytes, err))
        return false;
    cursor->account = terms->account;
    cursor->owner = terms->owner;
    cursor->bytes = terms->bytes;
    cursor->deadline_ms = terms->deadline_ms;
    cursor->in_use = false;
    atomic_store(&cursor->cancelled, false);
    WITH_LOCK (&cursors->lock) {
        room = has_room(cursors, terms->account);
        if (!room) {
            (void)overdue_condemn(cursors, now_ms, &overdue);
            room = has_room(cursors, terms->account);
        }
        if (room) {
            cursor_link(cursors, cursor);
            *ret_id = cursor->id;
        }
    }
    list_close(overdue);
    if (room)
        return true;
    front_owner_let_go(terms->owner, terms->bytes);
    return error_set(err, ERROR_BUSY,
                     "as many cursors are open as may be: %zu of all accounts, %zu of one",
                     cursors->options.count_max, cursors->options.account_count_max);
}

bool front_cursors_take(struct front_cursors *cursors, uint32_t account, uint64_t id,
                        int64_t now_ms, struct front_cursor **ret_cursor, struct error *err)
{
    struct front_cursor *cursor = NULL, *overdue = NULL;
    bool busy = false;

    WITH_LOCK (&cursors->lock) {
        cursor = cursor_find(cursors, account, id);
        busy = cursor && cursor->in_use;
        if (cursor && !busy && cursor->deadline_ms <= now_ms) {
            cursor_condemn(cursors, cursor, &overdue);
            cursor = NULL;
        } else if (cursor && !busy) {
            cursor->in_use = true;
        }
    }
    list_close(overdue);
    if (busy)
        return error_set(err, ERROR_CURSOR_IN_USE, "cursor %llu is used by another request",
                         (unsigned long long)id);
    if (!cursor)
        return error_set(err, ERROR_CURSOR_MISSING,
                         "cursor %llu does not exist, or was not come back for in time",
                         (unsigned long long)id);
    *ret_cursor = cursor;
    return true;
}

void front_cursors_put_back(struct front_cursors *cursors, struct front_cursor *cursor,
                            int64_t deadline_ms, size_t bytes)
{
    struct front_cursor *killed = NULL;

    memory_meter_set(net_owner_memory(cursor->owner), cursor->bytes, bytes);
    WITH_LOCK (&cursors->lock) {
        assert(cursor->in_use);
        cursor->bytes = bytes;
        cursor->deadline_ms = deadline_ms;
        cursor->in_use = false;
        if (atomic_load(&cursor->cancelled))
            cursor_condemn(cursors, cursor, &killed);
    }
    list_close(killed);
}

void front_cursors_end(struct front_cursors *cursors, struct front_cursor *cursor)
{
    struct front_cursor *ended = NULL;

    WITH_LOCK (&cursors->lock) {
        assert(cursor->in_use);
        cursor->in_use = false;
        cursor_condemn(cursors, cursor, &ended);
    }
    list_close(ended);
}

bool front_cursors_kill(struct front_cursors *cursors, uint32_t account, uint64_t id)
{
    struct front_cursor *cursor = NULL, *killed = NULL;

    WITH_LOCK (&cursors->lock) {
        cursor = cursor_find(cursors, account, id);
        if (cursor)
            cursor_condemn(cursors, cursor, &killed);
    }
    list_close(killed);
    return cursor;
}

static bool has_tag(const struct front_cursor *cursor, const uint8_t *tag)
{
    static const uint8_t none[FRONT_CURSOR_TAG_LEN];

    return tag ? memcmp(cursor->tag, tag, sizeof none) == 0
               : memcmp(cursor->tag, none, sizeof none) != 0;
}

size_t front_cursors_kill_tagged(struct front_cursors *cursors, uint32_t account,
                                 const uint8_t *tag)
{
    struct front_cursor *killed = NULL;
    size_t found = 0;

    WITH_LOCK (&cursors->lock) {
        struct front_cursors_of_account *own = *account_place(cursors, account);

        for (struct front_cursor *cursor = own ? own->newest : NULL, *older; cursor;
             cursor = older) {
            older = cursor->older;
            if (!has_tag(cursor, tag))
                continue;
            cursor_condemn(cursors, cursor, &killed);
            found++;
        }
    }
    list_close(killed);
    return found;
}

size_t front_cursors_account_end(struct front_cursors *cursors, uint32_t account)
{
    struct front_cursor *ended = NULL;
    size_t found = 0;

    WITH_LOCK (&cursors->lock) {
        struct front_cursors_of_account *own = *account_place(cursors, account);
        /* with the last of them the list itself goes */
        for (struct front_cursor *cursor = own ? own->newest : NULL, *older; cursor;
             cursor = older) {
            older = cursor->older;
            cursor_condemn(cursors, cursor, &ended);
            found++;
        }
    }
    list_close(ended);
    return found;
}

size_t front_cursors_expire(struct front_cursors *cursors, int64_t now_ms)
{
    struct front_cursor *overdue = NULL;
    size_t found = 0;

    WITH_LOCK (&cursors->lock)
        found = overdue_condemn(cursors, now_ms, &overdue);
    list_close(overdue);
    return found;
}

bool front_cursors_is_open(struct front_cursors *cursors, uint64_t id)
{
    bool is_open = false;

    WITH_LOCK (&cursors->lock)
        is_open = *cursor_place(cursors, id);
    return is_open;
}

size_t front_cursors_count(struct front_cursors *cursors)
{
    size_t count = 0;

    WITH_LOCK (&cursors->lock)
        count = cursors->count;
    return count;
}
