#include "front/gremlin/command/identity.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { CREDENTIALS_MAX = 2048 };

static bool wrong(struct error *err)
{
    return error_set(err, ERROR_UNAUTHORIZED, "Unauthorized: Invalid credentials provided");
}

/* --- What was sent -----------------------------------------------------------------------------
 */

static bool base64_decode(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes;
    int len;

    if (!text.len || text.len > CREDENTIALS_MAX || text.len % 4)
        return false;
    bytes = arena_alloc(arena, text.len);
    len = EVP_DecodeBlock(bytes, text.data, (int)text.len);
    if (len < 0)
        return false;
    for (size_t i = text.len; i > 0 && text.data[i - 1] == '='; i--)
        len--;
    *ret_bytes = slice_of(bytes, (size_t)MAX(len, 0));
    return true;
}

bool gremlin_credentials_sasl(struct slice base64, struct arena *arena,
                              struct gremlin_credentials *ret_credentials, struct error *err)
{
    struct slice bytes, authzid, rest;

    if (!base64_decode(base64, arena, &bytes) || !slice_split(bytes, 0, &authzid, &rest) ||
        !slice_split(rest, 0, &ret_credentials->user, &ret_credentials->password))
        return wrong(err);
    return true;
}

bool gremlin_credentials_basic(struct slice header, struct arena *arena,
                               struct gremlin_credentials *ret_credentials, struct error *err)
{
    struct slice scheme, text, bytes;

    if (!slice_split(header, ' ', &scheme, &text) || !slice_equal_nocase(scheme, SLICE("basic")) ||
        !base64_decode(slice_trim(text), arena, &bytes) ||
        !slice_split(bytes, ':', &ret_credentials->user, &ret_credentials->password))
        return wrong(err);
    return true;
}

/* --- Who it is ---------------------------------------------------------------------------------
 */

static bool name_take(struct slice name, char ret_text[GREMLIN_NAME_SIZE])
{
    if (!name.len || name.len >= GREMLIN_NAME_SIZE || memchr(name.data, 0, name.len))
        return false;
    memcpy(ret_text, name.data, name.len);
    ret_text[name.len] = '\0';
    return true;
}

/* /dbs/D/colls/G, with a slash behind it or none before it. */
static bool user_read(struct slice user, struct gremlin_identity *identity)
{
    struct slice parts[4], rest = user;

    if (slice_starts_with(rest, SLICE("/")))
        rest = slice_skip(rest, 1);
    if (rest.len && rest.data[rest.len - 1] == '/')
        rest = slice_first(rest, rest.len - 1);
    for (int i = 0; i < 3; i++)
        if (!slice_split(rest, '/', &parts[i], &rest))
            return false;
    parts[3] = rest;
    return slice_equal(parts[0], SLICE("dbs")) && slice_equal(parts[2], SLICE("colls")) &&
           !memchr(parts[3].data, '/', parts[3].len) && name_take(parts[1], identity->database) &&
           name_take(parts[3], identity->graph);
}

/* type=resource&ver=1&sig=... */
static bool token_read(struct slice password, char ret_token[GREMLIN_TOKEN_SIZE])
{
    static const struct slice prefix = {(const uint8_t *)"type=resource&ver=1", 19};
    struct slice rest = password, sig;

    if (!slice_starts_with(rest, prefix))
        return false;
    rest = slice_skip(rest, prefix.len);
    if (slice_starts_with(rest, SLICE(".0")))
        rest = slice_skip(rest, 2);
    if (!slice_starts_with(rest, SLICE("&sig=")))
        return false;
    sig = slice_skip(rest, 5);
    if (sig.len >= GREMLIN_TOKEN_SIZE)
        return false;
    memcpy(ret_token, sig.data, sig.len);
    ret_token[sig.len] = '\0';
    return true;
}

static bool shown_check(const struct gremlin *gremlin, const struct front_account *account,
                        struct slice password, struct gremlin_identity *identity, struct error *err)
{
    struct front_claim claim;

    if (front_key_find(account, gremlin->options.door.dev, password, &identity->key)) {
        identity->kind = GREMLIN_KEY;
        return front_account_check(account->missing, account->id, err);
    }
    if (account->account && token_read(password, identity->token) &&
        front_token_open(account, slice_of_text(identity->token), &claim, err)) {
        identity->kind = GREMLIN_TOKEN;
        return true;
    }
    return wrong(err);
}

bool gremlin_identity_prove(const struct gremlin *gremlin, const char *account_name,
                            const struct gremlin_credentials *credentials, struct arena *arena,
                            struct gremlin_identity *ret_identity, struct error *err)
{
    struct gremlin_identity identity = {0};
    struct front_account account;
    bool good;

    if (!front_account_find(&gremlin->options.services, slice_of_text(account_name),
                            gremlin->options.door.accounts_by_use, arena, &account, err))
        return wrong(err);
    snprintf(identity.account, sizeof identity.account, "%s", account_name);
    good = user_read(credentials->user, &identity)
               ? shown_check(gremlin, &account, credentials->password, &identity, err)
               : wrong(err);
    front_account_done(&account);
    if (good)
        *ret_identity = identity;
    OPENSSL_cleanse(&identity, sizeof identity);
    return good;
}

/* --- What it may do ----------------------------------------------------------------------------
 */

/* A token that holds for one partition key. As over REST, one from before a re-key would open other
 * items. */
static bool key_bind(const struct catalogue_child *permission, const struct container *container,
                     struct slice json, struct arena *arena, struct gremlin_right *right,
                     struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));

    if (catalogue_child_info(permission)->lsn <= fields->rekeyed_lsn)
        return front_token_stopped(err, "its permission names a key from before the container was "
                                        "re-keyed; replace the permission by one for a key of now");
    if (fields->key.synthetic)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "tokens for one partition key do not open graphs with a synthetic key");
    if (!partition_key_parse(&fields->key, json, PARTITION_KEY_ANY, arena, &right->only, err) ||
        right->only.count != fields->key.path_count)
        return front_token_stopped(err, "the partition key of its permission does not fit the "
                                        "container");
    right->bound = true;
    return true;
}

static bool token_check(const struct gremlin_identity *identity, const struct front_call *call,
                        const struct container *container, struct gremlin_right *right,
                        struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *permission = NULL;
    const struct catalogue_info *info = container_info(container);
    struct front_claim claim;
    struct slice key;

    if (!front_token_open(&call->account, slice_of_text(identity->token), &claim, err) ||
        !front_token_permission(call->services, call->account.id, &claim, &permission, err))
        return false;
    if (claim.kind != FRONT_TOKEN_CONTAINER ||
        claim.resource_database != container_database_number(container) ||
        claim.resource_owner != info->number)
        return error_set(err, ERROR_FORBIDDEN,
                         "Insufficient permissions: the resource token is not for this graph");
    right->readonly = !claim.all;
    right->alone = true;
    key = front_token_key(permission, call->arena);
    return !key.data || key_bind(permission, container, key, call->arena, right, err);
}

bool gremlin_identity_check(const struct gremlin_identity *identity, const struct front_call *call,
                            const struct container *container, struct gremlin_right *ret_right,
                            struct error *err)
{
    *ret_right = (struct gremlin_right){0};
    switch (identity->kind) {
    case GREMLIN_LOCAL:
        return true;
    case GREMLIN_KEY:
        if (!front_key_holds(&identity->key, &call->account))
            return error_set(err, ERROR_UNAUTHORIZED,
                             "Unauthorized: Invalid credentials provided: the key that the "
                             "connection was opened with has been replaced");
        ret_right->readonly = identity->key.readonly;
        return true;
    case GREMLIN_SIGNED:
        ret_right->readonly = identity->readonly;
        return true;
    case GREMLIN_TOKEN:
        return token_check(identity, call, container, ret_right, err);
    default:
        return wrong(err);
    }
}
