/* Keys as bytes, as text and as BSON. The store keeps them as they are, for requests are signed
 * with the key itself and a digest would not do; who can read the store can read the items too. */
#include "catalogue/account_keys.h"

#include "base/random.h"
#include "document/bson.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

static const char *const names[ACCOUNT_KEYS] = {
    [ACCOUNT_KEY_PRIMARY] = "primary",
    [ACCOUNT_KEY_SECONDARY] = "secondary",
    [ACCOUNT_KEY_PRIMARY_READONLY] = "primary-readonly",
    [ACCOUNT_KEY_SECONDARY_READONLY] = "secondary-readonly",
};

const char account_key_emulator[ACCOUNT_KEY_TEXT_SIZE] =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

void account_keys_make(struct account_keys *ret_keys)
{
    random_secret(ret_keys->secrets, sizeof ret_keys->secrets);
}

void account_keys_rotate(struct account_keys *keys, enum account_key which)
{
    random_secret(keys->secrets[which], ACCOUNT_KEY_BYTES);
}

void account_keys_done(struct account_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof *keys);
}

const char *account_key_name(enum account_key which)
{
    return names[which];
}

bool account_key_named(struct slice name, enum account_key *ret_which)
{
    for (size_t i = 0; i < ACCOUNT_KEYS; i++)
        if (slice_equal(name, slice_of_text(names[i]))) {
            *ret_which = (enum account_key)i;
            return true;
        }
    return false;
}

bool account_key_is_readonly(enum account_key which)
{
    return which == ACCOUNT_KEY_PRIMARY_READONLY || which == ACCOUNT_KEY_SECONDARY_READONLY;
}

void account_key_format(const uint8_t secret[ACCOUNT_KEY_BYTES],
                        char ret_text[ACCOUNT_KEY_TEXT_SIZE])
{
    EVP_EncodeBlock((unsigned char *)ret_text, secret, ACCOUNT_KEY_BYTES);
}

/* The decoder takes blanks around the text and padding in odd places: what it gave must be the text
 * again. */
bool account_key_parse(struct slice text, uint8_t ret_secret[ACCOUNT_KEY_BYTES])
{
    uint8_t decoded[ACCOUNT_KEY_TEXT_SIZE];
    char again[ACCOUNT_KEY_TEXT_SIZE];
    bool good = text.len == ACCOUNT_KEY_TEXT_SIZE - 1 &&
                EVP_DecodeBlock(decoded, text.data, (int)text.len) == ACCOUNT_KEY_BYTES + 2;

    if (good) {
        account_key_format(decoded, again);
        good = CRYPTO_memcmp(again, text.data, text.len) == 0;
    }
    if (good)
        memcpy(ret_secret, decoded, ACCOUNT_KEY_BYTES);
    OPENSSL_cleanse(decoded, sizeof decoded);
    OPENSSL_cleanse(again, sizeof again);
    return good;
}

void account_keys_append(struct buf *buf, struct slice property, const struct account_keys *keys)
{
    size_t begin = document_append_object_begin(buf, property);

    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        struct document_value secret = {
            .type = DOCUMENT_BINARY,
            .binary = {.bytes = slice_of(keys->secrets[i], ACCOUNT_KEY_BYTES)}};

        document_append(buf, slice_of_text(names[i]), &secret);
    }
    document_end(buf, begin);
}

bool account_keys_read(struct slice object, struct account_keys *ret_keys, struct error *err)
{
    CLEANUP(account_keys_done) struct account_keys keys = {0};
    struct document_value secret;

    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        if (!document_find(object, slice_of_text(names[i]), &secret) ||
            secret.type != DOCUMENT_BINARY || secret.binary.bytes.len != ACCOUNT_KEY_BYTES)
            return error_set(err, ERROR_STORE_CORRUPT,
                             "the catalogue holds an account whose %s key is damaged", names[i]);
        memcpy(keys.secrets[i], secret.binary.bytes.data, ACCOUNT_KEY_BYTES);
    }
    *ret_keys = keys;
    return true;
}
