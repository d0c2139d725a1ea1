/* Gateway: HTTP as Cosmos DB's gateway speaks it, which REST and administration have in common:
 * activity ids, the headers of every answer, errors in JSON, pages in browsers. */
#pragma once

#include "base/clock.h"
#include "front/kit/http.h"

/* The service's words for a request that is too large as a whole, which libraries look for. */
#define FRONT_TOO_LARGE_TEXT "Message: {\"Errors\":[\"Request size is too large\"]}"

/* What the calls of one front share. */
struct front_gateway {
    struct front_http http;
    const char *cors_origins; /* pages of these may use the API from browsers; "": of none */
    bool for_no_page;         /* not even those */
    char since[CLOCK_HTTP_DATE_LEN + 1];
};

struct front_gateway_call {
    union {
        struct front_http_call over_http;
        struct front_http_call;
    };
    const struct front_gateway *gateway;
    char activity_id[RANDOM_UUID_SIZE];
    bool is_bytes;           /* the answer is no JSON */
    struct slice correlated; /* of the request, echoed; data NULL: none */
    struct slice message; /* of an error, instead of err->message: longer, or the service's text */
    struct slice error_info; /* of an error besides: JSON text, for libraries; data NULL: none */
};

/* All is borrowed. */
void front_gateway_init(struct front_gateway *gateway, const struct front_services *services,
                        const struct front_door *door, const struct front_call_kind *kind,
                        const char *cors_origins);

/* Fills in a call that is all zero. activity_id: what the client sent; taken if it is a GUID. */
void front_gateway_begin(struct front_gateway *gateway, struct front_gateway_call *call,
                         struct net_http_request *request, struct slice activity_id);

/* Where the clients of the account reach this server, as the request named it: in the arena.
 * prefix: "/name" of an account in the path. */
struct slice front_gateway_endpoint(struct front_gateway_call *call, struct slice host,
                                    struct slice prefix);

/* For front_call_kind: sends what the call has gathered; or an error with the charge so far. */
void front_gateway_answer(struct front_call *call);
void front_gateway_refuse(struct front_call *call, const struct error *err);

/* For front_call_kind: the parts of a description that REST and administration have in common. */
void front_gateway_describe(const struct front_gateway_call *call,
                            struct observed_request *request);

/* The name of a status in error bodies: "NotFound". */
const char *front_gateway_code(uint16_t status);

/* For net_http_settings: what is refused before it reaches a handler, as libraries know it. */
struct net_http_response front_gateway_refusal(struct arena *arena, uint16_t status,
                                               const char *reason);
