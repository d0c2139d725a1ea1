/* Labels: what a client may do about an error, told beside its code; and faults that tests ask for.
 */
#pragma once

#include "front/mongo/command/call.h"

/* Appends errorLabels to the reply, if the error has any. concern: it is a write concern error, of
 * a command that was carried out. */
void mongo_labels_append(struct mongo_call *call, int code, bool concern);

/* Is a whole transaction to be tried again that fails with this code, other than at its commit? */
bool mongo_code_is_transient(int code);

/* Before a command is looked at: does a test want it to fail? On a loop it is cold if it has to
 * wait first. */
NODISCARD bool mongo_fail_meet(struct mongo_call *call, struct error *err);

/* Appends the writeConcernError a test wants. */
void mongo_fail_concern_append(struct mongo_call *call);
