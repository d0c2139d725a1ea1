/* A hash table whose entries are also in the order of their use. Entries are found by number and
 * LSN, so that one of a script that was replaced or dropped is never taken for its successor: it
 * grows old and goes. */
#include "catalogue/child_cache.h"

#include "base/thread.h"
#include "catalogue/catalogue_private.h"

enum { BUCKETS = 256 };

struct entry {
    struct entry *next;            /* in its bucket */
    struct entry *newer, *older;   /* in the order of use */
    struct catalogue_child *whole; /* a reference */
};

struct child_cache {
    struct mutex lock; /* over all of it, for moments */
    size_t bytes, bytes_max;
    struct entry *newest, *oldest;
    struct entry *buckets[BUCKETS];
};

struct child_cache *child_cache_new(size_t bytes_max)
{
    struct child_cache *cache = MEMORY_NEW(struct child_cache);

    mutex_init(&cache->lock);
    cache->bytes_max = bytes_max;
    return cache;
}

static size_t entry_bytes(const struct entry *entry)
{
    return sizeof *entry + sizeof *entry->whole + entry->whole->body.len;
}

static struct entry **bucket_of(struct child_cache *cache, uint32_t number)
{
    return &cache->buckets[number % BUCKETS];
}

static void order_leave(struct child_cache *cache, struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void order_enter(struct child_cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static struct entry *entry_find(struct child_cache *cache, uint32_t number, uint64_t lsn)
{
    struct entry *entry = *bucket_of(cache, number);

    while (entry && (entry->whole->info.number != number || entry->whole->info.lsn != lsn))
        entry = entry->next;
    return entry;
}

static void entry_drop(struct child_cache *cache, struct entry *entry)
{
    struct entry **at = bucket_of(cache, entry->whole->info.number);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    order_leave(cache, entry);
    cache->bytes -= entry_bytes(entry);
    catalogue_child_unref(entry->whole);
    memory_free(entry);
}

void child_cache_free(struct child_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        entry_drop(cache, cache->oldest);
    assert(cache->bytes == 0);
    mutex_done(&cache->lock);
    memory_free(cache);
}

struct catalogue_child *child_cache_find(struct child_cache *cache, uint32_t number, uint64_t lsn)
{
    struct catalogue_child *found = NULL;

    WITH_LOCK (&cache->lock) {
        struct entry *entry = entry_find(cache, number, lsn);

        if (entry) {
            order_leave(cache, entry);
            order_enter(cache, entry);
            found = catalogue_child_ref(entry->whole);
        }
    }
    return found;
}

void child_cache_put(struct child_cache *cache, struct catalogue_child *whole)
{
    WITH_LOCK (&cache->lock) {
        if (!entry_find(cache, whole->info.number, whole->info.lsn)) {
            struct entry *entry = MEMORY_NEW(struct entry);
            struct entry **bucket = bucket_of(cache, whole->info.number);

            entry->whole = catalogue_child_ref(whole);
            entry->next = *bucket;
            *bucket = entry;
            order_enter(cache, entry);
            cache->bytes += entry_bytes(entry);
        }
        while (cache->bytes > cache->bytes_max)
            entry_drop(cache, cache->oldest);
    }
}
