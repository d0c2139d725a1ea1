/* MurmurHash3: the hashes that effective partition keys are made of.
 *
 * Bit for bit the published algorithms, on any byte order and alignment. They spread keys well and
 * are quick; they keep no secret, so a client can choose keys that share a partition. */
#pragma once

#include "base/slice.h"

/* The variant x86_32. */
uint32_t murmur_32(struct slice bytes, uint32_t seed);

/* The variant x64_128: two halves, of which the published form writes low first. */
struct murmur_128 {
    uint64_t low, high;
};

struct murmur_128 murmur_128(struct slice bytes, uint64_t seed);
