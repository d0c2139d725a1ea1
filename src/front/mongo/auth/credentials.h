/* Credentials: which key of an account a client has shown that it knows.
 *
 * The user of a connection string is the account, the password one of its keys as base64. Keys are
 * 64 random bytes, so the salt need not differ from user to user, and the least number of
 * iterations that clients take is enough; what follows from a key is derived once and remembered.
 * Any thread. */
#pragma once

#include "front/kit/key.h"
#include "front/mongo/auth/scram.h"

struct mongo_credentials; /* opaque, owned */

enum { MONGO_SEAL_BYTES = 32, MONGO_SALT_LEN = 16, MONGO_ITERATIONS = 4096 };

/* seal: a secret of the server, of which the salt is made. */
struct mongo_credentials *mongo_credentials_new(const uint8_t seal[MONGO_SEAL_BYTES]);
void mongo_credentials_free(struct mongo_credentials *credentials); /* NULL is fine */
CLEANUP_FN(struct mongo_credentials *, mongo_credentials_free)

struct slice mongo_credentials_salt(const struct mongo_credentials *credentials);

/* Which keys may be shown. */
struct mongo_candidates {
    struct slice user; /* as the client calls it */
    const struct front_account *account;
    bool dev; /* the emulator's key counts too */
};

/* One that is good for the proof, and the signature for the answer. Takes milliseconds where
 * something is to be derived. */
NODISCARD bool mongo_credentials_prove(struct mongo_credentials *credentials,
                                       const struct mongo_candidates *candidates,
                                       enum mongo_scram scram, struct slice signed_text,
                                       const struct mongo_scram_final *final,
                                       struct front_key *ret_key,
                                       uint8_t ret_signature[MONGO_SCRAM_KEY_MAX]);
