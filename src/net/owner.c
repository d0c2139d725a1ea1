/* A table of chains that only grow: finding takes no lock, and nothing found ever goes. */
#include "net/owner_private.h"

#include "base/memory.h"
#include "base/thread.h"

enum { BUCKETS = 1024 };

struct net_owners {
    struct memory_meter *server;
    size_t bytes_max;
    struct mutex lock; /* for adding */
    struct net_owner *_Atomic buckets[BUCKETS];
};

struct net_owners *net_owners_new(struct memory_meter *server, size_t bytes_max)
{
    struct net_owners *owners = MEMORY_NEW(struct net_owners);

    owners->server = server;
    owners->bytes_max = bytes_max;
    mutex_init(&owners->lock);
    return owners;
}

void net_owners_free(struct net_owners *owners)
{
    if (!owners)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct net_owner *owner = owners->buckets[i], *next;

        for (; owner; owner = next) {
            next = owner->next_found;
            assert(!owner->running && !owner->queued);
            memory_free(owner);
        }
    }
    mutex_done(&owners->lock);
    memory_free(owners);
}

static struct net_owner *bucket_find(struct net_owner *_Atomic *bucket, uint64_t number)
{
    struct net_owner *owner = atomic_load_explicit(bucket, memory_order_acquire);

    while (owner && owner->number != number)
        owner = atomic_load_explicit(&owner->next_found, memory_order_acquire);
    return owner;
}

struct net_owner *net_owners_find(struct net_owners *owners, uint64_t number)
{
    struct net_owner *_Atomic *bucket = &owners->buckets[number % BUCKETS];
    struct net_owner *owner = bucket_find(bucket, number);

    if (owner)
        return owner;
    WITH_LOCK (&owners->lock) {
        owner = bucket_find(bucket, number);
        if (owner)
            return owner;
        owner = MEMORY_NEW(struct net_owner);
        owner->number = number;
        memory_meter_init(&owner->memory, owners->server, owners->bytes_max);
        atomic_init(&owner->next_found, atomic_load_explicit(bucket, memory_order_relaxed));
        atomic_store_explicit(bucket, owner, memory_order_release);
    }
    return owner;
}

struct memory_meter *net_owner_memory(struct net_owner *owner)
{
    return owner ? &owner->memory : NULL;
}
