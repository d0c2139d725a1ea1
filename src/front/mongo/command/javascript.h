/* JavaScript of clients: who may have it run, and the host that runs it (expression/javascript.h).
 *
 * A call that meets a function for the first time takes its place among the scripts of its account
 * and database, and a process with the first batch of rows; it keeps both until it is answered. */
#pragma once

#include "front/mongo/command/call.h"
#include "query/expression/expression.h"

/* What was compiled, by its build: may it be run? 238 names the operator and the setting; NULL:
 * nothing is to be run. */
NODISCARD bool mongo_javascript_check(const struct mongo_call *call, const char *script,
                                      struct error *err);

/* The host, for a request or a context of the call. */
struct query_udf_host mongo_javascript_host(struct mongo_call *call);

/* After the command has run: gives process and place back. */
void mongo_javascript_done(struct mongo_call *call);
