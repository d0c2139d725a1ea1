#include "front/kit/key.h"

#include <openssl/crypto.h>

/* With --dev the public key comes first: it is what most clients have there. */
size_t front_key_list(const struct front_account *account, bool dev,
                      struct front_key ret_keys[FRONT_KEYS_MAX])
{
    const struct account_keys *own = account->keys;
    size_t count = 0;

    if (dev && account_key_parse(slice_of_text(account_key_emulator), ret_keys[0].secret)) {
        ret_keys[0].readonly = false;
        ret_keys[0].public_key = true;
        count = 1;
    }
    for (size_t i = 0; own && !account->missing && i < ACCOUNT_KEYS; i++) {
        bool readonly = account_key_is_readonly((enum account_key)i);

        if (readonly && !account->account)
            continue;
        memcpy(ret_keys[count].secret, own->secrets[i], ACCOUNT_KEY_BYTES);
        ret_keys[count].readonly = readonly;
        ret_keys[count++].public_key = false;
    }
    return count;
}

bool front_key_find(const struct front_account *account, bool dev, struct slice password,
                    struct front_key *ret_key)
{
    struct front_key keys[FRONT_KEYS_MAX];
    uint8_t secret[ACCOUNT_KEY_BYTES];
    bool good = false;
    size_t count;

    if (!account_key_parse(password, secret))
        return false;
    count = front_key_list(account, dev, keys);
    for (size_t i = 0; i < count && !good; i++) {
        good = CRYPTO_memcmp(secret, keys[i].secret, sizeof secret) == 0;
        if (good)
            *ret_key = keys[i];
    }
    OPENSSL_cleanse(keys, sizeof keys);
    OPENSSL_cleanse(secret, sizeof secret);
    return good;
}

bool front_key_holds(const struct front_key *key, const struct front_account *account)
{
    if (key->public_key)
        return true;
    for (size_t i = 0; account->keys && i < ACCOUNT_KEYS; i++)
        if (account_key_is_readonly((enum account_key)i) == key->readonly &&
            CRYPTO_memcmp(account->keys->secrets[i], key->secret, ACCOUNT_KEY_BYTES) == 0)
            return true;
    return false;
}
