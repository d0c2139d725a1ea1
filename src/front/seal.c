/* The text is base64 of the MAC's first 16 bytes, then the bytes. What the MAC covers has lengths
 * before all of its parts, so that none can be taken for the beginning of the next. */
#include "front/seal.h"

#include "base/bytes.h"
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { MAC_LEN = 16 };

static void mac_of(const struct front_seal *seal, struct slice bytes,
                   uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    uint8_t lengths[8];
    struct slice parts[] = {slice_of(lengths, sizeof lengths), seal->rid, seal->purpose, bytes};

    bytes_put_be32(lengths, (uint32_t)seal->rid.len);
    bytes_put_be32(lengths + 4, (uint32_t)seal->purpose.len);
    front_signature(seal->secret, parts, ARRAY_LEN(parts), ret_mac);
}

/* OpenSSL takes blanks around the text, and counts what the padding stands for as bytes. */
bool front_base64_decode(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes = arena_alloc(arena, text.len + 1);
    size_t padding = 0;
    int len;

    if (text.len == 0) {
        *ret_bytes = slice_of(bytes, 0);
        return true;
    }
    if (text.len % 4 || text.len > INT32_MAX)
        return false;
    while (padding < 2 && text.data[text.len - 1 - padding] == '=')
        padding++;
    len = EVP_DecodeBlock(bytes, text.data, (int)text.len);
    if (len < (int)padding || (size_t)len != text.len / 4 * 3)
        return false;
    *ret_bytes = slice_of(bytes, (size_t)len - padding);
    return true;
}

struct slice front_seal_close(const struct front_seal *seal, struct slice bytes,
                              struct arena *arena)
{
    uint8_t sealed[MAC_LEN + FRONT_SEAL_BYTES_MAX], mac[FRONT_SIGNATURE_LEN];
    uint8_t *text = arena_alloc(arena, FRONT_SEAL_TEXT_MAX + 1);
    int len;

    static_assert((sizeof sealed + 2) / 3 * 4 <= FRONT_SEAL_TEXT_MAX, "it fits");

    assert(bytes.len <= FRONT_SEAL_BYTES_MAX);
    mac_of(seal, bytes, mac);
    memcpy(sealed, mac, MAC_LEN);
    if (bytes.len)
        memcpy(sealed + MAC_LEN, bytes.data, bytes.len);
    len = EVP_EncodeBlock(text, sealed, (int)(MAC_LEN + bytes.len));
    return slice_of(text, (size_t)len);
}

bool front_seal_open(const struct front_seal *seal, struct slice text, struct arena *arena,
                     struct slice *ret_bytes)
{
    uint8_t mac[FRONT_SIGNATURE_LEN];
    struct slice sealed;

    if (text.len > FRONT_SEAL_TEXT_MAX || !front_base64_decode(text, arena, &sealed) ||
        sealed.len < MAC_LEN)
        return false;
    mac_of(seal, slice_skip(sealed, MAC_LEN), mac);
    if (CRYPTO_memcmp(mac, sealed.data, MAC_LEN) != 0)
        return false;
    *ret_bytes = slice_skip(sealed, MAC_LEN);
    return true;
}
