/* Index uses: how often queries have used each index since the server has started, for $indexStats.
 *
 * A table of a fixed size without locks: an index has a slot, found by a hash of its collection,
 * its name and its number. When the table is full, further ones are not counted. */
#pragma once

#include "front/mongo/command/call.h"

struct mongo_index_uses; /* opaque */

struct mongo_index_uses *mongo_index_uses_new(void);
void mongo_index_uses_free(struct mongo_index_uses *uses); /* NULL is fine */

/* One more use of an index of the container with this rid, of the account of the call. */
void mongo_index_uses_add(const struct mongo_call *call, const struct rid *rid,
                          const struct index_definition *index);

/* How many there were. */
uint64_t mongo_index_uses_read(const struct mongo_call *call, const struct rid *rid,
                               const struct index_definition *index);
