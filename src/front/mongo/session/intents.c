/* A hash table of the 128-bit hashes of partition and item key: two items that share one would only
 * conflict without need. */
#include "front/mongo/session/intents.h"

#include "base/memory.h"
#include "base/thread.h"

#include <xxhash.h>

enum { BUCKETS = 8192 };

struct mongo_intent {
    XXH128_hash_t hash;
    const struct mongo_intent_list *owner;
    struct mongo_intent *next;  /* in its bucket */
    struct mongo_intent *other; /* of the same owner */
};

struct mongo_intents {
    struct mutex lock;
    struct mongo_intent *buckets[BUCKETS];
};

struct mongo_intents *mongo_intents_new(void)
{
    struct mongo_intents *intents = MEMORY_NEW(struct mongo_intents);

    mutex_init(&intents->lock);
    return intents;
}

void mongo_intents_free(struct mongo_intents *intents)
{
    if (!intents)
        return;
    mutex_done(&intents->lock);
    memory_free(intents);
}

static struct mongo_intent **bucket_of(struct mongo_intents *intents, XXH128_hash_t hash)
{
    return &intents->buckets[hash.low64 % BUCKETS];
}

bool mongo_intents_add(struct mongo_intents *intents, struct mongo_intent_list *list,
                       uint32_t partition, struct slice key)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(key.data, key.len, partition);
    bool fine = true;

    WITH_LOCK (&intents->lock) {
        struct mongo_intent **bucket = bucket_of(intents, hash), *intent = *bucket;

        while (intent && !XXH128_isEqual(intent->hash, hash))
            intent = intent->next;
        fine = !intent || intent->owner == list;
        if (!intent) {
            intent = MEMORY_NEW(struct mongo_intent);
            *intent = (struct mongo_intent){
                .hash = hash, .owner = list, .next = *bucket, .other = list->first};
            *bucket = intent;
            list->first = intent;
            list->count++;
        }
    }
    return fine;
}

void mongo_intents_let_go(struct mongo_intents *intents, struct mongo_intent_list *list)
{
    WITH_LOCK (&intents->lock)
        while (list->first) {
            struct mongo_intent *intent = list->first;
            struct mongo_intent **link = bucket_of(intents, intent->hash);

            while (*link != intent)
                link = &(*link)->next;
            *link = intent->next;
            list->first = intent->other;
            memory_free(intent);
        }
    list->count = 0;
}
