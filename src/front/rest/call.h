/* Call: one request on its way through the REST front, and its answer in the making.
 *
 * An operation's function reads the call, fills in status, headers and body, and returns true; or
 * it returns false with an error, which becomes the answer with the charge collected so far. What
 * it allocates lives in the call's arena, which is the request's. */
#pragma once

#include "base/random.h"
#include "catalogue/account_keys.h"
#include "catalogue/container_space.h"
#include "front/rest/authorize.h"
#include "front/rest/header.h"
#include "front/rest/metadata_budget.h"
#include "front/rest/operation.h"
#include "front/rest/rest.h"

#include <stdatomic.h>

struct query_cache;
struct query_spill;

struct rest_call {
    const struct rest_options *options;
    const struct front_services *services;
    const char *since;      /* x-ms-last-state-change-utc: when the server started */
    atomic_uint *under_way; /* calls that a committer will end: see rest_wait */
    struct net_http_request *http;
    struct arena *arena;
    struct rest_headers headers;
    struct rest_route route;
    struct account *account;         /* a reference; NULL: there is none, or none yet */
    bool account_missing;            /* there is none, and none is to be made by use */
    struct slice account_id;         /* of it */
    const struct account_keys *keys; /* whose signatures count: its own, or the default account's */
    struct account *keys_account;    /* a reference that keeps the keys */
    struct net_owner *owner;         /* the account, as workers and memory know it; may be NULL */
    size_t held;                     /* on its meter, until the call ends */
    enum rest_verb verb;
    const struct rest_operation *operation; /* of route and verb */
    struct rest_identity identity;
    bool may_block;               /* false: on a loop; set cold and return rather than block */
    const atomic_bool *cancelled; /* the client has gone; NULL: nobody would notice */
    bool cold;     /* out: run again where it may block; the answer so far is thrown away */
    bool *pending; /* out, on a loop: the operation ends later, by rest_call_finish; the call must
                    * not be touched after that was set in motion */
    bool kept;     /* the request's bytes are in the arena */
    char activity_id[RANDOM_UUID_SIZE];

    /* The answer. */
    uint16_t status;
    struct buf lines; /* header lines, each ending in CRLF */
    struct buf body;  /* JSON, or empty */
    int64_t charge_cru;
    int64_t wait_ms;      /* of a 429 */
    struct slice message; /* of an error, instead of err->message: longer, or the service's text */
    struct slice error_info; /* of an error besides: JSON text, for libraries; data NULL: none */

    struct rest_metadata_budgets *metadata; /* NULL: metadata is not held back */
    struct rest_metadata_ticket ticket;     /* of an operation on it */
    struct query_cache *queries;            /* unfinished results, of the front */
    struct query_spill *spill;              /* the same, on disk */
    struct item_gates *script_gates;        /* where scripts take turns that lost to others */
    struct net_work work;
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

/* Holds so many bytes more on the account's meter, until the call ends. ERROR_MEMORY_FULL. */
NODISCARD bool rest_call_hold(struct rest_call *call, size_t bytes, struct error *err);

/* Holds there what the call has in its arena and body by now, where that is more than is held. To
 * be called where items were read. ERROR_MEMORY_FULL. */
NODISCARD bool rest_call_grown(struct rest_call *call, struct error *err);

/* On a worker, between two items that are shown: lets others of the account have the processor. Not
 * where something is held that others wait for. */
void rest_call_breathe(const struct rest_call *call);

/* Ends the call: answers with what it has gathered, or with the error. From any thread. */
void rest_call_finish(struct rest_call *call, bool fine, const struct error *err);

/* On a loop: keeps the request beyond the handler's return. The route and the headers are found
 * anew, since the request's bytes have moved. */
void rest_call_keep(struct rest_call *call);

/* Runs the operation on a worker, from its beginning. From any thread; the call is kept. */
void rest_call_move(struct rest_call *call);

/* Adds a header to the answer; control bytes in the value become blanks. */
void rest_answer_header(struct rest_call *call, struct slice name, struct slice value);
void rest_answer_header_int(struct rest_call *call, struct slice name, int64_t value);

/* The etag header, of an etag with its quotes. */
void rest_answer_etag(struct rest_call *call, struct slice etag);

/* Reads the body as a JSON object into BSON, in the arena. ERROR_BAD_JSON and its kin;
 * ERROR_BAD_REQUEST without a body. */
NODISCARD bool rest_call_body(struct rest_call *call, struct slice *ret_document,
                              struct error *err);

/* The same for a body of any JSON value; extra levels of nesting are allowed around what may be 128
 * deep itself. */
NODISCARD bool rest_call_body_value(struct rest_call *call, uint32_t extra_depth,
                                    struct document_value *ret_value, struct error *err);

/* Any JSON text as such a value. */
NODISCARD bool rest_call_json(struct rest_call *call, struct slice text, uint32_t extra_depth,
                              struct document_value *ret_value, struct error *err);

/* An etag as clients send it, without its quotes if it has them. */
struct slice rest_etag_bare(struct slice etag);

/* Finds the account that host and path name, and its keys; one that is missing too, which is told
 * to those alone who have signed. */
NODISCARD bool rest_account_find(struct rest_call *call, struct error *err);

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

/* Where the clients of the account reach this server, as the request named it: in the arena. */
struct slice rest_call_endpoint(struct rest_call *call);

/* The values of If-Match and If-None-Match without quotes; data NULL where absent. */
struct slice rest_call_etag(const struct rest_call *call, enum rest_header header);
