/* The text is base64 of the MAC's first 16 bytes, then the bytes. What the MAC covers has lengths
 * before all of its parts, so that none can be taken for the beginning of the next. */
#include "front/rest/continuation.h"

#include "base/bytes.h"
#include "front/rest/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { MAC_LEN = 16 };

static void mac_of(const struct rest_call *call, struct slice rid, struct slice purpose,
                   struct slice bytes, uint8_t ret_mac[REST_SIGNATURE_LEN])
{
    uint8_t lengths[8];
    struct slice parts[] = {slice_of(lengths, sizeof lengths), rid, purpose, bytes};

    bytes_put_be32(lengths, (uint32_t)rid.len);
    bytes_put_be32(lengths + 4, (uint32_t)purpose.len);
    rest_signature(slice_of(call->options->seal, REST_SEAL_BYTES), parts, ARRAY_LEN(parts),
                   ret_mac);
}

/* The bytes of base64 text. OpenSSL counts what the padding stands for as bytes. */
static bool decoded(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes = arena_alloc(arena, text.len + 1);
    size_t padding = 0;
    int len;

    if (text.len == 0 || text.len % 4)
        return false;
    while (padding < 2 && text.data[text.len - 1 - padding] == '=')
        padding++;
    len = EVP_DecodeBlock(bytes, text.data, (int)text.len);
    if (len < (int)padding)
        return false;
    *ret_bytes = slice_of(bytes, (size_t)len - padding);
    return true;
}

struct slice rest_continuation_seal(struct rest_call *call, struct slice rid, struct slice purpose,
                                    struct slice bytes)
{
    uint8_t sealed[MAC_LEN + REST_CONTINUATION_BYTES_MAX], mac[REST_SIGNATURE_LEN];
    uint8_t *text = arena_alloc(call->arena, REST_CONTINUATION_TEXT_MAX + 1);
    int len;

    static_assert((sizeof sealed + 2) / 3 * 4 <= REST_CONTINUATION_TEXT_MAX, "it fits");

    assert(bytes.len <= REST_CONTINUATION_BYTES_MAX);
    mac_of(call, rid, purpose, bytes, mac);
    memcpy(sealed, mac, MAC_LEN);
    if (bytes.len)
        memcpy(sealed + MAC_LEN, bytes.data, bytes.len);
    len = EVP_EncodeBlock(text, sealed, (int)(MAC_LEN + bytes.len));
    return slice_of(text, (size_t)len);
}

bool rest_continuation_open(struct rest_call *call, struct slice rid, struct slice purpose,
                            struct slice text, struct slice *ret_bytes, struct error *err)
{
    uint8_t mac[REST_SIGNATURE_LEN];
    struct slice sealed;

    if (text.len > REST_CONTINUATION_TEXT_MAX || !decoded(text, call->arena, &sealed) ||
        sealed.len < MAC_LEN)
        return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
    mac_of(call, rid, purpose, slice_skip(sealed, MAC_LEN), mac);
    if (CRYPTO_memcmp(mac, sealed.data, MAC_LEN) != 0)
        return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
    *ret_bytes = slice_skip(sealed, MAC_LEN);
    return true;
}

void rest_continuation_answer(struct rest_call *call, struct slice text)
{
    rest_answer_header(call, SLICE("x-ms-continuation"), text);
}

bool rest_continuation_limit_check(const struct rest_call *call, struct error *err)
{
    struct slice limit = rest_call_header(call, REST_HEADER_CONTINUATION_LIMIT_KB);
    uint64_t kb;

    if (limit.data && (!slice_to_uint64(limit, &kb) || kb < 1))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-documentdb-responsecontinuationtokenlimitinkb must be 1 or more");
    return true;
}
