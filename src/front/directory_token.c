#include "front/directory_token.h"

#include "document/json.h"
#include "front/seal.h"

#include <openssl/crypto.h>

enum { PART_BYTES_MAX = 16 * 1024 };

/* base64url, or base64 as the test credential of .NET has it: of either the digits, with or without
 * padding. */
static bool part_decode(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    size_t padded = (text.len + 3) / 4 * 4;
    uint8_t *plain;

    if (text.len == 0 || text.len > PART_BYTES_MAX || text.len % 4 == 1 ||
        (text.len % 4 && memchr(text.data, '=', text.len)))
        return false;
    plain = arena_alloc(arena, padded);
    for (size_t i = 0; i < text.len; i++)
        plain[i] = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i];
    memset(plain + text.len, '=', padded - text.len);
    return front_base64_decode(slice_of(plain, padded), arena, ret_bytes);
}

static bool object_decode(struct slice text, struct arena *arena, struct slice *ret_object)
{
    const struct document_limits limits = {.depth_max = 32, .bytes_max = PART_BYTES_MAX};
    CLEANUP(buf_done) struct buf object;
    struct error ignored;
    struct slice bytes;

    buf_init(&object, 4 * PART_BYTES_MAX);
    if (!part_decode(text, arena, &bytes) || !document_json_read(bytes, &limits, &object, &ignored))
        return false;
    *ret_object = arena_copy(arena, buf_slice(&object));
    return true;
}

static bool seconds_find(struct slice object, struct slice name, double *ret_seconds)
{
    struct document_value value;

    return document_find(object, name, &value) && document_to_double(&value, ret_seconds);
}

static bool texts_equal(struct slice text, const char *key)
{
    return text.len == strlen(key) && CRYPTO_memcmp(text.data, key, text.len) == 0;
}

static bool key_is(const struct front_directory_token *token, struct slice text, bool *ret_readonly)
{
    char own[ACCOUNT_KEY_TEXT_SIZE];
    bool found = false;

    *ret_readonly = false;
    for (const char *const *key = token->public_keys; *key; key++)
        if (texts_equal(text, *key))
            return true;
    for (size_t i = 0; token->keys && !found && i < ACCOUNT_KEYS; i++) {
        account_key_format(token->keys->secrets[i], own);
        found = texts_equal(text, own);
        *ret_readonly = found && account_key_is_readonly((enum account_key)i);
    }
    OPENSSL_cleanse(own, sizeof own);
    return found;
}

const char *front_directory_token_refused(const struct front_directory_token *token,
                                          struct arena *arena, bool *ret_readonly)
{
    struct slice head, claims, third, rest, header, body, key;
    struct document_value algorithm;
    double begin, end;

    if (!token->dev || !net_address_is_loopback(token->peer))
        return "directory (Entra) tokens are not supported: use an account key or a resource "
               "token. Only a server with --dev takes those of the emulator's test credentials, "
               "from clients of its own machine";
    if (!slice_split(token->text, '.', &head, &rest) || !slice_split(rest, '.', &claims, &third) ||
        !object_decode(head, arena, &header) || !object_decode(claims, arena, &body) ||
        !part_decode(third, arena, &key))
        return "the directory token is none: it must be three parts in base64url with dots "
               "between them, of which two are JSON";
    if (!document_find(header, SLICE("alg"), &algorithm) || algorithm.type != DOCUMENT_STRING ||
        !slice_equal(algorithm.text, SLICE("RS256")))
        return "alg of the directory token must be RS256";
    if (!seconds_find(body, SLICE("nbf"), &begin) || !seconds_find(body, SLICE("exp"), &end))
        return "the directory token needs nbf and exp";
    if (!((double)token->now_s >= begin))
        return "the directory token is not valid yet (nbf)";
    if (!((double)token->now_s < end))
        return "the directory token has expired (exp)";
    if (!key_is(token, key, ret_readonly))
        return "the third part of the directory token is not the account's key: only the tokens "
               "of the emulator's test credentials are taken";
    return NULL;
}
