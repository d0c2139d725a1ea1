/* What hello says of authentication: mechanisms, and the first step of one that came with it. */
#pragma once

struct mongo_call;

void mongo_sasl_hello(struct mongo_call *call);
