/* The text of a token, behind "type=resource&ver=1&sig=":
 *
 *     base64 of the first half of the MAC ; base64 of the claim ; base64 of the other half ; */
#include "front/kit/token.h"

#include "base/bytes.h"
#include "catalogue/account_keys.h"
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum {
    CLAIM_TEXT_LEN = 84,
    HALF_LEN = FRONT_SIGNATURE_LEN / 2,
    HALF_TEXT_LEN = 24,
    SIG_LEN = HALF_TEXT_LEN + 1 + CLAIM_TEXT_LEN + 1 + HALF_TEXT_LEN + 1,
};

/* A secret of its own, so that no signature of a request can ever pass for one of a token. */
static void claim_sign(const struct account_keys *keys, const uint8_t claim[FRONT_TOKEN_CLAIM_LEN],
                       uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    const struct slice purpose = SLICE("orrery resource token 1"),
                       text = slice_of(claim, FRONT_TOKEN_CLAIM_LEN);
    uint8_t secret[FRONT_SIGNATURE_LEN];

    front_signature(slice_of(keys->secrets[ACCOUNT_KEY_PRIMARY], ACCOUNT_KEY_BYTES), &purpose, 1,
                    secret);
    front_signature(slice_of(secret, sizeof secret), &text, 1, ret_mac);
    OPENSSL_cleanse(secret, sizeof secret);
}

static bool base64_decode(struct slice text, size_t len, uint8_t *ret_bytes)
{
    uint8_t decoded[CLAIM_TEXT_LEN];

    if (text.len > sizeof decoded ||
        EVP_DecodeBlock(decoded, text.data, (int)text.len) != (int)(text.len / 4 * 3))
        return false;
    memcpy(ret_bytes, decoded, len);
    return true;
}

static bool sig_decode(struct slice sig, uint8_t ret_claim[FRONT_TOKEN_CLAIM_LEN],
                       uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    const uint8_t *at = sig.data;

    return sig.len == SIG_LEN && at[HALF_TEXT_LEN] == ';' &&
           at[HALF_TEXT_LEN + 1 + CLAIM_TEXT_LEN] == ';' && at[SIG_LEN - 1] == ';' &&
           base64_decode(slice_of(at, HALF_TEXT_LEN), HALF_LEN, ret_mac) &&
           base64_decode(slice_of(at + HALF_TEXT_LEN + 1, CLAIM_TEXT_LEN), FRONT_TOKEN_CLAIM_LEN,
                         ret_claim) &&
           base64_decode(slice_of(at + SIG_LEN - 1 - HALF_TEXT_LEN, HALF_TEXT_LEN), HALF_LEN,
                         ret_mac + HALF_LEN) &&
           ret_claim[0] == FRONT_TOKEN_VERSION;
}

struct slice front_token_make(const struct account_keys *keys,
                              const uint8_t claim[FRONT_TOKEN_CLAIM_LEN], struct arena *arena)
{
    uint8_t mac[FRONT_SIGNATURE_LEN];
    unsigned char first[HALF_TEXT_LEN + 1], text[CLAIM_TEXT_LEN + 1], second[HALF_TEXT_LEN + 1];

    claim_sign(keys, claim, mac);
    EVP_EncodeBlock(first, mac, HALF_LEN);
    EVP_EncodeBlock(text, claim, FRONT_TOKEN_CLAIM_LEN);
    EVP_EncodeBlock(second, mac + HALF_LEN, HALF_LEN);
    return arena_printf(arena, "type=resource&ver=1&sig=%s;%s;%s;", first, text, second);
}

bool front_token_open(const struct front_account *account, struct slice sig,
                      uint8_t ret_claim[FRONT_TOKEN_CLAIM_LEN], struct error *err)
{
    uint8_t mac[FRONT_SIGNATURE_LEN], expected[FRONT_SIGNATURE_LEN];

    if (!sig_decode(sig, ret_claim, mac))
        return error_set(err, ERROR_UNAUTHORIZED, "the resource token is malformed");
    claim_sign(account->keys, ret_claim, expected);
    if (!front_signature_equal(expected, mac) || !account->account ||
        bytes_get_be32(ret_claim + 1) != account_info(account->account)->number)
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the resource token was not made by this account, or its primary key was "
                         "rotated since");
    return true;
}
