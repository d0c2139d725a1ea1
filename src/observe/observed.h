/* Observed: what is told of one request when it is over, whichever API it came by.
 *
 * Everything is borrowed for the call of observer_tell; whoever keeps it copies it. Nothing of it
 * is a secret: no key, token, header or body is ever handed in. */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "net/address.h"

/* What was asked for, the same words for all APIs. */
enum observed_operation {
    OBSERVED_OTHER,
    OBSERVED_READ, /* of one item */
    OBSERVED_LIST,
    OBSERVED_CREATE,
    OBSERVED_REPLACE,
    OBSERVED_UPSERT,
    OBSERVED_PATCH,
    OBSERVED_DELETE,
    OBSERVED_QUERY,
    OBSERVED_MORE, /* a further page of a query, of APIs that ask for it by a cursor */
    OBSERVED_BATCH,
    OBSERVED_CHANGES,
    OBSERVED_EXECUTE,
    OBSERVED_METADATA, /* databases, containers, users, offers were looked at */
    OBSERVED_CHANGE,   /* the same were changed */
    OBSERVED_ADMIN,    /* /_orrery/ was looked at */
    OBSERVED_ORDER,    /* something was done there */
    OBSERVED_OPERATIONS
};

/* The words of metrics and logs: "read". */
const char *observed_operation_name(enum observed_operation operation);

/* Does it change what is stored, or what the server does? */
bool observed_operation_changes(enum observed_operation operation);

/* Is it administration: of the server, or of what there is besides items? */
bool observed_operation_is_administration(enum observed_operation operation);

/* What a front has found out of a request on its way; of its call. */
struct observed {
    enum observed_operation operation;
    uint32_t container; /* its number; 0: none, or it was not found */
    uint32_t partition; /* physical; 0: none, or several */
    struct slice plan;  /* how a query was carried out, in words; empty: not told */
};

struct observed_request {
    struct observed observed;
    const char *front;      /* "rest" */
    const char *name;       /* what the API calls the operation: "ITEMS.READ"; NULL: not known */
    struct slice id;        /* of the request, as the client was told; empty: it has none */
    struct slice account;   /* as named; empty: none */
    struct slice database;  /* likewise */
    struct slice container; /* likewise */
    struct slice what;      /* a path without its query string, or a name; empty: none */
    struct slice who;       /* "read-write key", "user ann"; empty: nobody was let in */
    struct slice trace;     /* the client's traceparent header; empty: none */
    const struct net_address *peer; /* NULL: not known */
    uint16_t status;                /* as REST would say */
    uint32_t substatus;
    const char *error; /* its name in base/errors.def; NULL: none */
    int64_t charge_cru;
    uint64_t bytes_in, bytes_out; /* of bodies */
    uint64_t started_ns;          /* of clock_monotonic_ns */
    uint64_t time_us;             /* since then */
    int64_t ended_ms;             /* wall clock: set by the observer, where somebody wants it */
    bool may_block;               /* told by a thread that may */
};

/* Appends it as members of a JSON object, each with a comma before it. */
void observed_request_json(const struct observed_request *request, struct buf *out);
