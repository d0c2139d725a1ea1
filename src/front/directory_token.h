/* Directory (Entra) tokens, as the vendors' test credentials send them to the emulator.
 *
 * Such a token has the three parts of a JWT, but nobody has signed it: the third part is the text
 * of the account's key in base64url, or in base64 where .NET makes it. So it is a key that is sent
 * instead of used, and is taken only where a server accepts the emulator's key and the client is on
 * this machine. Of the first part `alg` must be RS256; of the second `nbf` and `exp`, in seconds,
 * must hold. Who issued it, for whom and with which rights nobody can say here: whoever has a
 * read-write key has all. */
#pragma once

#include "catalogue/account_keys.h"
#include "net/address.h"

struct arena;

struct front_directory_token {
    struct slice text;               /* as sent */
    bool dev;                        /* does the server accept the emulator's key? */
    const struct net_address *peer;  /* who sends it */
    const char *const *public_keys;  /* keys everybody knows that count here, up to a NULL */
    const struct account_keys *keys; /* of the account; NULL: it has none */
    int64_t now_s;
};

/* NULL: it is good, and *ret_readonly says whether by a key that may only read. Else why it is
 * refused. */
const char *front_directory_token_refused(const struct front_directory_token *token,
                                          struct arena *arena, bool *ret_readonly);
