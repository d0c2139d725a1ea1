/* Sessions of calls: whose they are, and what their replies tell of time. */
#pragma once

#include "front/mongo/command/call.h"

/* The name of a session with this id, of whoever sends the call. */
void mongo_call_session_name(const struct mongo_call *call, struct slice id,
                             uint8_t ret_name[MONGO_SESSION_NAME_LEN]);

/* What a cursor of the call is marked with: its transaction, or its session. */
void mongo_call_cursor_tag(const struct mongo_call *call, uint8_t ret_tag[FRONT_CURSOR_TAG_LEN]);

/* Appends what every reply ends with. */
void mongo_session_reply_append(struct mongo_call *call);

/* Before a command runs: if it is numbered, the call has its session for itself until it leaves. On
 * a loop it is cold, but for writes of one document whose session is free and whose number is the
 * next. MONGO_TRANSACTION_TOO_OLD; MONGO_INVALID_OPTIONS: fields that do not go
 * together. */
NODISCARD bool mongo_session_enter(struct mongo_call *call, struct error *err);
/* After it ran, well (fine) or not; what becomes of the call. A call that is cold has done nothing:
 * its number is as good as new. */
NODISCARD bool mongo_session_leave(struct mongo_call *call, bool fine, struct error *err);

/* The fields of sessions, versions and read concern that any command may carry. */
NODISCARD bool mongo_session_check(const struct mongo_call *call, struct error *err);
