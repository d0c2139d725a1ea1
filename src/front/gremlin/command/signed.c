#include "front/gremlin/command/signed.h"

#include "catalogue/account_keys.h"
#include "front/gremlin/command/http.h"
#include "front/kit/authorize.h"
#include "front/kit/path.h"
#include "front/text.h"

enum { SEGMENTS = 4 }; /* _orrery, gremlin, the database, the graph */

static const char *const public_keys[] = {account_key_emulator, NULL};

bool gremlin_signed_takes(const struct net_http_request *request)
{
    return front_path_is_door(request->path, SLICE("gremlin"));
}

static bool path_read(struct front_http_call *call, struct front_path *ret_path, struct error *err)
{
    if (!front_path_split(call->http->path, call->arena, ret_path, err))
        return false;
    return (ret_path->count == SEGMENTS && slice_equal(ret_path->decoded[1], SLICE("gremlin"))) ||
           error_set(err, ERROR_NOT_FOUND, "a graph is at /_orrery/gremlin/DATABASE/GRAPH");
}

static bool signature_check(struct front_http_call *call, const struct front_path *path,
                            bool *ret_readonly, struct error *err)
{
    struct slice date = net_http_header(call->http, SLICE("x-ms-date"));
    const struct slice parts[] = {
        SLICE("post\n_orrery\n"),
        front_path_join(path->decoded + 1, path->count - 1, call->arena),
        SLICE("\n"),
        date.data ? front_lower(date, call->arena) : SLICE(""),
        SLICE("\n\n"),
    };
    const struct front_signed text = {parts, ARRAY_LEN(parts)};
    struct front_authorization given;

    if (front_date_judge(call, date) != FRONT_DATE_GOOD)
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the header x-ms-date is missing, no RFC 1123 date, or more than 15 "
                         "minutes off the server's clock");
    if (!front_authorization_parse(net_http_header(call->http, SLICE("authorization")), call->arena,
                                   &given) ||
        !slice_equal(given.type, SLICE("master")) ||
        !front_signature_check(call, public_keys, given.sig, &text, 1, ret_readonly))
        return error_set(err, ERROR_UNAUTHORIZED, "the signature is wrong");
    return true;
}

static bool name_take(struct slice name, char ret_text[GREMLIN_NAME_SIZE])
{
    if (!name.len || name.len >= GREMLIN_NAME_SIZE || memchr(name.data, 0, name.len))
        return false;
    memcpy(ret_text, name.data, name.len);
    ret_text[name.len] = '\0';
    return true;
}

/* No page of another origin, whatever gremlin.origins says: this is administration's path. */
static bool identify(struct front_http_call *call, struct gremlin_identity *ret_identity,
                     struct error *err)
{
    struct gremlin_identity identity = {.kind = GREMLIN_SIGNED};
    struct front_path path;

    if (front_request_is_foreign(call->http))
        return error_set(err, ERROR_ORIGIN_REFUSED,
                         "a browser sends this for a page of another origin");
    if (!front_http_host_check(call, err) || !path_read(call, &path, err) ||
        !front_http_account_find(call, path.account, net_http_header(call->http, SLICE("host")),
                                 err) ||
        !signature_check(call, &path, &identity.readonly, err))
        return false;
    if (call->account.id.len >= sizeof identity.account ||
        !name_take(path.decoded[2], identity.database) ||
        !name_take(path.decoded[3], identity.graph))
        return error_set(err, ERROR_NOT_FOUND, "there is no such graph");
    memcpy(identity.account, call->account.id.data, call->account.id.len);
    *ret_identity = identity;
    return true;
}

void gremlin_signed_handle(struct gremlin *gremlin, struct net_http_request *request)
{
    if (slice_equal(request->method, SLICE("POST")))
        gremlin_http_run(gremlin, request, identify);
    else
        gremlin_http_refuse(request, 405, SLICE("scripts are taken by POST"),
                            SLICE("Allow: POST\r\n"));
}
