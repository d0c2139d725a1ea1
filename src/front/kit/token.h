/* Resource tokens as far as all fronts of the gateway see them: bytes that were signed here with
 * the primary key of an account. What a token opens is REST's to say (rest/token.h); administration
 * takes none, but tells who made one up from who has one. */
#pragma once

#include "front/account.h"

/* Of a claim, byte 0 is the version and 1 to 4 are the number of the account, big-endian. */
enum { FRONT_TOKEN_VERSION = 1, FRONT_TOKEN_CLAIM_LEN = 63 };

/* "type=resource&ver=1&sig=...", in the arena. */
struct slice front_token_make(const struct account_keys *keys,
                              const uint8_t claim[FRONT_TOKEN_CLAIM_LEN], struct arena *arena);

/* The claim of a token, by what stands behind "sig=". ERROR_UNAUTHORIZED: it is malformed, or was
 * not made for this account. */
NODISCARD bool front_token_open(const struct front_account *account, struct slice sig,
                                uint8_t ret_claim[FRONT_TOKEN_CLAIM_LEN], struct error *err);
