/* The text of a token, behind "type=resource&ver=1&sig=":
 *
 *     base64 of the first half of the MAC ; base64 of the claim ; base64 of the other half ;
 *
 * The claim, 63 bytes, numbers big-endian:
 *
 *      0  1  version, 1
 *      1  4  account
 *      5  4  database of the permission
 *      9  4  its user
 *     13  8  its own number
 *     21  8  the commit that wrote it: any change gives another
 *     29  1  1: everything, 0: reading
 *     30  1  kind of the resource (0: it did not exist)
 *     31  4  its database
 *     35  4  its container, user or key
 *     39  8  its number, of a script
 *     47  8  made, seconds since 1970
 *     55  8  good until */
#include "front/kit/token.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "catalogue/account_keys.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum {
    VERSION = 1,
    CLAIM_LEN = 63,
    CLAIM_TEXT_LEN = 84,
    HALF_LEN = FRONT_SIGNATURE_LEN / 2,
    HALF_TEXT_LEN = 24,
    SKEW_SECONDS = 600, /* a clock may be off by */
    SIG_LEN = HALF_TEXT_LEN + 1 + CLAIM_TEXT_LEN + 1 + HALF_TEXT_LEN + 1,
};

static void claim_encode(const struct front_claim *claim, uint8_t ret_bytes[CLAIM_LEN])
{
    ret_bytes[0] = VERSION;
    bytes_put_be32(ret_bytes + 1, claim->account);
    bytes_put_be32(ret_bytes + 5, claim->database);
    bytes_put_be32(ret_bytes + 9, claim->user);
    bytes_put_be64(ret_bytes + 13, claim->permission);
    bytes_put_be64(ret_bytes + 21, claim->lsn);
    ret_bytes[29] = claim->all;
    ret_bytes[30] = claim->kind;
    bytes_put_be32(ret_bytes + 31, claim->resource_database);
    bytes_put_be32(ret_bytes + 35, claim->resource_owner);
    bytes_put_be64(ret_bytes + 39, claim->resource_number);
    bytes_put_be64(ret_bytes + 47, (uint64_t)claim->start_s);
    bytes_put_be64(ret_bytes + 55, (uint64_t)claim->expiry_s);
}

static struct front_claim claim_decode(const uint8_t bytes[CLAIM_LEN])
{
    return (struct front_claim){
        .account = bytes_get_be32(bytes + 1),
        .database = bytes_get_be32(bytes + 5),
        .user = bytes_get_be32(bytes + 9),
        .permission = bytes_get_be64(bytes + 13),
        .lsn = bytes_get_be64(bytes + 21),
        .all = bytes[29] != 0,
        .kind = bytes[30],
        .resource_database = bytes_get_be32(bytes + 31),
        .resource_owner = bytes_get_be32(bytes + 35),
        .resource_number = bytes_get_be64(bytes + 39),
        .start_s = (int64_t)bytes_get_be64(bytes + 47),
        .expiry_s = (int64_t)bytes_get_be64(bytes + 55),
    };
}

/* A secret of its own, so that no signature of a request can ever pass for one of a token. */
static void claim_sign(const struct account_keys *keys, const uint8_t claim[CLAIM_LEN],
                       uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    const struct slice purpose = SLICE("orrery resource token 1"),
                       text = slice_of(claim, CLAIM_LEN);
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

static bool sig_decode(struct slice sig, uint8_t ret_claim[CLAIM_LEN],
                       uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    const uint8_t *at = sig.data;

    return sig.len == SIG_LEN && at[HALF_TEXT_LEN] == ';' &&
           at[HALF_TEXT_LEN + 1 + CLAIM_TEXT_LEN] == ';' && at[SIG_LEN - 1] == ';' &&
           base64_decode(slice_of(at, HALF_TEXT_LEN), HALF_LEN, ret_mac) &&
           base64_decode(slice_of(at + HALF_TEXT_LEN + 1, CLAIM_TEXT_LEN), CLAIM_LEN, ret_claim) &&
           base64_decode(slice_of(at + SIG_LEN - 1 - HALF_TEXT_LEN, HALF_TEXT_LEN), HALF_LEN,
                         ret_mac + HALF_LEN) &&
           ret_claim[0] == VERSION;
}

struct slice front_token_make(const struct account_keys *keys, const struct front_claim *claim,
                              struct arena *arena)
{
    uint8_t bytes[CLAIM_LEN], mac[FRONT_SIGNATURE_LEN];
    unsigned char first[HALF_TEXT_LEN + 1], text[CLAIM_TEXT_LEN + 1], second[HALF_TEXT_LEN + 1];

    claim_encode(claim, bytes);
    claim_sign(keys, bytes, mac);
    EVP_EncodeBlock(first, mac, HALF_LEN);
    EVP_EncodeBlock(text, bytes, CLAIM_LEN);
    EVP_EncodeBlock(second, mac + HALF_LEN, HALF_LEN);
    return arena_printf(arena, "type=resource&ver=1&sig=%s;%s;%s;", first, text, second);
}

bool front_token_open(const struct front_account *account, struct slice sig,
                      struct front_claim *ret_claim, struct error *err)
{
    uint8_t bytes[CLAIM_LEN], mac[FRONT_SIGNATURE_LEN], expected[FRONT_SIGNATURE_LEN];

    if (!sig_decode(sig, bytes, mac))
        return error_set(err, ERROR_UNAUTHORIZED, "the resource token is malformed");
    claim_sign(account->keys, bytes, expected);
    if (!front_signature_equal(expected, mac) || !account->account ||
        bytes_get_be32(bytes + 1) != account_info(account->account)->number)
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the resource token was not made by this account, or its primary key was "
                         "rotated since");
    *ret_claim = claim_decode(bytes);
    return true;
}

bool front_token_stopped(struct error *err, const char *why)
{
    return error_set(err, ERROR_FORBIDDEN, "the resource token has stopped working: %s", why);
}

static bool claim_in_time(const struct front_services *services, const struct front_claim *claim,
                          struct error *err)
{
    int64_t now_s = clock_read_wall_ms(services->clock) / 1000;

    if (now_s >= claim->expiry_s || now_s < claim->start_s - SKEW_SECONDS)
        return error_set(err, ERROR_FORBIDDEN,
                         "the authorization token is not valid at the current time: read the "
                         "permission again for a new one");
    return true;
}

/* Rids are also good as names, so what is found is compared. */
bool front_token_permission(const struct front_services *services, struct slice account,
                            const struct front_claim *claim,
                            struct catalogue_child **ret_permission, struct error *err)
{
    const struct rid rid = {RID_PERMISSION, claim->database, claim->user, claim->permission};
    const struct rid user = {.kind = RID_USER, .database = claim->database, .owner = claim->user};
    char database_text[RID_TEXT_SIZE], user_text[RID_TEXT_SIZE], text[RID_TEXT_SIZE];
    const struct child_place place = {
        .kind = CHILD_PERMISSION,
        .account = account,
        .database = rid_format(rid_of_database(claim->database), database_text),
        .parent = rid_format(user, user_text),
    };
    struct catalogue_child *permission;
    struct rid found;

    if (!claim_in_time(services, claim, err))
        return false;
    if (!catalogue_child_open(services->catalogue, &place, rid_format(rid, text), &permission, err))
        return front_token_stopped(err, "its permission was deleted");
    found = catalogue_child_rid(permission);
    if (found.database != rid.database || found.owner != rid.owner || found.number != rid.number ||
        catalogue_child_info(permission)->lsn != claim->lsn) {
        catalogue_child_unref(permission);
        return front_token_stopped(err, "its permission was changed");
    }
    *ret_permission = permission;
    return true;
}

struct slice front_token_key(const struct catalogue_child *permission, struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value key;

    buf_init(&text, 64 * 1024);
    if (!document_find(catalogue_child_body(permission), SLICE("resourcePartitionKey"), &key))
        return SLICE_NONE;
    document_json_write_value(&key, &text);
    return arena_copy(arena, buf_slice(&text));
}
