/* A table of chains that only grow: finding takes no lock, and nothing found ever goes.
 *
 * Who asked of late is a bit for each owner in one of two words, this half of a second's and the
 * one's before. From 64 owners on two may share a bit and take each other for nobody, which is why
 * no limit that protects the server may hang on it. */
#include "net/owner_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

enum { BUCKETS = 1024, SEEN_MS = 500 };

struct net_owners {
    struct memory_meter *server;
    size_t bytes_max;
    struct mutex lock; /* for adding */
    struct net_owner *_Atomic buckets[BUCKETS];
    _Atomic uint64_t seen, seen_before; /* a bit for each owner */
    _Atomic int64_t seen_ms;            /* when seen began */
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

static uint64_t owner_bit(uint64_t number)
{
    return (uint64_t)1 << number % 64;
}

static void owners_note(struct net_owners *owners, uint64_t number)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t since_ms = atomic_load_explicit(&owners->seen_ms, memory_order_relaxed);
    uint64_t bit = owner_bit(number);

    if (now_ms - since_ms >= SEEN_MS &&
        atomic_compare_exchange_strong(&owners->seen_ms, &since_ms, now_ms)) {
        uint64_t seen = atomic_exchange(&owners->seen, 0);

        atomic_store(&owners->seen_before, now_ms - since_ms < 2 * SEEN_MS ? seen : 0);
    }
    if (!(atomic_load_explicit(&owners->seen, memory_order_relaxed) & bit))
        atomic_fetch_or(&owners->seen, bit);
}

static struct net_owner *bucket_find(struct net_owner *_Atomic *bucket, uint64_t number)
{
    struct net_owner *owner = atomic_load_explicit(bucket, memory_order_acquire);

    while (owner && owner->number != number)
        owner = atomic_load_explicit(&owner->next_found, memory_order_acquire);
    return owner;
}

static struct net_owner *owner_find(struct net_owners *owners, uint64_t number, bool guest)
{
    struct net_owner *_Atomic *bucket = &owners->buckets[number % BUCKETS];
    struct net_owner *owner = bucket_find(bucket, number);

    owners_note(owners, number);
    if (owner)
        return owner;
    WITH_LOCK (&owners->lock) {
        owner = bucket_find(bucket, number);
        if (owner)
            return owner;
        owner = MEMORY_NEW(struct net_owner);
        owner->number = number;
        owner->guest = guest;
        owner->among = owners;
        memory_meter_init(&owner->memory, owners->server, owners->bytes_max);
        atomic_init(&owner->next_found, atomic_load_explicit(bucket, memory_order_relaxed));
        atomic_store_explicit(bucket, owner, memory_order_release);
    }
    return owner;
}

struct net_owner *net_owners_find(struct net_owners *owners, uint64_t number)
{
    return owner_find(owners, number, false);
}

struct net_owner *net_owners_find_guest(struct net_owners *owners, uint64_t number)
{
    return owner_find(owners, number, true);
}

bool net_owner_is_alone(const struct net_owner *owner)
{
    const struct net_owners *owners = owner->among;
    uint64_t seen;

    if (!owners ||
        clock_monotonic_ms() - atomic_load_explicit(&owners->seen_ms, memory_order_relaxed) >=
            2 * SEEN_MS)
        return true; /* nobody at all has asked, or seen would have begun anew */
    seen = atomic_load_explicit(&owners->seen, memory_order_relaxed) |
           atomic_load_explicit(&owners->seen_before, memory_order_relaxed);
    return !(seen & ~owner_bit(owner->number));
}

struct memory_meter *net_owner_memory(struct net_owner *owner)
{
    return owner ? &owner->memory : NULL;
}
