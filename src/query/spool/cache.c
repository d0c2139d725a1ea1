/* A list, newest first, under one lock: there are few results at a time, for most of them are large
 * and live between two pages. */
#include "query/spool/cache.h"

#include "base/random.h"

#include <pthread.h>

enum {
    RESULTS_MAX = 1024,
    SPILLED_MAX = 128, /* results on disk: each holds descriptors */
};

struct result {
    uint64_t number, fingerprint;
    struct query_spool *spool; /* owned */
    size_t bytes;
    uint64_t spilled;
    struct result *newer, *older;
};

struct query_cache {
    pthread_mutex_t lock;
    size_t bytes_max, bytes, count;
    uint64_t spilled_max, spilled;
    size_t spilled_count;
    struct result *newest, *oldest;
};

struct query_cache *query_cache_new(size_t bytes_max, uint64_t spilled_max)
{
    struct query_cache *cache = MEMORY_NEW(struct query_cache);

    cache->bytes_max = bytes_max;
    cache->spilled_max = spilled_max;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

static void result_unlink(struct query_cache *cache, struct result *result)
{
    *(result->newer ? &result->newer->older : &cache->newest) = result->older;
    *(result->older ? &result->older->newer : &cache->oldest) = result->newer;
    cache->bytes -= result->bytes;
    cache->spilled -= result->spilled;
    cache->spilled_count -= result->spilled > 0;
    cache->count--;
}

void query_cache_free(struct query_cache *cache)
{
    if (!cache)
        return;
    while (cache->newest) {
        struct result *result = cache->newest;

        result_unlink(cache, result);
        query_spool_free(result->spool);
        memory_free(result);
    }
    pthread_mutex_destroy(&cache->lock);
    memory_free(cache);
}

/* Takes the oldest out until the cache is within its bounds; they are freed without the lock. */
static struct result *results_evict(struct query_cache *cache)
{
    struct result *evicted = NULL;

    while (cache->bytes > cache->bytes_max || cache->count > RESULTS_MAX ||
           cache->spilled_count > SPILLED_MAX ||
           (cache->spilled > cache->spilled_max && cache->count > 1)) {
        struct result *result = cache->oldest;

        result_unlink(cache, result);
        result->older = evicted;
        evicted = result;
    }
    return evicted;
}

uint64_t query_cache_put(struct query_cache *cache, uint64_t fingerprint, struct query_spool *spool)
{
    struct result *result, *evicted;
    uint64_t number = 0;

    if (query_spool_bytes(spool) > cache->bytes_max &&
        (!cache->bytes_max || !query_spool_shrink(spool) ||
         query_spool_bytes(spool) > cache->bytes_max)) {
        query_spool_free(spool);
        return 0;
    }
    while (!number)
        random_secret(&number, sizeof number);
    result = MEMORY_NEW(struct result);
    *result = (struct result){.number = number,
                              .fingerprint = fingerprint,
                              .spool = spool,
                              .bytes = query_spool_bytes(spool),
                              .spilled = query_spool_spilled(spool)};
    pthread_mutex_lock(&cache->lock);
    result->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = result;
    cache->newest = result;
    cache->bytes += result->bytes;
    cache->spilled += result->spilled;
    cache->spilled_count += result->spilled > 0;
    cache->count++;
    evicted = results_evict(cache);
    pthread_mutex_unlock(&cache->lock);
    while (evicted) {
        struct result *older = evicted->older;

        query_spool_free(evicted->spool);
        memory_free(evicted);
        evicted = older;
    }
    return number;
}

struct query_spool *query_cache_take(struct query_cache *cache, uint64_t fingerprint,
                                     uint64_t number)
{
    struct query_spool *spool = NULL;
    struct result *result;

    pthread_mutex_lock(&cache->lock);
    result = cache->newest;
    while (result && (result->number != number || result->fingerprint != fingerprint))
        result = result->older;
    if (result)
        result_unlink(cache, result);
    pthread_mutex_unlock(&cache->lock);
    if (result)
        spool = result->spool;
    memory_free(result);
    return spool;
}
