/* What was derived is found by a hash of what it was derived from, in a table of a fixed number of
 * places, where a later one takes the place of an earlier. */
#include "front/mongo/auth/credentials.h"

#include "base/memory.h"
#include "base/thread.h"
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { PLACES = 256 };

struct derived {
    uint8_t name[FRONT_SIGNATURE_LEN]; /* of mechanism and secret */
    struct mongo_scram_keys keys;
    bool used;
};

struct mongo_credentials {
    uint8_t seal[MONGO_SEAL_BYTES];
    struct mutex lock; /* of the places; a leaf */
    struct derived places[PLACES];
};

struct mongo_credentials *mongo_credentials_new(const uint8_t seal[MONGO_SEAL_BYTES])
{
    struct mongo_credentials *credentials = MEMORY_NEW(struct mongo_credentials);

    memcpy(credentials->seal, seal, MONGO_SEAL_BYTES);
    mutex_init(&credentials->lock);
    return credentials;
}

void mongo_credentials_free(struct mongo_credentials *credentials)
{
    if (!credentials)
        return;
    mutex_done(&credentials->lock);
    OPENSSL_cleanse(credentials, sizeof *credentials);
    memory_free(credentials);
}

void mongo_credentials_salt(const struct mongo_credentials *credentials, enum mongo_scram scram,
                            struct slice user, struct slice database,
                            uint8_t ret_salt[MONGO_SALT_MAX])
{
    const uint8_t mechanism = (uint8_t)scram;
    const struct slice parts[] = {SLICE("mongo scram salt 2"), slice_of(&mechanism, 1), database,
                                  SLICE("\0"), user};
    uint8_t salt[FRONT_SIGNATURE_LEN];

    static_assert((int)MONGO_SALT_MAX <= (int)FRONT_SIGNATURE_LEN,
                  "a salt is cut from a signature");
    front_signature(slice_of(credentials->seal, MONGO_SEAL_BYTES), parts, ARRAY_LEN(parts), salt);
    memcpy(ret_salt, salt, MONGO_SALT_MAX);
}

/* --- Deriving -------------------------------------------------------------------------------- */

static void derive(struct mongo_credentials *credentials, enum mongo_scram scram,
                   struct slice secret, struct slice salt, struct mongo_scram_keys *ret_keys)
{
    const uint8_t mechanism = (uint8_t)scram;
    const struct slice parts[] = {slice_of(&mechanism, 1), salt, secret};
    uint8_t name[FRONT_SIGNATURE_LEN];
    struct derived *place;
    bool found;

    front_signature(slice_of(credentials->seal, MONGO_SEAL_BYTES), parts, ARRAY_LEN(parts), name);
    place = &credentials->places[name[0]];
    mutex_lock(&credentials->lock);
    found = place->used && front_signature_equal(place->name, name);
    if (found)
        *ret_keys = place->keys;
    mutex_unlock(&credentials->lock);
    if (found)
        return;
    mongo_scram_derive(scram, secret, salt, mongo_iterations(scram), ret_keys);
    mutex_lock(&credentials->lock);
    memcpy(place->name, name, sizeof name);
    place->keys = *ret_keys;
    place->used = true;
    mutex_unlock(&credentials->lock);
}

/* --- Keys that count ------------------------------------------------------------------------- */

bool mongo_credentials_prove(struct mongo_credentials *credentials,
                             const struct mongo_candidates *candidates, enum mongo_scram scram,
                             struct slice signed_text, const struct mongo_scram_final *final,
                             struct front_key *ret_key, uint8_t ret_signature[MONGO_SCRAM_KEY_MAX])
{
    struct front_key keys[FRONT_KEYS_MAX];
    size_t count = front_key_list(candidates->account, candidates->dev, keys);
    uint8_t salt[MONGO_SALT_MAX];
    bool good = false;

    mongo_credentials_salt(credentials, scram, candidates->user, candidates->database, salt);
    for (size_t i = 0; i < count && !good; i++) {
        char text[ACCOUNT_KEY_TEXT_SIZE], digest[MONGO_SCRAM_DIGEST_LEN];
        struct mongo_scram_keys derived;
        struct slice secret;

        account_key_format(keys[i].secret, text);
        secret = slice_of_text(text);
        if (scram == MONGO_SCRAM_SHA_1) {
            mongo_scram_digest(candidates->user, secret, digest);
            secret = slice_of(digest, sizeof digest);
        }
        derive(credentials, scram, secret, slice_of(salt, mongo_salt_len(scram)), &derived);
        good = mongo_scram_check(scram, &derived, signed_text, final, ret_signature);
        if (good)
            *ret_key = keys[i];
        OPENSSL_cleanse(text, sizeof text);
        OPENSSL_cleanse(&derived, sizeof derived);
    }
    OPENSSL_cleanse(keys, sizeof keys);
    return good;
}
