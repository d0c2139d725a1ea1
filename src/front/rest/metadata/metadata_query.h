/* Queries over resources of the catalogue: databases, containers, offers, users and the rest are
 * few, so a query looks at all of them in memory. */
#pragma once

#include "front/rest/call.h"

enum { REST_METADATA_QUERY_BYTES_MAX = 64 * 1024 * 1024 }; /* of the resources as BSON */

/* Answers the query in the body over these documents, BSON in the arena: the feed of owner (a rid,
 * or "") with its array of that name. ERROR_NOT_SUPPORTED: there is no query language yet. */
NODISCARD bool rest_metadata_query(struct rest_call *call, const struct slice *documents,
                                   size_t count, struct slice owner, struct slice name,
                                   struct error *err);
