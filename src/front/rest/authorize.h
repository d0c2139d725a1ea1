/* Authorisation: who signed a request, and what they may do.
 *
 * A request carries a signature made with one of the account's keys, or a resource token made by
 * this server from a permission. Secrets are compared in constant time; an error never says more
 * than the text that was signed. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

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
};

/* The authorization header taken apart; the slices are borrowed or in the arena. */
struct rest_authorization {
    struct slice type, version, sig;
};

/* Reads "type=master&ver=1.0&sig=...", URL-encoded or not. False: it is none. */
NODISCARD bool rest_authorization_parse(struct slice header, struct arena *arena,
                                        struct rest_authorization *ret_authorization);

/* Who asks: fills in call->identity. ERROR_UNAUTHORIZED: no valid signature; ERROR_FORBIDDEN: out
 * of its time. */
NODISCARD bool rest_authorize(struct rest_call *call, struct error *err);
