/* SCRAM (RFC 5802, RFC 7677) as a server speaks it, without channel binding:
 *
 *     client first   n,,n=user,r=nonce
 *     server first   r=nonce and ours,s=salt,i=iterations
 *     client final   c=biws,r=nonce and ours,p=proof
 *     server final   v=signature
 *
 * Texts are borrowed, or in the arena. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

enum mongo_scram { MONGO_SCRAM_SHA_1, MONGO_SCRAM_SHA_256, MONGO_SCRAMS };

enum { MONGO_SCRAM_KEY_MAX = 32, MONGO_SCRAM_TEXT_MAX = 4096, MONGO_SALT_MAX = 28 };

/* What everybody gets: 16 bytes of salt and 10000 iterations, or 28 and 15000. */
size_t mongo_salt_len(enum mongo_scram scram);
uint32_t mongo_iterations(enum mongo_scram scram);

/* What a server has to know of a password. */
struct mongo_scram_keys {
    uint8_t stored[MONGO_SCRAM_KEY_MAX], server[MONGO_SCRAM_KEY_MAX];
};

/* Derives them; takes milliseconds. secret: what the mechanism makes of a password. */
void mongo_scram_derive(enum mongo_scram scram, struct slice secret, struct slice salt,
                        uint32_t iterations, struct mongo_scram_keys *ret_keys);

/* What SCRAM-SHA-1 takes for the password: hex(md5(user:mongo:password)). */
enum { MONGO_SCRAM_DIGEST_LEN = 32 };
void mongo_scram_digest(struct slice user, struct slice password,
                        char ret_text[MONGO_SCRAM_DIGEST_LEN]);

struct mongo_scram_first {
    struct slice user;  /* without escapes */
    struct slice nonce; /* of the client */
    struct slice bare;  /* n=user,r=nonce: what is signed of it */
};

/* False: it is none. */
NODISCARD bool mongo_scram_first_read(struct slice text, struct arena *arena,
                                      struct mongo_scram_first *ret_first);

/* The server's first message. nonce: all of it, the client's first. */
struct slice mongo_scram_challenge(struct slice nonce, struct slice salt, uint32_t iterations,
                                   struct arena *arena);

struct mongo_scram_final {
    struct slice nonce;
    struct slice unproved; /* all but the proof: what is signed of it */
    uint8_t proof[MONGO_SCRAM_KEY_MAX];
    size_t proof_len;
};

NODISCARD bool mongo_scram_final_read(struct slice text, struct mongo_scram_final *ret_final);

/* Whether the proof was made with the password. signed_text: client first bare, server first and
 * client final without proof, commas between them. On success the signature of the server. */
NODISCARD bool mongo_scram_check(enum mongo_scram scram, const struct mongo_scram_keys *keys,
                                 struct slice signed_text, const struct mongo_scram_final *final,
                                 uint8_t ret_signature[MONGO_SCRAM_KEY_MAX]);

/* "v=...", in the arena. */
struct slice mongo_scram_final_text(enum mongo_scram scram,
                                    const uint8_t signature[MONGO_SCRAM_KEY_MAX],
                                    struct arena *arena);

size_t mongo_scram_key_len(enum mongo_scram scram); /* 20 or 32 */
