/* Both variants take the input in blocks, then the rest of a block with zeros behind it, then stir
 * the state until every bit of input has reached every bit of output. */
#include "partition/murmur.h"

#include "base/bytes.h"

enum { BLOCK_32 = 4, BLOCK_128 = 16 };

static inline uint32_t rotate_32(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static inline uint64_t rotate_64(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint32_t mix_32(uint32_t k)
{
    return rotate_32(k * 0xCC9E2D51u, 15) * 0x1B873593u;
}

static inline uint64_t mix_low(uint64_t k)
{
    return rotate_64(k * 0x87C37B91114253D5u, 31) * 0x4CF5AD432745937Fu;
}

static inline uint64_t mix_high(uint64_t k)
{
    return rotate_64(k * 0x4CF5AD432745937Fu, 33) * 0x87C37B91114253D5u;
}

static inline uint64_t stir_64(uint64_t h)
{
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53u;
    return h ^ h >> 33;
}

uint32_t murmur_32(struct slice bytes, uint32_t seed)
{
    uint32_t h = seed;
    size_t whole = bytes.len / BLOCK_32 * BLOCK_32;
    uint8_t rest[BLOCK_32] = {0};

    for (size_t at = 0; at < whole; at += BLOCK_32)
        h = rotate_32(h ^ mix_32(bytes_get_le32(bytes.data + at)), 13) * 5 + 0xE6546B64u;
    if (bytes.len > whole) {
        memcpy(rest, bytes.data + whole, bytes.len - whole);
        h ^= mix_32(bytes_get_le32(rest));
    }
    h ^= (uint32_t)bytes.len;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}

struct murmur_128 murmur_128(struct slice bytes, uint64_t seed)
{
    uint64_t low = seed, high = seed;
    size_t whole = bytes.len / BLOCK_128 * BLOCK_128;
    uint8_t rest[BLOCK_128] = {0};

    for (size_t at = 0; at < whole; at += BLOCK_128) {
        low ^= mix_low(bytes_get_le64(bytes.data + at));
        low = (rotate_64(low, 27) + high) * 5 + 0x52DCE729u;
        high ^= mix_high(bytes_get_le64(bytes.data + at + 8));
        high = (rotate_64(high, 31) + low) * 5 + 0x38495AB5u;
    }
    /* Zeros mix to zero, so the missing part of a block changes nothing. */
    if (bytes.len > whole) {
        memcpy(rest, bytes.data + whole, bytes.len - whole);
        high ^= mix_high(bytes_get_le64(rest + 8));
        low ^= mix_low(bytes_get_le64(rest));
    }
    low ^= bytes.len;
    high ^= bytes.len;
    low += high;
    high += low;
    low = stir_64(low);
    high = stir_64(high);
    low += high;
    high += low;
    return (struct murmur_128){.low = low, .high = high};
}
