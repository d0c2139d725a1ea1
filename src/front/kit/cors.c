#include "front/kit/cors.h"

/* What the vendors' libraries read of answers. */
static const char exposed[] =
    "etag, lsn, x-ms-activity-id, x-ms-alt-content-path, x-ms-content-path, x-ms-continuation, "
    "x-ms-cosmos-index-utilization, x-ms-cosmos-llsn, x-ms-cosmos-physical-partition-id, "
    "x-ms-documentdb-partitionkeyrangeid, x-ms-documentdb-query-metrics, "
    "x-ms-documentdb-script-log-results, x-ms-gatewayversion, x-ms-global-committed-lsn, "
    "x-ms-item-count, x-ms-item-lsn, x-ms-last-state-change-utc, x-ms-offer-replace-pending, "
    "x-ms-request-charge, x-ms-request-duration-ms, x-ms-resource-quota, x-ms-resource-usage, "
    "x-ms-retry-after-ms, x-ms-schemaversion, x-ms-serviceversion, x-ms-session-token, "
    "x-ms-substatus, x-orrery-partial, x-orrery-missing-partitions";

static struct slice origin_of(const struct front_gateway_call *call)
{
    return net_http_header(call->http, SLICE("origin"));
}

static struct slice origins(const struct front_gateway_call *call)
{
    return slice_of_text(call->gateway->cors_origins ? call->gateway->cors_origins : "");
}

static bool is_named(const struct front_gateway_call *call)
{
    struct slice origin = origin_of(call);

    return origin.len && !call->gateway->for_no_page && front_origin_listed(origins(call), origin);
}

bool front_cors_is_preflight(const struct front_gateway_call *call)
{
    return slice_equal(call->http->method, SLICE("OPTIONS")) && origin_of(call).data &&
           net_http_header(call->http, SLICE("access-control-request-method")).data;
}

bool front_cors_preflight(struct front_gateway_call *call, struct error *err)
{
    struct slice headers = net_http_header(call->http, SLICE("access-control-request-headers"));

    if (!is_named(call))
        return error_set(
            err, ERROR_CORS_REFUSED, "pages of this origin may not use this API from a browser: %s",
            call->gateway->for_no_page ? "administration is for no page"
                                       : "the setting rest.cors_origins does not name it");
    front_http_header(&call->over_http, SLICE("Access-Control-Allow-Methods"),
                      SLICE("GET, HEAD, POST, PUT, PATCH, DELETE"));
    if (headers.len)
        front_http_header(&call->over_http, SLICE("Access-Control-Allow-Headers"), headers);
    front_http_header(&call->over_http, SLICE("Access-Control-Max-Age"), SLICE("600"));
    call->status = 204;
    return true; /* who may read the answer is added as to every other */
}

bool front_cors_check(const struct front_gateway_call *call, struct error *err)
{
    if (!call->door->dev || !front_request_is_foreign(call->http) || is_named(call))
        return true;
    return error_set(err, ERROR_ORIGIN_REFUSED,
                     "a browser sends this for a page of another origin, and this server accepts a "
                     "key everybody knows: name the origin in the setting rest.cors_origins");
}

void front_cors_answer(struct front_gateway_call *call)
{
    bool all = slice_equal(slice_trim(origins(call)), SLICE("*"));

    if (!origins(call).len)
        return;
    if (!all)
        front_http_header(&call->over_http, SLICE("Vary"), SLICE("Origin"));
    if (!is_named(call))
        return;
    front_http_header(&call->over_http, SLICE("Access-Control-Allow-Origin"),
                      all ? SLICE("*") : origin_of(call));
    front_http_header(&call->over_http, SLICE("Access-Control-Expose-Headers"),
                      slice_of_text(exposed));
}
