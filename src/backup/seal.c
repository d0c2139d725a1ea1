/* All cryptography is OpenSSL's. A failure of it that is not about the bytes is a fault of the
 * machine, such as no memory, and ends the process as that does everywhere. */
#include "backup/seal.h"

#include "base/random.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>

enum {
    NONCE_LEN = 12,
    TAG_LEN = 16,
    KEY_FILE_LEAST = 16,
    PASSPHRASE_LEAST = 8,
    SCRYPT_N = 1 << 15,
    SCRYPT_R = 8,
    SCRYPT_P = 1,
    SCRYPT_MEMORY = 64 * 1024 * 1024,
};

static const char *const names[] = {
    [BACKUP_SEAL_NONE] = "none",
    [BACKUP_SEAL_KEY_FILE] = "key-file",
    [BACKUP_SEAL_PASSPHRASE] = "passphrase",
};

const char *backup_seal_name(enum backup_seal_kind kind)
{
    return names[kind];
}

bool backup_seal_parse(struct slice name, enum backup_seal_kind *ret_kind)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, slice_of_text(names[i]))) {
            *ret_kind = (enum backup_seal_kind)i;
            return true;
        }
    return false;
}

static void must(bool good)
{
    if (!good)
        abort();
}

static void key_derive(struct backup_seal *seal, struct slice secret)
{
    static const unsigned char purpose[] = "orrery backup 1";
    EVP_PKEY_CTX *context;
    size_t len = sizeof seal->key;

    if (seal->kind == BACKUP_SEAL_PASSPHRASE) {
        must(EVP_PBE_scrypt((const char *)secret.data, secret.len, seal->salt, sizeof seal->salt,
                            SCRYPT_N, SCRYPT_R, SCRYPT_P, SCRYPT_MEMORY, seal->key,
                            sizeof seal->key) == 1);
        return;
    }
    context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    must(context && EVP_PKEY_derive_init(context) == 1 &&
         EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
         EVP_PKEY_CTX_set1_hkdf_salt(context, seal->salt, sizeof seal->salt) == 1 &&
         EVP_PKEY_CTX_set1_hkdf_key(context, secret.data, (int)secret.len) == 1 &&
         EVP_PKEY_CTX_add1_hkdf_info(context, purpose, sizeof purpose - 1) == 1 &&
         EVP_PKEY_derive(context, seal->key, &len) == 1);
    EVP_PKEY_CTX_free(context);
}

bool backup_seal_init(struct backup_seal *seal, enum backup_seal_kind kind,
                      const uint8_t salt[BACKUP_SALT_LEN], struct slice secret, struct error *err)
{
    memset(seal, 0, sizeof *seal);
    seal->kind = kind;
    if (kind == BACKUP_SEAL_NONE)
        return true;
    memcpy(seal->salt, salt, sizeof seal->salt);
    if (kind == BACKUP_SEAL_KEY_FILE && secret.len < KEY_FILE_LEAST)
        return error_set(err, ERROR_BAD_REQUEST, "a key file has at least %d bytes",
                         KEY_FILE_LEAST);
    if (kind == BACKUP_SEAL_PASSPHRASE && secret.len < PASSPHRASE_LEAST)
        return error_set(err, ERROR_BAD_REQUEST, "a passphrase has at least %d characters",
                         PASSPHRASE_LEAST);
    key_derive(seal, secret);
    return true;
}

void backup_seal_done(struct backup_seal *seal)
{
    OPENSSL_cleanse(seal, sizeof *seal);
}

void backup_seal_check(const struct backup_seal *seal, struct slice bytes,
                       uint8_t ret_check[BACKUP_CHECK_LEN])
{
    unsigned len = BACKUP_CHECK_LEN;

    assert(seal->kind != BACKUP_SEAL_NONE);
    must(HMAC(EVP_sha256(), seal->key, sizeof seal->key, bytes.data, bytes.len, ret_check, &len));
}

void backup_seal_close(const struct backup_seal *seal, struct slice name, struct slice bytes,
                       struct buf *out)
{
    EVP_CIPHER_CTX *context;
    uint8_t *nonce, *tag;
    int len;

    if (seal->kind == BACKUP_SEAL_NONE) {
        buf_append_slice(out, bytes);
        return;
    }
    if (!buf_reserve(out, BACKUP_SEAL_EXTRA + bytes.len))
        return;
    nonce = out->data + out->len;
    tag = nonce + NONCE_LEN;
    random_secret(nonce, NONCE_LEN);
    context = EVP_CIPHER_CTX_new();
    must(context && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, seal->key, nonce) == 1 &&
         EVP_EncryptUpdate(context, NULL, &len, name.data, (int)name.len) == 1 &&
         EVP_EncryptUpdate(context, tag + TAG_LEN, &len, bytes.data, (int)bytes.len) == 1 &&
         EVP_EncryptFinal_ex(context, tag + TAG_LEN + len, &len) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_LEN, tag) == 1);
    EVP_CIPHER_CTX_free(context);
    out->len += BACKUP_SEAL_EXTRA + bytes.len;
}

bool backup_seal_open(const struct backup_seal *seal, struct slice name, struct slice sealed,
                      struct buf *out, struct error *err)
{
    size_t bytes = sealed.len - MIN(sealed.len, (size_t)BACKUP_SEAL_EXTRA);
    EVP_CIPHER_CTX *context;
    bool good;
    int len;

    if (seal->kind == BACKUP_SEAL_NONE) {
        buf_append_slice(out, sealed);
        return true;
    }
    /* One more: where nothing is sealed there has to be somewhere to put it all the same. */
    if (sealed.len < BACKUP_SEAL_EXTRA || !buf_reserve(out, bytes + 1))
        return error_set(err, ERROR_STORE_CORRUPT, "\"%.*s\" is cut off or too long",
                         SLICE_ARG(name));
    context = EVP_CIPHER_CTX_new();
    must(context &&
         EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, seal->key, sealed.data) == 1);
    good = EVP_DecryptUpdate(context, NULL, &len, name.data, (int)name.len) == 1 &&
           EVP_DecryptUpdate(context, out->data + out->len, &len, sealed.data + BACKUP_SEAL_EXTRA,
                             (int)bytes) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_LEN,
                               (void *)(sealed.data + NONCE_LEN)) == 1 &&
           EVP_DecryptFinal_ex(context, out->data + out->len + len, &len) == 1;
    EVP_CIPHER_CTX_free(context);
    if (!good)
        return error_set(err, ERROR_STORE_CORRUPT, "\"%.*s\" is not what was sealed",
                         SLICE_ARG(name));
    out->len += bytes;
    return true;
}
