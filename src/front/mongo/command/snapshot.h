/* Snapshot: reads of one moment outside of transactions: find, aggregate and distinct whose read
 * concern is snapshot.
 *
 * A moment is held as a transaction that only reads, in an entry of the table of sessions that is
 * named after its time, so that its number and its age are bounded as those of transactions are.
 * A client that wants it again names the time, in whatever session; cursors know theirs. */
#pragma once

#include "front/mongo/command/call.h"

/* Does the command ask for one? */
bool mongo_snapshot_is_asked(const struct mongo_call *call);

/* Before it runs: the call reads that moment until it leaves; on a loop it is cold.
 * MONGO_SNAPSHOT_TOO_OLD: it is not held, or no more. MONGO_INVALID_OPTIONS: the command, or one of
 * its stages, cannot. */
NODISCARD bool mongo_snapshot_enter(struct mongo_call *call, struct error *err);

/* The same for a cursor that was opened at this time. */
NODISCARD bool mongo_snapshot_resume(struct mongo_call *call, uint64_t time, struct error *err);

/* After it ran, well (fine) or not; what becomes of the call. */
NODISCARD bool mongo_snapshot_leave(struct mongo_call *call, bool fine, struct error *err);

/* Appends atClusterTime, if the call reads a moment. */
void mongo_snapshot_append(struct mongo_call *call);
