#include "front/kit/authorize.h"

#include "front/rest/call.h"
#include "front/rest/token.h"

static bool access_check(const struct rest_call *call, struct error *err)
{
    return call->identity.kind == REST_IDENTITY_OWNER ||
           call->operation->access == REST_ACCESS_READ ||
           error_set(err, ERROR_FORBIDDEN, "%s needs a read-write key; this one may only read",
                     call->operation->name);
}

bool rest_authorize(struct rest_call *call, struct error *err)
{
    const struct rest_route *route = &call->route;
    const struct front_signing signing = {
        .header = rest_call_header(call, REST_HEADER_AUTHORIZATION),
        .ms_date = rest_call_header(call, REST_HEADER_DATE_MS),
        .date = rest_call_header(call, REST_HEADER_DATE),
        .type = route->type,
        /* JavaScript signs this one as if it were the container. */
        .other_type = route->resource == REST_PARTITION_DELETE ? SLICE("colls") : SLICE_NONE,
        .link = route->link,
        .link_raw = route->link_raw,
        .by_rid = route->resource == REST_OFFERS,
    };
    enum front_signer signer;
    struct slice token;

    if (!front_authorize(&call->over_gateway, &signing, &signer, &token, err))
        return false;
    if (signer == FRONT_SIGNER_TOKEN)
        return rest_token_authorize(call, token, err);
    call->identity.kind =
        signer == FRONT_SIGNER_READER ? REST_IDENTITY_READER : REST_IDENTITY_OWNER;
    return access_check(call, err);
}
