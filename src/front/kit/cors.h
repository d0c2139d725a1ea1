/* CORS: which pages may use this API from a browser. None, unless rest.cors_origins names their
 * origins; and administration is for none in any case. */
#pragma once

#include "front/kit/gateway.h"

/* Does a browser ask whether it may send a request? */
bool front_cors_is_preflight(const struct front_gateway_call *call);

/* Answers that. ERROR_CORS_REFUSED. */
NODISCARD bool front_cors_preflight(struct front_gateway_call *call, struct error *err);

/* Where the public key is accepted everybody can sign: a request that a browser sends for a page of
 * an origin nobody has named is refused, whatever it does. ERROR_ORIGIN_REFUSED. */
NODISCARD bool front_cors_check(const struct front_gateway_call *call, struct error *err);

/* Adds what the answer to a page of a named origin needs. */
void front_cors_answer(struct front_gateway_call *call);
