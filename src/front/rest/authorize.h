/* Authorisation: who signed a request, and what they may do.
 *
 * A request carries a signature made with one of the account's keys (kit/authorize.h), or a
 * resource token made by this server from a permission. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct rest_call;

enum rest_identity_kind {
    REST_IDENTITY_NONE,
    REST_IDENTITY_OWNER,  /* a read-write key */
    REST_IDENTITY_READER, /* a read-only key */
    REST_IDENTITY_TOKEN,  /* a resource token */
};

struct rest_identity {
    enum rest_identity_kind kind;
    struct slice key;   /* of a token bound to a partition key: its JSON; data NULL: to none */
    uint64_t key_lsn;   /* when that was said: the LSN of its permission */
    bool one_item;      /* of a token: its permission is on an item, under the id that has now */
    uint32_t container; /* of a token: the number of the container it was allowed; 0: none */
    bool database;      /* of a token: its permission is on the database, and so on all in it */
};

/* Who asks: fills in call->identity. ERROR_UNAUTHORIZED: no valid signature; ERROR_FORBIDDEN: out
 * of its time. */
NODISCARD bool rest_authorize(struct rest_call *call, struct error *err);
