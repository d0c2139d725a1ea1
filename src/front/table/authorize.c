/* What is signed is the path as it was sent, behind the account's name: in path style the account
 * stands there twice. Clients of a secondary location sign with or without its ending, or the path
 * at the primary one; and where both dates are sent some sign the one and some the other; so there
 * are several texts that a signature may be of.
 *
 * Programs written against the storage emulators sign, with SharedKeyLite, an empty date where they
 * send none, and a path with or without a slash at its end whichever they send. That is taken from
 * the emulators' account alone, whose key everybody knows: elsewhere a signature without a date
 * would be good for ever. */
#include "front/table/authorize.h"

#include "document/order.h"
#include "front/date.h"
#include "front/directory_token.h"
#include "front/table/authorize_private.h"
#include "front/text.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { SKEW_MS_MAX = 15 * 60 * 1000, DATES_MAX = 2, PATHS_MAX = 4, NAMES_MAX = 2 };
enum { TEXTS_MAX = DATES_MAX * PATHS_MAX * NAMES_MAX, PARTS_MAX = 12 };

/* The well-known key of the storage emulators: no secret. */
static const char storage_emulator_key[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/* --- Signatures ------------------------------------------------------------------------------ */

static bool mac_decode(struct slice text, uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    uint8_t decoded[FRONT_SIGNATURE_LEN + 4];

    if (text.len != 44 || EVP_DecodeBlock(decoded, text.data, (int)text.len) != 33)
        return false;
    memcpy(ret_mac, decoded, FRONT_SIGNATURE_LEN);
    return true;
}

static bool key_signed(struct slice key, const struct table_signed *texts, size_t count,
                       const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    for (size_t i = 0; i < count; i++) {
        uint8_t expected[FRONT_SIGNATURE_LEN];

        front_signature(key, texts[i].parts, texts[i].count, expected);
        if (front_signature_equal(expected, mac))
            return true;
    }
    return false;
}

static bool public_key_signed(const char *text, const struct table_signed *texts, size_t count,
                              const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    uint8_t secret[ACCOUNT_KEY_BYTES];

    return account_key_parse(slice_of_text(text), secret) &&
           key_signed(slice_of(secret, sizeof secret), texts, count, mac);
}

bool table_signature_check(const struct table_call *call, struct slice sig,
                           const struct table_signed *texts, size_t count, bool *ret_readonly)
{
    const struct account_keys *keys = call->account.keys;
    uint8_t mac[FRONT_SIGNATURE_LEN];

    *ret_readonly = false;
    if (!mac_decode(sig, mac))
        return false;
    if (call->options->dev && (public_key_signed(storage_emulator_key, texts, count, mac) ||
                               public_key_signed(account_key_emulator, texts, count, mac)))
        return true;
    for (size_t i = 0; keys && i < ACCOUNT_KEYS; i++)
        if (key_signed(slice_of(keys->secrets[i], ACCOUNT_KEY_BYTES), texts, count, mac) &&
            !(call->account.missing && account_key_is_readonly((enum account_key)i))) {
            *ret_readonly = account_key_is_readonly((enum account_key)i);
            return true;
        }
    return false;
}

/* --- Account keys ---------------------------------------------------------------------------- */

static bool date_check(const struct table_call *call, struct slice date, struct error *err)
{
    int64_t signed_ms, now_ms = clock_read_wall_ms(call->services->clock);

    if (!front_date_parse(date, &signed_ms))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the header x-ms-date or Date is missing or not an RFC 1123 date");
    if (signed_ms < now_ms - SKEW_MS_MAX || signed_ms > now_ms + SKEW_MS_MAX)
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the date of the request is more than 15 minutes off the server's clock");
    return true;
}

/* What may be signed: every date with every name and every path. */
struct signing {
    bool lite;
    struct slice dates[DATES_MAX], names[NAMES_MAX], paths[PATHS_MAX];
    size_t date_count, name_count, path_count;
    struct slice parts[TEXTS_MAX][PARTS_MAX];
    struct table_signed texts[TEXTS_MAX];
    size_t count;
};

/* VERB, Content-MD5 and Content-Type of SharedKey before the date, and the resource behind it. */
static void text_add(const struct table_call *call, struct signing *s, struct slice date,
                     struct slice name, struct slice path)
{
    struct slice comp = table_parameter(&call->parameters, SLICE("comp"));
    struct slice *parts = s->parts[s->count];
    size_t count = 0;

    if (!s->lite) {
        parts[count++] = call->http->method;
        parts[count++] = SLICE("\n");
        parts[count++] = table_call_header(call, SLICE("content-md5"));
        parts[count++] = SLICE("\n");
        parts[count++] = table_call_header(call, SLICE("content-type"));
        parts[count++] = SLICE("\n");
    }
    parts[count++] = date;
    parts[count++] = SLICE("\n/");
    parts[count++] = name;
    parts[count++] = path;
    if (comp.data) {
        parts[count++] = SLICE("?comp=");
        parts[count++] = comp;
    }
    s->texts[s->count++] = (struct table_signed){parts, count};
}

static void texts_make(const struct table_call *call, struct signing *s)
{
    for (size_t d = 0; d < s->date_count; d++)
        for (size_t n = 0; n < s->name_count; n++)
            for (size_t p = 0; p < s->path_count; p++)
                text_add(call, s, s->dates[d], s->names[n], s->paths[p]);
}

static void paths_take(const struct table_call *call, bool lenient, struct signing *s)
{
    struct slice path = call->http->path, bare = front_slashes_drop(path);

    s->paths[s->path_count++] = path;
    if (call->route.secondary)
        s->paths[s->path_count++] =
            arena_join(call->arena,
                       (struct slice[]){SLICE("/"), call->route.account,
                                        slice_skip(path, call->route.prefix.len)},
                       3);
    if (!lenient)
        return;
    if (bare.len != path.len)
        s->paths[s->path_count++] = bare;
    s->paths[s->path_count++] = arena_join(call->arena, (struct slice[]){bare, SLICE("/")}, 2);
}

static struct table_identity identity_of_key(bool readonly)
{
    return (struct table_identity){
        .rights = readonly ? TABLE_RIGHT_READ | TABLE_RIGHT_LIST : TABLE_RIGHT_ALL, .scopes = 7};
}

static bool key_authorize(struct table_call *call, bool lite, struct slice name, struct slice sig,
                          struct error *err)
{
    struct slice sent[DATES_MAX] = {table_call_header(call, SLICE("x-ms-date")),
                                    table_call_header(call, SLICE("date"))};
    bool lenient = lite && call->emulator && slice_equal(name, SLICE(TABLE_EMULATOR_ACCOUNT));
    bool readonly;
    struct signing s = {.lite = lite, .names = {name}, .name_count = 1};

    for (size_t d = 0; d < DATES_MAX; d++)
        if (sent[d].data)
            s.dates[s.date_count++] = sent[d];
    if (lenient && s.date_count == 0)
        s.dates[s.date_count++] = SLICE("");
    else if (!date_check(call, s.date_count ? s.dates[0] : SLICE_NONE, err))
        return false;
    if (call->route.secondary)
        s.names[s.name_count++] =
            arena_join(call->arena, (struct slice[]){name, SLICE("-secondary")}, 2);
    paths_take(call, lenient, &s);
    texts_make(call, &s);
    if (!table_signature_check(call, sig, s.texts, s.count, &readonly))
        return error_set(err, ERROR_TABLE_AUTHENTICATION, "the signature is wrong");
    call->identity = identity_of_key(readonly);
    return true;
}

static bool directory_authorize(struct table_call *call, struct slice text, struct error *err)
{
    static const char *const public_keys[] = {storage_emulator_key, account_key_emulator, NULL};
    const struct front_directory_token token = {
        .text = text,
        .dev = call->options->dev,
        .peer = &call->http->peer,
        .public_keys = public_keys,
        .keys = call->account.missing ? NULL : call->account.keys,
        .now_s = clock_read_wall_ms(call->services->clock) / 1000,
    };
    bool readonly;
    const char *why = front_directory_token_refused(&token, call->arena, &readonly);

    if (why)
        return error_set(err, ERROR_TABLE_AUTHENTICATION, "%s", why);
    call->identity = identity_of_key(readonly);
    return true;
}

bool table_authorize(struct table_call *call, struct error *err)
{
    struct slice header = table_call_header(call, SLICE("authorization"));
    struct slice sas = table_parameter(&call->parameters, SLICE("sig"));
    struct slice scheme, rest, name, sig;
    bool lite;

    if (!header.data && sas.data)
        return table_sas_authorize(call, sas, err);
    if (!header.data)
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "there is neither an Authorization header nor a shared access signature");
    if (!slice_split(header, ' ', &scheme, &rest))
        return error_set(err, ERROR_TABLE_AUTHENTICATION, "the Authorization header is malformed");
    lite = slice_equal(scheme, SLICE("SharedKeyLite"));
    if (!lite && slice_equal(scheme, SLICE("Bearer")))
        return directory_authorize(call, slice_trim(rest), err);
    if (!lite && !slice_equal(scheme, SLICE("SharedKey")))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the scheme of the Authorization header must be SharedKey or "
                         "SharedKeyLite");
    if (!slice_split(slice_trim(rest), ':', &name, &sig))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the Authorization header must be %.*s ACCOUNT:SIGNATURE",
                         SLICE_ARG(scheme));
    return key_authorize(call, lite, name, sig, err);
}

/* --- Rights ---------------------------------------------------------------------------------- */

bool table_rights_parse(struct slice letters, unsigned *ret_rights)
{
    static const char known[] = "raudlcw";
    unsigned rights = 0;

    for (size_t i = 0; i < letters.len; i++) {
        const char *at = letters.data[i] ? strchr(known, letters.data[i]) : NULL;

        if (at)
            rights |= 1u << (at - known);
        else if (!letters.data[i] || !strchr("pxfytmei", letters.data[i]))
            return false;
    }
    *ret_rights = rights;
    return true;
}

static bool rights_suffice(unsigned rights, const char *needed)
{
    struct slice all = slice_of_text(needed), one, other;
    unsigned wanted = 0, instead = 0;

    if (slice_split(all, '|', &one, &other))
        return table_rights_parse(one, &wanted) && table_rights_parse(other, &instead) &&
               ((rights & wanted) == wanted || (rights & instead) == instead);
    return table_rights_parse(all, &wanted) && (rights & wanted) == wanted;
}

bool table_identity_check(const struct table_identity *identity,
                          const struct table_operation *operation, struct slice table,
                          struct error *err)
{
    if (!(identity->scopes & 1u << operation->scope))
        return error_set(err, ERROR_TABLE_RESOURCE_TYPE,
                         "%s is not among what the signature is for", operation->name);
    if (!rights_suffice(identity->rights, operation->rights))
        return error_set(err, ERROR_TABLE_PERMISSION, "%s needs the permission %s", operation->name,
                         operation->rights);
    if (table.data && identity->table.data && !slice_equal_nocase(table, identity->table))
        return error_set(err, ERROR_TABLE_PERMISSION, "the signature is for another table");
    return true;
}

bool table_identity_check_add(const struct table_identity *identity, struct error *err)
{
    return (identity->rights & TABLE_RIGHT_ADD) ||
           error_set(err, ERROR_TABLE_PERMISSION,
                     "without If-Match the entity may be inserted, which needs the permission a");
}

static int bound_compare(const struct table_keys *keys, const struct table_bound *bound)
{
    int order = document_compare_text(DOCUMENT_ORDER_SQL, keys->partition, bound->partition);

    return order || !bound->row.data
               ? order
               : document_compare_text(DOCUMENT_ORDER_SQL, keys->row, bound->row);
}

bool table_identity_check_keys(const struct table_identity *identity, const struct table_keys *keys,
                               struct error *err)
{
    if ((!identity->first.partition.data || bound_compare(keys, &identity->first) >= 0) &&
        (!identity->last.partition.data || bound_compare(keys, &identity->last) <= 0))
        return true;
    return error_set(err, ERROR_TABLE_PERMISSION,
                     "the keys are outside of the range of the signature");
}
