/* Read preference: which of a node's servers a command may be read from.
 *
 *     mode                  primary (the default) and primaryPreferred are the primary's
 *                           secondary, secondaryPreferred and nearest: a standby where the node has
 *                           one and it proves what is asked (item/reading.h), else the primary
 *     maxStalenessSeconds   what a standby shows may be so old at most
 *     tags                  standbys have none: only a list with an empty set in it can be
 * satisfied
 *
 * readConcern is satisfied by what a standby shows anyhow, for it is acknowledged, but for
 * linearizable, snapshot and afterClusterTime: those are the primary's, as is everything in a
 * transaction and whatever a command that writes reads. */
#pragma once

#include "front/mongo/command/call.h"

/* ERROR of MongoDB's own codes: it is no preference, or cannot be satisfied. */
NODISCARD bool mongo_preference_check(const struct mongo_call *call, struct error *err);

/* How the command reads; one that was checked. */
void mongo_preference_read(const struct mongo_call *call, struct item_reading_options *ret_options);

/* The collection is read so from now on. */
void mongo_preference_look(const struct mongo_call *call, struct mongo_collection *collection);
