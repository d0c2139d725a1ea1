/* CORS: what browsers may ask of an account's tables, by the rules of its service properties. */
#pragma once

#include "front/table/call.h"

/* Answers OPTIONS. ERROR_TABLE_CORS: no rule allows it; ERROR_TABLE_HEADER_MISSING. */
NODISCARD bool table_cors_preflight(struct table_call *call, struct error *err);

/* Whether a rule allows the request's origin its method. */
bool table_cors_allows(struct table_call *call);

/* Adds what the answer to a request with an Origin needs, if a rule allows it. */
void table_cors_answer(struct table_call *call);
