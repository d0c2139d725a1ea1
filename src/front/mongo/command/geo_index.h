/* Indexes that $near, $nearSphere and $geoNear cannot do without: 2dsphere and 2d. */
#pragma once

#include "front/mongo/command/item.h"
#include "front/mongo/match/near.h"

/* Has the collection an index for it? 291. Of one that does not exist nothing is asked. */
NODISCARD bool mongo_geo_index_check(const struct mongo_collection *collection,
                                     const struct mongo_near *near, struct error *err);

/* The path that $geoNear is about where it names none: that of the only 2d index of the
 * collection, or of the only 2dsphere index; dotted, in the arena. Absent: there is no collection.
 * 27. */
NODISCARD bool mongo_geo_index_key(const struct mongo_collection *collection, struct arena *arena,
                                   struct slice *ret_key, struct error *err);
