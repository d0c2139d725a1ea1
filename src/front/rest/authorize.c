/* Clients differ in how they treat escapes in the link they sign, and links made of _rids are
 * signed by their last rid in lower case. So there are up to three texts a good signature may be
 * of; the usual one is tried first, and a wrong signature costs a dozen hashes. */
#include "front/rest/authorize.h"

#include "catalogue/account_keys.h"
#include "front/date.h"
#include "front/directory_token.h"
#include "front/rest/call.h"
#include "front/rest/token.h"
#include "front/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { SKEW_MS_MAX = 15 * 60 * 1000 };

static struct slice last_segment(struct slice link)
{
    for (size_t i = link.len; i > 0; i--)
        if (link.data[i - 1] == '/')
            return slice_skip(link, i);
    return link;
}

/* --- The token ------------------------------------------------------------------------------- */

bool rest_authorization_parse(struct slice header, struct arena *arena,
                              struct rest_authorization *ret_authorization)
{
    struct rest_authorization parsed = {0};
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

static bool date_check(const struct rest_call *call, struct slice date, struct error *err)
{
    int64_t signed_ms, now_ms = clock_read_wall_ms(call->services->clock);

    if (!front_date_parse(date, &signed_ms))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the header x-ms-date or date is missing or not an RFC 1123 date");
    if (signed_ms < now_ms - SKEW_MS_MAX || signed_ms > now_ms + SKEW_MS_MAX)
        return error_set(err, ERROR_FORBIDDEN,
                         "the authorization token is not valid at the current time: its date is "
                         "more than 15 minutes off the server's clock");
    return true;
}

/* --- Master keys ----------------------------------------------------------------------------- */

/* The text that is signed, but for the link. */
struct payload {
    struct slice head; /* verb and type */
    struct slice date; /* lower case, with the newlines around it */
    struct slice links[3];
    size_t link_count;
};

static struct payload payload_of(struct rest_call *call, struct slice type)
{
    const struct rest_route *route = &call->route;
    struct slice ms_date = rest_call_header(call, REST_HEADER_DATE_MS);
    struct slice date = rest_call_header(call, REST_HEADER_DATE);
    struct slice verb = front_lower(call->http->method, call->arena);
    struct payload payload;
    struct rid rid;

    payload.head =
        arena_join(call->arena, (struct slice[]){verb, SLICE("\n"), type, SLICE("\n")}, 4);
    date = front_lower(ms_date.data ? ms_date : date, call->arena);
    payload.date = arena_join(call->arena,
                              (struct slice[]){ms_date.data ? SLICE("\n") : SLICE("\n\n"), date,
                                               ms_date.data ? SLICE("\n\n") : SLICE("\n")},
                              3);
    payload.links[0] = route->link;
    payload.link_count = 1;
    if (!slice_equal(route->link, route->link_raw))
        payload.links[payload.link_count++] = route->link_raw;
    if (route->resource == REST_OFFERS || rid_parse(last_segment(route->link), &rid))
        payload.links[payload.link_count++] = front_lower(last_segment(route->link), call->arena);
    return payload;
}

static bool payload_signed(const struct payload *payload, struct slice key,
                           const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    for (size_t i = 0; i < payload->link_count; i++) {
        const struct slice parts[] = {payload->head, payload->links[i], payload->date};
        uint8_t expected[FRONT_SIGNATURE_LEN];

        front_signature(key, parts, ARRAY_LEN(parts), expected);
        if (front_signature_equal(expected, mac))
            return true;
    }
    return false;
}

static bool keys_try(struct rest_call *call, const struct account_keys *keys,
                     const struct payload *payload, const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    for (size_t i = 0; keys && i < ACCOUNT_KEYS; i++) {
        if (!payload_signed(payload, slice_of(keys->secrets[i], ACCOUNT_KEY_BYTES), mac) ||
            (call->account_missing && account_key_is_readonly(i)))
            continue; /* that an account is missing is told to the server's owner alone */
        call->identity.kind =
            account_key_is_readonly(i) ? REST_IDENTITY_READER : REST_IDENTITY_OWNER;
        return true;
    }
    return false;
}

/* Comes first: where it is accepted at all it is what most clients have. */
static bool emulator_try(struct rest_call *call, const struct payload *payload,
                         const uint8_t mac[FRONT_SIGNATURE_LEN])
{
    uint8_t secret[ACCOUNT_KEY_BYTES];

    if (!call->options->dev || !account_key_parse(slice_of_text(account_key_emulator), secret) ||
        !payload_signed(payload, slice_of(secret, sizeof secret), mac))
        return false;
    call->identity.kind = REST_IDENTITY_OWNER;
    return true;
}

static bool mac_decode(struct slice text, uint8_t ret_mac[FRONT_SIGNATURE_LEN])
{
    uint8_t decoded[FRONT_SIGNATURE_LEN + 4];

    if (text.len != 44 || EVP_DecodeBlock(decoded, text.data, (int)text.len) != 33)
        return false;
    memcpy(ret_mac, decoded, FRONT_SIGNATURE_LEN);
    return true;
}

/* Control bytes as the service shows them, so that the text stays on one line. */
static struct slice payload_shown(struct rest_call *call, const struct payload *payload)
{
    CLEANUP(buf_done) struct buf shown;
    const struct slice parts[] = {payload->head, payload->links[0], payload->date};

    buf_init(&shown, 16 * 1024);
    for (size_t p = 0; p < ARRAY_LEN(parts); p++)
        for (size_t i = 0; i < parts[p].len; i++) {
            if (parts[p].data[i] == '\n')
                BUF_APPEND(&shown, "\\n");
            else
                buf_append_byte(&shown, parts[p].data[i]);
        }
    return arena_copy(call->arena, buf_slice(&shown));
}

static bool master_authorize(struct rest_call *call, struct slice sig, struct error *err)
{
    struct slice ms_date = rest_call_header(call, REST_HEADER_DATE_MS);
    struct slice date = ms_date.data ? ms_date : rest_call_header(call, REST_HEADER_DATE);
    struct payload payload = payload_of(call, call->route.type);
    uint8_t mac[FRONT_SIGNATURE_LEN];
    bool fine;

    if (!date_check(call, date, err))
        return false;
    fine = mac_decode(sig, mac) &&
           (emulator_try(call, &payload, mac) || keys_try(call, call->keys, &payload, mac));
    if (!fine && call->route.resource == REST_PARTITION_DELETE && mac_decode(sig, mac)) {
        /* JavaScript signs this one as if it were the container. */
        payload = payload_of(call, SLICE("colls"));
        fine = emulator_try(call, &payload, mac) || keys_try(call, call->keys, &payload, mac);
    }
    if (fine)
        return true;
    call->message = arena_printf(
        call->arena,
        "The input authorization token can't serve the request. Please check that the expected "
        "payload is built as per the protocol, and check the key being used. Server used the "
        "following payload to sign: '%.*s'",
        SLICE_ARG(payload_shown(call, &payload)));
    return error_set(err, ERROR_UNAUTHORIZED, "the signature is wrong");
}

static bool access_check(const struct rest_call *call, struct error *err)
{
    return call->identity.kind == REST_IDENTITY_OWNER ||
           call->operation->access == REST_ACCESS_READ ||
           error_set(err, ERROR_FORBIDDEN, "%s needs a read-write key; this one may only read",
                     call->operation->name);
}

static bool directory_authorize(struct rest_call *call, struct slice sig, struct error *err)
{
    static const char *const public_keys[] = {account_key_emulator, NULL};
    const struct front_directory_token token = {
        .text = sig,
        .dev = call->options->dev,
        .peer = &call->http->peer,
        .public_keys = public_keys,
        .keys = call->account_missing ? NULL : call->keys,
        .now_s = clock_read_wall_ms(call->services->clock) / 1000,
    };
    bool readonly;
    const char *why = front_directory_token_refused(&token, call->arena, &readonly);

    if (why)
        return error_set(err, ERROR_UNAUTHORIZED, "%s", why);
    call->identity.kind = readonly ? REST_IDENTITY_READER : REST_IDENTITY_OWNER;
    return true;
}

bool rest_authorize(struct rest_call *call, struct error *err)
{
    struct slice header = rest_call_header(call, REST_HEADER_AUTHORIZATION);
    struct rest_authorization token;

    if (!header.data || header.len == 0) {
        call->message = SLICE("Required Header authorization is missing. Ensure a valid "
                              "Authorization token is passed.");
        return error_set(err, ERROR_UNAUTHORIZED, "the authorization header is missing");
    }
    if (!rest_authorization_parse(header, call->arena, &token))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the authorization header is malformed: it must be the URL-encoded text "
                         "type=master&ver=1.0&sig=..., or a resource token");
    if (slice_equal(token.type, SLICE("master")))
        return master_authorize(call, token.sig, err) && access_check(call, err);
    if (slice_equal(token.type, SLICE("resource")))
        return rest_token_authorize(call, token.sig, err);
    if (slice_equal(token.type, SLICE("aad")))
        return directory_authorize(call, token.sig, err) && access_check(call, err);
    if (slice_equal(token.type, SLICE("sas")))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "SAS tokens are not supported: use an account key or a resource token");
    return error_set(err, ERROR_UNAUTHORIZED, "tokens of this type are unknown");
}
