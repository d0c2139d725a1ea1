/* Random: bytes nobody can guess (keys, tokens, ids), and a seeded sequence for tests and for
 * spreading load, which must be repeatable and fast but no secret. */
#pragma once

#include "base/attrs.h"

/* From the operating system; cannot fail on a kernel we run on. */
void random_secret(void *ret_bytes, size_t len);

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit); /* 0 .. limit-1; limit > 0 */

/* A version 4 UUID as 36 characters and a NUL, from secret bytes. */
enum { RANDOM_UUID_SIZE = 37 };
void random_uuid(char ret_text[RANDOM_UUID_SIZE]);

/* The same of bytes at hand: for ids that need not be secret and are wanted by the thousand. */
void random_uuid_of(const uint8_t bytes[16], char ret_text[RANDOM_UUID_SIZE]);
