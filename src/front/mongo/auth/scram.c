#include "front/mongo/auth/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static const EVP_MD *digest_of(enum mongo_scram scram)
{
    return scram == MONGO_SCRAM_SHA_1 ? EVP_sha1() : EVP_sha256();
}

size_t mongo_scram_key_len(enum mongo_scram scram)
{
    return scram == MONGO_SCRAM_SHA_1 ? 20 : 32;
}

static void mac(enum mongo_scram scram, const uint8_t *key, struct slice text, uint8_t *ret_mac)
{
    unsigned len = MONGO_SCRAM_KEY_MAX;

    HMAC(digest_of(scram), key, (int)mongo_scram_key_len(scram), text.data, text.len, ret_mac,
         &len);
}

static void hash(enum mongo_scram scram, const uint8_t *bytes, uint8_t *ret_hash)
{
    unsigned len = MONGO_SCRAM_KEY_MAX;

    EVP_Digest(bytes, mongo_scram_key_len(scram), ret_hash, &len, digest_of(scram), NULL);
}

void mongo_scram_derive(enum mongo_scram scram, struct slice secret, struct slice salt,
                        uint32_t iterations, struct mongo_scram_keys *ret_keys)
{
    uint8_t salted[MONGO_SCRAM_KEY_MAX], client[MONGO_SCRAM_KEY_MAX];

    PKCS5_PBKDF2_HMAC((const char *)secret.data, (int)secret.len, salt.data, (int)salt.len,
                      (int)iterations, digest_of(scram), (int)mongo_scram_key_len(scram), salted);
    mac(scram, salted, SLICE("Client Key"), client);
    hash(scram, client, ret_keys->stored);
    mac(scram, salted, SLICE("Server Key"), ret_keys->server);
    OPENSSL_cleanse(salted, sizeof salted);
    OPENSSL_cleanse(client, sizeof client);
}

void mongo_scram_digest(struct slice user, struct slice password,
                        char ret_text[MONGO_SCRAM_DIGEST_LEN])
{
    static const char hex[] = "0123456789abcdef";
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    uint8_t sum[16];
    unsigned len;

    EVP_DigestInit_ex(context, EVP_md5(), NULL);
    EVP_DigestUpdate(context, user.data, user.len);
    EVP_DigestUpdate(context, ":mongo:", 7);
    EVP_DigestUpdate(context, password.data, password.len);
    EVP_DigestFinal_ex(context, sum, &len);
    EVP_MD_CTX_free(context);
    for (int i = 0; i < 16; i++) {
        ret_text[2 * i] = hex[sum[i] >> 4];
        ret_text[2 * i + 1] = hex[sum[i] & 15];
    }
}

/* --- What clients say ------------------------------------------------------------------------ */

/* The value of the attribute at the beginning of rest, up to a comma. */
static bool attribute_cut(struct slice *rest, uint8_t name, struct slice *ret_value)
{
    struct slice value, tail;

    if (rest->len < 2 || rest->data[0] != name || rest->data[1] != '=')
        return false;
    if (!slice_split(slice_skip(*rest, 2), ',', &value, &tail)) {
        value = slice_skip(*rest, 2);
        tail = SLICE_NONE;
    }
    *ret_value = value;
    *rest = tail;
    return true;
}

/* =2C is a comma, =3D an equals sign, and nothing else may follow one. */
static bool name_unescape(struct slice text, struct arena *arena, struct slice *ret_name)
{
    uint8_t *name = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '=') {
            name[len++] = text.data[i];
            continue;
        }
        if (text.len - i < 3)
            return false;
        if (memcmp(text.data + i, "=2C", 3) == 0)
            name[len++] = ',';
        else if (memcmp(text.data + i, "=3D", 3) == 0)
            name[len++] = '=';
        else
            return false;
        i += 2;
    }
    *ret_name = slice_of(name, len);
    return len > 0;
}

bool mongo_scram_first_read(struct slice text, struct arena *arena,
                            struct mongo_scram_first *ret_first)
{
    struct slice rest, name;

    /* no channel binding, and nobody acts for another */
    if (text.len > MONGO_SCRAM_TEXT_MAX || !slice_starts_with(text, SLICE("n,,")))
        return false;
    rest = ret_first->bare = slice_skip(text, 3);
    return attribute_cut(&rest, 'n', &name) && name_unescape(name, arena, &ret_first->user) &&
           attribute_cut(&rest, 'r', &ret_first->nonce) && ret_first->nonce.len > 0;
}

struct slice mongo_scram_challenge(struct slice nonce, struct slice salt, uint32_t iterations,
                                   struct arena *arena)
{
    char base64[128];

    assert(salt.len <= 64);
    EVP_EncodeBlock((uint8_t *)base64, salt.data, (int)salt.len);
    return arena_printf(arena, "r=%.*s,s=%s,i=%u", SLICE_ARG(nonce), base64, iterations);
}

static bool proof_decode(struct slice text, struct mongo_scram_final *final)
{
    uint8_t bytes[MONGO_SCRAM_KEY_MAX + 4];
    size_t padding = 0;
    int len;

    if (text.len == 0 || text.len % 4 || text.len > 44)
        return false;
    len = EVP_DecodeBlock(bytes, text.data, (int)text.len);
    while (padding < 2 && text.data[text.len - 1 - padding] == '=')
        padding++;
    if (len < 0 || (size_t)len - padding > MONGO_SCRAM_KEY_MAX)
        return false;
    final->proof_len = (size_t)len - padding;
    memcpy(final->proof, bytes, final->proof_len);
    return true;
}

bool mongo_scram_final_read(struct slice text, struct mongo_scram_final *ret_final)
{
    struct slice rest = text, binding, proof;

    if (text.len > MONGO_SCRAM_TEXT_MAX || !attribute_cut(&rest, 'c', &binding) ||
        !slice_equal(binding, SLICE("biws")) || !attribute_cut(&rest, 'r', &ret_final->nonce) ||
        !rest.len || !attribute_cut(&rest, 'p', &proof) || rest.len)
        return false;
    /* ",p=" and the proof are the end of the text */
    ret_final->unproved = slice_first(text, text.len - proof.len - 3);
    return proof_decode(proof, ret_final);
}

/* --- What follows from it -------------------------------------------------------------------- */

bool mongo_scram_check(enum mongo_scram scram, const struct mongo_scram_keys *keys,
                       struct slice signed_text, const struct mongo_scram_final *final,
                       uint8_t ret_signature[MONGO_SCRAM_KEY_MAX])
{
    uint8_t signature[MONGO_SCRAM_KEY_MAX], client[MONGO_SCRAM_KEY_MAX];
    uint8_t stored[MONGO_SCRAM_KEY_MAX];
    size_t len = mongo_scram_key_len(scram);

    if (final->proof_len != len)
        return false;
    mac(scram, keys->stored, signed_text, signature);
    for (size_t i = 0; i < len; i++)
        client[i] = final->proof[i] ^ signature[i];
    hash(scram, client, stored);
    OPENSSL_cleanse(client, sizeof client);
    if (CRYPTO_memcmp(stored, keys->stored, len) != 0)
        return false;
    mac(scram, keys->server, signed_text, ret_signature);
    return true;
}

struct slice mongo_scram_final_text(enum mongo_scram scram,
                                    const uint8_t signature[MONGO_SCRAM_KEY_MAX],
                                    struct arena *arena)
{
    char base64[64];

    EVP_EncodeBlock((uint8_t *)base64, signature, (int)mongo_scram_key_len(scram));
    return arena_printf(arena, "v=%s", base64);
}

size_t mongo_salt_len(enum mongo_scram scram)
{
    return scram == MONGO_SCRAM_SHA_1 ? 16 : MONGO_SALT_MAX;
}

uint32_t mongo_iterations(enum mongo_scram scram)
{
    return scram == MONGO_SCRAM_SHA_1 ? 10000 : 15000;
}
