/* Signed: scripts by POST to the port of REST, for pages that sign requests and hold no key they
 * could send:
 *
 *     POST [/ACCOUNT]/_orrery/gremlin/DATABASE/GRAPH   {"gremlin": ..., "bindings": ...}
 *
 * Signed as requests of administration are (docs/admin.md), with a key of the account; a read-only
 * key reads. The script runs as one by POST to the port of Gremlin does. */
#pragma once

#include "front/gremlin/command/gremlin.h"

/* Is the request for a graph? */
bool gremlin_signed_takes(const struct net_http_request *request);

/* Answers it, with an error if need be. In the handler of the port. */
void gremlin_signed_handle(struct gremlin *gremlin, struct net_http_request *request);
