#include "front/mongo/stream/count.h"

#include "base/memory.h"
#include "base/thread.h"

/* Kept while there are any of the account. */
struct entry {
    uint32_t account;
    size_t count;
    struct entry *next;
};

struct mongo_stream_count {
    size_t account_max;
    struct mutex lock; /* of the two below */
    size_t all;
    struct entry *entries; /* accounts that watch are few */
};

struct mongo_stream_count *mongo_stream_count_new(size_t account_max)
{
    struct mongo_stream_count *count = MEMORY_NEW(struct mongo_stream_count);

    count->account_max = account_max;
    mutex_init(&count->lock);
    return count;
}

void mongo_stream_count_free(struct mongo_stream_count *count)
{
    if (!count)
        return;
    assert(!count->entries);
    mutex_done(&count->lock);
    memory_free(count);
}

static struct entry **place_of(struct mongo_stream_count *count, uint32_t account)
{
    struct entry **place = &count->entries;

    while (*place && (*place)->account != account)
        place = &(*place)->next;
    return place;
}

bool mongo_stream_count_enter(struct mongo_stream_count *count, uint32_t account, struct error *err)
{
    bool room = false;

    WITH_LOCK (&count->lock) {
        struct entry **place = place_of(count, account);

        if (!*place) {
            *place = MEMORY_NEW(struct entry);
            (*place)->account = account;
        }
        room = (*place)->count < count->account_max;
        (*place)->count += room;
        count->all += room;
    }
    return room || error_set(err, ERROR_BUSY, "%zu change streams of the account are open already",
                             count->account_max);
}

void mongo_stream_count_leave(struct mongo_stream_count *count, uint32_t account)
{
    WITH_LOCK (&count->lock) {
        struct entry **place = place_of(count, account), *entry = *place;

        assert(entry && entry->count > 0);
        count->all--;
        if (--entry->count == 0) {
            *place = entry->next;
            memory_free(entry);
        }
    }
}

size_t mongo_stream_count_all(struct mongo_stream_count *count)
{
    size_t all = 0;

    WITH_LOCK (&count->lock)
        all = count->all;
    return all;
}
