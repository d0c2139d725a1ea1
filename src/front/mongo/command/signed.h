/* Signed: commands by POST to the port of REST, for pages that sign requests and have no connection
 * of MongoDB's protocol:
 *
 *     POST [/ACCOUNT]/_orrery/mongo/DATABASE   {"find": "orders", "filter": {"total": {"$gt": 9}}}
 *
 * Signed as requests of administration are (docs/admin.md), with a key of the account; a read-only
 * key reads. The body is the command in extended JSON, the answer its reply in the same, whether it
 * says ok or not. It goes the way of a message: the same rights, limits and charges. */
#pragma once

#include "front/mongo/command/mongo.h"

/* Of mongo_new. */
void mongo_signed_init(struct mongo *mongo);

/* Is the request for a command? */
bool mongo_signed_takes(const struct net_http_request *request);

/* Answers it, with an error if need be. In the handler of the port. */
void mongo_signed_handle(struct mongo *mongo, struct net_http_request *request);
