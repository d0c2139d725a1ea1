/* CORS: what browsers may ask of an account's tables, by the rules of its service properties. */
#pragma once

#include "front/table/call.h"

/* Answers OPTIONS. ERROR_TABLE_CORS: no rule allows it; ERROR_TABLE_HEADER_MISSING. */
NODISCARD bool table_cors_preflight(struct table_call *call, struct error *err);

/* Adds what the answer to a request with an Origin needs, if a rule allows it. */
void table_cors_answer(struct table_call *call);
