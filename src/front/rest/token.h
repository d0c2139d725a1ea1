/* Resource tokens: what a permission hands to its user, and what a request with one may do.
 *
 * A token is self-contained: the permission, the resource, the mode, the partition key and the time
 * it is good for, under a MAC of this server. It stops working when its time is over, when its
 * permission is deleted or changed, or when its container is made anew. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

struct rest_call;

/* Whether the token after "sig=" allows this call. ERROR_UNAUTHORIZED: it was not made here;
 * ERROR_FORBIDDEN: it does not reach that far, or its time is over. */
NODISCARD bool rest_token_authorize(struct rest_call *call, struct slice sig, struct error *err);
