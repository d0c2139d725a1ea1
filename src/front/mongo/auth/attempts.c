/* Each place is one word: when the failures in it will all be forgotten, in ms. A failure moves
 * that by MONGO_ATTEMPTS_BACK_MS; so many of those as lie ahead are counted. */
#include "front/mongo/auth/attempts.h"

#include "base/memory.h"
#include "base/random.h"

#include <stdatomic.h>
#include <xxhash.h>

enum { PLACES = 16384 };

struct mongo_attempts {
    uint64_t seed; /* so that nobody can look for names that share a place */
    atomic_int_fast64_t addresses[PLACES], names[PLACES];
};

struct mongo_attempts *mongo_attempts_new(void)
{
    struct mongo_attempts *attempts = MEMORY_NEW(struct mongo_attempts);

    random_secret(&attempts->seed, sizeof attempts->seed);
    return attempts;
}

void mongo_attempts_free(struct mongo_attempts *attempts)
{
    memory_free(attempts);
}

static atomic_int_fast64_t *address_place(struct mongo_attempts *attempts,
                                          const struct net_address *address)
{
    enum { NETWORK_BYTES = 8 }; /* what one subscriber has of IPv6 */
    struct slice bytes = SLICE("unknown");

    if (address->len && address->any.sa_family == AF_INET)
        bytes = slice_of((const uint8_t *)&address->v4.sin_addr, sizeof address->v4.sin_addr);
    else if (address->len && address->any.sa_family == AF_INET6)
        bytes = slice_of((const uint8_t *)&address->v6.sin6_addr, NETWORK_BYTES);
    return &attempts
                ->addresses[XXH3_64bits_withSeed(bytes.data, bytes.len, attempts->seed) % PLACES];
}

static atomic_int_fast64_t *name_place(struct mongo_attempts *attempts, struct slice name)
{
    return &attempts->names[XXH3_64bits_withSeed(name.len ? name.data : (const uint8_t *)"",
                                                 name.len, attempts->seed) %
                            PLACES];
}

static int64_t failures_in(const atomic_int_fast64_t *place, int64_t now_ms)
{
    int64_t until = atomic_load_explicit(place, memory_order_relaxed);

    return until > now_ms ? (until - now_ms + MONGO_ATTEMPTS_BACK_MS - 1) / MONGO_ATTEMPTS_BACK_MS
                          : 0;
}

bool mongo_attempts_allow(struct mongo_attempts *attempts, const struct net_address *address,
                          struct slice name, int64_t now_ms)
{
    int64_t own = failures_in(address_place(attempts, address), now_ms);

    return own < MONGO_ATTEMPTS_ADDRESS &&
           (!own || failures_in(name_place(attempts, name), now_ms) < MONGO_ATTEMPTS_NAME);
}

static void failure_add(atomic_int_fast64_t *place, int64_t now_ms)
{
    int_fast64_t until = atomic_load_explicit(place, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(
        place, &until, (until > now_ms ? until : now_ms) + MONGO_ATTEMPTS_BACK_MS,
        memory_order_relaxed, memory_order_relaxed)) {
    }
}

void mongo_attempts_failed(struct mongo_attempts *attempts, const struct net_address *address,
                           struct slice name, int64_t now_ms)
{
    failure_add(address_place(attempts, address), now_ms);
    failure_add(name_place(attempts, name), now_ms);
}

void mongo_attempts_succeeded(struct mongo_attempts *attempts, const struct net_address *address)
{
    atomic_store_explicit(address_place(attempts, address), 0, memory_order_relaxed);
}
