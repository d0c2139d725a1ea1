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
    uint8_t salt[MONGO_SALT_LEN];
    struct mutex lock; /* of the places; a leaf */
    struct derived places[PLACES];
};

struct mongo_credentials *mongo_credentials_new(const uint8_t seal[MONGO_SEAL_BYTES])
{
    struct mongo_credentials *credentials = MEMORY_NEW(struct mongo_credentials);
    const struct slice purpose = SLICE("mongo scram salt 1");
    uint8_t salt[FRONT_SIGNATURE_LEN];

    memcpy(credentials->seal, seal, MONGO_SEAL_BYTES);
    front_signature(slice_of(seal, MONGO_SEAL_BYTES), &purpose, 1, salt);
    memcpy(credentials->salt, salt, MONGO_SALT_LEN);
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

struct slice mongo_credentials_salt(const struct mongo_credentials *credentials)
{
    return slice_of(credentials->salt, MONGO_SALT_LEN);
}

/* --- Deriving -------------------------------------------------------------------------------- */

static void derive(struct mongo_credentials *credentials, enum mongo_scram scram,
                   struct slice secret, struct mongo_scram_keys *ret_keys)
{
    const uint8_t mechanism = (uint8_t)scram;
    const struct slice parts[] = {slice_of(&mechanism, 1), secret};
    uint8_t name[FRONT_SIGNATURE_LEN];
    struct derived *place;
    bool found;

    front_signature(slice_of(credentials->seal, MONGO_SEAL_BYTES), parts, 2, name);
    place = &credentials->places[name[0]];
    mutex_lock(&credentials->lock);
    found = place->used && front_signature_equal(place->name, name);
    if (found)
        *ret_keys = place->keys;
    mutex_unlock(&credentials->lock);
    if (found)
        return;
    mongo_scram_derive(scram, secret, mongo_credentials_salt(credentials), MONGO_ITERATIONS,
                       ret_keys);
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
    bool good = false;

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
        derive(credentials, scram, secret, &derived);
        good = mongo_scram_check(scram, &derived, signed_text, final, ret_signature);
        if (good)
            *ret_key = keys[i];
        OPENSSL_cleanse(text, sizeof text);
        OPENSSL_cleanse(&derived, sizeof derived);
    }
    OPENSSL_cleanse(keys, sizeof keys);
    return good;
}
