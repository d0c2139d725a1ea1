/* Await: a getMore that found nothing waits for something to be written, for as long as its
 * maxTimeMS says; meanwhile it is parked (stream/waits.h). What change streams and tailable cursors
 * have in common. */
#pragma once

#include "front/mongo/command/call.h"

struct front_cursor;

/* Begins the time that a getMore may wait, unless it has waited before. MONGO_BAD_VALUE: maxTimeMS
 * is none. */
NODISCARD bool mongo_await_begin(struct mongo_call *call, struct error *err);

/* May it wait on? Not when its time is up, its client has gone, its cursor was killed, or the
 * server stops. */
bool mongo_await_may(const struct mongo_call *call, const struct front_cursor *cursor);

/* That a cursor was killed; and whether it is to be told, for this one was while it was used. A
 * getMore ends so rather than with a batch, for there is nothing to come back to. */
bool mongo_await_killed(uint64_t id, struct error *err);
NODISCARD bool mongo_await_check(const struct front_cursor *cursor, struct error *err);

/* Parks the call until something is noted under the hash, later than that, or it may wait no
 * longer. The cursor is put back, and the command returns false, with no error in err: it begins
 * anew when it is woken. */
void mongo_await_park(struct mongo_call *call, struct front_cursor *cursor, uint64_t hash,
                      uint64_t after, struct error *err);
