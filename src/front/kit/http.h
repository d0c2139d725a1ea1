/* HTTP: the transport of calls over HTTP/1.1, and what APIs over it have in common: who may come
 * in, ids of requests, the account a request names, header lines and bodies. */
#pragma once

#include "base/buf.h"
#include "base/random.h"
#include "document/value.h"
#include "front/kit/call.h"
#include "net/http.h"

/* Who is let in, and as what; of a front's options. The text is borrowed. */
struct front_door {
    bool dev;                /* public keys of the emulators are accepted as well */
    bool accounts_by_use;    /* an account is made when it is first named */
    const char *host_suffix; /* hosts LABEL.suffix name the account LABEL; besides .localhost */
};

enum {
    FRONT_HTTP_LINES_MAX = 64 * 1024,
    FRONT_HTTP_BODY_MAX = 64 * 1024 * 1024, /* an operation keeps its own, far smaller limits */
};

struct front_http_call {
    union {
        struct front_call front;
        struct front_call;
    };
    const struct front_door *door;
    struct net_http_request *http;

    /* The answer. */
    uint16_t status;
    struct buf lines; /* header lines, each ending in CRLF */
    struct buf body;  /* or empty */
};

/* What the calls of one front share. */
struct front_http {
    const struct front_services *services;
    const struct front_door *door;
    const struct front_call_kind *kind;
    atomic_uint under_way;
    uint64_t id_secret;
    atomic_uint_fast64_t ids;
};

/* All borrowed. */
void front_http_init(struct front_http *front, const struct front_services *services,
                     const struct front_door *door, const struct front_call_kind *kind);

/* Fills in a call that is all zero. lines_usual: bytes of header lines in most answers. */
void front_http_begin(struct front_http *front, struct front_http_call *call,
                      struct net_http_request *request, size_t lines_usual);

/* An id for a request, which differs from all others of the server. */
void front_http_id_make(struct front_http *front, char ret_text[RANDOM_UUID_SIZE]);

/* Nobody has signed a preflight, and with --dev everybody can sign: then the host must be one of
 * this server. ERROR_HOST_REFUSED. */
NODISCARD bool front_http_host_check(const struct front_http_call *call, struct error *err);

/* Finds the account of that name; data NULL: that of the host, else the default account. */
NODISCARD bool front_http_account_find(struct front_http_call *call, struct slice name,
                                       struct slice host, struct error *err);

/* Once somebody has signed: is the account there, or may it be made; from here on what the request
 * holds is held for it. ERROR_ACCOUNT_MISSING, ERROR_MEMORY_FULL. */
NODISCARD bool front_http_bill(struct front_http_call *call, struct error *err);

/* Holds on the account's meter what the call has in its arena and body by now, where that is more
 * than is held. To be called where items were read. ERROR_MEMORY_FULL. */
NODISCARD bool front_http_grown(struct front_http_call *call, struct error *err);

/* ERROR_METHOD_NOT_ALLOWED. */
bool front_http_method_refuse(const struct front_http_call *call, struct error *err);

/* On a loop, before a body is read: is the call for a worker, since bodies so long take longer to
 * read than a loop has time for? Then it is cold. Otherwise the request is kept. */
bool front_http_is_long(struct front_http_call *call);

/* Adds a header to the answer; control bytes in the value become blanks. */
void front_http_header(struct front_http_call *call, struct slice name, struct slice value);
void front_http_header_int(struct front_http_call *call, struct slice name, int64_t value);

/* For front_call_kind: the parts of a description that all calls over HTTP have in common. */
void front_http_describe(const struct front_http_call *call, struct observed_request *request);

/* Sends what the call has gathered, which is the end of it. */
void front_http_send(struct front_http_call *call);

/* Reads the body as a JSON object into BSON, in the arena. ERROR_BAD_JSON and its kin;
 * ERROR_BAD_REQUEST without a body. */
NODISCARD bool front_http_body(struct front_http_call *call, struct slice *ret_document,
                               struct error *err);

/* The same for a body of any JSON value; extra levels of nesting are allowed around what may be 128
 * deep itself. */
NODISCARD bool front_http_body_value(struct front_http_call *call, uint32_t extra_depth,
                                     struct document_value *ret_value, struct error *err);

/* Any JSON text as such a value. */
NODISCARD bool front_http_json(struct front_http_call *call, struct slice text,
                               uint32_t extra_depth, struct document_value *ret_value,
                               struct error *err);

/* An etag as clients send it, without its quotes if it has them. */
struct slice front_http_etag_bare(struct slice etag);
