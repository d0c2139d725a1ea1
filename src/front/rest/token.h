/* Resource tokens: what a permission hands to its user, and what a request with one may do.
 *
 * A token names its permission, the state the permission was in, the resource by number, and the
 * time it is good for, under a MAC of a secret that follows from the account's primary key. It
 * stops working when its time is over, when its permission is changed or deleted, when its resource
 * is deleted or made anew, and when the primary key is rotated. Nothing is stored for it. */
#pragma once

#include "catalogue/child.h"
#include "partition/key.h"

struct rest_call;

enum {
    REST_TOKEN_SECONDS_MIN = 600,
    REST_TOKEN_SECONDS_MAX = 86400,
    REST_TOKEN_SECONDS_DEFAULT = 3600,
};

/* How long the tokens of this answer are good for, from the header x-ms-documentdb-expiry-seconds.
 * ERROR_BAD_REQUEST. */
NODISCARD bool rest_token_seconds(const struct rest_call *call, uint32_t *ret_seconds,
                                  struct error *err);

/* A token of the permission, as clients send it back, in the arena. It is made also where the
 * permission's resource does not exist; it then opens nothing. */
struct slice rest_token_make(struct rest_call *call, const struct catalogue_child *permission,
                             uint32_t seconds);

/* Whether the token after "sig=" allows this call. Fills in call->identity. A token bound to a
 * partition key allows operations on items only where the request names that key in its header.
 * ERROR_UNAUTHORIZED: it was not made here; ERROR_FORBIDDEN: it does not reach that far, or has
 * stopped working. */
NODISCARD bool rest_token_authorize(struct rest_call *call, struct slice sig, struct error *err);

/* Whether the call may touch items of this key: for keys that come from elsewhere than the header.
 * ERROR_FORBIDDEN. */
NODISCARD bool rest_token_check_key(struct rest_call *call,
                                    const struct partition_definition *definition,
                                    const struct partition_key *key, struct error *err);

/* Whether an item may get another id: not by a token for that one item, which would reach ids it
 * was not given. ERROR_FORBIDDEN. */
NODISCARD bool rest_token_check_rename(struct rest_call *call, struct error *err);
