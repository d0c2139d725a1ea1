/* Credentials: which key of an account a client has shown that it knows.
 *
 * The user of a connection string is the account, the password one of its keys as base64. What
 * follows from a key is derived once and remembered. An account has a salt as made users have one,
 * and so has a name that nobody has: the first message of SCRAM does not tell them apart.
 * Any thread. */
#pragma once

#include "front/kit/key.h"
#include "front/mongo/auth/scram.h"

struct mongo_credentials; /* opaque, owned */

enum { MONGO_SEAL_BYTES = 32 };

/* seal: a secret of the server, of which salts are made. */
struct mongo_credentials *mongo_credentials_new(const uint8_t seal[MONGO_SEAL_BYTES]);
void mongo_credentials_free(struct mongo_credentials *credentials); /* NULL is fine */
CLEANUP_FN(struct mongo_credentials *, mongo_credentials_free)

/* The salt of a name that is no made user of the database; its length is mongo_salt_len. */
void mongo_credentials_salt(const struct mongo_credentials *credentials, enum mongo_scram scram,
                            struct slice user, struct slice database,
                            uint8_t ret_salt[MONGO_SALT_MAX]);

/* Which keys may be shown. */
struct mongo_candidates {
    struct slice user, database; /* as the client calls it, and where it authenticates */
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
