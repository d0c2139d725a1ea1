/* OpenSSL 3's own HMAC looks its algorithm up by name on every use, which takes longer than hashing
 * the few hundred bytes that are signed. Its plain SHA-256 functions have no such cost; they are
 * called deprecated, but are what its providers use themselves. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

static_assert(FRONT_SIGNATURE_LEN == SHA256_DIGEST_LENGTH, "one digest");

void front_signature(struct slice key, const struct slice *parts, size_t count,
                     uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    uint8_t inner[SHA256_CBLOCK] = {0}, outer[SHA256_CBLOCK];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX hash;

    if (key.len > sizeof inner) {
        SHA256_Init(&hash);
        SHA256_Update(&hash, key.data, key.len);
        SHA256_Final(inner, &hash);
    } else if (key.len) {
        memcpy(inner, key.data, key.len);
    }
    for (size_t i = 0; i < sizeof inner; i++) {
        outer[i] = inner[i] ^ 0x5C;
        inner[i] ^= 0x36;
    }
    SHA256_Init(&hash);
    SHA256_Update(&hash, inner, sizeof inner);
    for (size_t i = 0; i < count; i++)
        if (parts[i].len)
            SHA256_Update(&hash, parts[i].data, parts[i].len);
    SHA256_Final(digest, &hash);
    SHA256_Init(&hash);
    SHA256_Update(&hash, outer, sizeof outer);
    SHA256_Update(&hash, digest, sizeof digest);
    SHA256_Final(ret_mac, &hash);
    OPENSSL_cleanse(inner, sizeof inner);
    OPENSSL_cleanse(outer, sizeof outer);
}

bool front_signature_equal(const uint8_t a[FRONT_SIGNATURE_LEN],
                           const uint8_t b[FRONT_SIGNATURE_LEN])
{
    return CRYPTO_memcmp(a, b, FRONT_SIGNATURE_LEN) == 0;
}
