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
};

/* Who asks: fills in call->identity. ERROR_UNAUTHORIZED: no valid signature; ERROR_FORBIDDEN: out
 * of its time. */
NODISCARD bool rest_authorize(struct rest_call *call, struct error *err);
