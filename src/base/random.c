/* The seeded sequence is xoshiro256** started by splitmix64, both public domain designs of Blackman
 * and Vigna: 4 words of state, no tables, passes the usual batteries. */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

void random_secret(void *ret_bytes, size_t len)
{
    uint8_t *at = ret_bytes;

    while (len) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0) {
            assert(errno == EINTR);
            continue;
        }
        at += got;
        len -= (size_t)got;
    }
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void random_seed(struct random *random, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(random->state); i++)
        random->state[i] = splitmix(&seed);
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    assert(limit > 0);
    return (uint64_t)(((unsigned __int128)random_next(random) * limit) >> 64);
}

void random_uuid(char ret_text[RANDOM_UUID_SIZE])
{
    uint8_t bytes[16];

    random_secret(bytes, sizeof bytes);
    random_uuid_of(bytes, ret_text);
}

void random_uuid_of(const uint8_t given[16], char ret_text[RANDOM_UUID_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t bytes[16];
    size_t at = 0;

    memcpy(bytes, given, sizeof bytes);
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            ret_text[at++] = '-';
        ret_text[at++] = hex[bytes[i] >> 4];
        ret_text[at++] = hex[bytes[i] & 15];
    }
    ret_text[at] = '\0';
}
