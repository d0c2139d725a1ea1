/* Call: one request on its way through the REST front, and its answer in the making.
 *
 * An operation's function reads the call, fills in status, headers and body, and returns true; or
 * it returns false with an error, which becomes the answer with the charge collected so far. What
 * it allocates lives in the call's arena, which is the request's. */
#pragma once

#include "catalogue/account_keys.h"
#include "catalogue/container_space.h"
#include "front/kit/gateway.h"
#include "front/rest/authorize.h"
#include "front/rest/header.h"
#include "front/rest/metadata_budget.h"
#include "front/rest/operation.h"
#include "front/rest/rest.h"

struct rest_item_target;

struct rest_call {
    union {
        struct front_gateway_call over_gateway;
        struct front_gateway_call;
    };
    const struct rest_options *options;
    struct rest_headers headers;
    struct rest_route route;
    enum rest_verb verb;
    const struct rest_operation *operation; /* of route and verb */
    struct rest_identity identity;
    const struct rest_item_target *target;  /* what was read of a request that is kept, for when it
                                             * moves to a worker; NULL: nothing yet */
    struct rest_metadata_budgets *metadata; /* NULL: metadata is not held back */
    struct rest_metadata_ticket ticket;     /* of an operation on it */
    struct rest_view_wait *view_wait;       /* it waits, or has waited, for a view; in the arena */
    struct item_gates *script_gates;        /* where scripts take turns that lost to others */
    uint64_t pass[2];                       /* of a server that follows (rest.h) */
    bool *untaken; /* the same, while the handler runs: it did nothing with the request */
    struct net_task pass_on_task;
};

static inline struct slice rest_call_header(const struct rest_call *call, enum rest_header header)
{
    return call->headers.values[header];
}

/* Is it of a library of before this date? Versions are dates: texts of one length, in order. Who
 * says none is of today. */
static inline bool rest_call_version_before(const struct rest_call *call, struct slice date)
{
    struct slice version = rest_call_header(call, REST_HEADER_VERSION);

    return version.len == date.len && slice_compare(version, date) < 0;
}

/* The life of a call is the kit's (kit/call.h); these name it for the operations. */
static inline void rest_call_finish(struct rest_call *call, bool fine, const struct error *err)
{
    front_call_finish(&call->front, fine, err);
}

NODISCARD static inline bool rest_call_hold(struct rest_call *call, size_t bytes, struct error *err)
{
    return front_call_hold(&call->front, bytes, err);
}

NODISCARD static inline bool rest_call_grown(struct rest_call *call, struct error *err)
{
    return front_http_grown(&call->over_http, err);
}

static inline void rest_call_breathe(const struct rest_call *call)
{
    front_call_breathe(&call->front);
}

static inline void rest_call_keep(struct rest_call *call)
{
    front_call_keep(&call->front);
}

static inline void rest_call_move(struct rest_call *call)
{
    front_call_move(&call->front);
}

/* So are headers and bodies (kit/http.h). */
static inline void rest_answer_header(struct rest_call *call, struct slice name, struct slice value)
{
    front_http_header(&call->over_http, name, value);
}

static inline void rest_answer_header_int(struct rest_call *call, struct slice name, int64_t value)
{
    front_http_header_int(&call->over_http, name, value);
}

/* The etag header, of an etag with its quotes. */
static inline void rest_answer_etag(struct rest_call *call, struct slice etag)
{
    rest_answer_header(call, SLICE("etag"), etag);
}

NODISCARD static inline bool rest_call_body(struct rest_call *call, struct slice *ret_document,
                                            struct error *err)
{
    return front_http_body(&call->over_http, ret_document, err);
}

NODISCARD static inline bool rest_call_body_value(struct rest_call *call, uint32_t extra_depth,
                                                  struct document_value *ret_value,
                                                  struct error *err)
{
    return front_http_body_value(&call->over_http, extra_depth, ret_value, err);
}

NODISCARD static inline bool rest_call_json(struct rest_call *call, struct slice text,
                                            uint32_t extra_depth, struct document_value *ret_value,
                                            struct error *err)
{
    return front_http_json(&call->over_http, text, extra_depth, ret_value, err);
}

/* Finds the account that host and path name, and its keys; one that is missing too, which is told
 * to those alone who have signed. */
NODISCARD static inline bool rest_account_find(struct rest_call *call, struct error *err)
{
    return front_http_account_find(&call->over_http, call->route.account,
                                   rest_call_header(call, REST_HEADER_HOST), err);
}

/* Makes the account by use if there is none and the operation changes something; blocks. */
NODISCARD bool rest_account_make(struct rest_call *call, struct error *err);
bool rest_account_is_made(const struct rest_call *call);

/* Opens the database of the route. ERROR_OWNER_NOT_FOUND. The caller lets go of it. */
NODISCARD bool rest_call_database(struct rest_call *call, struct database **ret_database,
                                  struct error *err);

/* Opens the container of the route, or says which part of the path is missing. The caller lets go
 * of it. Checks x-ms-cosmos-intended-collection-rid. */
NODISCARD bool rest_call_container(struct rest_call *call, struct container **ret_container,
                                   struct error *err);

/* The values of If-Match and If-None-Match without quotes; data NULL where absent. */
struct slice rest_call_etag(const struct rest_call *call, enum rest_header header);
