/* Clients of the gateway differ in how they treat escapes in the link they sign, and links made of
 * _rids are signed by their last rid in lower case. So there are up to three texts a good signature
 * may be of; the usual one is tried first, and a wrong signature costs a dozen hashes. */
#include "front/kit/authorize.h"

#include "catalogue/account_keys.h"
#include "front/date.h"
#include "front/directory_token.h"
#include "front/kit/token.h"
#include "front/signature.h"
#include "front/text.h"

#include <openssl/evp.h>

enum { SKEW_MS_MAX = 15 * 60 * 1000, LINKS_MAX = 3, PARTS = 3 };

static const char *const gateway_keys[] = {account_key_emulator, NULL};

/* --- Keys ------------------------------------------------------------------------------------ */

static bool mac_decode(struct slice text, uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    uint8_t decoded[FRONT_SIGNATURE_LEN + 4];

    if (text.len != 44 || EVP_DecodeBlock(decoded, text.data, (int)text.len) != 33)
        return false;
    memcpy(ret_mac, decoded, FRONT_SIGNATURE_LEN);
    return true;
}

static bool key_signed(struct slice key, const struct front_signed *texts, size_t count,
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

static bool public_key_signed(const char *text, const struct front_signed *texts, size_t count,
                              const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    uint8_t secret[ACCOUNT_KEY_BYTES];

    return account_key_parse(slice_of_text(text), secret) &&
           key_signed(slice_of(secret, sizeof secret), texts, count, mac);
}

/* Public keys come first: where they are accepted at all they are what most clients have. */
bool front_signature_check(const struct front_http_call *call, const char *const *public_keys,
                           struct slice sig, const struct front_signed *texts, size_t count,
                           bool *ret_readonly)
{
    const struct account_keys *keys = call->account.keys;
    uint8_t mac[FRONT_SIGNATURE_LEN];

    *ret_readonly = false;
    if (!mac_decode(sig, mac))
        return false;
    for (size_t i = 0; call->door->dev && public_keys[i]; i++)
        if (public_key_signed(public_keys[i], texts, count, mac))
            return true;
    for (size_t i = 0; keys && i < ACCOUNT_KEYS; i++) {
        bool readonly = account_key_is_readonly((enum account_key)i);

        if (!key_signed(slice_of(keys->secrets[i], ACCOUNT_KEY_BYTES), texts, count, mac) ||
            (call->account.missing && readonly))
            continue; /* that an account is missing is told to the server's owner alone */
        *ret_readonly = readonly;
        return true;
    }
    return false;
}

enum front_date_state front_date_judge(const struct front_http_call *call, struct slice date)
{
    int64_t signed_ms, now_ms = clock_read_wall_ms(call->services->clock);

    if (!front_date_parse(date, &signed_ms))
        return FRONT_DATE_MISSING;
    return signed_ms < now_ms - SKEW_MS_MAX || signed_ms > now_ms + SKEW_MS_MAX ? FRONT_DATE_OFF
                                                                                : FRONT_DATE_GOOD;
}

const char *front_directory_refused(const struct front_http_call *call,
                                    const char *const *public_keys, struct slice text,
                                    bool *ret_readonly)
{
    const struct front_directory_token token = {
        .text = text,
        .dev = call->door->dev,
        .peer = &call->http->peer,
        .public_keys = public_keys,
        .keys = call->account.missing ? NULL : call->account.keys,
        .now_s = clock_read_wall_ms(call->services->clock) / 1000,
    };

    return front_directory_token_refused(&token, call->arena, ret_readonly);
}

/* --- The header ------------------------------------------------------------------------------ */

bool front_authorization_parse(struct slice header, struct arena *arena,
                               struct front_authorization *ret_authorization)
{
    struct front_authorization parsed = {0};
    struct slice text, part, rest;

    if (!front_percent_decode(header, arena, &text))
        return false;
    while (text.len && !parsed.sig.data) {
        if (slice_starts_with(text, SLICE("sig="))) {
            parsed.sig = slice_skip(text, 4); /* a signature may hold & and = */
            break;
        }
        if (!slice_split(text, '&', &part, &rest)) {
            part = text;
            rest = SLICE_NONE;
        }
        if (slice_starts_with(part, SLICE("type=")))
            parsed.type = slice_skip(part, 5);
        else if (slice_starts_with(part, SLICE("ver=")))
            parsed.version = slice_skip(part, 4);
        text = rest;
    }
    if (!parsed.type.data || !parsed.sig.data)
        return false;
    *ret_authorization = parsed;
    return true;
}

/* --- Master keys ----------------------------------------------------------------------------- */

/* The texts that may be signed: verb and type, a link, the date with the newlines around it. */
struct payload {
    struct slice parts[LINKS_MAX][PARTS];
    struct front_signed texts[LINKS_MAX];
    size_t count;
};

static struct slice last_segment(struct slice link)
{
    for (size_t i = link.len; i > 0; i--)
        if (link.data[i - 1] == '/')
            return slice_skip(link, i);
    return link;
}

static void payload_add(struct payload *payload, struct slice head, struct slice link,
                        struct slice date)
{
    struct slice *parts = payload->parts[payload->count];

    parts[0] = head;
    parts[1] = link;
    parts[2] = date;
    payload->texts[payload->count++] = (struct front_signed){parts, PARTS};
}

static void payload_make(struct front_gateway_call *call, const struct front_signing *signing,
                         struct slice type, struct payload *ret_payload)
{
    bool ms = signing->ms_date.data;
    struct slice verb = front_lower(call->http->method, call->arena);
    struct slice date = front_lower(ms ? signing->ms_date : signing->date, call->arena);
    struct slice head =
        arena_join(call->arena, (struct slice[]){verb, SLICE("\n"), type, SLICE("\n")}, 4);
    struct slice last = last_segment(signing->link);
    struct rid rid;

    date = arena_join(
        call->arena,
        (struct slice[]){ms ? SLICE("\n") : SLICE("\n\n"), date, ms ? SLICE("\n\n") : SLICE("\n")},
        3);
    ret_payload->count = 0;
    payload_add(ret_payload, head, signing->link, date);
    if (!slice_equal(signing->link, signing->link_raw))
        payload_add(ret_payload, head, signing->link_raw, date);
    if (signing->by_rid || rid_parse(last, &rid))
        payload_add(ret_payload, head, front_lower(last, call->arena), date);
}

/* Control bytes as the service shows them, so that the text stays on one line. */
static struct slice payload_shown(struct front_gateway_call *call, const struct payload *payload)
{
    CLEANUP(buf_done) struct buf shown;

    buf_init(&shown, 16 * 1024);
    for (size_t p = 0; p < PARTS; p++) {
        struct slice part = payload->parts[0][p];

        for (size_t i = 0; i < part.len; i++) {
            if (part.data[i] == '\n')
                BUF_APPEND(&shown, "\\n");
            else
                buf_append_byte(&shown, part.data[i]);
        }
    }
    return arena_copy(call->arena, buf_slice(&shown));
}

static bool date_check(const struct front_gateway_call *call, struct slice date, struct error *err)
{
    switch (front_date_judge(&call->over_http, date)) {
    case FRONT_DATE_MISSING:
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the header x-ms-date or date is missing or not an RFC 1123 date");
    case FRONT_DATE_OFF:
        return error_set(err, ERROR_FORBIDDEN,
                         "the authorization token is not valid at the current time: its date is "
                         "more than 15 minutes off the server's clock");
    default:
        return true;
    }
}

static bool master_authorize(struct front_gateway_call *call, const struct front_signing *signing,
                             struct slice sig, bool *ret_readonly, struct error *err)
{
    const struct slice types[] = {signing->type, signing->other_type};
    struct payload payload;

    if (!date_check(call, signing->ms_date.data ? signing->ms_date : signing->date, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (i && !types[i].data)
            break;
        payload_make(call, signing, types[i], &payload);
        if (front_signature_check(&call->over_http, gateway_keys, sig, payload.texts, payload.count,
                                  ret_readonly))
            return true;
    }
    call->message = arena_printf(
        call->arena,
        "The input authorization token can't serve the request. Please check that the expected "
        "payload is built as per the protocol, and check the key being used. Server used the "
        "following payload to sign: '%.*s'",
        SLICE_ARG(payload_shown(call, &payload)));
    return error_set(err, ERROR_UNAUTHORIZED, "the signature is wrong");
}

bool front_authorize(struct front_gateway_call *call, const struct front_signing *signing,
                     enum front_signer *ret_signer, struct slice *ret_token, struct error *err)
{
    struct front_authorization token;
    bool readonly;

    if (signing->header.len == 0) {
        call->message = SLICE("Required Header authorization is missing. Ensure a valid "
                              "Authorization token is passed.");
        return error_set(err, ERROR_UNAUTHORIZED, "the authorization header is missing");
    }
    if (!front_authorization_parse(signing->header, call->arena, &token))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the authorization header is malformed: it must be the URL-encoded text "
                         "type=master&ver=1.0&sig=..., or a resource token");
    if (slice_equal(token.type, SLICE("resource"))) {
        *ret_signer = FRONT_SIGNER_TOKEN;
        *ret_token = token.sig;
        return true;
    }
    if (slice_equal(token.type, SLICE("master"))) {
        if (!master_authorize(call, signing, token.sig, &readonly, err))
            return false;
    } else if (slice_equal(token.type, SLICE("aad"))) {
        const char *why =
            front_directory_refused(&call->over_http, gateway_keys, token.sig, &readonly);

        if (why)
            return error_set(err, ERROR_UNAUTHORIZED, "%s", why);
    } else if (slice_equal(token.type, SLICE("sas"))) {
        return error_set(err, ERROR_UNAUTHORIZED,
                         "SAS tokens are not supported: use an account key or a resource token");
    } else {
        return error_set(err, ERROR_UNAUTHORIZED, "tokens of this type are unknown");
    }
    *ret_signer = readonly ? FRONT_SIGNER_READER : FRONT_SIGNER_OWNER;
    return true;
}

bool front_authorize_order(struct front_gateway_call *call, const struct front_path *path,
                           const char *right, bool *ret_readonly, struct error *err)
{
    const struct front_signing signing = {
        .header = net_http_header(call->http, SLICE("authorization")),
        .ms_date = net_http_header(call->http, SLICE("x-ms-date")),
        .date = net_http_header(call->http, SLICE("date")),
        .type = SLICE("_orrery"),
        .link = front_path_join(path->decoded + 1, path->count - 1, call->arena),
        .link_raw = front_path_join(path->raw + 1, path->count - 1, call->arena),
    };
    struct front_claim claim;
    enum front_signer signer;
    struct slice token;

    if (!front_authorize(call, &signing, &signer, &token, err))
        return false;
    if (signer == FRONT_SIGNER_TOKEN)
        return front_token_open(&call->account, token, &claim, err) &&
               error_set(err, ERROR_FORBIDDEN,
                         "Insufficient permissions provided in the authorization header for %s: it "
                         "needs a key of the account",
                         right);
    *ret_readonly = signer != FRONT_SIGNER_OWNER;
    return true;
}
