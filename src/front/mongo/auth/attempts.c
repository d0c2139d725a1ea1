/* Each place of failures is one word: when the failures in it will all be forgotten, in ms. A
 * failure moves that by MONGO_ATTEMPTS_BACK_MS; so many of those as lie ahead are counted. A place
 * of who is known is one word, too: when it was, in ms, above 16 bits of the hash that led there.
 */
#include "front/mongo/auth/attempts.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <xxhash.h>

enum { PLACES = 65536, TAG_BITS = 16, TAG_MASK = (1 << TAG_BITS) - 1 };

struct mongo_attempts {
    uint64_t seed;
    atomic_int_fast64_t addresses[PLACES], names[PLACES], pairs[PLACES], known[PLACES];
};

/* Who tries: its places, and what tells it from others that share one. */
struct trying {
    atomic_int_fast64_t *address, *name, *pair, *known;
    uint64_t tag;
};

struct mongo_attempts *mongo_attempts_new(uint64_t seed)
{
    struct mongo_attempts *attempts = MEMORY_NEW(struct mongo_attempts);

    attempts->seed = seed;
    return attempts;
}

void mongo_attempts_free(struct mongo_attempts *attempts)
{
    memory_free(attempts);
}

static struct slice address_bytes(const struct net_address *address)
{
    enum { NETWORK_BYTES = 8 }; /* what one subscriber has of IPv6 */

    if (address->len && address->any.sa_family == AF_INET)
        return slice_of((const uint8_t *)&address->v4.sin_addr, sizeof address->v4.sin_addr);
    if (address->len && address->any.sa_family == AF_INET6)
        return slice_of((const uint8_t *)&address->v6.sin6_addr, NETWORK_BYTES);
    return SLICE("unknown");
}

static struct trying trying_of(struct mongo_attempts *attempts, const struct net_address *address,
                               struct slice name)
{
    struct slice bytes = address_bytes(address);
    uint64_t by_address = XXH3_64bits_withSeed(bytes.data, bytes.len, attempts->seed);
    uint64_t by_name =
        XXH3_64bits_withSeed(name.len ? name.data : (const uint8_t *)"", name.len, attempts->seed);
    uint64_t both[] = {by_address, by_name};
    uint64_t by_pair = XXH3_64bits_withSeed(both, sizeof both, attempts->seed);

    return (struct trying){.address = &attempts->addresses[by_address % PLACES],
                           .name = &attempts->names[by_name % PLACES],
                           .pair = &attempts->pairs[by_pair % PLACES],
                           .known = &attempts->known[by_pair % PLACES],
                           .tag = by_pair / PLACES & TAG_MASK};
}

static int64_t failures_in(const atomic_int_fast64_t *place, int64_t now_ms)
{
    int64_t until = atomic_load_explicit(place, memory_order_relaxed);

    return until > now_ms ? (until - now_ms + MONGO_ATTEMPTS_BACK_MS - 1) / MONGO_ATTEMPTS_BACK_MS
                          : 0;
}

static bool is_known(const struct trying *trying, int64_t now_ms)
{
    uint64_t word = (uint64_t)atomic_load_explicit(trying->known, memory_order_relaxed);

    return word && (word & TAG_MASK) == trying->tag &&
           now_ms - (int64_t)(word >> TAG_BITS) < MONGO_ATTEMPTS_KNOWN_MS;
}

bool mongo_attempts_allow(struct mongo_attempts *attempts, const struct net_address *address,
                          struct slice name, int64_t now_ms)
{
    struct trying trying = trying_of(attempts, address, name);
    int64_t own = failures_in(trying.address, now_ms);

    if (is_known(&trying, now_ms))
        return failures_in(trying.pair, now_ms) < MONGO_ATTEMPTS_PAIR;
    return own < MONGO_ATTEMPTS_ADDRESS &&
           (!own || failures_in(trying.name, now_ms) < MONGO_ATTEMPTS_NAME);
}

/* Moves when all is forgotten by that much, not before now. */
static void failures_move(atomic_int_fast64_t *place, int64_t ms, int64_t now_ms)
{
    int_fast64_t until = atomic_load_explicit(place, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(place, &until,
                                                  (until > now_ms ? until : now_ms) + ms,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

void mongo_attempts_failed(struct mongo_attempts *attempts, const struct net_address *address,
                           struct slice name, int64_t now_ms)
{
    struct trying trying = trying_of(attempts, address, name);

    failures_move(trying.address, MONGO_ATTEMPTS_BACK_MS, now_ms);
    failures_move(trying.name, MONGO_ATTEMPTS_BACK_MS, now_ms);
    failures_move(trying.pair, MONGO_ATTEMPTS_BACK_MS, now_ms);
}

void mongo_attempts_succeeded(struct mongo_attempts *attempts, const struct net_address *address,
                              struct slice name, int64_t now_ms)
{
    struct trying trying = trying_of(attempts, address, name);
    int64_t until = atomic_exchange_explicit(trying.pair, 0, memory_order_relaxed);

    if (until > now_ms)
        failures_move(trying.address, now_ms - until, now_ms);
    atomic_store_explicit(trying.known, (int_fast64_t)((uint64_t)now_ms << TAG_BITS | trying.tag),
                          memory_order_relaxed);
}
