/* Operations: the commands that are being carried out, for currentOp, killOp and $currentOp.
 *
 * A call is listed from when it comes to a worker, or waits, until it is answered. What a loop
 * answers at once is not: it is over before anybody could look. What is told of a call is copied
 * when it is listed, so that whoever looks needs nothing of it but the lock. */
#pragma once

#include "front/mongo/command/call.h"

enum { MONGO_OPERATION_COMMAND_MAX = 1000 };

struct mongo_running;    /* one of them, in the arena of its call */
struct mongo_operations; /* opaque */

struct mongo_operations *mongo_operations_new(void);
/* When no call is left. NULL is fine. */
void mongo_operations_free(struct mongo_operations *operations);

/* Lists the call, whose command is known; once. */
void mongo_operation_begin(struct mongo_call *call);
/* Takes it from the list; nothing happens if it is not there. */
void mongo_operation_end(struct mongo_call *call);

/* Was the call ended by killOp? Then err becomes MONGO_INTERRUPTED. */
void mongo_operation_tell(const struct mongo_call *call, struct error *err);
