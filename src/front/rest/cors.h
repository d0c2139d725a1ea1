/* CORS: which pages may use this API from a browser. None, unless rest.cors_origins names their
 * origins; and administration is for none in any case. */
#pragma once

#include "front/rest/call.h"

/* Does a browser ask whether it may send a request? */
bool rest_cors_is_preflight(const struct rest_call *call);

/* Answers that. ERROR_CORS_REFUSED. */
NODISCARD bool rest_cors_preflight(struct rest_call *call, struct error *err);

/* Where the public key is accepted everybody can sign: a request that a browser sends for a page of
 * an origin nobody has named is refused, whatever it does. ERROR_ORIGIN_REFUSED. */
NODISCARD bool rest_cors_check(const struct rest_call *call, struct error *err);

/* Adds what the answer to a page of a named origin needs. */
void rest_cors_answer(struct rest_call *call);
